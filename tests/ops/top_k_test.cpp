#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::top_k_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

OpCase top_k_case(const Shape& shape, std::int64_t k, std::span<const float> values) {
  OpCase c;
  c.graph.add(Op::top_k, {c.f32("input", shape, values)}, graph::TopKAttributes{k});
  if (!c.graph.status().ok()) return c;
  const std::vector<TensorId> outputs = c.graph.last_outputs();
  for (TensorId output : outputs) c.output(output);
  return c;
}

TEST(TopKTest, EverySize) {
  for (std::int64_t n : {1, 2, 3, 7, 37, 41, 89, 113, 257, 1000, 2048}) {
    for (std::int64_t k : {std::int64_t{1}, std::min<std::int64_t>(n, 5), std::min<std::int64_t>(n, 1024)}) {
      EXPECT_TRUE(agrees(top_k_case({3, n}, k, random_values(static_cast<std::size_t>(3 * n), 1)), kExact)) << n << ", " << k;
    }
  }
}

/// Rows that take two and three passes.
TEST(TopKTest, LongRows) {
  for (std::int64_t n : {2049, 4096, 10007, 150001}) {
    for (std::int64_t k : {1, 50, 1024}) EXPECT_TRUE(agrees(top_k_case({2, n}, k, random_values(static_cast<std::size_t>(2 * n), 2)), kExact)) << n << ", " << k;
  }
}

/// Few values, so that nearly all are ties.
TEST(TopKTest, TiesGoToTheLowerIndex) {
  for (std::int64_t n : {41, 257, 5000}) EXPECT_TRUE(agrees(top_k_case({3, n}, 40, integer_values(static_cast<std::size_t>(3 * n), 3, 2)), kExact)) << n;
}

TEST(TopKTest, InfinityAndNan) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {nan, -inf, inf, 1, -0.0f, 0, nan, -inf, -3e38f, 3e38f};
  EXPECT_TRUE(agrees(top_k_case({10}, 8, values), kExact));
}

TEST(TopKTest, StridedRows) {
  OpCase c;
  const TensorId wide = c.f32("input", {5, 64}, random_values(5 * 64, 4));
  c.graph.add(Op::top_k, {c.graph.slice(wide, 1, 7, 44)}, graph::TopKAttributes{5});
  const std::vector<TensorId> outputs = c.graph.last_outputs();
  for (TensorId output : outputs) c.output(output);
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(TopKTest, OtherValuesAreRejected) {
  std::vector<float> values = random_values(3 * 113, 5);
  const OpCase found = top_k_case({3, 113}, 113, values);
  values[200] += 1e-3f;
  EXPECT_FALSE(agrees_with(found, top_k_case({3, 113}, 113, values), kExact));
}

}  // namespace
}  // namespace rondo::tests::top_k_test
