#include "models/formats/vocabulary_files.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <rondo/byte_source.h>

#include "models/formats/sentencepiece_model.h"
#include "models/printable.h"
#include "models/tokenizers/vocabulary.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using json = nlohmann::json;

constexpr JsonLimits kLimits = {std::size_t{64} << 20, 8, std::size_t{1} << 20, 3'000'000};
constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxLines = std::size_t{1} << 21;

/// What the files of a folder are for.
enum class Family : std::uint8_t { kUnknown, kBert, kGpt2, kRoberta, kClip, kT5, kXlmRoberta, kMarian, kM2m100, kLlama };

/// By tokenizer_class without "Tokenizer" or "TokenizerFast" behind it, else by model_type.
Family family_of(const JsonDocument& settings, const json& config) {
  struct Name {
    std::string_view name;
    Family family;
  };
  constexpr std::array<Name, 33> kNames = {{{"Bert", Family::kBert},          {"DistilBert", Family::kBert},    {"Electra", Family::kBert},   {"MobileBert", Family::kBert},
                                            {"bert", Family::kBert},          {"distilbert", Family::kBert},    {"electra", Family::kBert},   {"GPT2", Family::kGpt2},
                                            {"gpt2", Family::kGpt2},          {"Roberta", Family::kRoberta},    {"Bart", Family::kRoberta},   {"Longformer", Family::kRoberta},
                                            {"roberta", Family::kRoberta},    {"bart", Family::kRoberta},       {"CLIP", Family::kClip},      {"clip", Family::kClip},
                                            {"clip_text_model", Family::kClip}, {"T5", Family::kT5},            {"t5", Family::kT5},          {"mt5", Family::kT5},
                                            {"MT5", Family::kT5},             {"umt5", Family::kT5},            {"XLMRoberta", Family::kXlmRoberta}, {"xlm-roberta", Family::kXlmRoberta},
                                            {"Marian", Family::kMarian},      {"marian", Family::kMarian},      {"M2M100", Family::kM2m100},  {"m2m_100", Family::kM2m100},
                                            {"Llama", Family::kLlama},        {"llama", Family::kLlama},        {"mistral", Family::kLlama},  {"opt", Family::kGpt2},
                                            {"CodeLlama", Family::kLlama}}};
  for (const auto& [object, field] : {std::pair<const json&, const char*>{settings.value(), "tokenizer_class"}, {config, "model_type"}}) {
    if (!has_field(object, field) || !object.find(field)->is_string()) continue;
    std::string_view name = object.find(field)->get_ref<const std::string&>();
    if (name.ends_with("Fast")) name.remove_suffix(4);
    if (name.ends_with("Tokenizer")) name.remove_suffix(9);
    const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const Name& known) { return known.name == name; });
    if (found != kNames.end()) return found->family;
  }
  return Family::kUnknown;
}

/// The lines of the file at `path`, or nothing if there is none.
Result<std::optional<std::vector<std::string>>> read_lines(const std::string& path) {
  const Result<ByteSource> source = open_file(path);
  if (source.status().code() == StatusCode::kNotFound) return std::optional<std::vector<std::string>>();
  RONDO_TRY(source.status());
  if (source->size_bytes > kMaxTextBytes) return Status(StatusCode::kCorruptData, fmt::format("{}: has {} bytes, more than {}", path, source->size_bytes, kMaxTextBytes));
  std::string text(static_cast<std::size_t>(source->size_bytes), '\0');
  RONDO_TRY(source->read(0, std::as_writable_bytes(std::span<char>(text))));
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    if (lines.size() == kMaxLines) return Status(StatusCode::kCorruptData, fmt::format("{}: has more than {} lines", path, kMaxLines));
    std::size_t line_end = end;
    if (line_end > begin && text[line_end - 1] == '\r') --line_end;
    lines.push_back(text.substr(begin, line_end - begin));
  }
  return std::optional(std::move(lines));
}

/// A special token that tokenizer_config.json names, or that the family has.
Result<std::string> special_token(const JsonDocument& settings, const char* field, const char* fallback) {
  if (!has_field(settings.value(), field)) return std::string(fallback);
  const json& value = *settings.value().find(field);
  return value.is_object() ? find_string(value, "content", settings.within(field)) : find_string(settings.value(), field, settings.name());
}

/// A document that grows.
class Document {
 public:
  Document(std::string name, const JsonDocument& settings, json vocabulary) : name_(std::move(name)), settings_(settings), vocabulary_(std::move(vocabulary)) {}

  /// Adds a special token, if the vocabulary has it; where a family cannot do without, `needed`.
  Result<json> add_special(const char* field, const char* fallback, bool needed, bool strips_left = false) {
    RONDO_ASSIGN(const std::string token, special_token(settings_, field, fallback));
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end()) {
      if (needed) return Status(StatusCode::kCorruptData, fmt::format("{}: has no '{}', which is the {} of the folder", name_, printable(token), field));
      return json();
    }
    added_.push_back({{"id", *found}, {"content", token}, {"special", true}, {"lstrip", strips_left}});
    return json::array({token, *found});
  }
  /// The ids of tokenizer_config.json's added_tokens_decoder.
  Status add_more() {
    if (!has_field(settings_.value(), "added_tokens_decoder")) return {};
    RONDO_ASSIGN(const json* all, find_object(settings_.value(), "added_tokens_decoder", settings_.name()));
    for (auto entry = all->begin(); entry != all->end(); ++entry) {
      std::uint64_t id = 0;
      const std::string& digits = entry.key();
      if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != std::string::npos) return settings_.wrong("added_tokens_decoder", fmt::format("has '{}', which is no id", printable(digits)));
      for (const char digit : digits) id = id * 10 + static_cast<std::uint64_t>(digit - '0');
      json token = *entry;
      if (!token.is_object()) return settings_.wrong("added_tokens_decoder", fmt::format("has no object for {}", id));
      const auto same = std::find_if(added_.begin(), added_.end(), [&](const json& other) { return *other.find("id") == id; });
      token["id"] = id;
      if (same != added_.end()) *same = std::move(token);
      else added_.push_back(std::move(token));
    }
    return {};
  }
  JsonDocument with(json model, json normalizer, json pre_tokenizer, json post_processor) {
    model["vocab"] = std::move(vocabulary_);
    return JsonDocument(json{{"model", std::move(model)}, {"normalizer", std::move(normalizer)}, {"pre_tokenizer", std::move(pre_tokenizer)}, {"post_processor", std::move(post_processor)}, {"added_tokens", std::move(added_)}},
                        name_);
  }

 private:
  std::string name_;
  const JsonDocument& settings_;
  json vocabulary_;
  json added_ = json::array();
};

Result<JsonDocument> word_pieces(const std::string& path, const std::vector<std::string>& lines, const JsonDocument& settings) {
  json vocabulary = json::object();
  std::uint64_t id = 0;
  for (const std::string& line : lines) vocabulary[line] = id++;
  vocabulary.erase("");
  Document document(path, settings, std::move(vocabulary));
  RONDO_ASSIGN(const bool lower_case, settings.boolean_or(settings.value(), "do_lower_case", true));
  RONDO_ASSIGN(const bool strip_accents, settings.boolean_or(settings.value(), "strip_accents", lower_case));
  RONDO_ASSIGN(const bool ideographs, settings.boolean_or(settings.value(), "tokenize_chinese_chars", true));
  RONDO_ASSIGN(const json unknown, document.add_special("unk_token", "[UNK]", true));
  RONDO_ASSIGN(const json begin, document.add_special("cls_token", "[CLS]", true));
  RONDO_ASSIGN(const json end, document.add_special("sep_token", "[SEP]", true));
  RONDO_TRY(document.add_special("pad_token", "[PAD]", false).status());
  RONDO_TRY(document.add_special("mask_token", "[MASK]", false).status());
  RONDO_TRY(document.add_more());
  return document.with({{"type", "WordPiece"}, {"unk_token", unknown[0]}, {"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", std::uint64_t{100}}},
                       {{"type", "BertNormalizer"}, {"clean_text", true}, {"handle_chinese_chars", ideographs}, {"strip_accents", strip_accents}, {"lowercase", lower_case}},
                       {{"type", "BertPreTokenizer"}}, {{"type", "BertProcessing"}, {"sep", end}, {"cls", begin}});
}

Result<JsonDocument> byte_pairs(const std::string& path, json vocabulary, const std::vector<std::string>& lines, const JsonDocument& settings, Family family) {
  json merges = json::array();
  for (const std::string& line : lines) {
    if (!line.empty() && !(merges.empty() && line.starts_with("#version"))) merges.push_back(line);
  }
  Document document(path, settings, std::move(vocabulary));
  RONDO_ASSIGN(const bool prefix, settings.boolean_or(settings.value(), "add_prefix_space", false));
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"use_regex", family != Family::kClip}};
  json model = {{"type", "BPE"}, {"merges", std::move(merges)}};
  if (family == Family::kGpt2) {
    RONDO_TRY(document.add_special("eos_token", "<|endoftext|>", false).status());
    RONDO_TRY(document.add_special("bos_token", "<|endoftext|>", false).status());
    RONDO_TRY(document.add_more());
    return document.with(std::move(model), nullptr, bytes, {{"type", "ByteLevel"}});
  }
  if (family == Family::kRoberta) {
    RONDO_ASSIGN(const json begin, document.add_special("cls_token", "<s>", true));
    RONDO_ASSIGN(const json end, document.add_special("sep_token", "</s>", true));
    RONDO_TRY(document.add_special("unk_token", "<unk>", false).status());
    RONDO_TRY(document.add_special("pad_token", "<pad>", false).status());
    RONDO_TRY(document.add_special("mask_token", "<mask>", false, true).status());
    RONDO_TRY(document.add_more());
    return document.with(std::move(model), nullptr, bytes, {{"type", "RobertaProcessing"}, {"sep", end}, {"cls", begin}});
  }
  RONDO_ASSIGN(const json begin, document.add_special("bos_token", "<|startoftext|>", true));
  RONDO_ASSIGN(const json end, document.add_special("eos_token", "<|endoftext|>", true));
  RONDO_TRY(document.add_more());
  model["end_of_word_suffix"] = "</w>";
  const json words = {{"type", "Split"}, {"pattern", {{"Regex", R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"}}}, {"behavior", "Removed"}, {"invert", true}};
  const json lower = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Lowercase"}}}}};
  return document.with(std::move(model), lower, {{"type", "Sequence"}, {"pretokenizers", {words, bytes}}}, {{"type", "RobertaProcessing"}, {"sep", end}, {"cls", begin}});
}

/// SentencePiece's pieces with the ids that a family gives them.
class PieceWriter {
 public:
  PieceWriter(std::string path, SentencePieceModel model, const JsonDocument& settings, std::uint32_t n_vocab) : path_(std::move(path)), model_(std::move(model)), settings_(settings), n_vocab_(n_vocab) {}

  Status as_they_are(Family family) {
    for (const SentencePieceModel::Piece& piece : model_.pieces) RONDO_TRY(add(piece.text, piece.type, piece.score));
    unknown_ = model_.unknown;
    bos_ = model_.bos, eos_ = model_.eos;
    if (family == Family::kLlama) {
      RONDO_ASSIGN(const bool begins, settings_.boolean_or(settings_.value(), "add_bos_token", true));
      RONDO_ASSIGN(const bool ends, settings_.boolean_or(settings_.value(), "add_eos_token", false));
      if (begins && bos_ >= 0) before_ = {bos_};
      if (ends && eos_ >= 0) after_ = {eos_};
      return {};
    }
    RONDO_ASSIGN(const std::uint64_t n_extra, find_u64_or(settings_.value().is_object() ? settings_.value() : json::object(), "extra_ids", 100, settings_.name()));
    // Those that the model has already are its own; those beyond the network's would be no tokens.
    const std::uint64_t n_fit = n_vocab_ - std::min<std::uint64_t>(n_vocab_, tokens_.size());
    for (std::uint64_t i = std::min(n_extra, n_fit); i > 0; --i) RONDO_TRY(add(fmt::format("<extra_id_{}>", i - 1), TokenType::kControl, 0));
    if (eos_ < 0) return wrong("has no piece that ends a text");
    after_ = between_ = {eos_};
    return {};
  }

  Status as_xlm_roberta() {
    if (model_.unknown != 0 || model_.pieces.size() < 3) return wrong("has no unknown piece 0, which XLM-RoBERTa puts behind others");
    for (const char* special : {"<s>", "<pad>", "</s>"}) RONDO_TRY(add(special, TokenType::kControl, 0));
    RONDO_TRY(add("<unk>", TokenType::kUnknown, 0));
    for (std::size_t i = 3; i < model_.pieces.size(); ++i) RONDO_TRY(add(model_.pieces[i].text, model_.pieces[i].type, model_.pieces[i].score));
    RONDO_TRY(add("<mask>", TokenType::kControl, 0));
    unknown_ = 3, bos_ = 0, eos_ = 2;
    before_ = {0}, after_ = {2}, between_ = {2, 2};
    mask_ = static_cast<std::int32_t>(tokens_.size()) - 1;
    strips_left_ = {mask_};
    return {};
  }

  /// Ids by vocab.json, which may lack pieces and have others.
  Status by_vocabulary(const JsonDocument& vocabulary, Family family) {
    own_pieces_ = true;
    std::map<std::string, std::int32_t, std::less<>> ids;
    for (auto entry = vocabulary.value().begin(); entry != vocabulary.value().end(); ++entry) {
      if (!entry->is_number_unsigned() || *entry->get_ptr<const json::number_unsigned_t*>() >= n_vocab_) return vocabulary.wrong(printable(entry.key()), fmt::format("is no id below {}", n_vocab_));
      const auto id = static_cast<std::int32_t>(*entry->get_ptr<const json::number_unsigned_t*>());
      tokens_.resize(std::max(tokens_.size(), static_cast<std::size_t>(id) + 1));
      if (!tokens_[static_cast<std::size_t>(id)].text.empty()) return vocabulary.wrong(printable(entry.key()), fmt::format("is {}, which is that of '{}'", id, printable(tokens_[static_cast<std::size_t>(id)].text)));
      const bool language = family == Family::kMarian && entry.key().starts_with(">>") && entry.key().ends_with("<<");
      tokens_[static_cast<std::size_t>(id)] = {entry.key(), 0, language ? TokenType::kUserDefined : TokenType::kNormal};
      ids.emplace(entry.key(), id);
    }
    for (const auto& [token, needed] : {std::pair<const char*, bool>{"<unk>", true}, {"</s>", true}, {"<s>", false}, {"<pad>", false}}) {
      const auto found = ids.find(token);
      if (found == ids.end() && needed) return vocabulary.wrong(token, "is missing");
      if (found != ids.end()) tokens_[static_cast<std::size_t>(found->second)].type = token[1] == 'u' ? TokenType::kUnknown : TokenType::kControl;
    }
    unknown_ = ids.find("<unk>")->second, eos_ = ids.find("</s>")->second;
    after_ = {eos_};
    for (const SentencePieceModel::Piece& piece : model_.pieces) {
      const auto found = ids.find(piece.text);
      piece_ids_.push_back(found == ids.end() ? unknown_ : found->second);
    }
    if (family != Family::kM2m100) return {};
    RONDO_TRY(add_languages());
    if (ids.contains("<s>")) bos_ = ids.find("<s>")->second;
    return {};
  }

  Status write(GgufWriter& writer) const {
    std::vector<std::string> spellings, texts;
    std::vector<std::int32_t> types, bits, piece_types, piece_bits;
    if (tokens_.size() > n_vocab_) return wrong(fmt::format("and the family have {} tokens, but the network {}", tokens_.size(), n_vocab_));
    for (std::size_t id = 0; id < n_vocab_; ++id) {
      const bool named = id < tokens_.size() && !tokens_[id].text.empty();
      spellings.push_back(named ? tokens_[id].text : fmt::format("[PAD{}]", id));
      types.push_back(static_cast<std::int32_t>(named ? tokens_[id].type : TokenType::kUnused));
      bits.push_back(std::bit_cast<std::int32_t>(named ? tokens_[id].score : 0.0F));
    }
    const bool unigram = model_.kind == SentencePieceModel::Kind::kUnigram;
    writer.string("tokenizer.ggml.model", unigram ? "t5" : "llama");
    writer.strings(kTokensKey, spellings);
    writer.i32s("tokenizer.ggml.token_type", types);
    writer.i32s("rondo.score_bits", bits);
    const auto id = [](std::int32_t value) { return value < 0 ? 0xffffffff : static_cast<std::uint32_t>(value); };
    writer.u32("tokenizer.ggml.unknown_token_id", id(unknown_));
    writer.u32("tokenizer.ggml.bos_token_id", id(bos_));
    writer.u32("tokenizer.ggml.eos_token_id", id(eos_));
    writer.u32("tokenizer.ggml.mask_token_id", id(mask_));
    writer.boolean("tokenizer.ggml.add_bos_token", !before_.empty());
    writer.boolean("tokenizer.ggml.add_eos_token", false);  // the keys below say
    writer.i32s("rondo.tokens_before", before_);
    writer.i32s("rondo.tokens_between", between_);
    writer.i32s("rondo.tokens_after", after_);
    writer.i32s("rondo.strips_left", strips_left_);
    writer.boolean("rondo.byte_fallback", model_.byte_fallback);
    writer.boolean("rondo.fuse_unknown", true);
    writer.string("rondo.spaces", "sentencepiece");
    writer.string("rondo.space_prefix", "section");
    writer.boolean("tokenizer.ggml.add_space_prefix", model_.add_dummy_prefix);
    writer.boolean("tokenizer.ggml.remove_extra_whitespaces", model_.remove_extra_whitespaces);
    writer.boolean("rondo.visible_spaces", model_.escape_whitespaces);
    if (!model_.charsmap.empty()) writer.string("rondo.charsmap", model_.charsmap);
    if (!own_pieces_) return {};
    for (const SentencePieceModel::Piece& piece : model_.pieces) {
      texts.push_back(piece.text);
      piece_types.push_back(static_cast<std::int32_t>(piece.type));
      piece_bits.push_back(std::bit_cast<std::int32_t>(piece.score));
    }
    writer.strings("rondo.pieces.tokens", texts);
    writer.i32s("rondo.pieces.token_type", piece_types);
    writer.i32s("rondo.pieces.score_bits", piece_bits);
    writer.i32s("rondo.pieces.ids", piece_ids_);
    return {};
  }

 private:
  Status add(const std::string& text, TokenType type, float score) {
    tokens_.push_back({text, score, type});
    return {};
  }
  Status wrong(const std::string& what) const { return Status(StatusCode::kCorruptData, fmt::format("{}: {}", path_, what)); }

  /// "__en__" and the like, behind all others in the order that tokenizer_config.json lists them; that of src_lang begins texts.
  Status add_languages() {
    if (!has_field(settings_.value(), "additional_special_tokens")) return {};
    RONDO_ASSIGN(const json* list, find_array(settings_.value(), "additional_special_tokens", settings_.name()));
    RONDO_ASSIGN(const std::string source, settings_.string_or(settings_.value(), "src_lang", ""));
    for (const json& entry : *list) {
      if (!entry.is_string()) return settings_.wrong("additional_special_tokens", "holds something that is no text");
      const std::string& token = entry.get_ref<const std::string&>();
      if (token == fmt::format("__{}__", source)) before_ = {static_cast<std::int32_t>(tokens_.size())};
      RONDO_TRY(add(token, TokenType::kControl, 0));
    }
    return {};
  }

  const std::string path_;
  const SentencePieceModel model_;
  const JsonDocument& settings_;
  const std::uint32_t n_vocab_;
  std::vector<SentencePieceModel::Piece> tokens_;
  std::vector<std::int32_t> before_, between_, after_, strips_left_, piece_ids_;
  std::int32_t unknown_ = -1, bos_ = -1, eos_ = -1, mask_ = -1;
  bool own_pieces_ = false;
};

}  // namespace

Result<JsonDocument> tokenizer_of_vocabulary_files(const std::string& folder, const JsonDocument& settings, const json& config) {
  const Family family = family_of(settings, config);
  const std::string words = folder + "/vocab.txt", pairs = folder + "/vocab.json";
  if (family == Family::kBert) {
    RONDO_ASSIGN(const std::optional<std::vector<std::string>> lines, read_lines(words));
    if (lines) return word_pieces(words, *lines, settings);
  }
  if (family == Family::kGpt2 || family == Family::kRoberta || family == Family::kClip) {
    RONDO_ASSIGN(const JsonDocument vocabulary, JsonDocument::read(pairs, kLimits));
    RONDO_ASSIGN(const std::optional<std::vector<std::string>> lines, read_lines(folder + "/merges.txt"));
    if (!vocabulary.value().is_null() && lines) return byte_pairs(pairs, vocabulary.value(), *lines, settings, family);
  }
  return JsonDocument(json(), folder);
}

Result<bool> write_sentence_piece_tokenizer(const std::string& folder, const JsonDocument& settings, const json& config, std::uint32_t n_vocab, GgufWriter& writer) {
  const Family family = family_of(settings, config);
  const char* name = family == Family::kT5 ? "spiece.model" : family == Family::kMarian ? "source.spm" : family == Family::kLlama ? "tokenizer.model" : "sentencepiece.bpe.model";
  if (family != Family::kT5 && family != Family::kMarian && family != Family::kLlama && family != Family::kXlmRoberta && family != Family::kM2m100) return false;
  const std::string path = fmt::format("{}/{}", folder, name);
  Result<SentencePieceModel> model = SentencePieceModel::read(path);
  if (model.status().code() == StatusCode::kNotFound) return false;
  RONDO_TRY(model.status());
  PieceWriter pieces(path, std::move(model).value(), settings, n_vocab);
  if (family == Family::kT5 || family == Family::kLlama) {
    RONDO_TRY(pieces.as_they_are(family));
  } else if (family == Family::kXlmRoberta) {
    RONDO_TRY(pieces.as_xlm_roberta());
  } else {
    RONDO_ASSIGN(const JsonDocument vocabulary, JsonDocument::read(folder + "/vocab.json", kLimits));
    if (vocabulary.value().is_null()) return Status(StatusCode::kUnsupported, fmt::format("{}: is missing, but '{}' is there", vocabulary.name(), name));
    RONDO_ASSIGN(const bool apart, settings.boolean_or(settings.value(), "separate_vocabs", false));
    if (apart) return settings.later("separate_vocabs", "is true");
    RONDO_TRY(pieces.by_vocabulary(vocabulary, family));
  }
  RONDO_TRY(pieces.write(writer));
  return true;
}

}  // namespace rondo::models
