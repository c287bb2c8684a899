#include <rondo/tokenizer.h>

#include <functional>
#include <limits>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/small_tokenizer.h"
#include "tests/support/test_data.h"

namespace rondo::tokenizer_test {
namespace {

using rondo::testing::create_tokenizer;
using rondo::testing::encode;
using rondo::testing::GgufWriter;
using rondo::testing::HostileTokenizer;
using rondo::testing::Ids;
using rondo::testing::joined;
using rondo::testing::kByte;
using rondo::testing::kControl;
using rondo::testing::kNormal;
using rondo::testing::kUnknown;
using rondo::testing::kUnused;
using rondo::testing::kUserDefined;
using rondo::testing::source_of;

const std::string kSpace = "\xe2\x96\x81";

struct Vocabulary : rondo::testing::SmallVocabulary {
  GgufWriter writer(const std::string& kind = "llama") const {
    GgufWriter out;
    return write(out, kind);
  }
};

Vocabulary basic_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.add("<unk>", kUnknown);
  vocabulary.add("<s>", kControl);
  vocabulary.add("</s>", kControl);
  return vocabulary;
}

/// A vocabulary that llama.cpp publishes with texts and their ids.
struct PublishedVocabulary {
  const char* name;
  std::int32_t n_vocab, bos, eos;
  bool add_bos;
};

void PrintTo(const PublishedVocabulary& vocabulary, std::ostream* out) { *out << vocabulary.name; }

class TokenizerPublishedTest : public ::testing::TestWithParam<PublishedVocabulary> {};

TEST_P(TokenizerPublishedTest, EncodesLikeLlamaCpp) {
  RONDO_REQUIRE_TEST_DATA();
  const std::string path = rondo::testing::test_data_path(std::string("vocab/ggml-vocab-") + GetParam().name + ".gguf");
  Result<ByteSource> source = open_file(path);
  ASSERT_TRUE(source.ok()) << source.status().message();
  Result<Tokenizer> tokenizer = Tokenizer::create(*source);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->n_vocab(), GetParam().n_vocab);
  EXPECT_EQ(tokenizer->bos(), GetParam().bos);
  EXPECT_EQ(tokenizer->eos(), GetParam().eos);

  std::vector<std::string> texts =
      rondo::testing::split(rondo::testing::read_whole_file(path + ".inp"), "\n__ggml_vocab_test__\n");
  std::vector<std::string> lines = rondo::testing::split(rondo::testing::read_whole_file(path + ".out"), "\n");
  ASSERT_EQ(texts.size(), lines.size());
  ASSERT_GT(texts.size(), 40U);
  std::size_t n_ids = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Ids expected;
    std::istringstream line(lines[i]);
    for (std::int32_t id = 0; line >> id;) expected.push_back(id);
    n_ids += expected.size();
    const Ids ids = encode(*tokenizer, texts[i]);
    EXPECT_EQ(ids, expected) << texts[i];
    EXPECT_EQ(tokenizer->decode(ids), texts[i]);
    const Ids with_bos = tokenizer->encode(texts[i]);
    EXPECT_EQ(tokenizer->decode(with_bos), texts[i]);
    if (GetParam().add_bos) expected.insert(expected.begin(), GetParam().bos);
    EXPECT_EQ(with_bos, expected);
  }
  EXPECT_GT(n_ids, 400U);
}

INSTANTIATE_TEST_SUITE_P(LlamaCpp, TokenizerPublishedTest,
                         ::testing::Values(PublishedVocabulary{"llama-spm", 32000, 1, 2, true},
                                           PublishedVocabulary{"gpt-2", 50257, 50256, 50256, false},
                                           PublishedVocabulary{"deepseek-llm", 102400, 100000, 100001, true}),
                         [](const auto& param_info) {
                           return std::string(param_info.index == 0 ? "Spm" : param_info.index == 1 ? "Gpt2" : "DeepSeek");
                         });

TEST(TokenizerTest, EncodesAMegabyteInAboutASecond) {
  RONDO_REQUIRE_TEST_DATA();
  Result<ByteSource> source = open_file(rondo::testing::test_data_path("vocab/ggml-vocab-llama-spm.gguf"));
  ASSERT_TRUE(source.ok());
  Result<Tokenizer> tokenizer = Tokenizer::create(*source);
  ASSERT_TRUE(tokenizer.ok());
  std::string prose;
  while (prose.size() < (1U << 20))
    prose += "In the beginning God created the heaven and the earth. 1:1 \xe6\x88\x91\n";
  for (const std::string& text : {prose, std::string(1 << 20, 'a'), std::string(1 << 20, ' ')}) {
    const rondo::testing::CpuTimer timer;
    const Ids ids = encode(*tokenizer, text);
    const double seconds = timer.seconds();
    EXPECT_LT(seconds, 4.0);
    EXPECT_TRUE(tokenizer->decode(ids) == text);
  }
}

TEST(TokenizerTest, ReadsTheDemoModel) {
  Result<ByteSource> source = open_file(RONDO_DEMO_MODEL);
  ASSERT_TRUE(source.ok()) << source.status().message();
  Result<Tokenizer> tokenizer = Tokenizer::create(*source);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(tokenizer->n_vocab(), 1024);
  const Ids ids = tokenizer->encode("In the beginning");
  EXPECT_EQ(ids[0], tokenizer->bos());
  EXPECT_EQ(tokenizer->decode(ids), "In the beginning");
  EXPECT_EQ(encode(*tokenizer, "\n"), Ids{3});
}

TEST(TokenizerTest, MergesTheBestPairFirstAndTheLeftmostOfEquals) {
  Vocabulary vocabulary = basic_vocabulary();
  for (const char* character : {"a", "b", "c"}) vocabulary.add(character, kNormal, -9);
  vocabulary.add(kSpace, kNormal, -9);
  vocabulary.add("ab", kNormal, -3);
  vocabulary.add("bc", kNormal, -2);
  vocabulary.add("aa", kNormal, -1);
  vocabulary.add("abc", kNormal, -4);
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer().boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abc")), "[abc]");  // bc, then a + bc
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "aaa")), "[aa][a]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "aab")), "[aa][b]");
  EXPECT_NE(joined(tokenizer, encode(tokenizer, "aab")), "[a][ab]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "a b")), "[a][" + kSpace + "][b]");
  EXPECT_FALSE(tokenizer.add_space_prefix());
}

TEST(TokenizerTest, AddsBosAndSpaceAsTheFileSays) {
  Vocabulary vocabulary = basic_vocabulary();
  const std::int32_t space = vocabulary.add(kSpace);
  const std::int32_t a = vocabulary.add("a");
  const Tokenizer absent = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(absent.encode("a"), (Ids{1, space, a}));
  EXPECT_EQ(absent.encode(""), Ids{1});
  EXPECT_EQ(encode(absent, ""), Ids{});
  EXPECT_EQ(absent.decode(Ids{1, space, a}), "a");
  EXPECT_EQ(absent.decode(Ids{space, space, a}), " a");
  EXPECT_EQ(absent.piece(space), " ");
  EXPECT_TRUE(absent.add_space_prefix());
  const Tokenizer off = create_tokenizer(vocabulary.writer()
                                                   .boolean("tokenizer.ggml.add_bos_token", false)
                                                   .boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(off.encode("a"), Ids{a});
  EXPECT_EQ(off.decode(Ids{space, a}), " a");
}

TEST(TokenizerTest, FallsBackToBytesAndThenToUnknown) {
  Vocabulary vocabulary = basic_vocabulary();
  vocabulary.add("a");
  vocabulary.add(kSpace);
  const Tokenizer without = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(joined(without, encode(without, "a\xc3\xa9")), "[" + kSpace + "][a][<unk>]");
  vocabulary.add_bytes();
  const Tokenizer with = create_tokenizer(vocabulary.writer());
  EXPECT_EQ(joined(with, encode(with, "a\xc3\xa9")), "[" + kSpace + "][a][<0xC3>][<0xA9>]");
  for (const std::string text :
       {"a\xc3\xa9", "\xff\xfe", "\xe2\x96", "\xc3\x61", "\xf0\x9f\xa6\x99", "<0x41>", "</s>"}) {
    EXPECT_EQ(with.decode(encode(with, text)), text);
  }
  EXPECT_EQ(joined(with, encode(with, "\xe2\x61")), "[" + kSpace + "][<0xE2>][a]");
}

TEST(TokenizerTest, FindsSpecialTokens) {
  Vocabulary vocabulary = basic_vocabulary();
  vocabulary.add(kSpace);
  vocabulary.add_bytes();
  vocabulary.add("<tool>", kUserDefined);
  vocabulary.add("<tool><end>", kUserDefined);
  vocabulary.add("end>x", kUserDefined);
  vocabulary.add("", kUserDefined);
  for (const char c : std::string("abx")) vocabulary.add(std::string(1, c));
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer());
  const std::string s = "[" + kSpace + "]";
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "a<tool>b")), s + "[a][<tool>][b]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "<tool><tool>")), "[<tool>][<tool>]");
  // The longest wins over what begins further left or right within it.
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "<tool><end>x")), "[<tool><end>][x]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "end>x")), "[end>x]");
  // Control and unknown tokens only where asked for.
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "a</s>b<unk>", true)), s + "[a][</s>]" + s + "[b][<unk>]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "a</s>b")), s + "[a][<0x3C>][<0x2F>][<0x73>][<0x3E>][b]");
  EXPECT_EQ(tokenizer.decode(encode(tokenizer, "</s>a", true)), "a");
  EXPECT_EQ(tokenizer.decode(encode(tokenizer, "<tool>")), "<tool>");
}

TEST(TokenizerTest, ALongTokenWinsOverAnEarlierShortOne) {
  Vocabulary vocabulary = basic_vocabulary();
  for (const char* token : {"ab", "bcd", "a", "de"}) vocabulary.add(token, kUserDefined);
  vocabulary.add_bytes();
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer().boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abcde")), "[a][bcd][<0x65>]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abde")), "[ab][de]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "abababcd")), "[ab][ab][a][bcd]");
}

TEST(TokenizerTest, TextNeverMergesIntoControlOrByteTokens) {
  Vocabulary vocabulary = basic_vocabulary();
  for (const char* token : {"<", "/", "s", ">", "0", "x", "A", "</", "s>", "<0", "<0x", "<0xA", "<0xA0", "u"}) {
    vocabulary.add(token);
  }
  vocabulary.add("xu", kUnused);
  vocabulary.add_bytes();
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer().boolean("tokenizer.ggml.add_space_prefix", false));
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "</s>")), "[</][s>]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "<0xA0>")), "[<0xA0][>]");
  EXPECT_EQ(joined(tokenizer, encode(tokenizer, "xu")), "[x][u]");
}

TEST(TokenizerTest, StopIdsAndIdsThatAreNotThere) {
  Vocabulary vocabulary = basic_vocabulary();
  vocabulary.add("<eot>", kControl);
  const Tokenizer tokenizer = create_tokenizer(vocabulary.writer()
                                                         .u32("tokenizer.ggml.eot_token_id", 3)
                                                         .u32("tokenizer.ggml.eom_token_id", 3)
                                                         .u32("tokenizer.ggml.bos_token_id", 0xffffffff));
  EXPECT_EQ(tokenizer.bos(), -1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_EQ(Ids(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end()), (Ids{2, 3}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{-1, 4, 1 << 30, std::numeric_limits<std::int32_t>::min()}), "");
  EXPECT_EQ(tokenizer.piece(-1), "");
  EXPECT_EQ(tokenizer.spelling(4), "");
  EXPECT_EQ(tokenizer.spelling(2), "</s>");
}

TEST(TokenizerTest, FilesWithoutTypesAreUnderstoodByTheirSpellings) {
  Vocabulary vocabulary = basic_vocabulary();
  vocabulary.add(kSpace);
  vocabulary.add_bytes();
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.f32s("tokenizer.ggml.scores", vocabulary.scores);
  const Tokenizer tokenizer = create_tokenizer(writer);
  EXPECT_EQ(joined(tokenizer, tokenizer.encode("\n")), "[<s>][" + kSpace + "][<0x0A>]");
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("\n")), "\n");
}

class TokenizerHostileTest : public ::testing::TestWithParam<HostileTokenizer> {};

TEST_P(TokenizerHostileTest, IsRefusedInOneLineAndQuickly) {
  rondo::testing::expect_refused_in_one_line_and_quickly(GetParam());
}

std::string with_vocabulary(std::function<void(Vocabulary&)> change) {
  Vocabulary vocabulary = basic_vocabulary();
  change(vocabulary);
  return vocabulary.writer().build();
}

std::vector<HostileTokenizer> hostile_cases() {
  constexpr StatusCode kCorrupt = StatusCode::kCorruptData;
  constexpr StatusCode kUnsupported = StatusCode::kUnsupported;
  const auto with_id = [](const std::string& key, std::uint32_t id) {
    return [=] { return basic_vocabulary().writer().u32("tokenizer.ggml." + key, id).build(); };
  };
  return {
      {"no_kind", [] { return GgufWriter().build(); }, StatusCode::kNotFound, "'tokenizer.ggml.model' is missing"},
      {"kind", [] { return basic_vocabulary().writer("rwkv").build(); }, kUnsupported,
       "'rwkv': this kind of tokenizer is not there yet, expected 'llama', 'gpt2', 'bert' or 't5'"},
      {"kind_type", [] { return GgufWriter().u32("tokenizer.ggml.model", 1).build(); }, kCorrupt, "expected a string"},
      {"no_tokens", [] { return GgufWriter().string("tokenizer.ggml.model", "llama").build(); }, StatusCode::kNotFound,
       "'tokenizer.ggml.tokens' is missing"},
      {"empty", [] { return Vocabulary().writer().build(); }, kCorrupt, "is empty"},
      {"scores_short", [] { return with_vocabulary([](Vocabulary& v) { v.scores.pop_back(); }); }, kCorrupt,
       "holds 2 scores"},
      {"scores_nan",
       [] { return with_vocabulary([](Vocabulary& v) { v.scores[1] = std::numeric_limits<float>::quiet_NaN(); }); },
       kCorrupt, "NaN at index 1"},
      {"types_long", [] { return with_vocabulary([](Vocabulary& v) { v.types.push_back(1); }); }, kCorrupt,
       "holds 4 types"},
      {"type_value", [] { return with_vocabulary([](Vocabulary& v) { v.types[2] = 7; }); }, kCorrupt, "7 at index 2"},
      {"type_negative", [] { return with_vocabulary([](Vocabulary& v) { v.types[2] = -1; }); }, kCorrupt,
       "-1 at index 2"},
      {"byte_name", [] { return with_vocabulary([](Vocabulary& v) { v.add("<0x-1>", kByte); }); }, kCorrupt,
       "'<0x-1>' at index 3"},
      {"byte_name_long", [] { return with_vocabulary([](Vocabulary& v) { v.add("<0x100>", kByte); }); }, kCorrupt,
       "'<0x100>'"},
      {"byte_name_sign", [] { return with_vocabulary([](Vocabulary& v) { v.add("<0x+1>", kByte); }); }, kCorrupt,
       "'<0x+1>'"},
      {"bos", with_id("bos_token_id", 3), kCorrupt, "is 3, expected a token id below 3"},
      {"eos", with_id("eos_token_id", 0x80000000), kCorrupt, "expected a token id below 3"},
      {"unknown", with_id("unknown_token_id", 0xfffffffe), kCorrupt, "expected a token id below 3"},
      {"eot", with_id("eot_token_id", 3), kCorrupt, "'tokenizer.ggml.eot_token_id' is 3"},
      {"eom", with_id("eom_token_id", 3), kCorrupt, "'tokenizer.ggml.eom_token_id' is 3"},
      {"bos_type", [] { return basic_vocabulary().writer().f32("tokenizer.ggml.bos_token_id", 1).build(); }, kCorrupt,
       "expected an unsigned integer"},
      {"add_bos_type", [] { return basic_vocabulary().writer().u32("tokenizer.ggml.add_bos_token", 1).build(); },
       kCorrupt, "expected a bool"},
      {"special_long",
       [] { return with_vocabulary([](Vocabulary& v) { v.add(std::string(2000, 'x'), kUserDefined); }); }, kCorrupt,
       "special token of 2000 bytes"},
      {"text_large", [] { return with_vocabulary([](Vocabulary& v) { v.add(std::string(33 << 20, 'x')); }); },
       kUnsupported, "in all, expected at most"},
  };
}

INSTANTIATE_TEST_SUITE_P(Cases, TokenizerHostileTest, ::testing::ValuesIn(hostile_cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(TokenizerTest, SurvivesRandomDamageAndRandomText) {
  Vocabulary vocabulary = basic_vocabulary();
  vocabulary.add(kSpace);
  vocabulary.add_bytes();
  for (const char* token : {"a", "b", "ab", "ba", "abab"}) vocabulary.add(token);
  for (const char* token : {"aba", "bb", "b"}) vocabulary.add(token, kUserDefined);
  EXPECT_GE(testing::n_damaged_that_load(vocabulary.writer().build(), 20260103, 5000, "ab \xe2\x96\x81<\n"), 501U);
}

}  // namespace
}  // namespace rondo::tokenizer_test
