// rondo generate: what it prints, and that no flag about speed changes a token.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "models/utf8.h"
#include "tests/support/command_runner.h"
#include "tests/support/small_vocabulary.h"
#include "tests/support/test_data.h"

namespace rondo::generate_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;
using testing::run_device_command;
using Ids = std::vector<std::int32_t>;

const std::string kModel = RONDO_DEMO_MODEL;
const std::string kRandomModel = testing::tests_data_path("tiny-Q4_0.gguf");

/// Greedy, unless `more` asks for a temperature.
CommandResult generate(const Arguments& more, const std::string& model = kModel) {
  Arguments all = {"generate", "-m", model};
  const bool asks = std::any_of(more.begin(), more.end(), [](const std::string& flag) { return flag.starts_with("--temp"); });
  if (!asks) all.insert(all.end(), {"--temp", "0"});
  all.insert(all.end(), more.begin(), more.end());
  return run_device_command(all);
}

json generate_json(Arguments more, const std::string& model = kModel) {
  more.emplace_back("--json");
  const CommandResult result = generate(more, model);
  testing::expect_done(result);
  return testing::parse_output(result);
}

Ids tokens_of(const json& document) { return document.at("tokens").get<Ids>(); }

std::string list_of(const Ids& ids) {
  std::string list;
  for (const std::int32_t id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  return list;
}

bool is_utf8(std::string_view text) {
  models::Utf8Stream stream;
  const std::string valid = stream.add(text);
  return valid + stream.finish() == text;
}

TEST(GenerateTest, JsonHasEveryField) {
  const json document =
      generate_json({"-p", "And Jesus answered", "-n", "5", "--temp=0", "--seed", "18446744073709551615"});
  EXPECT_EQ(document.size(), 10U);
  EXPECT_EQ(document.at("prompt_tokens").at(0), 1);
  EXPECT_EQ(document.at("tokens").size(), 5U);
  EXPECT_NE(document.at("text"), "");
  EXPECT_EQ(document.at("stop"), "length");
  EXPECT_EQ(document.at("seed"), 18446744073709551615ULL);
  for (const char* field : {"load_s", "first_token_s", "prefill_tps", "decode_tps", "host_us_per_token"}) {
    ASSERT_TRUE(document.at(field).is_number()) << field;
    EXPECT_GT(document.at(field).get<double>(), 0) << field;
  }
  EXPECT_GE(document.at("first_token_s").get<double>(), document.at("load_s").get<double>());
}

TEST(GenerateTest, StreamsTheTextThatJsonHolds) {
  const json document = generate_json({"-p", "And Jesus answered", "-n", "64"});
  const std::string text = document.at("text");
  EXPECT_EQ(tokens_of(document).size(), 64U);
  const CommandResult streamed = generate({"-p", "And Jesus answered", "-n", "64"});
  testing::expect_done(streamed);
  EXPECT_EQ(streamed.out, text + "\n");
  EXPECT_NE(streamed.err.find("64 of output"), std::string::npos) << streamed.err;
  EXPECT_NE(text.find("said unto him"), std::string::npos) << "the demo model has read the King James Bible: " << text;
  const json seeded = generate_json({"-p", "And Jesus answered", "-n", "64", "--seed", "7"});
  EXPECT_EQ(seeded.at("seed"), 7);
  EXPECT_EQ(seeded.at("tokens"), document.at("tokens")) << "greedy takes no random number";
}

TEST(GenerateTest, TextIsUtf8WhateverTheModelSays) {
  // Random weights produce byte tokens that are no UTF-8.
  const json document = generate_json({"-p", "x", "-n", "64"}, kRandomModel);
  const CommandResult streamed = generate({"-p", "x", "-n", "64"}, kRandomModel);
  EXPECT_TRUE(is_utf8(streamed.out));
  EXPECT_NE(streamed.out.find("\xef\xbf\xbd"), std::string::npos)
      << "this model's text no longer tests anything: " << streamed.out;
  EXPECT_EQ(streamed.out, document.at("text").get<std::string>() + "\n");
}

TEST(GenerateTest, NoneOrOneToken) {
  const json none = generate_json({"-p", "And", "-n", "0"});
  EXPECT_EQ(tokens_of(none), Ids());
  EXPECT_EQ(none.at("text"), "");
  EXPECT_EQ(none.at("stop"), "length");
  const json one = generate_json({"-p", "And Jesus answered", "-n", "1"});
  EXPECT_EQ(tokens_of(one), Ids({tokens_of(generate_json({"-p", "And Jesus answered", "-n", "3"})).at(0)}));
  const CommandResult nothing = generate({"-p", "And", "-n", "0"});
  testing::expect_done(nothing);
  EXPECT_EQ(nothing.out, "\n");
}

TEST(GenerateTest, PromptsAreTokenizedAsByTokenize) {
  const testing::TemporaryFolder folder;
  const std::string bytes("And\0\xff\xfe\r\n", 8);
  const std::string file = folder.write("prompt.txt", bytes);
  const Ids from_file = generate_json({"-f", file, "-n", "1"}).at("prompt_tokens").get<Ids>();
  const json tokenized =
      testing::parse_output(testing::run_command(Arguments{"tokenize", "-m", kModel, "-f", file, "--json"}));
  EXPECT_EQ(from_file, tokens_of(tokenized));
  EXPECT_EQ(from_file.size(), 7U) << "NUL, CR and bytes that are not UTF-8 are tokens of their own";
  const json text = generate_json({"-p", "And</s>", "-n", "1"}),
             special = generate_json({"-p", "And</s>", "-n", "1", "--parse-special"});
  EXPECT_EQ(special.at("prompt_tokens").size(), 3U);
  EXPECT_EQ(special.at("prompt_tokens").at(2), 2);
  EXPECT_GT(text.at("prompt_tokens").size(), 3U);
}

TEST(GenerateTest, TokensAreTakenAsTheyAre) {
  const json text = generate_json({"-p", "And Jesus answered", "-n", "8"});
  const Ids prompt = text.at("prompt_tokens").get<Ids>();
  const json same = generate_json({"--tokens", list_of(prompt), "-n", "8"});
  EXPECT_EQ(same.at("prompt_tokens"), text.at("prompt_tokens"));
  EXPECT_EQ(same.at("tokens"), text.at("tokens"));
  const Ids without_bos(prompt.begin() + 1, prompt.end());
  EXPECT_EQ(generate_json({"--tokens", list_of(without_bos), "-n", "1"}).at("prompt_tokens").get<Ids>(), without_bos);
}

TEST(GenerateTest, BosAndSpaceFollowTheFile) {
  const testing::TemporaryFolder folder;
  const std::string model = testing::read_whole_file(kModel);
  const std::string without_bos =
      folder.write("bos.gguf", testing::with_gguf_scalar(model, "tokenizer.ggml.add_bos_token", false));
  const std::string without_space =
      folder.write("space.gguf", testing::with_gguf_scalar(model, "tokenizer.ggml.add_space_prefix", false));
  const Ids usual = generate_json({"-p", "And", "-n", "1"}).at("prompt_tokens").get<Ids>();
  EXPECT_EQ(generate_json({"-p", "And", "-n", "1"}, without_bos).at("prompt_tokens").get<Ids>(),
            Ids(usual.begin() + 1, usual.end()));
  EXPECT_EQ(generate_json({"-p", " And", "-n", "1"}, without_space).at("prompt_tokens").get<Ids>(), usual);
  EXPECT_NE(generate_json({"-p", "And", "-n", "1"}, without_space).at("prompt_tokens").get<Ids>(), usual);
  EXPECT_EQ(generate_json({"-p", "", "-n", "1"}).at("prompt_tokens").get<Ids>(), Ids{1});
  expect_error(generate({"-p", ""}, without_bos), 1, {"empty", "BOS"});
}

TEST(GenerateTest, ContextEndsTheText) {
  const json all = generate_json({"-p", "And Jesus answered", "-n", "12"});
  const std::size_t n_prompt = all.at("prompt_tokens").size();
  const json cut =
      generate_json({"-p", "And Jesus answered", "-n", "4294967295", "--ctx", std::to_string(n_prompt + 6)});
  EXPECT_EQ(cut.at("stop"), "context");
  Ids expected = tokens_of(all);
  expected.resize(6);
  EXPECT_EQ(tokens_of(cut), expected);
  const json full = generate_json({"-p", "And Jesus answered", "-n", "3", "--ctx", std::to_string(n_prompt)});
  EXPECT_EQ(full.at("stop"), "context");
  EXPECT_EQ(tokens_of(full), Ids());
  // A length that is reached exactly with the context is a length.
  EXPECT_EQ(tokens_of(generate_json({"-p", "And Jesus answered", "-n", "6", "--ctx", std::to_string(n_prompt + 6)})),
            expected);
}

TEST(GenerateTest, EndOfTextStopsUnlessIgnored) {
  const json all = generate_json({"-p", "And Jesus answered", "-n", "24"});
  const Ids tokens = tokens_of(all);
  // The same model with the eleventh token as its end of text.
  const std::int32_t eos = tokens.at(10);
  const testing::TemporaryFolder folder;
  const std::string model = folder.write(
      "eos.gguf", testing::with_gguf_scalar(testing::read_whole_file(kModel), "tokenizer.ggml.eos_token_id",
                                            static_cast<std::uint32_t>(eos)));
  const Ids kept(tokens.begin(), std::find(tokens.begin(), tokens.end(), eos));
  for (const char* burst : {"1", "7", "auto"}) {
    const json stopped = generate_json({"-p", "And Jesus answered", "-n", "24", "--burst", burst}, model);
    EXPECT_EQ(stopped.at("stop"), "eos");
    EXPECT_EQ(tokens_of(stopped), kept) << "burst " << burst;
  }
  const json ignored = generate_json({"-p", "And Jesus answered", "-n", "24", "--ignore-eos"}, model);
  EXPECT_EQ(ignored.at("stop"), "length");
  EXPECT_EQ(tokens_of(ignored), tokens);
}

TEST(GenerateTest, AnotherFilesTokenizerReadsTheText) {
  const testing::TemporaryFolder folder;
  testing::GgufWriter writer;
  testing::write_byte_tokenizer(writer, 300);
  const std::string vocabulary = folder.write("bytes.gguf", writer.build());
  const std::string bundled = testing::tests_data_path("qwen2");  // has no tokenizer.json
  expect_error(generate({"-p", "ab"}, bundled), 1, {"tokenizer.json", "--tokens", "--tokenizer"});
  expect_error(generate({"-p", "ab", "--tokenizer", vocabulary}, bundled), 1, {"bytes.gguf", "300", "256"});
  const json own = generate_json({"-p", "ab", "-n", "1"});
  const json other = generate_json({"-p", "ab", "-n", "1", "--tokenizer", vocabulary});
  EXPECT_NE(own.at("prompt_tokens"), other.at("prompt_tokens"));
  EXPECT_EQ(other.at("prompt_tokens").get<Ids>(), (Ids{1, 3 + 0xe2, 3 + 0x96, 3 + 0x81, 3 + 'a', 3 + 'b'}));
  const json ids = testing::parse_output(testing::run_command(Arguments{"tokenize", "-m", bundled, "--tokenizer", vocabulary, "-p", "ab", "--json"}));
  EXPECT_EQ(ids.at("tokens"), other.at("prompt_tokens"));
}

/// Flags that change how the work is done, and nothing else.
struct Way {
  std::string name;
  Arguments flags;
};

void PrintTo(const Way& way, std::ostream* stream) {
  for (const std::string& flag : way.flags) *stream << flag << ' ';
}

std::string name_of(const ::testing::TestParamInfo<Way>& info) { return info.param.name; }

class SameTokensTest : public ::testing::TestWithParam<Way> {
 protected:
  static json usual() {
    static const json document = generate_json(prompt());
    return document;
  }
  static Arguments prompt() {
    return {"-p", "In the beginning God created the heaven and the earth. And the earth", "-n", "40", "--temp", "0"};
  }
};

TEST_P(SameTokensTest, AsWithoutTheFlags) {
  Arguments flags = prompt();
  flags.insert(flags.end(), GetParam().flags.begin(), GetParam().flags.end());
  const json document = generate_json(flags);
  EXPECT_EQ(tokens_of(document).size(), 40U);
  EXPECT_EQ(document.at("tokens"), usual().at("tokens"));
  EXPECT_EQ(document.at("text"), usual().at("text"));
}

INSTANTIATE_TEST_SUITE_P(
    All, SameTokensTest,
    ::testing::Values(Way{"Burst1", {"--burst", "1"}}, Way{"Burst7", {"--burst", "7"}},
                      Way{"Burst64", {"--burst", "64"}}, Way{"KvF32", {"--kv-type", "f32"}},
                      Way{"KvF16", {"--kv-type", "f16"}}, Way{"KvAuto", {"--kv-type", "auto"}}, Way{"KvQ8", {"--kv-type", "q8_0"}},
                      Way{"NoFusion", {"--no-fusion"}}, Way{"LinearSubgroup", {"--kernel", "linear=subgroup"}}, Way{"LinearVector", {"--kernel", "linear=vector"}},
                      Way{"LinearWide", {"--kernel", "linear=wide"}}, Way{"LinearTiled", {"--kernel", "linear=tiled"}},
                      Way{"AttentionSplit", {"--kernel", "attention=split"}},
                      Way{"AttentionTiled", {"--kernel", "attention=tiled"}}, Way{"AttentionWide", {"--kernel", "attention=wide"}}, Way{"AttentionRegisters", {"--kernel", "attention=registers"}},
                      Way{"BothKernels", {"--kernel", "linear=vector", "--kernel", "attention=tiled", "--no-fusion"}},
                      Way{"ShortSegments", {"--segment-us", "1"}}, Way{"SmallContext", {"--ctx", "80"}},
                      Way{"NoPipelineCache", {"--pipeline-cache", "none"}}),
    name_of);

/// Sampling at the defaults of the contract, but for the seed.
Arguments sampled(const std::string& seed, const Arguments& more = {}) {
  Arguments flags = {"-p", "And it came to pass", "-n", "48", "--temp", "0.8", "--seed", seed};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST(SamplingTest, TheSeedAloneDecides) {
  const json first = generate_json(sampled("1"));
  EXPECT_NE(first.at("tokens"), generate_json(sampled("2")).at("tokens"));
  EXPECT_NE(first.at("tokens"), generate_json(sampled("4294967297")).at("tokens")) << "the high word counts";
  for (const Arguments& flags : {Arguments{"--burst", "1"}, Arguments{"--burst", "3"}, Arguments{"--burst", "16"}, Arguments{"--segment-us", "1"}, Arguments{"--ctx", "90"}}) {
    EXPECT_EQ(generate_json(sampled("1", flags)).at("tokens"), first.at("tokens")) << flags[0] << flags[1];
  }
}

TEST(SamplingTest, ARandomSeedIsReportedAndRepeats) {
  const json first = generate_json({"-p", "And", "-n", "24", "--temp", "1.2"}), second = generate_json({"-p", "And", "-n", "24", "--temp", "1.2"});
  EXPECT_NE(first.at("seed"), second.at("seed"));
  const json again = generate_json({"-p", "And", "-n", "24", "--temp", "1.2", "--seed", std::to_string(first.at("seed").get<std::uint64_t>())});
  EXPECT_EQ(again.at("tokens"), first.at("tokens"));
}

TEST(SamplingTest, FiltersThatLeaveOneTokenAreGreedy) {
  const Ids greedy = tokens_of(generate_json({"-p", "And it came to pass", "-n", "48"}));
  EXPECT_NE(tokens_of(generate_json(sampled("3"))), greedy);
  for (const Arguments& flags : {Arguments{"--top-k", "1"}, Arguments{"--top-p", "0.000001"}, Arguments{"--min-p", "1"}}) {
    EXPECT_EQ(tokens_of(generate_json(sampled("3", flags))), greedy) << flags[0];
  }
  EXPECT_NE(tokens_of(generate_json({"-p", "And it came to pass", "-n", "48", "--repeat-penalty", "3"})), greedy);
  EXPECT_EQ(tokens_of(generate_json({"-p", "And it came to pass", "-n", "48", "--repeat-penalty", "3", "--repeat-last-n", "0"})), greedy);
}

TEST(StopTextTest, TextEndsBeforeItWhereverItLies) {
  const json whole = generate_json({"-p", "And Jesus answered", "-n", "64"});
  const std::string text = whole.at("text");
  const Ids ids = tokens_of(whole);
  ASSERT_GT(text.size(), 60U);
  // Texts from the middle: inside tokens, and across several.
  for (const std::size_t size : {1U, 5U, 12U}) {
    const std::string stop = text.substr(40, size);
    const std::size_t at = text.find(stop);
    for (const char* burst : {"1", "16"}) {
      const json cut = generate_json({"-p", "And Jesus answered", "-n", "64", "--stop", stop, "--stop", "never in it", "--burst", burst});
      EXPECT_EQ(cut.at("text"), text.substr(0, at)) << stop;
      EXPECT_EQ(cut.at("stop"), "stop");
      const Ids kept = tokens_of(cut);
      ASSERT_LT(kept.size(), ids.size());
      EXPECT_TRUE(std::equal(kept.begin(), kept.end(), ids.begin()));
    }
    EXPECT_EQ(generate({"-p", "And Jesus answered", "-n", "64", "--stop", stop}).out, text.substr(0, at) + "\n");
  }
  const json other = generate_json({"-p", "And Jesus answered", "-n", "64", "--stop", "never in it"});
  EXPECT_EQ(other.at("text"), text);
  EXPECT_EQ(other.at("stop"), "length");
}

/// The tokens that a float64 pass chose, from the fixture beside the model.
void expect_fixture(const std::string& model, const std::string& fixture, std::size_t n_prompt, const Arguments& more = {}) {
  const auto source = open_file(fixture);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const auto file = models::SafetensorsFile::parse(*source);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto prompt = file->read_i64(*source, "input_ids"), greedy = file->read_i64(*source, "greedy");
  ASSERT_TRUE(prompt.ok() && greedy.ok());
  ASSERT_EQ(prompt->size(), n_prompt);
  const Ids ids(prompt->begin(), prompt->end()), expected(greedy->begin(), greedy->end());
  ASSERT_GE(expected.size(), 12U);
  Arguments flags = {"--tokens", list_of(ids), "-n", std::to_string(expected.size()), "--ignore-eos"};
  flags.insert(flags.end(), more.begin(), more.end());
  const json document = generate_json(flags, model);
  EXPECT_EQ(tokens_of(document), expected);
}

TEST(GreedyTest, RandomWeightsAsInFloat64) {
  expect_fixture(kRandomModel, testing::tests_data_path("tiny-Q4_0.expected.safetensors"), 24);
}

/// The kernels and limits of other devices, down to storage ranges of 1 MiB: the same tokens. The bundled model on each of them is
/// tools/check_profiles.sh's.
TEST(GreedyTest, OnTheDevicesOfProfiles) {
  RONDO_REQUIRE_TEST_DATA();
  for (const auto& [profile, type] : {std::pair<std::string, std::string>{"baseline", "F16"}, {"baseline-small", "Q4_K_M"}}) {
    const Arguments as = {"--as", profile};
    const std::string stories = testing::test_data_path("stories260K/");
    expect_fixture(stories + "stories260K.gguf", stories + "expected.safetensors", 5, as);
    const std::string name = testing::test_data_path("quant/tiny-" + type);
    expect_fixture(name + ".gguf", name + ".expected.safetensors", 24, as);
  }
}

TEST(GreedyTest, StoriesAsInFloat64) {
  RONDO_REQUIRE_TEST_DATA();
  const std::string folder = testing::test_data_path("stories260K/");
  expect_fixture(folder + "stories260K.gguf", folder + "expected.safetensors", 5);
  EXPECT_EQ(generate_json({"-p", "Once upon a time", "-n", "1"}, folder + "stories260K.gguf").at("prompt_tokens"),
            json({1, 403, 407, 261, 378}));
}

TEST(GenerateMemoryTest, SmallModelsNeedLittle) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need memory of their own";
#endif
  RONDO_REQUIRE_TEST_DATA();
  const CommandResult result = testing::run_command(Arguments{
      "generate", "-m", testing::test_data_path("stories260K/stories260K.gguf"), "-p", "Once upon a time", "-n", "64"});
  testing::expect_done(result);
  RecordProperty("peak_bytes", std::to_string(result.peak_bytes));
  std::cout << "peak memory of generate on stories260K: " << (result.peak_bytes >> 20) << " MB\n";
  EXPECT_LT(result.peak_bytes, std::uint64_t{200} << 20);
}

TEST(GenerateErrorTest, PromptsThatDoNotFit) {
  const testing::TemporaryFolder folder;
  std::string words;
  for (int i = 0; i < 300; ++i) words += "word ";
  const std::string file = folder.write("long.txt", words);
  expect_error(generate({"-f", file}), 1, {"prompt", "256"});
  expect_error(generate({"-p", "And Jesus answered", "--ctx", "3"}), 1, {"prompt", "4", "3", "--ctx"});
}

TEST(GenerateErrorTest, TokensAndFilesAreNamed) {
  expect_error(generate({"--tokens", "1,1024"}), 1, {"--tokens", "1024"});
  expect_error(generate({"--tokens", "1,-7"}), 1, {"--tokens", "-7"});
  expect_error(generate({"--tokens", ""}), 1, {"--tokens", "empty"});
  const testing::TemporaryFolder folder;
  expect_error(generate({"-f", folder.path("absent.txt")}), 1, {"absent.txt"});
  expect_error(generate({"-f", folder.path("")}), 1, {folder.path(""), "directory"});
}

TEST(GenerateErrorTest, Kernels) {
  expect_error(generate({"-p", "x", "--kernel", "linear=fastest"}), 1, {"linear=fastest", "subgroup", "vector", "wide", "tiled"});
  expect_error(generate({"-p", "x", "--kernel", "lineal=vector"}), 1, {"lineal"});
  expect_error(generate({"-p", "x", "--kernel", "="}), 1, {"kernel ="});
}

TEST(GenerateErrorTest, Contexts) {
  expect_error(generate({"-p", "x", "--ctx", "257"}), 1, {"--ctx", "257", "256"});
  // A model that says it can, on a device that can't.
  const testing::TemporaryFolder folder;
  const std::string model =
      folder.write("long.gguf", testing::with_gguf_scalar(testing::read_whole_file(kRandomModel),
                                                          "llama.context_length", std::uint32_t{1} << 24));
  expect_error(generate({"-p", "x", "-n", "1", "--ctx", "16777216"}, model), 1,
               {"context", "16777216", "smaller context"});
  EXPECT_EQ(generate_json({"-p", "x", "-n", "2"}, model).at("tokens").size(), 2U)
      << "by default the context is at most 4096";
}

TEST(GenerateErrorTest, OutputThatCannotBeWritten) {
  for (const Arguments& more : {Arguments{}, Arguments{"--json"}}) {
    CommandInput input;
    input.arguments = {"generate", "-m", kModel, "-p", "x", "-n", "4"};
    input.arguments.insert(input.arguments.end(), more.begin(), more.end());
    input.stdout_path = "/dev/full";
    const CommandResult result = testing::run_command(input);
    EXPECT_EQ(result.exit_status, 1) << result.description();
    EXPECT_NE(result.err.find("rondo: error: stdout"), std::string::npos) << result.description();
  }
}

}  // namespace
}  // namespace rondo::generate_test
