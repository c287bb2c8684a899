// rondo info: numbers, plans, and files that it can't read. No Vulkan is needed.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::info_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;
using testing::run_command;

const std::string kModel = testing::tests_data_path("tiny-Q4_0.gguf");

/// Runs where no Vulkan driver can be found.
CommandResult info(const Arguments& more) {
  CommandInput input;
  input.arguments = {"info"};
  input.arguments.insert(input.arguments.end(), more.begin(), more.end());
  input.environment = {{"VK_ICD_FILENAMES", "/nonexistent.json"}, {"VK_DRIVER_FILES", "/nonexistent.json"}};
  return run_command(input);
}

json info_json(const Arguments& more) {
  Arguments all = {"-m", kModel, "--json"};
  all.insert(all.end(), more.begin(), more.end());
  const CommandResult result = info(all);
  testing::expect_done(result);
  EXPECT_EQ(result.err, "");
  return testing::parse_output(result);
}

TEST(InfoTest, JsonSaysWhatTheFileHolds) {
  const json document = info_json({});
  EXPECT_EQ(document.at("architecture"), "llama");
  EXPECT_EQ(document.at("n_layers"), 2);
  EXPECT_EQ(document.at("head_dim"), 64);
  EXPECT_EQ(document.at("n_kv_heads"), 2);
  EXPECT_EQ(document.at("tokenizer").at("kind"), "llama");
  EXPECT_EQ(document.at("metadata").at("general.architecture"), "llama");
  std::uint64_t n_tensors = 0, n_parameters = 0, bytes = 0;
  for (const json& type : document.at("tensors").at("types")) {
    n_tensors += type.at("count").get<std::uint64_t>();
    n_parameters += type.at("parameters").get<std::uint64_t>();
    bytes += type.at("bytes").get<std::uint64_t>();
  }
  EXPECT_EQ(document.at("tensors").at("count"), n_tensors);
  EXPECT_EQ(document.at("tensors").at("bytes"), bytes);
  EXPECT_EQ(document.at("n_parameters"), n_parameters);
  EXPECT_TRUE(document.at("no_plan").is_null());
}

TEST(InfoTest, ThePlanAddsUp) {
  const json plan = info_json({"--ctx", "100"}).at("plan");
  EXPECT_EQ(plan.at("device"), "baseline");
  EXPECT_EQ(plan.at("n_ctx"), 100);
  EXPECT_EQ(plan.at("kv_type"), "f16");
  EXPECT_TRUE(plan.at("refusal").is_null());
  EXPECT_EQ(plan.at("kv_bytes"), 2 * 2 * 2 * 64 * 100 * 2);
  EXPECT_EQ(plan.at("kv_bytes_per_token"), 2 * 2 * 2 * 64 * 2);
  EXPECT_EQ(plan.at("kv_formula"), "2 x 2 layers x 2 KV heads x 64 head width x 100 tokens x 2 bytes = 102400");
  std::uint64_t device = 0, host = 0;
  for (const json& buffer : plan.at("buffers")) {
    (buffer.at("memory") == "device" ? device : host) += buffer.at("size_bytes").get<std::uint64_t>();
  }
  EXPECT_EQ(plan.at("device_bytes"), device);
  EXPECT_EQ(plan.at("host_bytes"), host);
  EXPECT_LT(plan.at("activation_bytes"), plan.at("unaliased_activation_bytes"));
  EXPECT_EQ(info_json({"--ctx", "100", "--kv-type", "f32"}).at("plan").at("kv_bytes"), 204800);
  const json quantised = info_json({"--ctx", "100", "--kv-type", "q8_0"}).at("plan");
  EXPECT_EQ(quantised.at("kv_type"), "q8_0");
  EXPECT_EQ(quantised.at("kv_bytes"), 2 * 2 * 2 * 100 * (64 + 4));
  EXPECT_EQ(quantised.at("kv_formula"), "2 x 2 layers x 2 KV heads x 100 tokens x (64 bytes of quants + 4 of scales) = 54400");
  EXPECT_EQ(info_json({"--as", "baseline-small"}).at("plan").at("device"), "baseline-small");
}

TEST(InfoTest, TextSaysTheSame) {
  const CommandResult text = info({"-m", kModel, "--ctx", "100"});
  testing::expect_done(text);
  EXPECT_EQ(text.err, "");
  const json document = info_json({"--ctx", "100"});
  const json& plan = document.at("plan");
  for (const std::string& part :
       {plan.at("kv_formula").get<std::string>(), plan.at("weight_bytes").dump(), plan.at("activation_bytes").dump(),
        plan.at("unaliased_activation_bytes").dump() + " before aliasing", plan.at("device_bytes").dump(),
        plan.at("staging_bytes").dump(), "parameters " + document.at("n_parameters").dump(),
        std::string("device profile baseline"), std::string("tokenizer llama")}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
}

TEST(InfoTest, SaysWhatRoundsActivations) {
  const json rounded = info_json({"--as", "h200"}).at("plan").at("activations");
  EXPECT_EQ(rounded.at("rounding"), rounded.at("linears"));
  EXPECT_EQ(rounded.at("by_matrix_units"), rounded.at("linears_of_most_rows"));
  EXPECT_GT(rounded.at("by_matrix_units"), 0);
  EXPECT_GT(rounded.at("attention_by_matrix_units"), 0);
  EXPECT_NE(info({"-m", kModel, "--as", "h200"}).out.find("are multiplied in f16 by matrix units (--activations)"), std::string::npos);
  const json halves = info_json({"--as", "h200", "--activations", "f16"}).at("plan").at("activations");
  EXPECT_EQ(halves.at("rounding"), 0);
  EXPECT_EQ(halves.at("by_matrix_units"), rounded.at("by_matrix_units"));
  const json pairs = info_json({"--as", "navi21", "--activations", "f16"}).at("plan").at("activations");
  EXPECT_EQ(pairs.at("by_half_dots"), pairs.at("linears_of_most_rows"));
  EXPECT_GT(pairs.at("attention_by_half_dots"), 0);
  EXPECT_NE(info({"-m", kModel, "--as", "navi21", "--activations", "f16"}).out.find("are multiplied in f16, two products by an instruction (--activations)"), std::string::npos);
  const json exact = info_json({"--as", "h200", "--activations", "f32"}).at("plan").at("activations");
  EXPECT_EQ(exact.at("rounding"), 0);
  EXPECT_EQ(exact.at("by_matrix_units"), 0);
  EXPECT_EQ(exact.at("attention_by_matrix_units"), 0);
  const json bytes = info_json({"--as", "navi21"}).at("plan").at("activations");
  EXPECT_EQ(bytes.at("rounding_of_most_rows"), bytes.at("linears_of_most_rows"));
  EXPECT_NE(info({"-m", kModel, "--as", "navi21"}).out.find(" rows round their activations to bytes (--activations)"), std::string::npos);
  EXPECT_EQ(rounded.at("rounding_of_most_rows"), 0);
}

TEST(InfoTest, WhatDoesNotFitIsStillDescribed) {
  // One layer's keys of f32: 4 KV bytes x 2 heads x 64 x ctx, beyond 1 MiB from 2049 tokens on.
  const testing::TemporaryFolder folder;
  const std::string model = folder.write(
      "long.gguf", testing::with_gguf_scalar(testing::read_whole_file(kModel), "llama.context_length", 100000u));
  const CommandResult result =
      info({"-m", model, "--ctx", "90000", "--kv-type", "f32", "--as", "baseline-small", "--json"});
  testing::expect_done(result);
  const json plan = testing::parse_output(result).at("plan");
  EXPECT_TRUE(plan.at("activation_bytes").is_null());
  EXPECT_EQ(plan.at("kv_bytes"), 184320000);
  EXPECT_NE(plan.at("refusal").get<std::string>().find("the keys of one head"), std::string::npos) << plan;
}

TEST(InfoTest, OtherArchitecturesHaveNoPlan) {
  std::string other = testing::read_whole_file(kModel);
  const std::string key("general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama", 37);
  const std::size_t at = other.find(key);
  ASSERT_NE(at, std::string::npos);
  other.replace(at + key.size() - 5, 5, "mamba");
  const testing::TemporaryFolder folder;
  const CommandResult result = info({"-m", folder.write("other.gguf", other), "--json"});
  testing::expect_done(result);
  const json document = testing::parse_output(result);
  EXPECT_EQ(document.at("architecture"), "mamba");
  EXPECT_TRUE(document.at("plan").is_null());
  EXPECT_NE(document.at("no_plan").get<std::string>().find("not there yet"), std::string::npos);
  EXPECT_GT(document.at("n_parameters"), 0);
}

/// An image's patches are no linear, nor attention.
TEST(InfoTest, ProductsOfOtherOperatorsAreCountedApart) {
  RONDO_REQUIRE_TEST_DATA();
  const std::string model = testing::test_data_path("models/vit");
  const json activations = testing::parse_output(info({"-m", model, "--as", "h200", "--json"})).at("plan").at("activations");
  EXPECT_EQ(activations.at("by_matrix_units"), activations.at("linears_of_most_rows"));
  EXPECT_EQ(activations.at("attention_by_matrix_units"), 3) << "layers";
  EXPECT_EQ(activations.at("others_by_matrix_units"), 1);
  EXPECT_NE(info({"-m", model, "--as", "h200"}).out.find("other products of 17 rows are computed in f16 by matrix units, in 1 place of a step"), std::string::npos);
}

TEST(InfoTest, VocabularyFilesAreFine) {
  RONDO_REQUIRE_TEST_DATA();
  for (const char* name : {"vocab/ggml-vocab-llama-spm.gguf", "vocab/ggml-vocab-bert-bge.gguf"}) {
    const CommandResult result = info({"-m", testing::test_data_path(name)});
    testing::expect_done(result);
    EXPECT_NE(result.out.find("no weights"), std::string::npos) << result.out;
  }
}

TEST(InfoTest, ContextsOutOfRangeAreRefused) {
  const std::string context = info_json({}).at("context").dump();
  expect_error(info({"-m", kModel, "--ctx", "0"}), 2, {"--ctx"});
  expect_error(info({"-m", kModel, "--ctx", "x"}), 2, {"--ctx"});
  expect_error(info({"-m", kModel, "--ctx", "16000000"}), 1, {"--ctx", "16000000", context});
  testing::expect_done(info({"-m", kModel, "--ctx", context}));
}

TEST(InfoTest, WhatIsNoModelIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string bytes = testing::read_whole_file(kModel);
  expect_error(info({}), 2, {"--model"});
  expect_error(info({"-m", kModel, "--as", "x"}), 2, {"'x'", "baseline, baseline-small"});
  std::vector<std::string> wrong = {folder.path("absent.gguf"), folder.path(""), folder.write("text.gguf", "Once")};
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{9000}, bytes.size() - 1}) {
    wrong.push_back(folder.write("cut" + std::to_string(size) + ".gguf", bytes.substr(0, size)));
  }
  for (const std::string& model : wrong) {
    expect_error(info({"-m", model}), 1, {model});
    expect_error(info({"-m", model, "--json"}), 1, {model});
  }
}

TEST(InfoTest, OutputThatCannotBeWrittenIsAnError) {
  CommandInput input;
  input.arguments = {"info", "-m", kModel, "--json"};
  input.stdout_path = "/dev/full";
  expect_error(run_command(input), 1, {"stdout"});
}

}  // namespace
}  // namespace rondo::info_test
