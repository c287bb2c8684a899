// What the logits of heads say: labels, words and answers with their probabilities. Pure functions; nothing here touches a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rondo/export.h>

namespace rondo {

/// One of those that logits are about: a label, or a token of the vocabulary.
struct Choice {
  std::uint32_t id = 0;
  double probability = 0;
};

/// The `n` most probable, the most probable first, of equals the lowest id: softmax of all logits; of a single one, which is about
/// yes or no, its logistic function. Fewer where there are fewer; NaN counts as impossible.
RONDO_API std::vector<Choice> most_probable(std::span<const float> logits, std::size_t n);

/// Tokens [first, last] that answer a question.
struct Answer {
  std::uint32_t first = 0, last = 0;
  double probability = 0;  ///< that it begins with the first, times that it ends with the last
};

/// The `n` most probable answers within tokens [begin, end) of `logits`, (tokens, 2): that an answer begins with a token, and that it
/// ends with one; softmax over [begin, end) each (Devlin et al. 2019, section 4.2). No answer has more than `max_tokens`.
RONDO_API std::vector<Answer> best_answers(std::span<const float> logits, std::uint32_t begin, std::uint32_t end, std::uint32_t max_tokens, std::size_t n = 1);

}  // namespace rondo
