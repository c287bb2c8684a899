#include <rondo/heads.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rondo {

namespace {

/// Probabilities of every `stride`-th logit of `logits`; NaN has none.
std::vector<double> softmax(std::span<const float> logits, std::size_t stride) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); i += stride) largest = std::fmax(largest, logits[i]);
  std::vector<double> all;
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); i += stride) {
    const double weight = std::isnan(logits[i]) ? 0 : logits[i] == largest ? 1 : std::exp(static_cast<double>(logits[i]) - static_cast<double>(largest));
    all.push_back(weight);
    sum += weight;
  }
  for (double& each : all) each = sum > 0 ? each / sum : 0;
  return all;
}

}  // namespace

std::vector<Choice> most_probable(std::span<const float> logits, std::size_t n) {
  if (logits.size() == 1) return n == 0 ? std::vector<Choice>() : std::vector<Choice>{{0, std::isnan(logits[0]) ? 0 : 1 / (1 + std::exp(-static_cast<double>(logits[0])))}};
  const std::vector<double> probabilities = softmax(logits, 1);
  std::vector<std::uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(n, order.size()));
  // By logits, which tell apart what is equally improbable.
  const auto rank = [&](std::uint32_t id) { return std::isnan(logits[id]) ? -std::numeric_limits<float>::infinity() : logits[id]; };
  std::partial_sort(order.begin(), end, order.end(), [&](std::uint32_t a, std::uint32_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
  std::vector<Choice> best;
  for (auto id = order.begin(); id != end; ++id) best.push_back({*id, probabilities[*id]});
  return best;
}

std::vector<Answer> best_answers(std::span<const float> logits, std::uint32_t begin, std::uint32_t end, std::uint32_t max_tokens, std::size_t n) {
  end = static_cast<std::uint32_t>(std::min<std::size_t>(end, logits.size() / 2));
  std::vector<Answer> best;
  if (begin >= end || n == 0) return best;
  const std::span<const float> rows = logits.subspan(2 * std::size_t{begin}, 2 * std::size_t{end - begin});
  const std::vector<double> begins = softmax(rows, 2), ends = softmax(rows.subspan(1), 2);
  const auto is_better = [](const Answer& a, const Answer& b) { return a.probability != b.probability ? a.probability > b.probability : a.first != b.first ? a.first < b.first : a.last < b.last; };
  for (std::uint32_t first = 0; first < begins.size(); ++first) {
    for (std::uint32_t last = first; last < begins.size() && last - first < max_tokens; ++last) {
      const Answer answer{begin + first, begin + last, begins[first] * ends[last]};
      if (best.size() == n && !is_better(answer, best.back())) continue;
      best.insert(std::upper_bound(best.begin(), best.end(), answer, is_better), answer);
      if (best.size() > n) best.pop_back();
    }
  }
  return best;
}

}  // namespace rondo
