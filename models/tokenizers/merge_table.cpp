#include "models/tokenizers/merge_table.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>

#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

// Seven times the largest published table; bounds what a hostile one can allocate.
constexpr std::size_t kMaxMerges = std::size_t{1} << 21;

}  // namespace

Result<MergeTable> MergeTable::read(const GgufFile& file, const Vocabulary& vocabulary) {
  MergeTable table;
  RONDO_TRY(table.load(file, vocabulary));
  RONDO_TRY(table.index(file, vocabulary));
  return table;
}

Status MergeTable::load(const GgufFile& file, const Vocabulary& vocabulary) {
  RONDO_ASSIGN(const GgufStrings* lines, file.strings(kMergesKey));
  if (lines->size() > kMaxMerges) {
    return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key '{}' holds {} merges, expected at most {}",
                                                        file.name(), kMergesKey, lines->size(), kMaxMerges));
  }
  merges_.reserve(lines->size());
  std::string whole;
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const std::string_view line = (*lines)[i];
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size()) {
      return file.key_error(
          kMergesKey,
          fmt::format("holds '{}' at index {}, expected two tokens and a space between them", printable(line), i));
    }
    whole = line.substr(0, space);
    whole += line.substr(space + 1);
    const Merge merge{vocabulary.find(line.substr(0, space)), vocabulary.find(line.substr(space + 1)),
                      vocabulary.find(whole)};
    if (merge.left < 0 || merge.right < 0 || merge.token < 0) {
      const std::string_view missing = merge.left < 0    ? line.substr(0, space)
                                       : merge.right < 0 ? line.substr(space + 1)
                                                         : std::string_view(whole);
      return file.key_error(kMergesKey,
                            fmt::format("holds '{}' at index {}, but '{}' is no normal or user-defined token of '{}'",
                                        printable(line), i, printable(missing), kTokensKey));
    }
    merges_.push_back(merge);
  }
  return Status();
}

std::size_t MergeTable::first_slot(std::int32_t left, std::int32_t right) const {
  const std::uint64_t key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
  const std::uint64_t mixed = key * 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
  return static_cast<std::size_t>((mixed ^ mixed >> 32) & (slots_.size() - 1));
}

Status MergeTable::index(const GgufFile& file, const Vocabulary& vocabulary) {
  slots_.assign(std::bit_ceil(std::max(merges_.size() * 2, std::size_t{2})), -1);
  for (std::size_t rank = 0; rank < merges_.size(); ++rank) {
    const Merge& merge = merges_[rank];
    std::size_t slot = first_slot(merge.left, merge.right);
    for (std::size_t n_probes = 0; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const Merge& other = merges_[static_cast<std::size_t>(slots_[slot])];
      if (other.left == merge.left && other.right == merge.right) {
        return file.key_error(kMergesKey, fmt::format("holds '{} {}' at index {} and again at {}, expected it once",
                                                      printable(vocabulary.spelling(merge.left)),
                                                      printable(vocabulary.spelling(merge.right)), slots_[slot],
                                                      rank));
      }
      if (++n_probes > kMaxProbes) return file.key_error(kMergesKey, "holds too many merges with the same hash");
    }
    slots_[slot] = static_cast<std::int32_t>(rank);
  }
  return Status();
}

std::int32_t MergeTable::find(std::int32_t left, std::int32_t right) const {
  if (left < 0 || right < 0) return -1;
  for (std::size_t slot = first_slot(left, right);; slot = (slot + 1) & (slots_.size() - 1)) {
    const std::int32_t rank = slots_[slot];
    if (rank < 0) return -1;
    const Merge& merge = merges_[static_cast<std::size_t>(rank)];
    if (merge.left == left && merge.right == right) return rank;
  }
}

}  // namespace rondo::models
