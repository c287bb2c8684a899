// Queries and keys that the linear before them turns, and puts into the caches (shaders/lib/linear_rotation.glsl), against the definition of each operator.
#include <algorithm>

#include "tests/support/op_runner.h"
#include "tests/support/rotation_chain.h"

namespace rondo::tests::deferred_rotation_test {
namespace {

using namespace rotation_chain;

std::size_t count(const OpCase& c, const RunOptions& options, std::string_view label) {
  const Result<DeviceRun> run = run_on_device(c, options);
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? static_cast<std::size_t>(std::count_if(run->program.dispatches.begin(), run->program.dispatches.end(), [&](const runtime::Dispatch& d) { return d.label.starts_with(label); })) : 0;
}

/// An element of a cache may lie within a float's rounding of a tie between two halves.
Tolerance bound(const Step& with) { return {with.cache == Type::kF32 ? 1e-10 : 1e-6}; }

class DeferredRotationTest : public ::testing::TestWithParam<std::tuple<Type, Type, RopeStyle>> {
 protected:
  Step step() const {
    Step with;
    std::tie(with.weight, with.cache, with.style) = GetParam();
    return with;
  }
};

TEST_P(DeferredRotationTest, EqualsTheDefinition) {
  for (const Sizes& s : {Sizes{1, 1, 32, 1, 1, 64}, {1, 1, 96, 4, 2, 64}, {1, 3, 32, 6, 3, 128}, {1, 8, 64, 2, 2, 32}, {2, 1, 41, 3, 1, 64}, {2, 3, 32, 2, 1, 256}, {1, 7, 257, 8, 1, 64}}) {
    Step with = step();
    EXPECT_TRUE(agrees(step_of(s, with), bound(with), by_subgroups())) << text_of(s, with);
    EXPECT_EQ(count(step_of(s, with), by_subgroups(), "rope_kv_write"), 0u) << text_of(s, with);
    with.bias = true, with.factor = 0.7, with.position = 3, with.norm = true;
    EXPECT_TRUE(agrees(step_of(s, with), bound(with), by_subgroups())) << text_of(s, with);
  }
}

TEST_P(DeferredRotationTest, ValuesOfAnotherLinear) {
  for (const Sizes& s : {Sizes{1, 1, 32, 1, 1, 64}, {2, 3, 64, 6, 3, 128}, {1, 7, 257, 8, 1, 64}}) {
    for (const Type values : {Type::kF16, Type::kQ6_K}) {
      Step with = step();
      with.value_weight = values, with.bias = s.rows == 3, with.norm = s.rows == 7;
      EXPECT_TRUE(agrees(step_of(s, with), bound(with), by_subgroups())) << text_of(s, with);
      EXPECT_EQ(count(step_of(s, with), by_subgroups(), "rope_kv_write"), 0u) << text_of(s, with);
    }
  }
}

TEST_P(DeferredRotationTest, RingsAndTheEndsOfCaches) {
  for (const bool ring : {false, true}) {
    for (const std::int32_t position : {0, 4, 8, 11, 200}) {
      Step with = step();
      with.cache_rows = 11, with.ring = ring, with.position = position;
      EXPECT_TRUE(agrees(step_of({1, 5, 32, 2, 1, 64}, with), bound(with), by_subgroups())) << ring << " " << position;
    }
  }
}

TEST_P(DeferredRotationTest, RowsThatDoNotCountAreLeft) {
  Step with = step();
  OpCase c = step_of({2, 4, 32, 2, 1, 64}, with);
  c.set_count(0, 3);
  c.set_count(1, 4, false);
  EXPECT_TRUE(agrees(c, bound(with), by_subgroups()));
  EXPECT_EQ(count(c, by_subgroups(), "rope_kv_write"), 0u);
}

TEST_P(DeferredRotationTest, AWrongAngleShows) {
  Step right = step(), wrong = step();
  wrong.position = right.position + 1;
  wrong.cache_rows = right.cache_rows;
  EXPECT_FALSE(agrees_with(step_of({1, 2, 32, 2, 1, 64}, right), step_of({1, 2, 32, 2, 1, 64}, wrong), bound(right), by_subgroups()));
}

INSTANTIATE_TEST_SUITE_P(TypesAndStyles, DeferredRotationTest,
                         ::testing::Combine(::testing::Values(Type::kF32, Type::kQ8_0, Type::kQ6_K), ::testing::Values(Type::kF32, Type::kF16), ::testing::Values(RopeStyle::kHalf, RopeStyle::kInterleaved)),
                         [](const auto& test) {
                           return fmt::format("{}_{}_{}", graph::type_name(std::get<0>(test.param)), graph::type_name(std::get<1>(test.param)), std::get<2>(test.param) == RopeStyle::kHalf ? "half" : "interleaved");
                         });

TEST(DeferredRotationOfDotsTest, EqualsTheDefinition) {
  const runtime::DeviceCaps& caps = test_runtime_device().caps();
  if (!caps.integer_dot || caps.max_required_subgroup_size < 8) GTEST_SKIP() << "this device has no integer dot products, or subgroups that are too small";
  for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    for (const Type type : {Type::kQ8_0, Type::kQ4_0}) {
      for (const Sizes& s : {Sizes{1, 1, 64, 24, 4, 128}, {1, 3, 96, 6, 2, 128}, {2, 2, 64, 2, 1, 64}}) {
        const Step with{.weight = type, .style = style, .bias = true};
        EXPECT_TRUE(agrees(step_of(s, with), {20 * graph::kRoundedActivations}, by_dots())) << text_of(s, with);
        EXPECT_EQ(count(step_of(s, with), by_dots(), "rope_kv_write"), 0u) << text_of(s, with);
        EXPECT_EQ(count(step_of(s, with), by_dots(), "linear dot"), 1u);
      }
    }
  }
}

TEST(DeferredRotationOfHalvesTest, OfWeightsInRegistersOf16Bits) {
  const runtime::DeviceCaps& caps = test_runtime_device().caps();
  if (!caps.storage16 || !caps.subgroup_arithmetic) GTEST_SKIP() << "this device has no 16-bit storage, or no subgroup reductions";
  for (const Type activations : {Type::kF32, Type::kF16}) {
    for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
      const Sizes s{1, 3, 96, 6, 2, 128};
      const Step with{.weight = Type::kF16, .style = style, .activations = activations};
      EXPECT_TRUE(agrees(step_of(s, with), {1e-6}, by_halves())) << text_of(s, with);
      EXPECT_EQ(count(step_of(s, with), by_halves(), "rope_kv_write"), 0u) << text_of(s, with);
      EXPECT_EQ(count(step_of(s, with), by_halves(), "linear halves"), 1u) << text_of(s, with);
    }
  }
}

TEST(DeferredRotationOfHalvesTest, EqualsTheDefinition) {
  if (!test_runtime_device().caps().storage16) GTEST_SKIP() << "this device has no 16-bit storage";
  for (const RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    for (const Sizes& s : {Sizes{1, 1, 64, 4, 2, 64}, {2, 3, 96, 3, 1, 128}}) {
      const Step with{.weight = Type::kF16, .style = style, .activations = Type::kF16};
      EXPECT_TRUE(agrees(step_of(s, with), {1e-6}, by_subgroups())) << text_of(s, with);
      EXPECT_EQ(count(step_of(s, with), by_subgroups(), "rope_kv_write"), 0u) << text_of(s, with);
    }
  }
}

/// A part of each head that turns, where neighbours turn together.
TEST(DeferredRotationRulesTest, APartOfAHeadTurns) {
  const Step with{.dimensions = 20};
  const OpCase c = step_of({1, 3, 32, 2, 1, 64}, with);
  EXPECT_TRUE(agrees(c, bound(with), by_subgroups()));
  EXPECT_EQ(count(c, by_subgroups(), "rope_kv_write"), 0u);
}

/// Where that can't be, it is a dispatch as ever.
TEST(DeferredRotationRulesTest, OthersAreDispatches) {
  struct Rule {
    const char* what;
    Sizes sizes;
    Step step;
    std::map<std::string, std::string, std::less<>> kernels{{"linear", "subgroup"}};
    bool fused = true;
  };
  for (const Rule& rule : {Rule{"caches of q8_0", {1, 2, 32, 2, 1, 64}, {.cache = Type::kQ8_0}}, Rule{"read by an activation", {1, 2, 32, 2, 1, 64}, {.other_reader = true}}, Rule{"a part of halves", {1, 2, 32, 2, 1, 64}, {.style = RopeStyle::kHalf, .dimensions = 20}},
                           Rule{"37 columns a head", {1, 2, 32, 2, 1, 37}, {.style = RopeStyle::kInterleaved, .dimensions = 36}}, Rule{"tiles", {1, 2, 32, 2, 1, 64}, {}, {{"linear", "tiled"}}}}) {
    SCOPED_TRACE(rule.what);
    RunOptions options = by_subgroups();
    options.kernels = rule.kernels;
    const OpCase c = step_of(rule.sizes, rule.step);
    EXPECT_TRUE(agrees(c, {1e-5}, options));
    EXPECT_EQ(count(c, options, "rope_kv_write"), 1u);
  }
}

}  // namespace
}  // namespace rondo::tests::deferred_rotation_test
