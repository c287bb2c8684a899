// SentencePiece's unigram model: the search, how texts are seen, and keys that must be refused; compare_encoders.py compares with others.
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rondo/tokenizer.h>

#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/small_tokenizer.h"

namespace rondo::unigram_tokenizer_test {
namespace {

using rondo::testing::create_tokenizer;
using rondo::testing::GgufWriter;
using rondo::testing::HostileTokenizer;
using rondo::testing::Ids;
using rondo::testing::joined;
using rondo::testing::kByte;
using rondo::testing::kControl;
using rondo::testing::kUnknown;
using rondo::testing::kUnused;
using rondo::testing::kUserDefined;

const std::string kSpace = "\xe2\x96\x81";

struct Vocabulary : rondo::testing::SmallVocabulary {
  Vocabulary() {
    add("<pad>", kControl), add("</s>", kControl), add("<unk>", kUnknown);
    add(kSpace, 1, -3), add("a", 1, -4), add("b", 1, -4), add("ab", 1, -5), add("aba", 1, -6), add(kSpace + "a", 1, -5), add("c", kUnused, -1), add("<user>", kUserDefined, -20);
  }
  GgufWriter writer() const {
    GgufWriter out;
    write(out, "t5");
    return out;
  }
};

std::string pieces(const Tokenizer& tokenizer, const std::string& text) { return joined(tokenizer, tokenizer.encode(text, {false, false, false})); }

/// A map of 'A' to "a" and of '\t' to " ": three units of a trie and what it needs between them.
std::string small_charsmap() {
  // The root's offset is 256, so that a byte's unit is at 256 + byte; that of a value is at that xor its offset.
  std::vector<std::uint32_t> units(1024);
  units[0] = 256 << 10;
  const auto key = [&](unsigned char byte, std::uint32_t value, std::uint32_t where) {
    const std::uint32_t place = 256U ^ byte;
    units[place] = (place ^ where) << 10 | 1U << 8 | byte;
    units[where] = 1U << 31 | value;
  };
  key('A', 0, 700);
  key('\t', 2, 701);
  std::string out;
  const auto put = [&](std::uint32_t number) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
  };
  put(static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) put(unit);
  return out + std::string("a\0 \0", 4);
}

TEST(UnigramTokenizerTest, TakesTheBestSum) {
  const Tokenizer tokenizer = create_tokenizer(Vocabulary().writer());
  EXPECT_EQ(pieces(tokenizer, "ab"), "[ab]");
  EXPECT_EQ(pieces(tokenizer, "abab"), "[ab][ab]");  // -10 beside -6 - 4 of aba, b: of equals the first way found
  EXPECT_EQ(pieces(tokenizer, "ababa"), "[ab][aba]");
  EXPECT_EQ(pieces(tokenizer, "aXYb"), "[a][<unk>][b]");
  EXPECT_EQ(pieces(tokenizer, "c"), "[<unk>]");
  EXPECT_EQ(pieces(tokenizer, "a<user>b"), "[a][<user>][b]");
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{6, 1}));
  EXPECT_EQ(tokenizer.encode_pair("ab", "a").tokens, (Ids{6, 1, 4, 1}));
  EXPECT_EQ(tokenizer.encode("ab", {true, false, false}), (Ids{6}));
  EXPECT_EQ(tokenizer.encode("a</s>b", {true, true, false}), (Ids{4, 1, 5}));
}

TEST(UnigramTokenizerTest, SpacesAsLlamaCppHasThem) {
  const Tokenizer plain = create_tokenizer(Vocabulary().writer());
  EXPECT_EQ(pieces(plain, " a  b "), "[" + kSpace + "a][" + kSpace + "][" + kSpace + "][b][" + kSpace + "]");
  const Tokenizer merged = create_tokenizer(Vocabulary().writer().boolean("tokenizer.ggml.remove_extra_whitespaces", true).boolean("tokenizer.ggml.add_space_prefix", true));
  EXPECT_EQ(pieces(merged, " a  b "), "[" + kSpace + "a][" + kSpace + "][b]");
  EXPECT_EQ(merged.decode(merged.encode("a b")), "a b");
  EXPECT_TRUE(merged.add_space_prefix());
}

TEST(UnigramTokenizerTest, OtherSpaces) {
  const auto with = [](const char* spaces, const char* key) {
    GgufWriter out = Vocabulary().writer();
    out.string("rondo.spaces", spaces).boolean("tokenizer.ggml.add_space_prefix", true).string("rondo.charsmap", small_charsmap());
    if (key != nullptr) out.boolean(key, true);
    return create_tokenizer(out);
  };
  EXPECT_EQ(pieces(with("sentencepiece", nullptr), " A\tb "), "[" + kSpace + "][" + kSpace + "a][" + kSpace + "][b][" + kSpace + "]");
  EXPECT_EQ(pieces(with("sentencepiece", "tokenizer.ggml.remove_extra_whitespaces"), "  A\t b" + kSpace + " "), "[" + kSpace + "a][" + kSpace + "][b]");
  EXPECT_EQ(pieces(with("sentencepiece", nullptr), "a<user>a"), "[" + kSpace + "a][<user>][a]");
  EXPECT_EQ(pieces(with("sentencepiece", nullptr), "\xff"), "[" + kSpace + "][<unk>]");
  EXPECT_EQ(pieces(with("words", "rondo.splits_at_spaces"), " A\xc2\xa0 b "), "[" + kSpace + "a][" + kSpace + "][b]");
  EXPECT_EQ(pieces(with("metaspace", "tokenizer.ggml.remove_extra_whitespaces"), "a  b  "), "[" + kSpace + "a][" + kSpace + "][b][" + kSpace + "]");
  EXPECT_EQ(pieces(with("metaspace", "rondo.strip_end"), "a  b  "), "[" + kSpace + "a][" + kSpace + "][" + kSpace + "][b]");
}

TEST(UnigramTokenizerTest, UnknownCharactersInBytes) {
  Vocabulary vocabulary;
  vocabulary.add_bytes();
  EXPECT_EQ(pieces(create_tokenizer(vocabulary.writer()), "a\u00e9"), "[a][<unk>]");
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer().boolean("rondo.byte_fallback", true));
  EXPECT_EQ(pieces(tokenizer, "a\u00e9X"), "[a][<0xC3>][<0xA9>][<0x58>]");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\u00e9X")), "a\u00e9X");
}

/// A charsmap as GGUF files have it is an array of bytes.
TEST(UnigramTokenizerTest, CharsmapAsAnArray) {
  const std::string map = small_charsmap();
  GgufWriter out = Vocabulary().writer();
  rondo::testing::ByteWriter payload;
  payload.number(std::uint32_t{0}).string(map);  // the type of elements, their number, and they
  out.raw_key("tokenizer.ggml.precompiled_charsmap", 9, payload.bytes()).u32("tokenizer.ggml.padding_token_id", 0);
  EXPECT_EQ(pieces(create_tokenizer(out), "A\tA"), "[a][" + kSpace + "a]");
}

TEST(UnigramTokenizerTest, TimeIsLinear) {
  Vocabulary vocabulary;
  for (std::size_t n = 2; n <= 14; n += 3) vocabulary.add(std::string(n, 'd'), 1, -7);
  const Tokenizer llama = create_tokenizer(vocabulary.writer()),
                  words = create_tokenizer(vocabulary.writer().string("rondo.spaces", "words").boolean("rondo.splits_at_spaces", true).string("rondo.charsmap", small_charsmap())),
                  own = create_tokenizer(vocabulary.writer().string("rondo.spaces", "sentencepiece").boolean("tokenizer.ggml.remove_extra_whitespaces", true));
  for (const Tokenizer* tokenizer : {&llama, &words, &own}) {
    for (const char letter : {'a', 'X', ' ', 'd'}) {
      const rondo::testing::CpuTimer timer;
      (void)tokenizer->encode(std::string(1 << 20, letter));
      EXPECT_LT(timer.seconds(), 2.0) << letter;
    }
  }
}

class UnigramHostileTest : public ::testing::TestWithParam<HostileTokenizer> {};
TEST_P(UnigramHostileTest, IsRefused) {
  const Result<Tokenizer> tokenizer = [] {
    const std::string bytes = GetParam().build();
    return Tokenizer::create(rondo::testing::source_of(bytes));
  }();
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), GetParam().code);
  EXPECT_NE(tokenizer.status().message().find(GetParam().message), std::string::npos) << tokenizer.status().message();
  EXPECT_EQ(tokenizer.status().message().find('\n'), std::string::npos);
}

std::string with_charsmap(const std::string& map) { return Vocabulary().writer().string("rondo.charsmap", map).build(); }

INSTANTIATE_TEST_SUITE_P(
    Keys, UnigramHostileTest,
    ::testing::Values(
        HostileTokenizer{"CharsmapShort", [] { return with_charsmap("abc"); }, StatusCode::kCorruptData, "rondo.charsmap' has 3 bytes, of which the trie has 0"},
        HostileTokenizer{"CharsmapTrie", [] { return with_charsmap(std::string("\xff\xff\xff\x7f", 4) + "a"); }, StatusCode::kCorruptData, "of which the trie has 2147483647"},
        HostileTokenizer{"CharsmapOpen", [] { return with_charsmap(std::string("\4\0\0\0\0\0\0\0a", 9)); }, StatusCode::kCorruptData, "without its end"},
        HostileTokenizer{"Spaces", [] { return Vocabulary().writer().string("rondo.spaces", "many").build(); }, StatusCode::kCorruptData, "rondo.spaces' is 'many'"},
        HostileTokenizer{"CharsmapType", [] { return Vocabulary().writer().i32s("tokenizer.ggml.precompiled_charsmap", {1}).build(); }, StatusCode::kCorruptData, "expected an array of bytes"},
        HostileTokenizer{"NoScores", [] { return GgufWriter().string("tokenizer.ggml.model", "t5").strings("tokenizer.ggml.tokens", {"a"}).build(); }, StatusCode::kNotFound, "tokenizer.ggml.scores"},
        HostileTokenizer{"ScoreBits", [] { return Vocabulary().writer().i32s("rondo.score_bits", {1, 2}).build(); }, StatusCode::kCorruptData, "rondo.score_bits' holds 2 scores"},
        HostileTokenizer{"PieceIds", [] { return Vocabulary().writer().strings("rondo.pieces.tokens", {"a"}).i32s("rondo.pieces.score_bits", {0}).i32s("rondo.pieces.ids", {77}).build(); },
                         StatusCode::kCorruptData, "rondo.pieces.ids' holds 77"},
        HostileTokenizer{"Around", [] { return Vocabulary().writer().i32s("rondo.tokens_after", {99}).build(); }, StatusCode::kCorruptData, "rondo.tokens_after' holds 99"}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

/// Any trie and any text: no place outside of it is read.
TEST(UnigramTokenizerTest, DamagedFilesLoadOrNot) {
  GgufWriter out = Vocabulary().writer();
  out.string("rondo.spaces", "sentencepiece").string("rondo.charsmap", small_charsmap());
  EXPECT_GT(rondo::testing::n_damaged_that_load(out.build(), 5, 3000, "abA\t <user>\xff\xe2\x96\x81"), 300U);
}

}  // namespace
}  // namespace rondo::unigram_tokenizer_test
