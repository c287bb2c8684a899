#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "models/tokenizers/vocabulary.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";

// About four times the largest published vocabulary; they bound what a hostile one can allocate.
constexpr std::size_t kMaxTokens = std::size_t{1} << 20;
constexpr std::size_t kMaxTextBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxSpecialBytes = 1024;

}  // namespace

Result<Vocabulary> Vocabulary::read(const GgufFile& file, DefaultIds defaults) {
  Vocabulary vocabulary;
  RONDO_TRY(vocabulary.read_spellings(file, kTokensKey));
  RONDO_TRY(vocabulary.read_types(file, kTypesKey));
  RONDO_TRY(vocabulary.read_ids(file, defaults));
  return vocabulary;
}

Result<Vocabulary> Vocabulary::read_pieces(const GgufFile& file, std::string_view tokens_key, std::string_view types_key) {
  Vocabulary vocabulary;
  RONDO_TRY(vocabulary.read_spellings(file, tokens_key));
  RONDO_TRY(vocabulary.read_types(file, types_key));
  return vocabulary;
}

void Vocabulary::leave_user_defined() {
  user_defined_ = {};
  std::erase_if(all_specials_.ids, [&](std::int32_t id) { return type(id) == TokenType::kUserDefined; });
}

Status Vocabulary::index(const GgufFile& file, bool own_alphabet) {
  RONDO_TRY(index_findable(file, own_alphabet));
  return index_specials(file);
}

Status Vocabulary::read_spellings(const GgufFile& file, std::string_view key) {
  RONDO_ASSIGN(const GgufStrings* spellings, file.strings(key));
  const std::size_t n_tokens = spellings->size();
  if (n_tokens == 0) return file.key_error(key, "is empty");
  if (n_tokens > kMaxTokens || spellings->text_bytes() > kMaxTextBytes) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}: metadata key '{}' holds {} tokens of {} bytes in all, expected at most {} of {}",
                              file.name(), key, n_tokens, spellings->text_bytes(), kMaxTokens, kMaxTextBytes));
  }
  text_.reserve(spellings->text_bytes());
  ends_.reserve(n_tokens);
  for (std::size_t i = 0; i < n_tokens; ++i) {
    text_ += (*spellings)[i];
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  return Status();
}

Status Vocabulary::read_types(const GgufFile& file, std::string_view key) {
  types_.assign(ends_.size(), TokenType::kNormal);
  if (!file.has(key)) return Status();
  RONDO_ASSIGN(const std::span<const std::int32_t> types, file.i32s(key));
  if (types.size() != types_.size()) {
    return file.key_error(
        key, fmt::format("holds {} types, expected one for each of {} tokens", types.size(), types_.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 0 || types[i] > static_cast<std::int32_t>(TokenType::kByte)) {
      return file.key_error(key, fmt::format("holds {} at index {}, expected 0 to 6", types[i], i));
    }
    types_[i] = static_cast<TokenType>(types[i]);
  }
  return Status();
}

Status Vocabulary::read_ids(const GgufFile& file, DefaultIds defaults) {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  const auto load = [&](std::string_view key, std::int32_t& id) -> Status {
    if (!file.has(key)) return Status();
    RONDO_ASSIGN(const std::uint32_t value, file.u32(key));
    id = -1;
    if (value == kNone) return Status();  // how converters write -1
    if (value >= types_.size()) {
      return file.key_error(key, fmt::format("is {}, expected a token id below {}", value, types_.size()));
    }
    id = static_cast<std::int32_t>(value);
    return Status();
  };
  if (defaults == DefaultIds::kSentencePiece) {
    if (spelling(0) == "<unk>") unknown_ = 0;
    if (spelling(1) == "<s>") bos_ = 1;
    if (spelling(2) == "</s>") eos_ = 2;
  }
  if (defaults == DefaultIds::kT5) {
    if (spelling(1) == "</s>") eos_ = 1;
    if (spelling(2) == "<unk>") unknown_ = 2;
  }
  std::int32_t eot = -1;
  std::int32_t eom = -1;
  RONDO_TRY(load("tokenizer.ggml.unknown_token_id", unknown_));
  RONDO_TRY(load("tokenizer.ggml.bos_token_id", bos_));
  RONDO_TRY(load("tokenizer.ggml.eos_token_id", eos_));
  RONDO_TRY(load("tokenizer.ggml.eot_token_id", eot));
  RONDO_TRY(load("tokenizer.ggml.eom_token_id", eom));
  RONDO_TRY(load("tokenizer.ggml.mask_token_id", mask_));
  for (const std::int32_t id : {eos_, eot, eom}) {
    if (id >= 0 && std::find(stop_ids_.begin(), stop_ids_.end(), id) == stop_ids_.end()) stop_ids_.push_back(id);
  }
  constexpr std::string_view kStopKey = "rondo.stop_ids";
  if (file.has(kStopKey)) {
    RONDO_ASSIGN(const std::span<const std::int32_t> ids, file.i32s(kStopKey));
    for (const std::int32_t id : ids) {
      if (!contains(id)) return file.key_error(kStopKey, fmt::format("holds {}, expected token ids below {}", id, types_.size()));
      if (std::find(stop_ids_.begin(), stop_ids_.end(), id) == stop_ids_.end()) stop_ids_.push_back(id);
    }
  }
  if (!file.has(kTypesKey)) {
    for (const std::int32_t id : {bos_, eos_, eot, eom}) {
      if (id >= 0) types_[static_cast<std::size_t>(id)] = TokenType::kControl;
    }
    if (unknown_ >= 0) types_[static_cast<std::size_t>(unknown_)] = TokenType::kUnknown;
  }
  return Status();
}

Status Vocabulary::index_findable(const GgufFile& file, bool own_alphabet) {
  const auto is_ascii = [](std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
  };
  slots_.assign(std::bit_ceil(types_.size() * 2), -1);
  const std::size_t mask = slots_.size() - 1;
  for (std::int32_t id = 0; id < size(); ++id) {
    const std::string_view text = spelling(id);
    const bool findable = type(id) == TokenType::kNormal || type(id) == TokenType::kUndefined ||
                          (type(id) == TokenType::kUserDefined && (!own_alphabet || is_ascii(text)));
    if (!findable || text.empty()) continue;
    std::size_t slot = std::hash<std::string_view>()(text) & mask;
    std::size_t n_probes = 0;
    while (slots_[slot] >= 0 && spelling(slots_[slot]) != text) {
      slot = (slot + 1) & mask;
      if (++n_probes > kMaxProbes) return file.key_error(kTokensKey, "holds too many tokens with the same hash");
    }
    slots_[slot] = id;  // of equal spellings the last one counts
    max_findable_bytes_ = std::max(max_findable_bytes_, text.size());
  }
  return Status();
}

Status Vocabulary::index_specials(const GgufFile& file) {
  for (std::int32_t id = 0; id < size(); ++id) {
    const bool user_defined = type(id) == TokenType::kUserDefined;
    if (!user_defined && type(id) != TokenType::kControl && type(id) != TokenType::kUnknown) continue;
    const std::string_view text = spelling(id);
    if (text.empty()) continue;
    if (text.size() > kMaxSpecialBytes) {
      return file.key_error(
          kTokensKey, fmt::format("holds a special token of {} bytes at index {}, expected at most {}", text.size(), id,
                                  kMaxSpecialBytes));
    }
    if (user_defined) user_defined_.ids.push_back(id);
    all_specials_.ids.push_back(id);
  }
  for (SpecialTokens* specials : {&user_defined_, &all_specials_}) {
    std::sort(specials->ids.begin(), specials->ids.end(), [&](std::int32_t a, std::int32_t b) {
      const int order = spelling(a).compare(spelling(b));
      return order != 0 ? order < 0 : a < b;
    });
    for (const std::int32_t id : specials->ids) specials->first_bytes.set(static_cast<unsigned char>(spelling(id)[0]));
  }
  return Status();
}

}  // namespace rondo::models
