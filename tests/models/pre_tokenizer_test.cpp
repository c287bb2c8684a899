#include "models/tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cpu_timer.h"

namespace rondo::models::pre_tokenizer_test {
namespace {

using Pieces = std::vector<std::string>;

const PreTokenizer& named(std::string_view name) {
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers()) {
    if (pre_tokenizer.name == name) return pre_tokenizer;
  }
  ADD_FAILURE() << name;
  return pre_tokenizers().front();
}

Pieces split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  Pieces pieces;
  while (!text.empty()) {
    const std::size_t bytes = pre_tokenizer.first_piece_bytes(text);
    if (bytes == 0 || bytes > text.size()) {
      ADD_FAILURE() << pre_tokenizer.name << ": a piece of " << bytes << " bytes of " << text.size();
      break;
    }
    pieces.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return pieces;
}

std::string utf8(std::uint32_t code) {
  const auto byte = [&](std::uint32_t lead, int shift) { return static_cast<char>(lead | (code >> shift & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {byte(0xc0, 6), byte(0x80, 0)};
  if (code < 0x10000) return {byte(0xe0, 12), byte(0x80, 6), byte(0x80, 0)};
  return {byte(0xf0, 18), byte(0x80, 12), byte(0x80, 6), byte(0x80, 0)};
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
      {"contractions_with_a_long_s",
       "it'\xc5\xbfx",
       {"it", "'", "\xc5\xbfx"},
       {"it", "'", "\xc5\xbfx"},
       {"it", "'\xc5\xbf", "x"},
       {"it", "'\xc5\xbf", "x"}},
      {"contractions_cut_short",
       "a'l b'r 'v'1'",
       {"a", "'", "l", " b", "'", "r", " '", "v", "'", "1", "'"},
       {"a", "'", "l", " b", "'", "r", " '", "v", "'", "1", "'"},
       {"a", "'l", " b", "'r", " '", "v", "'", "1", "'"},
       {"a", "'l", " b", "'r", " '", "v", "'", "1", "'"}},
      {"a_symbol_before_letters",
       "(foo \"bar\" 'quoted' a\tb",
       {"(", "foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\t", "b"},
       {"(", "foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\t", "b"},
       {"(foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\tb"},
       {"(foo", " \"", "bar", "\"", " '", "quoted", "'", " a", "\tb"}},
      alike("letters_of_other_scripts", "\xc3\xa9t\xc3\xa9 \xd0\xbc\xd0\xb8\xd1\x80 \xe6\x88\x91\xe4\xbb\xac",
            {"\xc3\xa9t\xc3\xa9", " \xd0\xbc\xd0\xb8\xd1\x80", " \xe6\x88\x91\xe4\xbb\xac"}),
      alike("marks_and_emoji", "\xe1\x9e\x80\xe1\x9f\x84 \xf0\x9f\x98\x80\xf0\x9f\x91\x8d",
            {"\xe1\x9e\x80", "\xe1\x9f\x84", " \xf0\x9f\x98\x80\xf0\x9f\x91\x8d"}),
      {"marks_between_letters",
       "e\xcc\x81x \xcc\x81x",
       {"e", "\xcc\x81", "x", " \xcc\x81", "x"},
       {"e", "\xcc\x81", "x", " \xcc\x81", "x"},
       {"e", "\xcc\x81x", " \xcc\x81", "x"},
       {"e", "\xcc\x81x", " \xcc\x81", "x"}},
      alike("bytes_that_are_not_utf8", std::string("!\xff\xc3 \xe2\x96\0", 7),
            {"!\xff\xc3", std::string(" \xe2\x96\0", 4)}),
      {"bytes_before_letters",
       "\xffx\xc3x",
       {"\xff", "x", "\xc3", "x"},
       {"\xff", "x", "\xc3", "x"},
       {"\xffx", "\xc3x"},
       {"\xffx", "\xc3x"}},
      alike("bytes_between_blanks", " \xff  \xfe", {" \xff", " ", " \xfe"}),
      alike("surrogates_and_overlong", "\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80 x",
            {"\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80", " x"}),
  };
}

std::vector<SplitCase> blank_cases() {
  return {
      {"newlines",
       "a\nb\n\nc  \n  d;\r\n\r\n e\n",
       {"a", "\n", "b", "\n", "\n", "c", "  \n ", " d", ";", "\r\n\r\n", " e", "\n"},
       {"a", "\n", "b", "\n", "\n", "c", "  \n ", " d", ";", "\r\n\r\n", " e", "\n"},
       {"a", "\n", "b", "\n\n", "c", "  \n", " ", " d", ";\r\n\r\n", " e", "\n"},
       {"a", "\n", "b", "\n\n", "c", "  \n", " ", " d", ";\r\n\r\n", " e", "\n"}},
      {"line_ends_among_blanks",
       "\r \n\t x",
       {"\r \n\t", " x"},
       {"\r \n\t", " x"},
       {"\r \n", "\t", " x"},
       {"\r \n", "\t", " x"}},
      {"symbols_before_line_ends", "!\r\n \n", {"!", "\r\n \n"}, {"!", "\r\n \n"}, {"!\r\n", " \n"}, {"!\r\n", " \n"}},
      {"only_two_characters_end_lines",  // not U+2028 and U+0085
       "a\xe2\x80\xa8\xe2\x80\xa8x!\xc2\x85",
       {"a", "\xe2\x80\xa8", "\xe2\x80\xa8", "x", "!", "\xc2\x85"},
       {"a", "\xe2\x80\xa8", "\xe2\x80\xa8", "x", "!", "\xc2\x85"},
       {"a", "\xe2\x80\xa8", "\xe2\x80\xa8x", "!", "\xc2\x85"},
       {"a", "\xe2\x80\xa8", "\xe2\x80\xa8x", "!", "\xc2\x85"}},
      alike("blanks", "a   b    ", {"a", "  ", " b", "    "}),
      {"blanks_of_many_bytes",  // U+2003, U+3000
       " \xe2\x80\x83\xe3\x80\x80x",
       {" \xe2\x80\x83", "\xe3\x80\x80", "x"},
       {" \xe2\x80\x83", "\xe3\x80\x80", "x"},
       {" \xe2\x80\x83", "\xe3\x80\x80x"},
       {" \xe2\x80\x83", "\xe3\x80\x80x"}},
      {"blanks_before_digits",
       "   12",
       {"  ", " 12"},
       {"   ", "1", "2"},  // digits are cut out first
       {"  ", " ", "12"},
       {"  ", " ", "1", "2"}},
      {"blanks_before_symbols", "   !", {"  ", " !"}, {"  ", " !"}, {"  ", " !"}, {"  ", " !"}},
      alike("other_white_space", "a\xc2\xa0\xe3\x80\x80\xc2\x85", {"a", "\xc2\xa0\xe3\x80\x80\xc2\x85"}),
      alike("no_white_space_since_unicode_6_3", "!\xe1\xa0\x8e!", {"!\xe1\xa0\x8e!"}),
  };
}

INSTANTIATE_TEST_SUITE_P(Cases, PreTokenizerTest, ::testing::ValuesIn(split_cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });
INSTANTIATE_TEST_SUITE_P(Blanks, PreTokenizerTest, ::testing::ValuesIn(blank_cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(PreTokenizersTest, NamesAreThereOnce) {
  std::set<std::string_view> names;
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers()) {
    EXPECT_TRUE(names.insert(pre_tokenizer.name).second) << pre_tokenizer.name;
  }
  for (const char* name : {"gpt-2", "llama-bpe", "smollm", "qwen2"}) EXPECT_EQ(names.count(name), 1U) << name;
}

TEST(PreTokenizerTextTest, LosesNothingOfAnyText) {
  std::mt19937 random(20260104);
  const Pieces parts = {" ", "  ", "\n",       "\r",   "\t",   "a",    "'s", "'",
                        "1", "23", "\xc3\xa9", "\xff", "\xe2", "\x96", "!",  "\xc2\xa0"};
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers()) {
    for (int i = 0; i < 300; ++i) {
      std::string text, whole;
      for (std::size_t n = random() % 30; n > 0; --n) text += parts[random() % parts.size()];
      for (const std::string& piece : split(pre_tokenizer, text)) {
        EXPECT_FALSE(piece.empty());
        whole += piece;
      }
      ASSERT_EQ(whole, text) << pre_tokenizer.name;
    }
  }
}

TEST(PreTokenizerTextTest, LongTextsTakeTimeInProportion) {
  constexpr std::size_t kSize = 1 << 20;
  const auto repeated = [](std::string_view part) {
    std::string text;
    while (text.size() < kSize) text += part;
    return text;
  };
  struct LongText {
    std::string text;
    std::size_t most_pieces;
  };
  const std::vector<LongText> texts = {
      {repeated(" "), 1},     {repeated(" ") + "x", 2}, {"\n" + repeated(" ") + "!", 3}, {repeated("a"), 1},
      {repeated("!"), 1},     {repeated("\n"), 1},      {repeated("\xff"), 1},           {repeated(" \n"), 1},
      {repeated("1"), kSize}, {repeated("'s"), kSize},  {repeated("\n !"), kSize},       {repeated(" 1a"), 2 * kSize},
  };
  for (const char* name : {"gpt-2", "llama-bpe", "smollm", "qwen2"}) {
    for (const auto& [text, most_pieces] : texts) {
      std::size_t n_pieces = 0;
      const rondo::testing::CpuTimer timer;
      for (std::string_view rest = text; !rest.empty(); ++n_pieces) {
        const std::size_t bytes = named(name).first_piece_bytes(rest);
        ASSERT_TRUE(bytes > 0 && bytes <= rest.size());
        rest.remove_prefix(bytes);
      }
      const double seconds = timer.seconds();
      EXPECT_LE(n_pieces, most_pieces) << name << ": " << text.substr(0, 4);
      EXPECT_LT(seconds, 2.0) << name;  // at most 0.02 s on an idle machine
    }
  }
}

// Which Unicode it is depends on the machine that builds: letters and numbers have only become more.
TEST(PreTokenizerUnicodeTest, KnowsEveryCharacter) {
  const PreTokenizer& gpt2 = named("gpt-2");
  std::size_t n_letters = 0, n_numbers = 0, n_blanks = 0, n_others = 0;
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const std::string bytes = utf8(code);
    const auto joins = [&](char next) { return gpt2.first_piece_bytes(bytes + next) == bytes.size() + 1; };
    if (code == ' ' || joins('\t')) {
      ++n_blanks;
    } else if (joins('a')) {
      ++n_letters;
    } else if (joins('1')) {
      ++n_numbers;
    } else {
      EXPECT_TRUE(joins('!')) << code;
      ++n_others;
    }
  }
  EXPECT_EQ(n_blanks, 25U);       // PropList.txt, since 6.3
  EXPECT_GE(n_letters, 131756U);  // those of Unicode 14
  EXPECT_GE(n_numbers, 1791U);
  EXPECT_GE(n_others, 900000U);
}

TEST(PreTokenizerUnicodeTest, KnowsCharactersAtTheEdges) {
  const PreTokenizer& gpt2 = named("gpt-2");
  const auto joins = [&](std::uint32_t code, char next) {
    return gpt2.first_piece_bytes(utf8(code) + next) > utf8(code).size();
  };
  for (const std::uint32_t letter :
       {0x41U, 0xaaU, 0xffU, 0x2b0U, 0x1c5U, 0x3400U, 0x9fffU, 0xd7a3U, 0x1d7cbU, 0x20000U, 0x2fa1dU, 0x3134aU}) {
    EXPECT_TRUE(joins(letter, 'a')) << letter;
  }
  for (const std::uint32_t number : {0x30U, 0xb2U, 0xbeU, 0x2167U, 0x3007U, 0xff19U, 0x1d7ffU, 0x1fbf9U}) {
    EXPECT_TRUE(joins(number, '1')) << number;
  }
  for (const std::uint32_t other : {0x0U, 0x7fU, 0xd7U, 0x300U, 0x200bU, 0x20ddU, 0xe000U, 0xfeffU, 0xffffU, 0x2ffffU,
                                    0xe0001U, 0xf0000U, 0x10ffffU}) {
    EXPECT_TRUE(joins(other, '!')) << other;
  }
}

}  // namespace
}  // namespace rondo::models::pre_tokenizer_test
