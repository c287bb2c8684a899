// How SPIR-V lies in the library: what the build writes (cmake/pack_spirv.cpp) and runtime/kernel.cpp reads.
//
// Most words of a module are ids that were given out shortly before. A SpirvCoder turns each word into a small number, by what came
// before it; numbers are bytes of seven bits, lowest first, all but a number's last with the top bit set (LEB128). Of these bytes
// runs that were there before are left out (LZ77): a number of bytes that follow as they are, these bytes, then a length and how far
// back to copy from, until there are no more. A third of the module's size is left.
#pragma once

#include <cstdint>

namespace rondo::runtime {

/// Goes through a module's words in order. Both directions of the same word must see the same words before it.
class SpirvCoder {
 public:
  std::uint32_t encode(std::uint32_t word) {
    const std::uint32_t code = is_head() ? (word >> 22) << 22 | (word & 0xffffu) << 6 | (word >> 16 & 63u) : is_relative() ? fold(word - latest_) : word;
    step(word);
    return code;
  }

  std::uint32_t decode(std::uint32_t code) {
    const std::uint32_t word = is_head() ? (code >> 22) << 22 | (code & 63u) << 16 | (code >> 6 & 0xffffu) : is_relative() ? latest_ + unfold(code) : code;
    step(word);
    return word;
  }

 private:
  static constexpr std::uint32_t kHeaderWords = 5;
  /// Small differences either way become small numbers.
  static std::uint32_t fold(std::uint32_t difference) { return difference << 1 ^ (0u - (difference >> 31)); }
  static std::uint32_t unfold(std::uint32_t code) { return code >> 1 ^ (0u - (code & 1u)); }

  /// An instruction's first word: its length, and what it is.
  bool is_head() const { return n_before_ >= kHeaderWords && left_ == 0; }
  /// An id that is probably not far from the last result.
  bool is_relative() const {
    constexpr std::uint32_t kDecorate = 71, kMemberDecorate = 72, kConstant = 43, kSpecConstant = 50, kExtInstImport = 11, kFirstWithTypes = 41;
    if (n_before_ < kHeaderWords || op_ == kDecorate || op_ == kMemberDecorate || op_ == kExtInstImport) return false;
    return place_ == 2 ? op_ >= kFirstWithTypes : place_ > 2 && op_ != kConstant && op_ != kSpecConstant;
  }
  void step(std::uint32_t word) {
    if (is_head()) {
      op_ = word & 0xffffu;
      left_ = word >> 16;
      place_ = 0;
    } else if (place_ == 2 && is_relative()) {
      latest_ = word;
    }
    if (n_before_ >= kHeaderWords && left_ > 0) --left_, ++place_;
    ++n_before_;
  }

  std::uint32_t n_before_ = 0, latest_ = 0;
  std::uint32_t op_ = 0, left_ = 0, place_ = 0;  ///< of the instruction: what it is, words that are still to come, and the next one's place
};

constexpr std::uint32_t kShortestMatch = 4;  ///< bytes; of a match's length so many are taken off

}  // namespace rondo::runtime
