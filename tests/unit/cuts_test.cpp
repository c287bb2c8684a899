#include <gtest/gtest.h>

#include "graph/lowering.h"

namespace rondo::graph::cuts_test {
namespace {

using runtime::DeviceCaps;
using runtime::Program;
using runtime::Segment;

/// A device on which cost is easy to follow: 1 byte per ns, 1 operation per ns, 1000 ns a dispatch.
DeviceCaps slow_device() {
  DeviceCaps caps;
  caps.bytes_per_s = 1e9;
  caps.flops_per_s = 1e9;
  caps.dispatch_ns = 1000;
  return caps;
}

Program program_of(const std::vector<double>& bytes) {
  Program program;
  for (double n : bytes) program.dispatches.emplace_back().cost.bytes = n;
  return program;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges(const std::vector<Segment>& segments) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Segment& segment : segments) pairs.emplace_back(segment.first, segment.last);
  return pairs;
}

using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST(CutsTest, CostIsTheSlowerOfMovingAndComputing) {
  EXPECT_DOUBLE_EQ(predict_ns({500, 0}, slow_device()), 1500);
  EXPECT_DOUBLE_EQ(predict_ns({500, 800}, slow_device()), 1800);
  EXPECT_DOUBLE_EQ(predict_ns({0, 0}, slow_device()), 1000);
}

TEST(CutsTest, SegmentsStayBelowTheBound) {
  const Program program = program_of({1000, 2000, 500, 3000, 0, 0, 0});  // costs 2000, 3000, 1500, 4000, 1000, 1000, 1000
  const std::vector<Segment> segments = cut_segments(program, slow_device(), 5000);
  EXPECT_EQ(ranges(segments), (Ranges{{0, 2}, {2, 3}, {3, 5}, {5, 7}}));
  EXPECT_DOUBLE_EQ(segments[0].cost_ns, 5000);
  EXPECT_DOUBLE_EQ(segments[3].cost_ns, 2000);
}

TEST(CutsTest, AnOverlongDispatchIsASegmentOfItsOwn) {
  const std::vector<Segment> segments = cut_segments(program_of({0, 1e6, 0}), slow_device(), 2500);
  EXPECT_EQ(ranges(segments), (Ranges{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_DOUBLE_EQ(segments[1].cost_ns, 1e6 + 1000);
}

TEST(CutsTest, ABoundBelowEveryDispatchCutsAtEach) {
  DeviceCaps caps;  // as reported defaults: 5000 ns a dispatch, so a bound of 1 us holds one at most
  EXPECT_EQ(ranges(cut_segments(program_of({0, 0, 0, 0}), caps, 1000)), (Ranges{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

TEST(CutsTest, AWideBoundCutsNowhereAndNothingNeedsNoSegment) {
  EXPECT_EQ(ranges(cut_segments(program_of({1, 2, 3}), slow_device(), 1e12)), (Ranges{{0, 3}}));
  EXPECT_TRUE(cut_segments({}, slow_device(), 1e12).empty());
}

/// Whatever the bound: every dispatch in order, in exactly one segment, and costs that add up.
TEST(CutsTest, SegmentsCoverTheProgram) {
  std::vector<double> bytes;
  double total = 0;
  for (int i = 0; i < 57; ++i) {
    bytes.push_back(i * 37 % 11 * 1000.0);
    total += bytes.back() + 1000;
  }
  for (double bound : {1.0, 1000.0, 3700.0, 9000.0, 25000.0, 1e9}) {
    const std::vector<Segment> segments = cut_segments(program_of(bytes), slow_device(), bound);
    std::uint32_t next = 0;
    double cost = 0;
    for (const Segment& segment : segments) {
      EXPECT_EQ(segment.first, next);
      EXPECT_GT(segment.last, segment.first);
      if (segment.last - segment.first > 1) {
        EXPECT_LE(segment.cost_ns, bound);
      }
      next = segment.last;
      cost += segment.cost_ns;
    }
    EXPECT_EQ(next, 57u);
    EXPECT_DOUBLE_EQ(cost, total);
  }
}

}  // namespace
}  // namespace rondo::graph::cuts_test
