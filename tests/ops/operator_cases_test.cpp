// Operator cases whose results other programs computed in double: both the device and the references must agree.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "graph/operator.h"
#include "tests/support/graph_file.h"
#include "tests/support/op_runner.h"
#include "tests/support/test_data.h"

namespace rondo::tests {
namespace {

/// What the cases allow: 1e-5 of the largest expected magnitude; indices exactly.
std::string find_case_difference(const graph::Tensor& tensor, std::span<const std::byte> bytes, const std::vector<float>& expected) {
  const std::vector<float> found = elements_of(tensor, bytes);
  if (found.size() != expected.size()) return fmt::format("{} elements but {} are expected", found.size(), expected.size());
  double largest = 0;
  for (float value : expected) largest = std::max(largest, std::abs(static_cast<double>(value)));
  const double allowed = tensor.type == graph::Type::kI32 ? 0 : 1e-5 * largest;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) <= allowed)) return fmt::format("element {} is {} but must be {}", i, found[i], expected[i]);
  }
  return "";
}

void expect_outputs(const GraphFile& file, const std::vector<std::vector<std::byte>>& after, const std::string& who) {
  for (const GraphFile::Output& output : file.outputs) {
    const graph::Tensor& tensor = file.op.graph.tensor(output.tensor);
    EXPECT_EQ(find_case_difference(tensor, after[static_cast<std::size_t>(tensor.storage)], output.expected), "") << who << ", output " << output.name;
  }
}

void run_case(const GraphFile& file) {
  const auto reference = file.op.run_reference();
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  expect_outputs(file, *reference, "reference");
  const graph::Node& node = file.op.graph.nodes().front();
  int n_kernels = 0;
  for (const char* kernel : graph::operator_of(node.op).kernels) {
    RunOptions options;
    options.kernels[graph::operator_of(node.op).name] = kernel;
    const Result<DeviceRun> run = run_on_device(file.op, options);
    if (run.status().code() == StatusCode::kUnsupported && std::string_view(kernel).starts_with("wide")) continue;  // for plain attention only
    ASSERT_TRUE(run.ok()) << run.status().message();
    ++n_kernels;
    EXPECT_EQ(run->touched, "");
    expect_outputs(file, run->after, fmt::format("kernel {}", kernel));
  }
  EXPECT_GE(n_kernels, 1);
}

TEST(OperatorCasesTest, DeviceAndReferenceAgreeWithThem) {
  RONDO_REQUIRE_TEST_DATA();
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(testing::test_data_path("ops"))) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  int n_run = 0, n_left_out = 0;
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    const Result<GraphFile> file = read_graph_file(folder);
    if (!file.ok() && file.status().code() == StatusCode::kUnsupported) {
      ++n_left_out;
      EXPECT_NE(file.status().message().find(" of attention"), std::string::npos) << "only attention lacks attributes and inputs: " << file.status().message();
      std::printf("left out: %s: %s\n", std::filesystem::path(folder).filename().c_str(), file.status().message().c_str());
      continue;
    }
    ASSERT_TRUE(file.ok()) << file.status().message();
    run_case(*file);
    ++n_run;
  }
  std::printf("%d cases run, %d left out\n", n_run, n_left_out);
  EXPECT_GE(n_run, 127);  // those whose operators and attributes there are; fewer would mean that the reader refuses what it knows
}

TEST(OperatorCasesTest, AWrongExpectationIsRejected) {
  const graph::Tensor tensor{"y", graph::Type::kF32, {2}, {1}, 0, 0};
  const std::vector<float> found = {1.0f, 100.0f};
  const auto bytes = std::as_bytes(std::span(found));
  EXPECT_EQ(find_case_difference(tensor, bytes, {1.0005f, 100.0f}), "");
  EXPECT_NE(find_case_difference(tensor, bytes, {1.002f, 100.0f}), "");
  EXPECT_NE(find_case_difference(tensor, bytes, {1.0f}), "");
  EXPECT_NE(find_case_difference(tensor, bytes, {1.0f, std::numeric_limits<float>::quiet_NaN()}), "");
}

}  // namespace
}  // namespace rondo::tests
