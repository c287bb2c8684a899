// Small tokenizer files for tests, and what is asked of any tokenizer.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rondo/tokenizer.h>

#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/small_vocabulary.h"

namespace rondo::testing {

using Ids = std::vector<std::int32_t>;

inline Tokenizer create_tokenizer(const GgufWriter& writer) {
  const std::string bytes = writer.build();
  Result<Tokenizer> tokenizer = Tokenizer::create(source_of(bytes));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  if (!tokenizer.ok()) std::abort();
  return *tokenizer;
}

/// Ids of `text` without BOS.
inline Ids encode(const Tokenizer& tokenizer, std::string_view text, bool parse_special = false) {
  return tokenizer.encode(text, EncodeOptions{false, parse_special});
}

/// "[Hel][lo]"
inline std::string joined(const Tokenizer& tokenizer, const Ids& ids) {
  std::string out;
  for (const std::int32_t id : ids) out += "[" + std::string(tokenizer.spelling(id)) + "]";
  return out;
}

/// A file that must be refused, and what the message must hold.
struct HostileTokenizer {
  const char* name;
  std::function<std::string()> build;
  StatusCode code;
  std::string message;
};

inline void PrintTo(const HostileTokenizer& hostile, std::ostream* out) { *out << hostile.name; }

inline void expect_refused_in_one_line_and_quickly(const HostileTokenizer& hostile) {
  const std::string bytes = hostile.build();
  const CpuTimer timer;
  const Result<Tokenizer> tokenizer = Tokenizer::create(source_of(bytes));
  const double seconds = timer.seconds();
  ASSERT_FALSE(tokenizer.ok());
  const std::string& message = tokenizer.status().message();
  EXPECT_EQ(tokenizer.status().code(), hostile.code) << message;
  EXPECT_EQ(message.find("model.gguf: metadata key 'tokenizer.ggml."), 0U) << message;
  EXPECT_NE(message.find(hostile.message), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(seconds, 1.0);
}

/// Files made of `whole` with one byte changed, but for every tenth: how many load. Those encode and decode texts of
/// `pieces`, bytes that may be halves of a character, without an id outside the vocabulary.
inline std::size_t n_damaged_that_load(const std::string& whole, std::uint32_t seed, int n_files, std::string_view pieces) {
  std::mt19937 random(seed);
  std::size_t n_good = 0;
  for (int i = 0; i < n_files; ++i) {
    std::string bytes = whole;
    if (i % 10 != 0) bytes[random() % bytes.size()] = static_cast<char>(random());
    const Result<Tokenizer> tokenizer = Tokenizer::create(source_of(bytes));
    if (!tokenizer.ok()) continue;
    ++n_good;
    std::string text;
    for (std::size_t n = random() % 40; n > 0; --n) text += pieces[random() % pieces.size()];
    const std::vector<std::int32_t> ids = tokenizer->encode(text);
    for (const std::int32_t id : ids) EXPECT_TRUE(id >= 0 && id < tokenizer->n_vocab());
    (void)tokenizer->decode(ids);
  }
  return n_good;
}

}  // namespace rondo::testing
