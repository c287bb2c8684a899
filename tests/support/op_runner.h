// Runs an OpCase on the test device and judges every byte that it left behind against the interpreter.
//
// All storages but activations lie in one buffer with poison around each of them, activations in a poisoned buffer of
// their own, so that a kernel that reads or writes where it must not is found out.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "graph/lowering.h"
#include "tests/support/compare.h"
#include "tests/support/op_case.h"

namespace rondo::tests {

struct RunOptions {
  bool fusion = false;
  std::map<std::string, std::string, std::less<>> kernels;  ///< forced, by operator
  std::optional<runtime::DeviceType> pretend;               ///< choices are made as for a device of this type
  double segment_ns = 1e9;
  int repeats = 1;  ///< submissions of the same recording; the interpreter still runs once
};

struct DeviceRun {
  runtime::Program program;
  std::vector<std::vector<std::byte>> after;  ///< per storage of the case's graph; empty for activations
  std::string touched;                        ///< what was written outside, or ""
};

/// Lowers and runs a copy of the case's graph.
Result<DeviceRun> run_on_device(const OpCase& op, const RunOptions& options);

/// Success, or everything that is wrong with the run: errors, hazards, writes outside, storages that differ.
::testing::AssertionResult agrees(const OpCase& op, Tolerance tolerance, const RunOptions& options = {});

/// The same, but judged by the reference of another case with the same storages: to see that a wrong result is rejected.
::testing::AssertionResult agrees_with(const OpCase& op, const OpCase& oracle, Tolerance tolerance, const RunOptions& options = {});

}  // namespace rondo::tests
