// Folders with tokenizer.json: the tokens of a text, the ids that begin and end one, what is refused and what is wrong.
#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rondo/byte_source.h>
#include <rondo/tokenizer.h>

#include "models/formats/gguf.h"
#include "models/formats/safetensors.h"
#include "models/json.h"
#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::models::hugging_face_tokenizer_test {
namespace {

using json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

constexpr std::uint64_t kRows = 700;  // of the embedding
const std::string kSpace = "\xe2\x96\x81";
const std::string kLlama3 = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json split(const std::string& expression) {
  return {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
}
json byte_level(bool splits) { return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", splits}}; }
json sequence(const char* list, json steps) { return {{"type", "Sequence"}, {list, std::move(steps)}}; }
json added(int id, const std::string& token, bool special) {
  return {{"id", id}, {"content", token}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false}, {"special", special}};
}
json template_with(const std::string& token, int id) {
  return {{"type", "TemplateProcessing"},
          {"single", {{{"SpecialToken", {{"id", token}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"special_tokens", {{token, {{"id", token}, {"ids", {id}}, {"tokens", {token}}}}}}};
}

/// Printable ASCII has its own ids; then tokens from 256 on: "ab", "abc", "bc", " a", "12", "<end>", "<user>".
json byte_level_tokenizer() {
  json vocabulary;
  const auto letter = [](std::uint32_t byte) {
    std::uint32_t code = byte;
    if (byte <= 0x20) code = 0x100 + byte;
    if (byte >= 0x7f && byte <= 0xa0) code = 0x121 + (byte - 0x7f);
    if (byte == 0xad) code = 0x143;
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  };
  for (std::uint32_t byte = 0; byte < 256; ++byte) vocabulary[letter(byte)] = byte;
  int id = 256;
  for (const std::string& token : {std::string("ab"), std::string("abc"), std::string("bc"), letter(' ') + "a", std::string("12")}) vocabulary[token] = id++;
  vocabulary["<end>"] = 261;
  const json model = {{"type", "BPE"},         {"dropout", nullptr}, {"unk_token", nullptr}, {"continuing_subword_prefix", ""}, {"end_of_word_suffix", ""},
                      {"byte_fallback", false}, {"vocab", vocabulary}, {"merges", {"b c", "a b", letter(' ') + " a", "1 2"}}};
  return {{"version", "1.0"},     {"added_tokens", {added(261, "<end>", true), added(262, "<user>", false)}},
          {"normalizer", nullptr}, {"pre_tokenizer", byte_level(true)},
          {"post_processor", byte_level(true)}, {"model", model}};
}

/// Unknown 0, "<s>" 1, "</s>" 2, bytes from 3 on, then "▁" 259, "a", "b", "c" and what they merge into.
json character_tokenizer() {
  json vocabulary = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) vocabulary[std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">"] = 3 + byte;
  int id = 259;
  for (const std::string& token : {kSpace, std::string("a"), std::string("b"), std::string("c"), std::string("ab"), std::string("bc"), kSpace + "ab", kSpace + kSpace}) vocabulary[token] = id++;
  const json model = {{"type", "BPE"}, {"unk_token", "<unk>"}, {"fuse_unk", true}, {"byte_fallback", true}, {"vocab", vocabulary}, {"merges", {kSpace + " " + kSpace, "b c", "a b", kSpace + " ab"}}};
  const json spaces = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
  return {{"added_tokens", {added(0, "<unk>", true), added(1, "<s>", true), added(2, "</s>", true)}},
          {"normalizer", sequence("normalizers", {{{"type", "Prepend"}, {"prepend", kSpace}}, spaces})},
          {"pre_tokenizer", nullptr},
          {"post_processor", template_with("<s>", 1)},
          {"model", model}};
}

class HuggingFaceTokenizerTest : public ::testing::Test {
 protected:
  HuggingFaceTokenizerTest() : tokenizer_(byte_level_tokenizer()), config_(json::parse(testing::read_whole_file(testing::tests_data_path("qwen2/config.json")))) {
    write_weights(kRows);
  }

  /// The bundled folder's, but for an embedding of zeros.
  void write_weights(std::uint64_t n_rows) {
    const ByteSource source = open_file(testing::tests_data_path("qwen2/model.safetensors")).value();
    const SafetensorsFile file = SafetensorsFile::parse(source).value();
    std::vector<std::vector<std::byte>> bytes;
    std::vector<SafetensorsTensor> tensors;
    bytes.reserve(file.entries().size());
    for (const SafetensorsEntry& entry : file.entries()) {
      const bool embedding = entry.name.find("embed_tokens") != std::string::npos;
      bytes.emplace_back(static_cast<std::size_t>(embedding ? entry.size_bytes / entry.shape[0] * n_rows : entry.size_bytes));
      if (!embedding) {
        EXPECT_TRUE(source.read(entry.offset_bytes, bytes.back()).ok());
      }
      tensors.push_back({entry.name, entry.dtype, embedding ? std::vector<std::uint64_t>{n_rows, entry.shape[1]} : entry.shape, bytes.back()});
    }
    EXPECT_TRUE(write_safetensors(folder_.path("model.safetensors"), tensors).ok());
  }

  Result<Tokenizer> create() {
    folder_.write("config.json", config_.dump());
    folder_.write("tokenizer.json", tokenizer_.dump());
    if (!settings_.is_null()) folder_.write("tokenizer_config.json", settings_.dump());
    if (!generation_.is_null()) folder_.write("generation_config.json", generation_.dump());
    RONDO_ASSIGN(const ByteSource source, open_model(folder_.path("")));
    return Tokenizer::create(source);
  }
  Tokenizer created() {
    const Result<Tokenizer> tokenizer = create();
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    return tokenizer.ok() ? *tokenizer : Tokenizer(nullptr);
  }
  Ids encode(std::string_view text, bool parse_special = false) { return created().encode(text, EncodeOptions{false, parse_special}); }
  void expect_refusal(StatusCode code, std::initializer_list<std::string> parts) {
    const Status status = create().status();
    EXPECT_EQ(status.code(), code) << status.message();
    for (const std::string& part : parts) EXPECT_NE(status.message().find(part), std::string::npos) << "'" << part << "' is not in: " << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  }

  testing::TemporaryFolder folder_;
  json tokenizer_, config_, settings_, generation_;
};

TEST_F(HuggingFaceTokenizerTest, MergesBytesByRank) {
  EXPECT_EQ(encode("abc ab12"), (Ids{'a', 258, ' ', 256, 260}));  // bc before ab, that before " a"
  EXPECT_EQ(encode("ab\xff<end><user>ab"), (Ids{256, 0xff, '<', 'e', 'n', 'd', '>', 262, 256}));
  EXPECT_EQ(encode("ab<end>", true), (Ids{256, 261}));
  EXPECT_EQ(created().decode(Ids{256, 261, 262, 300}), "ab<user>");
  EXPECT_EQ(created().n_vocab(), static_cast<std::int32_t>(kRows));
  tokenizer_["model"]["merges"] = json::array({json::array({"b", "c"}), json::array({"a", "b"})});  // as newer files have them
  EXPECT_EQ(encode("abc ab"), (Ids{'a', 258, ' ', 256}));
  tokenizer_["model"].erase("type");  // as older files have it
  EXPECT_EQ(encode("abc"), (Ids{'a', 258}));
  tokenizer_["model"]["ignore_merges"] = true;
  EXPECT_EQ(encode("abc"), (Ids{257}));
}

TEST_F(HuggingFaceTokenizerTest, SplitsByPublishedExpressions) {
  tokenizer_["pre_tokenizer"] = sequence("pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, byte_level(true)});
  EXPECT_EQ(encode("12"), (Ids{'1', '2'}));
  tokenizer_["pre_tokenizer"] = sequence("pretokenizers", {split(kLlama3), byte_level(false)});
  EXPECT_EQ(encode("12 12"), (Ids{260, ' ', 260}));
  // Escapes and the characters themselves are the same; sequences may be within sequences.
  const std::string words = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
  const std::string scripts = "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+";
  tokenizer_["pre_tokenizer"] = sequence("pretokenizers", {sequence("pretokenizers", {split(R"(\p{N}{1,3})"), split(scripts)}), split(words), byte_level(false)});
  EXPECT_EQ(encode("1112"), (Ids{'1', '1', '1', '2'}));
  EXPECT_EQ(encode("12"), (Ids{260}));
  tokenizer_["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(encode("12"), (Ids{260}));
  tokenizer_["pre_tokenizer"]["pretokenizers"][1]["pattern"]["Regex"] = "[ab]+";
  expect_refusal(StatusCode::kUnsupported, {"tokenizer.json", "'pre_tokenizer'", "'[ab]+'", "--tokens", "--tokenizer"});
}

/// Text is brought into the form, special tokens in it are found before.
TEST_F(HuggingFaceTokenizerTest, NormalizesToNfc) {
  EXPECT_EQ(encode("e\u0301"), (Ids{'e', 0xcc, 0x81}));
  tokenizer_["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(encode("e\u0301"), (Ids{0xc3, 0xa9}));
  EXPECT_EQ(encode("e<user>\u0301"), (Ids{'e', 262, 0xcc, 0x81}));
  tokenizer_["normalizer"] = sequence("normalizers", {{{"type", "NFC"}}});
  EXPECT_EQ(encode("\u1112\u1161\u11ab"), (Ids{0xed, 0x95, 0x9c}));
}

TEST_F(HuggingFaceTokenizerTest, MergesCharactersByRank) {
  tokenizer_ = character_tokenizer();
  EXPECT_EQ(encode("abc"), (Ids{259, 260, 264}));
  EXPECT_EQ(encode("ab  ab"), (Ids{265, 266, 263}));  // the pair of spaces comes first
  EXPECT_EQ(encode("\n"), (Ids{259, 3 + '\n'}));
  EXPECT_EQ(created().encode("ab"), (Ids{1, 265}));
  EXPECT_EQ(created().decode(Ids{1, 265, 3 + '!', 266, 260}), "ab!  a");
  tokenizer_["model"]["merges"] = {"a b", kSpace + " ab"};  // "bc" is a token, but nothing merges into it
  EXPECT_EQ(encode("abc bc"), (Ids{265, 262, 259, 261, 262}));
}

TEST_F(HuggingFaceTokenizerTest, PutsSpacesWhereTheFileDoes) {
  tokenizer_ = character_tokenizer();
  tokenizer_["added_tokens"].push_back(added(300, "<user>", false));
  const std::string text = "<user>ab<s>ab";
  const Ids bare = {300, 263, 1, 263};
  EXPECT_EQ(encode(text, true), (Ids{300, 265, 1, 265}));
  EXPECT_EQ(encode(" ab"), (Ids{266, 263}));
  tokenizer_["added_tokens"].back()["normalized"] = true;
  EXPECT_EQ(encode(text, true), (Ids{300, 263, 1, 265}));
  tokenizer_["normalizer"] = nullptr;
  const auto metaspace = [&](const char* scheme) {
    tokenizer_["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", scheme}, {"split", false}};
  };
  metaspace("always");
  EXPECT_EQ(encode(text, true), (Ids{300, 265, 1, 265}));
  EXPECT_EQ(encode(" ab"), (Ids{265}));
  metaspace("first");
  EXPECT_EQ(encode(text, true), bare);
  EXPECT_EQ(encode("ab<s>ab", true), (Ids{265, 1, 263}));
  metaspace("never");
  EXPECT_EQ(encode(text, true), bare);
  EXPECT_EQ(encode("ab"), (Ids{263}));
}

TEST_F(HuggingFaceTokenizerTest, KnowsWhereTextsBeginAndEnd) {
  Tokenizer plain = created();
  EXPECT_EQ(plain.bos(), -1);
  EXPECT_EQ(plain.eos(), -1);
  EXPECT_TRUE(plain.stop_ids().empty());
  settings_ = {{"add_bos_token", true}, {"bos_token", "<end>"}, {"eos_token", {{"content", "<user>"}}}};
  Tokenizer named = created();
  EXPECT_EQ(named.encode("ab"), (Ids{261, 256}));
  EXPECT_EQ(Ids(named.stop_ids().begin(), named.stop_ids().end()), (Ids{262}));
  config_["eos_token_id"] = 5;
  EXPECT_EQ(created().eos(), 5);
  generation_ = {{"eos_token_id", {261, 7, 262, 261, 8}}};
  Tokenizer several = created();
  EXPECT_EQ(several.eos(), 261);
  EXPECT_EQ(Ids(several.stop_ids().begin(), several.stop_ids().end()), (Ids{261, 7, 262, 8}));
  tokenizer_["post_processor"] = sequence("processors", {byte_level(true), template_with("<user>", 262)});
  settings_["add_bos_token"] = false;  // the template decides
  EXPECT_EQ(created().encode("ab"), (Ids{262, 256}));
}

TEST_F(HuggingFaceTokenizerTest, OtherKindsAreRefusedByName) {
  struct Case {
    const char* pointer;
    json value;
    std::string message;
  };
  const json metaspace = {{"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", "always"}};
  const std::vector<Case> cases = {
      {"/model/type", "WordPiece", "'normalizer' is not 'BertNormalizer'"},
      {"/model/type", "WordLevel", "'model.type' is 'WordLevel'"},
      {"/model/dropout", 0.1, "'model.dropout'"},
      {"/model/continuing_subword_prefix", "##", "'model.continuing_subword_prefix' is '##'"},
      {"/model/end_of_word_suffix", "</end>", "'model.end_of_word_suffix' is '</end>'"},
      {"/model/end_of_word_suffix", "</w>", "'pre_tokenizer' does not split as CLIP does"},
      {"/normalizer", {{"type", "Lowercase"}}, "'normalizer' is 'Lowercase'"},
      {"/normalizer", sequence("normalizers", {{{"type", "NFC"}}, {{"type", "NFKC"}}}), "'normalizer' is 'NFKC'"},
      {"/normalizer", {{"type", "Prepend"}, {"prepend", "x"}}, "'normalizer' is 'Prepend' of something else"},
      {"/pre_tokenizer", nullptr, "'pre_tokenizer' is without 'ByteLevel'"},
      {"/pre_tokenizer", sequence("pretokenizers", {metaspace, split("[ab]+")}), "'pre_tokenizer' splits what 'Metaspace' makes visible"},
      {"/pre_tokenizer", {{"type", "Whitespace"}}, "'pre_tokenizer' is 'Whitespace'"},
      {"/pre_tokenizer", byte_level(false), "'pre_tokenizer' does not split the text"},
      {"/pre_tokenizer/add_prefix_space", true, "'pre_tokenizer.add_prefix_space' is true"},
      {"/pre_tokenizer", sequence("pretokenizers", {byte_level(true), byte_level(true)}), "behind 'ByteLevel'"},
      {"/post_processor", {{"type", "PairProcessing"}}, "'post_processor' is 'PairProcessing'"},
      {"/added_tokens/1/lstrip", true, "'added_tokens' has lstrip for '<user>'"},
  };
  for (const auto& [pointer, value, message] : cases) {
    tokenizer_ = byte_level_tokenizer();
    tokenizer_[json::json_pointer(pointer)] = value;
    expect_refusal(StatusCode::kUnsupported, {"tokenizer.json: ", message, "; use --tokens, or --tokenizer FILE.gguf"});
  }
  std::filesystem::remove(folder_.path("tokenizer.json"));
  const Status missing = Tokenizer::create(open_model(folder_.path("")).value()).status();
  EXPECT_NE(missing.message().find("tokenizer.json: is missing; use --tokens"), std::string::npos) << missing.message();
}

TEST_F(HuggingFaceTokenizerTest, WrongFilesAreNamed) {
  struct Case {
    const char* pointer;
    json value;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"", json::array(), "is no object"},
      {"/model", 1, "model"},
      {"/model/vocab", json::object(), "'model.vocab' is empty"},
      {"/model/vocab/a", "1", "'model.vocab' has no id for 'a'"},
      {"/model/vocab/a", -1, "'model.vocab' has no id for 'a'"},
      {"/model/vocab/a", 98, "'model.vocab' has id 98 for 'b', which is that of 'a'"},
      {"/model/vocab/a", 700, "'model.vocab' has id 700 for 'a', but the network has 700 tokens"},
      {"/model/vocab/a", 18446744073709551615U, "the network has 700 tokens"},
      {"/model/merges", nullptr, "merges"},
      {"/model/merges/1", "ab", "'model.merges' has no pair of tokens at index 1"},
      {"/model/merges/1", json::array({"a", 1}), "'model.merges' has no pair of tokens at index 1"},
      {"/model/merges/1", json::array({"a", "b", "c"}), "'model.merges' has no pair of tokens at index 1"},
      {"/model/merges/1", "a x", "'model.merges' has 'ax', which is no token, at index 1"},
      {"/model/byte_fallback", 1, "'model.byte_fallback' must be true or false"},
      {"/added_tokens/0", 1, "'added_tokens' holds something that is no object"},
      {"/added_tokens/0/id", 700, "'added_tokens' has id 700"},
      {"/added_tokens/0/id", 5, "'added_tokens' has id 5 for '<end>', which"},
      {"/added_tokens/1/content", "", "'added_tokens' has an empty 'content' for id 262"},
      {"/post_processor", template_with("<end>", 700), "'post_processor.special_tokens' is 700"},
  };
  for (const auto& [pointer, value, message] : cases) {
    tokenizer_ = byte_level_tokenizer();
    tokenizer_[json::json_pointer(pointer)] = value;
    expect_refusal(StatusCode::kCorruptData, {"tokenizer.json: ", message});
  }
  tokenizer_ = byte_level_tokenizer();
  settings_ = {{"add_bos_token", true}};
  expect_refusal(StatusCode::kCorruptData, {"tokenizer_config.json: 'bos_token' is missing"});
  settings_ = {{"bos_token", "<none>"}};
  expect_refusal(StatusCode::kCorruptData, {"tokenizer_config.json: 'bos_token' is '<none>', which is no token"});
  settings_ = json::object();
  generation_ = {{"eos_token_id", {1, 700}}};
  expect_refusal(StatusCode::kCorruptData, {"generation_config.json: 'eos_token_id' is 700"});
  generation_ = {{"eos_token_id", "</s>"}};
  expect_refusal(StatusCode::kCorruptData, {"generation_config.json: 'eos_token_id' must be a token's id"});
}

/// What tokenizer.json of a published vocabulary would be.
json converted(const GgufFile& file, bool characters) {
  const GgufStrings& tokens = *file.strings("tokenizer.ggml.tokens").value();
  const std::span<const std::int32_t> types = file.i32s("tokenizer.ggml.token_type").value();
  json out = characters ? character_tokenizer() : byte_level_tokenizer();
  json vocabulary = json::object(), merges = json::array();
  out["added_tokens"] = json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    vocabulary[std::string(tokens[id])] = id;
    if (types[id] == 2 || types[id] == 3) out["added_tokens"].push_back(added(static_cast<int>(id), std::string(tokens[id]), true));
  }
  if (!characters) {
    const GgufStrings& lines = *file.strings("tokenizer.ggml.merges").value();
    for (std::size_t i = 0; i < lines.size(); ++i) merges.push_back(std::string(lines[i]));
  } else {
    // As transformers converts scores: all halves of a token, the best token first.
    std::vector<std::tuple<float, std::int32_t, std::int32_t, std::string>> all;
    const std::span<const float> scores = file.f32s("tokenizer.ggml.scores").value();
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      for (std::size_t middle = 1; types[id] == 1 && middle < tokens[id].size(); ++middle) {
        const auto left = vocabulary.find(tokens[id].substr(0, middle)), right = vocabulary.find(tokens[id].substr(middle));
        if (left != vocabulary.end() && right != vocabulary.end()) all.emplace_back(-scores[id], left->get<std::int32_t>(), right->get<std::int32_t>(), left.key() + " " + right.key());
      }
    }
    std::sort(all.begin(), all.end());
    for (const auto& merge : all) merges.push_back(std::get<3>(merge));
  }
  out["model"]["vocab"] = std::move(vocabulary);
  out["model"]["merges"] = std::move(merges);
  return out;
}

TEST_F(HuggingFaceTokenizerTest, PublishedVocabulariesGiveTheTokensOfLlamaCpp) {
  RONDO_REQUIRE_TEST_DATA();
  for (const char* name : {"gpt-2", "llama-spm"}) {
    const std::string path = testing::test_data_path("vocab/ggml-vocab-") + name + ".gguf";
    const GgufFile file = GgufFile::parse(open_file(path).value()).value();
    const bool characters = name == std::string("llama-spm");
    write_weights(file.strings("tokenizer.ggml.tokens").value()->size());
    tokenizer_ = converted(file, characters);
    const Tokenizer tokenizer = created();
    const std::vector<std::string> texts = testing::split(testing::read_whole_file(path + ".inp"), "\n__ggml_vocab_test__\n");
    const std::vector<std::string> lines = testing::split(testing::read_whole_file(path + ".out"), "\n");
    ASSERT_GT(texts.size(), 40U);
    ASSERT_EQ(texts.size(), lines.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::string ids;
      for (const std::int32_t id : tokenizer.encode(texts[i], EncodeOptions{false, false})) ids += " " + std::to_string(id);
      EXPECT_EQ(ids, lines[i]) << name << ": " << texts[i];
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(texts[i])), texts[i]);
    }
  }
}

TEST_F(HuggingFaceTokenizerTest, AnyValueAnywhereIsReadOrRefusedInOneLine) {
  const json values = {nullptr, true, -1, 1.5, 1, "x", json::array(), {1}, json::object(), {{"type", "Sequence"}}};
  std::size_t n_refused = 0;
  for (const json& good : {byte_level_tokenizer(), character_tokenizer()}) {
    const json flat = good.flatten();
    std::set<std::string> places = {""};
    for (auto entry = flat.begin(); entry != flat.end(); ++entry) {
      for (std::string place = entry.key(); !place.empty(); place.resize(place.rfind('/'))) {
        // One byte's token stands for all.
        if (!place.starts_with("/model/vocab/") || place == "/model/vocab/a") places.insert(place);
      }
    }
    for (const std::string& place : places) {
      for (const json& value : values) {
        tokenizer_ = good;
        tokenizer_[json::json_pointer(place)] = value;
        const Status status = create().status();
        if (status.ok()) continue;
        ++n_refused;
        EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
        EXPECT_TRUE(status.message().find("tokenizer.json: ") != std::string::npos || status.message().find("metadata key 'tokenizer.ggml.") != std::string::npos) << place << " " << value << ": " << status.message();
      }
    }
  }
  EXPECT_GT(n_refused, 300U);
}

}  // namespace
}  // namespace rondo::models::hugging_face_tokenizer_test
