#include "models/tokenizers/tokenizer_model.h"

#include <utility>

#include "models/printable.h"
#include "models/tokenizers/bpe.h"
#include "models/tokenizers/nfc.h"
#include "models/tokenizers/spm.h"
#include "runtime/fmt.h"

namespace rondo::models {

bool TokenizerModel::is_there(const GgufFile& file) {
  const Result<std::string_view> kind = file.string("tokenizer.ggml.model");
  return !kind.ok() || (*kind != "none" && *kind != "no_vocab");
}

Result<std::shared_ptr<const TokenizerModel>> TokenizerModel::create(const GgufFile& file) {
  constexpr std::string_view kModelKey = "tokenizer.ggml.model";
  RONDO_ASSIGN(const std::string_view kind, file.string(kModelKey));
  RONDO_ASSIGN(const bool nfc, file.boolean_or("rondo.nfc", false));
  if (kind == "llama") {
    RONDO_ASSIGN(SpmTokenizer spm, SpmTokenizer::create(file));
    spm.to_nfc_ = nfc;
    return std::shared_ptr<const TokenizerModel>(std::make_shared<const SpmTokenizer>(std::move(spm)));
  }
  if (kind == "gpt2") {
    RONDO_ASSIGN(BpeTokenizer bpe, BpeTokenizer::create(file));
    bpe.to_nfc_ = nfc;
    return std::shared_ptr<const TokenizerModel>(std::make_shared<const BpeTokenizer>(std::move(bpe)));
  }
  if (!is_there(file)) {
    RONDO_ASSIGN(const std::string_view why, file.string_or("rondo.tokenizer_refusal", ""));
    if (!why.empty()) return Status(StatusCode::kUnsupported, fmt::format("{}; use --tokens, or --tokenizer FILE.gguf for another file's", why));
    return Status(StatusCode::kNotFound, fmt::format("{}: has no tokenizer; give tokens", file.name()));
  }
  return Status(
      StatusCode::kUnsupported,
      fmt::format("{}: metadata key '{}' is '{}': this kind of tokenizer is not there yet, expected 'llama' or 'gpt2'",
                  file.name(), kModelKey, printable(kind)));
}

std::vector<std::int32_t> TokenizerModel::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<std::int32_t> tokens;
  if (options.add_bos && add_bos_ && vocabulary_.bos() >= 0) tokens.push_back(vocabulary_.bos());
  bool begins_text = true;
  for (const Vocabulary::Fragment& fragment : vocabulary_.partition(text, options.parse_special)) {
    if (fragment.token >= 0) {
      tokens.push_back(fragment.token);
      // As SentencePiece does, and unlike llama.cpp: a user-defined symbol is text; what follows it begins no new text.
      begins_text = space_prefix_ == SpacePrefix::kText ? vocabulary_.type(fragment.token) != TokenType::kUserDefined
                                                        : space_prefix_ != SpacePrefix::kFirst;
      continue;
    }
    const std::string_view part = text.substr(fragment.begin, fragment.size);
    encode_text(to_nfc_ ? std::string_view(to_nfc(part)) : part, begins_text, tokens);
    begins_text = false;
  }
  return tokens;
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
