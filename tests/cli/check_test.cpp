// rondo check: selection, reports and refusals. That it finds what is wrong is tested with sabotaged kernels (tests/device).
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "graph/operator.h"
#include "tests/support/command_runner.h"

namespace rondo::check_test {
namespace {

using nlohmann::json;
using testing::CommandResult;
using testing::expect_error;

TEST(CheckCommandTest, JsonNamesEveryCaseWithItsBound) {
  const CommandResult result = testing::run_device_command({"check", "--op", "gelu", "--op", "add", "--json"});
  testing::expect_done(result);
  const json document = testing::parse_output(result);
  EXPECT_TRUE(document.at("device").at("name").is_string());
  EXPECT_EQ(document.at("failed"), 0);
  EXPECT_EQ(document.at("unsupported"), 0);
  EXPECT_GE(document.at("pipelines"), 2);
  EXPECT_EQ(document.at("passed"), document.at("cases").size());
  EXPECT_TRUE(document.at("left_out").is_number_unsigned());
  std::set<std::string> ops, values;
  for (const json& one : document.at("cases")) {
    ops.insert(one.at("op"));
    values.insert(one.at("values"));
    EXPECT_EQ(one.at("kernel"), "baseline");
    EXPECT_EQ(one.at("status"), "passed");
    EXPECT_LE(one.at("nmse").get<double>(), one.at("bound").get<double>()) << one;
    EXPECT_TRUE(one.at("case").get<std::string>().starts_with(one.at("op").get<std::string>() + " ")) << one;
  }
  EXPECT_EQ(ops, (std::set<std::string>{"add", "gelu"}));
  EXPECT_TRUE(values.contains("integer numbers") && values.contains("random numbers") && values.contains("large numbers") && values.contains("nan in input 0") && values.contains("infinity in input 1"));
}

TEST(CheckCommandTest, TheTableEndsWithTheCounts) {
  const CommandResult result = testing::run_device_command({"check", "--op", "rms_norm"});
  testing::expect_done(result);
  EXPECT_NE(result.out.find("| rms_norm/baseline "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" passed, 0 failed, 0 unsupported; "), std::string::npos) << result.out;
}

TEST(CheckCommandTest, TakesACaseInItsOwnWords) {
  const CommandResult result = testing::run_device_command({"check", "--kernel", "split", "--seed", "9", "--case", "attention query (1, 2, 5, 24), key (1, 1, 19, 24), value (1, 1, 19, 8), causal", "--json"});
  testing::expect_done(result);
  for (const json& one : testing::parse_output(result).at("cases")) EXPECT_EQ(one.at("kernel"), "split");
}

/// A device without 16-bit storage passes without the cases that need it, and says so.
TEST(CheckCommandTest, WithoutSixteenBitStorageCasesAreLeftOut) {
  const CommandResult result = testing::run_device_command({"check", "--op", "add", "--as", "baseline"});
  testing::expect_done(result);
  EXPECT_NE(result.out.find("runs with activations in f16, for which this device has no 16-bit storage"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" passed, 0 failed, 0 unsupported; "), std::string::npos) << result.out;
  const CommandResult one = testing::run_device_command({"check", "--case", "add a f16 (3), b f16 (3)", "--as", "baseline"});
  testing::expect_done(one);
  EXPECT_NE(one.out.find("unsupported: add/baseline: [add] activations in f16 (a) need 16-bit storage"), std::string::npos) << one.out;
}

/// A kernel that refuses all of its cases is named with its reason, and is no failure.
TEST(CheckCommandTest, AKernelThatCanNotRunIsUnsupported) {
  const CommandResult result = testing::run_device_command({"check", "--kernel", "attention/wide", "--case", "attention query (1, 2, 5, 20), key (1, 1, 19, 20), value (1, 1, 19, 20)"});
  testing::expect_done(result);
  EXPECT_NE(result.out.find("unsupported: attention/wide: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("0 passed, 0 failed, 1 unsupported"), std::string::npos) << result.out;
}

TEST(CheckCommandTest, TheListNeedsNoDevice) {
  testing::CommandInput input;
  input.arguments = {"check", "--list"};
  input.environment = {{"VK_DRIVER_FILES", "/nonexistent"}, {"VK_ICD_FILENAMES", "/nonexistent"}};
  const CommandResult result = testing::run_command(input);
  testing::expect_done(result);
  for (std::size_t i = 0; i < graph::kOpCount; ++i) {
    const graph::Operator& table = graph::operator_of(static_cast<graph::Op>(i));
    for (const char* kernel : table.kernels) {
      EXPECT_NE(result.out.find(std::string(table.name) + "/" + kernel + " with "), std::string::npos) << table.name << "/" << kernel << " is never checked";
    }
  }
  EXPECT_NE(result.out.find("linear/tiled with random numbers, bound 1e-11: linear input "), std::string::npos);
}

TEST(CheckCommandTest, WrongUsageIsRefused) {
  expect_error(testing::run_command({"check", "--op", "relux"}), 2, {"there is no operator 'relux'"});
  expect_error(testing::run_command({"check", "--op", "relu", "--kernel", "tiled"}), 2, {"no kernel of relu is called tiled"});
  expect_error(testing::run_command({"check", "--case", "relu input"}), 2, {"case 'relu input'", "the shape of 'input'"});
  expect_error(testing::run_command({"check", "--case", "relu input (3), axis 1"}), 2, {"[relu] has no attributes, but 'axis' is given"});
  expect_error(testing::run_command({"check", "--seed", "x"}), 2, {"--seed"});
  expect_error(testing::run_command({"check", "--repeats", "0"}), 2, {"--repeats"});
  expect_error(testing::run_command({"check", "--repeats", "2", "--simulate"}), 2, {"--repeats"});
  expect_error(testing::run_command({"check", "--case", ""}), 2, {"--case"});
  expect_error(testing::run_command({"check", "--op", "add", "--case", "relu input (3)"}), 2, {"case 'relu input (3)' is not one of add"});
  expect_error(testing::run_command({"check", "--kernel", "baseline", "--kernel", "foo"}), 2, {"is called foo"});
  expect_error(testing::run_command({"check", "--list", "--json"}), 2, {"--json"});
  expect_error(testing::run_command({"check", "--no-fusion"}), 2, {"--no-fusion"});
}

}  // namespace
}  // namespace rondo::check_test
