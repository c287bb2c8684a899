// Caches that keep a window alone: what they hold, what they forget, and what a rewind beyond it brings back.
#include <gtest/gtest.h>

#include "models/network.h"
#include "tests/device/session_harness.h"
#include "tests/support/family_gguf.h"

namespace rondo::tests::ring_test {
namespace {

constexpr std::uint32_t kWindow = 9, kContext = 1400;

/// A Llama of two layers whose tokens see nine, themselves included: its logits depend on 17 tokens, wherever these are.
class RingTest : public ::testing::TestWithParam<KvType> {
 protected:
  RingTest() : ids_(made_up_tokens(1300, 300)) {
    FamilyFile family = family_files().front();
    family.window = kWindow;
    family.context = kContext;
    file_ = build_family_file(family, 1);
    ModelOptions options;
    options.kv_type = GetParam();
    model_ = std::make_unique<Model>(load_model_from(file_, options));
  }

  Session session() const {
    SessionOptions options = without_model_stops();
    options.n_ctx = kContext;
    return make_session(*model_, options);
  }
  /// Logits after `tokens`, which are appended.
  std::vector<float> last_logits(Session& session, std::span<const std::int32_t> tokens) const {
    const Result<std::vector<float>> all = session.wait_logits(tokens);
    EXPECT_TRUE(all.ok()) << all.status().message();
    return all.ok() ? std::vector<float>(all->end() - model_->info().n_vocab, all->end()) : std::vector<float>();
  }
  /// The same of a session that has seen nothing else.
  std::vector<float> logits_alone(std::span<const std::int32_t> tokens) const {
    Session fresh = session();
    return last_logits(fresh, tokens.last(std::min<std::size_t>(tokens.size(), 40)));
  }
  void expect_near(const std::vector<float>& found, const std::vector<float>& expected) const {
    // Angles of RoPE at other positions are rounded otherwise.
    EXPECT_LE(relative_to_range(found, expected), GetParam() == KvType::kF32 ? 1e-5 : GetParam() == KvType::kF16 ? 3e-3 : 5e-2);
  }

  const Tokens ids_;
  std::string file_;
  std::unique_ptr<Model> model_;
};

TEST_P(RingTest, TakesTheWindowsMemoryAndNotTheContexts) {
  Session long_one = session();
  SessionOptions options = without_model_stops();
  options.n_ctx = kWindow - 1 + models::kMostStepRows;
  const Session short_one = make_session(*model_, options);
  EXPECT_EQ(long_one.statistics().kv_bytes, short_one.statistics().kv_bytes);
}

TEST_P(RingTest, EveryPositionSeesItsWindow) {
  Session whole = session();
  std::size_t at = 0;
  for (const std::size_t n : {std::size_t{3}, std::size_t{500}, std::size_t{16}, std::size_t{1}, std::size_t{1}, std::size_t{1}, std::size_t{513}, std::size_t{7}, std::size_t{200}}) {
    const auto part = std::span(ids_).subspan(at, n);
    at += n;
    expect_near(last_logits(whole, part), logits_alone(std::span(ids_).first(at)));
  }
  EXPECT_EQ(whole.tokens().size(), at);
}

TEST_P(RingTest, TokensAreThoseOfASessionThatHasSeenNothingElse) {
  Session whole = session(), alone = session();
  const auto all = std::span(ids_);
  EXPECT_EQ(continue_with(whole, all, 12), continue_with(alone, all.last(64), 12));
}

TEST_P(RingTest, ARewindIsForgottenHistory) {
  const auto all = std::span(ids_);
  for (const std::uint32_t to : {1299u, 1291u, 800u, 789u, 788u, 787u, 700u, 17u, 0u}) {
    Session again = session();
    (void)last_logits(again, all);
    RONDO_ASSERT_OK(again.rewind(to));
    EXPECT_EQ(again.tokens().size(), to);
    EXPECT_FALSE(again.rewind(to + 1).ok()) << to;
    RONDO_ASSERT_OK(again.rewind(to));
    Tokens expected(all.begin(), all.begin() + to);
    const Tokens more = {5, 6, 7};
    expected.insert(expected.end(), more.begin(), more.end());
    expect_near(last_logits(again, more), logits_alone(expected));
    EXPECT_EQ(Tokens(again.tokens().begin(), again.tokens().end()), expected) << to;
  }
}

/// One rewind after another, before what was forgotten is there again.
TEST_P(RingTest, RewindsAfterRewinds) {
  const auto all = std::span(ids_);
  Session again = session();
  (void)last_logits(again, all);
  for (const std::uint32_t to : {600u, 598u, 20u}) RONDO_ASSERT_OK(again.rewind(to));
  EXPECT_FALSE(again.append({}, 3).ok()) << "there is nothing to continue from, as after any rewind";
  EXPECT_EQ(continue_with(again, all.subspan(20, 30), 5), [&] {
    Session alone = session();
    return continue_with(alone, all.first(50), 5);
  }());
}

INSTANTIATE_TEST_SUITE_P(Types, RingTest, ::testing::Values(KvType::kF32, KvType::kF16, KvType::kQ8_0), [](const ::testing::TestParamInfo<KvType>& each) {
  return std::string(each.param == KvType::kF32 ? "f32" : each.param == KvType::kF16 ? "f16" : "q8_0");
});

}  // namespace
}  // namespace rondo::tests::ring_test
