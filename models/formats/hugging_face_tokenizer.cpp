#include "models/formats/hugging_face_tokenizer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formats/json_file.h"
#include "models/formats/vocabulary_files.h"
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

/// As a folder of CLIP has it.
constexpr std::string_view kClipExpression = R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";

/// Appends the bytes that `text` stands for; false if it is no base64 (RFC 4648).
bool decode_base64(std::string_view text, std::string& out) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return false;
  while (!text.empty() && text.ends_with('=')) text.remove_suffix(1);
  std::uint32_t bits = 0;
  unsigned n_bits = 0;
  for (const char digit : text) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return false;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    out += static_cast<char>(bits >> n_bits & 0xff);
  }
  return true;
}

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
    RONDO_TRY(read_mask());
    write(writer);
    return {};
  }

 private:
  Status read_model() {
    RONDO_ASSIGN(model_, find_object(file_.value(), "model", file_.name()));
    // Old files leave the type out.
    RONDO_ASSIGN(const std::string type, file_.string_or(*model_, "type", model_->contains("merges") ? "BPE" : "", "model"));
    RONDO_ASSIGN(byte_fallback_, file_.boolean_or(*model_, "byte_fallback", false, "model"));
    if (type == "Unigram") return read_unigram();
    if (type != "BPE" && type != "WordPiece") return file_.later("model.type", fmt::format("is '{}'", printable(type)));
    kind_ = type == "BPE" ? Kind::kBpe : Kind::kWordPiece;
    RONDO_ASSIGN(continuation_, file_.string_or(*model_, "continuing_subword_prefix", kind_ == Kind::kBpe ? "" : "##", "model"));
    RONDO_ASSIGN(end_of_word_, file_.string_or(*model_, "end_of_word_suffix", "", "model"));
    if (kind_ == Kind::kBpe && !continuation_.empty()) return file_.later("model.continuing_subword_prefix", fmt::format("is '{}'", printable(continuation_)));
    if (!end_of_word_.empty() && end_of_word_ != "</w>") return file_.later("model.end_of_word_suffix", fmt::format("is '{}'", printable(end_of_word_)));
    if (has_field(*model_, "dropout")) return file_.later("model.dropout", "is not null");
    RONDO_ASSIGN(ignore_merges_, file_.boolean_or(*model_, "ignore_merges", false, "model"));
    RONDO_ASSIGN(fuses_unknown_, file_.boolean_or(*model_, "fuse_unk", false, "model"));
    RONDO_ASSIGN(unknown_, file_.string_or(*model_, "unk_token", "", "model"));
    RONDO_ASSIGN(max_word_characters_, find_u64_or(*model_, "max_input_chars_per_word", 100, file_.within("model")));
    RONDO_ASSIGN(const json* vocabulary, find_object(*model_, "vocab", file_.within("model")));
    for (auto entry = vocabulary->begin(); entry != vocabulary->end(); ++entry) {
      if (!entry->is_number_unsigned()) return file_.wrong("model.vocab", fmt::format("has no id for '{}'", printable(entry.key())));
      RONDO_TRY(add("model.vocab", entry.key(), *entry->get_ptr<const json::number_unsigned_t*>(), TokenType::kNormal));
    }
    if (ids_.empty()) return file_.wrong("model.vocab", "is empty");
    return {};
  }

  Status read_unigram() {
    kind_ = Kind::kUnigram;
    RONDO_ASSIGN(const json* list, find_array(*model_, "vocab", file_.within("model")));
    for (const json& entry : *list) {
      const std::size_t id = scores_.size();
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) return file_.wrong("model.vocab", fmt::format("has no piece and score at index {}", id));
      const json& score = entry[1];
      const double value = score.is_number_float() ? *score.get_ptr<const json::number_float_t*>()
                           : score.is_number_unsigned() ? static_cast<double>(*score.get_ptr<const json::number_unsigned_t*>())
                                                        : static_cast<double>(*score.get_ptr<const json::number_integer_t*>());
      scores_.push_back(static_cast<float>(value));
      RONDO_TRY(add("model.vocab", entry[0].get_ref<const std::string&>(), id, TokenType::kNormal));
    }
    if (scores_.empty()) return file_.wrong("model.vocab", "is empty");
    if (!has_field(*model_, "unk_id")) return {};
    RONDO_ASSIGN(const std::uint64_t unknown, find_u64(*model_, "unk_id", file_.within("model")));
    if (unknown >= tokens_.size()) return file_.wrong("model.unk_id", fmt::format("is {}, but there are {} pieces", unknown, tokens_.size()));
    unknown_ = tokens_[static_cast<std::size_t>(unknown)].spelling;
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
        if (value && field[0] != 's') (field[0] == 'l' ? strips_left_ : strips_right_).push_back(static_cast<std::int32_t>(id));
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
    if (type == "BertNormalizer") {
      has_bert_normalizer_ = true;
      RONDO_ASSIGN(clean_text_, file_.boolean_or(step, "clean_text", true, "normalizer"));
      RONDO_ASSIGN(ideographs_apart_, file_.boolean_or(step, "handle_chinese_chars", true, "normalizer"));
      RONDO_ASSIGN(lower_case_, file_.boolean_or(step, "lowercase", true, "normalizer"));
      RONDO_ASSIGN(strip_accents_, file_.boolean_or(step, "strip_accents", lower_case_, "normalizer"));
      return {};
    }
    if (type == "Lowercase" && !end_of_word_.empty()) {
      lower_case_ = true;
      return {};
    }
    if (type == "Precompiled") {
      RONDO_ASSIGN(const std::string map, file_.string_or(step, "precompiled_charsmap", "", "normalizer"));
      if (!decode_base64(map, charsmap_)) return file_.wrong("normalizer.precompiled_charsmap", "is no base64");
      return {};
    }
    if (type == "Strip") {
      RONDO_ASSIGN(const bool left, file_.boolean_or(step, "strip_left", true, "normalizer"));
      RONDO_ASSIGN(const bool right, file_.boolean_or(step, "strip_right", true, "normalizer"));
      if (!left && right) {
        strips_end_ = true;
        return {};
      }
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
      RONDO_ASSIGN(const std::string expression, pattern(step, "Regex", "normalizer"));
      if (expression == " {2,}" && (to == " " || to == kVisibleSpace)) {
        collapses_ = true;
        return {};
      }
      if (expression == "\\s+" && to == " " && !end_of_word_.empty()) return {};  // between words, where it is left out
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
      // It finds nothing to cut in CLIP's words.
      if (splits && (expressions_.empty() || expressions_.back() != kClipName)) expressions_.emplace_back(kByteLevelExpression);
      byte_level_ = true;
      return {};
    }
    if (type == "Digits") {
      RONDO_ASSIGN(const bool each, file_.boolean_or(step, "individual_digits", false, kField));
      expressions_.emplace_back(each ? R"(\p{N})" : R"(\p{N}+)");
      return {};
    }
    if (type == "Metaspace") return read_metaspace(step);
    if (type == "BertPreTokenizer") {
      has_bert_words_ = true;
      return {};
    }
    if (type == "WhitespaceSplit" && !spaces_.visible) {
      splits_words_ = true;
      return {};
    }
    if (type != "Split") return file_.later(kField, fmt::format("is '{}'", printable(type)));
    RONDO_ASSIGN(const std::string behavior, find_string(step, "behavior", file_.within(kField)));
    RONDO_ASSIGN(const bool inverted, file_.boolean_or(step, "invert", false, kField));
    RONDO_ASSIGN(const std::string text, pattern(step, "String", kField));
    RONDO_ASSIGN(const std::string expression, pattern(step, "Regex", kField));
    // Gemma's, which finds nothing, as spaces are others by then.
    if (text == " " && behavior == "MergedWithPrevious" && spaces_.visible) return {};
    if (behavior == "Removed" && inverted && expression == kClipExpression && !end_of_word_.empty()) {
      expressions_.emplace_back(kClipName);
      return {};
    }
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
    splits_at_spaces_ = splits;
    if (space != kVisibleSpace) return file_.later("pre_tokenizer.replacement", fmt::format("is '{}'", printable(space)));
    if (scheme != "always" && scheme != "first" && scheme != "never") return file_.later("pre_tokenizer.prepend_scheme", fmt::format("is '{}'", printable(scheme)));
    if (spaces_.prefix) return file_.later(kField, "is 'Metaspace' behind 'Prepend'");
    spaces_ = {true, scheme != "never", scheme == "first" ? "first" : "always"};
    return {};
  }

  Status read_post_processor(const json& step, const std::string& type) {
    constexpr const char* kField = "post_processor";
    if (type == "ByteLevel") return {};
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      has_template_ = true;
      RONDO_ASSIGN(const std::uint32_t begin, token_and_id(step, "cls"));
      RONDO_ASSIGN(const std::uint32_t end, token_and_id(step, "sep"));
      around_.before = {begin};
      around_.after = {end};
      around_.between.assign(type == "BertProcessing" ? 1 : 2, end);
      return {};
    }
    if (type != "TemplateProcessing") return file_.later(kField, fmt::format("is '{}'", printable(type)));
    has_template_ = true;
    RONDO_TRY(read_template(step, "single", around_));
    if (!has_field(step, "pair")) return {};
    Around pair;
    RONDO_TRY(read_template(step, "pair", pair));
    if (pair.before == around_.before && pair.after == around_.after) around_ = pair;
    return {};
  }

  /// Ids in front of a text, between two, and behind.
  struct Around {
    std::vector<std::uint32_t> before, between, after;
  };

  Status read_template(const json& step, const char* which, Around& around) const {
    const std::string field = fmt::format("post_processor.{}", which);
    RONDO_ASSIGN(const json* parts, find_array(step, which, file_.within("post_processor")));
    std::size_t n_texts = 0;
    for (const json& part : *parts) {
      if (has_field(part, "Sequence")) {
        // What was behind the first text is between the two.
        if (++n_texts > 1) std::swap(around.between, around.after);
        continue;
      }
      RONDO_ASSIGN(const json* token, find_object(part, "SpecialToken", file_.within(field)));
      RONDO_ASSIGN(const std::string name, find_string(*token, "id", file_.within(field)));
      RONDO_ASSIGN(const json* all, find_object(step, "special_tokens", file_.within("post_processor")));
      RONDO_ASSIGN(const json* known, find_object(*all, name, file_.within("post_processor.special_tokens")));
      RONDO_ASSIGN(const json* ids, find_array(*known, "ids", file_.within("post_processor.special_tokens")));
      if (ids->size() != 1) return file_.later("post_processor.special_tokens", fmt::format("has {} ids for '{}'", ids->size(), printable(name)));
      RONDO_ASSIGN(const std::uint32_t id, id_of(ids->front(), file_, "post_processor.special_tokens"));
      (n_texts == 0 ? around.before : around.after).push_back(id);
    }
    return {};
  }

  /// The id of `["[SEP]", 102]`.
  Result<std::uint32_t> token_and_id(const json& step, const char* field) const {
    RONDO_ASSIGN(const json* both, find_array(step, field, file_.within("post_processor")));
    const std::string name = fmt::format("post_processor.{}", field);
    if (both->size() != 2) return file_.wrong(name, "must be a token and its id");
    return id_of(both->back(), file_, name.c_str());
  }

  /// `value` as the id of a token.
  Result<std::uint32_t> id_of(const json& value, const JsonDocument& from, const char* field) const {
    if (!value.is_number_unsigned()) return from.wrong(field, "must be a token's id");
    const std::uint64_t id = *value.get_ptr<const json::number_unsigned_t*>();
    if (id >= n_vocab_) return from.wrong(field, fmt::format("is {}, but the network has {} tokens", id, n_vocab_));
    return static_cast<std::uint32_t>(id);
  }

  Status choose_kind() {
    if (kind_ == Kind::kWordPiece) {
      if (!has_bert_normalizer_) return file_.later("normalizer", "is not 'BertNormalizer', but the model 'WordPiece'");
      if (!has_bert_words_) return file_.later("pre_tokenizer", "is not 'BertPreTokenizer', but the model 'WordPiece'");
      return mark_unknown();
    }
    if (has_bert_normalizer_) return file_.later("normalizer", "is 'BertNormalizer', but the model not 'WordPiece'");
    const bool as_pieces = spaces_.visible && (kind_ == Kind::kUnigram || (!byte_level_ && (!byte_fallback_ || splits_at_spaces_ || !charsmap_.empty())));
    if (as_pieces || kind_ == Kind::kUnigram) return choose_pieces();
    if (!charsmap_.empty() || strips_end_ || collapses_) return file_.later("normalizer", "changes characters or spaces of what is no piece");
    if (splits_at_spaces_) return file_.later("pre_tokenizer.split", "is true");
    if (!byte_level_ && !byte_fallback_) return file_.later("pre_tokenizer", "is without 'ByteLevel', and the model without byte_fallback");
    if (byte_level_) {
      if (spaces_.visible || spaces_.prefix) return file_.later("normalizer", "changes spaces in front of 'ByteLevel'");
      if (!end_of_word_.empty()) {
        if (expressions_ != std::vector<std::string>{std::string(kClipName)}) return file_.later("pre_tokenizer", "does not split as CLIP does, but words end with '</w>'");
        pre_tokenizer_ = kClipName;
        return {};
      }
      if (lower_case_) return file_.later("normalizer", "is 'Lowercase'");
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
    RONDO_TRY(mark_bytes());
    return mark_unknown();
  }

  /// What SentencePiece's models have: pieces of text whose spaces are visible.
  Status choose_pieces() {
    if (!spaces_.visible) return file_.later("pre_tokenizer", "is without 'Metaspace'");
    if (byte_level_ || !expressions_.empty()) return file_.later("pre_tokenizer", "splits what 'Metaspace' makes visible");
    if (!end_of_word_.empty() || ignore_merges_) return file_.later("model", "has end_of_word_suffix or ignore_merges with 'Metaspace'");
    if (to_nfc_) return file_.later("normalizer", "is 'NFC' in front of 'Metaspace'");
    if (splits_words_ && (!splits_at_spaces_ || !spaces_.prefix || spaces_.where == std::string_view("first"))) return file_.later("pre_tokenizer", "is 'WhitespaceSplit' without a space in front of every word");
    as_pieces_ = true;
    if (byte_fallback_) RONDO_TRY(mark_bytes());
    return mark_unknown();
  }

  Status mark_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string name = fmt::format("<0x{:02X}>", byte);
      const auto found = ids_.find(name);
      if (found == ids_.end()) return file_.later("model.byte_fallback", fmt::format("is true without a token '{}'", name));
      tokens_[found->second].type = TokenType::kByte;
    }
    return {};
  }

  Status mark_unknown() {
    const auto unknown = ids_.find(unknown_);
    if (unknown != ids_.end()) tokens_[unknown->second].type = TokenType::kUnknown;
    return {};
  }

  Status read_merges() {
    if (kind_ != Kind::kBpe) return {};
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
    if (has_template_) {
      adds_bos_ = !around_.before.empty();
      if (adds_bos_) bos_ = around_.before.front();
    } else {
      RONDO_ASSIGN(adds_bos_, settings_.boolean_or(settings_.value(), "add_bos_token", false));
      if (adds_bos_ && !has_field(settings_.value(), "bos_token")) return settings_.wrong("bos_token", "is missing, but 'add_bos_token' is true");
    }
    if (!bos_) {
      RONDO_ASSIGN(bos_, named_token("bos_token"));
    }
    return {};
  }

  /// The token that is named, or the one that is usually called so.
  Status read_mask() {
    RONDO_ASSIGN(mask_, named_token("mask_token"));
    for (const char* usual : {"[MASK]", "<mask>"}) {
      const auto found = ids_.find(usual);
      if (!mask_ && found != ids_.end() && tokens_[found->second].type == TokenType::kControl) mask_ = found->second;
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
    writer.string("tokenizer.ggml.model", kind_ == Kind::kWordPiece ? "bert" : kind_ == Kind::kUnigram ? "t5" : byte_level_ ? "gpt2" : "llama");
    writer.strings(kTokensKey, spellings);
    writer.i32s("tokenizer.ggml.token_type", types);
    writer.boolean("tokenizer.ggml.add_bos_token", adds_bos_);
    if (to_nfc_) writer.boolean("rondo.nfc", true);
    writer.u32("tokenizer.ggml.bos_token_id", bos_.value_or(0xffffffff));
    writer.u32("tokenizer.ggml.eos_token_id", stop_ids_.empty() ? 0xffffffff : static_cast<std::uint32_t>(stop_ids_.front()));
    if (mask_) writer.u32("tokenizer.ggml.mask_token_id", *mask_);
    writer.i32s("rondo.stop_ids", stop_ids_);
    const auto unknown = ids_.find(unknown_);
    if (!byte_level_) writer.u32("tokenizer.ggml.unknown_token_id", unknown == ids_.end() ? 0xffffffff : unknown->second);
    if (kind_ == Kind::kBpe) writer.strings("tokenizer.ggml.merges", merges_);
    write_around(writer);
    if (kind_ == Kind::kWordPiece) return write_word_piece(writer);
    if (as_pieces_) return write_pieces(writer);
    if (byte_level_) {
      writer.string("tokenizer.ggml.pre", pre_tokenizer_);
      writer.boolean("rondo.whole_tokens_first", ignore_merges_);
      if (!end_of_word_.empty()) {
        writer.string("rondo.end_of_word", end_of_word_);
        writer.boolean("rondo.lower_case", lower_case_);
      }
      return;
    }
    writer.boolean("tokenizer.ggml.add_space_prefix", spaces_.prefix);
    writer.boolean("rondo.merges_by_rank", true);
    // 'Prepend' is done where text that is not normalized has been cut out.
    writer.string("rondo.space_prefix", spaces_.where[0] == '\0' && parts_sections_ ? "section" : spaces_.where);
  }

  void write_around(GgufWriter& writer) const {
    const auto write = [&](const char* key, const std::vector<std::uint32_t>& ids) { writer.i32s(key, std::vector<std::int32_t>(ids.begin(), ids.end())); };
    // One in front and nothing behind, as decoders have it, is BOS. What takes blanks with it is left to encoders, as llama.cpp does.
    if (kind_ == Kind::kBpe && around_.after.empty() && around_.before.size() < 2) return;
    write("rondo.tokens_before", around_.before);
    write("rondo.tokens_between", around_.between);
    write("rondo.tokens_after", around_.after);
    writer.i32s("rondo.strips_left", strips_left_);
    writer.i32s("rondo.strips_right", strips_right_);
  }

  void write_word_piece(GgufWriter& writer) const {
    writer.string("rondo.continuation", continuation_);
    writer.u32("rondo.max_word_characters", static_cast<std::uint32_t>(std::min<std::uint64_t>(max_word_characters_, 0xffffffff)));
    writer.boolean("rondo.clean_text", clean_text_);
    writer.boolean("rondo.ideographs_apart", ideographs_apart_);
    writer.boolean("tokenizer.ggml.normalizer.lowercase", lower_case_);
    writer.boolean("tokenizer.ggml.normalizer.strip_accents", strip_accents_);
  }

  void write_pieces(GgufWriter& writer) const {
    std::vector<std::int32_t> bits;
    for (std::uint32_t id = 0; id < n_vocab_; ++id) bits.push_back(std::bit_cast<std::int32_t>(id < scores_.size() ? scores_[id] : 0.0F));
    if (kind_ == Kind::kUnigram) writer.i32s("rondo.score_bits", bits);
    else writer.boolean("rondo.merges_by_rank", true);
    writer.boolean("rondo.fuse_unknown", fuses_unknown_);
    writer.boolean("rondo.byte_fallback", byte_fallback_);
    writer.boolean("tokenizer.ggml.add_eos_token", false);  // the template says
    writer.boolean("tokenizer.ggml.add_space_prefix", spaces_.prefix);
    writer.boolean("tokenizer.ggml.remove_extra_whitespaces", collapses_);
    writer.string("rondo.space_prefix", spaces_.where);
    writer.string("rondo.spaces", splits_words_ ? "words" : "metaspace");
    writer.boolean("rondo.splits_at_spaces", splits_at_spaces_);
    writer.boolean("rondo.strip_end", strips_end_);
    if (!charsmap_.empty()) writer.string("rondo.charsmap", charsmap_);
  }

  enum class Kind : std::uint8_t { kBpe, kWordPiece, kUnigram };
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
  std::optional<std::uint32_t> bos_, mask_;
  std::vector<std::int32_t> stop_ids_;
  bool byte_level_ = false, byte_fallback_ = false, ignore_merges_ = false, has_template_ = false, adds_bos_ = false, to_nfc_ = false;
  Kind kind_ = Kind::kBpe;
  Around around_;
  std::vector<std::int32_t> strips_left_, strips_right_;
  std::vector<float> scores_;
  std::string continuation_, end_of_word_, charsmap_;
  std::uint64_t max_word_characters_ = 100;
  bool clean_text_ = true, ideographs_apart_ = true, lower_case_ = false, strip_accents_ = false, has_bert_normalizer_ = false, has_bert_words_ = false;
  bool as_pieces_ = false, fuses_unknown_ = false, collapses_ = false, strips_end_ = false, splits_at_spaces_ = false, splits_words_ = false;
  bool parts_sections_ = false;  // by tokens that are neither special nor normalized
};

}  // namespace

Status write_hugging_face_tokenizer(const std::string& folder, const nlohmann::json& config, std::uint32_t n_vocab, GgufWriter& writer) {
  RONDO_ASSIGN(JsonDocument tokenizer, JsonDocument::read(folder + "/tokenizer.json", kLimits));
  RONDO_ASSIGN(JsonDocument settings, JsonDocument::read(folder + "/tokenizer_config.json"));
  Status refusal(StatusCode::kUnsupported, fmt::format("{}: is missing", tokenizer.name()));
  if (tokenizer.value().is_null()) {
    Result<JsonDocument> made = tokenizer_of_vocabulary_files(folder, settings, config);
    if (made.ok() && !made->value().is_null()) tokenizer = std::move(made).value();
    if (!made.ok()) refusal = made.status();
  }
  if (!tokenizer.value().is_null()) {
    RONDO_ASSIGN(JsonDocument generation, JsonDocument::read(folder + "/generation_config.json"));
    refusal = Translator(folder, config, n_vocab, std::move(tokenizer), std::move(settings), std::move(generation)).translate(writer);
  } else {
    const Result<bool> written = write_sentence_piece_tokenizer(folder, settings, config, n_vocab, writer);
    if (written.ok() && *written) return {};
    if (!written.ok()) refusal = written.status();
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
