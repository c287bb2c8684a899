// Byte-level BPE; tokenizer_test.cpp compares it with llama.cpp on GPT-2's vocabulary.
#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rondo/tokenizer.h>

#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/small_tokenizer.h"
#include "tests/support/test_data.h"

namespace rondo::bpe_test {
namespace {

using rondo::testing::create_tokenizer;
using rondo::testing::encode;
using rondo::testing::GgufWriter;
using rondo::testing::HostileTokenizer;
using rondo::testing::Ids;
using rondo::testing::joined;
using rondo::testing::kByte;
using rondo::testing::kControl;
using rondo::testing::kUnused;
using rondo::testing::kUserDefined;
using rondo::testing::source_of;
using Strings = std::vector<std::string>;

const std::string kSpace = "\xc4\xa0";    // the letter for a blank
const std::string kNewline = "\xc4\x8a";  // the letter for a line end

/// GPT-2's letter for a byte: the 188 that are visible in Latin-1 stand for themselves.
std::string letter(int byte) {
  int number = byte;
  if (byte <= 0x20) number = 0x100 + byte;
  if (byte >= 0x7f && byte <= 0xa0) number = 0x121 + (byte - 0x7f);
  if (byte == 0xad) number = 0x143;
  if (number < 0x80) return std::string(1, static_cast<char>(number));
  return {static_cast<char>(0xc0 | number >> 6), static_cast<char>(0x80 | (number & 0x3f))};
}

/// All bytes, "<end>" as control token 256, and whatever a test merges.
struct Vocabulary : rondo::testing::SmallVocabulary {
  Strings merges;
  std::string pre = "gpt-2";

  Vocabulary() {
    for (int byte = 0; byte < 256; ++byte) add(letter(byte));
    add("<end>", kControl);
  }
  /// Adds the token as well, unless it is there.
  void merge(const std::string& left, const std::string& right, bool token_is_new = true) {
    if (token_is_new) add(left + right);
    merges.push_back(left + " " + right);
  }
  GgufWriter writer() const {
    GgufWriter out;
    out.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", pre);
    out.strings("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
    out.strings("tokenizer.ggml.merges", merges);
    out.u32("tokenizer.ggml.bos_token_id", 256).u32("tokenizer.ggml.eos_token_id", 256);
    return out;
  }
};

TEST(BpeTest, MergesByRankAndTheLeftmostOfEquals) {
  Vocabulary vocabulary;
  vocabulary.merge("b", "c");
  vocabulary.merge("a", "b");
  vocabulary.merge("a", "bc");
  vocabulary.merge("a", "a");
  vocabulary.merge("ab", "a");
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abc")), "[abc]");  // bc is merged first, then a + bc
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "aaa")), "[aa][a]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "aaaab")), "[aa][a][ab]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abaab")), "[aba][ab]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "ab ab")), "[ab][" + kSpace + "][ab]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abcbc")), "[abc][bc]");
}

TEST(BpeTest, MergesDoNotCrossPieces) {
  Vocabulary vocabulary;
  vocabulary.merge("a", kSpace);
  vocabulary.merge(kSpace, "a");
  vocabulary.merge("1", "2");
  vocabulary.merge(kNewline, kNewline);
  vocabulary.pre = "qwen2";
  const Tokenizer qwen = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(joined(qwen, encode(qwen, "a a12\n\na")), "[a][" + kSpace + "a][1][2][" + kNewline + kNewline + "][a]");
  vocabulary.pre = "gpt-2";
  const Tokenizer gpt2 = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(joined(gpt2, encode(gpt2, "a a12")), "[a][" + kSpace + "a][12]");
  EXPECT_EQ(joined(gpt2, encode(gpt2, "\n\na")), "[" + kNewline + "][" + kNewline + "][a]");
}

TEST(BpeTest, TakesWholeTokensFirstOnlyForSome) {
  Vocabulary vocabulary;
  vocabulary.merge("a", "b");
  vocabulary.add("abc");                 // no merges lead to it
  vocabulary.add(letter(0xc3) + letter(0xa9) + "x");
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "smaug-bpe"}) {
    vocabulary.pre = pre;
    const Tokenizer tokenizer = create_tokenizer(vocabulary.writer());
    EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abc")), "[ab][c]") << pre;
  }
  vocabulary.pre = "llama-bpe";
  const Tokenizer llama = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(joined(llama, encode(llama, "abc")), "[abc]");
  EXPECT_EQ(joined(llama, encode(llama, "abcd")), "[ab][c][d]");
  EXPECT_EQ(encode(llama, "\xc3\xa9x"), Ids{259});
}

TEST(BpeTest, AddsBosAsTheFileOrThePreTokenizerSays) {
  Vocabulary vocabulary;
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe"}) {
    vocabulary.pre = pre;
    const Tokenizer absent = create_tokenizer(vocabulary.writer());
    EXPECT_EQ(absent.encode("a"), pre == std::string("llama-bpe") ? (Ids{256, 'a'}) : Ids{'a'}) << pre;
    EXPECT_FALSE(absent.add_space_prefix());
    const Tokenizer on = create_tokenizer(vocabulary.writer().boolean("tokenizer.ggml.add_bos_token", true));
    EXPECT_EQ(on.encode(""), Ids{256});
    EXPECT_EQ(on.encode("a", EncodeOptions{false, false}), Ids{'a'});
    const Tokenizer off = create_tokenizer(vocabulary.writer().boolean("tokenizer.ggml.add_bos_token", false));
    EXPECT_EQ(off.encode("a"), Ids{'a'});
  }
  // No space is put anywhere, whatever the file says.
  const Tokenizer space = create_tokenizer(vocabulary.writer().boolean("tokenizer.ggml.add_space_prefix", true));
  EXPECT_EQ(encode(space, "a"), Ids{'a'});
  EXPECT_EQ(space.decode(Ids{' ', 'a'}), " a");
}

TEST(BpeTest, IdsThatTheFileDoesNotNameAreNotThere) {
  Vocabulary vocabulary;
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "llama-bpe");
  writer.strings("tokenizer.ggml.tokens", vocabulary.tokens).strings("tokenizer.ggml.merges", {});
  writer.u32("tokenizer.ggml.eot_token_id", 256);
  const Tokenizer tokenizer = create_tokenizer(writer);
  EXPECT_EQ(tokenizer.bos(), -1);
  EXPECT_EQ(tokenizer.eos(), -1);
  EXPECT_EQ(Ids(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end()), Ids{256});
  EXPECT_EQ(tokenizer.encode("a"), Ids{'a'});
  EXPECT_EQ(tokenizer.piece(256), "");  // without types too, what ends a turn is a control token
  EXPECT_EQ(tokenizer.decode(Ids{-1, 'a', 257}), "a");
}

TEST(BpeTest, FindsSpecialTokensBeforeSplitting) {
  Vocabulary vocabulary;
  vocabulary.merge("a", "<");
  const std::int32_t tool = vocabulary.add("<tool call>", kUserDefined);
  vocabulary.add("xyz", kUnused);
  vocabulary.add("<0x61>", kByte);
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(encode(tokenizer, "a<tool call>b"), (Ids{'a', tool, 'b'}));
  EXPECT_EQ(encode(tokenizer, "a<end>b", true), (Ids{'a', 256, 'b'}));
  EXPECT_EQ(encode(tokenizer, "a<end>"), (Ids{'a', '<', 'e', 'n', 'd', '>'}));
  EXPECT_EQ(tokenizer.decode(encode(tokenizer, "a<tool call> b")), "a<tool call> b");
  EXPECT_EQ(tokenizer.decode(encode(tokenizer, "a<end>b")), "a<end>b");
  EXPECT_EQ(tokenizer.decode(Ids{256, tool + 1, tool + 2}), "");
  EXPECT_EQ(tokenizer.piece(' '), " ");
  EXPECT_EQ(tokenizer.spelling(' '), kSpace);
  vocabulary.pre = "llama-bpe";
  const Tokenizer llama = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(encode(llama, "xyz"), (Ids{'x', 'y', 'z'}));
}

TEST(BpeTest, UserDefinedTokensAreTextAndNotLettersOfBytes) {
  Vocabulary vocabulary;
  const std::int32_t e_acute = vocabulary.add("\xc3\xa9", kUserDefined);
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(encode(tokenizer, "\xc3\xa9"), Ids{e_acute});
  EXPECT_EQ(encode(tokenizer, "\xe9"), Ids{0xe9});
  EXPECT_EQ(tokenizer.decode(Ids{e_acute, 0xe9}), "\xc3\xa9\xe9");
}

TEST(BpeTest, AnyBytesComeBack) {
  Vocabulary vocabulary;
  vocabulary.merge(letter(0xc3), letter(0xa9));
  vocabulary.merge(letter(0xff), letter(0xff));
  vocabulary.merge(kSpace, letter(0xff));
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::mt19937 random(20260105);
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    vocabulary.pre = pre;
    const Tokenizer tokenizer = create_tokenizer(vocabulary.writer());
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, all)), all);
    EXPECT_EQ(encode(tokenizer, std::string(1, '\0')), Ids{0});
    EXPECT_EQ(encode(tokenizer, "\xc3\xa9\xff\xff"), (Ids{257, 258}));
    for (int i = 0; i < 500; ++i) {
      std::string text;
      for (std::size_t n = random() % 50; n > 0; --n) text += static_cast<char>(random());
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    }
  }
  // Bytes without a token are left out.
  vocabulary.tokens['b'] = "bb";
  const Tokenizer lacking = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(encode(lacking, "abcb"), (Ids{'a', 'c'}));
}

TEST(BpeTest, LongTextsTakeTimeInProportion) {
  RONDO_REQUIRE_TEST_DATA();
  Result<ByteSource> source = open_file(rondo::testing::test_data_path("vocab/ggml-vocab-gpt-2.gguf"));
  ASSERT_TRUE(source.ok());
  Result<Tokenizer> tokenizer = Tokenizer::create(*source);
  ASSERT_TRUE(tokenizer.ok());
  constexpr std::size_t kSize = 1 << 20;
  std::string prose;
  while (prose.size() < kSize) prose += "In the beginning God created the heaven and the earth. 1:1 \xe6\x88\x91\n";
  for (const std::string& text :
       {prose, std::string(kSize, 'a'), std::string(kSize, ' '), std::string(kSize, '\xff')}) {
    const rondo::testing::CpuTimer timer;
    const Ids ids = encode(*tokenizer, text);
    const double seconds = timer.seconds();
    EXPECT_LT(seconds, 4.0);
    EXPECT_TRUE(tokenizer->decode(ids) == text);
  }
}

class BpeHostileTest : public ::testing::TestWithParam<HostileTokenizer> {};

TEST_P(BpeHostileTest, IsRefusedInOneLineAndQuickly) {
  rondo::testing::expect_refused_in_one_line_and_quickly(GetParam());
}

/// The file of a good vocabulary after `change`.
std::function<std::string()> with(std::function<void(Vocabulary&)> change) {
  return [change = std::move(change)] {
    Vocabulary vocabulary;
    vocabulary.merge("a", "b");
    change(vocabulary);
    return vocabulary.writer().build();
  };
}

/// The file with the first `n_keys` of model, pre, tokens and merges.
std::function<std::string()> with_keys(int n_keys) {
  return [n_keys] {
    const Vocabulary vocabulary;
    GgufWriter writer;
    writer.string("tokenizer.ggml.model", "gpt2");
    if (n_keys > 1) writer.string("tokenizer.ggml.pre", "gpt-2");
    if (n_keys > 2) writer.strings("tokenizer.ggml.tokens", vocabulary.tokens);
    if (n_keys > 3) writer.i32s("tokenizer.ggml.merges", {1, 2});
    return writer.build();
  };
}

std::function<std::string()> with_merge(const std::string& merge) {
  return with([merge](Vocabulary& v) { v.merges.push_back(merge); });
}

std::vector<HostileTokenizer> hostile_cases() {
  constexpr StatusCode kCorrupt = StatusCode::kCorruptData;
  const std::string no_space = "at index 1, expected two tokens and a space";
  return {
      {"no_pre", with_keys(1), StatusCode::kNotFound, "'tokenizer.ggml.pre' is missing"},
      {"no_tokens", with_keys(2), StatusCode::kNotFound, "'tokenizer.ggml.tokens' is missing"},
      {"no_merges", with_keys(3), StatusCode::kNotFound, "'tokenizer.ggml.merges' is missing"},
      {"merges_type", with_keys(4), kCorrupt, "'tokenizer.ggml.merges'"},
      {"pre", with([](Vocabulary& v) { v.pre = "tek\nken"; }), StatusCode::kUnsupported,
       "'tokenizer.ggml.pre' is 'tek\\x0aken': this pre-tokenizer is not there yet, expected one of default, gpt-2, phi-2"},
      {"pre_of_other_tokens", with([](Vocabulary& v) { v.pre = "gemma4"; }), StatusCode::kUnsupported, "'gemma4'"},
      {"pre_empty", with([](Vocabulary& v) { v.pre = ""; }), StatusCode::kUnsupported, "is ''"},
      {"empty", with([](Vocabulary& v) { v.tokens.clear(); }), kCorrupt, "'tokenizer.ggml.tokens' is empty"},
      {"types_short", with([](Vocabulary& v) { v.types.pop_back(); }), kCorrupt, "holds 257 types"},
      {"token_not_of_letters", with([](Vocabulary& v) { v.add("a b"); }), kCorrupt, "holds 'a b' at index 258"},
      {"token_beyond_letters", with([](Vocabulary& v) { v.add("\xc5\x84"); }), kCorrupt, "at index 258"},
      {"token_of_another_script", with([](Vocabulary& v) { v.add("\xe6\x88\x91"); }), kCorrupt, "at index 258"},
      {"token_not_utf8", with([](Vocabulary& v) { v.add("a\xc3"); }), kCorrupt, "at index 258"},
      {"token_overlong", with([](Vocabulary& v) { v.add("\xc1\xa1"); }), kCorrupt, "at index 258"},
      {"merge_without_space", with_merge("ab"), kCorrupt, "holds 'ab' " + no_space},
      {"merge_empty", with_merge(""), kCorrupt, "holds '' " + no_space},
      {"merge_of_a_space", with_merge(" "), kCorrupt, no_space},
      {"merge_without_left", with_merge(" a"), kCorrupt, no_space},
      {"merge_without_right", with_merge("a "), kCorrupt, no_space},
      {"merge_of_three", with_merge("a b c"), kCorrupt, "'b c' is no normal or user-defined token"},
      {"merge_left_missing", with_merge("zz b"), kCorrupt, "holds 'zz b' at index 1, but 'zz' is no"},
      {"merge_right_missing", with_merge("a zz"), kCorrupt, "but 'zz' is no"},
      {"merge_result_missing", with_merge("a c"), kCorrupt, "but 'ac' is no"},
      {"merge_into_control", with_merge("<end >"), kCorrupt, "but '<end' is no"},
      {"merge_of_control", with([](Vocabulary& v) { v.merge("<end>", "a"); }), kCorrupt, "but '<end>' is no"},
      {"merge_twice", with_merge("a b"), kCorrupt, "holds 'a b' at index 0 and again at 1"},
      {"merge_long", with_merge(std::string(1 << 20, 'x') + " " + std::string(1 << 20, 'y')), kCorrupt, "..."},
      {"merges_many", with([](Vocabulary& v) { v.merges.assign((1 << 21) + 1, ""); }), StatusCode::kUnsupported,
       "holds 2097153 merges, expected at most 2097152"},
      {"merges_many_alike", with([](Vocabulary& v) { v.merges.assign(1 << 20, "a b"); }), kCorrupt, "again at 1"},
      {"bos", [] { return Vocabulary().writer().u32("tokenizer.ggml.eot_token_id", 257).build(); }, kCorrupt,
       "'tokenizer.ggml.eot_token_id' is 257"},
      {"add_bos_type", [] { return Vocabulary().writer().u32("tokenizer.ggml.add_bos_token", 1).build(); }, kCorrupt,
       "expected a bool"},
  };
}

INSTANTIATE_TEST_SUITE_P(Cases, BpeHostileTest, ::testing::ValuesIn(hostile_cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(BpeTest, SurvivesRandomDamage) {
  Vocabulary vocabulary;
  vocabulary.pre = "llama-bpe";
  for (const char* token : {"ab", "aba"}) vocabulary.add(token, kUserDefined);
  vocabulary.merge("a", "b", false);
  vocabulary.merge("b", "a");
  vocabulary.merge("ab", "ba");
  EXPECT_GE(testing::n_damaged_that_load(vocabulary.writer().build(), 20260106, 3000, "ab \xc3\xa9<\n1"), 300U);
}

}  // namespace
}  // namespace rondo::bpe_test
