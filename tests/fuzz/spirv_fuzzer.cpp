// Any words as a SPIR-V module: what is valid is run for a while, with small buffers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "tools/simulator/simulate.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace rondo::simulator;

constexpr std::size_t kHeaderWords = 5;
constexpr std::uint64_t kMostOperations = 100'000;

/// Where instructions begin, as far as their lengths go together.
std::vector<std::size_t> find_instructions(std::span<const std::uint32_t> words) {
  std::vector<std::size_t> starts;
  for (std::size_t at = kHeaderWords; at < words.size() && words[at] >> 16 != 0 && at + (words[at] >> 16) <= words.size(); at += words[at] >> 16) starts.push_back(at);
  return starts;
}

/// One change that may leave a module valid: another id or number, another instruction, one taken out or put in twice.
void change_instruction(std::vector<std::uint32_t>& words, std::size_t most, std::minstd_rand& random) {
  const std::vector<std::size_t> starts = find_instructions(words);
  if (starts.empty()) return;
  const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::size_t at = starts[any(starts.size())], n = words[at] >> 16;
  switch (any(8)) {
    case 0:
      if (words.size() + n <= most) {
        const std::vector<std::uint32_t> copy(words.begin() + static_cast<std::ptrdiff_t>(at), words.begin() + static_cast<std::ptrdiff_t>(at + n));
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(starts[any(starts.size())]), copy.begin(), copy.end());
      }
      break;
    case 1: words.erase(words.begin() + static_cast<std::ptrdiff_t>(at), words.begin() + static_cast<std::ptrdiff_t>(at + n)); break;
    case 2: words[at] = (words[at] & 0xffff0000u) | ((words[at] + static_cast<std::uint32_t>(any(17)) - 8) & 0xffffu); break;
    default: {
      if (n < 2) break;
      std::uint32_t& word = words[at + 1 + any(n - 1)];
      const std::size_t other = starts[any(starts.size())], other_n = words[other] >> 16;
      switch (any(4)) {
        case 0: word += static_cast<std::uint32_t>(any(9)) - 4; break;
        case 1: word = static_cast<std::uint32_t>(any(2) == 0 ? random() : std::uint32_t{1} << any(32)); break;
        default: word = other_n < 2 ? word : words[other + 1 + any(other_n - 1)]; break;
      }
    }
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 8 == 0 || size / 4 <= kHeaderWords) return LLVMFuzzerMutate(data, size, most);
  std::vector<std::uint32_t> words(size / 4);
  std::memcpy(words.data(), data, words.size() * 4);
  for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) change_instruction(words, most / 4, random);
  std::memcpy(data, words.data(), words.size() * 4);
  return words.size() * 4;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint32_t> words(size / 4);
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * 4);
  const auto module = read_module(words, {{}, 8, {}}, "in.spv");
  if (!module.ok()) return 0;
  std::vector<Buffer> buffers(4);
  Launch launch;
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    buffers[i].bytes.resize(512 + i);
    if (i % 2 == 1) buffers[i].written.assign(buffers[i].bytes.size(), 0);
    launch.bindings.push_back({i, 0, buffers[i].bytes.size()});
  }
  const std::vector<std::byte> push(std::min<std::uint32_t>(module->push_bytes, 256), std::byte{1});
  launch.push = push;
  launch.grid = {2, 1, 1};
  launch.subgroup_size = 8;
  launch.most_operations = kMostOperations;
  (void)simulate(*module, buffers, launch);
  return 0;
}
