// Normalization Forms C and D, cases and kinds of characters beside utf8proc's: every character, and texts of those that do something.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/tokenizers/nfc.h"

#if RONDO_HAS_UTF8PROC
#include <utf8proc.h>
#endif

namespace rondo::models::nfc_test {
namespace {

TEST(NfcTest, ByHand) {
  EXPECT_EQ(to_nfc(""), "");
  EXPECT_EQ(to_nfc("plain"), "plain");
  EXPECT_EQ(to_nfc("e\u0301t\u00e9"), "\u00e9t\u00e9");
  EXPECT_EQ(to_nfc("\u212b \u2126"), "\u00c5 \u03a9");                    // singletons
  EXPECT_EQ(to_nfc("q\u0307\u0323 a\u0323\u0302"), "q\u0323\u0307 \u1ead");  // order, and three in one
  EXPECT_EQ(to_nfc("\u1112\u1161\u11ab\u1100\u1173\u11af"), "\ud55c\uae00");
  EXPECT_EQ(to_nfc("\uac00\u11a8"), "\uac01");
  EXPECT_EQ(to_nfc("\u0915\u093c"), "\u0915\u093c");  // excluded from composition
}

TEST(NfcTest, WhatIsNoTextStays) {
  const std::string bytes = "e\xcc\x81 \xff\xcc\x81 e\xcc e\xed\xa0\x80\xcc\x81";
  EXPECT_EQ(to_nfc(bytes), "\xc3\xa9 \xff\xcc\x81 e\xcc e\xed\xa0\x80\xcc\x81");
}

TEST(NfcTest, TimeIsLinear) {
  std::string text, expected;
  for (int i = 0; i < 300'000; ++i) text += "e\u0301", expected += "\u00e9";
  EXPECT_EQ(to_nfc(text), expected);
  std::string marks = "a";
  for (int i = 0; i < 300'000; ++i) marks += i % 2 ? "\u0307" : "\u0323";
  EXPECT_EQ(to_nfc(marks).size(), marks.size());  // the letter and the first dot below it become one character of as many bytes
}

TEST(NfcTest, TakenApart) {
  EXPECT_EQ(to_nfd("\u00e9 \u1ead \ud55c \xff"), "e\u0301 a\u0323\u0302 \u1112\u1161\u11ab \xff");
  EXPECT_EQ(first_decomposed(0x1ead), std::uint32_t{'a'});
  EXPECT_EQ(first_decomposed(0xd55c), 0x1112U);
  EXPECT_EQ(first_decomposed('a'), std::uint32_t{'a'});
}

#if RONDO_HAS_UTF8PROC
std::string utf8_of(std::uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n)};
}

std::string expected_nfc(const std::string& text) {
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> made(utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
  return reinterpret_cast<const char*>(made.get());
}

std::string expected_nfd(const std::string& text) {
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> made(utf8proc_NFD(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
  return reinterpret_cast<const char*>(made.get());
}

bool is_character(std::uint32_t code) { return code != 0 && (code < 0xd800 || code > 0xdfff); }

TEST(NfcTest, EveryCharacter) {
  for (std::uint32_t code = 1; code < 0x110000; ++code) {
    if (!is_character(code)) continue;
    const std::string one = utf8_of(code);
    ASSERT_EQ(to_nfc(one), expected_nfc(one)) << std::hex << code;
    ASSERT_EQ(to_nfd(one), expected_nfd(one)) << std::hex << code;
  }
}

TEST(NfcTest, CasesAndKindsOfEveryCharacter) {
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    const auto number = static_cast<utf8proc_int32_t>(code);
    const std::string category = utf8proc_category_string(number);
    ASSERT_EQ(lower_case(code), static_cast<std::uint32_t>(utf8proc_tolower(number))) << std::hex << code;
    ASSERT_EQ(is_nonspacing_mark(code), category == "Mn") << std::hex << code;
    ASSERT_EQ(is_control(code), category == "Cc" || category == "Cf" || category == "Cs" || category == "Co") << std::hex << code;
  }
}

TEST(NfcTest, RandomTexts) {
  std::vector<std::uint32_t> active;  // what is taken apart, put together or moved
  for (std::uint32_t code = 1; code < 0x110000; ++code) {
    if (!is_character(code)) continue;
    const std::string one = utf8_of(code);
    const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
    const bool hangul = (code >= 0x1100 && code < 0x1200) || (code >= 0xac00 && code < 0xd7a4 && code % 97 == 0);
    if (property->combining_class != 0 || property->comb_index != UINT16_MAX || expected_nfc(one) != one || hangul) active.push_back(code);
  }
  ASSERT_GT(active.size(), 2000u);
  std::mt19937 random(5);
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (std::uint32_t n = below(12); n > 0; --n) text += utf8_of(below(4) == 0 ? 'a' + below(26) : below(2) ? active[below(active.size())] : 0x300 + below(0x50));
    ASSERT_EQ(to_nfc(text), expected_nfc(text)) << ::testing::PrintToString(text);
    ASSERT_EQ(to_nfd(text), expected_nfd(text)) << ::testing::PrintToString(text);
  }
}
#endif

}  // namespace
}  // namespace rondo::models::nfc_test
