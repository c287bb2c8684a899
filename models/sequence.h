// One sequence of tokens, as the host knows it: what was said, what the device has of it, how it ends.
//
// Pure: no Vulkan, no clock, no threads. It is told what was submitted and what came back (models/step_runner.h), and says what
// it asks for (models/schedule.h).
//
// Four positions cut the history (docs/images/sequence.svg), and these hold between any two calls:
//   known <= planned <= n_ctx, known <= size, staged <= n_ctx, ended or planned <= size + tokens to come.
// `known`: tokens before it are in the cache, for certain; the host may rewind to at most here. `planned`: tokens before it
// will be, once all that is submitted is done. [planned, size) is input still to take; planned is beyond size by as many decode
// steps as have tokens to come, less one. `staged`: tokens before it are in the device's token array: by an update, or because
// a step made them there. `decoding` means that the step state says position = planned, count = 1, active, and that the token at
// `planned` is staged: a decode step may run as the state is; otherwise the next step must be preceded by a staging of its share.
// After a stop, a cancel or a rewind the step state may say anything (steps beyond a stop find it inactive), so
// planned = known, nothing decodes, and the next share is staged. A generated token that is in the history stays there, unless
// it is rewound; input that was not taken goes with a cancel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <rondo/session.h>

#include "models/schedule.h"

namespace rondo::models {

class Sequence {
 public:
  /// Rings of windows still have all that `most_back` tokens before the last one written see, and no more.
  Sequence(std::uint32_t n_ctx, std::vector<std::int32_t> stop_ids, std::uint32_t most_back = std::numeric_limits<std::uint32_t>::max());

  /// What comes next is of this source: it is encoded before the next step. The sequence is rewound to 0.
  void set_source(std::span<const std::int32_t> tokens);
  std::span<const std::int32_t> source() const { return source_; }
  /// All segments of the step that encodes the source are submitted.
  void source_submitted() { source_pending_ = false; }

  /// Adds input and asks for up to `wanted` tokens after it, or for the logits of all of it. `caller` is for messages.
  /// Errors: kInvalidArgument (the context is exceeded, or there is nothing to continue from).
  Status append(std::span<const std::int32_t> tokens, std::uint32_t wanted, bool logits, const char* caller);
  /// Forgets all tokens from `position` on. Where a ring has lost what they see, those before it are input again, to be taken
  /// with the next that comes. Errors: kInvalidArgument (beyond what is known to be in the cache).
  Status rewind(std::uint32_t position);
  /// The same from what is known to be in the cache.
  void abandon() { (void)rewind(kept()); }
  /// The history is `position` tokens of id 0, all in the cache.
  void pretend(std::uint32_t position);

  Demand demand(bool cancelled) const;
  std::span<const std::int32_t> history() const { return history_; }
  std::uint32_t n_ctx() const { return n_ctx_; }
  /// Tokens from here on to the end of a share are to be staged with it.
  std::uint32_t n_staged() const { return n_staged_; }
  /// Where the input of the last append begins.
  std::uint32_t input_begin() const { return input_begin_; }

  /// A step's share was put into the step state by commands that are submitted.
  void staged(const Share& share);
  /// All segments of a step with this share are submitted. Whether a token comes of it that the host will see, at the
  /// position after the share.
  bool submitted(const Share& share, bool samples);
  /// The token that a step left at `position` arrived.
  void add_token(std::uint32_t position, std::int32_t id);
  /// Everything submitted is done and seen, and nothing is unfinished, or it is `cancelled`: it may have ended.
  void settle(bool cancelled);

  /// Why it ended; kNone while it goes on.
  StopReason stop() const { return stop_; }
  bool ended() const { return stop_ != StopReason::kNone; }

  /// Generated tokens that were not taken yet.
  std::size_t n_ready() const { return ready_.size() - ready_head_; }
  std::size_t take(std::span<std::int32_t> out);
  void drop_ready();

 private:
  void end(StopReason reason);
  /// Tokens before this stay whatever happens: they are in the cache, or were.
  std::uint32_t kept() const { return std::max(known_, replayed_); }

  std::uint32_t n_ctx_;
  std::vector<std::int32_t> stop_ids_;
  std::vector<std::int32_t> history_, source_;
  bool source_pending_ = false;  ///< it is not in the caches, nor submitted
  std::uint32_t known_ = 0, planned_ = 0, n_staged_ = 0, input_begin_ = 0;
  std::uint32_t output_end_ = 0;  ///< behind the last generated token
  std::uint32_t wanted_ = 0, n_sampled_ = 0, n_seen_ = 0;  ///< tokens since the last append: asked for, submitted, arrived
  std::uint32_t most_back_;
  std::uint32_t written_ = 0;   ///< behind the last position that a step in the cache wrote, of a history before a rewind too
  std::uint32_t replayed_ = 0;  ///< tokens before it are taken again after a rewind
  bool decoding_ = false, logits_ = false;
  bool state_is_stale_ = true;    ///< the step state has to be staged before anything runs on it
  StopReason stop_ = StopReason::kNone;
  std::vector<std::int32_t> ready_;  ///< from ready_head_ on
  std::size_t ready_head_ = 0;
};

}  // namespace rondo::models
