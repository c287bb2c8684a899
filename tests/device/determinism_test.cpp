// The same device, driver, Program and chunks give the same bits, whatever the burst and the cuts, as often as they run.
#include <map>
#include <set>
#include <string>

#include "models/session_state.h"
#include "runtime/hash.h"
#include "runtime/transfer.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::determinism_test {
namespace {

constexpr std::uint32_t kReplays = 50;

/// Whether steps compute what is in it; the step state and the tokens, which the host writes too, are compared as tokens.
bool is_computed(const runtime::Binding& binding, const models::StepSet& steps, const std::vector<const runtime::Buffer*>& buffers) {
  const runtime::Buffer* buffer = buffers[binding.range.buffer];
  const bool step = buffer == &steps.state() || buffer == &steps.tokens() || buffer == &steps.mirror();
  return binding.access != runtime::Access::kRead && !step && buffer->size_bytes() > 0;
}

/// Zeros wherever steps write: what a step leaves alone must be the same in all sessions.
void clear_scratch(Session& session) {
  runtime::Device& device = test_runtime_device();
  runtime::CommandList commands(device);
  ASSERT_TRUE(commands.begin().ok());
  const std::vector<const runtime::Buffer*> buffers = session.internal().steps().buffer_table();
  std::vector<bool> cleared(buffers.size());
  for (const runtime::Program* program : session.internal().steps().programs()) {
    for (const runtime::Dispatch& dispatch : program->dispatches) {
      for (const runtime::Binding& binding : dispatch.bindings) {
        if (!is_computed(binding, session.internal().steps(), buffers) || cleared[binding.range.buffer]) continue;
        cleared[binding.range.buffer] = true;
        commands.fill(*buffers[binding.range.buffer], 0);
      }
    }
  }
  const Result<VkCommandBuffer> recorded = commands.end();
  ASSERT_TRUE(recorded.ok());
  const VkCommandBuffer list[] = {*recorded};
  const runtime::Batch batch{list};
  const Result<std::uint64_t> value = device.submit({&batch, 1});
  ASSERT_TRUE(value.ok());
  RONDO_ASSERT_OK(device.wait(*value, ~0ull));
}

/// The hash of every range that a dispatch of any step writes, by the dispatch's place and label.
std::map<std::string, std::uint64_t> hashes(Session& session) {
  std::map<std::string, std::uint64_t> all;
  const std::vector<const runtime::Buffer*> buffers = session.internal().steps().buffer_table();
  std::vector<std::vector<std::byte>> contents(buffers.size());
  for (const runtime::Program* program : session.internal().steps().programs()) {
    for (std::size_t i = 0; i < program->dispatches.size(); ++i) {
      const runtime::Dispatch& dispatch = program->dispatches[i];
      for (std::size_t b = 0; b < dispatch.bindings.size(); ++b) {
        const runtime::Binding& binding = dispatch.bindings[b];
        if (!is_computed(binding, session.internal().steps(), buffers)) continue;
        std::vector<std::byte>& bytes = contents[binding.range.buffer];
        if (bytes.empty()) {
          bytes.resize(buffers[binding.range.buffer]->size_bytes());
          EXPECT_TRUE(runtime::read_back(test_runtime_device(), *buffers[binding.range.buffer], 0, bytes).ok());
        }
        const auto range = std::span<const std::byte>(bytes).subspan(binding.range.offset_bytes, binding.range.size_bytes);
        all[program->name + " " + std::to_string(i) + " " + dispatch.label + " binding " + std::to_string(b)] = runtime::fnv1a(range);
      }
    }
  }
  return all;
}

struct Way {
  std::uint32_t burst;
  double max_segment_us;
};

class DeterminismTest : public TinyModelTest {};

TEST_F(DeterminismTest, EveryTensorIsTheSameForAllBurstsAndCuts) {
  const Tokens input = prompt(19);
  std::map<std::string, std::uint64_t> first;
  Tokens first_tokens;
  std::set<std::uint32_t> n_segments;
  for (const Way& way : {Way{1, 100'000}, Way{3, 100'000}, Way{16, 100'000}, Way{1, 1}, Way{16, 1}, Way{3, 40}, Way{16, 200}, Way{1, 100'000}}) {
    SessionOptions options = without_model_stops(way.burst);
    options.max_segment_us = way.max_segment_us;
    options.sampling.temperature = 0.8f;
    options.seed = 5;
    Session session = make_session(model(), options);
    clear_scratch(session);
    const Tokens tokens = continue_with(session, input, kReplays + 1);  // the first one comes from the prefill
    const std::map<std::string, std::uint64_t> found = hashes(session);
    n_segments.insert(session.statistics().segments_per_decode_step);
    if (first.empty()) {
      first = found;
      first_tokens = tokens;
      EXPECT_EQ(tokens.size(), kReplays + 1);
      EXPECT_GT(first.size(), 20u);
      continue;
    }
    EXPECT_EQ(tokens, first_tokens) << "burst " << way.burst << ", cuts at " << way.max_segment_us << " us";
    for (const auto& [name, hash] : first) EXPECT_EQ(found.at(name), hash) << name << ", burst " << way.burst << ", cuts at " << way.max_segment_us << " us";
  }
  EXPECT_GE(n_segments.size(), 3u) << "the cuts are not several";
}

/// Replays of one recording from the same beginning, without any other session's work between them.
TEST_F(DeterminismTest, ReplaysFromTheSamePositionAgree) {
  SessionOptions options = without_model_stops(1);
  Session session = make_session(model(), options);
  clear_scratch(session);
  const Tokens input = prompt(8);
  std::map<std::string, std::uint64_t> first;
  for (int replay = 0; replay < 10; ++replay) {
    RONDO_ASSERT_OK(session.rewind(0));
    (void)continue_with(session, input, 2);
    const std::map<std::string, std::uint64_t> found = hashes(session);
    if (replay == 0) first = found;
    for (const auto& [name, hash] : first) ASSERT_EQ(found.at(name), hash) << name << ", replay " << replay;
  }
}

}  // namespace
}  // namespace rondo::tests::determinism_test
