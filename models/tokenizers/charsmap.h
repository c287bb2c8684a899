// The map of characters that SentencePiece's models carry ("precompiled_charsmap"): what text is replaced by before it is cut into pieces.
//
// Its bytes: the size of the trie, a 32-bit number; the trie, 32-bit units; the replacements, each ended by a zero. All numbers are
// little-endian. The trie is a double array as Darts-clone writes it (Aoe, "An Efficient Digital Search Algorithm by Using a
// Double-Array Structure", 1989; Kanda, 2018). Of a unit, bits 0 to 7 and bit 31 are its label, bit 8 says that what leads to it is a key,
// and bits 10 to 30 are its offset, shifted left by another 8 if bit 9 is set. From the root, unit 0, the unit behind byte b is the
// one at (place of the unit) xor (its offset) xor b, if its label is b. The value of a key is in the unit at (place) xor
// (offset), whose bits 0 to 30 are where the replacement begins.
//
// Owns a copy; constant, so it may be used from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/formats/gguf.h"

namespace rondo::models {

class Charsmap {
 public:
  /// Keys are shorter than this; of a hostile trie, whose units may lead back to themselves, no more is followed.
  static constexpr std::size_t kMaxKeyBytes = 64;

  Charsmap() = default;
  /// Reads tokenizer.ggml.precompiled_charsmap, an array of bytes within `source`, or rondo.charsmap, a string; without either, a
  /// map of nothing. Errors: kCorruptData naming file and key, kUnsupported (an array, but `source` is null), and the source's own.
  [[gnu::cold]] static Result<Charsmap> read(const GgufFile& file, const ByteSource* source);

  struct Match {
    std::size_t size = 0;  ///< bytes that are replaced; 0: none
    std::string_view replacement;
  };
  /// What the longest key that `text` begins with is replaced by.
  Match find(std::string_view text) const;

 private:
  [[gnu::cold]] Status load(const GgufFile& file, std::string_view key, std::string_view bytes);

  std::vector<std::uint32_t> units_;
  std::string replacements_;  // ends with a zero
};

}  // namespace rondo::models
