// What the command says about itself, and how it refuses wrong usage: exit status 2 and one line.
#include <ostream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::usage_test {
namespace {

using testing::Arguments;
using testing::CommandResult;
using testing::expect_error;
using testing::run_command;

constexpr int kUsage = 2;

TEST(HelpTest, EachSubcommandExplainsItsFlags) {
  const CommandResult overview = run_command({"--help"});
  testing::expect_done(overview);
  EXPECT_EQ(overview.err, "");
  const std::vector<std::pair<std::string, std::vector<std::string>>> commands = {
      {"devices", {"--json"}},
      {"generate",
       {"--model", "--quantize", "--prompt", "--file", "--tokens", "--ctx", "--temp", "--top-k", "--top-p", "--min-p", "--repeat-penalty", "--repeat-last-n", "--stop", "--seed", "--ignore-eos", "--burst",
        "--parse-special", "--json"}},
      {"tokenize", {"--model", "--quantize", "--prompt", "--file", "--decode", "--no-bos", "--parse-special", "--json"}},
      {"eval", {"--model", "--quantize", "--graph", "--inputs", "--outputs", "--reference"}},
      {"bench", {"--model", "--quantize", "-p", "-n", "-d", "-r", "--burst", "md|csv|json"}},
      {"info", {"--model", "--quantize", "--ctx", "--json"}},
      {"graph", {"--model", "--quantize", "--step", "prefill|decode", "--rows", "--ctx", "text|dot|json"}},
  };
  const std::vector<std::string> everywhere = {"--device",    "--validate",   "--as",        "--kv-type",   "--kernel",
                                               "--no-fusion", "--segment-us", "--log-level", "--pipeline-cache"};
  for (const auto& [command, flags] : commands) {
    EXPECT_NE(overview.out.find(command), std::string::npos) << overview.out;
    const CommandResult help = run_command({command, "--help"});
    testing::expect_done(help);
    EXPECT_EQ(help.err, "");
    for (const std::string& flag : flags) EXPECT_NE(help.out.find(flag), std::string::npos) << command << " " << flag;
    for (const std::string& flag : everywhere)
      EXPECT_NE(help.out.find(flag), std::string::npos) << command << " " << flag;
  }
}

TEST(HelpTest, VersionIsOneLine) {
  const CommandResult version = run_command({"--version"});
  testing::expect_done(version);
  EXPECT_EQ(version.err, "");
  EXPECT_TRUE(std::regex_match(version.out, std::regex("rondo [0-9]+\\.[0-9]+\\.[0-9]+\n"))) << version.out;
}

/// Arguments that are refused, and what the line about it names.
struct Refused {
  std::string name;
  Arguments arguments;
  std::vector<std::string> parts;
};

void PrintTo(const Refused& refused, std::ostream* stream) {
  for (const std::string& argument : refused.arguments) *stream << argument << ' ';
}

std::string name_of(const ::testing::TestParamInfo<Refused>& info) { return info.param.name; }

/// `rondo generate` with a model, a text and `more`.
Arguments generate(const Arguments& more) {
  Arguments all = {"generate", "-m", RONDO_DEMO_MODEL, "-p", "x"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Arguments bench(const Arguments& more) {
  Arguments all = {"bench", "-m", RONDO_DEMO_MODEL};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class WrongUsageTest : public ::testing::TestWithParam<Refused> {};

TEST_P(WrongUsageTest, IsOneLineAndStatusTwo) {
  const CommandResult result = run_command(GetParam().arguments);
  expect_error(result, kUsage, GetParam().parts);
  EXPECT_EQ(result.err.find("not there yet"), std::string::npos) << result.err;
}

const std::string kModel = RONDO_DEMO_MODEL;

INSTANTIATE_TEST_SUITE_P(
    All, WrongUsageTest,
    ::testing::Values(
        Refused{"NoSubcommand", {}, {"subcommand"}}, Refused{"UnknownSubcommand", {"generat"}, {"'generat'"}},
        Refused{"UnknownFlag", generate({"--no-such-flag"}), {"--no-such-flag"}},
        Refused{"UnknownFlagOfDevices", {"devices", "-m", kModel}, {"-m"}},
        Refused{"TooMuch", generate({"surplus"}), {"surplus"}},
        Refused{"NoModelToGenerateFrom", {"generate", "-p", "x"}, {"--model"}},
        Refused{"NoModelToTokenize", {"tokenize", "-p", "x"}, {"--model"}},
        Refused{"NoModelToEvaluate", {"eval", "--inputs", "a", "--outputs", "b"}, {"--model", "--graph"}},
        Refused{"ModelAndGraph", {"eval", "-m", kModel, "--graph", "g.json", "--inputs", "a", "--outputs", "b"}, {"--model", "--graph"}},
        Refused{"KvTypeOfGraph", {"eval", "--graph", "g.json", "--kv-type", "f32", "--inputs", "a", "--outputs", "b"}, {"--kv-type", "--graph"}},
        Refused{"TimingsOfGraphReference", {"eval", "--graph", "g.json", "--inputs", "a", "--outputs", "b", "--reference", "--timings"}, {"--timings", "--reference"}},
        Refused{"NoModelToMeasure", {"bench"}, {"-m", "--random"}},
        Refused{"NoInputs", {"eval", "-m", kModel, "--outputs", "b"}, {"--inputs"}},
        Refused{"NoOutputs", {"eval", "-m", kModel, "--inputs", "a"}, {"--outputs"}},
        Refused{"NoPrompt", {"generate", "-m", kModel}, {"-p", "-f", "--tokens"}},
        Refused{"QuantizeWithoutModel", {"info", "--graph", "g.json", "--quantize", "q8_0"}, {"--quantize", "--model"}},
        Refused{"QuantizeRandom", {"bench", "--random", "15m", "--quantize", "q8_0"}, {"--quantize", "--model"}},
        Refused{"QuantizeKernels", {"bench", "--kernels", "--quantize", "q8_0"}, {"--quantize", "--model"}},
        Refused{"QuantizeToWhatIsNotThere", generate({"--quantize", "q4_K"}), {"--quantize", "'q4_K'", "q8_0, q5_1, q5_0, q4_1, q4_0, mxfp4"}},
        Refused{"QuantizeToNothing", generate({"--quantize", ""}), {"--quantize"}},
        Refused{"QuantizeCheck", {"check", "--quantize", "q8_0"}, {"--quantize"}},
        Refused{"QuantizeDevices", {"devices", "--quantize", "q8_0"}, {"--quantize"}},
        Refused{"QuantizeIsa", {"isa", "--quantize", "q8_0"}, {"--quantize"}},
        Refused{"NothingToTokenize", {"tokenize", "-m", kModel}, {"-p", "-f", "--decode"}},
        Refused{"TextAndFile", generate({"-f", "x.txt"}), {"--file", "--prompt"}},
        Refused{"TextAndTokens", generate({"--tokens", "1"}), {"--tokens", "--prompt"}},
        Refused{"FileAndTokens", {"generate", "-m", kModel, "-f", "x.txt", "--tokens", "1"}, {"--tokens", "--file"}},
        Refused{"TextAndIds", {"tokenize", "-m", kModel, "-p", "x", "--decode", "1"}, {"--decode", "--prompt"}},
        Refused{"FlagWithoutValue", {"generate", "-p", "x", "-m"}, {"--model"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Numbers, WrongUsageTest,
    ::testing::Values(
        Refused{"NegativeN", generate({"-n", "-1"}), {"-n"}},
        Refused{"WordForN", generate({"-n", "many"}), {"-n", "many"}},
        Refused{"FractionForN", generate({"-n", "1.5"}), {"-n"}},
        Refused{"NBeyond32Bits", generate({"-n", "4294967296"}), {"-n"}},
        Refused{"TrailingLetters", generate({"-n", "12x"}), {"-n"}}, Refused{"EmptyN", generate({"-n", ""}), {"-n"}},
        Refused{"NoContext", generate({"--ctx", "0"}), {"--ctx"}},
        Refused{"NegativeContext", generate({"--ctx", "-5"}), {"--ctx"}},
        Refused{"WordForContext", generate({"--ctx", "x"}), {"--ctx"}},
        Refused{"HugeContext", generate({"--ctx", "99999999999"}), {"--ctx"}},
        Refused{"NegativeSeed", generate({"--seed", "-1"}), {"--seed"}},
        Refused{"WordForSeed", generate({"--seed", "dice"}), {"--seed"}},
        Refused{"BurstOfNone", generate({"--burst", "0"}), {"--burst"}},
        Refused{"BurstTooLong", generate({"--burst", "65"}), {"--burst", "64"}},
        Refused{"WordForBurst", generate({"--burst", "x"}), {"--burst"}},
        Refused{"NegativeBurst", generate({"--burst", "-1"}), {"--burst"}},
        Refused{"TokensWithAHole", {"generate", "-m", kModel, "--tokens", "1,,2"}, {"--tokens", "1,,2"}},
        Refused{"TokensWithAnEnd", {"generate", "-m", kModel, "--tokens", "1,2,"}, {"--tokens"}},
        Refused{"WordsForTokens", {"generate", "-m", kModel, "--tokens", "one"}, {"--tokens"}},
        Refused{"TokenBeyond32Bits", {"generate", "-m", kModel, "--tokens", "4294967297"}, {"--tokens"}},
        Refused{"IdsWithSpaces", {"tokenize", "-m", kModel, "--decode", "1, 2"}, {"--decode"}},
        Refused{"EmptySeed", generate({"--seed", ""}), {"--seed"}},
        Refused{"SeedBeyond64Bits", generate({"--seed", "18446744073709551616"}), {"--seed"}},
        Refused{"EmptySegment", generate({"--segment-us", ""}), {"--segment-us"}},
        Refused{"EmptyBurst", generate({"--burst", ""}), {"--burst"}},
        Refused{"BenchBurst", bench({"--burst", "65"}), {"--burst"}},
        Refused{"NoSegment", generate({"--segment-us", "0"}), {"--segment-us"}},
        Refused{"NegativeSegment", generate({"--segment-us", "-1"}), {"--segment-us"}},
        Refused{"NanSegment", generate({"--segment-us", "nan"}), {"--segment-us"}},
        Refused{"EndlessSegment", generate({"--segment-us", "inf"}), {"--segment-us"}},
        Refused{"WordForSegment", generate({"--segment-us", "x"}), {"--segment-us"}},
        Refused{"BenchPrompt", bench({"-p", "1,x"}), {"-p"}}, Refused{"BenchNegative", bench({"-d", "-1"}), {"-d"}},
        Refused{"BenchHuge", bench({"-p", "1048577"}), {"-p"}}, Refused{"NoRepetition", bench({"-r", "0"}), {"-r"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Sampling, WrongUsageTest,
    ::testing::Values(
        Refused{"NegativeTemperature", generate({"--temp", "-1"}), {"--temp", "-1"}},
        Refused{"NanTemperature", generate({"--temp", "nan"}), {"--temp", "nan"}},
        Refused{"EndlessTemperature", generate({"--temp", "inf"}), {"--temp"}},
        Refused{"WordForTemperature", generate({"--temp", "hot"}), {"--temp", "hot"}},
        Refused{"EmptyTemperature", generate({"--temp", ""}), {"--temp"}},
        Refused{"NegativeTopK", generate({"--top-k", "-1"}), {"--top-k"}},
        Refused{"FractionForTopK", generate({"--top-k", "1.5"}), {"--top-k"}},
        Refused{"TopPAboveOne", generate({"--top-p", "2"}), {"--top-p", "'2'"}},
        Refused{"NoTopP", generate({"--top-p", "0"}), {"--top-p"}},
        Refused{"NanTopP", generate({"--top-p", "nan"}), {"--top-p"}},
        Refused{"MinPAboveOne", generate({"--min-p", "1.01"}), {"--min-p"}},
        Refused{"NegativeMinP", generate({"--min-p", "-0.1"}), {"--min-p"}},
        Refused{"NoPenalty", generate({"--repeat-penalty", "0"}), {"--repeat-penalty"}},
        Refused{"NanPenalty", generate({"--repeat-penalty", "nan"}), {"--repeat-penalty"}},
        Refused{"NegativeLastN", generate({"--repeat-last-n", "-1"}), {"--repeat-last-n"}},
        Refused{"EmptyPipelineCache", generate({"--pipeline-cache", ""}), {"--pipeline-cache"}},
        Refused{"EmptyTrace", generate({"--trace", ""}), {"--trace"}},
        Refused{"TimingsOfReference", {"eval", "-m", kModel, "--inputs", "a", "--outputs", "b", "--reference", "--timings"}, {"--timings", "--reference"}},
        Refused{"UnknownShape", {"bench", "--random", "7b"}, {"'7b'", "135m"}}, Refused{"UnknownType", {"bench", "--random", "15m", "--type", "q9"}, {"'q9'", "q8_0"}},
        Refused{"ShapeTooNarrowForKTypes", {"bench", "--random", "135m", "--type", "q4_k"}, {"--random 135m", "576 columns", "--type q4_k", "multiples of 256", "110m, 1b, 8b"}},
        Refused{"OnlySomeMatricesFit", {"bench", "--random", "15m", "--type", "q6_k"}, {"--random 15m", "288 columns", "--type q6_k"}},
        Refused{"TypeWithoutRandom", bench({"--type", "q8_0"}), {"--type", "--random"}},
        Refused{"RandomAndFile", bench({"--random", "15m"}), {"--random"}},
        Refused{"EmptyStop", generate({"--stop", ""}), {"--stop"}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Names, WrongUsageTest,
    ::testing::Values(Refused{"KvType", generate({"--kv-type", "x"}), {"--kv-type", "f16", "q8_0"}},
                      Refused{"EmptyKvType", generate({"--kv-type", ""}), {"--kv-type"}},
                      Refused{"KernelWithoutName", generate({"--kernel", "linear"}), {"--kernel", "OP=NAME"}},
                      Refused{"Profile", generate({"--as", "x"}), {"--as", "'x'", "baseline", "baseline-small"}},
                      Refused{"ProfileOfBench", bench({"--as=Baselines"}), {"--as", "'Baselines'", "baseline-small"}},
                      Refused{"EmptyProfile", generate({"--as", ""}), {"--as", "baseline-small"}},
                      Refused{"Step", {"graph", "-m", kModel, "--step", "x"}, {"--step", "prefill", "decode"}},
                      Refused{"GraphForm", {"graph", "-m", kModel, "--format", "svg"}, {"--format", "dot"}},
                      Refused{"NoRows", {"graph", "-m", kModel, "--step", "prefill", "--rows", "0"}, {"--rows"}},
                      Refused{"RowsOfDecode", {"graph", "-m", kModel, "--as", "baseline", "--rows", "8"}, {"--rows"}},
                      Refused{"LogLevel", generate({"--log-level", "loud"}), {"--log-level", "warn"}},
                      Refused{"BenchForm", bench({"-o", "xml"}), {"--output", "csv"}},
                      Refused{
                          "KvTypeOfTokenize", {"tokenize", "-m", kModel, "-p", "x", "--kv-type", "x"}, {"--kv-type"}},
                      Refused{"KvTypeOfDevices", {"devices", "--kv-type", "x"}, {"--kv-type"}}),
    name_of);

class ToComeTest : public ::testing::TestWithParam<Refused> {};

TEST_P(ToComeTest, SaysThatItIsNotThereYet) {
  const CommandResult result = run_command(GetParam().arguments);
  expect_error(result, kUsage, {"rondo: error: " + GetParam().parts.at(0) + " is not there yet"});
}

/// A text may look like a flag or command that is still to come.
TEST(TextTest, LooksLikeAFlagToCome) {
  for (const char* text : {"quantize", "--quantize=x", "chat"}) {
    const CommandResult result = run_command({"tokenize", "-m", RONDO_DEMO_MODEL, "-p", text});
    testing::expect_done(result);
    EXPECT_EQ(result.err, "");
  }
}

TEST(HelpTest, CommandsToComeAreNotListed) {
  const CommandResult overview = run_command({"--help"});
  for (const char* name : {"quantize", "chat"}) EXPECT_EQ(overview.out.find(std::string("  ") + name), std::string::npos) << name;
}

/// Runs `graph`, which needs no device with --as, with these flags before and behind its name.
CommandResult graph_with(const Arguments& before, const Arguments& behind) {
  Arguments all = before;
  const Arguments own = {"graph", "-m", RONDO_DEMO_MODEL, "--ctx", "64"};
  all.insert(all.end(), own.begin(), own.end());
  all.insert(all.end(), behind.begin(), behind.end());
  return run_command(all);
}

TEST(GlobalFlagsTest, StandBeforeOrAfterTheSubcommand) {
  const std::vector<Arguments> groups = {{"--as", "baseline"},           {"--as=baseline", "--no-fusion"},
                                         {"--as", "baseline", "--kv-type", "q8_0"}, {"--as", "baseline", "--segment-us", "20", "--log-level", "error"},
                                         {"--as", "baseline", "--kernel", "linear=tiled", "--kernel", "attention=split"},
                                         {"--as", "baseline", "--pipeline-cache", "none", "--device", "generate"}};
  std::vector<std::string> outputs;
  for (const Arguments& flags : groups) {
    const CommandResult before = graph_with(flags, {}), behind = graph_with({}, flags);
    testing::expect_done(before);
    EXPECT_EQ(before.out, behind.out);
    EXPECT_EQ(before.err, behind.err);
    outputs.push_back(before.out);
  }
  EXPECT_NE(outputs[0], outputs[1]);
  EXPECT_NE(outputs[0], outputs[2]);
  EXPECT_NE(outputs[0], outputs[4]);
  const CommandResult mixed = graph_with({"--as", "baseline", "--kernel", "linear=tiled"}, {"--kernel", "attention=split"});
  EXPECT_EQ(mixed.out, outputs[4]) << "both kernels count";
}

TEST(GlobalFlagsTest, OfWhichTheSubcommandKnowsNothingAreRefused) {
  expect_error(run_command({"--kv-type", "f32", "check", "--list"}), kUsage, {"--kv-type", "check"});
  expect_error(run_command({"--kernel", "linear=tiled", "check", "--list"}), kUsage, {"--kernel", "check"});
  expect_error(run_command({"--quarantine", "none", "check", "--list"}), kUsage, {"--quarantine", "check"});
  expect_error(run_command({"--json", "devices"}), kUsage, {"--json"});
  expect_error(run_command({"--kv-type", "f33", "info", "-m", kModel}), kUsage, {"--kv-type", "f33"});
  expect_error(run_command({"--kv-type", "f32", "bench", "--kernels"}), kUsage, {"--kv-type"});
  expect_error(graph_with({"--as", "baseline"}, {"--as", "baseline-small"}), kUsage, {"--as"});
  expect_error(run_command({"--device"}), kUsage, {"--device"});
}

INSTANTIATE_TEST_SUITE_P(
    All, ToComeTest,
    ::testing::Values(
        Refused{"Quantize", {"quantize", "a", "b", "q8_0"}, {"quantize"}},
        Refused{"Chat", {"chat", "-m", kModel}, {"chat"}}, Refused{"ChatHelp", {"--device", "0", "chat", "--help"}, {"chat"}}),
    name_of);

}  // namespace
}  // namespace rondo::usage_test
