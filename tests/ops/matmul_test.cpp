#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::matmul_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.n_elements()); }

constexpr Tolerance kBound{1e-13};

/// What a kernel's sums may be off.
struct KernelUnderTest {
  const char* name;
  Tolerance bound;

  RunOptions options() const {
    RunOptions options;
    options.kernels["matmul"] = name;
    return options;
  }
};

/// Of few sums by matrix units one that cancels is all there is.
std::vector<KernelUnderTest> kernels() {
  std::vector<KernelUnderTest> all = {{"baseline", kBound}, {"tiled", {1e-9}}};
  if (!test_runtime_device().caps().matrices.empty()) all.push_back({"matrix", {1e-4}});
  return all;
}

struct Product {
  Shape a, b;
  graph::MatmulAttributes attributes;
};

OpCase matmul_case(const Product& product, float scale = 1) {
  OpCase c;
  const TensorId a = c.f32("a", product.a, random_values(count(product.a), 1, scale)), b = c.f32("b", product.b, random_values(count(product.b), 2, scale));
  c.output(c.graph.add(Op::matmul, {a, b}, product.attributes));
  return c;
}

class MatmulTest : public ::testing::TestWithParam<Product> {};

TEST_P(MatmulTest, RandomValues) {
  for (const KernelUnderTest& kernel : kernels()) EXPECT_TRUE(agrees(matmul_case(GetParam()), kernel.bound, kernel.options())) << kernel.name << " " << to_string(GetParam().a) << " " << to_string(GetParam().b);
}

TEST_P(MatmulTest, WholeNumbersComeOutExactly) {
  OpCase c;
  const TensorId a = c.f32("a", GetParam().a, integer_values(count(GetParam().a), 3, 9)), b = c.f32("b", GetParam().b, integer_values(count(GetParam().b), 4, 9));
  graph::MatmulAttributes attributes = GetParam().attributes;
  attributes.scale = 0.5;
  c.output(c.graph.add(Op::matmul, {a, b}, attributes));
  for (const KernelUnderTest& kernel : kernels()) EXPECT_TRUE(agrees(c, kExact, kernel.options())) << kernel.name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatmulTest,
                         ::testing::Values(Product{{1, 1}, {1, 1}, {}}, Product{{2, 3}, {3, 7}, {}}, Product{{37, 41}, {41, 89}, {}}, Product{{1, 257}, {257, 113}, {}},
                                           Product{{113, 1}, {1, 3}, {}}, Product{{33, 17}, {32, 17}, {.transpose_b = true}}, Product{{17, 33}, {17, 32}, {.transpose_a = true}},
                                           Product{{7, 9}, {40, 7}, {.transpose_a = true, .transpose_b = true, .scale = -0.25}}, Product{{2, 3, 8, 5}, {2, 3, 5, 7}, {}},
                                           Product{{2, 1, 8, 5}, {3, 5, 7}, {}}, Product{{8, 5}, {2, 3, 5, 7}, {}}, Product{{3, 9, 5}, {5, 7}, {}}, Product{{3, 1, 9, 5}, {1, 4, 7, 5}, {.transpose_b = true}}));

/// Sums that are about 1e-6 of their terms, where plain f32 has no digit right, as other kernels have.
TEST(MatmulTest, TermsThatCancel) {
  OpCase c;
  std::vector<float> a = random_values(5 * 128, 5, 1000), b = random_values(128 * 6, 6);
  for (std::size_t row = 0; row < 5; ++row) {
    for (std::size_t k = 0; k < 128; k += 2) a[row * 128 + k + 1] = -a[row * 128 + k];
  }
  for (std::size_t k = 0; k < 128; k += 2) {
    for (std::size_t n = 0; n < 6; ++n) b[(k + 1) * 6 + n] = b[k * 6 + n] * (1 + 1e-5f * static_cast<float>(n));
  }
  c.output(c.graph.add(Op::matmul, {c.f32("a", {5, 128}, a), c.f32("b", {128, 6}, b)}));
  EXPECT_TRUE(agrees(c, Tolerance{1e-11}, kernels().front().options()));
}

/// As deep as is allowed, where llvmpipe's limit of loop iterations would show.
TEST(MatmulTest, DeepSums) {
  for (const KernelUnderTest& kernel : kernels()) EXPECT_TRUE(agrees(matmul_case({{2, 49152}, {3, 49152}, {.transpose_b = true}}), kernel.bound, kernel.options())) << kernel.name;
}

TEST(MatmulTest, InactiveSequencesStayUntouched) {
  for (bool first : {false, true}) {
    OpCase c(2);
    c.output(c.graph.add(Op::matmul, {c.f32("a", {2, 7, 5}, random_values(70, 1)), c.f32("b", {2, 5, 9}, random_values(90, 2))}), 1);
    c.set_count(first ? 0 : 1, 0, false);
    for (const KernelUnderTest& kernel : kernels()) EXPECT_TRUE(agrees(c, kernel.bound, kernel.options())) << kernel.name;
  }
}

TEST(MatmulTest, AnotherProductIsRejected) {
  const Product plain{{7, 7}, {7, 7}, {}};
  for (const graph::MatmulAttributes& other : {graph::MatmulAttributes{.transpose_a = true}, graph::MatmulAttributes{.transpose_b = true}, graph::MatmulAttributes{.scale = 1.0001}}) {
    EXPECT_FALSE(agrees_with(matmul_case(plain), matmul_case({{7, 7}, {7, 7}, other}), kBound));
  }
}

}  // namespace
}  // namespace rondo::tests::matmul_test
