#include <algorithm>
#include <numeric>

#include "graph/lowering.h"

namespace rondo::graph {

std::vector<std::uint64_t> plan_memory(std::span<const Lifetime> lifetimes, std::uint64_t alignment, std::uint64_t& total_bytes) {
  struct Placed {
    std::size_t index;
    std::uint64_t begin, end;
  };
  const auto round_up = [alignment](std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; };

  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].size_bytes > lifetimes[b].size_bytes; });

  std::vector<Placed> placed;  // by begin
  std::vector<std::uint64_t> offsets(lifetimes.size(), 0);
  total_bytes = 0;
  for (std::size_t index : order) {
    const Lifetime& life = lifetimes[index];
    const std::uint64_t size = round_up(life.size_bytes);
    std::uint64_t offset = 0;
    for (const Placed& other : placed) {
      const Lifetime& theirs = lifetimes[other.index];
      if (theirs.last < life.first || life.last < theirs.first) continue;
      if (offset + size <= other.begin) break;
      offset = std::max(offset, other.end);
    }
    offsets[index] = offset;
    const Placed mine{index, offset, offset + size};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), mine, [](const Placed& a, const Placed& b) { return a.begin < b.begin; }), mine);
    total_bytes = std::max(total_bytes, mine.end);
  }
  return offsets;
}

}  // namespace rondo::graph
