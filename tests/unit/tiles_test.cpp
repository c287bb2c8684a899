// Tiles of every class of devices: that they fit what the device can do, and the kernel's own rules.
#include <gtest/gtest.h>

#include "graph/tiles.h"

namespace rondo::graph::tiles_test {
namespace {

TEST(SubgroupTileTest, FitsTheDevice) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kSizes[] = {{4, 4}, {8, 8}, {16, 16}, {32, 32}, {64, 64}, {4, 32}, {8, 32}, {16, 32}, {32, 64}, {64, 128}, {128, 128}, {32, 128}};
  for (const auto& [least, most] : kSizes) {
    for (const std::uint32_t invocations : {128u, 1024u}) {
      runtime::DeviceCaps caps;
      caps.max_invocations = invocations;
      caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = most;
      for (const Type type : {Type::kF32, Type::kF16}) {
        for (const bool glu : {false, true}) {
          for (std::uint32_t rows = 1; rows <= 9; ++rows) {
            const SubgroupTile tile = subgroup_tile(caps, type, rows, glu);
            SCOPED_TRACE(::testing::Message() << least << " to " << most << ", " << invocations << ", " << rows << " rows");
            EXPECT_GE(tile.lanes, least);
            EXPECT_LE(tile.lanes, most);
            EXPECT_LE(tile.lanes * tile.subgroups, invocations);
            EXPECT_GE(tile.subgroups, 1u);
            EXPECT_GE(tile.lanes * tile.subgroups, 16u) << "fill_table";
            EXPECT_GE(tile.rows, 1u);
            EXPECT_GE(tile.tokens, 1u);
            EXPECT_LE(tile.rows * tile.tokens, tile.lanes) << "each lane stores one sum";
            EXPECT_LE(tile.tokens, 8u);
          }
        }
      }
    }
  }
}

TEST(SubgroupTileTest, ReadsAWeightOnceForEightRows) {
  runtime::DeviceCaps caps;
  caps.max_invocations = 1024;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 32;
  for (std::uint32_t rows = 1; rows <= 8; ++rows) EXPECT_GE(subgroup_tile(caps, Type::kF32, rows, false).tokens, rows);
}

/// Of a large device with few outputs the subgroups share rows, as long as each lane has a chunk.
TEST(SubgroupTileTest, SplitsFewRowsOfALargeDevice) {
  runtime::DeviceCaps caps;
  caps.type = runtime::DeviceType::kDiscrete;
  caps.max_invocations = 1024;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 32;
  caps.cores = 132;
  const auto tile = [&](std::uint32_t outputs, std::uint32_t chunks) { return subgroup_tile(caps, Type::kF32, 1, false, outputs, chunks); };
  EXPECT_EQ(tile(1024, 256).split, 4u);
  EXPECT_EQ(tile(1024, 64).split, 2u) << "two chunks a lane are one for each of two";
  EXPECT_EQ(tile(1024, 32).split, 1u);
  EXPECT_EQ(tile(4096, 512).split, 2u) << "more on their way, as long as each lane has eight";
  EXPECT_EQ(tile(4096, 511).split, 1u);
  EXPECT_EQ(tile(65536, 256).split, 1u) << "there are enough workgroups";
  caps.cores = 16;
  EXPECT_EQ(tile(2048, 256).split, 1u);
  for (const std::uint32_t outputs : {1u, 7u, 113u, 2048u, 4096u}) {
    for (const std::uint32_t rows : {1u, 3u, 8u}) {
      for (const bool glu : {false, true}) {
        caps.cores = 500;
        const SubgroupTile one = subgroup_tile(caps, Type::kF32, rows, glu, outputs, 4096);
        EXPECT_EQ(one.subgroups % one.split, 0u);
        EXPECT_GE(one.outputs_of_workgroup(), 1u);
      }
    }
  }
}

/// Chunks of many columns: lanes side by side have the same, as long as there are rows for all.
TEST(SubgroupTileTest, LanesHaveTheSameColumnsOfDifferentRows) {
  runtime::DeviceCaps caps;
  caps.type = runtime::DeviceType::kIntegrated;
  caps.max_invocations = 1024;
  caps.min_required_subgroup_size = 64, caps.max_required_subgroup_size = 128;
  caps.cores = 6;
  const auto tile = [&](std::uint32_t rows, std::uint32_t outputs, std::uint32_t columns) { return subgroup_tile(caps, Type::kF32, rows, false, outputs, 2048 / columns, columns); };
  EXPECT_EQ(tile(1, 2048, 32).row_lanes, 4u);
  EXPECT_EQ(tile(1, 2048, 32).rows, 8u);
  EXPECT_EQ(tile(1, 2048, 8).row_lanes, 1u);
  EXPECT_EQ(tile(3, 2048, 32).row_lanes, 1u);
  EXPECT_EQ(tile(1, 8, 32).row_lanes, 1u);
  for (const std::uint32_t outputs : {1u, 37u, 113u, 257u, 2048u}) {
    for (const std::uint32_t rows : {1u, 2u, 3u, 8u}) {
      const SubgroupTile one = tile(rows, outputs, 32);
      EXPECT_EQ(one.rows % one.row_lanes, 0u);
      EXPECT_LE(one.rows * one.tokens, one.lanes) << "each lane stores one sum";
    }
  }
}

TEST(DotTileTest, FitsTheDeviceAndWhatIsRoundedTogether) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kSizes[] = {{8, 8}, {16, 16}, {32, 32}, {64, 64}, {4, 32}, {8, 32}, {32, 64}, {64, 128}, {128, 128}};
  for (const auto& [least, most] : kSizes) {
    for (const std::uint32_t cores : {1u, 132u, 4096u}) {
      runtime::DeviceCaps caps;
      caps.type = runtime::DeviceType::kDiscrete;
      caps.max_invocations = 1024;
      caps.cores = cores;
      caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = most;
      for (const bool rounds : {false, true}) {
        for (const bool glu : {false, true}) {
          for (std::uint32_t rows = 1; rows <= 9; ++rows) {
            const SubgroupTile tile = dot_tile(caps, rows, glu, rounds ? kRoundedTogether : 0, 2048, 4096);
            SCOPED_TRACE(::testing::Message() << least << " to " << most << ", " << cores << " cores, " << rows << " rows");
            EXPECT_GE(tile.lanes, 8u);
            EXPECT_LE(tile.lanes * tile.subgroups, caps.max_invocations);
            EXPECT_EQ(tile.subgroups % tile.split, 0u);
            EXPECT_LE(tile.rows * tile.tokens, tile.lanes) << "each lane stores one sum";
            if (rounds && tile.lanes < 64) {
              EXPECT_EQ(tile.outputs_of_workgroup() % kRoundedTogether, 0u);
            }
          }
        }
      }
    }
  }
}

TEST(DotTileTest, PaysForBlocks) {
  for (const auto& [least, most] : {std::pair{32u, 32u}, std::pair{8u, 32u}, std::pair{32u, 64u}}) {
    runtime::DeviceCaps caps;
    caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = most;
    EXPECT_TRUE(dot_pays(caps, Type::kQ8_0));
    EXPECT_TRUE(dot_pays(caps, Type::kQ4_K));
    EXPECT_FALSE(dot_pays(caps, Type::kF16));
  }
}

/// Only where a third of the cores would have nothing to do, and of many columns.
TEST(ColumnSplitsTest, FillTheDevice) {
  runtime::DeviceCaps caps;
  caps.max_invocations = 1024, caps.max_workgroup_subgroups = 64, caps.max_shared_bytes = 49152;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 32;
  caps.cores = 132;
  const auto splits_of = [&](std::uint32_t n_tiles, std::uint32_t n_groups) { return many_dots_tile(caps, 16, n_groups, n_tiles * DotTile::kOutputs, false).splits; };
  EXPECT_EQ(splits_of(32, 128), 4u);
  EXPECT_EQ(splits_of(64, 128), 2u);
  EXPECT_EQ(splits_of(87, 128), 4u);
  EXPECT_EQ(splits_of(87, 32), 1u) << "the sums would cost more than the idle cores";
  EXPECT_EQ(splits_of(88, 4096), 1u) << "two thirds of the cores";
  EXPECT_EQ(splits_of(1, 4096), 16u);
  EXPECT_EQ(splits_of(1, 32), 4u);
  EXPECT_EQ(splits_of(1, 15), 1u) << "480 columns";
  EXPECT_EQ(float_tile(caps, 16, 4096, 64, false).splits, 16u);
  EXPECT_EQ(matmul_float_tile(caps, 16, 64, 1).splits, 1u);
  caps.cores = 1;
  EXPECT_EQ(splits_of(1, 4096), 1u);
}

/// Wide values have fewer rows of an invocation, and where they would spill workgroups share them.
TEST(RegisterTileTest, OfWideValues) {
  runtime::DeviceCaps caps;
  caps.max_invocations = 1024, caps.max_workgroup_subgroups = 64, caps.max_shared_bytes = 49152;
  using Made = std::pair<std::uint32_t, std::uint32_t>;  // rows of an invocation, and parts
  const auto made = [&](std::uint32_t least, std::uint32_t most, std::uint32_t width, bool q8_0 = false) {
    caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = most;
    const RegisterTile tile = attention_register_tile(caps, width, q8_0, false);
    return Made(tile.rows_of_invocation, tile.parts);
  };
  for (const std::uint32_t most : {32u, 64u}) {  // NVIDIA's and AMD's
    EXPECT_EQ(made(32, most, 320), Made(4, 1));
    EXPECT_EQ(made(32, most, 328), Made(2, 1));
    EXPECT_EQ(made(32, most, 512), Made(2, 1));
    EXPECT_EQ(made(32, most, 520), Made(4, 2)) << "320 and 200 columns";
  }
  EXPECT_EQ(made(8, 32, 320), Made(2, 1));
  EXPECT_EQ(made(8, 32, 328), Made(2, 2));
  caps.max_shared_bytes = 20480;
  caps.min_required_subgroup_size = 8, caps.max_required_subgroup_size = 32;
  EXPECT_EQ(attention_register_tile(caps, 64, false, false).threads, 256u) << "19,648 bytes";
  EXPECT_EQ(attention_register_tile(caps, 64, false, true).threads, 128u) << "queries beside scores take 4,608 more";
  caps.max_shared_bytes = 49152;
  EXPECT_EQ(made(8, 32, 192, true), Made(2, 1));
  EXPECT_EQ(made(8, 32, 256, true), Made(2, 2));
  EXPECT_EQ(made(64, 128, 328), Made(2, 2));
}

/// Of small tiles twice as many as there are cores are at work.
TEST(ColumnSplitsTest, OfMatrices) {
  runtime::DeviceCaps caps;
  caps.max_invocations = 1024, caps.max_workgroup_subgroups = 64, caps.max_shared_bytes = 49152;
  caps.cores = 132;
  const auto tile_of = [&](std::uint32_t least, const runtime::MatrixShape& shape, std::uint32_t rows, std::uint32_t outputs) {
    caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = 32;
    caps.matrices = {shape};
    return matrix_tile(caps, Type::kF16, rows, 128, outputs, false);
  };
  const MatrixTile small = tile_of(32, {16, 16, 16}, 16, 96 * 64);
  EXPECT_EQ(small.threads, 128u);
  EXPECT_EQ(small.splits, 2u) << "96 tiles for 132 cores, which have room for 264";
  EXPECT_EQ(small.ahead, 2u);
  const MatrixTile large = tile_of(32, {16, 16, 16}, 128, 16 * 128);
  EXPECT_EQ(large.threads, 128u);
  EXPECT_EQ(large.rows(), 64u);
  EXPECT_EQ(large.splits, 8u) << "32 tiles, for 132 cores, which have room for 264";
  EXPECT_EQ(large.ahead, 2u);
  EXPECT_EQ(matrix_tile(caps, Type::kQ4_K, 128, 128, 16 * 128, false).threads, 128u);
  EXPECT_EQ(matrix_tile(caps, Type::kF32, 128, 128, 16 * 128, false).threads, 256u) << "more registers than there are";
  EXPECT_EQ(matmul_matrix_tile(caps, 128, 16 * 128, 1).ahead, 1u);
  for (const std::uint32_t rows : {16u, 64u, 128u, 512u}) {
    for (const std::uint32_t outputs : {64u, 2048u, 4096u, 16384u}) {
      const MatrixTile xe2 = tile_of(16, {8, 16, 16}, rows, outputs);
      ASSERT_NE(xe2.lanes, 0u);
      EXPECT_LE(xe2.rows(), 128u) << rows << " x " << outputs;
      EXPECT_EQ(xe2.ahead, 1u);
    }
  }
  EXPECT_EQ(tile_of(16, {8, 16, 16}, 128, 2048).splits, 4u) << "32 tiles, of 64 x 128";
  EXPECT_EQ(matmul_matrix_tile(caps, 128, 2048, 1).splits, 1u);
}

/// Experts' rows fill tiles of their own, so that a device is filled by all of them together; sums are finished at once.
TEST(ExpertTilesTest, AreAsManyAsExpertsTogether) {
  runtime::DeviceCaps caps;
  caps.type = runtime::DeviceType::kDiscrete;
  caps.max_invocations = 1024, caps.max_workgroup_subgroups = 64, caps.max_shared_bytes = 49152;
  caps.cores = 128;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 32;
  caps.matrices = {{16, 16, 16}};
  EXPECT_EQ(matrix_tile(caps, Type::kF16, 128, 128, 1024, false, 16).rows(), 128u);
  EXPECT_EQ(matrix_tile(caps, Type::kF16, 24, 128, 1024, false, 16).rows(), 32u);
  EXPECT_EQ(float_tile(caps, 128, 128, 1024, false, 16).rows(), 64u);
  EXPECT_EQ(float_tile(caps, 128, 128, 1024, false).rows(), 16u) << "8 tiles of 128 outputs, for 128 cores";
  EXPECT_EQ(many_dots_tile(caps, 128, 128, 1024, false, 16).rows(), 64u);
  EXPECT_EQ(many_dots_tile(caps, 128, 1, 1024, false).rows(), 16u);
  EXPECT_EQ(matrix_tile(caps, Type::kF16, 16, 128, 64, false, 2).splits, 1u);
  EXPECT_EQ(float_tile(caps, 16, 128, 64, false, 2).splits, 1u);
  EXPECT_EQ(many_dots_tile(caps, 16, 128, 64, false, 2).splits, 1u);
}

/// As many rows as there are, but not so many that cores are idle.
TEST(DotTileTest, OfManyRowsFitsTheDevice) {
  const auto tile_of = [](std::uint32_t least, std::uint32_t most, std::uint32_t rows, std::uint32_t outputs, std::uint32_t cores = 80, std::uint32_t invocations = 1024, std::uint32_t shared_bytes = 32768) {
    runtime::DeviceCaps caps;
    caps.type = runtime::DeviceType::kDiscrete;
    caps.max_invocations = invocations;
    caps.max_shared_bytes = shared_bytes;
    caps.cores = cores;
    caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = most;
    caps.fused_fma = true;
    return many_dots_tile(caps, rows, 1, outputs, false);
  };
  for (const auto& [least, most, lanes, largest] : {std::array{32u, 32u, 32u, 64u}, {32u, 64u, 32u, 128u}, {16u, 32u, 16u, 64u}, {8u, 32u, 8u, 64u}}) {
    EXPECT_EQ(tile_of(least, most, 512, 1 << 20).lanes, lanes);
    EXPECT_EQ(tile_of(least, most, 512, 1 << 20).rows(), largest);
    EXPECT_EQ(tile_of(least, most, 512, 1024, 128).rows(), 32u) << "as many tiles as cores";
    EXPECT_EQ(tile_of(least, most, 512, 1024, 80).rows(), 64u) << "128 tiles of 32 would take two rounds, 256 of 16 four";
    EXPECT_EQ(tile_of(least, most, 20, 1 << 20).rows(), 32u);
    EXPECT_EQ(tile_of(least, most, 9, 1 << 20).rows(), 16u);
    EXPECT_EQ(tile_of(least, most, 512, 1 << 20, 80, 1024, 16384).rows(), 32u) << "more take 19 KB";
    EXPECT_EQ(tile_of(least, most, 512, 1 << 20, 80, 1024, 8192).lanes, 0u) << "the least take 15 KB";
    EXPECT_TRUE(tile_of(least, most, 512, 4096).pays);
    EXPECT_TRUE(tile_of(least, most, 512, 4096).fused_fma);
  }
  EXPECT_EQ(tile_of(64, 128, 512, 4096).rows(), 16u) << "more spill";
  EXPECT_FALSE(tile_of(64, 128, 512, 4096).pays) << "nobody has counted that";
  runtime::DeviceCaps unknown;
  unknown.max_invocations = 1024, unknown.max_shared_bytes = 32768;
  unknown.min_required_subgroup_size = unknown.max_required_subgroup_size = 8;
  EXPECT_EQ(many_dots_tile(unknown, 512, 1, 4096, false).lanes, 8u);
  EXPECT_FALSE(many_dots_tile(unknown, 512, 1, 4096, false).fused_fma);
  EXPECT_EQ(tile_of(4, 4, 512, 4096).lanes, 0u) << "four lanes share no scale";
  EXPECT_EQ(tile_of(32, 32, 512, 4096, 80, 128).lanes, 0u) << "a workgroup is 256";
}

TEST(HalfTileTest, FitsTheDevice) {
  runtime::DeviceCaps caps;
  caps.type = runtime::DeviceType::kDiscrete;
  caps.max_invocations = 1024, caps.max_workgroup_subgroups = 64, caps.max_shared_bytes = 32768;
  caps.cores = 72;
  caps.min_required_subgroup_size = 32, caps.max_required_subgroup_size = 64;
  EXPECT_EQ(half_tile(caps, 512, 128, 4096, false).rows(), 64u);
  EXPECT_EQ(half_tile(caps, 512, 128, 4096, false).lanes, 32u);
  EXPECT_EQ(half_tile(caps, 9, 1, 4096, false).rows(), 32u) << "fewer would leave invocations with nothing to bring";
  EXPECT_EQ(half_tile(caps, 32, 128, 512, false).splits, 16u) << "4 tiles for 72 cores";
  caps.max_shared_bytes = 16384;
  EXPECT_EQ(half_tile(caps, 512, 128, 4096, false).rows_of_invocation, 0u);
  caps.max_shared_bytes = 32768, caps.max_invocations = 128;
  EXPECT_EQ(half_tile(caps, 512, 128, 4096, false).rows_of_invocation, 0u);
}

/// The large tile where it leaves no core idle, of as many rows as there are; else a small one, that every device can have.
TEST(FloatTileTest, FitsTheDevice) {
  const auto caps_of = [](std::uint32_t least, std::uint32_t most, std::uint32_t cores) {
    runtime::DeviceCaps caps;
    caps.type = runtime::DeviceType::kDiscrete;
    caps.max_invocations = 1024;
    caps.max_workgroup_subgroups = 64;
    caps.max_shared_bytes = 32768;
    caps.cores = cores;
    caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = most;
    return caps;
  };
  struct Class {
    std::uint32_t least, most, lanes, rows, outputs;
  };
  for (const Class& one : {Class{32, 32, 0, 64, 128}, {16, 32, 16, 64, 128}, {8, 32, 8, 64, 128}, {32, 64, 32, 128, 128}, {64, 128, 0, 32, 64}, {4, 128, 0, 32, 64}, {0, 0, 0, 32, 64}}) {
    SCOPED_TRACE(::testing::Message() << one.least << " to " << one.most);
    const FloatTile tile = float_tile(caps_of(one.least, one.most, 40), 512, 1, 4096, false);
    EXPECT_EQ(tile.lanes, one.lanes);
    EXPECT_EQ(tile.rows(), one.rows);
    EXPECT_EQ(tile.outputs(), one.outputs);
    EXPECT_LE(float_tile(caps_of(one.least, one.most, 4000), 512, 1, 4096, false).rows(), 32u) << "few tiles for many cores";
    EXPECT_EQ(float_tile(caps_of(one.least, one.most, 4000), 512, 1, 4096, false).outputs(), 64u);
    const FloatTile half_as_many = float_tile(caps_of(one.least, one.most, 40), tile.rows() / 2, 1, 40 * tile.outputs(), false);
    EXPECT_EQ(half_as_many.rows(), tile.rows() / 2);
    EXPECT_EQ(half_as_many.threads, one.rows == 128 ? 64u : tile.threads) << "of 8 x 16 products an invocation reads less than of 4 x 16";
    for (const std::uint32_t invocations : {32u, 64u, 128u, 256u}) {
      for (const std::uint32_t shared : {16384u, 49152u}) {
        for (const bool glu : {false, true}) {
          for (const std::uint32_t rows : {1u, 2u, 9u, 16u, 17u, 33u, 65u, 4096u}) {
            runtime::DeviceCaps caps = caps_of(one.least, one.most, 1);
            caps.max_invocations = invocations, caps.max_shared_bytes = shared;
            const FloatTile some = float_tile(caps, rows, 1, 128, glu);
            SCOPED_TRACE(::testing::Message() << invocations << " invocations, " << shared << " bytes, " << rows << " rows");
            EXPECT_LE(some.threads, invocations);
            EXPECT_LE(16 * (some.rows() + some.outputs()) * (some.steps + 1) + 64, shared);
            EXPECT_GE(some.rows(), 1u);
            EXPECT_TRUE(some.rows_of_invocation == 1 || some.rows() < 2 * rows) << "of " << some.rows();
            EXPECT_EQ(some.outputs_of_invocation % 2, 0u) << "a gate and an up";
            EXPECT_TRUE(some.lanes == 0 || some.threads % some.lanes == 0);
          }
        }
      }
    }
  }
}

TEST(RowTileTest, HoldsTheRowAndFitsTheDevice) {
  for (const std::uint32_t lanes : {4u, 8u, 16u, 32u, 64u, 128u}) {
    for (const std::uint32_t subgroups : {1u, 16u, 64u}) {
      runtime::DeviceCaps caps;
      caps.max_invocations = 512;
      caps.max_workgroup_subgroups = subgroups;
      caps.min_required_subgroup_size = caps.max_required_subgroup_size = lanes;
      for (std::uint32_t columns = 4; columns <= 10000; columns = columns * 2 + 4) {
        const RowTile tile = row_tile(caps, columns);
        SCOPED_TRACE(::testing::Message() << columns << " columns, " << lanes << " lanes, " << subgroups << " subgroups");
        EXPECT_GE(4 * tile.threads * tile.quads, columns);
        EXPECT_LT(4 * tile.threads * (tile.quads - 1), columns);
        EXPECT_LE(tile.threads, caps.max_invocations);
        EXPECT_EQ(tile.threads % tile.lanes, 0u);
        EXPECT_LE(tile.threads / tile.lanes, subgroups);
      }
    }
  }
}

TEST(RowTileTest, ShortRowsHaveNarrowSubgroups) {
  runtime::DeviceCaps caps;
  caps.max_invocations = 1024;
  caps.min_required_subgroup_size = 32, caps.max_required_subgroup_size = 64;
  EXPECT_EQ(row_tile(caps, 128).lanes, 32u);
  EXPECT_EQ(row_tile(caps, 256).lanes, 64u);
}

/// Whose values of weights come by pairs, and whose lanes load columns of a matrix.
TEST(MatrixTileTest, FollowsTheDevice) {
  const auto tile_of = [](std::uint32_t least, std::uint32_t most, runtime::MatrixShape shape, Type weight, runtime::DeviceType type = runtime::DeviceType::kDiscrete) {
    runtime::DeviceCaps caps;
    caps.type = type;
    caps.max_invocations = 1024;
    caps.max_shared_bytes = 65536;
    caps.min_required_subgroup_size = least, caps.max_required_subgroup_size = most;
    caps.matrices = {shape};
    caps.columns_in_lanes = true;
    return matrix_tile(caps, weight, 512, 128, 4096, false);
  };
  EXPECT_TRUE(tile_of(32, 32, {16, 16, 16}, Type::kQ4_K).pairs);
  EXPECT_FALSE(tile_of(32, 64, {16, 16, 16}, Type::kQ4_K).pairs) << "AMD";
  EXPECT_FALSE(tile_of(8, 32, {8, 8, 16}, Type::kQ4_0).pairs) << "Intel";
  EXPECT_TRUE(tile_of(8, 8, {8, 8, 8}, Type::kQ4_0, runtime::DeviceType::kCpu).pairs);
  EXPECT_FALSE(tile_of(8, 8, {8, 8, 8}, Type::kQ4_K, runtime::DeviceType::kCpu).pairs) << "whose scales lavapipe cuts off";
  EXPECT_TRUE(tile_of(8, 32, {8, 8, 16}, Type::kF16).columns_in_lanes);
  EXPECT_TRUE(tile_of(16, 32, {8, 16, 16}, Type::kF16).columns_in_lanes);
  EXPECT_FALSE(tile_of(16, 32, {8, 8, 16}, Type::kF16).columns_in_lanes) << "fewer columns than lanes";
  EXPECT_FALSE(tile_of(8, 8, {8, 8, 8}, Type::kF16).columns_in_lanes) << "of other depth";
}

TEST(SubgroupTileTest, NoSizeIsNoTile) { EXPECT_EQ(subgroup_tile({}, Type::kF16, 1, false).lanes, 0u); }

}  // namespace
}  // namespace rondo::graph::tiles_test
