// Sampling as it is defined: the distribution that a token is drawn from, and the random number it is drawn with.
// The reference of the operator `sample`, in double; pure.
//
// Order: repetition penalty, top-k, top-p, min-p, temperature, draw. Ties at a threshold are all kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rondo::graph {

/// The parameters in the step state. See SamplingOptions in rondo/session.h for their meaning.
struct SamplingParameters {
  float temperature = 0;
  std::uint32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repeat_penalty = 1;
};

/// The probability of every id: 0 for those that a threshold drops, one 1 where temperature is 0 (the lowest id of the
/// largest logit) or all logits are NaN (id 0). `recent` are the tokens that the repetition penalty looks at; ids outside
/// the vocabulary are passed over. NaN logits are never drawn.
std::vector<double> sampling_distribution(std::span<const float> logits, std::span<const std::int32_t> recent, const SamplingParameters& parameters);

/// The id at which the cumulative probability, in ascending order of ids, passes `u` in [0, 1).
std::int32_t draw_from(std::span<const double> distribution, double u);

/// Word 0 of Philox4x32-10 (Salmon et al. 2011) with key = (low, high) of `seed` and counter (position, 0, 0, 0), as a
/// number in [0, 1) with 24 bits: the variate of the token at `position`.
float sampling_variate(std::uint64_t seed, std::uint32_t position);

}  // namespace rondo::graph
