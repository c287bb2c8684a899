#include <cstring>

#include <gtest/gtest.h>

#include "lib/step_state.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::step_begin_test {
namespace {

using graph::Op;
using graph::TensorId;

struct Step {
  std::int64_t rows;
  std::int32_t position, count;
};

class StepBeginTest : public ::testing::TestWithParam<Step> {};

/// ids and positions, whose rows from the count on stay untouched; start, count, lengths and last have one per sequence.
TEST_P(StepBeginTest, HandsOutTheStepsRows) {
  const Step s = GetParam();
  constexpr std::int64_t kContext = 113;
  OpCase c(2);
  std::vector<std::int32_t> ids(2 * kContext);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(1000 + i);
  const TensorId tokens = c.step_i32("tokens", {2, kContext}, ids);
  c.set_count(0, s.count);
  c.set_state(0, RONDO_STATE_POSITION, s.position);
  c.set_count(1, 1);
  c.set_state(1, RONDO_STATE_POSITION, 7);
  c.graph.add(Op::step_begin, {tokens, c.state}, graph::StepBeginAttributes{s.rows});
  const std::vector<TensorId> outputs = c.graph.last_outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (i < 2) c.output(outputs[i], 1);
    else if (s.count > 0) c.output(outputs[i], 0);  // a count of 0 would call them invalid rows
  }
  EXPECT_TRUE(agrees(c, kExact));
}

INSTANTIATE_TEST_SUITE_P(Steps, StepBeginTest,
                         ::testing::Values(Step{1, 0, 1}, Step{1, 112, 1}, Step{7, 5, 7}, Step{7, 5, 3}, Step{8, 0, 0}, Step{64, 37, 41}, Step{65, 0, 65}, Step{89, 0, 89}));

/// The reference itself, against numbers written down.
TEST(StepBeginTest, Values) {
  OpCase c;
  const TensorId tokens = c.step_i32("tokens", {1, 6}, std::vector<std::int32_t>{10, 11, 12, 13, 14, 15});
  c.set_count(0, 2);
  c.set_state(0, RONDO_STATE_POSITION, 3);
  c.graph.add(Op::step_begin, {tokens, c.state}, graph::StepBeginAttributes{2});
  for (TensorId id : std::vector<TensorId>(c.graph.last_outputs())) c.output(id, 1);
  const auto after = c.run_reference();
  ASSERT_TRUE(after.ok());
  const std::vector<std::vector<std::int32_t>> expected = {{13, 14}, {3, 4}, {3}, {2}, {5}, {1}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::vector<std::int32_t> found(expected[i].size());
    std::memcpy(found.data(), (*after)[after->size() - expected.size() + i].data(), found.size() * 4);
    EXPECT_EQ(found, expected[i]) << i;
  }
}

TEST(StepBeginTest, AnInactiveSequenceIsLeftAlone) {
  OpCase c;
  const TensorId tokens = c.step_i32("tokens", {1, 41}, std::vector<std::int32_t>(41, 5));
  c.set_count(0, 3, false);
  c.graph.add(Op::step_begin, {tokens, c.state}, graph::StepBeginAttributes{7});
  const std::vector<TensorId> outputs = c.graph.last_outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) c.output(outputs[i], i < 2 ? 1 : 0);
  EXPECT_TRUE(agrees(c, kExact));
}

}  // namespace
}  // namespace rondo::tests::step_begin_test
