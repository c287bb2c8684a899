#include <rondo/text_stream.h>

#include <utility>

#include <gtest/gtest.h>

#include "tests/support/small_tokenizer.h"

namespace rondo::text_stream_test {
namespace {

using rondo::testing::create_tokenizer;
using rondo::testing::GgufWriter;

/// Ids 0 to 255 are bytes; then words.
Tokenizer byte_tokenizer() {
  rondo::testing::SmallVocabulary vocabulary;
  vocabulary.add_bytes(-1);
  vocabulary.add("one", rondo::testing::kNormal, -1);
  vocabulary.add("STO", rondo::testing::kNormal, -1);
  vocabulary.add("P and", rondo::testing::kNormal, -1);
  GgufWriter writer;
  return create_tokenizer(vocabulary.write(writer));
}

constexpr std::int32_t kOne = 256, kSto = 257, kPAnd = 258;

TextStream stream_of(std::vector<std::string> stop_texts = {}) {
  Result<TextStream> stream = TextStream::create(byte_tokenizer(), std::move(stop_texts));
  EXPECT_TRUE(stream.ok()) << stream.status().message();
  return std::move(stream).value();
}

TEST(TextStreamTest, CharactersComeWhole) {
  TextStream stream = stream_of();
  EXPECT_EQ(stream.add(kOne), "one");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add(0xA9), "é");
  EXPECT_EQ(stream.add(0xE2), "");
  EXPECT_EQ(stream.add(kOne), "\xEF\xBF\xBDone");
  EXPECT_EQ(stream.add(0xF0), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.n_tokens_before_stop(), 6u);
}

TEST(TextStreamTest, StopsAcrossTokens) {
  TextStream stream = stream_of({"STOP", "zebra"});
  EXPECT_EQ(stream.add(kOne), "one");
  EXPECT_EQ(stream.add(kSto), "");  // it may be the beginning
  EXPECT_EQ(stream.add(kOne), "STOone");
  EXPECT_EQ(stream.add(kSto), "");
  EXPECT_EQ(stream.add(kPAnd), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.n_tokens_before_stop(), 3u);
  EXPECT_EQ(stream.add(kOne), "");  // nothing comes after a stop
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.n_tokens_before_stop(), 3u);
}

TEST(TextStreamTest, WhatIsHeldBackComesAtTheEnd) {
  TextStream stream = stream_of({"STOP"});
  EXPECT_EQ(stream.add(kSto), "");
  EXPECT_EQ(stream.finish(), "STO");
  EXPECT_FALSE(stream.stopped());
}

/// The first byte of the stop text's first character is a token of its own: it does not lie before the stop.
TEST(TextStreamTest, AHalfCharacterOfTheStopIsNotBeforeIt) {
  TextStream stream = stream_of({"é"});
  EXPECT_EQ(stream.add(kOne), "one");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add(0xA9), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.n_tokens_before_stop(), 1u);
}

TEST(TextStreamTest, TheEndMayCompleteAStop) {
  TextStream stream = stream_of({"\xEF\xBF\xBD"});
  EXPECT_EQ(stream.add(kOne), "one");
  EXPECT_EQ(stream.add(0xF0), "");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.n_tokens_before_stop(), 1u);
}

TEST(TextStreamTest, EmptyStopTextsAreRefusedByTheirPlace) {
  const Result<TextStream> refused = TextStream::create(byte_tokenizer(), {"a", ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.status().message(), "text stream: stop text 1 is empty");
}

TEST(TextStreamTest, AMovedFromStreamGivesNothing) {
  TextStream stream = stream_of();
  TextStream other = std::move(stream);
  EXPECT_EQ(stream.add(kOne), "");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_FALSE(stream.stopped());
  EXPECT_EQ(stream.n_tokens_before_stop(), 0u);
  EXPECT_EQ(other.add(kOne), "one");
}

}  // namespace
}  // namespace rondo::text_stream_test
