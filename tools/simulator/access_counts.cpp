#include "tools/simulator/access_counts.h"

#include <algorithm>

namespace rondo::simulator {

namespace {

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

void count_lines(AccessCount& count, std::span<std::uint64_t> addresses, std::uint32_t lane_bytes) {
  if (!std::is_sorted(addresses.begin(), addresses.end())) std::sort(addresses.begin(), addresses.end());
  std::uint64_t bytes = 0, end = 0;                  // end: of the bytes that have been counted
  std::uint64_t next32 = 0, next64 = 0, next128 = 0;  // the first of each that has not been
  for (const std::uint64_t address : addresses) {
    const std::uint64_t behind = address + lane_bytes;
    if (behind <= end) continue;
    bytes += behind - std::max(address, end);
    end = behind;
    const auto add = [&](std::uint64_t size, std::uint64_t& next, std::uint64_t& total) {
      const std::uint64_t first = std::max(address / size, next), last = (behind - 1) / size + 1;
      if (last <= first) return;
      total += last - first;
      next = last;
    };
    add(32, next32, count.sectors32);
    add(64, next64, count.lines64);
    add(128, next128, count.lines128);
  }
  ++count.executions;
  count.lanes += addresses.size();
  count.lane_bytes += addresses.size() * lane_bytes;
  count.bytes += bytes;
  count.ideal_sectors32 += divide_up(bytes, 32);
  count.ideal_lines64 += divide_up(bytes, 64);
  count.ideal_lines128 += divide_up(bytes, 128);
}

void count_banks(AccessCount& count, std::span<const std::uint64_t> addresses, std::span<const std::uint32_t> lanes, std::uint32_t lane_bytes) {
  constexpr std::uint32_t kBanks = 32;
  const std::uint64_t lane_words = divide_up(lane_bytes, 4), lanes_at_once = kBanks / std::min<std::uint64_t>(lane_words, 4);
  const std::uint64_t most_words = lane_bytes % 4 == 0 ? lane_words : lane_words + 1;  // of a lane, where it begins within a word
  ++count.executions;
  count.lanes += addresses.size();
  count.lane_bytes += addresses.size() * lane_bytes;
  std::uint64_t words[kBanks * 4];
  for (std::size_t first = 0, last = 0; first < addresses.size(); first = last) {
    while (last < addresses.size() && lanes[last] / lanes_at_once == lanes[first] / lanes_at_once) ++last;
    for (std::uint64_t word = 0; word < most_words; word += 4) {  // at most 16 bytes of a lane in one go
      std::size_t n = 0;
      for (std::size_t lane = first; lane < last; ++lane) {
        const std::uint64_t begin = addresses[lane] / 4 + word, behind = (addresses[lane] + lane_bytes - 1) / 4 + 1;
        for (std::uint64_t k = begin; k < std::min(begin + 4, behind); ++k) words[n++] = k;
      }
      std::sort(words, words + n);
      n = static_cast<std::size_t>(std::unique(words, words + n) - words);
      std::uint32_t in_bank[kBanks] = {};
      for (std::size_t i = 0; i < n; ++i) ++in_bank[words[i] % kBanks];
      count.bytes += n * 4;
      count.bank_rounds += *std::max_element(in_bank, in_bank + kBanks);
      count.ideal_bank_rounds += divide_up(n, kBanks);
    }
  }
}

}  // namespace rondo::simulator
