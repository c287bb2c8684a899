#include "models/sequence.h"

#include <algorithm>

#include "runtime/fmt.h"

namespace rondo::models {

Sequence::Sequence(std::uint32_t n_ctx, std::vector<std::int32_t> stop_ids, std::uint32_t most_back) : n_ctx_(n_ctx), stop_ids_(std::move(stop_ids)), most_back_(most_back) {
  history_.reserve(n_ctx);  // decoding allocates nothing
  ready_.reserve(n_ctx);
}

void Sequence::set_source(std::span<const std::int32_t> tokens) {
  source_.assign(tokens.begin(), tokens.end());
  source_pending_ = true;
}

Status Sequence::append(std::span<const std::int32_t> tokens, std::uint32_t wanted, bool logits, const char* caller) {
  if (history_.size() + tokens.size() > n_ctx_) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("session: {}: {} tokens of input after {} exceed the context of {}", caller, tokens.size(), history_.size(), n_ctx_));
  }
  if (tokens.empty() && wanted > 0 && history_.size() <= std::max(planned_, replayed_)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: {}: there is no token to continue from; append at least one", caller));
  }
  input_begin_ = static_cast<std::uint32_t>(history_.size());
  history_.insert(history_.end(), tokens.begin(), tokens.end());
  stop_ = StopReason::kNone;
  wanted_ = wanted;
  n_sampled_ = n_seen_ = 0;
  logits_ = logits;
  // One token in the token array and the step state as it is: the decode step itself continues.
  decoding_ = tokens.empty() && !state_is_stale_ && history_.size() == planned_ + 1 && n_staged_ == history_.size();
  return {};
}

Status Sequence::rewind(std::uint32_t position) {
  if (position > kept()) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: rewind to {} but only {} tokens are in the cache", position, kept()));
  }
  // Steps in flight end before anything staged later begins; what they write lies at or after `known_`.
  history_.resize(position);
  drop_ready();
  const bool lost = written_ > most_back_ && position < written_ - most_back_;
  replayed_ = lost ? position : std::min(replayed_, position);
  known_ = lost ? 0 : std::min(known_, position);
  if (lost) written_ = 0;
  end(StopReason::kLength);
  return {};
}

void Sequence::pretend(std::uint32_t position) {
  history_.assign(position, 0);
  planned_ = known_ = n_staged_ = written_ = position;
}

Demand Sequence::demand(bool cancelled) const {
  Demand demand;
  demand.source_left = source_pending_ ? static_cast<std::uint32_t>(source_.size()) : 0;
  demand.position = planned_;
  demand.input_left = decoding_ ? 0 : static_cast<std::uint32_t>(history_.size()) - planned_;
  demand.wanted = wanted_ - n_sampled_;
  demand.n_ctx = n_ctx_;
  demand.decoding = decoding_;
  demand.logits = logits_;
  demand.halted = ended() || cancelled;
  return demand;
}

void Sequence::staged(const Share& share) {
  n_staged_ = std::max(n_staged_, share.position + share.count);
  state_is_stale_ = false;
}

bool Sequence::submitted(const Share& share, bool samples) {
  planned_ = share.position + share.count;
  written_ = std::max(written_, planned_);
  if (!samples) return false;
  ++n_sampled_;
  decoding_ = true;
  return planned_ < n_ctx_;
}

void Sequence::add_token(std::uint32_t position, std::int32_t id) {
  known_ = position;
  if (std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end()) return end(StopReason::kStopId);
  history_.push_back(id);
  n_staged_ = output_end_ = position + 1;
  ready_.push_back(id);
  ++n_seen_;
  if (output_end_ >= n_ctx_) end(StopReason::kContext);
}

void Sequence::settle(bool cancelled) {
  known_ = planned_;
  if (cancelled) {
    history_.resize(std::min<std::size_t>(history_.size(), std::max(kept(), output_end_)));
    return end(StopReason::kCancelled);
  }
  const bool input_done = decoding_ || history_.size() == known_;
  if (input_done && n_seen_ >= wanted_) stop_ = StopReason::kLength;
  else if (known_ >= n_ctx_) end(StopReason::kContext);
}

void Sequence::end(StopReason reason) {
  stop_ = reason;
  planned_ = known_;
  n_staged_ = std::min(n_staged_, known_);
  output_end_ = std::min(output_end_, static_cast<std::uint32_t>(history_.size()));
  state_is_stale_ = true;
  decoding_ = false;
}

std::size_t Sequence::take(std::span<std::int32_t> out) {
  const std::size_t n = std::min(out.size(), n_ready());
  std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(ready_head_), n, out.begin());
  ready_head_ += n;
  if (ready_head_ == ready_.size()) drop_ready();
  return n;
}

void Sequence::drop_ready() {
  ready_.clear();
  ready_head_ = 0;
}

}  // namespace rondo::models
