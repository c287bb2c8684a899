// Every kernel of every operator against the operators' references, on one device.
//
// Each case of cases.h runs with each kernel of its operator forced, with numbers of every kind, `repeats` times; every byte
// of every buffer is judged. Not thread-safe; waits for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "runtime/device.h"
#include "tools/check/case_text.h"
#include "tools/check/device_run.h"

namespace rondo::check {

struct CheckOptions {
  std::vector<std::string> ops;      ///< only these operators; empty: all
  std::vector<std::string> kernels;  ///< only these, as in "tiled" or "attention/tiled"; empty: all
  std::string text;                  ///< this case rather than those of the table
  std::uint32_t seed = 1;            ///< of all random numbers
  bool thorough = false;
  bool brief = false;                ///< only whole and random numbers
  std::optional<int> repeats{};      ///< of each run, all of which must leave the same bytes; none: 25, or 1 of a brief check
};

/// A case with one kernel and one kind of numbers.
struct CheckRun {
  std::string op, kernel, text;
  Values values{};
  std::size_t special = 0;  ///< the input with the NaN or infinity
  bool f16_activations = false;
  bool rounded = false;     ///< what is due comes of an input that was rounded before, as by the kernel
  double bound = 0;         ///< largest normalised mean squared error; 0: equal
};

enum class Outcome : std::uint8_t {
  kPassed,
  kFailed,
  kNotForThis,   ///< the kernel refuses the case, as it may
};

struct CheckResult {
  CheckRun run;
  Outcome outcome{};
  double nmse = 0;        ///< infinite where a result is wrong in a way that has no error
  std::string complaint;  ///< what is wrong, or why the kernel refuses
};

/// A kernel that refused every case of its operator, or a case that every kernel refused ("any kernel").
struct UnsupportedKernel {
  std::string op, kernel, reason;
};

struct CheckReport {
  std::vector<CheckResult> results;
  std::vector<UnsupportedKernel> unsupported;
  std::size_t n_passed = 0, n_failed = 0;
  std::size_t n_left_out = 0;   ///< runs of the table with activations in f16, on a device without 16-bit storage
  Status ended;                 ///< why the check ended before its last run, as by a lost device; its result is the last one
  std::size_t n_pipelines = 0;  ///< that the device had to make
};

/// What `options` select, in order. Errors: kInvalidArgument (no such operator or kernel, a case that can't be understood).
Result<std::vector<CheckRun>> list_runs(const CheckOptions& options);

/// Called after each run with how many of how many are done; false ends the check.
using OnResult = std::function<bool(const CheckResult& result, std::size_t done, std::size_t total)>;

/// Runs what `options` select. Errors: those of list_runs.
Result<CheckReport> run_check(runtime::Device& device, const CheckOptions& options, const OnResult& on_result);

/// What runs a case, with the kernel that is forced: as run_on_device does.
using CaseRunner = std::function<Result<DeviceRun>(const OpCase& op, const RunOptions& how)>;

/// The same wherever cases can run.
Result<CheckReport> run_check(const CaseRunner& run_case, const CheckOptions& options, const OnResult& on_result);

/// The command that repeats a run.
std::string repeat_command(const CheckRun& run, std::uint32_t seed);

}  // namespace rondo::check
