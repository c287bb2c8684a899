// Which tokens of byte-pair encoding become another one, and in which order.
//
// Owns what it needs; constant, so it may be used from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/tokenizers/vocabulary.h"

namespace rondo::models {

class MergeTable {
 public:
  /// Tokens that become another one; its rank is its place among the others.
  struct Merge {
    std::int32_t left;
    std::int32_t right;
    std::int32_t token;
  };

  /// Reads tokenizer.ggml.merges; `vocabulary` has an index. Errors: kUnsupported (more than 2,097,152 merges), kNotFound and
  /// kCorruptData, naming file and key.
  static Result<MergeTable> read(const GgufFile& file, const Vocabulary& vocabulary);

  /// The rank of the merge of `left` and `right`, or -1.
  std::int32_t find(std::int32_t left, std::int32_t right) const;
  const Merge& operator[](std::size_t rank) const { return merges_[rank]; }

 private:
  Status load(const GgufFile& file, const Vocabulary& vocabulary);
  Status index(const GgufFile& file, const Vocabulary& vocabulary);
  std::size_t first_slot(std::int32_t left, std::int32_t right) const;

  std::vector<Merge> merges_;
  std::vector<std::int32_t> slots_;  // open addressing by left and right; -1 is empty
};

}  // namespace rondo::models
