// A case on a device: every byte that its kernels left behind.
//
// All storages but activations lie in one buffer with poison around each of them, activations in a poisoned buffer of
// their own with poison behind them, so that a kernel that reads or writes where it must not is found out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/compare.h"
#include "graph/lowering.h"
#include "runtime/device.h"
#include "tools/check/op_case.h"

namespace rondo::check {

using graph::Tolerance;
constexpr Tolerance kExact{0};

struct RunOptions {
  bool fusion = false;
  Activations activations = Activations::kF32;
  std::map<std::string, std::string, std::less<>> kernels;  ///< forced, by operator
  std::map<std::string, std::string, std::less<>> preferred;  ///< LoweringOptions::measured
  std::optional<runtime::DeviceType> pretend;               ///< choices are made as for a device of this type
  double segment_ns = 1e8;  ///< predicted time above which the program is cut, as sessions do
  int repeats = 1;      ///< submissions of the same recording
  bool restore = true;  ///< each begins with what the first began with, and must leave the same behind
};

struct DeviceRun {
  runtime::Program program;
  std::vector<std::vector<std::byte>> after;  ///< per storage of the case's graph; empty for activations
  std::string touched;                        ///< what was written outside, or ""
  std::string unequal;                        ///< how a repetition differed from the first, or ""
};

/// Lowers and runs a copy of the case's graph. Errors: the graph's and the lowering's own (kUnsupported where a forced kernel
/// can't run), kInternal for a hazard, the device's.
Result<DeviceRun> run_on_device(runtime::Device& device, const OpCase& op, const RunOptions& options);

/// How far a storage's elements may be off.
using ToleranceOf = std::function<Tolerance(const graph::Storage& storage)>;

/// What is wrong with a run: writes outside, unequal repetitions, storages that differ from `expected` (per storage, as
/// OpCase::run_reference gives them); "" if nothing is. The largest error goes to `nmse`, if it is given.
std::string judge(const OpCase& op, const DeviceRun& run, const std::vector<std::vector<std::byte>>& expected, const ToleranceOf& tolerance_of, double* nmse = nullptr);

/// "linear vector, linear vector": what the program dispatched.
std::string labels_of(const runtime::Program& program);

}  // namespace rondo::check
