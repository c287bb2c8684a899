// Models and sessions as the device tests use them: load a model, run a session to its end, compare with references.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/model.h>
#include <rondo/session.h>

#include "models/formats/safetensors.h"
#include "tests/device/small_llama.h"
#include "tests/support/device_environment.h"
#include "tests/support/test_data.h"

namespace rondo::tests {

using Tokens = std::vector<std::int32_t>;

/// The bundled models, which every checkout has.
inline std::string tiny_path() { return testing::tests_data_path("tiny-Q4_0.gguf"); }
inline std::string demo_path() { return RONDO_DEMO_MODEL; }

/// "ok", or the message of a failure: what assertions print.
inline std::string describe(const Status& status) {
  return status.ok() ? "ok" : std::string(status_code_name(status.code())) + ": " + status.message();
}

#define RONDO_EXPECT_OK(expression)                              \
  do {                                                           \
    const ::rondo::Status rondo_expected_ = (expression);        \
    EXPECT_TRUE(rondo_expected_.ok()) << ::rondo::tests::describe(rondo_expected_); \
  } while (false)

#define RONDO_ASSERT_OK(expression)                              \
  do {                                                           \
    const ::rondo::Status rondo_expected_ = (expression);        \
    ASSERT_TRUE(rondo_expected_.ok()) << ::rondo::tests::describe(rondo_expected_); \
  } while (false)

/// The Status has this code, and its one line contains each of `words`.
inline void expect_failure(const Status& status, StatusCode code, std::initializer_list<std::string_view> words) {
  EXPECT_EQ(status_code_name(status.code()), std::string(status_code_name(code))) << status.message();
  for (const std::string_view word : words) {
    EXPECT_NE(status.message().find(word), std::string::npos) << "'" << word << "' is not in: " << status.message();
  }
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
}

/// Opens and loads a model; the test can't go on without it.
inline Model load_model(const std::string& path, const ModelOptions& options = {}, Device& device = test_device()) {
  Result<ByteSource> source = open_file(path);
  EXPECT_TRUE(source.ok()) << describe(source.status());
  Result<Model> model = Model::create(device, std::move(source).value(), options);
  EXPECT_TRUE(model.ok()) << describe(model.status());
  RONDO_EXPECT_OK(model->wait_loaded());
  return std::move(model).value();
}

inline Session make_session(const Model& model, const SessionOptions& options = {}) {
  Result<Session> session = Session::create(model, options);
  EXPECT_TRUE(session.ok()) << describe(session.status());
  return std::move(session).value();
}

/// Appends nothing more: advances, waits and takes until the session is idle. Fails the test rather than hang.
inline Tokens take_all(Session& session) {
  constexpr int kMaxFruitlessRounds = 10'000;
  Tokens all;
  for (int fruitless = 0; !session.idle(); ++fruitless) {
    if (fruitless == kMaxFruitlessRounds) {
      ADD_FAILURE() << "the session is neither idle nor does it make tokens";
      break;
    }
    const Status advanced = session.advance();
    const Status waited = session.wait(std::chrono::seconds(10));
    if (!advanced.ok() || (!waited.ok() && waited.code() != StatusCode::kCancelled)) {
      ADD_FAILURE() << describe(advanced.ok() ? waited : advanced);
      break;
    }
    std::int32_t taken[7];  // fewer than a burst makes
    const Result<std::size_t> n = session.take_tokens(taken);
    if (!n.ok()) {
      ADD_FAILURE() << describe(n.status());
      break;
    }
    if (*n > 0) fruitless = 0;
    all.insert(all.end(), taken, taken + *n);
  }
  return all;
}

/// What greedy decoding makes of `input`.
inline Tokens continue_with(Session& session, std::span<const std::int32_t> input, std::uint32_t n_new) {
  RONDO_EXPECT_OK(session.append(input, n_new));
  return take_all(session);
}

inline Tokens first_of(const Tokens& tokens, std::size_t n) {
  return Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(n, tokens.size())));
}

inline Tokens joined(Tokens a, std::span<const std::int32_t> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Tokens all_tokens(const Session& session) { return Tokens(session.tokens().begin(), session.tokens().end()); }

/// `n` ids that look random and are the same everywhere.
inline Tokens made_up_tokens(std::size_t n, std::uint32_t n_vocab) {
  Tokens tokens(n);
  std::uint32_t x = 12345;
  for (std::int32_t& token : tokens) {
    x = x * 1664525u + 1013904223u;
    token = static_cast<std::int32_t>((x >> 8) % n_vocab);
  }
  return tokens;
}

/// Session options that leave the end of a generation to the test.
inline SessionOptions without_model_stops(std::uint32_t burst = 0, std::uint32_t n_ctx = 0) {
  SessionOptions options;
  options.burst = burst;
  options.n_ctx = n_ctx;
  options.use_model_stop_ids = false;
  return options;
}

/// Opens and loads a model from memory that outlives it.
inline Model load_model_from(const std::string& bytes, const ModelOptions& options = {}) {
  Result<Model> model = Model::create(test_device(), memory_source(std::as_bytes(std::span(bytes)), "model.gguf"), options);
  EXPECT_TRUE(model.ok()) << describe(model.status());
  RONDO_EXPECT_OK(model->wait_loaded());
  return std::move(model).value();
}

/// Tests on one model, loaded once per suite, whose greedy texts wander over the whole vocabulary.
class ModelTest : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { model_.reset(); }
  static const Model& model() { return *model_; }
  static Session session(std::uint32_t burst = 0, std::uint32_t n_ctx = 0) { return make_session(model(), without_model_stops(burst, n_ctx)); }
  /// What a session of its own makes of `input`.
  static Tokens text_of(std::span<const std::int32_t> input, std::uint32_t n_new) {
    Session alone = session();
    return continue_with(alone, input, n_new);
  }
  static Tokens prompt(std::size_t n) { return made_up_tokens(n, model().info().n_vocab); }

  static inline std::optional<Model> model_;
};

/// The bundled model with random weights.
class TinyModelTest : public ModelTest {
 protected:
  static void SetUpTestSuite() { model_.emplace(load_model(tiny_path())); }
};

/// A model of some thousand weights: for long prompts, and whatever takes many steps.
class SmallModelTest : public ModelTest {
 protected:
  static void SetUpTestSuite() {
    bytes_ = SmallLlama().build();
    model_.emplace(load_model_from(bytes_));
  }

 private:
  static inline std::string bytes_;
};

/// A file of reference outputs.
struct Expected {
  Tokens input;
  std::vector<float> logits;
  Tokens greedy;
};

inline std::vector<std::int32_t> as_tokens(const std::vector<std::int64_t>& values) {
  Tokens tokens;
  for (const std::int64_t value : values) tokens.push_back(static_cast<std::int32_t>(value));
  return tokens;
}

inline Expected read_expected(const std::string& path) {
  Expected expected;
  Result<ByteSource> source = open_file(path);
  EXPECT_TRUE(source.ok()) << describe(source.status());
  if (!source.ok()) return expected;
  const Result<models::SafetensorsFile> file = models::SafetensorsFile::parse(*source);
  EXPECT_TRUE(file.ok()) << describe(file.status());
  if (!file.ok()) return expected;
  expected.input = as_tokens(file->read_i64(*source, "input_ids").value());
  expected.logits = file->read_f32(*source, "logits").value();
  if (file->find("greedy")) expected.greedy = as_tokens(file->read_i64(*source, "greedy").value());
  return expected;
}

/// Largest difference as a part of the expected values' range (max - min); infinite where sizes differ or a value is NaN.
inline double relative_to_range(std::span<const float> values, std::span<const float> expected) {
  if (values.size() != expected.size() || expected.empty()) return std::numeric_limits<double>::infinity();
  const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::fabs(static_cast<double>(values[i]) - static_cast<double>(expected[i])));
  }
  return worst / (static_cast<double>(*high) - static_cast<double>(*low));
}

}  // namespace rondo::tests
