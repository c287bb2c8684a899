#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::patch_embed_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.n_elements()); }

constexpr Tolerance kBound{1e-11};

OpCase patch_case(std::int64_t patch, std::int64_t patches_y, std::int64_t patches_x, std::int64_t outputs, bool bias, graph::Type type = graph::Type::kF32) {
  OpCase c;
  const Shape pixels = {2, 3, patches_y * patch, patches_x * patch};
  const std::int64_t columns = 3 * patch * patch;
  const TensorId weight = c.weight("weight", type, outputs, columns, weight_rows(type, outputs, columns, 2, WeightValues::kRandom));
  const TensorId b = c.f32("bias", {outputs}, random_values(static_cast<std::size_t>(outputs), 3));
  c.output(c.graph.add(Op::patch_embed, {c.f32("pixels", pixels, random_values(count(pixels), 1)), weight, bias ? b : graph::kNone}, graph::PatchEmbedAttributes{patch}));
  return c;
}

TEST(PatchEmbedTest, EverySizeAndKernel) {
  for (std::int64_t patch : {1, 2, 3, 7, 8}) {
    for (std::int64_t outputs : {1, 7, 37, 113}) {
      for (const char* kernel : {"subgroup", "vector", "tiled"}) {
        RunOptions options;
        options.kernels["patch_embed"] = kernel;
        EXPECT_TRUE(agrees(patch_case(patch, 3, 5, outputs, patch != 2), kBound, options)) << patch << ", " << outputs << ", " << kernel;
      }
      EXPECT_TRUE(agrees(patch_case(patch, 2, 1, outputs, true), kBound)) << patch << ", " << outputs;
    }
  }
}

TEST(PatchEmbedTest, QuantisedWeight) { EXPECT_TRUE(agrees(patch_case(8, 3, 2, 41, true, graph::Type::kQ8_0), kBound)); }

TEST(PatchEmbedTest, PixelsWithChannelsLast) {
  OpCase c;
  const TensorId pixels = c.graph.transpose(c.f32("pixels", {2, 6, 9, 3}, random_values(324, 1)), {0, 3, 1, 2});
  const TensorId weight = c.weight("weight", graph::Type::kF32, 7, 27, weight_rows(graph::Type::kF32, 7, 27, 2, WeightValues::kRandom));
  c.output(c.graph.add(Op::patch_embed, {pixels, weight}, graph::PatchEmbedAttributes{3}));
  EXPECT_TRUE(agrees(c, kBound));
}

TEST(PatchEmbedTest, AMissingBiasIsRejected) { EXPECT_FALSE(agrees_with(patch_case(3, 2, 2, 7, true), patch_case(3, 2, 2, 7, false), kBound)); }

}  // namespace
}  // namespace rondo::tests::patch_embed_test
