// The softmax of scores that come in pieces, each with its highest score (Milakov and Gimelshein 2018). Finite numbers stand for
// minus infinity, so that differences are numbers.
#ifndef RONDO_ONLINE_SOFTMAX_GLSL
#define RONDO_ONLINE_SOFTMAX_GLSL

const float kLowest = -3.3e38;         // of a key that is not allowed
const float kMinusInfinity = -3.1e38;  // of a key that is, where query or key hold an infinity
const float kLowestAllowed = -3e38;    // whatever a mask adds

// What a key weighs before the division, its score being `below` the highest: a masked key nothing; a NaN, also of two infinities, stays
// one, which exp may lose. Exponentials are computed either way, for there are compilers that branch around them.
float unscaled_weight(float score, float below) {
  const float weight = exp(below);
  return isnan(below) ? below : score >= kLowestAllowed ? weight : 0.0;
}

// What the sums of a piece count beside a higher maximum than its own; `nothing` where it had no key.
float scale_to(float own, float highest, float nothing) {
  const float scale = exp(own - highest);
  return mix(nothing, scale, own > kLowest);
}

// What a split's sums and weight count; those of a split without a weight need not be there.
float scale_of_split(float own, float weight, float highest) { return mix(scale_to(own, highest, 1.0), 0.0, weight == 0.0); }
#endif
