#include <random>

#include <gtest/gtest.h>

#include "models/placement.h"

namespace rondo::models::placement_test {
namespace {

TEST(PlacementTest, BlocksFollowEachOtherAligned) {
  const std::vector<std::uint64_t> sizes = {100, 300, 256, 1};
  const Result<Placement> placed = place_blocks(sizes, 256, 1 << 20, 6);
  ASSERT_TRUE(placed.ok());
  EXPECT_EQ(placed->places, (std::vector<runtime::BufferRange>{{6, 0, 100}, {6, 256, 300}, {6, 768, 256}, {6, 1024, 1}}));
  EXPECT_EQ(placed->buffer_bytes, (std::vector<std::uint64_t>{1025}));
}

TEST(PlacementTest, AFullBufferIsFollowedByAnother) {
  const std::vector<std::uint64_t> sizes = {512, 256, 256, 1024, 1};
  const Result<Placement> placed = place_blocks(sizes, 256, 1024, 0);
  ASSERT_TRUE(placed.ok());
  EXPECT_EQ(placed->places, (std::vector<runtime::BufferRange>{{0, 0, 512}, {0, 512, 256}, {0, 768, 256}, {1, 0, 1024}, {2, 0, 1}}));
  EXPECT_EQ(placed->buffer_bytes, (std::vector<std::uint64_t>{1024, 1024, 1}));
}

TEST(PlacementTest, ABlockBeyondEveryBufferIsRefused) {
  const std::vector<std::uint64_t> sizes = {10, 1025};
  const Result<Placement> placed = place_blocks(sizes, 256, 1024, 0);
  ASSERT_FALSE(placed.ok());
  EXPECT_EQ(placed.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(placed.status().message(), "block 1 has 1025 bytes but a buffer can have 1024");
}

TEST(PlacementTest, NothingNeedsNothing) {
  const Result<Placement> placed = place_blocks({}, 256, 1024, 0);
  ASSERT_TRUE(placed.ok());
  EXPECT_TRUE(placed->buffer_bytes.empty());
}

/// Disjoint, aligned, inside their buffers, whatever the sizes.
TEST(PlacementTest, RandomSizes) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> sizes(1 + random() % 40);
    for (std::uint64_t& size : sizes) size = 1 + random() % 3000;
    const Result<Placement> placed = place_blocks(sizes, 256, 4096, 3);
    ASSERT_TRUE(placed.ok());
    ASSERT_EQ(placed->places.size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const runtime::BufferRange& place = placed->places[i];
      EXPECT_EQ(place.size_bytes, sizes[i]);
      EXPECT_EQ(place.offset_bytes % 256, 0u);
      ASSERT_LT(place.buffer - 3, placed->buffer_bytes.size());
      EXPECT_LE(place.offset_bytes + place.size_bytes, placed->buffer_bytes[place.buffer - 3]);
      EXPECT_LE(placed->buffer_bytes[place.buffer - 3], 4096u);
      if (i > 0 && placed->places[i - 1].buffer == place.buffer) {
        EXPECT_GE(place.offset_bytes, placed->places[i - 1].offset_bytes + sizes[i - 1]);
      }
    }
  }
}

}  // namespace
}  // namespace rondo::models::placement_test
