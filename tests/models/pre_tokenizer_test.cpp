#include "models/tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace rondo::models {
namespace {

using Pieces = std::vector<std::string>;

PreTokenizer create(std::span<const std::string_view> patterns) {
  Result<PreTokenizer> created = PreTokenizer::create(patterns);
  EXPECT_TRUE(created.ok()) << created.status().message();
  return created.ok() ? std::move(*created) : PreTokenizer();
}

PreTokenizer named(std::string_view name) {
  for (const PreTokenizerKind& kind : pre_tokenizer_kinds()) {
    if (kind.name == name) return create(kind.patterns);
  }
  ADD_FAILURE() << name;
  return PreTokenizer();
}

Pieces split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  pre_tokenizer.split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

/// Pieces written down from the published expressions, in the order gpt-2, smollm, llama-bpe, qwen2.
struct SplitCase {
  const char* name;
  std::string text;
  Pieces gpt2, smollm, llama, qwen;
};

void PrintTo(const SplitCase& split_case, std::ostream* out) { *out << split_case.name; }

class PreTokenizerTest : public ::testing::TestWithParam<SplitCase> {};

TEST_P(PreTokenizerTest, SplitsAsPublished) {
  const SplitCase& expected = GetParam();
  EXPECT_EQ(split(named("gpt-2"), expected.text), expected.gpt2);
  EXPECT_EQ(split(named("smollm"), expected.text), expected.smollm);
  EXPECT_EQ(split(named("llama-bpe"), expected.text), expected.llama);
  EXPECT_EQ(split(named("qwen2"), expected.text), expected.qwen);
}

/// A case in which all four agree.
SplitCase alike(const char* name, std::string text, const Pieces& pieces) {
  return {name, std::move(text), pieces, pieces, pieces, pieces};
}

std::vector<SplitCase> split_cases() {
  return {
      alike("nothing", "", {}),
      alike("words", "Hello world again", {"Hello", " world", " again"}),
      alike("punctuation", "a, b!? (c)", {"a", ",", " b", "!?", " (", "c", ")"}),
      {"digits",
       "x12345 67y8",
       {"x", "12345", " 67", "y", "8"},
       {"x", "1", "2", "3", "4", "5", " ", "6", "7", "y", "8"},
       {"x", "123", "45", " ", "67", "y", "8"},
       {"x", "1", "2", "3", "4", "5", " ", "6", "7", "y", "8"}},
      {"digits_of_other_scripts",
       "\xd9\xa1\xd9\xa2\xd9\xa3\xd9\xa4\xc2\xbd\xe2\x85\xa7",  // Arabic 1 to 4, one half, Roman eight
       {"\xd9\xa1\xd9\xa2\xd9\xa3\xd9\xa4\xc2\xbd\xe2\x85\xa7"},
       {"\xd9\xa1", "\xd9\xa2", "\xd9\xa3", "\xd9\xa4", "\xc2\xbd", "\xe2\x85\xa7"},
       {"\xd9\xa1\xd9\xa2\xd9\xa3", "\xd9\xa4\xc2\xbd\xe2\x85\xa7"},
       {"\xd9\xa1", "\xd9\xa2", "\xd9\xa3", "\xd9\xa4", "\xc2\xbd", "\xe2\x85\xa7"}},
      alike("contractions", "I'm we've they'll it's don't he'd you're",
            {"I", "'m", " we", "'ve", " they", "'ll", " it", "'s", " don", "'t", " he", "'d", " you", "'re"}),
      {"contractions_in_capitals",
       "I'M WE'VE IT'Sx",
       {"I", "'", "M", " WE", "'", "VE", " IT", "'", "Sx"},
       {"I", "'", "M", " WE", "'", "VE", " IT", "'", "Sx"},
       {"I", "'M", " WE", "'VE", " IT", "'S", "x"},
       {"I", "'M", " WE", "'VE", " IT", "'S", "x"}},
      {"a_symbol_before_letters",
       "(foo \"bar\" 'quoted' a\tb",
       {"(", "foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\t", "b"},
       {"(", "foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\t", "b"},
       {"(foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\tb"},
       {"(foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\tb"}},
      {"newlines",
       "a\nb\n\nc  \n  d;\r\n\r\n e\n",
       {"a", "\n", "b", "\n", "\n", "c", "  \n ", " d", ";", "\r\n\r\n", " e", "\n"},
       {"a", "\n", "b", "\n", "\n", "c", "  \n ", " d", ";", "\r\n\r\n", " e", "\n"},
       {"a", "\n", "b", "\n\n", "c", "  \n", " ", " d", ";\r\n\r\n", " e", "\n"},
       {"a", "\n", "b", "\n\n", "c", "  \n", " ", " d", ";\r\n\r\n", " e", "\n"}},
      alike("blanks", "a   b    ", {"a", "  ", " b", "    "}),
      {"blanks_before_digits",
       "   12",
       {"  ", " 12"},
       {"   ", "1", "2"},  // digits are cut out first
       {"  ", " ", "12"},
       {"  ", " ", "1", "2"}},
      {"blanks_before_symbols", "   !", {"  ", " !"}, {"  ", " !"}, {"  ", " !"}, {"  ", " !"}},
      alike("letters_of_other_scripts", "\xc3\xa9t\xc3\xa9 \xd0\xbc\xd0\xb8\xd1\x80 \xe6\x88\x91\xe4\xbb\xac",
            {"\xc3\xa9t\xc3\xa9", " \xd0\xbc\xd0\xb8\xd1\x80", " \xe6\x88\x91\xe4\xbb\xac"}),
      alike("marks_and_emoji", "\xe1\x9e\x80\xe1\x9f\x84 \xf0\x9f\x98\x80\xf0\x9f\x91\x8d",
            {"\xe1\x9e\x80", "\xe1\x9f\x84", " \xf0\x9f\x98\x80\xf0\x9f\x91\x8d"}),
      alike("other_white_space", "a\xc2\xa0\xe3\x80\x80\xc2\x85", {"a", "\xc2\xa0\xe3\x80\x80\xc2\x85"}),
      alike("no_white_space_since_unicode_6_3", "!\xe1\xa0\x8e!", {"!\xe1\xa0\x8e!"}),
      alike("bytes_that_are_not_utf8", std::string("!\xff\xc3 \xe2\x96\0", 7),
            {"!\xff\xc3", std::string(" \xe2\x96\0", 4)}),
      alike("bytes_between_blanks", " \xff  \xfe", {" \xff", " ", " \xfe"}),
      alike("surrogates_and_overlong", "\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80 x",
            {"\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80", " x"}),
  };
}

INSTANTIATE_TEST_SUITE_P(Cases, PreTokenizerTest, ::testing::ValuesIn(split_cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(PreTokenizerKindsTest, NamesAreThereOnce) {
  std::set<std::string_view> names;
  for (const PreTokenizerKind& kind : pre_tokenizer_kinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_FALSE(kind.patterns[0].empty());
  }
  for (const char* name : {"gpt-2", "llama-bpe", "smollm", "qwen2"}) EXPECT_EQ(names.count(name), 1U) << name;
}

TEST(PreTokenizerTextTest, LosesNothingOfAnyText) {
  std::mt19937 random(20260104);
  const Pieces parts = {" ", "  ", "\n",       "\r",   "\t",   "a",    "'s", "'",
                        "1", "23", "\xc3\xa9", "\xff", "\xe2", "\x96", "!",  "\xc2\xa0"};
  for (const PreTokenizerKind& kind : pre_tokenizer_kinds()) {
    const PreTokenizer pre_tokenizer = create(kind.patterns);
    for (int i = 0; i < 300; ++i) {
      std::string text, whole;
      for (std::size_t n = random() % 30; n > 0; --n) text += parts[random() % parts.size()];
      for (const std::string& piece : split(pre_tokenizer, text)) {
        EXPECT_FALSE(piece.empty());
        whole += piece;
      }
      ASSERT_EQ(whole, text) << kind.name;
    }
  }
}

TEST(PreTokenizerTextTest, LongRunsTakeTimeInProportion) {
  constexpr std::size_t kSize = 10 << 20;
  std::string pairs;
  while (pairs.size() < kSize) pairs += " \n";
  const Pieces texts = {std::string(kSize, ' '), std::string(kSize, ' ') + "x", "\n" + std::string(kSize, ' ') + "!",
                        std::string(kSize, 'a'), std::string(kSize, '!'),       std::string(kSize, '\n'),
                        std::string(kSize, '\xff'), pairs};
  for (const char* name : {"gpt-2", "llama-bpe", "smollm", "qwen2"}) {
    const PreTokenizer pre_tokenizer = named(name);
    for (const std::string& text : texts) {
      const auto begin = std::chrono::steady_clock::now();
      std::size_t n_pieces = 0, n_bytes = 0;
      pre_tokenizer.split(text, [&](std::string_view piece) {
        ++n_pieces;
        n_bytes += piece.size();
      });
      const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
      EXPECT_EQ(n_bytes, text.size());
      EXPECT_LE(n_pieces, 3U) << name << ": " << text.substr(0, 4);
      EXPECT_LT(duration.count(), 10.0) << name;  // 0.05 to 0.4 s on an idle machine
    }
  }
}

TEST(PreTokenizerTextTest, APatternThatFailsLeavesTheRestInOnePiece) {
  const std::string text = "x" + std::string(40, 'a');
  const std::string_view slow[] = {"x|(a+)+$(?<=b)"};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(split(create(slow), text), (Pieces{"x", std::string(40, 'a')}));
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(duration.count(), 2.0);
  const std::string_view deep[] = {"x|(?:(a))*b"};
  const std::string many = "x" + std::string(1 << 20, 'a');
  EXPECT_EQ(split(create(deep), many), (Pieces{"x", std::string(1 << 20, 'a')}));
  const std::string_view empty[] = {"b*"};
  EXPECT_EQ(split(create(empty), "aab"), Pieces{"aab"});
}

TEST(PreTokenizerTextTest, RefusesPatternsThatAreNone) {
  const std::string_view patterns[] = {"(a"};
  const Result<PreTokenizer> created = PreTokenizer::create(patterns);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.status().code(), StatusCode::kInternal);
  EXPECT_NE(created.status().message().find("pattern '(a'"), std::string::npos) << created.status().message();
}

}  // namespace
}  // namespace rondo::models
