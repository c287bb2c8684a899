// The fused operator against its definition in simple ones, which is what the interpreter runs.
#include <gtest/gtest.h>

#include "runtime/fmt.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::linear_glu_test {
namespace {

using graph::Op;
using graph::TensorId;
using graph::Type;

/// silu's exponential may be off by 3 + 2 |x| units in the last place.
constexpr Tolerance kBound{1e-10};

struct Sizes {
  std::int64_t rows, columns, outputs;
};

class LinearGluTest : public ::testing::TestWithParam<std::tuple<Type, const char*>> {
 protected:
  Type type() const { return std::get<0>(GetParam()); }
  RunOptions options(const char* op = "linear_glu") const {
    RunOptions options;
    options.kernels[op] = std::get<1>(GetParam());
    return options;
  }
  std::vector<Sizes> sizes() const {
    if (has_blocks(type())) {
      std::vector<Sizes> sizes = {{1, 32, 1}, {2, 64, 3}, {3, 96, 41}, {7, 32, 33}, {1, 1120, 37}, {37, 288, 89}, {9, 256, 257}};
      for (Sizes& s : sizes) s.columns = whole_blocks(type(), s.columns);
      return sizes;
    }
    return {{1, 1, 1}, {1, 37, 2}, {2, 2, 3}, {7, 89, 33}, {1, 1031, 113}, {37, 31, 32}, {41, 33, 89}, {9, 128, 257}};
  }
};

/// Each is a pipeline of its own, and what it does is in all kernels the same.
TEST(LinearGluActivationTest, Every) {
  RunOptions options;
  options.kernels["linear_glu"] = "vector";
  for (int kind = 0; kind <= static_cast<int>(graph::Activation::kNeg); ++kind) {
    OpCase c;
    const TensorId input = c.f32("input", {2, 37}, random_values(2 * 37, 1, 0.2f));
    const TensorId weight = c.weight("weight", Type::kF32, 74, 37, weight_rows(Type::kF32, 74, 37, 2, WeightValues::kRandom));
    c.output(c.graph.add(Op::linear_glu, {input, weight}, graph::GluAttributes{static_cast<graph::Activation>(kind)}));
    EXPECT_TRUE(agrees(c, kBound, options)) << kind;
  }
}

TEST_P(LinearGluTest, ChoicesForADiscreteDevice) {
  RunOptions discrete = options();
  discrete.pretend = runtime::DeviceType::kDiscrete;
  for (const Sizes& s : sizes()) {
    OpCase c;
    const TensorId input = c.f32("input", {s.rows, s.columns}, integer_values(static_cast<std::size_t>(s.rows * s.columns), 3, 2));
    c.output(c.graph.add(Op::linear_glu, {input, c.weight("weight", type(), 2 * s.outputs, s.columns, weight_rows(type(), 2 * s.outputs, s.columns, 4, WeightValues::kInteger))}));
    EXPECT_TRUE(agrees(c, kBound, discrete)) << s.rows << " x " << s.columns << " -> " << s.outputs;
  }
}

/// Simple operators and the fused one give what the interpreter gives for the simple ones; a forced linear counts for both.
TEST_P(LinearGluTest, FusedFromGateUpAndGlu) {
  for (bool fusion : {false, true}) {
    OpCase c;
    const std::int64_t k = whole_blocks(type(), 96);
    const TensorId wide = c.f32("wide", {5, k + 5}, random_values(static_cast<std::size_t>(5 * (k + 5)), 5));
    const TensorId input = c.graph.slice(wide, 1, 3, k + 3);
    const TensorId weight = c.weight("weight", type(), 85, k, weight_rows(type(), 85, k, 6, WeightValues::kRandom));
    const TensorId gate = c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, 2, 43)}), up = c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, 43, 84)});
    c.output(c.graph.add(Op::glu, {gate, up}));
    RunOptions forced = options("linear");
    forced.fusion = fusion;
    EXPECT_TRUE(agrees(c, kBound, forced)) << (fusion ? "fused" : "simple");
    const Result<DeviceRun> run = run_on_device(c, forced);
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(run->program.dispatches.size(), fusion ? 1u : 3u);
  }
}

TEST_P(LinearGluTest, RowsBeyondTheCountStayUntouched) {
  const std::int64_t k = whole_blocks(type(), 64);
  for (std::int64_t rows : {3, 37}) {
    for (std::int64_t count : {std::int64_t{0}, std::int64_t{1}, rows - 1}) {
      OpCase c(2);
      const TensorId input = c.f32("input", {2, rows, k}, integer_values(static_cast<std::size_t>(2 * rows * k), 7, 2));
      c.output(c.graph.add(Op::linear_glu, {input, c.weight("weight", type(), 14, k, weight_rows(type(), 14, k, 8, WeightValues::kInteger))}), 1);
      c.set_count(0, static_cast<std::int32_t>(count));
      c.set_count(1, 2, count != 1);
      EXPECT_TRUE(agrees(c, kBound, options())) << rows << " rows, count " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TypesAndKernels, LinearGluTest,
                         ::testing::Combine(::testing::ValuesIn(kRowLayouts), ::testing::Values("subgroup", "vector", "wide", "tiled")),
                         [](const ::testing::TestParamInfo<std::tuple<Type, const char*>>& tested) {
                           return fmt::format("{}_{}", graph::type_name(std::get<0>(tested.param)), std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace rondo::tests::linear_glu_test
