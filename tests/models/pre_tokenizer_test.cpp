#include "models/tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cpu_timer.h"
#include "tests/support/test_data.h"

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
  std::size_t begin = 0;
  for (const std::size_t end : TextSplitter(pre_tokenizer).piece_ends(text)) {
    if (end <= begin || end > text.size()) {
      ADD_FAILURE() << pre_tokenizer.name << ": a piece from " << begin << " to " << end << " of " << text.size();
      break;
    }
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size()) << pre_tokenizer.name;
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
       {"it", "'\xc5\xbfx"},  // of llama.cpp; by the expression "'\xc5\xbf" would be a piece
       {"it", "'\xc5\xbfx"}},
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

struct KindCase {
  const char* pre_tokenizer;
  std::string text;
  Pieces pieces;
};

TEST(PreTokenizersTest, OtherKindsSplitAsPublished) {
  const std::string ideographs = "\xe6\x88\x91\xe4\xbb\xac", acute = "e\xcc\x81";
  const std::vector<KindCase> cases = {
      {"default", "a, b<=12345 $x", {"a", ",", " b", "<=", "123", "45", " ", "$", "x"}},
      {"default", "it's ~`", {"it", "'", "s", " ", "~", "`"}},
      {"falcon", "1234567 `a`", {"123", "456", "7", " ", "`", "a", "`"}},
      {"qwen35", acute + "a " + acute + " 12", {acute + "a", " " + acute, " ", "1", "2"}},
      {"ufakzeka", "it's it'S", {"it", "'s", " it", "'S"}},
      {"ufakzeka", "'ve've", {"'ve", "'ve"}},
      {"laguna", "a  \n\n  b", {"a", "  ", "\n\n", " ", " b"}},
      {"bailingmoe", "I'LL go\n\n!", {"I", "'LL", " go", "\n\n", "!"}},
      {"seed-coder", "a!?\n\nb", {"a", "!?", "\n\n", "b"}},
      {"exaone-moe", "we go on, now!\n\n", {"we go on", ",", " now", "!\n", "\n"}},
      {"tekken", "HelloWorld ABCdef x1", {"Hello", "World", " ABCdef", " x", "1"}},
      {"tekken", "don't a//\n", {"don", "'t", " a", "//\n"}},
      {"gpt-4o", "HTMLParser isn'T it's 12345", {"HTMLParser", " isn'T", " it's", " ", "123", "45"}},
      {"gpt-4o", "camelCase " + acute + "x !\n/x", {"camel", "Case", " e", "\xcc\x81x", " !\n/", "x"}},
      {"granite-embed-multi-97m", "camelCase " + acute + "x", {"camel", "Case", " " + acute + "x"}},
      {"tiny_aya", "1234567x A1b", {"1", "234", "567", "x", " A", "1", "b"}},
      {"youtu", "a" + ideographs + "b1", {"a", ideographs, "b", "1"}},
      {"kimi-k2", "a" + ideographs + "b's 1234", {"a", ideographs, "b's", " ", "123", "4"}},
      {"kimi-k2", "  " + ideographs, {" ", " ", ideographs}},
      {"deepseek-llm", "Hi  you,\n\n12345" + ideographs, {"Hi", " ", " you", ",", "\n", "\n", "12345", ideographs}},
      {"deepseek-coder", "f(x) = 12\n", {"f", "(", "x", ")", " = ", "1", "2", "\n"}},
      {"deepseek-v3", "f(x) .x $y 1234" + ideographs, {"f", "(x", ")", " .", "x", " $", "y", " ", "123", "4", ideographs}},
      {"spark2_5", "a!\n\n  b", {"a", "!", "\n", "\n", " ", " b"}},
      {"afmoe", "ab1234 c", {"ab", "1", "234", " c"}},
      {"bloom", "Hello, world (now)", {"Hello", ",", " world", " (", "now", ")"}},
      {"viking", "ab12 3", {"ab", "1", "2", " ", "3"}},
      {"superbpe", "so 1234567!", {"so ", "1", "234", "567", "!"}},
      {"superbpe", "123456", {"123", "456"}},
      {"chameleon", "a<sentinel:12>  IMGIMGABZ", {"a", "<", "sentinel", ":", "1", "2", ">", "  ", "IMGIMGABZ"}},
      {"jais-2", "a" + std::string(14, ' ') + "b", {"a", std::string(8, ' '), std::string(4, ' '), " ", " b"}},
      {"minicpm5", "x12345!\n", {"x", "123", "45", "!\n"}},
  };
  std::set<std::string_view> kinds;
  for (const auto& [name, text, pieces] : cases) {
    EXPECT_EQ(split(named(name), text), pieces) << name;
    kinds.insert(name);
  }
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers()) {
    const auto same = [&](std::string_view name) {
      return named(name).expressions.data() == pre_tokenizer.expressions.data();
    };
    EXPECT_TRUE(std::any_of(kinds.begin(), kinds.end(), same) || same("gpt-2") || same("smollm") || same("llama-bpe") ||
                same("qwen2"))
        << pre_tokenizer.name;
  }
}

// Recorded by tests/support/compare_tokenizers.py: the bytes of each piece, for each of the texts.
TEST(PreTokenizersTest, SplitsAsLlamaCpp) {
  using nlohmann::json;
  const json recorded = json::parse(testing::read_whole_file(testing::tests_data_path("pre_tokenizers.json")));
  const json& names = recorded["names"];
  EXPECT_EQ(names.size(), pre_tokenizers().size());
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers()) {
    ASSERT_TRUE(names.contains(pre_tokenizer.name)) << pre_tokenizer.name;
    const json& expected = recorded["pieces"][names[std::string(pre_tokenizer.name)].get<std::string>()];
    ASSERT_GE(expected.size(), 100U);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string text = recorded["texts"][i];
      std::string sizes;
      for (const std::string& piece : split(pre_tokenizer, text)) {
        sizes += (sizes.empty() ? "" : " ") + std::to_string(piece.size());
      }
      EXPECT_EQ(sizes, expected[i].get<std::string>()) << pre_tokenizer.name << ": " << text;
    }
  }
}

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
  constexpr std::size_t kSize = 1 << 16;
  const auto repeated = [](std::string_view part) {
    std::string text;
    while (text.size() < kSize) text += part;
    return text;
  };
  const std::string acute = "\xcc\x81", ideograph = "\xe6\x88\x91", blank = "\xe3\x80\x80", digit = "\xd9\xa1";
  std::vector<std::string> texts;
  for (const std::string part : {" ", "a", "A", "!", "1", "\n", "'", "\xff", " \n", "'s", " 1a", "a ", "Aa", "\n !"}) {
    texts.push_back(repeated(part));
  }
  for (const std::string& part : {acute, ideograph, blank, digit, "a" + acute, std::string("<sentinel:1")}) {
    texts.push_back(repeated(part));
  }
  for (const char* part : {" ", "1", "A", "\n", "/"}) texts.push_back(repeated(part) + ideograph);
  texts.push_back("<sentinel:" + repeated("1"));
  std::set<const std::string_view*> done;
  for (const PreTokenizer& pre_tokenizer : pre_tokenizers()) {
    if (!done.insert(pre_tokenizer.expressions.data()).second) continue;
    const TextSplitter splitter(pre_tokenizer);
    for (const std::string& text : texts) {
      const rondo::testing::CpuTimer timer;
      EXPECT_EQ(splitter.piece_ends(text).back(), text.size());
      EXPECT_LT(timer.seconds(), 0.25) << pre_tokenizer.name << ": " << text.substr(0, 4);  // 0.002 s idle
    }
  }
}

// Which Unicode it is depends on the machine that builds: all but white space has only become more.
TEST(PreTokenizerUnicodeTest, KnowsEveryCharacter) {
  std::map<UnicodeClass, std::size_t> n;
  for (std::uint32_t code = 0; code < 0x110000; ++code) ++n[unicode_class(code)];
  EXPECT_EQ(n[UnicodeClass::kWhiteSpace], 25U);  // PropList.txt, since 6.3
  EXPECT_GE(n[UnicodeClass::kLetter], 131756U);  // those of Unicode 14
  EXPECT_GE(n[UnicodeClass::kNumber], 1791U);
  EXPECT_GE(n[UnicodeClass::kPunctuation], 819U);
  EXPECT_GE(n[UnicodeClass::kSymbol], 7741U);
  EXPECT_GE(n[UnicodeClass::kMark], 2408U);
  EXPECT_GE(n[UnicodeClass::kOther], 900000U);
  EXPECT_EQ(unicode_class(0x110000), UnicodeClass::kOther);
}

TEST(PreTokenizerUnicodeTest, KnowsCharactersAtTheEdges) {
  const PreTokenizer& gpt2 = named("gpt-2");
  const auto joins = [&](std::uint32_t code, char next) {
    return split(gpt2, utf8(code) + next).front().size() > utf8(code).size();
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
