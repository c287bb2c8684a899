#include "models/tokenizers/piece_trie.h"

#include <algorithm>

namespace rondo::models {

PieceTrie::PieceTrie(std::vector<Piece> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.text < b.text; });
  begins_.push_back(0);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i + 1 < pieces.size() && pieces[i + 1].text == pieces[i].text) continue;
    text_ += pieces[i].text;
    begins_.push_back(static_cast<std::uint32_t>(text_.size()));
    values_.push_back(pieces[i].value);
    by_byte_[static_cast<unsigned char>(pieces[i].text[0]) + std::size_t{1}] = static_cast<std::uint32_t>(values_.size());
  }
  for (std::size_t byte = 1; byte < by_byte_.size(); ++byte) by_byte_[byte] = std::max(by_byte_[byte], by_byte_[byte - 1]);
}

bool PieceTrie::Cursor::follow(char byte) {
  const auto wanted = static_cast<unsigned char>(byte);
  if (depth_++ == 0) {
    begin_ = trie_->by_byte_[wanted];
    end_ = trie_->by_byte_[wanted + std::size_t{1}];
    return begin_ < end_;
  }
  // All pieces from begin_ to end_ share the bytes so far; the one that has no more comes first.
  if (trie_->piece(begin_).size() < depth_ && ++begin_ == end_) return false;
  const auto byte_of = [&](std::uint32_t index) { return static_cast<unsigned char>(trie_->piece(index)[depth_ - 1]); };
  if (byte_of(begin_) == wanted && byte_of(end_ - 1) == wanted) return true;
  const auto first_not_below = [&](std::uint32_t begin, std::uint32_t end, unsigned limit) {
    while (begin < end) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      (byte_of(middle) < limit ? begin : end) = byte_of(middle) < limit ? middle + 1 : middle;
    }
    return begin;
  };
  begin_ = first_not_below(begin_, end_, wanted);
  end_ = first_not_below(begin_, end_, wanted + 1U);
  return begin_ < end_;
}

std::int32_t PieceTrie::Cursor::value() const {
  return depth_ > 0 && begin_ < end_ && trie_->piece(begin_).size() == depth_ ? trie_->values_[begin_] : -1;
}

PieceTrie::Match PieceTrie::longest(std::string_view text) const {
  Match best;
  Cursor cursor = root();
  for (std::size_t i = 0; i < text.size() && cursor.follow(text[i]); ++i) {
    if (cursor.value() >= 0) best = {i + 1, cursor.value()};
  }
  return best;
}

}  // namespace rondo::models
