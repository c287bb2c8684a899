#include "models/formats/hugging_face_tokenizer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formats/json_file.h"
#include "models/printable.h"
#include "models/tokenizers/pre_tokenizer.h"
#include "models/tokenizers/vocabulary.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using json = nlohmann::json;

// The largest published file has 33 MB, 262,144 tokens and 514,906 merges in pairs.
constexpr JsonLimits kLimits = {std::size_t{64} << 20, 64, std::size_t{1} << 20, 3'000'000};
constexpr std::string_view kVisibleSpace = "\xe2\x96\x81";  // U+2581

/// How a space becomes visible and where one is put; what SpmTokenizer's keys say.
struct Spaces {
  bool visible = false;
  bool prefix = false;
  const char* where = "";
};

class Translator {
 public:
  Translator(const std::string& folder, const json& config, std::uint32_t n_vocab, JsonDocument tokenizer, JsonDocument settings, JsonDocument generation)
      : file_(std::move(tokenizer)), settings_(std::move(settings)), generation_(std::move(generation)), config_(config, folder + "/config.json"), n_vocab_(n_vocab) {}

  /// Everything is read before anything is written.
  Status translate(GgufWriter& writer) {
    RONDO_TRY(read_model());
    RONDO_TRY(read_added_tokens());
    RONDO_TRY(read_steps("normalizer", "normalizers", &Translator::read_normalizer));
    RONDO_TRY(read_steps("pre_tokenizer", "pretokenizers", &Translator::read_pre_tokenizer));
    RONDO_TRY(read_steps("post_processor", "processors", &Translator::read_post_processor));
    RONDO_TRY(choose_kind());
    RONDO_TRY(read_merges());
    RONDO_TRY(read_beginning());
    RONDO_TRY(read_stop_ids());
    write(writer);
    return {};
  }

 private:
  Status read_model() {
    RONDO_ASSIGN(model_, find_object(file_.value(), "model", file_.name()));
    // Old files leave the type out.
    RONDO_ASSIGN(const std::string type, file_.string_or(*model_, "type", model_->contains("merges") ? "BPE" : "", "model"));
    if (type != "BPE") return file_.later("model.type", fmt::format("is '{}'", printable(type)));
    for (const char* field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      RONDO_ASSIGN(const std::string value, file_.string_or(*model_, field, "", "model"));
      if (!value.empty()) return file_.later(fmt::format("model.{}", field), fmt::format("is '{}'", printable(value)));
    }
    if (has_field(*model_, "dropout")) return file_.later("model.dropout", "is not null");
    RONDO_ASSIGN(byte_fallback_, file_.boolean_or(*model_, "byte_fallback", false, "model"));
    RONDO_ASSIGN(ignore_merges_, file_.boolean_or(*model_, "ignore_merges", false, "model"));
    RONDO_ASSIGN(unknown_, file_.string_or(*model_, "unk_token", "", "model"));
    RONDO_ASSIGN(const json* vocabulary, find_object(*model_, "vocab", file_.within("model")));
    for (auto entry = vocabulary->begin(); entry != vocabulary->end(); ++entry) {
      if (!entry->is_number_unsigned()) return file_.wrong("model.vocab", fmt::format("has no id for '{}'", printable(entry.key())));
      RONDO_TRY(add("model.vocab", entry.key(), *entry->get_ptr<const json::number_unsigned_t*>(), TokenType::kNormal));
    }
    if (ids_.empty()) return file_.wrong("model.vocab", "is empty");
    return {};
  }

  Status add(const char* field, const std::string& token, std::uint64_t id, TokenType type) {
    if (id >= n_vocab_) return file_.wrong(field, fmt::format("has id {} for '{}', but the network has {} tokens", id, printable(token), n_vocab_));
    const auto number = static_cast<std::uint32_t>(id);
    tokens_.resize(std::max<std::size_t>(tokens_.size(), number + std::size_t{1}));
    if (tokens_[number].type != TokenType::kUnused && tokens_[number].spelling != token) {
      return file_.wrong(field, fmt::format("has id {} for '{}', which is that of '{}'", id, printable(token), printable(tokens_[number].spelling)));
    }
    const auto [known, is_new] = ids_.emplace(token, number);
    if (!is_new && known->second != number) return file_.wrong(field, fmt::format("has id {} for '{}', which has {}", id, printable(token), known->second));
    tokens_[number] = {token, type};
    return {};
  }

  Status read_added_tokens() {
    if (!has_field(file_.value(), "added_tokens")) return {};
    RONDO_ASSIGN(const json* list, find_array(file_.value(), "added_tokens", file_.name()));
    for (const json& entry : *list) {
      if (!entry.is_object()) return file_.wrong("added_tokens", "holds something that is no object");
      const std::string what = file_.within("added_tokens");
      RONDO_ASSIGN(const std::uint64_t id, find_u64(entry, "id", what));
      RONDO_ASSIGN(const std::string token, find_string(entry, "content", what));
      RONDO_ASSIGN(const bool special, file_.boolean_or(entry, "special", false, "added_tokens"));
      RONDO_ASSIGN(const bool normalized, file_.boolean_or(entry, "normalized", !special, "added_tokens"));
      for (const char* field : {"lstrip", "rstrip", "single_word"}) {
        RONDO_ASSIGN(const bool value, file_.boolean_or(entry, field, false, "added_tokens"));
        if (value && !special) return file_.later("added_tokens", fmt::format("has {} for '{}'", field, printable(token)));
      }
      if (token.empty()) return file_.wrong("added_tokens", fmt::format("has an empty 'content' for id {}", id));
      RONDO_TRY(add("added_tokens", token, id, special ? TokenType::kControl : TokenType::kUserDefined));
      parts_sections_ = parts_sections_ || (!special && !normalized);
    }
    return {};
  }

  using Reader = Status (Translator::*)(const json& step, const std::string& type);
  /// Calls `read` with each step of `field`, those of sequences, whose field is `list`, one by one.
  Status read_steps(const char* field, const char* list, Reader read) {
    if (!has_field(file_.value(), field)) return {};
    RONDO_ASSIGN(const json* step, find_object(file_.value(), field, file_.name()));
    return read_step(*step, field, list, read);
  }
  Status read_step(const json& step, const char* field, const char* list, Reader read) {
    RONDO_ASSIGN(const std::string type, find_string(step, "type", file_.within(field)));
    if (type != "Sequence") return (this->*read)(step, type);
    RONDO_ASSIGN(const json* steps, find_array(step, list, file_.within(field)));
    for (const json& one : *steps) RONDO_TRY(read_step(one, field, list, read));
    return {};
  }

  /// What a "pattern" is: its String or its Regex.
  Result<std::string> pattern(const json& step, const char* kind, const char* field) const {
    RONDO_ASSIGN(const json* value, find_object(step, "pattern", file_.within(field)));
    return file_.string_or(*value, kind, "", fmt::format("{}.pattern", field));
  }

  Status read_normalizer(const json& step, const std::string& type) {
    if (type == "NFC") {
      to_nfc_ = true;
      return {};
    }
    if (type == "Prepend") {
      RONDO_ASSIGN(const std::string text, find_string(step, "prepend", file_.within("normalizer")));
      if (text == kVisibleSpace) {
        spaces_.prefix = true;
        return {};
      }
    }
    if (type == "Replace") {
      RONDO_ASSIGN(const std::string from, pattern(step, "String", "normalizer"));
      RONDO_ASSIGN(const std::string to, find_string(step, "content", file_.within("normalizer")));
      if (from == " " && to == kVisibleSpace) {
        spaces_.visible = true;
        return {};
      }
    }
    return file_.later("normalizer", fmt::format("is '{}'{}", printable(type), type == "Prepend" || type == "Replace" ? " of something else than spaces" : ""));
  }

  Status read_pre_tokenizer(const json& step, const std::string& type) {
    constexpr const char* kField = "pre_tokenizer";
    if (byte_level_) return file_.later(kField, fmt::format("is '{}' behind 'ByteLevel'", printable(type)));
    if (type == "ByteLevel") {
      RONDO_ASSIGN(const bool space, file_.boolean_or(step, "add_prefix_space", true, kField));
      RONDO_ASSIGN(const bool splits, file_.boolean_or(step, "use_regex", true, kField));
      if (space) return file_.later("pre_tokenizer.add_prefix_space", "is true");
      if (splits) expressions_.emplace_back(kByteLevelExpression);
      byte_level_ = true;
      return {};
    }
    if (type == "Digits") {
      RONDO_ASSIGN(const bool each, file_.boolean_or(step, "individual_digits", false, kField));
      expressions_.emplace_back(each ? R"(\p{N})" : R"(\p{N}+)");
      return {};
    }
    if (type == "Metaspace") return read_metaspace(step);
    if (type != "Split") return file_.later(kField, fmt::format("is '{}'", printable(type)));
    RONDO_ASSIGN(const std::string behavior, find_string(step, "behavior", file_.within(kField)));
    RONDO_ASSIGN(const bool inverted, file_.boolean_or(step, "invert", false, kField));
    RONDO_ASSIGN(const std::string text, pattern(step, "String", kField));
    RONDO_ASSIGN(const std::string expression, pattern(step, "Regex", kField));
    // Gemma's, which finds nothing, as spaces are others by then.
    if (text == " " && behavior == "MergedWithPrevious" && spaces_.visible) return {};
    if (behavior != "Isolated" || inverted || expression.empty()) return file_.later(kField, fmt::format("splits by '{}', {}{}", printable(text + expression), printable(behavior), inverted ? " and inverted" : ""));
    expressions_.push_back(expression);
    return {};
  }

  Status read_metaspace(const json& step) {
    constexpr const char* kField = "pre_tokenizer";
    RONDO_ASSIGN(const std::string space, file_.string_or(step, "replacement", "", kField));
    RONDO_ASSIGN(const bool splits, file_.boolean_or(step, "split", true, kField));
    RONDO_ASSIGN(const bool adds, file_.boolean_or(step, "add_prefix_space", true, kField));
    RONDO_ASSIGN(const std::string scheme, file_.string_or(step, "prepend_scheme", adds ? "always" : "never", kField));
    if (splits) return file_.later("pre_tokenizer.split", "is true");
    if (space != kVisibleSpace) return file_.later("pre_tokenizer.replacement", fmt::format("is '{}'", printable(space)));
    if (scheme != "always" && scheme != "first" && scheme != "never") return file_.later("pre_tokenizer.prepend_scheme", fmt::format("is '{}'", printable(scheme)));
    if (spaces_.prefix) return file_.later(kField, "is 'Metaspace' behind 'Prepend'");
    spaces_ = {true, scheme != "never", scheme == "first" ? "first" : "always"};
    return {};
  }

  Status read_post_processor(const json& step, const std::string& type) {
    constexpr const char* kField = "post_processor";
    if (type == "ByteLevel") return {};
    if (type != "TemplateProcessing") return file_.later(kField, fmt::format("is '{}'", printable(type)));
    RONDO_ASSIGN(const json* parts, find_array(step, "single", file_.within(kField)));
    has_template_ = true;
    bool text_seen = false;
    for (const json& part : *parts) {
      if (has_field(part, "Sequence")) {
        text_seen = true;
        continue;
      }
      RONDO_ASSIGN(const json* token, find_object(part, "SpecialToken", file_.within("post_processor.single")));
      RONDO_ASSIGN(const std::string name, find_string(*token, "id", file_.within("post_processor.single")));
      if (text_seen || bos_) return file_.later("post_processor.single", fmt::format("has '{}' elsewhere than alone in front of the text", printable(name)));
      RONDO_ASSIGN(const json* all, find_object(step, "special_tokens", file_.within(kField)));
      RONDO_ASSIGN(const json* known, find_object(*all, name, file_.within("post_processor.special_tokens")));
      RONDO_ASSIGN(const json* ids, find_array(*known, "ids", file_.within("post_processor.special_tokens")));
      if (ids->size() != 1) return file_.later("post_processor.special_tokens", fmt::format("has {} ids for '{}'", ids->size(), printable(name)));
      RONDO_ASSIGN(bos_, id_of(ids->front(), file_, "post_processor.special_tokens"));
      adds_bos_ = true;
    }
    return {};
  }

  /// `value` as the id of a token.
  Result<std::uint32_t> id_of(const json& value, const JsonDocument& from, const char* field) const {
    if (!value.is_number_unsigned()) return from.wrong(field, "must be a token's id");
    const std::uint64_t id = *value.get_ptr<const json::number_unsigned_t*>();
    if (id >= n_vocab_) return from.wrong(field, fmt::format("is {}, but the network has {} tokens", id, n_vocab_));
    return static_cast<std::uint32_t>(id);
  }

  Status choose_kind() {
    if (!byte_level_ && !byte_fallback_) return file_.later("pre_tokenizer", "is without 'ByteLevel', and the model without byte_fallback");
    if (byte_level_) {
      if (spaces_.visible || spaces_.prefix) return file_.later("normalizer", "changes spaces in front of 'ByteLevel'");
      if (const PreTokenizer* found = find_pre_tokenizer(expressions_)) {
        pre_tokenizer_ = found->name;
        return {};
      }
      std::string all;
      for (const std::string& expression : expressions_) all += fmt::format("{}'{}'", all.empty() ? "" : ", ", printable(expression));
      return file_.later("pre_tokenizer", expressions_.empty() ? std::string("does not split the text") : fmt::format("splits by {}", all));
    }
    if (!expressions_.empty()) return file_.later("pre_tokenizer", fmt::format("splits by '{}' what has byte_fallback", printable(expressions_.front())));
    if (!spaces_.visible) return file_.later("normalizer", "leaves spaces as they are");
    if (ignore_merges_) return file_.later("model.ignore_merges", "is true with byte_fallback");
    for (int byte = 0; byte < 256; ++byte) {
      const std::string name = fmt::format("<0x{:02X}>", byte);
      const auto found = ids_.find(name);
      if (found == ids_.end()) return file_.later("model.byte_fallback", fmt::format("is true without a token '{}'", name));
      tokens_[found->second].type = TokenType::kByte;
    }
    const auto unknown = ids_.find(unknown_);
    if (unknown != ids_.end()) tokens_[unknown->second].type = TokenType::kUnknown;
    return {};
  }

  Status read_merges() {
    RONDO_ASSIGN(const json* list, find_array(*model_, "merges", file_.within("model")));
    merges_.reserve(list->size());
    for (const json& entry : *list) {
      const auto bad = [&](const std::string& what) { return file_.wrong("model.merges", fmt::format("{} at index {}", what, merges_.size())); };
      std::string left, right;
      if (entry.is_string()) {
        const std::string& line = entry.get_ref<const std::string&>();
        const std::size_t space = line.find(' ');
        left = line.substr(0, space);
        right = space == std::string::npos ? "" : line.substr(space + 1);
      } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        left = entry[0].get_ref<const std::string&>();
        right = entry[1].get_ref<const std::string&>();
      }
      if (left.empty() || right.empty()) return bad("has no pair of tokens");
      for (const std::string& token : {left, right, left + right}) {
        if (token.find(' ') != std::string::npos) return bad(fmt::format("has '{}', which holds a space,", printable(token)));
        if (!ids_.contains(token)) return bad(fmt::format("has '{}', which is no token,", printable(token)));
      }
      merges_.push_back(left + " " + right);
    }
    return {};
  }

  /// The id of the token that tokenizer_config.json names, if it does.
  Result<std::optional<std::uint32_t>> named_token(const char* field) const {
    if (!has_field(settings_.value(), field)) return std::optional<std::uint32_t>();
    const json& value = *settings_.value().find(field);
    std::string name;
    if (value.is_object()) {
      RONDO_ASSIGN(name, find_string(value, "content", settings_.within(field)));
    } else {
      RONDO_ASSIGN(name, find_string(settings_.value(), field, settings_.name()));
    }
    const auto found = ids_.find(name);
    if (found == ids_.end()) return settings_.wrong(field, fmt::format("is '{}', which is no token of tokenizer.json", printable(name)));
    return std::optional(found->second);
  }

  Status read_beginning() {
    if (!has_template_) {
      RONDO_ASSIGN(adds_bos_, settings_.boolean_or(settings_.value(), "add_bos_token", false));
      if (adds_bos_ && !has_field(settings_.value(), "bos_token")) return settings_.wrong("bos_token", "is missing, but 'add_bos_token' is true");
    }
    if (!bos_) {
      RONDO_ASSIGN(bos_, named_token("bos_token"));
    }
    return {};
  }

  Status read_stop_ids() {
    for (const JsonDocument* from : {&generation_, &config_}) {
      if (!has_field(from->value(), "eos_token_id")) continue;
      const json& value = *from->value().find("eos_token_id");
      const std::size_t n = value.is_array() ? value.size() : 1;
      for (std::size_t i = 0; i < n; ++i) {
        RONDO_ASSIGN(const std::uint32_t id, id_of(value.is_array() ? value[i] : value, *from, "eos_token_id"));
        stop_ids_.push_back(static_cast<std::int32_t>(id));
      }
      return {};
    }
    RONDO_ASSIGN(const std::optional<std::uint32_t> eos, named_token("eos_token"));
    if (eos) stop_ids_.push_back(static_cast<std::int32_t>(*eos));
    return {};
  }

  void write(GgufWriter& writer) const {
    std::vector<std::string> spellings;
    std::vector<std::int32_t> types;
    for (std::uint32_t id = 0; id < n_vocab_; ++id) {
      const bool named = id < tokens_.size() && tokens_[id].type != TokenType::kUnused;
      spellings.push_back(named ? tokens_[id].spelling : fmt::format("[PAD{}]", id));
      types.push_back(static_cast<std::int32_t>(named ? tokens_[id].type : TokenType::kUnused));
    }
    writer.string("tokenizer.ggml.model", byte_level_ ? "gpt2" : "llama");
    writer.strings(kTokensKey, spellings);
    writer.i32s("tokenizer.ggml.token_type", types);
    writer.strings("tokenizer.ggml.merges", merges_);
    writer.boolean("tokenizer.ggml.add_bos_token", adds_bos_);
    if (to_nfc_) writer.boolean("rondo.nfc", true);
    writer.u32("tokenizer.ggml.bos_token_id", bos_.value_or(0xffffffff));
    writer.u32("tokenizer.ggml.eos_token_id", stop_ids_.empty() ? 0xffffffff : static_cast<std::uint32_t>(stop_ids_.front()));
    writer.i32s("rondo.stop_ids", stop_ids_);
    if (byte_level_) {
      writer.string("tokenizer.ggml.pre", pre_tokenizer_);
      writer.boolean("rondo.whole_tokens_first", ignore_merges_);
      return;
    }
    const auto unknown = ids_.find(unknown_);
    writer.u32("tokenizer.ggml.unknown_token_id", unknown == ids_.end() ? 0xffffffff : unknown->second);
    writer.boolean("tokenizer.ggml.add_space_prefix", spaces_.prefix);
    writer.boolean("rondo.merges_by_rank", true);
    // 'Prepend' is done where text that is not normalized has been cut out.
    writer.string("rondo.space_prefix", spaces_.where[0] == '\0' && parts_sections_ ? "section" : spaces_.where);
  }

  struct Token {
    std::string spelling;
    TokenType type = TokenType::kUnused;
  };

  const JsonDocument file_, settings_, generation_, config_;
  const std::uint32_t n_vocab_;
  const json* model_ = nullptr;  // within file_
  std::vector<Token> tokens_;    // by id
  std::map<std::string, std::uint32_t> ids_;
  std::vector<std::string> merges_, expressions_;
  std::string unknown_;
  std::string_view pre_tokenizer_;
  Spaces spaces_;
  std::optional<std::uint32_t> bos_;
  std::vector<std::int32_t> stop_ids_;
  bool byte_level_ = false, byte_fallback_ = false, ignore_merges_ = false, has_template_ = false, adds_bos_ = false, to_nfc_ = false;
  bool parts_sections_ = false;  // by tokens that are neither special nor normalized
};

}  // namespace

Status write_hugging_face_tokenizer(const std::string& folder, const nlohmann::json& config, std::uint32_t n_vocab, GgufWriter& writer) {
  RONDO_ASSIGN(JsonDocument tokenizer, JsonDocument::read(folder + "/tokenizer.json", kLimits));
  Status refusal(StatusCode::kUnsupported, fmt::format("{}: is missing", tokenizer.name()));
  if (!tokenizer.value().is_null()) {
    RONDO_ASSIGN(JsonDocument settings, JsonDocument::read(folder + "/tokenizer_config.json"));
    RONDO_ASSIGN(JsonDocument generation, JsonDocument::read(folder + "/generation_config.json"));
    refusal = Translator(folder, config, n_vocab, std::move(tokenizer), std::move(settings), std::move(generation)).translate(writer);
  }
  if (refusal.code() != StatusCode::kUnsupported) {
    // Other readers' codes: whatever is wrong with the file is its fault.
    return refusal.ok() ? Status() : Status(StatusCode::kCorruptData, refusal.message());
  }
  writer.string("tokenizer.ggml.model", "none");
  writer.string("rondo.tokenizer_refusal", refusal.message());
  return {};
}

}  // namespace rondo::models
