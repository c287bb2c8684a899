// A session: one sequence of tokens on a model, its KV cache, and the recordings that extend it.
//
// One thread at a time, except cancel(), which any thread may call. Nothing blocks unless its name says wait; generate() is
// the one exception. A session that was moved from refuses every call with kFailedPrecondition, and is idle and empty.
// Callbacks must not throw; no lock is held while they run. A loop looks like this:
//   session.append(tokens, 100);
//   while (!session.idle()) { session.advance(); session.wait(16ms); n = session.take_tokens(buffer); ... }
// Results are bit-identical for the same device, driver, model and chunks, whatever the burst and the cuts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/export.h>
#include <rondo/model.h>
#include <rondo/status.h>

namespace rondo {

namespace models {
class SessionState;
}

/// How the next token is chosen from the logits; greedy unless changed. In this order: repetition penalty, top-k, top-p,
/// min-p, temperature, draw. Ties at a threshold are all kept. The random number of the token at position p depends on the
/// seed and p alone, so a text does not depend on bursts, chunks or what ran before.
struct SamplingOptions {
  float temperature = 0;      ///< divides the logits; 0: the largest logit, the lowest id of equal ones
  std::uint32_t top_k = 0;    ///< keep the k largest; 0: all
  float top_p = 1;            ///< keep the fewest largest whose probability reaches this (Holtzman et al. 2020); in (0, 1]
  float min_p = 0;            ///< keep what is at least this times as probable as the largest (Nguyen et al. 2024); in [0, 1]
  float repeat_penalty = 1;   ///< divides positive and multiplies negative logits of recent tokens (Keskar et al. 2019)
  std::uint32_t repeat_last_n = 64;  ///< how many tokens are recent
};

/// What is decided when a session is created.
struct SessionOptions {
  std::uint32_t n_ctx = 0;    ///< tokens that fit; 0: the smaller of the model's context and 4096
  std::uint32_t n_source = 0; ///< of encoder-decoders: tokens of the longest source; 0: the smaller of the model's and 512
  std::uint32_t burst = 0;    ///< most decode steps per submission, up to 64; 0: as many as fit 25 ms
  std::uint64_t seed = 0;     ///< of the random numbers; greedy decoding draws none
  SamplingOptions sampling;
  std::vector<std::int32_t> stop_ids;  ///< of the vocabulary, at most 16 with the model's own
  bool use_model_stop_ids = true;
  std::vector<std::string> stop_texts;  ///< generate() ends before the first of them, also where it spans tokens
  bool profile = false;                ///< record timestamps around every dispatch, one step in flight: slower, see take_profile
  double max_segment_us = 100'000;     ///< predicted time above which a step is cut into several command buffers
  /// When the device has finished nothing for so long, though its next work is this session's, advance() and wait() say so
  /// (kInternal) instead of going on for ever. 0: they go on.
  std::uint32_t stall_timeout_ms = 10'000;
};

/// Why a session stopped making tokens.
enum class StopReason : std::uint8_t { kNone, kLength, kStopId, kContext, kCancelled, kStopText };

/// One dispatch of a profiled step.
struct ProfiledDispatch {
  std::string label;   ///< operator, kernel and weight type
  double begin_us = 0; ///< on the device's clock
  double end_us = 0;
};

/// One step as the device ran it, dispatch after dispatch.
struct ProfiledStep {
  std::string name;    ///< "decode 1", "prefill 64", ...
  std::vector<ProfiledDispatch> dispatches;
};

/// Counters since the session was made.
struct SessionStatistics {
  std::uint64_t n_submissions = 0;  ///< calls of vkQueueSubmit for steps
  std::uint64_t n_steps = 0;        ///< steps submitted
  std::uint64_t n_dispatches = 0;   ///< of those steps
  std::uint32_t dispatches_per_decode_step = 0;
  std::uint32_t segments_per_decode_step = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t activation_bytes = 0;
};

/// What generate() did.
struct Generation {
  std::vector<std::int32_t> prompt_tokens;
  std::vector<std::int32_t> tokens;  ///< without the stop id, or those that hold some of a stop text
  std::string text;                  ///< up to the stop text
  StopReason stop = StopReason::kNone;
};

/// One sequence of tokens on a model.
class RONDO_API Session {
 public:
  /// Unlimited generation, until a stop id or a full context.
  static constexpr std::uint32_t kUnlimited = 0xffffffffu;

  /// Plans and allocates KV cache and activations, records the steps. The model must be loaded.
  /// Errors: kOutOfMemory or kUnsupported (the context does not fit the device, with the plan), kFailedPrecondition,
  /// kInvalidArgument (options out of their range, by name), kUnsupported (a profile on a device without timestamps).
  static Result<Session> create(const Model& model, const SessionOptions& options = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// Returns at once, also in the middle of its work. Device memory is freed once the device is done with it, by the next call
  /// that reaches the driver on that device, or by Device::collect(): Rondo has no thread of its own. The last handle of a
  /// device waits for what is in flight.
  ~Session();

  /// Of encoder-decoders: what comes next is of this source, which is encoded before the next step, once. All tokens are
  /// forgotten, as after rewind(0); append() begins with the decoder's own first tokens (ModelInfo::start_tokens).
  /// Errors: kInvalidArgument (no tokens, more than n_source, ids outside the vocabulary), kFailedPrecondition (the model takes no
  /// source, or within on_text), kDeviceLost.
  Status set_source(std::span<const std::int32_t> tokens);

  /// Adds input after the last token kept, and asks for up to `max_new_tokens` after it (0: only fill the cache). Nothing is
  /// submitted yet. Empty `tokens` continue from the last generated one, or from input that was not submitted yet. A pending
  /// cancel is forgotten.
  /// Errors: kInvalidArgument (ids outside the vocabulary, more than the context holds, nothing to continue from),
  /// kFailedPrecondition (steps whose tokens are not yet known are in flight; an encoder-decoder without a source), kDeviceLost.
  Status append(std::span<const std::int32_t> tokens, std::uint32_t max_new_tokens = kUnlimited);

  /// Submits as much of the pending work as the bounds allow (two calls in flight, 100 ms of predicted time each).
  /// Allocates nothing while decoding. Errors: kDeviceLost, kOutOfMemory, kInternal (see SessionOptions::stall_timeout_ms).
  Status advance();

  /// Moves new tokens into `out`, in order; how many. Stop ids are not among them. Errors: kDeviceLost.
  Result<std::size_t> take_tokens(std::span<std::int32_t> out);

  /// Sleeps until there may be something to take or to submit, at most `timeout`; what it has told of once it does not tell of
  /// again until take_tokens or advance. kTimeout if there is nothing: at once, where nothing is in flight that could make
  /// something. kCancelled after cancel() once nothing is in flight any more; tokens made before it can still be taken.
  /// Allocates nothing while decoding. Errors: those of advance.
  Status wait(std::chrono::nanoseconds timeout);

  /// Stops after what is in flight (at most some 200 ms). Input that is not in the cache then is forgotten; what was generated
  /// stays. Where nothing is pending it holds for the next generate() or wait_logits(), which does nothing. Any thread, while
  /// the session is neither moved nor destroyed.
  void cancel();

  /// Nothing is pending, and nothing is untaken or to come. Steps beyond a stop may still run; they leave nothing.
  bool idle() const;
  /// Why the last generation ended; kNone while it goes on, kLength after a rewind. Stop texts are known to generate() alone.
  StopReason stop_reason() const;

  /// Forgets all tokens from `position` on, and what is pending; other tokens may be appended then. At most the number of tokens
  /// that are known to be in the cache. Layers with a window keep that and 512 tokens more; where a rewind goes further back, the
  /// history is taken again with the next input. Errors: kInvalidArgument, kDeviceLost, kFailedPrecondition (within on_text).
  Status rewind(std::uint32_t position);
  /// All tokens so far, input and output.
  std::span<const std::int32_t> tokens() const;
  std::uint32_t n_ctx() const;
  /// Tokens of the longest source; 0 where the model takes none.
  std::uint32_t n_source() const;
  const SessionStatistics& statistics() const;
  /// The steps profiled since the last call, in order; empty unless SessionOptions::profile, and within on_text.
  std::vector<ProfiledStep> take_profile();

  /// Encodes `prompt` (with BOS only at position 0), appends it, and calls `on_text` with valid UTF-8 as it comes, until
  /// `max_new_tokens`, a stop or a `false` from `on_text` (which cancels). After a stop text the session is rewound to before
  /// the token it begins in. Blocks. `on_text` may be empty; it must not throw. Within it only cancel() and what changes nothing
  /// may be called, the rest is refused (kFailedPrecondition); it may move the session, or destroy it, which cancels.
  /// Tokens of before that were not taken are in tokens() only. An encoder-decoder takes the prompt as its source, and its decoder
  /// begins with its own first tokens. Errors: those of append and advance.
  Result<Generation> generate(std::string_view prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text = {});
  /// The same for tokens, to which nothing is added.
  Result<Generation> generate(std::span<const std::int32_t> prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text = {});

  /// Appends `tokens` and waits for the logits of every one of them: (tokens, n_vocab), f32. Makes its recording first.
  /// Errors: those of append and advance, kCancelled, kOutOfMemory.
  Result<std::vector<float>> wait_logits(std::span<const std::int32_t> tokens);

  /// For Rondo's own use.
  models::SessionState& internal() { return *impl_; }

 private:
  explicit Session(std::shared_ptr<models::SessionState> impl);
  Status check(const char* name) const;
  std::shared_ptr<models::SessionState> impl_;
};

}  // namespace rondo
