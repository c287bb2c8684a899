#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::argmax_test {
namespace {

using graph::Op;
using graph::TensorId;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

OpCase argmax_of(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) {
  OpCase c;
  c.output(c.graph.add(Op::argmax, {c.f32("input", {rows, columns}, values)}));
  return c;
}

class ArgmaxTest : public ::testing::TestWithParam<std::int64_t> {
 protected:
  std::int64_t columns() const { return GetParam(); }
};

TEST_P(ArgmaxTest, RandomValues) {
  for (std::int64_t rows : {1, 3}) {
    const auto n = static_cast<std::size_t>(rows * columns());
    EXPECT_TRUE(agrees(argmax_of(rows, columns(), random_values(n, 1)), kExact));
    EXPECT_TRUE(agrees(argmax_of(rows, columns(), integer_values(n, 2, 3)), kExact)) << "many ties";
  }
}

/// Each row has its largest value at another place: the ends, and both sides of every chunk's edge.
TEST_P(ArgmaxTest, EveryPlace) {
  std::vector<std::int64_t> places = {0, columns() - 1, columns() / 2};
  for (std::int64_t edge : {64, 128, 4096, 8192, 45056}) {
    for (std::int64_t place : {edge - 1, edge}) places.push_back(place);
  }
  std::erase_if(places, [this](std::int64_t place) { return place >= columns(); });
  std::vector<float> values(places.size() * static_cast<std::size_t>(columns()), -1.0f);
  for (std::size_t row = 0; row < places.size(); ++row) values[row * static_cast<std::size_t>(columns()) + static_cast<std::size_t>(places[row])] = 1;
  const OpCase c = argmax_of(static_cast<std::int64_t>(places.size()), columns(), values);
  EXPECT_TRUE(agrees(c, kExact));
  const auto reference = c.run_reference();
  ASSERT_TRUE(reference.ok());
  for (std::size_t row = 0; row < places.size(); ++row) {
    std::int32_t index = -1;
    std::memcpy(&index, reference->back().data() + row * 4, 4);
    EXPECT_EQ(index, places[row]);
  }
}

TEST_P(ArgmaxTest, TiesGoToTheLowestIndex) {
  const auto n = static_cast<std::size_t>(columns());
  std::vector<float> values(3 * n, 2.0f);
  values[n] = -0.0f;  // a row of zeros of both signs, which are equal
  for (std::size_t i = n + 1; i < 2 * n; ++i) values[i] = 0.0f;
  for (std::size_t i = 2 * n; i < 3 * n; ++i) values[i] = i < 3 * n - 1 - n / 2 ? -1.0f : 7.0f;
  EXPECT_TRUE(agrees(argmax_of(3, columns(), values), kExact));
}

TEST_P(ArgmaxTest, NanIsNeverTheLargest) {
  const auto n = static_cast<std::size_t>(columns());
  std::vector<float> values = random_values(4 * n, 3);
  for (std::size_t i = 0; i < n; i += 2) values[i] = kNan;                  // every second one
  for (std::size_t i = n; i < 2 * n; ++i) values[i] = kNan;                 // all: index 0
  for (std::size_t i = 2 * n; i < 3 * n; ++i) values[i] = -kInfinity;       // all minus infinity: index 0
  values[2 * n] = kNan;                                                     // then the first that is a number
  values[4 * n - 1] = kInfinity;
  EXPECT_TRUE(agrees(argmax_of(4, columns(), values), kExact));
}

INSTANTIATE_TEST_SUITE_P(Columns, ArgmaxTest, ::testing::Values(1, 2, 37, 127, 128, 129, 4096, 4097, 8192, 49152));

TEST(ArgmaxTest, StridedRowsAndHigherRanks) {
  OpCase c;
  const TensorId wide = c.f32("wide", {3, 113}, integer_values(3 * 113, 4, 50));
  c.output(c.graph.add(Op::argmax, {c.graph.slice(wide, 1, 5, 94)}));
  const TensorId rows = c.f32("rows", {2, 3, 5, 41}, integer_values(2 * 3 * 5 * 41, 5, 1000));
  c.output(c.graph.add(Op::argmax, {rows}));
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(ArgmaxTest, InactiveSequencesStayUntouched) {
  for (std::int64_t columns : {41, 5000}) {
    OpCase c(3);
    c.output(c.graph.add(Op::argmax, {c.f32("input", {3, columns}, random_values(static_cast<std::size_t>(3 * columns), 6))}));
    c.set_count(1, 1, false);
    EXPECT_TRUE(agrees(c, kExact)) << columns;
  }
}

}  // namespace
}  // namespace rondo::tests::argmax_test
