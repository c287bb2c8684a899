#include "graph/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace rondo::graph {

namespace {

void penalize(std::span<const float> logits, std::span<const std::int32_t> recent, double penalty, std::vector<double>& values) {
  for (const std::int32_t id : recent) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size()) continue;
    const auto i = static_cast<std::size_t>(id);
    const auto value = static_cast<double>(logits[i]);
    values[i] = value > 0 ? value / penalty : value * penalty;  // of the logit as it came: once, however often the id occurs
  }
}

/// The largest value whose mass together with all larger ones reaches `share` of the whole; `values` in descending order.
double nucleus_threshold(std::span<const double> values, double share) {
  double total = 0;
  for (const double value : values) total += std::exp(value - values[0]);
  double mass = 0;
  for (const double value : values) {
    mass += std::exp(value - values[0]);
    if (mass >= share * total) return value;
  }
  return values.back();
}

}  // namespace

std::vector<double> sampling_distribution(std::span<const float> logits, std::span<const std::int32_t> recent, const SamplingParameters& parameters) {
  std::vector<double> values(logits.begin(), logits.end());
  penalize(logits, recent, static_cast<double>(parameters.repeat_penalty), values);
  std::vector<double> descending;
  for (const double value : values) {
    if (!std::isnan(value)) descending.push_back(value);
  }
  std::vector<double> distribution(values.size(), 0);
  if (descending.empty()) {
    distribution[0] = 1;
    return distribution;
  }
  std::sort(descending.begin(), descending.end(), std::greater<>());
  const double highest = descending[0];
  if (parameters.temperature == 0 || std::isinf(highest)) {
    // Equal infinities are all as likely as each other; of equal largest values the greedy choice is the first.
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != highest) continue;
      distribution[i] = 1;
      if (parameters.temperature == 0) return distribution;
    }
  } else {
    if (parameters.top_k > 0 && parameters.top_k < descending.size()) {
      const double threshold = descending[parameters.top_k - 1];
      std::erase_if(descending, [threshold](double value) { return value < threshold; });
    }
    double threshold = descending.back();
    if (parameters.top_p < 1) threshold = nucleus_threshold(descending, static_cast<double>(parameters.top_p));
    if (parameters.min_p > 0) threshold = std::max(threshold, highest + std::log(static_cast<double>(parameters.min_p)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= threshold) distribution[i] = std::exp((values[i] - highest) / static_cast<double>(parameters.temperature));
    }
  }
  double total = 0;
  for (const double weight : distribution) total += weight;
  for (double& weight : distribution) weight /= total;
  return distribution;
}

std::int32_t draw_from(std::span<const double> distribution, double u) {
  double cumulative = 0;
  std::int32_t last = 0;
  for (std::size_t i = 0; i < distribution.size(); ++i) {
    if (distribution[i] == 0) continue;
    cumulative += distribution[i];
    last = static_cast<std::int32_t>(i);
    if (cumulative > u) break;
  }
  return last;
}

float sampling_variate(std::uint64_t seed, std::uint32_t position) {
  std::array<std::uint32_t, 4> counter = {position, 0, 0, 0};
  std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter[0], b = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return static_cast<float>(counter[0] >> 8) * 0x1p-24f;
}

}  // namespace rondo::graph
