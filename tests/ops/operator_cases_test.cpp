// Operator cases whose results other programs computed in double: both the device and the references must agree.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "graph/operator.h"
#include "models/formats/graph_file.h"
#include "models/formats/safetensors.h"
#include "runtime/fmt.h"
#include "tests/support/op_runner.h"
#include "tests/support/test_data.h"

namespace rondo::tests::operator_cases_test {
namespace {

/// A case of one folder: its graph, and the expected values by output.
struct FolderCase {
  OpCase op;
  std::vector<models::GraphFile::Output> outputs;
  std::vector<std::vector<float>> expected;  ///< row-major; indices as floats, which hold them exactly
};

Result<FolderCase> read_folder(const std::string& folder) {
  RONDO_ASSIGN(const ByteSource description, open_file(folder + "/graph.json"));
  RONDO_ASSIGN(const ByteSource inputs, open_file(folder + "/inputs.safetensors"));
  RONDO_ASSIGN(models::GraphFile file, models::read_graph_file(description, inputs));
  FolderCase folder_case{OpCase(std::move(file.graph), std::move(file.contents)), std::move(file.outputs), {}};
  RONDO_ASSIGN(const ByteSource source, open_file(folder + "/expected.safetensors"));
  RONDO_ASSIGN(const models::SafetensorsFile expected, models::SafetensorsFile::parse(source));
  for (const models::GraphFile::Output& output : folder_case.outputs) {
    if (folder_case.op.graph.tensor(output.tensor).type == graph::Type::kI32) {
      RONDO_ASSIGN(const std::vector<std::int64_t> indices, expected.read_i64(source, output.name));
      folder_case.expected.emplace_back(indices.begin(), indices.end());
    } else {
      RONDO_ASSIGN(folder_case.expected.emplace_back(), expected.read_f32(source, output.name));
    }
  }
  return folder_case;
}

/// The elements of `tensor` in row-major order, out of its storage's bytes.
std::vector<float> elements_of(const graph::Tensor& tensor, std::span<const std::byte> storage) {
  const std::vector<std::byte> bytes = models::dense_elements(tensor, storage);
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  if (tensor.type != graph::Type::kI32) return values;
  std::vector<std::int32_t> indices(values.size());
  std::memcpy(indices.data(), bytes.data(), bytes.size());
  return {indices.begin(), indices.end()};
}

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

void expect_outputs(const FolderCase& one, const std::vector<std::vector<std::byte>>& after, const std::string& who) {
  for (std::size_t i = 0; i < one.outputs.size(); ++i) {
    const graph::Tensor& tensor = one.op.graph.tensor(one.outputs[i].tensor);
    EXPECT_EQ(find_case_difference(tensor, after[static_cast<std::size_t>(tensor.storage)], one.expected[i]), "") << who << ", output " << one.outputs[i].name;
  }
}

/// On the device with the kernels that it chooses, or with RONDO_TEST_THOROUGH each of the first operator; views take none.
void run_case(const FolderCase& one) {
  const auto reference = one.op.run_reference();
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  expect_outputs(one, *reference, "reference");
  if (one.op.graph.nodes().empty()) return;
  if (!std::getenv("RONDO_TEST_THOROUGH")) {
    const Result<DeviceRun> run = run_on_device(one.op, {});
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->touched, "");
    expect_outputs(one, run->after, "device");
    return;
  }
  const graph::Node& node = one.op.graph.nodes().front();
  int n_kernels = 0;
  for (const char* kernel : graph::operator_of(node.op).kernels) {
    RunOptions options;
    options.kernels[graph::operator_of(node.op).name] = kernel;
    const Result<DeviceRun> run = run_on_device(one.op, options);
    if (run.status().code() == StatusCode::kUnsupported && std::string_view(kernel).starts_with("wide")) continue;  // for plain attention only
    ASSERT_TRUE(run.ok()) << run.status().message();
    ++n_kernels;
    EXPECT_EQ(run->touched, "");
    expect_outputs(one, run->after, fmt::format("kernel {}", kernel));
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
  int n_run = 0;
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    const Result<FolderCase> one = read_folder(folder);
    ASSERT_TRUE(one.ok()) << one.status().message();
    run_case(*one);
    ++n_run;
  }
  std::printf("%d cases run\n", n_run);
  EXPECT_GE(n_run, 127);
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
}  // namespace rondo::tests::operator_cases_test
