// YaRN, scaling of rotary positions for longer contexts (Peng et al. 2023).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace rondo::models {

/// All numbers are positive.
struct Yarn {
  double factor = 1;
  double original_context = 0;             ///< tokens
  double fast_turns = 32, slow_turns = 1;  ///< in the original context: frequencies of more than the one stay, of less than the other are divided
  bool whole_dimensions = true;            ///< the bounds between are rounded outwards
};

/// What divides the frequency of each of the dimensions / 2 pairs; `theta` is above 1.
inline std::vector<float> yarn_factors(const Yarn& yarn, std::int64_t dimensions, double theta) {
  const auto dimension_of = [&](double turns) { return static_cast<double>(dimensions) * std::log(yarn.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta)); };
  double low = dimension_of(yarn.fast_turns), high = dimension_of(yarn.slow_turns);
  if (yarn.whole_dimensions) low = std::floor(low), high = std::ceil(high);
  low = std::max(0.0, low), high = std::min(static_cast<double>(dimensions) - 1, high);
  std::vector<float> factors;
  for (std::int64_t i = 0; i < dimensions / 2; ++i) {
    const double kept = 1 - std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - kept) / yarn.factor + kept)));
  }
  return factors;
}

/// What multiplies queries and keys, where nothing says it.
inline double yarn_attention_factor(double factor) { return 1 + 0.1 * std::log(factor); }

}  // namespace rondo::models
