// The references of step_begin and step_end, against values written down: they are the oracle of the kernels.
#include <cstring>
#include <optional>

#include <gtest/gtest.h>

#include "lib/step_state.h"
#include "tools/check/op_case.h"

namespace rondo::graph::step_state_test {
namespace {

using check::OpCase;

constexpr std::int32_t kContext = 8;

struct State {
  std::int32_t position = 0, count = 1, active = 1;
  std::vector<std::int32_t> stop_ids;
  bool operator==(const State&) const = default;
};

struct After {
  State state;
  std::vector<std::int32_t> tokens, mirror;
};

std::vector<std::int32_t> words_of(const std::vector<std::byte>& bytes) {
  std::vector<std::int32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

After step_end(const State& state, std::optional<std::int32_t> token) {
  OpCase c;
  const TensorId tokens = c.step_i32("tokens", {1, kContext}, std::vector<std::int32_t>(kContext, -1));
  const TensorId mirror = c.step_i32("mirror", {1, kContext}, std::vector<std::int32_t>(kContext, -2));
  c.set_count(0, state.count, state.active != 0);
  c.set_state(0, RONDO_STATE_POSITION, state.position);
  c.set_state(0, RONDO_STATE_N_STOP, static_cast<std::int32_t>(state.stop_ids.size()));
  for (std::size_t i = 0; i < state.stop_ids.size(); ++i) c.set_state(0, RONDO_STATE_STOP_IDS + static_cast<int>(i), state.stop_ids[i]);
  const TensorId id = token ? c.i32("token", {1}, std::vector<std::int32_t>{*token}) : kNone;
  c.graph.add(Op::step_end, {id, tokens, mirror, c.state});
  const auto after = c.run_reference();
  EXPECT_TRUE(after.ok()) << after.status().message();
  const auto words = [&](StorageId storage) { return words_of((*after)[static_cast<std::size_t>(storage)]); };
  const std::vector<std::int32_t> left = words(c.graph.state);
  return {{left[RONDO_STATE_POSITION], left[RONDO_STATE_COUNT], left[RONDO_STATE_ACTIVE], state.stop_ids}, words(c.graph.tensor(tokens).storage), words(c.graph.tensor(mirror).storage)};
}

TEST(StepEndReferenceTest, ATokenIsAppendedAtTheNewPosition) {
  const After after = step_end({2, 3, 1, {}}, 42);
  EXPECT_EQ(after.state, (State{5, 1, 1, {}}));
  EXPECT_EQ(after.tokens, (std::vector<std::int32_t>{-1, -1, -1, -1, -1, 42, -1, -1}));
  EXPECT_EQ(after.mirror, (std::vector<std::int32_t>{-2, -2, -2, -2, -2, 42, -2, -2}));
}

TEST(StepEndReferenceTest, WithoutATokenOnlyThePositionMoves) {
  const After after = step_end({2, 3, 1, {}}, std::nullopt);
  EXPECT_EQ(after.state, (State{5, 1, 1, {}}));
  EXPECT_EQ(after.tokens, std::vector<std::int32_t>(kContext, -1));
  EXPECT_EQ(after.mirror, std::vector<std::int32_t>(kContext, -2));
}

/// The stop id is there to be seen, but the sequence rests.
TEST(StepEndReferenceTest, AStopIdClearsActive) {
  const After after = step_end({2, 1, 1, {7, 42}}, 42);
  EXPECT_EQ(after.state, (State{3, 1, 0, {7, 42}}));
  EXPECT_EQ(after.mirror[3], 42);
  EXPECT_EQ(step_end({2, 1, 1, {7, 42}}, 41).state.active, 1);
}

TEST(StepEndReferenceTest, TheLastSlotIsWrittenAndEndsTheSequence) {
  const After last = step_end({6, 1, 1, {}}, 42);
  EXPECT_EQ(last.state, (State{7, 1, 0, {}}));
  EXPECT_EQ(last.tokens[7], 42);
  EXPECT_EQ(step_end({5, 1, 1, {}}, 42).state.active, 1);
}

TEST(StepEndReferenceTest, BeyondAFullContextNothingIsWritten) {
  const After after = step_end({4, 4, 1, {}}, 42);
  EXPECT_EQ(after.state, (State{8, 1, 0, {}}));
  EXPECT_EQ(after.tokens, std::vector<std::int32_t>(kContext, -1));
  EXPECT_EQ(after.mirror, std::vector<std::int32_t>(kContext, -2));
}

TEST(StepEndReferenceTest, AnInactiveSequenceDoesNotChange) {
  const After after = step_end({2, 3, 0, {}}, 42);
  EXPECT_EQ(after.state, (State{2, 3, 0, {}}));
  EXPECT_EQ(after.tokens, std::vector<std::int32_t>(kContext, -1));
}

std::vector<std::vector<std::int32_t>> step_begin(const State& state, std::int64_t rows) {
  OpCase c;
  std::vector<std::int32_t> ids(kContext);
  for (std::int32_t i = 0; i < kContext; ++i) ids[static_cast<std::size_t>(i)] = 100 + i;
  const TensorId tokens = c.step_i32("tokens", {1, kContext}, ids);
  c.set_count(0, state.count, state.active != 0);
  c.set_state(0, RONDO_STATE_POSITION, state.position);
  c.graph.add(Op::step_begin, {tokens, c.state}, StepBeginAttributes{rows});
  const auto after = c.run_reference();
  EXPECT_TRUE(after.ok()) << after.status().message();
  std::vector<std::vector<std::int32_t>> outputs;
  for (TensorId id : c.graph.last_outputs()) outputs.push_back(words_of((*after)[static_cast<std::size_t>(c.graph.tensor(id).storage)]));
  return outputs;
}

TEST(StepBeginReferenceTest, RowsUpToTheCount) {
  using Words = std::vector<std::int32_t>;
  EXPECT_EQ(step_begin({2, 3, 1, {}}, 4), (std::vector<Words>{{102, 103, 104, 0}, {2, 3, 4, 0}, {2}, {3}, {5}, {2}}));
  EXPECT_EQ(step_begin({0, 0, 1, {}}, 2), (std::vector<Words>{{0, 0}, {0, 0}, {0}, {0}, {0}, {0}}));
  EXPECT_EQ(step_begin({7, 1, 1, {}}, 1), (std::vector<Words>{{107}, {7}, {7}, {1}, {8}, {0}}));
}

TEST(StepBeginReferenceTest, TokensBeyondTheContextAreNotRead) { EXPECT_EQ(step_begin({6, 4, 1, {}}, 4)[0], (std::vector<std::int32_t>{106, 107, 0, 0})); }

}  // namespace
}  // namespace rondo::graph::step_state_test
