// Activations that whoever makes them leaves in f16 for linears of many rows by matrix units (shaders/lib/halved_input.glsl), and the dispatch that does elsewhere.
#include "tests/support/device_environment.h"
#include "tests/support/op_runner.h"
#include "tests/support/rounding_chain.h"

namespace rondo::tests::halving_test {
namespace {

using namespace rounding_chain;

class MatrixNormTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  }

  /// As GPUs choose.
  static RunOptions options() {
    RunOptions options;
    options.fusion = true;
    options.activations = Activations::kAuto;
    options.pretend = runtime::DeviceType::kDiscrete;
    return options;
  }

  /// The case is right, and takes so many dispatches that only round.
  static void expect_halved(const OpCase& c, std::size_t n_wanted, const RunOptions& options = MatrixNormTest::options()) {
    EXPECT_TRUE(agrees_with_dispatches(c, {3 * graph::kRoundedFactors}, options, "halve", n_wanted));
  }

  struct Made {
    std::int64_t rows = 19, columns = 96;
    int kind = 0;
    float gains = 1;
  };

  /// A norm, and two linears of it; the norm.
  static TensorId norm_and_linears(OpCase& c, const Made& made) {
    const TensorId norm = norm_of_kind(c, made.kind, made.rows, made.columns, made.gains);
    c.output(c.graph.add(Op::linear, {norm, weight(c, "first", Type::kF16, 41, made.columns, 7)}));
    c.output(c.graph.add(Op::linear, {norm, weight(c, "second", made.columns % 32 == 0 ? Type::kQ8_0 : Type::kBF16, 64, made.columns, 8)}));
    return norm;
  }
};

TEST_F(MatrixNormTest, NormsLeaveHalves) {
  for (const std::int64_t rows : {9, 19, 70}) {
    for (const std::int64_t columns : {32, 160, 2080}) {
      for (const int kind : {0, 1, 2}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows, " << columns << " columns, kind " << kind);
        OpCase c;
        norm_and_linears(c, {.rows = rows, .columns = columns, .kind = kind});
        expect_halved(c, 0);
      }
    }
  }
}

/// Rows whose numbers do not suit f16 are scaled.
TEST_F(MatrixNormTest, OfAnyMagnitude) {
  for (const float gains : {1e-6f, 1e6f, 1e20f}) {
    SCOPED_TRACE(gains);
    OpCase c;
    norm_and_linears(c, {.gains = gains});
    expect_halved(c, 0);
  }
}

/// Who reads the norm as it is, all of it or a part, finds it.
TEST_F(MatrixNormTest, OthersReadTheNorm) {
  OpCase part;
  const TensorId norm = norm_and_linears(part, {});
  part.output(part.graph.add(Op::linear, {part.graph.slice(norm, 1, 32, 64), weight(part, "third", Type::kF16, 41, 32, 9)}));
  expect_halved(part, 1);
  OpCase gated;
  const TensorId made = norm_and_linears(gated, {});
  gated.output(gated.graph.add(Op::mul, {made, input(gated, {19, 96}, 1, "factors")}));
  expect_halved(gated, 0);
  OpCase read;
  read.output(norm_and_linears(read, {}));
  expect_halved(read, 1);
}

/// Columns that are no whole groups, few rows, kernels that take no halves, and what makes none.
TEST_F(MatrixNormTest, OthersAreRoundedByADispatch) {
  OpCase columns;
  norm_and_linears(columns, {.columns = 80});
  expect_halved(columns, 1);
  OpCase few;
  norm_and_linears(few, {.rows = 2});
  expect_halved(few, 0);
  for (const bool norm : {false, true}) {
    OpCase c;
    norm_and_linears(c, {});
    RunOptions forced = options();
    forced.kernels[norm ? "rms_norm" : "linear"] = norm ? "baseline" : "tiled";
    expect_halved(c, norm ? 1 : 0, forced);
  }
  OpCase heads;
  const TensorId norm = heads.graph.add(Op::rms_norm, {input(heads, {1, 19, 4, 32}), heads.f32("gains", {32}, numbers(32, 5))});
  heads.output(heads.graph.add(Op::linear, {heads.graph.reshape(norm, {1, 19, 128}), weight(heads, "first", Type::kF16, 41, 128, 7)}));
  expect_halved(heads, 1);
}

TEST_F(MatrixNormTest, RowsThatDoNotCountAreZeros) {
  OpCase c(2);
  norm_and_linears(c, {.rows = 40});
  c.set_count(0, 13);
  c.set_count(1, 1);
  expect_halved(c, 0);
}

/// The bits are those that a dispatch would leave.
TEST_F(MatrixNormTest, RoundAsTheDispatchDoes) {
  OpCase c;
  norm_and_linears(c, {.rows = 70, .columns = 2080, .kind = 2});
  std::vector<std::vector<std::byte>> made[2];
  for (const bool fusion : {false, true}) {
    RunOptions how = options();
    how.fusion = fusion;
    Result<DeviceRun> run = run_on_device(c, how);
    ASSERT_TRUE(run.ok()) << run.status().message();
    made[fusion] = std::move(run->after);
  }
  EXPECT_EQ(made[0], made[1]);
}

}  // namespace
}  // namespace rondo::tests::halving_test
