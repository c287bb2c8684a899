#include "tests/support/op_runner.h"

#include <algorithm>

#include "tests/support/device_environment.h"

namespace rondo::tests {

Result<DeviceRun> run_on_device(const OpCase& op, const RunOptions& options) { return check::run_on_device(test_runtime_device(), op, options); }

::testing::AssertionResult agrees(const OpCase& op, Tolerance tolerance, const RunOptions& options) { return agrees_with(op, op, tolerance, options); }

::testing::AssertionResult agrees_with_dispatches(const OpCase& op, Tolerance tolerance, const RunOptions& options, std::string_view label, std::size_t n_wanted) {
  if (::testing::AssertionResult right = agrees(op, tolerance, options); !right) return right;
  const Result<DeviceRun> run = run_on_device(op, options);
  if (!run.ok()) return ::testing::AssertionFailure() << "the device: " << run.status().message();
  const auto n = std::count_if(run->program.dispatches.begin(), run->program.dispatches.end(), [&](const runtime::Dispatch& dispatch) { return dispatch.label == label; });
  if (static_cast<std::size_t>(n) == n_wanted) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << n << " dispatches of " << label << ", not " << n_wanted << ": " << labels_of(run->program);
}

::testing::AssertionResult agrees_with(const OpCase& op, const OpCase& oracle, Tolerance tolerance, const RunOptions& options) {
  if (!op.graph.status().ok()) return ::testing::AssertionFailure() << "the graph: " << op.graph.status().message();
  const Result<std::vector<std::vector<std::byte>>> reference = oracle.run_reference();
  if (!reference.ok()) return ::testing::AssertionFailure() << "the reference: " << reference.status().message();
  const Result<DeviceRun> run = run_on_device(op, options);
  if (!run.ok()) return ::testing::AssertionFailure() << "the device: " << run.status().message();
  const std::string complaints = judge(op, *run, *reference, [&](const graph::Storage&) { return tolerance; });
  if (complaints.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << complaints << "\ndispatches: " << labels_of(run->program);
}

}  // namespace rondo::tests
