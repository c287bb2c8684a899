// What linear/matrix promises of rows of the input and of weights: bits that depend on nothing but these, also where f16 does not suit some.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/device_environment.h"
#include "tools/check/device_run.h"

namespace rondo::tests::matrix_units_test {
namespace {

constexpr std::int64_t kRows = 70, kColumns = 96, kOutputs = 41;

/// Random numbers, of which those of row `other` are multiplied by `factor`.
std::vector<float> rows_of(std::int64_t n_rows, std::uint32_t seed, std::int64_t other, float factor) {
  std::vector<float> values = check::random_values(static_cast<std::size_t>(n_rows * kColumns), seed);
  for (std::int64_t i = other * kColumns; i < (other + 1) * kColumns; ++i) values[static_cast<std::size_t>(i)] *= factor;
  return values;
}

std::vector<std::byte> outputs_of(check::OpCase& c, graph::TensorId input, graph::TensorId weight) {
  const graph::TensorId output = c.graph.add(graph::Op::linear, {input, weight});
  c.output(output);
  check::RunOptions options;
  options.kernels["linear"] = "matrix";
  const auto run = check::run_on_device(test_runtime_device(), c, options);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? run->after[static_cast<std::size_t>(c.graph.tensor(output).storage)] : std::vector<std::byte>();
}

/// The bytes of the outputs where row `other` of the input is multiplied by `factor`.
std::vector<std::byte> outputs(std::int64_t other, float factor) {
  check::OpCase c;
  const graph::TensorId input = c.f32("input", {kRows, kColumns}, rows_of(kRows, 1, other, factor));
  return outputs_of(c, input, c.weight("weight", graph::Type::kQ4_0, kOutputs, kColumns, check::weight_rows(graph::Type::kQ4_0, kOutputs, kColumns, 2, check::WeightValues::kRandom)));
}

/// The outputs with weights in f32, of which a row is multiplied by `factor`, as is one of the input by `of_input`.
std::vector<float> outputs_of_floats(std::int64_t other, float factor, float of_input) {
  check::OpCase c;
  const graph::TensorId input = c.f32("input", {kRows, kColumns}, rows_of(kRows, 1, other, of_input));
  const std::vector<float> weights = rows_of(kOutputs, 2, other, factor);
  const auto rows = std::as_bytes(std::span(weights));
  const std::vector<std::byte> bytes = outputs_of(c, input, c.weight("weight", graph::Type::kF32, kOutputs, kColumns, {rows.begin(), rows.end()}));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
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

/// Powers of two, so that sums are as many times as large, but for what f16 can't hold of the smallest weights.
TEST(MatrixUnitsTest, WeightsFarBeyondF16AreScaledByRow) {
  if (test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  constexpr std::int64_t kOther = 5;
  const std::vector<float> plain = outputs_of_floats(kOther, 1, 1);
  ASSERT_EQ(plain.size(), static_cast<std::size_t>(kRows * kOutputs));
  for (const auto& [factor, of_input] : {std::pair(0x1p90f, 1.0f), {0x1p-90f, 1.0f}, {0x1p100f, 0x1p-100f}, {0x1p-100f, 0x1p100f}}) {
    const std::vector<float> found = outputs_of_floats(kOther, factor, of_input);
    ASSERT_EQ(found.size(), plain.size());
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t n = 0; n < kOutputs; ++n) {
        const auto i = static_cast<std::size_t>(row * kOutputs + n);
        const float expected = plain[i] * (n == kOther ? factor : 1) * (row == kOther ? of_input : 1);
        if (n != kOther && row != kOther) EXPECT_EQ(found[i], expected) << row << " " << n;
        else EXPECT_NEAR(found[i] / expected, 1, 1e-3) << row << " " << n << ", factors " << factor << " and " << of_input;
      }
    }
  }
}

}  // namespace
}  // namespace rondo::tests::matrix_units_test
