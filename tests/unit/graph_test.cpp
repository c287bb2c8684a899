#include <algorithm>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "graph/graph.h"
#include "tools/check/op_case.h"

namespace rondo::graph::graph_test {
namespace {

using check::OpCase;

/// Where each element lies in the storage, in row-major order.
std::vector<std::int64_t> offsets_of(const Tensor& tensor) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t flat = 0; flat < tensor.shape.n_elements(); ++flat) {
    std::int64_t rest = flat, offset = tensor.offset_elements;
    for (int axis = tensor.shape.rank - 1; axis >= 0; --axis) {
      offset += rest % tensor.shape[axis] * tensor.strides[static_cast<std::size_t>(axis)];
      rest /= tensor.shape[axis];
    }
    offsets.push_back(offset);
  }
  return offsets;
}

/// Whether any strides let `shape` walk through `offsets` in order.
bool strides_exist(const std::vector<std::int64_t>& offsets, const Shape& shape) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.offset_elements = offsets.front();
  std::int64_t step = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (shape[axis] > 1) tensor.strides[static_cast<std::size_t>(axis)] = offsets[static_cast<std::size_t>(step)] - offsets.front();
    step *= shape[axis];
  }
  return offsets_of(tensor) == offsets;
}

class GraphTest : public ::testing::Test {
 protected:
  TensorId tensor(const Shape& shape, Type type = Type::kF32) { return graph_.add_tensor("x", StorageKind::kInput, type, shape); }
  const Tensor& operator[](TensorId id) const { return graph_.tensor(id); }
  Graph graph_;
};

TEST_F(GraphTest, ShapesAndStrides) {
  const Shape shape = {2, 3, 5};
  EXPECT_EQ(shape.n_elements(), 30);
  EXPECT_EQ(shape.n_rows(), 6);
  EXPECT_EQ(shape.last(), 5);
  EXPECT_EQ(to_string(shape), "(2, 3, 5)");
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(Shape{}.n_elements(), 1);
  EXPECT_EQ(contiguous_strides(shape), (Strides{15, 5, 1, 0}));
  EXPECT_FALSE(shape == (Shape{2, 3}));
  EXPECT_FALSE(shape == (Shape{2, 3, 6}));
}

TEST_F(GraphTest, StoragesHoldWholeWords) {
  EXPECT_EQ(graph_.storage_of(tensor({7})).size_bytes, 28u);
  EXPECT_EQ(graph_.storage_of(tensor({7}, Type::kF16)).size_bytes, 16u);
}

TEST_F(GraphTest, EmptyAndEnormousShapesAreRefused) {
  for (const Shape& shape : {Shape{3, 0}, Shape{-1}, Shape{1 << 16, 1 << 16}, Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}}) {
    Graph graph;
    EXPECT_EQ(graph.add_tensor("w", StorageKind::kInput, Type::kF32, shape), kNone);
    EXPECT_EQ(graph.status().message(), "tensor w: shape " + to_string(shape) + " is empty or has more than 2^31 elements");
  }
  EXPECT_NE(tensor({(std::int64_t{1} << 31) - 1}), kNone);
}

TEST_F(GraphTest, TransposeMovesStrides) {
  const TensorId turned = graph_.transpose(tensor({2, 3, 5}), {2, 0, 1});
  EXPECT_EQ((*this)[turned].shape, (Shape{5, 2, 3}));
  EXPECT_EQ((*this)[turned].strides, (Strides{1, 15, 5, 0}));
  EXPECT_FALSE((*this)[turned].is_contiguous());
}

TEST_F(GraphTest, TransposeRefusesWhatIsNoPermutation) {
  const std::vector<std::pair<std::vector<int>, std::string>> cases = {{{0}, "(0)"}, {{0, 0}, "(0, 0)"}, {{0, 2}, "(0, 2)"}, {{-1, 0}, "(-1, 0)"}};
  for (const auto& [axes, text] : cases) {
    Graph graph;
    const TensorId x = graph.add_tensor("x", StorageKind::kInput, Type::kF32, {2, 3});
    EXPECT_EQ(axes.size() == 1 ? graph.transpose(x, {axes[0]}) : graph.transpose(x, {axes[0], axes[1]}), kNone);
    EXPECT_EQ(graph.status().message(), "[transpose] x (2, 3): " + text + " is not a permutation of its axes");
  }
}

TEST_F(GraphTest, SliceKeepsStridesAndMovesTheOffset) {
  const TensorId part = graph_.slice(graph_.slice(tensor({4, 5}), 1, 2, 5), 0, 1, 3);
  EXPECT_EQ((*this)[part].shape, (Shape{2, 3}));
  EXPECT_EQ((*this)[part].offset_elements, 7);
  EXPECT_EQ(offsets_of((*this)[part]), (std::vector<std::int64_t>{7, 8, 9, 12, 13, 14}));
}

TEST_F(GraphTest, SliceRefusesWhatIsNotInside) {
  struct Range {
    int axis;
    std::int64_t start, end;
  };
  for (const Range& r : {Range{2, 0, 1}, Range{-1, 0, 1}, Range{0, 0, 5}, Range{0, -1, 2}, Range{0, 2, 2}, Range{1, 4, 3}}) {
    Graph graph;
    EXPECT_EQ(graph.slice(graph.add_tensor("x", StorageKind::kInput, Type::kF32, {4, 5}), r.axis, r.start, r.end), kNone);
    EXPECT_EQ(graph.status().message().rfind("[slice] x (4, 5): [", 0), 0u) << graph.status().message();
  }
}

TEST_F(GraphTest, ReshapeSplitsAndMerges) {
  EXPECT_EQ((*this)[graph_.reshape(tensor({2, 12}), {2, 3, 4})].strides, (Strides{12, 4, 1, 0}));
  EXPECT_EQ((*this)[graph_.reshape(tensor({2, 3, 4}), {24})].strides, (Strides{1, 0, 0, 0}));
  EXPECT_EQ((*this)[graph_.reshape(tensor({2, 3}), {3, 2})].strides, (Strides{2, 1, 0, 0}));
  EXPECT_EQ((*this)[graph_.reshape(tensor({4, 6}), {3, 8})].strides, (Strides{8, 1, 0, 0}));
  EXPECT_EQ((*this)[graph_.reshape(tensor({1}), Shape{})].shape.rank, 0);
  EXPECT_TRUE(graph_.status().ok()) << graph_.status().message();
}

/// Heads inside wider rows: (B, T, H D) of a merged linear as (B, T, H, D).
TEST_F(GraphTest, ReshapeOfASlice) {
  const TensorId heads = graph_.reshape(graph_.slice(tensor({2, 5, 48}), 2, 16, 40), {2, 5, 3, 8});
  EXPECT_EQ((*this)[heads].strides, (Strides{240, 48, 8, 1}));
  EXPECT_EQ((*this)[heads].offset_elements, 16);
}

TEST_F(GraphTest, ReshapeRefusesOtherSizesAndUnevenSteps) {
  Graph sizes;
  EXPECT_EQ(sizes.reshape(sizes.add_tensor("x", StorageKind::kInput, Type::kF32, {2, 3}), {7}), kNone);
  EXPECT_EQ(sizes.status().message(), "[reshape] x (2, 3) can't become (7)");
  Graph steps;
  EXPECT_EQ(steps.reshape(steps.slice(steps.add_tensor("x", StorageKind::kInput, Type::kF32, {2, 3}), 1, 0, 2), {4}), kNone);
  EXPECT_EQ(steps.status().message(), "[reshape] x (2, 2) is not laid out so that it can be seen as (4)");
}

Shape random_factors(std::int64_t n, std::mt19937& random) {
  Shape shape;
  shape.rank = 1 + static_cast<int>(random() % kMaxRank);
  for (int axis = 0; axis < shape.rank; ++axis) shape[axis] = 1;
  for (std::int64_t prime : {2, 3, 5, 7}) {
    for (; n % prime == 0; n /= prime) shape[static_cast<int>(random() % static_cast<unsigned>(shape.rank))] *= prime;
  }
  return shape;
}

/// Views of views at random: a reshape walks the same elements in the same order, and is refused only if nothing could.
TEST_F(GraphTest, ReshapeIsRefusedOnlyWhereStridesCannotExpressIt) {
  std::mt19937 random(5);
  int n_accepted = 0, n_refused = 0;
  for (int round = 0; round < 3000; ++round) {
    Graph graph;
    TensorId view = graph.add_tensor("x", StorageKind::kInput, Type::kF32, {2, 6, 1 + static_cast<std::int64_t>(random() % 2), 12});
    const auto pick = [&](std::uint32_t n) { return static_cast<int>(random() % n); };
    if (pick(2)) view = graph.transpose(view, {0, 2, 1, 3});
    if (pick(3) == 0) view = graph.transpose(view, {1, 0, 3, 2});
    const int axis = pick(4);
    if (pick(2) && graph.tensor(view).shape[axis] % 2 == 0) view = graph.slice(view, axis, 0, graph.tensor(view).shape[axis] / 2);
    const std::vector<std::int64_t> offsets = offsets_of(graph.tensor(view));
    const Shape target = random_factors(static_cast<std::int64_t>(offsets.size()), random);
    const TensorId reshaped = graph.reshape(view, target);
    const bool possible = strides_exist(offsets, target);
    EXPECT_EQ(reshaped != kNone, possible) << to_string(graph.tensor(view).shape) << " to " << to_string(target);
    if (reshaped != kNone) {
      EXPECT_EQ(offsets_of(graph.tensor(reshaped)), offsets);
    }
    ++(possible ? n_accepted : n_refused);
  }
  EXPECT_GT(n_accepted, 500);
  EXPECT_GT(n_refused, 500);
}

TEST_F(GraphTest, RowStride) {
  EXPECT_EQ(row_stride((*this)[tensor({3, 5})]), 5);
  EXPECT_EQ(row_stride((*this)[tensor({7})]), 7);
  EXPECT_EQ(row_stride((*this)[graph_.slice(tensor({3, 5}), 1, 1, 4)]), 5);
  EXPECT_EQ(row_stride((*this)[graph_.slice(tensor({2, 3, 5}), 1, 0, 2)]), -1) << "rows 0, 1, 3, 4";
  EXPECT_EQ(row_stride((*this)[graph_.slice(tensor({2, 3, 5}), 1, 1, 2)]), 15);
  EXPECT_EQ(row_stride((*this)[graph_.transpose(tensor({3, 5}), {1, 0})]), -1) << "columns lie apart";
  EXPECT_EQ(row_stride((*this)[graph_.transpose(tensor({1, 5}), {1, 0})]), 1) << "one element a row";
}

TEST_F(GraphTest, TheFirstErrorStays) {
  const TensorId x = tensor({2, 3});
  EXPECT_EQ(graph_.reshape(x, {7}), kNone);
  const std::string first = graph_.status().message();
  EXPECT_EQ(graph_.slice(x, 9, 0, 1), kNone);
  EXPECT_EQ(graph_.add(Op::argmax, {x}), kNone);
  EXPECT_EQ(graph_.status().message(), first);
  EXPECT_TRUE(graph_.nodes().empty());
  EXPECT_EQ(validate(graph_).message(), first);
}

class ValidateTest : public ::testing::Test {
 protected:
  ValidateTest() {
    const TensorId x = case_.f32("x", {2, 3}, std::vector<float>(6, 1.0f));
    sum_ = case_.graph.add(Op::add, {x, x});
    case_.output(case_.graph.add(Op::add, {sum_, x}));
    case_.graph.name = "g";
  }
  Graph& graph() { return case_.graph; }
  OpCase case_;
  TensorId sum_ = kNone;
};

TEST_F(ValidateTest, AcceptsWhatIsInOrder) { EXPECT_TRUE(validate(graph()).ok()) << validate(graph()).message(); }

TEST_F(ValidateTest, ReadingBeforeWriting) {
  std::swap(graph().nodes()[0], graph().nodes()[1]);
  const Status status = validate(graph());
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "graph g: [add] reads add before it is written");
}

TEST_F(ValidateTest, TensorsThatAreNot) {
  graph().nodes()[1].inputs[0] = 1000;
  EXPECT_EQ(validate(graph()).message(), "graph g: [add] has no tensor 1000");
  graph().nodes()[1].inputs[0] = -7;
  EXPECT_EQ(validate(graph()).message(), "graph g: [add] has no tensor -7");
}

TEST_F(ValidateTest, ViewsBeyondTheirStorage) {
  graph().tensor(sum_).offset_elements = 1;
  EXPECT_EQ(validate(graph()).message(), "graph g: tensor add reaches beyond its storage");
  graph().tensor(sum_).offset_elements = -1;
  EXPECT_FALSE(validate(graph()).ok());
  graph().tensor(sum_).offset_elements = 0;
  graph().tensor(sum_).strides[0] = 4;
  EXPECT_FALSE(validate(graph()).ok());
}

}  // namespace
}  // namespace rondo::graph::graph_test
