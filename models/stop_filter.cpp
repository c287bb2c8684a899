#include "models/stop_filter.h"

#include <algorithm>
#include <utility>

namespace rondo::models {

std::string StopFilter::add_token(std::string_view text, std::size_t n_pending_bytes) {
  if (stopped_) return "";
  if (stop_texts_.empty()) return std::string(text);
  held_ += text;
  token_ends_.push_back(held_at_ + held_.size() + n_pending_bytes);
  std::size_t found = std::string::npos, keep = 0;
  for (const std::string& stop : stop_texts_) {
    found = std::min(found, held_.find(stop));
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.ends_with(std::string_view(stop).substr(0, n))) keep = n;
    }
  }
  stopped_ = found != std::string::npos;
  const std::size_t n_shown = stopped_ ? found : held_.size() - keep;
  std::string shown = held_.substr(0, n_shown);
  if (stopped_) {
    const auto before = [end = held_at_ + found](std::size_t token_end) { return token_end <= end; };
    n_tokens_before_ = static_cast<std::size_t>(std::find_if_not(token_ends_.begin(), token_ends_.end(), before) - token_ends_.begin());
  }
  held_.erase(0, n_shown);
  held_at_ += n_shown;
  return shown;
}

std::string StopFilter::finish() {
  if (stopped_) return "";
  held_at_ += held_.size();
  return std::exchange(held_, {});
}

}  // namespace rondo::models
