#include "models/tokenizers/tokenizer_model.h"

#include <algorithm>
#include <utility>

#include "models/printable.h"
#include "models/tokenizers/bpe.h"
#include "models/tokenizers/nfc.h"
#include "models/tokenizers/split_expression.h"
#include "models/tokenizers/spm.h"
#include "models/tokenizers/unigram.h"
#include "models/tokenizers/word_piece.h"
#include "runtime/fmt.h"

namespace rondo::models {

bool TokenizerModel::is_there(const GgufFile& file) {
  const Result<std::string_view> kind = file.string("tokenizer.ggml.model");
  return !kind.ok() || (*kind != "none" && *kind != "no_vocab");
}

Result<std::shared_ptr<const TokenizerModel>> TokenizerModel::create(const GgufFile& file, const ByteSource* source) {
  constexpr std::string_view kModelKey = "tokenizer.ggml.model";
  RONDO_ASSIGN(const std::string_view kind, file.string(kModelKey));
  RONDO_ASSIGN(const bool nfc, file.boolean_or("rondo.nfc", false));
  const auto made = [&](auto created) -> Result<std::shared_ptr<const TokenizerModel>> {
    RONDO_ASSIGN(auto tokenizer, std::move(created));
    tokenizer.to_nfc_ = nfc;
    RONDO_TRY(tokenizer.read_around(file));
    return std::shared_ptr<const TokenizerModel>(std::make_shared<const decltype(tokenizer)>(std::move(tokenizer)));
  };
  if (kind == "llama") return made(SpmTokenizer::create(file, source));
  if (kind == "gpt2") return made(BpeTokenizer::create(file));
  if (kind == "t5") return made(UnigramTokenizer::create(file, source));
  if (kind == "bert") return made(WordPieceTokenizer::create(file));
  if (!is_there(file)) {
    RONDO_ASSIGN(const std::string_view why, file.string_or("rondo.tokenizer_refusal", ""));
    if (!why.empty()) return Status(StatusCode::kUnsupported, fmt::format("{}; use --tokens, or --tokenizer FILE.gguf for another file's", why));
    return Status(StatusCode::kNotFound, fmt::format("{}: has no tokenizer; give tokens", file.name()));
  }
  return Status(
      StatusCode::kUnsupported,
      fmt::format("{}: metadata key '{}' is '{}': this kind of tokenizer is not there yet, expected 'llama', 'gpt2', 'bert' or 't5'",
                  file.name(), kModelKey, printable(kind)));
}

Status TokenizerModel::read_around(const GgufFile& file) {
  const auto read = [&](std::string_view key, std::vector<std::int32_t>& ids) -> Status {
    if (!file.has(key)) return {};
    RONDO_ASSIGN(const std::span<const std::int32_t> values, file.i32s(key));
    for (const std::int32_t id : values) {
      if (!vocabulary_.contains(id)) return file.key_error(key, fmt::format("holds {}, expected token ids below {}", id, vocabulary_.size()));
    }
    ids.assign(values.begin(), values.end());
    return {};
  };
  RONDO_TRY(read("rondo.tokens_before", before_));
  RONDO_TRY(read("rondo.tokens_between", between_));
  RONDO_TRY(read("rondo.tokens_after", after_));
  RONDO_TRY(read("rondo.strips_left", strips_left_));
  RONDO_TRY(read("rondo.strips_right", strips_right_));
  for (std::vector<std::int32_t>* ids : {&strips_left_, &strips_right_}) std::sort(ids->begin(), ids->end());
  if (before_.empty() && add_bos_ && vocabulary_.bos() >= 0) before_ = {vocabulary_.bos()};
  return {};
}

std::vector<std::int32_t> TokenizerModel::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<std::int32_t> tokens;
  if (options.add_bos) tokens = before_;
  encode_parts(text, options.parse_special, tokens);
  if (options.add_eos) tokens.insert(tokens.end(), after_.begin(), after_.end());
  return tokens;
}

EncodedPair TokenizerModel::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  EncodedPair pair;
  if (options.add_bos) pair.tokens = before_;
  encode_parts(first, options.parse_special, pair.tokens);
  if (options.add_eos) pair.tokens.insert(pair.tokens.end(), between_.begin(), between_.end());
  pair.n_first = pair.tokens.size();
  encode_parts(second, options.parse_special, pair.tokens);
  if (options.add_eos) pair.tokens.insert(pair.tokens.end(), after_.begin(), after_.end());
  return pair;
}

void TokenizerModel::encode_parts(std::string_view text, bool parse_special, std::vector<std::int32_t>& tokens) const {
  const auto is_blank = [](const TextCharacter& character) { return unicode_class(character.code) == UnicodeClass::kWhiteSpace; };
  const auto strips = [](const std::vector<std::int32_t>& ids, std::int32_t token) { return std::binary_search(ids.begin(), ids.end(), token); };
  bool begins_text = true;
  std::int32_t before = -1;
  const std::vector<Vocabulary::Fragment> fragments = vocabulary_.partition(text, parse_special);
  for (std::size_t i = 0; i < fragments.size(); ++i) {
    const Vocabulary::Fragment& fragment = fragments[i];
    if (fragment.token >= 0) {
      tokens.push_back(fragment.token);
      // As SentencePiece does, and unlike llama.cpp: a user-defined symbol is text; what follows it begins no new text.
      begins_text = space_prefix_ == SpacePrefix::kText ? vocabulary_.type(fragment.token) != TokenType::kUserDefined
                                                        : space_prefix_ != SpacePrefix::kFirst;
      before = fragment.token;
      continue;
    }
    std::string_view part = text.substr(fragment.begin, fragment.size);
    if (strips(strips_right_, before)) {
      while (!part.empty() && is_blank(character_at(part, 0))) part.remove_prefix(character_at(part, 0).bytes);
    }
    if (i + 1 < fragments.size() && strips(strips_left_, fragments[i + 1].token)) {
      // White space has up to three bytes.
      for (std::size_t size = 1; size <= std::min<std::size_t>(3, part.size());) {
        const TextCharacter last = character_at(part, part.size() - size);
        const bool blank = last.bytes == size && is_blank(last);
        if (blank) part.remove_suffix(size);
        size = blank ? 1 : size + 1;
      }
    }
    if (part.empty()) continue;
    encode_text(to_nfc_ ? std::string_view(to_nfc(part)) : part, begins_text, tokens);
    begins_text = false;
  }
}

void TokenizerModel::append_piece(std::int32_t token, std::string& out) const {
  if (!vocabulary_.contains(token)) return;
  switch (vocabulary_.type(token)) {
    case TokenType::kUndefined:
    case TokenType::kNormal:
    case TokenType::kByte:
      append_text(token, out);
      break;
    case TokenType::kUserDefined:
      out += vocabulary_.spelling(token);
      break;
    case TokenType::kUnknown:
    case TokenType::kControl:
    case TokenType::kUnused:
      break;
  }
}

std::string TokenizerModel::piece(std::int32_t token) const {
  std::string out;
  append_piece(token, out);
  return out;
}

std::string TokenizerModel::decode(std::span<const std::int32_t> tokens) const {
  std::string out;
  bool strip = add_space_prefix_;
  for (const std::int32_t token : tokens) {
    append_piece(token, out);
    if (!strip || out.empty()) continue;
    // encode puts its space before text, not before a user-defined token.
    if (out[0] == ' ' && vocabulary_.type(token) != TokenType::kUserDefined) out.erase(0, 1);
    strip = false;
  }
  return out;
}

}  // namespace rondo::models
