// Activations that whoever makes them leaves in bytes for linears with integer dot products (shaders/lib/rounding.glsl), and the dispatch that does elsewhere.
#include "tests/support/device_environment.h"
#include "tests/support/op_runner.h"
#include "tests/support/rounding_chain.h"

namespace rondo::tests::rounding_test {
namespace {

using namespace rounding_chain;

class RoundingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const runtime::DeviceCaps& caps = test_runtime_device().caps();
    if (!caps.integer_dot || caps.max_required_subgroup_size < 8) GTEST_SKIP() << "this device has no integer dot products, or subgroups that are too small";
  }

  /// The case is right, and takes so many dispatches that only round.
  static void expect_quantized(const OpCase& c, std::size_t n_wanted, const RunOptions& options = by_dots(), double bound = 20 * graph::kRoundedActivations) {
    EXPECT_TRUE(agrees_with_dispatches(c, {bound}, options, "quantize", n_wanted));
  }
};

/// Linears and gated ones leave outputs in bytes for a linear behind; the first input is nobody's.
TEST_F(RoundingTest, LinearsLeaveBytesToLinears) {
  for (const std::int64_t rows : {1, 2, 3, 8}) {
    for (const std::int64_t columns : {32, 96, 544, 1024}) {
      for (const float scale : {1.0f, 1e-20f, 1e15f}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows, " << columns << " columns, scale " << scale);
        OpCase c;
        const TensorId first = linears(c, rows, columns, scale);
        expect_quantized(c, 1);
        c.output(first);  // whoever else reads them finds them
        expect_quantized(c, 2, by_dots());
        OpCase gated;
        const TensorId ups = gated.graph.add(Op::linear_glu, {input(gated, {rows, 64}, scale == 1 ? 1.0f : 0.01f), q8(gated, "gates and ups", 2 * columns, 64)}, graph::GluAttributes{});
        gated.output(gated.graph.add(Op::linear, {ups, q8(gated, "down", 13, columns)}));
        expect_quantized(gated, 1);
      }
    }
  }
}

/// Where columns are no whole groups, rows are many, or the kernel is another, a dispatch rounds them, or nobody.
TEST_F(RoundingTest, OthersAreRoundedByADispatch) {
  struct Rule {
    const char* what;
    std::int64_t rows;
    Type first;
    std::size_t n_wanted;
    std::map<std::string, std::string, std::less<>> kernels = {};
    bool fusion = true;
  };
  for (const Rule& rule : {Rule{"an f32 weight before", 2, Type::kF32, 1}, Rule{"many rows", 19, Type::kQ8_0, 2, {{"linear", "dot_tiled"}}}, Rule{"another kernel", 2, Type::kQ8_0, 0, {{"linear", "subgroup"}}}, Rule{"no fusion", 2, Type::kQ8_0, 2, {}, false}}) {
    SCOPED_TRACE(rule.what);
    OpCase c;
    linears(c, rule.rows, 96, 1, rule.first);
    RunOptions options = by_dots();
    options.kernels = rule.kernels;
    options.fusion = rule.fusion;
    expect_quantized(c, rule.n_wanted, options);
  }
}

/// Norms that linears don't compute themselves: with what is added to them, of layers, of heads.
TEST_F(RoundingTest, NormsLeaveBytes) {
  for (const std::int64_t rows : {1, 3, 8}) {
    for (const std::int64_t columns : {32, 160, 2080}) {
      for (const int kind : {0, 1, 2}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows, " << columns << " columns, kind " << kind);
        OpCase c;
        const TensorId norm = norm_of_kind(c, kind, rows, columns);
        c.output(c.graph.add(Op::linear, {norm, q8(c, "second", 41, columns)}));
        c.output(c.graph.add(Op::linear_glu, {norm, q8(c, "third", 64, columns)}, graph::GluAttributes{}));
        expect_quantized(c, 0);
      }
    }
  }
  OpCase heads;  // which no self-test could put a linear behind
  const TensorId norm = heads.graph.add(Op::rms_norm, {input(heads, {1, 3, 4, 32}), heads.f32("gains", {32}, numbers(32, 5))});
  heads.output(heads.graph.add(Op::linear, {heads.graph.reshape(norm, {1, 3, 128}), q8(heads, "second", 41, 128)}));
  expect_quantized(heads, 1);
}

/// Attention, by itself and where splits are joined; a part of it is rounded by a dispatch.
TEST_F(RoundingTest, AttentionLeavesBytes) {
  for (const std::int64_t keys : {5, 700}) {
    for (const std::int64_t width : {16, 64, 80, 128}) {
      for (const std::int64_t rows : {1, 3}) {
        for (const bool part : {false, true}) {
          SCOPED_TRACE(::testing::Message() << keys << " keys, heads of " << width << ", " << rows << " rows, a part " << part);
          const OpCase c = attention(rows, keys, width, part);
          expect_quantized(c, part ? 1 : 0);
        }
      }
    }
  }
}

/// A linear leaves one thing in bytes: the norm that it computes too. Who reads its output as it is has it rounded.
TEST_F(RoundingTest, NormedAndReadAsItIs) {
  for (const bool normed_by_dots : {true, false}) {
    OpCase c;
    const TensorId made = c.graph.add(Op::linear, {input(c, {2, 64}), q8(c, "first", 96, 64)});
    const TensorId norm = c.graph.add(Op::rms_norm, {made, c.f32("gains", {96}, numbers(96, 5))});
    c.output(c.graph.add(Op::linear, {norm, weight(c, "second", normed_by_dots ? Type::kQ8_0 : Type::kF32, 41, 96, 6)}));
    c.output(c.graph.add(Op::linear, {made, q8(c, "third", 32, 96)}));
    expect_quantized(c, 2);
  }
}

TEST_F(RoundingTest, RowsThatDoNotCountAreLeft) {
  OpCase c(2);
  linears(c, 8, 96);
  c.set_count(0, 3);
  c.set_count(1, 1);
  expect_quantized(c, 1);
}

/// Self-tests have a linear of q8_0 behind what rounds.
TEST_F(RoundingTest, NothingIsLeftWhereSelfTestsCouldNotSee) {
  OpCase c;
  linears(c, 1, 96);
  graph::LoweringOptions options;
  options.activations = Activations::kQ8;
  runtime::DeviceCaps caps = test_runtime_device().caps();
  caps.type = runtime::DeviceType::kDiscrete;
  for (const bool in_quarantine : {false, true}) {
    if (in_quarantine) options.quarantine = {"linear dot q8_0"};
    graph::Graph graph = c.graph;
    EXPECT_EQ(graph::find_rounded_outputs(graph, caps, options).size(), in_quarantine ? 0u : 1u);
  }
  // Nor where another operator's kernel is asked for, and linear's is another.
  OpCase gated;
  const TensorId norm = gated.graph.add(Op::rms_norm, {input(gated, {1, 96}), gated.f32("gains", {96}, numbers(96, 5))});
  gated.output(gated.graph.add(Op::linear_glu, {norm, q8(gated, "gates and ups", 64, 96)}, graph::GluAttributes{}));
  graph::LoweringOptions forced;
  forced.forced_kernels["linear_glu"] = "dot";
  graph::Graph graph = gated.graph;
  EXPECT_TRUE(graph::find_rounded_outputs(graph, caps, forced).empty());
}

}  // namespace
}  // namespace rondo::tests::rounding_test
