// Mixtures of experts as models have them: fused or not, and what of a weight is read.
#include <limits>

#include <gtest/gtest.h>

#include "runtime/fmt.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::expert_linear_test {
namespace {

using graph::ExpertAttributes;
using graph::kNone;
using graph::Op;
using graph::TensorId;
using graph::Type;

/// Products of a sigmoid's exponential, as in linear_glu.
constexpr Tolerance kBound{1e-10};

/// Router, gates and ups, downs and their weighted sum: `n` experts, of which each of `rows` tokens has `k`.
struct Mixture {
  std::int64_t rows = 3, width = 64, ffn = 41, n = 5, k = 2;
  Type type = Type::kF32;
  bool biased = false;
  graph::GluAttributes glu = {};

  TensorId bias(OpCase& c, TensorId all, std::int64_t first) const { return biased ? c.graph.slice(all, 0, first, first + n * ffn) : kNone; }

  OpCase build() const {
    OpCase c;
    const TensorId input = c.f32("input", {1, rows, width}, random_values(static_cast<std::size_t>(rows * width), 1));
    const TensorId logits = c.f32("logits", {1, rows, n}, integer_values(static_cast<std::size_t>(rows * n), 2, 2));  // some are equal
    c.graph.add(Op::route, {logits}, graph::RouteAttributes{k});
    const std::vector<TensorId> routed = c.graph.last_outputs();
    const TensorId both = c.weight("gates and ups", type, 2 * n * ffn, width, weight_rows(type, 2 * n * ffn, width, 3, WeightValues::kRandom));
    const TensorId biases = biased ? c.f32("biases", {2 * n * ffn}, random_values(static_cast<std::size_t>(2 * n * ffn), 4)) : kNone;
    const auto half = [&](std::int64_t first) {
      return c.graph.add(Op::expert_linear, {input, c.graph.slice(both, 0, first, first + n * ffn), routed[0], bias(c, biases, first)}, ExpertAttributes{n, {}});
    };
    const TensorId gate = half(0), up = half(n * ffn);
    const TensorId down = c.weight("down", Type::kF32, n * width, ffn, weight_rows(Type::kF32, n * width, ffn, 5, WeightValues::kRandom));
    const TensorId made = c.graph.add(Op::expert_linear, {c.graph.add(Op::glu, {gate, up}, glu), down, routed[0]}, ExpertAttributes{n, {}});
    c.output(c.graph.add(Op::add, {c.graph.add(Op::weighted_sum, {made, routed[1]}), input}), 1);
    return c;
  }
};

TEST(ExpertsTest, FourDispatchesWithFusion) {
  for (const bool biased : {false, true}) {
    for (const bool fusion : {true, false}) {
      Mixture mixture;
      mixture.biased = biased;
      if (biased) mixture.glu = {graph::Activation::kQuickGelu, 1.5, 1};
      const OpCase c = mixture.build();
      RunOptions options;
      options.fusion = fusion;
      EXPECT_TRUE(agrees(c, kBound, options));
      const Result<DeviceRun> run = run_on_device(c, options);
      ASSERT_TRUE(run.ok()) << run.status().message();
      EXPECT_EQ(run->program.dispatches.size(), fusion ? 4u : 7u);
    }
  }
}

/// What a caller reads is written, fused or not.
TEST(ExpertsTest, GatesThatAreOutputsStay) {
  OpCase c = Mixture{}.build();
  for (const graph::Node& node : c.graph.nodes()) {
    if (node.op != Op::expert_linear) continue;
    c.output(node.outputs[0], 1);
    break;
  }
  EXPECT_TRUE(agrees(c, kBound));
}

TEST(ExpertsTest, ChoicesForADiscreteDevice) {
  RunOptions discrete;
  discrete.pretend = runtime::DeviceType::kDiscrete;
  for (const Type type : kRowLayouts) {
    Mixture mixture;
    mixture.type = type;
    mixture.width = whole_blocks(type, 64);
    for (const std::int64_t rows : {1, 9}) {
      mixture.rows = rows;
      EXPECT_TRUE(agrees(mixture.build(), kBound, discrete)) << graph::type_name(type) << ", " << rows << " rows";
    }
  }
}

/// Where experts have more than a few rows each, these are sorted into tiles, once for gates and ups and downs.
TEST(ExpertsTest, ManyRowsGoToTiles) {
  for (const auto type : {runtime::DeviceType::kCpu, runtime::DeviceType::kDiscrete}) {
    RunOptions options;
    options.pretend = type;
    options.fusion = true;
    const auto labels = [&](std::int64_t rows) {
      Mixture mixture;
      mixture.type = Type::kQ8_0, mixture.rows = rows, mixture.biased = true;
      const OpCase c = mixture.build();
      EXPECT_TRUE(agrees(c, kBound, options)) << rows;
      const Result<DeviceRun> run = run_on_device(c, options);
      EXPECT_TRUE(run.ok()) << run.status().message();
      std::vector<std::string> found;
      for (const runtime::Dispatch& dispatch : run.ok() ? run->program.dispatches : std::vector<runtime::Dispatch>{}) found.push_back(dispatch.label);
      return found;
    };
    const bool cpu = type == runtime::DeviceType::kCpu;
    const std::string few = cpu ? "wide" : "subgroup", many = cpu ? "wide" : "tiled";
    EXPECT_EQ(labels(5), (std::vector<std::string>{"route", "expert_linear_glu " + few + " q8_0", "expert_linear " + few + " f32", "weighted_sum"})) << "10 rows, 5 experts";
    EXPECT_EQ(labels(80), (std::vector<std::string>{"route", "expert tiles", "expert_linear_glu " + many + " q8_0", "expert_linear " + many + " f32", "weighted_sum"})) << "32 rows each";
  }
}

/// All rows are of one expert, or none is of some: of tiles there are as many as any choice needs.
TEST(ExpertsTest, ThereIsATileForEveryRow) {
  constexpr std::int64_t kN = 7, kRows = 13, kColumns = 32;
  for (const std::int64_t tokens : {17, 64, 131}) {
    for (const auto& expert_of : {+[](std::int64_t) { return 6; }, +[](std::int64_t i) { return static_cast<int>(i % 7); }, +[](std::int64_t i) { return i == 0 ? 0 : 3; }, +[](std::int64_t i) { return i < 7 ? static_cast<int>(i) : 9; }}) {
      OpCase c;
      const TensorId input = c.f32("input", {tokens, kColumns}, random_values(static_cast<std::size_t>(tokens * kColumns), 1));
      std::vector<std::int32_t> chosen(static_cast<std::size_t>(tokens));
      for (std::int64_t i = 0; i < tokens; ++i) chosen[static_cast<std::size_t>(i)] = expert_of(i);
      c.output(c.graph.add(Op::expert_linear, {input, c.weight("weight", Type::kF32, kN * kRows, kColumns, weight_rows(Type::kF32, kN * kRows, kColumns, 2, WeightValues::kRandom)), c.i32("experts", {tokens, 1}, chosen)}, ExpertAttributes{kN, {}}));
      for (const char* kernel : {"wide", "tiled"}) {
        RunOptions options;
        options.kernels["expert_linear"] = kernel;
        EXPECT_TRUE(agrees(c, kBound, options)) << kernel << ", " << tokens << " tokens";
      }
    }
  }
}

TEST(ExpertsTest, RowsBeyondTheCountStayUntouched) {
  for (const bool fusion : {true, false}) {
    for (const std::int32_t count : {0, 1, 6, 40}) {
      Mixture mixture;
      mixture.rows = count < 7 ? 7 : 41;
      OpCase c = mixture.build();
      c.set_count(0, count);
      RunOptions options;
      options.fusion = fusion;
      EXPECT_TRUE(agrees(c, kBound, options)) << count;
    }
  }
}

/// Eight experts, two of which are chosen; those that are not are made of NaN, which any product with them would show.
OpCase two_of_eight(std::int32_t other, std::int64_t tokens = 2) {
  constexpr std::int64_t kN = 8, kRows = 37, kColumns = 64;
  OpCase c;
  const TensorId input = c.f32("input", {tokens, kColumns}, random_values(static_cast<std::size_t>(tokens * kColumns), 1));
  std::vector<std::byte> rows = weight_rows(Type::kF32, kN * kRows, kColumns, 2, WeightValues::kRandom);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t row = 0; row < kN * kRows; ++row) {
    if (row / kRows == 5 || row / kRows == 2) continue;
    for (std::size_t k = 0; k < kColumns; ++k) std::memcpy(rows.data() + 4 * (row * kColumns + k), &nan, 4);
  }
  std::vector<std::int32_t> chosen = {5, 2, other, 5};
  while (chosen.size() < static_cast<std::size_t>(2 * tokens)) chosen.push_back(chosen[chosen.size() - 4]);
  c.output(c.graph.add(Op::expert_linear, {input, c.weight("weight", Type::kF32, kN * kRows, kColumns, rows), c.i32("experts", {tokens, 2}, chosen)}, ExpertAttributes{kN, {}}));
  return c;
}

TEST(ExpertsTest, OnlyThoseChosenAreRead) {
  const OpCase c = two_of_eight(2);
  for (const char* kernel : {"subgroup", "vector", "wide"}) {
    RunOptions options;
    options.kernels["expert_linear"] = kernel;
    EXPECT_TRUE(agrees(c, kBound, options)) << kernel;
    const Result<DeviceRun> run = run_on_device(c, options);
    ASSERT_TRUE(run.ok()) << run.status().message();
    ASSERT_EQ(run->program.dispatches.size(), 1u);
    // Four times the rows of one expert, two inputs, four outputs.
    EXPECT_EQ(run->program.dispatches[0].cost.bytes, 4.0 * (4 * 37 * 64 + 2 * 64 + 4 * 37)) << kernel;
  }
}

TEST(ExpertsTest, OnlyThoseChosenAreReadInTiles) {
  for (const char* kernel : {"wide", "tiled"}) {
    RunOptions options;
    options.kernels["expert_linear"] = kernel;
    EXPECT_TRUE(agrees(two_of_eight(2, 70), kBound, options)) << kernel;
  }
}

TEST(ExpertsTest, AnotherExpertIsRejected) { EXPECT_FALSE(agrees_with(two_of_eight(2), two_of_eight(5), kBound)); }

}  // namespace
}  // namespace rondo::tests::expert_linear_test
