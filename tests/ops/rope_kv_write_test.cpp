// The fused operator against its definition in simple ones, which is what the interpreter runs.
#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/fmt.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::rope_kv_write_test {
namespace {

using graph::Op;
using graph::RopeAttributes;
using graph::RopeStyle;
using graph::TensorId;
using graph::Type;

struct Heads {
  std::int64_t sequences, rows, heads, kv_heads, width, dimensions;
};

class RopeKvWriteTest : public ::testing::TestWithParam<std::tuple<Type, RopeStyle>> {
 protected:
  Type type() const { return std::get<0>(GetParam()); }
  /// A rotated key may lie within a float's rounding of a tie between two halves, or two quants.
  Tolerance bound() const { return {type() == Type::kF32 ? 1e-11 : type() == Type::kF16 ? 1e-6 : 1e-5}; }

  OpCase fused(const Heads& s, std::int64_t cache_rows, const std::vector<std::int32_t>& start) const {
    OpCase c(s.sequences);
    const std::int64_t all = s.heads + 2 * s.kv_heads;
    const auto n_cache = static_cast<std::size_t>(s.sequences * s.kv_heads * cache_rows * s.width);
    const TensorId keys = c.cache("keys", type(), {s.sequences, s.kv_heads, cache_rows, s.width}, random_values(n_cache, 1));
    const TensorId values = c.cache("values", type(), {s.sequences, s.kv_heads, cache_rows, s.width}, random_values(n_cache, 2));
    const TensorId rows = c.f32("rows", {s.sequences, s.rows, all * s.width}, random_values(static_cast<std::size_t>(s.sequences * s.rows * all * s.width), 3));
    const auto heads = [&](std::int64_t first, std::int64_t n) {
      return c.graph.transpose(c.graph.reshape(c.graph.slice(rows, 2, first * s.width, (first + n) * s.width), {s.sequences, s.rows, n, s.width}), {0, 2, 1, 3});
    };
    std::vector<std::int32_t> positions;
    for (std::int32_t b : start) {
      for (std::int64_t t = 0; t < s.rows; ++t) positions.push_back(std::max(b, 0) + static_cast<std::int32_t>(t));
    }
    RopeAttributes rope;
    rope.style = std::get<1>(GetParam());
    rope.dimensions = s.dimensions;
    rope.max_position = 512;
    c.output(c.graph.add(Op::rope_kv_write,
                         {heads(0, s.heads), heads(s.heads, s.kv_heads), heads(s.heads + s.kv_heads, s.kv_heads), c.i32("positions", {s.sequences, s.rows}, positions),
                          c.i32("start", {s.sequences}, start), graph::kNone, keys, values, graph::kNone},
                         graph::RopeKvWriteAttributes{rope, {}, false}),
             2);
    return c;
  }
};

TEST_P(RopeKvWriteTest, MatchesItsDefinition) {
  for (const Heads& s : {Heads{1, 1, 1, 1, 2, 0}, Heads{1, 1, 4, 2, 64, 0}, Heads{1, 7, 6, 2, 40, 0}, Heads{1, 3, 8, 1, 80, 20}, Heads{2, 5, 3, 3, 37, 6}, Heads{1, 2, 2, 2, 256, 0}, Heads{1, 3, 2, 1, 72, 0}, Heads{1, 2, 2, 1, 300, 64}}) {
    const std::vector<std::int32_t> start(static_cast<std::size_t>(s.sequences), 61);
    EXPECT_TRUE(agrees(fused(s, 113, start), bound())) << s.rows << " rows, width " << s.width;
  }
}

TEST_P(RopeKvWriteTest, RowsOutsideTheCacheAreDropped) {
  for (std::int32_t start : {-2, 8, 11, 200}) EXPECT_TRUE(agrees(fused({1, 5, 2, 1, 8, 0}, 11, {start}), bound())) << start;
}

TEST_P(RopeKvWriteTest, InactiveSequencesStayUntouched) {
  OpCase c = fused({2, 1, 2, 1, 8, 0}, 11, {3, 200});  // the reference drops the second one's rows for another reason
  c.set_count(1, 1, false);
  EXPECT_TRUE(agrees(c, bound()));
}

INSTANTIATE_TEST_SUITE_P(TypesAndStyles, RopeKvWriteTest,
                         ::testing::Combine(::testing::Values(Type::kF32, Type::kF16, Type::kQ8_0), ::testing::Values(RopeStyle::kHalf, RopeStyle::kInterleaved)),
                         [](const ::testing::TestParamInfo<std::tuple<Type, RopeStyle>>& tested) {
                           return fmt::format("{}_{}", graph::type_name(std::get<0>(tested.param)), std::get<1>(tested.param) == RopeStyle::kHalf ? "half" : "interleaved");
                         });

/// Simple operators on the device, fused or not, with the step's own rows: partial counts reach the cache.
TEST(RopeKvWriteFusionTest, StepRowsReachTheCacheAlike) {
  for (bool fusion : {false, true}) {
    for (std::int32_t valid : {1, 3, 4}) {
      OpCase c;
      const TensorId tokens = c.step_i32("tokens", {1, 32}, std::vector<std::int32_t>(32, 1));
      c.set_count(0, valid);
      c.set_state(0, 0, 5);
      c.graph.add(Op::step_begin, {tokens, c.state}, graph::StepBeginAttributes{4});
      const std::vector<TensorId> step = c.graph.last_outputs();
      const TensorId keys = c.cache("keys", Type::kF32, {1, 1, 32, 8}, random_values(32 * 8, 1)), values = c.cache("values", Type::kF32, {1, 1, 32, 8}, random_values(32 * 8, 2));
      const TensorId rows = c.f32("rows", {1, 4, 32}, random_values(4 * 32, 3));
      const auto heads = [&](std::int64_t first, std::int64_t n) {
        return c.graph.transpose(c.graph.reshape(c.graph.slice(rows, 2, first * 8, (first + n) * 8), {1, 4, n, 8}), {0, 2, 1, 3});
      };
      RopeAttributes rope;
      rope.max_position = 64;
      const TensorId query = c.graph.add(Op::rope, {heads(0, 2), step[1]}, rope);
      const TensorId key = c.graph.add(Op::rope, {heads(2, 1), step[1]}, rope);
      c.graph.add(Op::kv_write, {keys, key, step[2], step[3]});
      c.graph.add(Op::kv_write, {values, heads(3, 1), step[2], step[3]});
      c.output(query, 2);
      RunOptions options;
      options.fusion = fusion;
      EXPECT_TRUE(agrees(c, {1e-11}, options)) << (fusion ? "fused" : "simple") << ", " << valid << " rows";
      const Result<DeviceRun> run = run_on_device(c, options);
      ASSERT_TRUE(run.ok()) << run.status().message();
      EXPECT_EQ(run->program.dispatches.size(), fusion ? 2u : 5u);
    }
  }
}

/// A count that is not the step's has no place in the fused kernel: such writes must stay apart.
TEST(RopeKvWriteFusionTest, ACountOfItsOwnIsRespected) {
  for (bool fusion : {false, true}) {
    OpCase c;
    const TensorId keys = c.cache("keys", Type::kF32, {1, 1, 16, 8}, random_values(16 * 8, 1)), values = c.cache("values", Type::kF32, {1, 1, 16, 8}, random_values(16 * 8, 2));
    const TensorId rows = c.f32("rows", {1, 4, 32}, random_values(4 * 32, 3));
    const auto heads = [&](std::int64_t first, std::int64_t n) {
      return c.graph.transpose(c.graph.reshape(c.graph.slice(rows, 2, first * 8, (first + n) * 8), {1, 4, n, 8}), {0, 2, 1, 3});
    };
    const TensorId positions = c.i32("positions", {4}, std::vector<std::int32_t>{3, 4, 5, 6});
    const TensorId start = c.i32("start", {1}, std::vector<std::int32_t>{3}), count = c.i32("count", {1}, std::vector<std::int32_t>{2});
    RopeAttributes rope;
    rope.max_position = 64;
    c.output(c.graph.add(Op::rope, {heads(0, 2), positions}, rope), 2);
    const TensorId key = c.graph.add(Op::rope, {heads(2, 1), positions}, rope);
    c.graph.add(Op::kv_write, {keys, key, start, count});
    c.graph.add(Op::kv_write, {values, heads(3, 1), start, count});
    RunOptions options;
    options.fusion = fusion;
    EXPECT_TRUE(agrees(c, {1e-11}, options)) << (fusion ? "fused" : "simple");
  }
}

}  // namespace
}  // namespace rondo::tests::rope_kv_write_test
