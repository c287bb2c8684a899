#include "models/tokenizers/charsmap.h"

#include <algorithm>
#include <span>

#include "runtime/fmt.h"

namespace rondo::models {

namespace {

std::uint32_t number_at(std::string_view bytes, std::size_t place) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i > 0; --i) number = number << 8 | static_cast<unsigned char>(bytes[place + i - 1]);
  return number;
}

constexpr std::uint32_t kValueBit = 1U << 31;
bool has_label(std::uint32_t unit, char byte) { return (unit & (kValueBit | 0xff)) == static_cast<unsigned char>(byte); }
bool ends_key(std::uint32_t unit) { return (unit & 1U << 8) != 0; }
std::uint32_t offset(std::uint32_t unit) { return (unit & ~kValueBit) >> 10 << ((unit & 1U << 9) != 0 ? 8 : 0); }

}  // namespace

Result<Charsmap> Charsmap::read(const GgufFile& file, const ByteSource* source) {
  constexpr std::string_view kArrayKey = "tokenizer.ggml.precompiled_charsmap", kStringKey = "rondo.charsmap";
  Charsmap map;
  if (file.has(kStringKey)) {
    RONDO_ASSIGN(const std::string_view bytes, file.string(kStringKey));
    RONDO_TRY(map.load(file, kStringKey, bytes));
    return map;
  }
  const std::span<const GgufMetadata> all = file.metadata();
  const auto found = std::find_if(all.begin(), all.end(), [&](const GgufMetadata& entry) { return entry.key == kArrayKey; });
  if (found == all.end()) return map;
  const GgufValue& value = found->value;
  if (value.type != GgufValueType::kArray || (value.element_type != GgufValueType::kU8 && value.element_type != GgufValueType::kI8)) {
    return file.key_error(kArrayKey, fmt::format("is {}, expected an array of bytes", value.text()));
  }
  if (source == nullptr) return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key '{}' cannot be read without the file", file.name(), kArrayKey));
  // The file's description keeps no arrays of bytes; this one ends where its entry does.
  std::string bytes(static_cast<std::size_t>(value.n_elements), '\0');
  const std::uint64_t end = file.metadata_offset(static_cast<std::size_t>(found - all.begin()) + 1);
  RONDO_TRY(source->read(end - value.n_elements, std::as_writable_bytes(std::span<char>(bytes))));
  RONDO_TRY(map.load(file, kArrayKey, bytes));
  return map;
}

Status Charsmap::load(const GgufFile& file, std::string_view key, std::string_view bytes) {
  if (bytes.empty()) return {};
  const std::size_t trie_bytes = bytes.size() < 4 ? 0 : number_at(bytes, 0);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > bytes.size() - 4) {
    return file.key_error(key, fmt::format("has {} bytes, of which the trie has {}, expected whole units and replacements behind them", bytes.size(), trie_bytes));
  }
  for (std::size_t place = 4; place < 4 + trie_bytes; place += 4) units_.push_back(number_at(bytes, place));
  replacements_ = bytes.substr(4 + trie_bytes);
  if (replacements_.empty() || replacements_.back() != '\0') return file.key_error(key, "has a last replacement without its end");
  return {};
}

Charsmap::Match Charsmap::find(std::string_view text) const {
  Match best;
  if (units_.empty()) return best;
  std::size_t place = offset(units_[0]);
  for (std::size_t i = 0; i < std::min(text.size(), kMaxKeyBytes); ++i) {
    place ^= static_cast<unsigned char>(text[i]);
    if (text[i] == '\0' || place >= units_.size() || !has_label(units_[place], text[i])) break;
    const std::uint32_t unit = units_[place];
    place ^= offset(unit);
    if (!ends_key(unit) || place >= units_.size()) continue;
    const std::size_t begin = units_[place] & ~kValueBit;
    if (begin >= replacements_.size()) continue;
    best = {i + 1, std::string_view(replacements_.c_str() + begin)};
  }
  return best;
}

}  // namespace rondo::models
