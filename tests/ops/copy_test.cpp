#include <string>

#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::copy_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.n_elements()); }

// copy, concat, pad, and the views slice, transpose and reshape.

TEST(CopyTest, ViewsOfEverySize) {
  for (std::int64_t n : {1, 2, 3, 7, 37, 41, 89, 113, 257}) {
    OpCase c;
    const TensorId input = c.f32("input", {2, n, 3, 5}, random_values(static_cast<std::size_t>(n * 30), 1));
    c.output(c.graph.add(Op::copy, {c.graph.transpose(input, {3, 1, 0, 2})}));
    EXPECT_TRUE(agrees(c, kExact)) << n;
  }
}

TEST(CopyTest, SlicesWithStepsAndBoundsAsInNumpy) {
  OpCase c;
  const TensorId input = c.f32("input", {9, 10, 11}, random_values(990, 2));
  const graph::SliceRange ranges[] = {{1, 8, 3}, {-4, 99, 2}, {2, -1, 4}};
  const TensorId view = c.graph.slice(input, ranges);
  EXPECT_EQ(c.graph.tensor(view).shape, (Shape{3, 2, 2}));
  EXPECT_EQ(c.graph.tensor(view).offset_elements, 1 * 110 + 6 * 11 + 2);
  EXPECT_EQ(c.graph.tensor(view).strides, (graph::Strides{330, 22, 4, 0}));
  c.output(c.graph.add(Op::copy, {view}));
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(CopyTest, ReshapeCopiesOnlyWhereItMust) {
  OpCase c;
  const TensorId input = c.f32("input", {5, 7, 3}, random_values(105, 3));
  EXPECT_EQ(c.graph.tensor(c.graph.reshape_or_copy(input, {35, 3})).storage, c.graph.tensor(input).storage);
  EXPECT_TRUE(c.graph.nodes().empty());
  c.output(c.graph.reshape_or_copy(c.graph.transpose(input, {1, 0, 2}), {35, 3}));
  EXPECT_EQ(c.graph.nodes().size(), 1u);
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(CopyTest, AnInactiveSequenceStaysUntouched) {
  OpCase c(2);
  c.output(c.graph.add(Op::copy, {c.graph.transpose(c.f32("input", {2, 7, 5}, random_values(70, 1)), {0, 2, 1})}), 1);
  c.set_count(1, 0, false);
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(CopyTest, AnotherOrderIsRejected) {
  OpCase cases[2];
  for (int i : {0, 1}) {
    const TensorId input = cases[i].f32("input", {7, 7}, random_values(49, 1));
    cases[i].output(cases[i].graph.add(Op::copy, {i == 0 ? input : cases[i].graph.transpose(input, {1, 0})}));
  }
  EXPECT_FALSE(agrees_with(cases[0], cases[1], kExact));
}

TEST(ConcatTest, AnyAxisAndNumberOfInputs) {
  for (std::int64_t axis : {0, 1, 2, 3, -1}) {
    for (int n : {1, 2, 3, 7, 9}) {
      OpCase c;
      std::vector<TensorId> inputs;
      for (int i = 0; i < n; ++i) {
        Shape shape = {2, 3, 5, 7};
        shape[axis < 0 ? 3 : static_cast<int>(axis)] = i + 1;
        inputs.push_back(c.f32("input " + std::to_string(i), shape, random_values(count(shape), static_cast<std::uint32_t>(i))));
      }
      c.output(c.graph.add(Op::concat, inputs, graph::ConcatAttributes{axis}));
      EXPECT_TRUE(agrees(c, kExact)) << axis << ", " << n;
    }
  }
}

TEST(ConcatTest, StridedInputsAndOneTwice) {
  OpCase c;
  const TensorId a = c.graph.transpose(c.f32("a", {37, 5}, random_values(37 * 5, 1)), {1, 0}), b = c.f32("b", {5, 41}, random_values(5 * 41, 2));
  c.output(c.graph.add(Op::concat, {a, c.graph.slice(b, 1, 3, 40), a}, graph::ConcatAttributes{1}));
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(PadTest, AroundEveryDimension) {
  for (std::int64_t n : {1, 2, 3, 7, 37, 41, 89, 113, 257}) {
    OpCase c;
    const TensorId input = c.f32("input", {2, n, 3}, random_values(static_cast<std::size_t>(n * 6), 1));
    c.output(c.graph.add(Op::pad, {input}, graph::PadAttributes{{1, 0, 2}, {0, 3, 1}, -1.5}));
    EXPECT_TRUE(agrees(c, kExact)) << n;
  }
}

TEST(PadTest, StridedInputOfFourDimensions) {
  OpCase c;
  const TensorId input = c.graph.transpose(c.f32("input", {2, 3, 5, 7}, random_values(210, 1)), {3, 1, 0, 2});
  c.output(c.graph.add(Op::pad, {c.graph.slice(input, 0, 2, 6)}, graph::PadAttributes{{1, 2, 3, 4}, {4, 3, 2, 1}, 0}));
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(PadTest, AnotherSideIsRejected) {
  OpCase cases[2];
  for (std::size_t i : {0u, 1u}) {
    graph::PadAttributes attributes;
    attributes.before[i] = attributes.after[1 - i] = 1;
    cases[i].output(cases[i].graph.add(Op::pad, {cases[i].f32("input", {7, 7}, random_values(49, 1))}, attributes));
  }
  EXPECT_FALSE(agrees_with(cases[0], cases[1], kExact));
}

}  // namespace
}  // namespace rondo::tests::copy_test
