// Runs cases on the test device and judges every byte that they left behind against the interpreter.
#pragma once

#include <gtest/gtest.h>

#include "tools/check/device_run.h"

namespace rondo::tests {

using namespace check;

/// Rows of each layout, where every type would repeat what check does: of words, of halves, of small blocks and of large ones.
inline constexpr graph::Type kRowLayouts[] = {graph::Type::kF32, graph::Type::kF16, graph::Type::kQ8_0, graph::Type::kQ6_K};

/// Lowers and runs a copy of the case's graph.
Result<DeviceRun> run_on_device(const OpCase& op, const RunOptions& options);

/// Success, or everything that is wrong with the run: errors, hazards, writes outside, storages that differ.
::testing::AssertionResult agrees(const OpCase& op, Tolerance tolerance, const RunOptions& options = {});

/// The same, and the run takes so many dispatches of this label.
::testing::AssertionResult agrees_with_dispatches(const OpCase& op, Tolerance tolerance, const RunOptions& options, std::string_view label, std::size_t n_wanted);

/// As agrees, but judged by the reference of another case with the same storages: to see that a wrong result is rejected.
::testing::AssertionResult agrees_with(const OpCase& op, const OpCase& oracle, Tolerance tolerance, const RunOptions& options = {});

}  // namespace rondo::tests
