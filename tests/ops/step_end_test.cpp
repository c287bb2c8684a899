#include <cstring>

#include <gtest/gtest.h>

#include "lib/step_state.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::step_end_test {
namespace {

using graph::Op;
using graph::TensorId;

struct End {
  const char* name;
  std::int32_t position, count;
  bool active = true;
  bool with_token = true;
  std::int32_t token = 7;
  std::vector<std::int32_t> stop_ids;
};

class StepEndTest : public ::testing::TestWithParam<End> {};

TEST_P(StepEndTest, ChangesStateTokensAndMirror) {
  const End& s = GetParam();
  constexpr std::int64_t kContext = 41;
  for (std::int64_t sequences : {1, 3, 65}) {
    OpCase c(sequences);
    const auto n = static_cast<std::size_t>(sequences * kContext);
    const TensorId tokens = c.step_i32("tokens", {sequences, kContext}, std::vector<std::int32_t>(n, 100));
    const TensorId mirror = c.step_i32("mirror", {sequences, kContext}, std::vector<std::int32_t>(n, 200));
    const TensorId token = s.with_token ? c.i32("token", {sequences}, std::vector<std::int32_t>(static_cast<std::size_t>(sequences), s.token)) : graph::kNone;
    for (std::int64_t b = 0; b < sequences; ++b) {
      c.set_count(b, s.count, s.active && b != 1);
      c.set_state(b, RONDO_STATE_POSITION, b % 2 == 0 ? s.position : 3);
      c.set_state(b, RONDO_STATE_N_STOP, static_cast<std::int32_t>(s.stop_ids.size()));
      for (std::size_t i = 0; i < s.stop_ids.size() && i < RONDO_STATE_MAX_STOP_IDS; ++i) c.set_state(b, RONDO_STATE_STOP_IDS + static_cast<int>(i), s.stop_ids[i]);
    }
    c.graph.add(Op::step_end, {token, tokens, mirror, c.state});
    EXPECT_TRUE(agrees(c, kExact)) << s.name << ", " << sequences << " sequences";
  }
}

std::vector<std::int32_t> last_of(std::size_t n, std::int32_t id) {
  std::vector<std::int32_t> ids(n, -5);
  ids.back() = id;
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Steps, StepEndTest,
                         ::testing::Values(End{"decode", 5, 1, true, true, 7, {}}, End{"prefill", 0, 33, true, true, 7, {8}}, End{"no_token", 4, 9, true, false, 7, {7}},
                                           End{"inactive", 5, 1, false, true, 7, {}}, End{"stop_id", 5, 1, true, true, 7, {3, 7}},
                                           End{"last_of_16_stop_ids", 5, 1, true, true, 7, last_of(16, 7)}, End{"a_17th_stop_id", 5, 1, true, true, 7, last_of(17, 7)},
                                           End{"last_slot", 39, 1, true, true, 7, {}}, End{"one_before", 38, 1, true, true, 7, {}}, End{"full_context", 40, 1, true, true, 7, {}},
                                           End{"full_by_prefill", 0, 41, true, true, 7, {}}, End{"full_without_token", 0, 41, true, false, 7, {}}),
                         [](const ::testing::TestParamInfo<End>& tested) { return std::string(tested.param.name); });

/// Three tokens by three replays of one recording: the state moves on its own.
TEST(StepEndTest, ReplaysFollowEachOther) {
  OpCase c;
  const TensorId tokens = c.step_i32("tokens", {1, 11}, std::vector<std::int32_t>(11, 0)), mirror = c.step_i32("mirror", {1, 11}, std::vector<std::int32_t>(11, 0));
  c.set_count(0, 2);
  c.graph.add(Op::step_end, {c.i32("token", {1}, std::vector<std::int32_t>{9}), tokens, mirror, c.state});
  RunOptions options;
  options.repeats = 3;
  options.restore = false;
  const Result<DeviceRun> run = run_on_device(c, options);
  ASSERT_TRUE(run.ok()) << run.status().message();
  std::vector<std::int32_t> found(11);
  std::memcpy(found.data(), run->after[static_cast<std::size_t>(c.graph.tensor(mirror).storage)].data(), 44);
  EXPECT_EQ(found, (std::vector<std::int32_t>{0, 0, 9, 9, 9, 0, 0, 0, 0, 0, 0}));
  std::int32_t position = 0;
  std::memcpy(&position, run->after[static_cast<std::size_t>(c.graph.state)].data() + RONDO_STATE_POSITION * 4, 4);
  EXPECT_EQ(position, 4);
}

}  // namespace
}  // namespace rondo::tests::step_end_test
