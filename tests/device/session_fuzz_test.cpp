// Random calls of a session against a plain picture of what it must be: tokens are those that the interpreter chooses, every
// call does what it says or refuses, and it always comes to an end. One thread calls, another cancels.
//
// RONDO_TEST_ROUNDS and RONDO_TEST_SEED change how long and where; a failure names the round's seed and its last calls.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "models/checkpoint.h"
#include "models/reference.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::session_fuzz_test {
namespace {

std::uint32_t number_of(const char* variable, std::uint32_t otherwise) {
  const char* value = std::getenv(variable);
  return value ? static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10)) : otherwise;
}

/// Logits by the interpreter, row after row.
struct Judge {
  std::unique_ptr<const models::Checkpoint> checkpoint;
  std::size_t n_vocab = 0;

  std::vector<float> logits_of(const Tokens& tokens) const {
    Result<std::vector<float>> logits = models::reference_logits(*checkpoint, tokens, graph::Type::kF16);
    EXPECT_TRUE(logits.ok()) << describe(logits.status());
    return std::move(logits).value();
  }
  std::span<const float> row(const std::vector<float>& logits, std::size_t i) const { return std::span(logits).subspan(i * n_vocab, n_vocab); }
  /// The id has the largest logit, or one that can't be told from it.
  static bool chooses(std::span<const float> row, std::int32_t id) {
    const auto [low, high] = std::minmax_element(row.begin(), row.end());
    return *high - row[static_cast<std::size_t>(id)] <= 2e-3f * (*high - *low);
  }
};

/// A session and what it must look like.
class Subject {
 public:
  Subject(const Model& model, const Judge& judge, std::mt19937& random) : model_(model), judge_(judge), random_(random) { renew(); }

  /// One random call.
  void act() {
    switch (below(16)) {
      case 0: case 1: return append();
      case 2: case 3: case 4: return advance();
      case 5: case 6: return take();
      case 7: case 8: return wait();
      case 9: return cancel();
      case 10: return rewind();
      case 11: return generate();
      case 12: return wait_logits();
      case 13: return move();
      case 14: return drive();
      default: return below(4) == 0 ? renew() : act_quickly();
    }
  }
  /// Calls one right after the other, so that the device has hardly done what is submitted.
  void act_quickly() {
    log("quickly");
    for (int i = 0; i < 6; ++i) {
      switch (below(8)) {
        case 0: take(); break;
        case 1: cancel(); break;
        case 2: case 3: case 4: append(); break;
        default: advance();
      }
    }
  }
  /// To its end, however the last call left it.
  void drive() {
    log("drive");
    std::optional<std::thread> other;
    if (below(4) == 0) other.emplace([this, us = below(2000)] { cancel_after(us); });
    for (int fruitless = 0; !session_->idle() && !::testing::Test::HasFailure(); ++fruitless) {
      if (fruitless > 20'000) {
        ADD_FAILURE() << "the session is neither idle nor does it make tokens";
        break;
      }
      RONDO_EXPECT_OK(session_->advance());
      const Status waited = session_->wait(std::chrono::milliseconds(below(3)));
      EXPECT_TRUE(waited.ok() || waited.code() == StatusCode::kTimeout || waited.code() == StatusCode::kCancelled) << describe(waited);
      if (take_some() > 0) fruitless = 0;
    }
    if (other) {
      other->join();
      may_cancel_ = true;
    }
    see();
  }
  /// Its output is that of the interpreter, and its end has its reason.
  void check() {
    see();
    const bool stopped = session_->idle() && session_->stop_reason() == StopReason::kStopId;
    const bool complete = session_->idle() && session_->stop_reason() == StopReason::kLength && wanted_;
    if (complete) {
      EXPECT_EQ(n_made_, *wanted_);
    }
    if (session_->stop_reason() == StopReason::kContext) {
      EXPECT_EQ(picture_.size(), session_->n_ctx());
    }
    if (session_->stop_reason() == StopReason::kCancelled) {
      EXPECT_TRUE(may_cancel_);
    }
    if (picture_.empty() || (n_checked_ >= picture_.size() && !stopped)) return;
    const std::vector<float> logits = judge_.logits_of(picture_);
    for (std::size_t i = std::max<std::size_t>(n_checked_, 1); i < picture_.size(); ++i) {
      if (!is_output_[i]) continue;
      EXPECT_TRUE(Judge::chooses(judge_.row(logits, i - 1), picture_[i])) << "token " << i << " is " << picture_[i];
    }
    n_checked_ = picture_.size();
    if (!stopped) return;
    const std::span<const float> last = judge_.row(logits, picture_.size() - 1);
    EXPECT_TRUE(std::any_of(options_.stop_ids.begin(), options_.stop_ids.end(), [&](std::int32_t id) { return Judge::chooses(last, id); }));
  }
  std::string recent() const {
    std::string text;
    for (const std::string& call : calls_) text += call + "; ";
    return text;
  }

 private:
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  void log(std::string call) {
    calls_.push_back(std::move(call));
    if (calls_.size() > 40) calls_.erase(calls_.begin());
  }
  Tokens some_tokens(std::uint32_t most) {
    Tokens tokens(below(most + 1));
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(below(model_.info().n_vocab));
    return tokens;
  }
  void cancel_after(std::uint32_t us) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    session_->cancel();
  }

  void renew() {
    if (session_) check();
    constexpr std::uint32_t kBursts[] = {0, 1, 3, 16, 64};
    options_ = without_model_stops(kBursts[below(5)], 17 + below(120));
    for (std::uint32_t i = below(12); i > 0; --i) options_.stop_ids.push_back(static_cast<std::int32_t>(below(model_.info().n_vocab)));
    if (below(4) == 0) options_.max_segment_us = 1;
    log("create(burst " + std::to_string(options_.burst) + ", n_ctx " + std::to_string(options_.n_ctx) + ", " + std::to_string(options_.stop_ids.size()) + " stop ids" +
        (options_.max_segment_us < 2 ? ", cut)" : ")"));
    session_.reset();  // with work in flight, or not
    session_.emplace(make_session(model_, options_));
    picture_.clear();
    is_output_.clear();
    untaken_.clear();
    n_checked_ = n_made_ = 0;
    wanted_.reset();
    may_cancel_ = cancel_waits_ = false;
  }

  /// Takes what the session says of itself into the picture: what is new was made, but for `input` at its end.
  void see(std::span<const std::int32_t> input = {}) {
    const Tokens now = all_tokens(*session_);
    if (session_->stop_reason() == StopReason::kCancelled && now.size() < picture_.size()) {
      // Input that was not taken is forgotten.
      EXPECT_TRUE(std::none_of(is_output_.begin() + static_cast<std::ptrdiff_t>(now.size()), is_output_.end(), [](bool output) { return output; }));
      truncate(now.size());
    }
    ASSERT_GE(now.size(), picture_.size() + input.size()) << recent();
    ASSERT_TRUE(std::equal(picture_.begin(), picture_.end(), now.begin())) << recent();
    ASSERT_TRUE(std::equal(input.begin(), input.end(), now.end() - static_cast<std::ptrdiff_t>(input.size()))) << recent();
    for (std::size_t i = picture_.size(); i < now.size(); ++i) {
      const bool output = i < now.size() - input.size();
      if (output) untaken_.push_back(now[i]);
      n_made_ += output;
      is_output_.push_back(output);
    }
    picture_ = now;
  }
  void truncate(std::size_t n) {
    picture_.resize(n);
    is_output_.resize(n);
    n_checked_ = std::min(n_checked_, n);
  }
  void asked(std::optional<std::uint32_t> wanted) {
    wanted_ = wanted;
    n_made_ = 0;
    may_cancel_ = cancel_waits_ = false;
  }

  /// A refusal has one of two reasons, and an idle session is not busy.
  void expect_refusal(const Status& status, bool was_idle) {
    EXPECT_TRUE(status.code() == StatusCode::kInvalidArgument || (status.code() == StatusCode::kFailedPrecondition && !was_idle)) << describe(status);
  }
  void append() {
    const std::uint32_t most[] = {0, 0, 12, 12, 12, 12, 12, 90};
    const Tokens input = some_tokens(most[below(8)]);
    const std::uint32_t wanted = below(8) == 0 ? Session::kUnlimited : below(4) == 0 ? 0 : below(25);
    log("append(" + std::to_string(input.size()) + ", " + std::to_string(wanted) + ")");
    const bool was_idle = session_->idle(), fits = session_->tokens().size() + input.size() <= session_->n_ctx();
    const Status status = session_->append(input, wanted);
    if (!status.ok()) {
      expect_refusal(status, was_idle);
      EXPECT_TRUE(!was_idle || !fits || input.empty()) << describe(status);
      return see();
    }
    see(input);
    asked(wanted == Session::kUnlimited ? std::nullopt : std::optional(wanted));
  }
  void advance() {
    log("advance");
    RONDO_EXPECT_OK(session_->advance());
    see();
  }
  std::size_t take_some() {
    std::int32_t taken[20];
    const Result<std::size_t> n = session_->take_tokens(std::span(taken).first(below(21)));
    EXPECT_TRUE(n.ok()) << describe(n.status());
    if (!n.ok()) return 0;
    see();
    EXPECT_LE(*n, untaken_.size());
    if (*n > untaken_.size()) return 0;
    EXPECT_TRUE(std::equal(taken, taken + *n, untaken_.begin())) << recent();
    untaken_.erase(untaken_.begin(), untaken_.begin() + static_cast<std::ptrdiff_t>(*n));
    return *n;
  }
  void take() {
    log("take");
    (void)take_some();
  }
  void wait() {
    const std::uint32_t us = below(3) * 300;
    log("wait(" + std::to_string(us) + ")");
    const Status waited = session_->wait(std::chrono::microseconds(us));
    EXPECT_TRUE(waited.ok() || waited.code() == StatusCode::kTimeout || (waited.code() == StatusCode::kCancelled && may_cancel_)) << describe(waited);
    see();
  }
  void cancel() {
    log("cancel");
    cancel_waits_ |= session_->idle();
    std::thread([this] { session_->cancel(); }).join();
    may_cancel_ = true;
  }
  void rewind() {
    check();
    const std::uint32_t position = below(static_cast<std::uint32_t>(picture_.size()) + 2);
    log("rewind(" + std::to_string(position) + ")");
    const bool was_idle = session_->idle();
    const Status status = session_->rewind(position);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << describe(status);
      EXPECT_FALSE(was_idle && position + 1 < picture_.size()) << describe(status);
      return see();
    }
    EXPECT_TRUE(session_->idle());
    ASSERT_LE(position, session_->tokens().size());
    if (position < picture_.size()) truncate(position);
    see();
    untaken_.clear();
    const bool may_cancel = may_cancel_, cancel_waits = cancel_waits_;
    asked(std::nullopt);
    may_cancel_ = may_cancel, cancel_waits_ = cancel_waits;  // of what comes next
  }
  void generate() {
    if (below(2)) drive();
    const Tokens input = some_tokens(10);
    const std::uint32_t n = below(20);
    log("generate(" + std::to_string(input.size()) + ", " + std::to_string(n) + ")");
    const bool was_idle = session_->idle();
    const std::uint32_t stop_at = below(10);
    std::optional<std::thread> other;
    if (below(4) == 0) other.emplace([this, us = below(2000)] { cancel_after(us); });
    std::uint32_t n_texts = 0;
    const Result<Generation> made = session_->generate(std::span<const std::int32_t>(input), n, [&](std::string_view) {
      EXPECT_EQ(session_->advance().code(), StatusCode::kFailedPrecondition);
      return ++n_texts != stop_at;
    });
    if (other) other->join();
    if (cancel_waits_) {
      EXPECT_TRUE(made.ok() && made->stop == StopReason::kCancelled && made->tokens.empty()) << "a cancel that came before was lost";
      cancel_waits_ = false;
    }
    if (!made.ok()) {
      expect_refusal(made.status(), was_idle);
      may_cancel_ |= other.has_value();
      return see();
    }
    see_generation(*made, input, n);
    may_cancel_ |= other.has_value() || made->stop == StopReason::kCancelled;
  }
  void see_generation(const Generation& made, const Tokens& input, std::uint32_t n) {
    const Tokens now = all_tokens(*session_);
    ASSERT_TRUE(now.size() >= made.tokens.size() && std::equal(made.tokens.rbegin(), made.tokens.rend(), now.rbegin())) << recent();
    const std::size_t n_before = now.size() - made.tokens.size();
    // A cancel may have come before the input was in.
    const bool has_input = n_before >= input.size() && n_before >= picture_.size() + (made.stop == StopReason::kCancelled ? input.size() : 0) &&
                           std::equal(input.rbegin(), input.rend(), now.rbegin() + static_cast<std::ptrdiff_t>(made.tokens.size()));
    EXPECT_TRUE(has_input || (made.stop == StopReason::kCancelled && made.tokens.empty())) << recent();
    const std::size_t input_begin = n_before - (has_input ? input.size() : 0), n_known = picture_.size();
    see();
    for (std::size_t i = input_begin; i < n_before; ++i) is_output_[i] = false;
    ASSERT_GE(input_begin, std::min(n_known, picture_.size())) << recent();
    untaken_.clear();  // what was not taken before is dropped, also where a cancel came first
    if (!has_input && made.tokens.empty()) return;
    asked(made.stop == StopReason::kLength ? std::optional(n) : std::nullopt);
    n_made_ = made.tokens.size();
  }
  void wait_logits() {
    drive();
    const Tokens input = some_tokens(20);
    log("wait_logits(" + std::to_string(input.size()) + ")");
    const bool fits = picture_.size() + input.size() <= session_->n_ctx() && !input.empty();
    const Result<std::vector<float>> logits = session_->wait_logits(input);
    if (cancel_waits_ && !input.empty()) {
      EXPECT_EQ(logits.status().code(), StatusCode::kCancelled) << "a cancel that came before was lost";
      cancel_waits_ = false;
    }
    if (!logits.ok()) {
      EXPECT_TRUE(!fits || (logits.status().code() == StatusCode::kCancelled && may_cancel_)) << describe(logits.status());
      return see();
    }
    see(input);
    asked(0);
    const std::vector<float> expected = judge_.logits_of(picture_);
    EXPECT_LE(relative_to_range(*logits, std::span(expected).last(input.size() * judge_.n_vocab)), 2e-3);
  }
  void move() {
    log("move");
    Session other = std::move(*session_);
    EXPECT_TRUE(session_->idle());
    EXPECT_EQ(session_->advance().code(), StatusCode::kFailedPrecondition);
    *session_ = std::move(other);
  }

  const Model& model_;
  const Judge& judge_;
  std::mt19937& random_;
  SessionOptions options_;
  std::optional<Session> session_;
  Tokens picture_;               ///< its history
  std::vector<bool> is_output_;  ///< of each token of it
  Tokens untaken_;
  std::size_t n_checked_ = 0, n_made_ = 0;
  std::optional<std::uint32_t> wanted_;
  bool may_cancel_ = false, cancel_waits_ = false;  ///< a cancel may have come, and has for certain, but nothing yet to be cancelled
  std::vector<std::string> calls_;
};

TEST(SessionFuzzTest, RandomCalls) {
  SmallLlama file;
  file.n_layers = 1;
  const std::string bytes = file.build();
  const Model model = load_model_from(bytes);
  Judge judge;
  Result<std::unique_ptr<const models::Checkpoint>> checkpoint = models::open_checkpoint(memory_source(std::as_bytes(std::span(bytes)), "model.gguf"));
  RONDO_ASSERT_OK(checkpoint.status());
  judge.checkpoint = std::move(checkpoint).value();
  judge.n_vocab = model.info().n_vocab;
  const std::uint32_t n_rounds = number_of("RONDO_TEST_ROUNDS", 60), first_seed = number_of("RONDO_TEST_SEED", 1);
  for (std::uint32_t round = 0; round < n_rounds; ++round) {
    std::mt19937 random(first_seed + round);
    Subject subjects[] = {Subject(model, judge, random), Subject(model, judge, random)};
    for (int i = 0; i < 60 && !HasFailure(); ++i) subjects[random() % 2].act();
    for (Subject& subject : subjects) {
      if (!HasFailure()) subject.drive();
      if (!HasFailure()) subject.check();
      ASSERT_FALSE(HasFailure()) << "RONDO_TEST_SEED=" << first_seed + round << ": " << subjects[0].recent() << " / " << subjects[1].recent();
    }
  }
}

}  // namespace
}  // namespace rondo::tests::session_fuzz_test
