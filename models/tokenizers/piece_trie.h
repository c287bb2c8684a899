// The pieces of a vocabulary, found in a text byte by byte: which of them begin at a place, in time in proportion to the
// longest that may.
//
// Owns copies of the pieces; constant once built, so it may be used from several threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::models {

class PieceTrie {
 public:
  struct Piece {
    std::string_view text;
    std::int32_t value;  ///< not negative
  };
  /// All pieces that begin with the bytes that were followed.
  class Cursor {
   public:
    /// Follows `byte`; false if no piece goes on with it, after which the cursor is of no use.
    bool follow(char byte);
    /// The value of the piece that ends here, or -1.
    std::int32_t value() const;

   private:
    friend class PieceTrie;
    Cursor(const PieceTrie& trie, std::uint32_t end) : trie_(&trie), end_(end) {}
    const PieceTrie* trie_;
    std::uint32_t begin_ = 0, end_;
    std::uint32_t depth_ = 0;
  };

  /// A longer piece would make text of the same letter take time in proportion to it, at every letter.
  static constexpr std::size_t kMaxPieceBytes = 512;

  PieceTrie() = default;
  /// `pieces` are neither empty nor longer than kMaxPieceBytes; of equal ones the last counts.
  [[gnu::cold]] explicit PieceTrie(std::vector<Piece> pieces);

  Cursor root() const { return Cursor(*this, static_cast<std::uint32_t>(values_.size())); }
  bool empty() const { return values_.empty(); }
  struct Match {
    std::size_t size = 0;
    std::int32_t value = -1;
  };
  /// The longest piece that `text` begins with; without one, a Match as it is made.
  Match longest(std::string_view text) const;

 private:
  std::string_view piece(std::uint32_t index) const { return std::string_view(text_).substr(begins_[index], begins_[index + 1] - begins_[index]); }

  std::string text_;                              // all pieces, in order
  std::vector<std::uint32_t> begins_;             // of each in text_, and its end
  std::vector<std::int32_t> values_;              // of each
  std::array<std::uint32_t, 257> by_byte_ = {};  // where the pieces begin that begin with each byte, and their end
};

}  // namespace rondo::models
