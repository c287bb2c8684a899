#include <gtest/gtest.h>

#include "models/utf8.h"

namespace rondo::models::utf8_test {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

/// What comes out of bytes that arrive in pieces of `piece` bytes.
std::string streamed(const std::string& bytes, std::size_t piece) {
  Utf8Stream stream;
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += piece) text += stream.add(std::string_view(bytes).substr(at, piece));
  return text + stream.finish();
}

void expect_text(const std::string& bytes, const std::string& text) {
  for (std::size_t piece : {1u, 2u, 3u, 5u, 100u}) EXPECT_EQ(streamed(bytes, piece), text) << "in pieces of " << piece;
}

TEST(Utf8StreamTest, ValidTextPasses) {
  expect_text("", "");
  expect_text("plain", "plain");
  expect_text("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xB5z", "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xB5z");
  expect_text(std::string("a\0b", 3), std::string("a\0b", 3));
  expect_text("\xF4\x8F\xBF\xBF\xEE\x80\x80\xED\x9F\xBF\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF\xEE\x80\x80\xED\x9F\xBF\xF0\x90\x80\x80");
}

TEST(Utf8StreamTest, CharactersComeOutWhenTheyAreComplete) {
  Utf8Stream stream;
  EXPECT_EQ(stream.add("x\xE2"), "x");
  EXPECT_EQ(stream.add("\x82"), "");
  EXPECT_EQ(stream.add("\xAC" "y"), "\xE2\x82\xACy");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.add("ok"), "ok");
}

/// One replacement per maximal part that can't become a character (Unicode 15, section 3.9).
TEST(Utf8StreamTest, WhatCannotBeTextIsReplaced) {
  expect_text("a\x80z", "a" + kReplacement + "z");
  expect_text("\xC0\xAF", kReplacement + kReplacement);            // overlong
  expect_text("\xE0\x80\x80", kReplacement + kReplacement + kReplacement);
  expect_text("\xED\xA0\x80", kReplacement + kReplacement + kReplacement);  // a surrogate
  expect_text("\xF4\x90\x80\x80", kReplacement + kReplacement + kReplacement + kReplacement);
  expect_text("\xFF", kReplacement);
  expect_text("\xE2\x82" "A", kReplacement + "A");
  expect_text("\xF0\x9F\x8E" "A", kReplacement + "A");
  expect_text("\xE2\xE2\x82\xAC", kReplacement + "\xE2\x82\xAC");
}

TEST(Utf8StreamTest, AnUnfinishedEndIsReplacedOnce) {
  expect_text("a\xF0\x9F\x8E", "a" + kReplacement);
  expect_text("\xE2", kReplacement);
}

TEST(Utf8Test, ACharacterIsMeasuredAndWhatIsNoneIsRefused) {
  EXPECT_EQ(utf8_character_bytes("ab"), 1u);
  EXPECT_EQ(utf8_character_bytes("\xC3\xA9z"), 2u);
  EXPECT_EQ(utf8_character_bytes("\xE2\x82\xAC"), 3u);
  EXPECT_EQ(utf8_character_bytes("\xF4\x8F\xBF\xBF"), 4u);
  for (const char* text : {"\x80", "\xC3", "\xE2\x82", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
    EXPECT_EQ(utf8_character_bytes(text), 0u);
  }
}

}  // namespace
}  // namespace rondo::models::utf8_test
