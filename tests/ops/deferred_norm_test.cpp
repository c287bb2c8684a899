// RMS norms that the linears around them compute (shaders/lib/linear_norm.glsl), against the definition of each operator.
#include <algorithm>

#include "tests/support/norm_chain.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::deferred_norm_test {
namespace {

using namespace norm_chain;

constexpr Tolerance kBound{1e-10};

std::size_t count(const OpCase& c, const RunOptions& options, std::string_view label) {
  const Result<DeviceRun> run = run_on_device(c, options);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? static_cast<std::size_t>(std::count_if(run->program.dispatches.begin(), run->program.dispatches.end(), [&](const runtime::Dispatch& d) { return d.label.starts_with(label); })) : 0;
}

class DeferredNormTest : public ::testing::TestWithParam<Type> {};

TEST_P(DeferredNormTest, EqualsTheDefinition) {
  for (const Sizes& s : {Sizes{1, 32, 4, 3}, {1, 64, 132, 37}, {2, 32, 516, 7}, {3, 41, 36, 33}, {7, 32, 64, 2}, {8, 96, 257 * 4, 5}, {9, 32, 128, 41}, {37, 32, 64, 3}}) {
    for (const Chain& with : {Chain{}, Chain{{1e-6, 1}, false, false, false, 1}, Chain{{1e-12, 0}, true, false, false, 1e-4f}, Chain{{1e-5, 0}, true, true, false, 1e10f}}) {
      const OpCase c = chain(GetParam(), s, with);
      EXPECT_TRUE(agrees(c, kBound, by_subgroups())) << s.rows << " rows, " << s.inner << " to " << s.columns << " to " << s.outputs;
    }
  }
}

TEST_P(DeferredNormTest, IsNoDispatch) {
  const OpCase c = chain(GetParam(), {2, 64, 128, 5}, {});
  EXPECT_EQ(count(c, by_subgroups(), "rms_norm"), 0u);
  EXPECT_EQ(count(c, by_subgroups(), "linear"), 3u);
}

/// A linear that takes one norm and makes another.
TEST_P(DeferredNormTest, OneBehindTheOther) {
  Chain with;
  with.again = true;
  for (const Sizes& s : {Sizes{1, 64, 128, 4}, {3, 32, 516, 36}, {8, 32, 64, 260}, {1, 1024, 1028, 132}}) {
    const OpCase c = chain(GetParam(), s, with);
    EXPECT_TRUE(agrees(c, kBound, by_subgroups())) << s.rows << " rows, " << s.inner << " to " << s.columns << " to " << s.outputs;
    EXPECT_EQ(count(c, by_subgroups(), "rms_norm"), 0u);
  }
}

TEST_P(DeferredNormTest, AWrongEpsilonShows) {
  const Sizes s{2, 64, 128, 5};
  const Chain right{{1e-5, 0}, true, true, false, 1e-3f}, wrong{{1e-4, 0}, true, true, false, 1e-3f}, shifted{{1e-5, 1e-3}, true, true, false, 1e-3f};
  EXPECT_FALSE(agrees_with(chain(GetParam(), s, right), chain(GetParam(), s, wrong), kBound, by_subgroups()));
  EXPECT_FALSE(agrees_with(chain(GetParam(), s, right), chain(GetParam(), s, shifted), kBound, by_subgroups()));
}

/// Where activations are rounded to bytes, too: twice, with small differences of large numbers.
TEST(DeferredNormOfDotsTest, EqualsTheDefinition) {
  const runtime::DeviceCaps& caps = test_runtime_device().caps();
  if (!caps.integer_dot || caps.max_required_subgroup_size < 8) GTEST_SKIP() << "this device has no integer dot products, or subgroups that are too small";
  for (const Type type : {Type::kQ8_0, Type::kQ4_0, Type::kQ6_K}) {
    for (const Sizes& s : {Sizes{1, 64, 132, 37}, {2, 32, 516, 7}, {8, 96, 257 * 4, 5}}) {
      const OpCase c = chain(type, s, {});
      EXPECT_TRUE(agrees(c, {20 * graph::kRoundedActivations}, by_dots())) << s.rows << " rows, " << s.inner << " to " << s.columns << " to " << s.outputs;
      EXPECT_EQ(count(c, by_dots(), "rms_norm"), 0u);
      EXPECT_EQ(count(c, by_dots(), "linear dot"), 2u);
    }
  }
}

TEST(DeferredNormOfHalvesTest, EqualsTheDefinition) {
  const runtime::DeviceCaps& caps = test_runtime_device().caps();
  if (!caps.storage16 || !caps.subgroup_arithmetic) GTEST_SKIP() << "this device has no 16-bit storage, or no subgroup reductions";
  Chain with;
  with.again = true;
  for (const Sizes& s : {Sizes{1, 64, 132, 36}, {2, 41, 516, 8}, {8, 96, 257 * 4, 4}}) {
    const OpCase c = chain(Type::kF16, s, with);
    EXPECT_TRUE(agrees(c, kBound, by_halves())) << s.rows << " rows, " << s.inner << " to " << s.columns << " to " << s.outputs;
    EXPECT_EQ(count(c, by_halves(), "rms_norm"), 0u);
    EXPECT_EQ(count(c, by_halves(), "linear halves"), 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeferredNormTest, ::testing::ValuesIn(kRowLayouts), [](const auto& test) { return std::string(graph::type_name(test.param)); });

/// Rows that don't count, of the chain's middle as well.
TEST(DeferredNormRulesTest, RowsThatDoNotCountAreLeft) {
  OpCase c = chain(Type::kQ8_0, {10, 64, 128, 5}, {}, 2);
  c.set_count(0, 3);
  c.set_count(1, 5);
  EXPECT_TRUE(agrees(c, kBound, by_subgroups()));
  EXPECT_EQ(count(c, by_subgroups(), "rms_norm"), 0u);
}

/// Gains that are made behind the linear before: of f16 ones a widened copy.
TEST(DeferredNormRulesTest, GainsThatAreMadeLaterAreWaitedFor) {
  for (const Type type : {Type::kF32, Type::kF16}) {
    OpCase c;
    const TensorId made = c.graph.add(Op::linear, {c.f32("input", {2, 32}, numbers(64, 1)), weight(c, "first", Type::kF32, 64, 32, 2)});
    TensorId gains = c.activation("gains", type, {64}, numbers(64, 3));
    if (type == Type::kF32) gains = c.graph.add(Op::relu, {gains});
    c.output(c.graph.add(Op::linear, {c.graph.add(Op::rms_norm, {made, gains}), weight(c, "second", Type::kF32, 6, 64, 4)}));
    EXPECT_TRUE(agrees(c, kBound, by_subgroups()));
    EXPECT_EQ(count(c, by_subgroups(), "rms_norm"), 1u);
  }
}

/// Where anything else wants the norm, or another kernel is chosen, it is computed.
TEST(DeferredNormRulesTest, IsThereForWhoeverElseReadsIt) {
  struct Rule {
    const char* what;
    bool other_reader, columns_of_quads;
    std::map<std::string, std::string, std::less<>> kernels;
    bool fusion = true;
  };
  const std::map<std::string, std::string, std::less<>> subgroup{{"linear", "subgroup"}};
  for (const Rule& rule : {Rule{"read by an activation", true, true, subgroup}, Rule{"41 columns", false, false, subgroup}, Rule{"tiles behind", false, true, {{"linear", "subgroup"}, {"linear_glu", "tiled"}}},
                           Rule{"a kernel of norms is asked for", false, true, {{"linear", "subgroup"}, {"rms_norm", "baseline"}}}, Rule{"no fusion", false, true, subgroup, false}}) {
    SCOPED_TRACE(rule.what);
    const std::int64_t columns = rule.columns_of_quads ? 64 : 41;
    OpCase c;
    const TensorId made = c.graph.add(Op::linear, {c.f32("input", {2, 32}, numbers(64, 1)), weight(c, "first", Type::kF32, columns, 32, 2)});
    const TensorId norm = c.graph.add(Op::rms_norm, {made, c.f32("gains", {columns}, numbers(columns, 3))});
    c.output(c.graph.add(Op::linear_glu, {norm, weight(c, "second", Type::kF32, 6, columns, 4)}));
    if (rule.other_reader) c.output(c.graph.add(Op::relu, {norm}));
    RunOptions options = by_subgroups();
    options.kernels = rule.kernels;
    options.fusion = rule.fusion;
    EXPECT_TRUE(agrees(c, kBound, options));
    EXPECT_EQ(count(c, options, "rms_norm"), 1u);
  }
}

}  // namespace
}  // namespace rondo::tests::deferred_norm_test
