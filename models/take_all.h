// What blocks until everything is computed: encode() and translate().
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <rondo/status.h>

namespace rondo::models {

/// Appends every input to `state`, an EncoderState or a TranslatorState that is idle, and takes what it makes of all, in order. An
/// input that `append` refuses leaves none behind.
template <typename Item, typename State, typename Input, typename Append>
Result<std::vector<Item>> append_and_take_all(State& state, std::span<const Input> inputs, const Append& append) {
  constexpr std::uint64_t kNapNs = 100'000'000;
  for (const Input& input : inputs) {
    const Status appended = append(input);
    if (appended.ok()) continue;
    state.forget_all();
    return appended;
  }
  std::vector<Item> items;
  while (!state.idle()) {
    RONDO_TRY(state.advance());
    const Status waited = state.wait(kNapNs);
    if (!waited.ok() && waited.code() != StatusCode::kTimeout) return waited;
    for (;;) {
      Item item;
      RONDO_ASSIGN(const bool taken, state.take(item));
      if (!taken) break;
      items.push_back(std::move(item));
    }
  }
  return items;
}

}  // namespace rondo::models
