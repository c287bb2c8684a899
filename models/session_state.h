// What a Session is made of: its steps on the device, its sequence, and the runner that obeys the schedule.
//
// See include/rondo/session.h for threads and errors.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <rondo/session.h>

#include "models/loaded_model.h"
#include "models/sequence.h"
#include "models/step_runner.h"
#include "models/step_set.h"

namespace rondo::models {

class SessionState {
 public:
  static Result<std::unique_ptr<SessionState>> create(std::shared_ptr<const LoadedModel> model, const SessionOptions& options);

  Status set_source(std::span<const std::int32_t> tokens);
  Status append(std::span<const std::int32_t> tokens, std::uint32_t max_new_tokens);
  Status advance();
  Result<std::size_t> take_tokens(std::span<std::int32_t> out);
  Status wait(std::uint64_t timeout_ns);
  void cancel() { cancelled_ = true; }
  bool idle() const { return sequence().n_ready() == 0 && settled(); }
  StopReason stop_reason() const { return sequence().stop(); }
  Status rewind(std::uint32_t position);
  Result<std::vector<float>> wait_logits(std::span<const std::int32_t> tokens);
  /// `is_wanted`: somebody still holds the session; asked after each call of `on_text`.
  Result<Generation> generate(std::span<const std::int32_t> prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text,
                              const std::function<bool()>& is_wanted = {});
  /// Why the call `name` may not be made now: it changes the session, whose on_text is running.
  Status check_callable(const char* name) const;

  std::span<const std::int32_t> tokens() const { return sequence().history(); }
  std::uint32_t n_ctx() const { return sequence().n_ctx(); }
  std::uint32_t n_source() const { return static_cast<std::uint32_t>(steps_->places().n_source); }
  const SessionStatistics& statistics() const { return runner_.statistics(); }
  const Pacing& pacing() const { return runner_.pacing(); }
  /// For measurements at a depth: token ids and cache rows up to `position` hold made-up numbers, as if prefilled.
  Status pretend_depth(std::uint32_t position);
  std::vector<ProfiledStep> take_profile() { return runner_.take_profile(); }
  const LoadedModel& model() const { return *model_; }
  const StepSet& steps() const { return *steps_; }

 private:
  /// The logits that wait_logits has so far.
  struct LogitsRequest {
    std::uint32_t first = 0;  ///< position of the first token whose logits are wanted
    std::vector<float> logits;
  };

  SessionState(std::shared_ptr<const LoadedModel> model, const SessionOptions& options, std::unique_ptr<StepSet> steps, StepRunner runner, Sequence sequence);

  Sequence& sequence() { return sequences_[0]; }
  const Sequence& sequence() const { return sequences_[0]; }
  /// Nothing is pending or in flight.
  bool settled() const;
  Status begin(std::span<const std::int32_t> tokens, std::uint32_t wanted, bool logits, const char* caller);
  Status poll();
  /// Whether there are tokens, or room for another call, that wait has not told of.
  bool tell_news();
  Status read_logits();
  /// The loop of all calls that block: submits, sleeps until there is something to see, and lets `look` at it, until all is done
  /// or `look`, a function that gives a Result<bool>, has seen enough.
  template <typename Look>
  Status run_to_end(const Look& look);

  std::shared_ptr<const LoadedModel> model_;
  SessionOptions options_;
  std::unique_ptr<StepSet> steps_;
  StepRunner runner_;
  std::vector<Sequence> sequences_;
  std::atomic<bool> cancelled_{false};
  LogitsRequest request_;
  bool in_callback_ = false;
  bool just_polled_ = false;       ///< by wait: the next advance need not ask the driver again
  bool said_nothing_ = false;      ///< wait has said that nothing is in flight, and nothing has happened since
  std::size_t n_announced_ = 0;    ///< tokens ready that wait has told of
};

}  // namespace rondo::models
