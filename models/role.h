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
  kEncode,            ///< takes a whole text, leaves a hidden state (rows, width) in the output or in caches of a source
  kPool,              ///< as kEncode, one vector (width) a text
};
/// "prefill", "prefill and sample", "decode", ...
const char* role_name(Role role);
/// Whether the step makes a token.
constexpr bool samples(Role role) { return role == Role::kPrefillAndSample || role == Role::kDecode; }

}  // namespace rondo::models
