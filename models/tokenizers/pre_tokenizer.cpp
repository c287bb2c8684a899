#include "models/tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>

#include "models/utf8.h"

namespace rondo::models {

namespace {

// As published: GPT-2's in its encoder.py, the others in the tokenizer.json of the models they are named after.
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";

// Names and flags are llama.cpp's (src/llama-vocab.cpp); those of models with other parts of their own are left out.
constexpr PreTokenizerKind kKinds[] = {
    {"gpt-2", {kGpt2}, false, false},
    {"phi-2", {kGpt2}, false, false},
    {"olmo", {kGpt2}, false, false},
    {"trillion", {kGpt2}, false, false},
    {"exaone4", {kGpt2}, false, false},
    {"llama-bpe", {kLlama3}, true, true},
    {"llama3", {kLlama3}, true, true},
    {"llama-v3", {kLlama3}, true, true},
    {"falcon3", {kLlama3}, true, true},
    {"pixtral", {kLlama3}, true, true},
    {"midm-2.0", {kLlama3}, true, true},
    {"smaug-bpe", {kLlama3}, false, false},
    {"dbrx", {kLlama3}, false, false},
    {"smollm", {kDigit, kGpt2}, false, false},
    {"starcoder", {kDigit, kGpt2}, false, false},
    {"refact", {kDigit, kGpt2}, false, false},
    {"command-r", {kDigit, kGpt2}, false, false},
    {"exaone", {kDigit, kGpt2}, false, false},
    {"minerva-7b", {kDigit, kGpt2}, false, false},
    {"qwen2", {kQwen2}, false, false},
    {"deepseek-r1-qwen", {kQwen2}, false, false},
    {"megrez", {kQwen2}, false, false},
    {"stablelm2", {kQwen2}, false, false},
    {"hunyuan", {kQwen2}, false, false},
};

constexpr std::uint32_t kHeapLimitKib = 4096;  // of backtracking; the patterns above need a fraction

// PCRE2's own \s also has U+180E, which is no white space since Unicode 6.3.
std::string with_unicode_spaces(std::string_view pattern) {
  constexpr std::string_view kSpaces = R"(\p{Z}\t-\r\x{85})";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      in_class = c == '[' || (in_class && c != ']');
      out += c;
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's' && in_class) {
      out += kSpaces;
    } else if (escaped == 's' || escaped == 'S') {
      out += escaped == 's' ? "[" : "[^";
      out += kSpaces;
      out += ']';
    } else {
      out += c;
      out += escaped;
    }
  }
  return out;
}

/// `text` with U+001A, the substitute, for every byte that is not part of UTF-8; `storage` holds it if it differs.
std::string_view valid_text(std::string_view text, std::string& storage) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t size = utf8_character_bytes(text.substr(i));
    if (size == 0) {
      if (storage.empty()) storage = text;
      storage[i] = '\x1a';
    }
    i += std::max(size, std::size_t{1});
  }
  return storage.empty() ? text : std::string_view(storage);
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct MatchContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
using MatchData = std::unique_ptr<pcre2_match_data, MatchDataDeleter>;
using MatchContext = std::unique_ptr<pcre2_match_context, MatchContextDeleter>;

/// One text being split. `valid` is the text as PCRE2 may see it, byte for byte.
struct Split {
  std::span<const pcre2_code* const> patterns;
  std::span<const MatchData> data;  // null where there was no memory
  const MatchContext& context;
  std::string_view text;
  std::string_view valid;
  const std::function<void(std::string_view)>& piece;

  void cut(std::size_t begin, std::size_t end, std::size_t stage) const {
    if (begin == end) return;
    if (stage == patterns.size()) {
      piece(text.substr(begin, end - begin));
      return;
    }
    const auto subject = reinterpret_cast<PCRE2_SPTR>(valid.data() + begin);
    const std::size_t size = end - begin;
    std::size_t done = 0;
    while (done < size && data[stage] != nullptr && context != nullptr) {
      const int matched =
          pcre2_match(patterns[stage], subject, size, done, PCRE2_NO_UTF_CHECK, data[stage].get(), context.get());
      if (matched < 0) break;  // no match, or a limit
      const std::size_t* match = pcre2_get_ovector_pointer(data[stage].get());
      if (match[0] < done || match[1] <= match[0]) break;
      cut(begin + done, begin + match[0], stage + 1);
      cut(begin + match[0], begin + match[1], stage + 1);
      done = match[1];
    }
    cut(begin + done, end, stage + 1);
  }
};

}  // namespace

std::span<const PreTokenizerKind> pre_tokenizer_kinds() { return kKinds; }

void PreTokenizer::CodeDeleter::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Result<PreTokenizer> PreTokenizer::create(std::span<const std::string_view> patterns) {
  PreTokenizer created;
  for (const std::string_view pattern : patterns) {
    if (pattern.empty()) continue;
    const std::string source = with_unicode_spaces(pattern);
    int error = 0;
    std::size_t place = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), PCRE2_UTF | PCRE2_UCP,
                                     &error, &place, nullptr);
    if (code == nullptr) {
      return Status(StatusCode::kInternal,
                    fmt::format("pattern '{}': PCRE2 refuses it with error {} at byte {}", source, error, place));
    }
    created.patterns_.emplace_back(code);
  }
  return created;
}

void PreTokenizer::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
  std::string storage;
  const std::string_view valid = valid_text(text, storage);
  const MatchContext context(pcre2_match_context_create(nullptr));
  if (context != nullptr) {
    // A run of blanks without a line end takes as many steps as it has blanks.
    const std::uint64_t steps = 1000 + 2 * std::uint64_t{text.size()};
    constexpr std::uint64_t kMostSteps = std::numeric_limits<std::uint32_t>::max();
    pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(std::min(steps, kMostSteps)));
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  }
  std::vector<const pcre2_code*> codes;
  std::vector<MatchData> data;
  for (const auto& code : patterns_) {
    codes.push_back(code.get());
    data.emplace_back(pcre2_match_data_create(1, nullptr));
  }
  Split{codes, data, context, text, valid, piece}.cut(0, text.size(), 0);
}

}  // namespace rondo::models
