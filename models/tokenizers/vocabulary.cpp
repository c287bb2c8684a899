#include "models/tokenizers/vocabulary.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

namespace rondo::models {

std::string_view Vocabulary::spelling(std::int32_t token) const {
  if (!contains(token)) return {};
  const auto index = static_cast<std::size_t>(token);
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(begin, ends_[index] - begin);
}

std::int32_t Vocabulary::find(std::string_view text) const {
  if (text.empty() || text.size() > max_findable_bytes_) return -1;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = std::hash<std::string_view>()(text) & mask; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    if (spelling(slots_[slot]) == text) return slots_[slot];
  }
  return -1;
}

/// The longest of `specials` that `text` begins with, or -1.
std::int32_t Vocabulary::find_special(const SpecialTokens& specials, std::string_view text) const {
  std::int32_t longest = -1;
  auto begin = specials.ids.begin();
  auto end = specials.ids.end();
  for (std::size_t depth = 0; depth < text.size() && begin != end; ++depth) {
    const auto byte = static_cast<unsigned char>(text[depth]);
    // Within [begin, end) all spellings share `depth` bytes; one that ends there sorts first.
    const auto before = [&](std::int32_t id, int wanted) {
      const std::string_view candidate = spelling(id);
      return depth >= candidate.size() || static_cast<unsigned char>(candidate[depth]) < wanted;
    };
    begin = std::lower_bound(begin, end, int{byte}, before);
    end = std::lower_bound(begin, end, int{byte} + 1, before);
    if (begin != end && spelling(*begin).size() == depth + 1) longest = *begin;
  }
  return longest;
}

// Longest first over the whole text: a long token wins over a shorter one that begins further left.
void Vocabulary::resolve_overlaps(std::string_view text, const SpecialTokens& specials,
                                    std::vector<Fragment>& matches) const {
  const auto later = [](const Fragment& a, const Fragment& b) {
    return a.size < b.size || (a.size == b.size && a.begin > b.begin);
  };
  std::priority_queue<Fragment, std::vector<Fragment>, decltype(later)> queue(later, std::move(matches));
  std::map<std::size_t, Fragment> chosen;
  while (!queue.empty()) {
    Fragment match = queue.top();
    queue.pop();
    const auto next = chosen.upper_bound(match.begin);
    if (next != chosen.begin()) {
      const Fragment& before = std::prev(next)->second;
      if (before.begin + before.size > match.begin) continue;
    }
    if (next == chosen.end() || next->first >= match.begin + match.size) {
      chosen.emplace(match.begin, match);
      continue;
    }
    match.token = find_special(specials, text.substr(match.begin, next->first - match.begin));
    match.size = spelling(match.token).size();
    if (match.token >= 0) queue.push(match);
  }
  matches.clear();
  for (const auto& entry : chosen) matches.push_back(entry.second);
}

std::vector<Vocabulary::Fragment> Vocabulary::partition(std::string_view text, bool all_specials) const {
  const SpecialTokens& specials = all_specials ? all_specials_ : user_defined_;
  std::vector<Fragment> fragments;
  std::size_t done = 0;
  std::vector<Fragment> cluster;  // matches that overlap each other
  std::size_t cluster_end = 0;
  const auto flush = [&] {
    if (cluster.size() > 1) resolve_overlaps(text, specials, cluster);
    for (const Fragment& match : cluster) {
      if (match.begin > done) fragments.push_back(Fragment{done, match.begin - done, -1});
      fragments.push_back(match);
      done = match.begin + match.size;
    }
    cluster.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!specials.first_bytes[static_cast<unsigned char>(text[i])]) continue;
    const std::int32_t token = find_special(specials, text.substr(i));
    if (token < 0) continue;
    if (i >= cluster_end) flush();
    const std::size_t size = spelling(token).size();
    cluster.push_back(Fragment{i, size, token});
    cluster_end = std::max(cluster_end, i + size);
  }
  flush();
  if (done < text.size()) fragments.push_back(Fragment{done, text.size() - done, -1});
  return fragments;
}

}  // namespace rondo::models
