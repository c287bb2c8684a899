// Ctrl-C: the command ends soon, with status 130 and nothing half printed, whatever it was doing.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::interrupt_test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::Interrupt;

constexpr int kInterrupted = 130;

/// Runs the command, interrupts it, and expects that it ends soon. The contract says half a second. On a busy
/// machine that means little, so the bound that counts is on CPU time, where a CPU driver on four cores may use two
/// seconds of it in half a second.
CommandResult interrupt(const Arguments& arguments, const Interrupt& when) {
  CommandInput input;
  input.arguments = arguments;
  input.interrupt = when;
  input.timeout = std::chrono::seconds(30);
  const CommandResult result = testing::run_command(input);
  EXPECT_EQ(result.exit_status, kInterrupted) << result.description();
  EXPECT_LT(result.cpu_seconds_after_interrupt, 2.0) << result.description();
  EXPECT_LT(result.seconds_after_interrupt, 20.0) << result.description();
  EXPECT_EQ(result.err.find("error"), std::string::npos) << result.err;
  std::cout << "ended " << static_cast<int>(result.seconds_after_interrupt * 1000) << " ms after SIGINT, having used "
            << static_cast<int>(result.cpu_seconds_after_interrupt * 1000) << " ms of CPU time\n";
  return result;
}

class InterruptTest : public ::testing::Test {
 protected:
  /// The demo model, made to take more text than anyone waits for.
  const std::string& long_model() {
    if (model_.empty()) {
      model_ = folder_.write("long.gguf", testing::with_gguf_scalar(testing::read_whole_file(RONDO_DEMO_MODEL),
                                                                    "llama.context_length", std::uint32_t{1} << 20));
    }
    return model_;
  }
  Arguments generate(const Arguments& more) {
    Arguments all = {"generate", "-m",   long_model(),   "-n",          "1000000",
                     "--ctx",    "4096", "--ignore-eos", "--log-level", "info"};
    all.insert(all.end(), more.begin(), more.end());
    return testing::device_arguments(all);
  }
  std::string long_prompt() {
    return folder_.write("prompt.txt", repeated("And it came to pass in those days, ", 440));
  }
  static std::string repeated(const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  }

  testing::TemporaryFolder folder_;

 private:
  std::string model_;
};

TEST_F(InterruptTest, WhileLoading) {
  for (const int delay_ms : {0, 10, 30, 60, 90}) {
    for (const Arguments& more : {Arguments{}, Arguments{"--json"}}) {
      Arguments arguments = {"-p", "And"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const CommandResult result = interrupt(generate(arguments), {false, "", milliseconds(delay_ms)});
      // On a fast machine it may have begun to generate.
      if (more.empty() || result.out.empty()) continue;
      EXPECT_EQ(testing::parse_output(result).value("stop", ""), "interrupted");
    }
  }
}

TEST_F(InterruptTest, WhileReadingThePrompt) {
  const CommandResult result =
      interrupt(generate({"-f", long_prompt(), "--json"}), {false, "context of 4096 tokens", milliseconds(100)});
  const json document = testing::parse_output(result);
  EXPECT_EQ(document.value("stop", ""), "interrupted");
  if (!document.at("tokens").empty()) GTEST_SKIP() << "this device had read the prompt before Ctrl-C came";
}

TEST_F(InterruptTest, WhileGeneratingText) {
  const CommandResult result = interrupt(generate({"-p", "And"}), {true, "", milliseconds(300)});
  EXPECT_FALSE(result.out.empty());
  EXPECT_EQ(result.out.back(), '\n');
  EXPECT_NE(result.err.find("ended by interrupted"), std::string::npos) << result.err;
}

TEST_F(InterruptTest, WhileGeneratingJson) {
  const CommandResult result =
      interrupt(generate({"-p", "And", "--json"}), {false, "context of 4096 tokens", milliseconds(700)});
  const json document = testing::parse_output(result);
  EXPECT_EQ(document.value("stop", ""), "interrupted");
  EXPECT_GT(document.at("tokens").size(), 0U);
}

TEST_F(InterruptTest, InTheLongestBurst) {
  const CommandResult result = interrupt(generate({"-p", "And", "--burst", "64"}), {true, "", milliseconds(50)});
  EXPECT_FALSE(result.out.empty());
}

TEST_F(InterruptTest, WhileMeasuring) {
  const CommandResult result = interrupt(
      testing::device_arguments({"bench", "-m", long_model(), "-p", "2048", "-n", "1024", "-d", "2048", "-r", "100"}),
      {false, "", milliseconds(800)});
  EXPECT_EQ(result.out, "");
}

TEST_F(InterruptTest, WhileTokenizing) {
  const std::string file = folder_.write("text.txt", repeated("the quick brown fox jumps over ", 200'000));
  const CommandResult result =
      interrupt({"tokenize", "-m", RONDO_DEMO_MODEL, "-f", file, "--json"}, {false, "", milliseconds(200)});
  EXPECT_EQ(result.out, "");
}

TEST_F(InterruptTest, WhileEvaluating) {
  constexpr std::uint64_t kRows = 20, kTokens = 4000;
  const std::vector<std::int64_t> ids(kRows * kTokens, 300);
  const models::SafetensorsTensor tensor{
      "input_ids", models::SafetensorsDtype::kI64, {kRows, kTokens}, std::as_bytes(std::span(ids))};
  ASSERT_TRUE(models::write_safetensors(folder_.path("in.safetensors"), {&tensor, 1}).ok());
  Arguments arguments = {"eval",
                         "-m",
                         long_model(),
                         "--inputs",
                         folder_.path("in.safetensors"),
                         "--outputs",
                         folder_.path("out.safetensors")};
  const std::vector<std::string> before = folder_.names();
  interrupt(testing::device_arguments(arguments), {false, "", milliseconds(600)});
  arguments.emplace_back("--reference");
  interrupt(arguments, {false, "", milliseconds(300)});
  EXPECT_EQ(folder_.names(), before) << "nothing may be left behind";
}

}  // namespace
}  // namespace rondo::interrupt_test
