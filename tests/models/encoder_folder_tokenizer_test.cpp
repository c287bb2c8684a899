// Folders of encoders and encoder-decoders: what tokenizer.json says, what other files say without it, and files that lie.
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rondo/byte_source.h>
#include <rondo/tokenizer.h>

#include "models/formats/gguf_writer.h"
#include "models/formats/hugging_face_tokenizer.h"
#include "models/json.h"
#include "tests/support/command_runner.h"

namespace rondo::models::encoder_folder_tokenizer_test {
namespace {

using json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

const std::string kSpace = "\xe2\x96\x81";

/// A message of protocol buffers.
std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(int field, std::uint64_t value) { return varint(static_cast<std::uint64_t>(field) << 3) + varint(value); }
std::string bytes(int field, const std::string& value) { return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value; }
std::string piece(const std::string& text, float score, int type) {
  std::string raw(4, '\0');
  std::memcpy(raw.data(), &score, 4);
  return bytes(1, bytes(1, text) + varint(2 << 3 | 5) + raw + number(3, static_cast<std::uint64_t>(type)));
}
/// <unk>, <s>, </s>, "▁", "a", "b", "ab".
std::string sentence_pieces(int kind = 1) {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece(kSpace, -2, 1) + piece("a", -3, 1) + piece("b", -3, 1) + piece("ab", -4, 1) +
         bytes(2, number(3, static_cast<std::uint64_t>(kind)) + number(40, 0) + number(41, 1) + number(42, 2)) + bytes(3, bytes(1, "identity"));
}

class EncoderFolderTokenizerTest : public ::testing::Test {
 protected:
  void write(const char* name, const json& document) { folder_.write(name, document.dump()); }
  void tokenizer_class(const char* name) {
    settings_["tokenizer_class"] = name;
    write("tokenizer_config.json", settings_);
  }
  Result<Tokenizer> create() {
    GgufWriter writer;
    const std::string path = folder_.path("");
    RONDO_TRY(write_hugging_face_tokenizer(path.substr(0, path.size() - 1), config_, n_vocab_, writer));
    const std::vector<std::byte> header = writer.header();
    return Tokenizer::create(memory_source(header, "folder"));
  }
  Ids encode(const std::string& text, const EncodeOptions& options = {}) {
    const Result<Tokenizer> tokenizer = create();
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    return tokenizer.ok() ? tokenizer->encode(text, options) : Ids();
  }
  EncodedPair encode_pair(const std::string& first, const std::string& second) {
    const Result<Tokenizer> tokenizer = create();
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    return tokenizer.ok() ? tokenizer->encode_pair(first, second) : EncodedPair();
  }
  void expect_refusal(StatusCode code, const std::string& part) {
    const Status status = create().status();
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << "'" << part << "' is not in: " << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }

  testing::TemporaryFolder folder_;
  json config_ = json::object(), settings_ = json::object();
  std::uint32_t n_vocab_ = 20;
};

json added(std::uint64_t id, const std::string& token, bool strips_left = false) { return {{"id", id}, {"content", token}, {"special", true}, {"lstrip", strips_left}, {"normalized", false}}; }
json special(const char* token) { return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; }
json text(const char* which) { return {{"Sequence", {{"id", which}, {"type_id", 0}}}}; }

json bert_document() {
  return {{"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", 10u},
                     {"vocab", {{"[PAD]", 0u}, {"[UNK]", 1u}, {"[CLS]", 2u}, {"[SEP]", 3u}, {"[MASK]", 4u}, {"a", 5u}, {"##b", 6u}, {",", 7u}}}}},
          {"normalizer", {{"type", "BertNormalizer"}, {"clean_text", true}, {"handle_chinese_chars", true}, {"strip_accents", nullptr}, {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", {{"type", "TemplateProcessing"}, {"single", {special("[CLS]"), text("A"), special("[SEP]")}}, {"pair", {special("[CLS]"), text("A"), special("[SEP]"), text("B"), special("[SEP]")}},
                              {"special_tokens", {{"[CLS]", {{"ids", {2u}}}}, {"[SEP]", {{"ids", {3u}}}}}}}},
          {"added_tokens", {added(0, "[PAD]"), added(1, "[UNK]"), added(2, "[CLS]"), added(3, "[SEP]"), added(4, "[MASK]", true)}}};
}

TEST_F(EncoderFolderTokenizerTest, Bert) {
  json document = bert_document();
  write("tokenizer.json", document);
  EXPECT_EQ(encode("\u00c1b, x"), (Ids{2, 5, 6, 7, 1, 3}));
  EXPECT_EQ(encode("abbbbbbbbbb"), (Ids{2, 1, 3}));
  EXPECT_EQ(encode("a [MASK] a", {true, true}), (Ids{2, 5, 4, 5, 3}));
  EXPECT_EQ(encode_pair("a", "ab").tokens, (Ids{2, 5, 3, 5, 6, 3}));
  document["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3u}}, {"cls", {"[CLS]", 2u}}};
  document["normalizer"]["lowercase"] = false;
  write("tokenizer.json", document);
  EXPECT_EQ(encode("A a"), (Ids{2, 1, 5, 3}));
  document["post_processor"]["sep"][1] = 20u;
  write("tokenizer.json", document);
  expect_refusal(StatusCode::kCorruptData, "'post_processor.sep' is 20, but the network has 20 tokens");
  document["pre_tokenizer"] = nullptr;
  document["post_processor"] = nullptr;
  write("tokenizer.json", document);
  expect_refusal(StatusCode::kUnsupported, "'pre_tokenizer' is not 'BertPreTokenizer'");
}

TEST_F(EncoderFolderTokenizerTest, BertWithoutADocument) {
  folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\r\n[MASK]\na\n##b\n\xc3\x81\n");
  config_["model_type"] = "distilbert";
  EXPECT_EQ(encode("Ab"), (Ids{2, 5, 6, 3}));
  settings_ = {{"do_lower_case", false}};
  tokenizer_class("BertTokenizerFast");
  EXPECT_EQ(encode("\u00c1 a"), (Ids{2, 7, 5, 3}));
  settings_["cls_token"] = {{"content", "<cls>"}};
  tokenizer_class("BertTokenizer");
  expect_refusal(StatusCode::kCorruptData, "vocab.txt: has no '<cls>', which is the cls_token");
  tokenizer_class("PerceiverTokenizer");
  config_ = json::object();
  expect_refusal(StatusCode::kUnsupported, "tokenizer.json: is missing");
}

TEST_F(EncoderFolderTokenizerTest, BytePairsWithoutADocument) {
  write("vocab.json", {{"<s>", 0u}, {"<pad>", 1u}, {"</s>", 2u}, {"<unk>", 3u}, {"a", 4u}, {"b", 5u}, {"ab", 6u}, {"\xc4\xa0", 7u}, {"<mask>", 8u}, {"b</w>", 9u}, {"ab</w>", 10u}, {"a</w>", 11u}});
  folder_.write("merges.txt", "#version: 0.2\na b\na b</w>\n");
  tokenizer_class("RobertaTokenizer");
  EXPECT_EQ(encode("ab a"), (Ids{0, 6, 7, 4, 2}));
  EXPECT_EQ(encode("ab <mask>", {true, true}), (Ids{0, 6, 8, 2}));
  EXPECT_EQ(encode_pair("a", "b").tokens, (Ids{0, 4, 2, 2, 5, 2}));
  tokenizer_class("BartTokenizer");
  EXPECT_EQ(encode("ab"), (Ids{0, 6, 2}));
  tokenizer_class("GPT2Tokenizer");
  EXPECT_EQ(encode("ab"), (Ids{6}));
  settings_ = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  tokenizer_class("CLIPTokenizer");
  EXPECT_EQ(encode(" AB  a\n"), (Ids{0, 10, 11, 2}));
  EXPECT_EQ(create()->decode(Ids{0, 10, 11, 2}), "ab a ");
  folder_.write("merges.txt", "a c\n");
  expect_refusal(StatusCode::kCorruptData, "'model.merges' has 'c', which is no token, at index 0");
}

TEST_F(EncoderFolderTokenizerTest, UnigramOfADocument) {
  json document = {{"model", {{"type", "Unigram"}, {"unk_id", 2u}, {"vocab", json::array()}}},
                   {"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Precompiled"}, {"precompiled_charsmap", ""}}, {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}},
                                                                          {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", kSpace}}}}}},
                   {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", "always"}, {"split", true}}},
                   {"post_processor", {{"type", "TemplateProcessing"}, {"single", {text("A"), special("</s>")}}, {"pair", {text("A"), special("</s>"), text("B"), special("</s>")}},
                                       {"special_tokens", {{"</s>", {{"ids", {1u}}}}}}}},
                   {"added_tokens", json::array()}};
  for (const auto& [token, score] : std::vector<std::pair<std::string, double>>{{"<pad>", 0}, {"</s>", 0}, {"<unk>", 0}, {kSpace, -2.5}, {"a", -3}, {"b", -3}, {kSpace + "ab", -4}}) {
    document["model"]["vocab"].push_back(json::array({token, score}));
  }
  write("tokenizer.json", document);
  EXPECT_EQ(encode("ab  a c "), (Ids{6, 3, 4, 3, 2, 1}));
  EXPECT_EQ(encode_pair("a", "ab").tokens, (Ids{3, 4, 1, 6, 1}));
  document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}, {"replacement", kSpace}, {"add_prefix_space", true}}}}};
  document["normalizer"] = nullptr;
  write("tokenizer.json", document);
  EXPECT_EQ(encode("\tab\u00a0a"), (Ids{6, 3, 4, 1}));
  document["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "!!!!"}};
  write("tokenizer.json", document);
  expect_refusal(StatusCode::kCorruptData, "'normalizer.precompiled_charsmap' is no base64");
  document["normalizer"] = nullptr;
  document["model"]["vocab"][3] = json::array({kSpace});
  write("tokenizer.json", document);
  expect_refusal(StatusCode::kCorruptData, "'model.vocab' has no piece and score at index 3");
}

TEST_F(EncoderFolderTokenizerTest, PairsBehindMetaspace) {
  json document = {{"model", {{"type", "BPE"}, {"unk_token", "<unk>"}, {"fuse_unk", true}, {"merges", {"a b", kSpace + " ab"}},
                              {"vocab", {{"<s>", 0u}, {"</s>", 2u}, {"<unk>", 3u}, {kSpace, 4u}, {"a", 5u}, {"b", 6u}, {"ab", 7u}, {kSpace + "ab", 8u}}}}},
                   {"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Precompiled"}, {"precompiled_charsmap", nullptr}}, {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}}}}},
                   {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", kSpace}, {"add_prefix_space", true}}},
                   {"post_processor", {{"type", "TemplateProcessing"}, {"single", {special("en"), text("A"), special("</s>")}}, {"pair", {special("en"), text("A"), text("B"), special("</s>")}},
                                       {"special_tokens", {{"</s>", {{"ids", {2u}}}}, {"en", {{"ids", {9u}}}}}}}},
                   {"added_tokens", {added(9, "en")}}};
  write("tokenizer.json", document);
  EXPECT_EQ(encode("ab  ab xyb"), (Ids{9, 8, 8, 4, 3, 6, 2}));
  EXPECT_EQ(encode_pair("ab", "a").tokens, (Ids{9, 8, 4, 5, 2}));
  document["model"]["fuse_unk"] = false;
  write("tokenizer.json", document);
  EXPECT_EQ(encode("xyb", {false, false, false}), (Ids{4, 3, 3, 6}));
  document["model"]["byte_fallback"] = true;
  write("tokenizer.json", document);
  expect_refusal(StatusCode::kUnsupported, "'model.byte_fallback' is true without a token '<0x00>'");
}

TEST_F(EncoderFolderTokenizerTest, ClipOfADocument) {
  json document = {{"model", {{"type", "BPE"}, {"unk_token", "<|endoftext|>"}, {"end_of_word_suffix", "</w>"}, {"merges", {"a b</w>"}},
                              {"vocab", {{"a", 0u}, {"b", 1u}, {"a</w>", 2u}, {"b</w>", 3u}, {"ab</w>", 4u}, {"<|startoftext|>", 5u}, {"<|endoftext|>", 6u}}}}},
                   {"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}}, {{"type", "Lowercase"}}}}}},
                   {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Split"}, {"pattern", {{"Regex", R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"}}}, {"behavior", "Removed"}, {"invert", true}},
                                                                                {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}}}}}},
                   {"post_processor", {{"type", "RobertaProcessing"}, {"sep", {"<|endoftext|>", 6u}}, {"cls", {"<|startoftext|>", 5u}}, {"trim_offsets", false}, {"add_prefix_space", false}}},
                   {"added_tokens", {added(5, "<|startoftext|>"), added(6, "<|endoftext|>")}}};
  write("tokenizer.json", document);
  EXPECT_EQ(encode("AB\t\n aab"), (Ids{5, 4, 0, 4, 6}));
  document["normalizer"] = {{"type", "NFKC"}};
  write("tokenizer.json", document);
  expect_refusal(StatusCode::kUnsupported, "'normalizer' is 'NFKC'");
}

TEST_F(EncoderFolderTokenizerTest, SentencePieceFiles) {
  folder_.write("spiece.model", sentence_pieces());
  settings_ = {{"extra_ids", 3u}};
  tokenizer_class("T5Tokenizer");
  EXPECT_EQ(encode(" ab  x "), (Ids{3, 6, 3, 0, 2}));
  EXPECT_EQ(encode("ab<extra_id_0>a", {true, true}), (Ids{3, 6, 9, 3, 4, 2}));
  EXPECT_EQ(create()->spelling(7), "<extra_id_2>");
  folder_.write("sentencepiece.bpe.model", sentence_pieces(2));
  tokenizer_class("XLMRobertaTokenizer");
  EXPECT_EQ(encode("ab x"), (Ids{0, 4, 7, 4, 3, 2}));
  EXPECT_EQ(encode("a <mask>", {true, true}), (Ids{0, 4, 5, 8, 2}));
  EXPECT_EQ(encode_pair("a", "b").tokens, (Ids{0, 4, 5, 2, 2, 4, 6, 2}));
  n_vocab_ = 7;
  expect_refusal(StatusCode::kCorruptData, "have 9 tokens, but the network 7");
}

TEST_F(EncoderFolderTokenizerTest, IdsByVocabulary) {
  const json ids = {{"</s>", 0u}, {"<unk>", 1u}, {"ab", 2u}, {kSpace, 3u}, {"elsewhere", 4u}, {">>fr<<", 5u}, {"a", 6u}, {"<pad>", 7u}};
  folder_.write("source.spm", sentence_pieces());
  folder_.write("sentencepiece.bpe.model", sentence_pieces(2));
  write("vocab.json", ids);
  tokenizer_class("MarianTokenizer");
  EXPECT_EQ(encode("ab b"), (Ids{3, 2, 3, 1, 0}));  // "b" is a piece, but has no id
  EXPECT_EQ(encode("elsewhere"), (Ids{3, 1, 0}));    // has an id, but is no piece
  EXPECT_EQ(encode(">>fr<<ab"), (Ids{5, 3, 2, 0}));
  EXPECT_EQ(create()->decode(Ids{3, 4, 3, 2, 0}), "elsewhere ab");
  settings_ = {{"additional_special_tokens", {"__en__", "__fr__"}}, {"src_lang", "en"}};
  tokenizer_class("M2M100Tokenizer");
  EXPECT_EQ(encode("ab"), (Ids{8, 3, 2, 0}));
  EXPECT_EQ(encode("__fr__ab", {false, true}), (Ids{9, 3, 2, 0}));
  json twice = ids;
  twice["b"] = 6u;
  write("vocab.json", twice);
  expect_refusal(StatusCode::kCorruptData, "vocab.json: 'b' is 6, which is that of 'a'");
  twice["b"] = 99u;
  write("vocab.json", twice);
  expect_refusal(StatusCode::kCorruptData, "'b' is no id below 20");
}

TEST_F(EncoderFolderTokenizerTest, SentencePieceFilesThatLie) {
  tokenizer_class("T5Tokenizer");
  const std::string whole = sentence_pieces();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "has no pieces"},
      {bytes(1, bytes(1, "")), "a piece at index 0 is empty"},
      {std::string("\x0a\x7f", 2), "has a field of 127 bytes, but only 0 follow"},
      {std::string(12, '\xff'), "ends within a number"},
      {number(1, 3), "has field 1 of wire type 0, expected 2"},
      {whole + bytes(2, number(42, 7)), "names piece 7, but has 7"},
      {whole + bytes(1, bytes(1, "x") + number(3, 9)), "has type 9"},
      {whole + std::string("\x0b", 1), "of wire type 3"},
      {whole + bytes(2, number(40, 0xffffffffffffffff)), "has no unknown piece"},
  };
  for (const auto& [file, message] : cases) {
    folder_.write("spiece.model", file);
    expect_refusal(StatusCode::kCorruptData, message);
  }
  folder_.write("spiece.model", whole + bytes(2, number(3, 4)));
  expect_refusal(StatusCode::kUnsupported, "'trainer_spec.model_type' is 4");
  folder_.write("spiece.model", whole + bytes(2, number(24, 1)));
  expect_refusal(StatusCode::kUnsupported, "'trainer_spec.treat_whitespace_as_suffix' is true");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    folder_.write("spiece.model", whole.substr(0, size));
    const Status status = create().status();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace rondo::models::encoder_folder_tokenizer_test
