// Choices by measurement: what Model::wait_tuned gives is used where it is of this device, ignored in one line where it is not, and
// tokens stay right.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/model_loader.h"
#include "models/tuning.h"
#include "runtime/pipeline_cache.h"
#include "tests/device/faults.h"
#include "tests/device/greedy_reference.h"
#include "tests/device/sabotages.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::tuning_test {
namespace {

/// What is chosen for each choice that a model's steps make.
using Chosen = std::map<std::string, std::string>;

class TuningTest : public ::testing::Test {
 protected:
  TuningTest() : device_(make_second_device(test_runtime_device(), [this](runtime::Device::Parts& parts) {
                   parts.log = [this](LogLevel level, std::string_view message) {
                     if (level <= LogLevel::kWarn) log_.emplace_back(message);
                   };
                 })) {}

  Model load(const std::string& tuning = "") {
    ModelOptions options;
    options.tuning = tuning;
    return load_model(tiny_path(), options, device_);
  }

  static Chosen chosen(const Model& model) {
    Chosen labels;
    for (const models::PlannedStep& step : model.internal()->model().plan->steps) {
      for (const runtime::Dispatch& dispatch : step.lowered.program.dispatches) {
        if (!dispatch.choice.empty()) labels[dispatch.choice] = dispatch.label;
      }
    }
    return labels;
  }

  static void expect_right_tokens(const Model& model) {
    Session session = make_session(model, without_model_stops());
    const Tokens input = made_up_tokens(30, model.info().n_vocab);
    const Tokens made = continue_with(session, input, 6);
    ASSERT_EQ(made.size(), 6u);
    expect_interpreters_choice(*model.internal()->model().checkpoint, graph::Type::kF16, input, made);
  }

  /// One line of the log, about tuning and `what`; nothing of the model is different.
  void expect_ignored(const std::string& text, const std::string& what, const Chosen& usual) {
    log_.clear();
    const Model model = load(text);
    EXPECT_EQ(chosen(model), usual) << what;
    ASSERT_EQ(log_.size(), 1u) << what;
    EXPECT_EQ(log_[0].rfind("tuning: ", 0), 0u) << log_[0];
    EXPECT_NE(log_[0].find(what), std::string::npos) << log_[0];
    EXPECT_NE(log_[0].find("kernels are chosen without it"), std::string::npos) << log_[0];
    EXPECT_EQ(log_[0].find('\n'), std::string::npos) << log_[0];
  }

  std::vector<std::string> log_;
  Device device_;
};

TEST_F(TuningTest, WhatIsMeasuredIsUsedAtOnceAndLater) {
  Model model = load();
  std::size_t n_heard = 0, n_total = 0;
  const Result<std::string> text = model.wait_tuned([&](std::size_t done, std::size_t total) {
    EXPECT_EQ(done, n_heard++);
    n_total = total;
  });
  RONDO_ASSERT_OK(text.status());
  EXPECT_GE(n_heard, n_total - 1) << "the last one looks at what was chosen, if anything was";
  EXPECT_LE(n_heard, n_total);
  expect_right_tokens(model);
  const Model later = load(*text);
  EXPECT_EQ(chosen(later), chosen(model));
  EXPECT_EQ(log_, std::vector<std::string>());
}

TEST_F(TuningTest, EachChoiceIsItsOwn) {
  const Chosen usual = chosen(load());
  models::TunedKernels tuned;
  std::string changed;
  for (const auto& [choice, label] : usual) {
    if (choice.rfind("linear q4_0", 0) == 0 && changed.empty()) changed = choice;
  }
  ASSERT_FALSE(changed.empty());
  const std::string other = usual.at(changed).find(" tiled ") != std::string::npos ? "vector" : "tiled";
  tuned[changed] = other;
  const Model model = load(models::write_tuning(device_.internal(), tuned));
  Chosen expected = usual;
  expected[changed] = "linear " + other + " q4_0";
  EXPECT_EQ(chosen(model), expected);
  expect_right_tokens(model);
  EXPECT_EQ(log_, std::vector<std::string>());
}

/// Kernels that can't do it, and choices that nobody makes.
TEST_F(TuningTest, WhatCantBeIsChosenAsEver) {
  if (device_.internal().caps().half_dot) GTEST_SKIP() << "half_tiled can run here";
  const Chosen usual = chosen(load());
  models::TunedKernels tuned{{"linear q4_0 f32 0 x 0 x 0", "tiled"}};
  for (const auto& [choice, label] : usual) {
    if (choice.rfind("linear q4_0", 0) == 0) tuned[choice] = "half_tiled";
  }
  ASSERT_GT(tuned.size(), 1u);
  EXPECT_EQ(chosen(load(models::write_tuning(device_.internal(), tuned))), usual);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("'half_tiled' does not fit 'linear q4_0 "), std::string::npos) << log_[0];
  EXPECT_NE(log_[0].find("and " + std::to_string(tuned.size() - 2) + " more"), std::string::npos) << log_[0];
}

TEST_F(TuningTest, WhatIsOfOthersOrMutatedIsIgnoredInOneLine) {
  const Chosen usual = chosen(load());
  models::TunedKernels tuned;
  for (const auto& [choice, label] : usual) tuned[choice] = label.find(" tiled ") != std::string::npos ? "vector" : "tiled";
  const std::string text = models::write_tuning(device_.internal(), tuned);
  ASSERT_NE(chosen(load(text)), usual);
  const auto with = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return changed.replace(at, from.size(), to);
  };
  const std::string key = device_.internal().pipeline_cache().key();
  expect_ignored(with(key, "0123456789abcdef"), "of device and driver 0123456789abcdef, not of " + key, usual);
  expect_ignored(with(key, "two\\nlines"), "of device and driver two\\x0alines", usual);
  expect_ignored(with("\"rondo\"", "\"Rondo\""), "rondo", usual);
  expect_ignored(with("\"rondo_tuning\": 1", "\"rondo_tuning\": 2"), "'rondo_tuning' is 2 but this rondo knows 1", usual);
  expect_ignored(with("\"choices\": {", "\"choices\": [{"), "", usual);
  expect_ignored(text.substr(0, text.size() / 2), "", usual);
  expect_ignored("[]", "", usual);
  expect_ignored(std::string("\0\xff{", 3), "", usual);
  expect_ignored(text + std::string(2u << 20, ' '), "bytes, more than", usual);
  const std::string hash = text.substr(text.find("\"rondo\": \"") + 10, 16);
  expect_ignored(with(hash, "ffffffffffffffff"), "of the kernels ffffffffffffffff, not of " + hash, usual);
  const std::string first = "\"" + tuned.begin()->second + "\"";
  expect_ignored(with(first, "7"), "is no text", usual);
  expect_ignored(with(first, "\"nonsense\""), "'nonsense' is no kernel of " + tuned.begin()->first.substr(0, tuned.begin()->first.find(' ')), usual);
  expect_ignored(with(first, "\"\""), "'' is no kernel of", usual);
  expect_ignored(with("\"" + tuned.begin()->first, "\"x" + tuned.begin()->first), "is of no operator", usual);
}

TEST_F(TuningTest, ATunedKernelThatCantBeMadeIsReplaced) {
  const Chosen usual = chosen(load());
  models::TunedKernels tuned;
  for (const auto& [choice, label] : usual) {
    if (choice.rfind("linear", 0) == 0 && label.find(" tiled ") != std::string::npos) GTEST_SKIP() << "this device chooses tiles by itself";
    if (choice.rfind("linear", 0) == 0) tuned[choice] = "tiled";
  }
  const std::string text = models::write_tuning(device_.internal(), tuned);
  const ReplacedShader refused(device_.internal(), runtime::Shader::linear_tiled);
  const Model model = load(text);
  EXPECT_EQ(chosen(model), usual);
  ASSERT_FALSE(log_.empty());
  for (const std::string& line : log_) EXPECT_NE(line.find("others take the place of 'linear"), std::string::npos) << line;
  expect_right_tokens(model);
}

TEST_F(TuningTest, IsOfModelsThatAreThereAndContinueTexts) {
  Result<Model> model = Model::create(device_, open_file(tiny_path()).value());
  RONDO_ASSERT_OK(model.status());
  expect_failure(model->wait_tuned().status(), StatusCode::kFailedPrecondition, {"tuning", "not loaded"});
  Model moved = std::move(*model);
  expect_failure(model->wait_tuned().status(), StatusCode::kFailedPrecondition, {"moved from"});
}

}  // namespace
}  // namespace rondo::tests::tuning_test
