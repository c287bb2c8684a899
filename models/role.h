// What the steps of a network are for.
#pragma once

#include <cstdint>

namespace rondo::models {

/// What a step is for.
enum class Role : std::uint8_t {
  kPrefill,           ///< takes tokens, leaves only the caches
  kPrefillAndSample,  ///< takes tokens, and samples the next one from the last valid row
  kDecode,            ///< takes one token, its own last output, and samples the next one
  kLogits,            ///< takes tokens, leaves logits (rows, n_vocab) of all rows in the output
  kEncode,            ///< takes whole texts, leaves hidden states (rows, width) in the output, or keys and values in the caches of a source
  kPool,              ///< as kEncode, a vector of each text
  kHead,              ///< as kEncode, what the model's head makes: of each token, or of each text
  kAttention,         ///< takes whole texts, leaves what one layer's attention weighs (heads, rows, rows) in the output
  kEncodeImage,       ///< these four of images
  kPoolImage,
  kHeadImage,
  kAttentionImage,
};
/// "prefill", "prefill and sample", "decode", ...
const char* role_name(Role role);
/// Whether the step makes a token.
constexpr bool samples(Role role) { return role == Role::kPrefillAndSample || role == Role::kDecode; }

/// Whether it takes whole texts or images, and makes no tokens.
constexpr bool encodes(Role role) { return role >= Role::kEncode; }
constexpr bool takes_images(Role role) { return role >= Role::kEncodeImage; }

}  // namespace rondo::models
