#include <gtest/gtest.h>

#include "tests/support/device_environment.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::embedding_test {
namespace {

using graph::Op;
using graph::TensorId;
using graph::Type;

class EmbeddingTest : public ::testing::TestWithParam<Type> {
 protected:
  std::int64_t columns(std::int64_t at_least) const { return whole_blocks(GetParam(), at_least); }
  std::vector<std::int64_t> widths() const {
    if (has_blocks(GetParam())) return {columns(32), columns(96), columns(1056)};
    return {1, 2, 37, 41, 64, 257};
  }
};

TEST_P(EmbeddingTest, RowsAreCopied) {
  for (std::int64_t width : widths()) {
    const std::int64_t vocabulary = 41;
    OpCase c;
    const TensorId ids = c.i32("ids", {7}, std::vector<std::int32_t>{0, 40, 3, 3, 17, 1, 39});
    const TensorId weight = c.weight("weight", GetParam(), vocabulary, width, weight_rows(GetParam(), vocabulary, width, 1, WeightValues::kRandom));
    c.output(c.graph.add(Op::embedding, {ids, weight}));
    EXPECT_TRUE(agrees(c, kExact)) << width;
  }
}

TEST_P(EmbeddingTest, IdsOutsideTheVocabularyGiveZeros) {
  OpCase c;
  const TensorId ids = c.i32("ids", {2, 4}, std::vector<std::int32_t>{-1, 0, 37, 36, 0x7fffffff, static_cast<std::int32_t>(0x80000000), 38, -37});
  const TensorId weight = c.weight("weight", GetParam(), 37, columns(64), weight_rows(GetParam(), 37, columns(64), 2, WeightValues::kRandom));
  c.output(c.graph.add(Op::embedding, {ids, weight}));
  EXPECT_TRUE(agrees(c, kExact));
}

/// Ids behind the slice's end lie in the block but not in the vocabulary.
TEST_P(EmbeddingTest, SliceOfAWeight) {
  OpCase c;
  const TensorId ids = c.i32("ids", {4}, std::vector<std::int32_t>{0, 12, 13, 5});
  const TensorId weight = c.weight("weight", GetParam(), 37, columns(64), weight_rows(GetParam(), 37, columns(64), 3, WeightValues::kRandom));
  c.output(c.graph.add(Op::embedding, {ids, c.graph.slice(weight, 0, 7, 20)}));
  EXPECT_TRUE(agrees(c, kExact));
}

TEST_P(EmbeddingTest, RowsBeyondTheCountStayUntouched) {
  for (std::int32_t valid : {0, 1, 4, 5, 6}) {
    OpCase c(2);
    const TensorId ids = c.i32("ids", {2, 5}, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    const TensorId weight = c.weight("weight", GetParam(), 11, columns(96), weight_rows(GetParam(), 11, columns(96), 4, WeightValues::kRandom));
    c.output(c.graph.add(Op::embedding, {ids, weight}), 1);
    c.set_count(0, valid);
    c.set_count(1, 2, valid != 4);
    EXPECT_TRUE(agrees(c, kExact)) << valid;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingTest, ::testing::ValuesIn(kRowLayouts),
                         [](const ::testing::TestParamInfo<Type>& tested) { return std::string(graph::type_name(tested.param)); });

/// The step's last rows are gathered from activations: rows that are not padded to groups, at a stride.
TEST(EmbeddingOfActivationsTest, GathersRows) {
  for (std::int64_t width : {1, 37, 64, 257}) {
    OpCase c;
    const TensorId wide = c.f32("wide", {11, width + 3}, random_values(static_cast<std::size_t>(11 * (width + 3)), 5));
    const TensorId rows = c.graph.slice(c.graph.slice(wide, 1, 2, 2 + width), 0, 1, 11);
    const TensorId ids = c.i32("ids", {5}, std::vector<std::int32_t>{9, 0, 4, -1, 10});
    c.output(c.graph.add(Op::embedding, {ids, rows}));
    EXPECT_TRUE(agrees(c, kExact)) << width;
  }
}

/// The same of f16, in rows that begin within a word.
TEST(EmbeddingOfActivationsTest, GathersRowsOfHalves) {
  if (!test_runtime_device().caps().storage16) GTEST_SKIP() << "no 16-bit storage";
  for (std::int64_t width : {1, 37, 64, 257}) {
    OpCase c;
    const TensorId wide = c.activation("wide", Type::kF16, {11, width + 3}, random_values(static_cast<std::size_t>(11 * (width + 3)), 5));
    const TensorId rows = c.graph.slice(c.graph.slice(wide, 1, 1, 1 + width), 0, 1, 11);
    const TensorId ids = c.i32("ids", {5}, std::vector<std::int32_t>{9, 0, 4, -1, 10});
    c.output(c.graph.add(Op::embedding, {ids, rows}));
    EXPECT_TRUE(agrees(c, kExact)) << width;
  }
}

}  // namespace
}  // namespace rondo::tests::embedding_test
