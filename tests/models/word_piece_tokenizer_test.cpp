// WordPiece: files of llama.cpp's, whose published texts become its tokens, and the keys that folders have.
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rondo/tokenizer.h>

#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/small_tokenizer.h"
#include "tests/support/test_data.h"

namespace rondo::word_piece_tokenizer_test {
namespace {

using rondo::testing::create_tokenizer;
using rondo::testing::encode;
using rondo::testing::GgufWriter;
using rondo::testing::HostileTokenizer;
using rondo::testing::Ids;
using rondo::testing::joined;
using rondo::testing::kControl;

const std::string kBegin = "\xe2\x96\x81";

struct Vocabulary : rondo::testing::SmallVocabulary {
  explicit Vocabulary(const std::vector<std::string>& words) {
    for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) add(special, kControl);
    for (const std::string& word : words) add(word);
  }
  GgufWriter writer(std::uint32_t cls = 2) const {
    GgufWriter out;
    out.string("tokenizer.ggml.model", "bert").strings("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
    out.u32("tokenizer.ggml.unknown_token_id", 1).u32("tokenizer.ggml.cls_token_id", cls).u32("tokenizer.ggml.seperator_token_id", 3);
    return out;
  }
};

Vocabulary as_llama() { return Vocabulary({kBegin + "un", "aff", "able", kBegin + "a", "a", kBegin + "\xe4\xb8\xad", kBegin + ",", kBegin + "\u1112"}); }
Vocabulary as_folder() { return Vocabulary({"un", "##aff", "##able", "a", "##a", "\xe4\xb8\xad", ",", "\u1112\u1161\u11ab", "i\u0307", "A", "\u00e9"}); }

GgufWriter folder_writer(const Vocabulary& vocabulary) {
  GgufWriter out = vocabulary.writer();
  out.string("rondo.continuation", "##").u32("rondo.max_word_characters", 100);
  return out;
}

TEST(WordPieceTokenizerTest, PublishedTexts) {
  RONDO_REQUIRE_TEST_DATA();
  const std::string path = rondo::testing::test_data_path("vocab/ggml-vocab-bert-bge.gguf");
  const Result<Tokenizer> tokenizer = Tokenizer::create(open_file(path).value());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::vector<std::string> texts = rondo::testing::split(rondo::testing::read_whole_file(path + ".inp"), "\n__ggml_vocab_test__\n");
  const std::vector<std::string> lines = rondo::testing::split(rondo::testing::read_whole_file(path + ".out"), "\n");
  ASSERT_EQ(texts.size(), lines.size());
  std::size_t n_ids = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Ids expected;
    std::istringstream line(lines[i]);
    for (std::int32_t id = 0; line >> id;) expected.push_back(id);
    n_ids += expected.size();
    EXPECT_EQ(tokenizer->encode(texts[i], {false, false, false}), expected) << texts[i];
    expected.insert(expected.begin(), 101);
    EXPECT_EQ(tokenizer->encode(texts[i], {true, false, false}), expected);
    expected.push_back(102);
    EXPECT_EQ(tokenizer->encode(texts[i]), expected);
  }
  EXPECT_GT(n_ids, 300U);
}

TEST(WordPieceTokenizerTest, TakesTheLongestTokens) {
  const Tokenizer tokenizer = create_tokenizer(as_llama().writer());
  const auto words = [&](const std::string& text) { return joined(tokenizer, tokenizer.encode(text, {false, false, false})); };
  EXPECT_EQ(words("Unaffable"), "[" + kBegin + "un][aff][able]");
  EXPECT_EQ(words(" \u00c0\t\u00e0"), "[" + kBegin + "a][" + kBegin + "a]");
  EXPECT_EQ(words("a,\xe4\xb8\xad" "a\u200b"), "[" + kBegin + "a][" + kBegin + ",][" + kBegin + "\xe4\xb8\xad][" + kBegin + "a]");
  EXPECT_EQ(words("unaffx a"), "[[UNK]][" + kBegin + "a]");
  EXPECT_EQ(words("\ud55c"), "[" + kBegin + "\u1112]");  // the syllable's first part is all that stays
  EXPECT_EQ(words("\u0301\u093e \x01\xef\xbf\xbd"), "");
  EXPECT_EQ(words("[SEP]"), "[[UNK]][[UNK]][[UNK]]");
  EXPECT_EQ(encode(tokenizer, "a[SEP]a", true), (Ids{7, 3, 7, 3}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("unaffable a,")), "unaffable a ,");
}

TEST(WordPieceTokenizerTest, FoldersAreAsHuggingFaceHasThem) {
  const Tokenizer tokenizer = create_tokenizer(folder_writer(as_folder()));
  const auto words = [&](const std::string& text) { return joined(tokenizer, tokenizer.encode(text, {false, false, false})); };
  EXPECT_EQ(words("Unaffable"), "[un][##aff][##able]");
  EXPECT_EQ(words("\u00c0\u0301a"), "[a][##a]");
  EXPECT_EQ(words("\ud55c"), "[\u1112\u1161\u11ab]");
  EXPECT_EQ(words("\u093e"), "[[UNK]]");  // a mark with a width of its own
  EXPECT_EQ(words("a\x0b" "a"), "[a][##a]");  // a control, before it is white space
  EXPECT_EQ(words("##aff"), "[[UNK]][[UNK]][[UNK]]");
  EXPECT_EQ(words(std::string(100, 'a')).size(), 3U + 99 * 5);
  EXPECT_EQ(words(std::string(101, 'a')), "[[UNK]]");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("unaffable a,")), "unaffable a ,");

  GgufWriter cased = folder_writer(as_folder());
  cased.boolean("tokenizer.ggml.normalizer.lowercase", false);
  const Tokenizer keeps_case = create_tokenizer(cased);
  EXPECT_EQ(joined(keeps_case, keeps_case.encode("A \u00e9 \u00c9", {false, false, false})), "[A][\u00e9][[UNK]]");
  GgufWriter accented = folder_writer(as_folder());
  accented.boolean("tokenizer.ggml.normalizer.strip_accents", false);
  const Tokenizer keeps_accents = create_tokenizer(accented);
  EXPECT_EQ(joined(keeps_accents, keeps_accents.encode("\u00c9 \u0130", {false, false, false})), "[\u00e9][i\u0307]");
}

TEST(WordPieceTokenizerTest, PairsOfTexts) {
  const Tokenizer tokenizer = create_tokenizer(as_llama().writer());
  const EncodedPair pair = tokenizer.encode_pair("a a", "un");
  EXPECT_EQ(pair.tokens, (Ids{2, 7, 7, 3, 4, 3}));
  EXPECT_EQ(pair.n_first, 4U);
  EXPECT_EQ(tokenizer.encode_pair("", "").tokens, (Ids{2, 3, 3}));
  EXPECT_EQ(tokenizer.encode_pair("a", "a", {false, false, false}).tokens, (Ids{7, 7}));
  GgufWriter other = as_llama().writer();
  other.i32s("rondo.tokens_before", {3, 2}).i32s("rondo.tokens_between", {3, 3}).i32s("rondo.tokens_after", {0}).i32s("rondo.strips_left", {0}).i32s("rondo.strips_right", {1});
  const Tokenizer around = create_tokenizer(other);
  EXPECT_EQ(around.encode("a"), (Ids{3, 2, 7, 0}));
  EXPECT_EQ(around.encode_pair("a", "a").tokens, (Ids{3, 2, 7, 3, 3, 7, 0}));
}

TEST(WordPieceTokenizerTest, TimeIsLinear) {
  Vocabulary vocabulary = as_llama();
  for (std::size_t n = 2; n <= 512; n += 17) vocabulary.add(std::string(n, 'b'));
  for (const Tokenizer& tokenizer : {create_tokenizer(vocabulary.writer()), create_tokenizer(folder_writer(vocabulary))}) {
    for (const std::string& text : {std::string(1 << 20, 'a'), std::string(1 << 20, 'b'), std::string(1 << 20, ' '), std::string(1 << 20, ',')}) {
      const rondo::testing::CpuTimer timer;
      (void)tokenizer.encode(text);
      EXPECT_LT(timer.seconds(), 2.0) << text[0];
    }
  }
}

class WordPieceHostileTest : public ::testing::TestWithParam<HostileTokenizer> {};
TEST_P(WordPieceHostileTest, IsRefused) { rondo::testing::expect_refused_in_one_line_and_quickly(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Keys, WordPieceHostileTest,
    ::testing::Values(HostileTokenizer{"Cls", [] { return as_llama().writer(12).build(); }, StatusCode::kCorruptData, "cls_token_id' is 12, expected a token id below 12"},
                      HostileTokenizer{"Separator",
                                       [] {
                                         GgufWriter out;
                                         out.string("tokenizer.ggml.model", "bert").strings("tokenizer.ggml.tokens", {"a", "b"}).u32("tokenizer.ggml.cls_token_id", 0);
                                         return out.build();
                                       },
                                       StatusCode::kCorruptData, "seperator_token_id' is 102, expected a token id below 2"},
                      HostileTokenizer{"LongToken", [] { return Vocabulary({std::string(513, 'x')}).writer().build(); }, StatusCode::kUnsupported, "holds a token of 513 bytes at index 4"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(WordPieceTokenizerTest, DamagedFilesLoadOrNot) {
  EXPECT_GT(rondo::testing::n_damaged_that_load(as_llama().writer().build(), 3, 2000, "ua,\xe4\xb8\xad \xff"), 200U);
}

}  // namespace
}  // namespace rondo::word_piece_tokenizer_test
