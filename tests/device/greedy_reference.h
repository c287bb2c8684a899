// The interpreter as the judge of greedy tokens where no file has them.
#pragma once

#include <algorithm>

#include <gtest/gtest.h>

#include "models/reference.h"
#include "tests/device/session_harness.h"

namespace rondo::tests {

/// The interpreter, over a cache of `kv_type` and given what the device made, would have made each of its tokens.
inline void expect_interpreters_choice(const models::Checkpoint& checkpoint, graph::Type kv_type, const Tokens& input, const Tokens& made) {
  const Tokens all = joined(input, made);
  const Result<std::vector<float>> logits = models::reference_logits(checkpoint, all, kv_type);
  RONDO_ASSERT_OK(logits.status());
  const std::size_t n_vocab = checkpoint.network.facts.n_vocab;
  for (std::size_t i = input.size(); i < all.size(); ++i) {
    const auto row = logits->begin() + static_cast<std::ptrdiff_t>((i - 1) * n_vocab);
    EXPECT_EQ(std::max_element(row, row + static_cast<std::ptrdiff_t>(n_vocab)) - row, all[i]) << "token " << i;
  }
}

}  // namespace rondo::tests
