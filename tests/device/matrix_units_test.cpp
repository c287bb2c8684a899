// What linear/matrix promises of rows: bits that depend on nothing but the row, also where f16 does not suit some of them.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/device_environment.h"
#include "tools/check/device_run.h"

namespace rondo::tests::matrix_units_test {
namespace {

constexpr std::int64_t kRows = 70, kColumns = 96, kOutputs = 41;

/// The bytes of the outputs of rows of random numbers, of which row `other` is multiplied by `factor`.
std::vector<std::byte> outputs(std::int64_t other, float factor) {
  check::OpCase c;
  std::vector<float> values = check::random_values(kRows * kColumns, 1);
  for (std::int64_t i = other * kColumns; i < (other + 1) * kColumns; ++i) values[static_cast<std::size_t>(i)] *= factor;
  const graph::TensorId input = c.f32("input", {kRows, kColumns}, values);
  const graph::TensorId output = c.graph.add(graph::Op::linear, {input, c.weight("weight", graph::Type::kQ4_0, kOutputs, kColumns, check::weight_rows(graph::Type::kQ4_0, kOutputs, kColumns, 2, check::WeightValues::kRandom))});
  c.output(output);
  check::RunOptions options;
  options.kernels["linear"] = "matrix";
  const auto run = check::run_on_device(test_runtime_device(), c, options);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? run->after[static_cast<std::size_t>(c.graph.tensor(output).storage)] : std::vector<std::byte>();
}

TEST(MatrixUnitsTest, ARowsBitsDependOnTheRowAlone) {
  if (test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  constexpr std::int64_t kOther = 3;
  const std::vector<std::byte> plain = outputs(kOther, 1);
  ASSERT_EQ(plain.size(), kRows * kOutputs * 4);
  for (const float factor : {1e6f, 1e-4f, 1e20f, 0.0f}) {
    const std::vector<std::byte> found = outputs(kOther, factor);
    ASSERT_EQ(found.size(), plain.size());
    for (std::int64_t row = 0; row < kRows; ++row) {
      const bool same = std::memcmp(found.data() + row * kOutputs * 4, plain.data() + row * kOutputs * 4, kOutputs * 4) == 0;
      EXPECT_EQ(same, row != kOther) << "row " << row << ", factor " << factor;
    }
  }
}

}  // namespace
}  // namespace rondo::tests::matrix_units_test
