// --quantize: every command that takes a model reads it with matrices of that type.
#include <string>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::cli_quantize_test {
namespace {

using testing::parse_output;
using testing::run_command;
using testing::run_device_command;

const std::string kFolder = testing::tests_data_path("qwen2");

TEST(QuantizeTest, InfoSaysWhatBecomesOfTheTensors) {
  const nlohmann::json plain = parse_output(run_command({"info", "-m", kFolder, "--json"})), quantized = parse_output(run_command({"info", "-m", kFolder, "--quantize", "Q4_0", "--json"}));
  const auto find_type = [](const nlohmann::json& document, const std::string& name) {
    for (const nlohmann::json& type : document["tensors"]["types"]) {
      if (type["type"] == name) return type["count"].get<int>();
    }
    return 0;
  };
  EXPECT_EQ(find_type(plain, "q4_0"), 0);
  EXPECT_EQ(find_type(quantized, "q4_0"), 19);
  EXPECT_EQ(find_type(quantized, "f32"), find_type(plain, "f32") - 19);
  EXPECT_EQ(quantized["n_parameters"], plain["n_parameters"]);
  EXPECT_LT(quantized["plan"]["weight_bytes"].get<int>(), plain["plan"]["weight_bytes"].get<int>() / 2);
}

TEST(QuantizeTest, GraphAndTokenize) {
  const testing::CommandResult graph = run_command({"graph", "-m", kFolder, "--quantize", "q5_1", "--as", "baseline"});
  testing::expect_done(graph);
  EXPECT_NE(graph.out.find("q5_1"), std::string::npos) << graph.out;
  testing::expect_done(run_command({"tokenize", "-m", RONDO_DEMO_MODEL, "--quantize", "q8_0", "-p", "x"}));
  testing::expect_error(run_command({"info", "-m", RONDO_DEMO_MODEL, "--quantize", "q4_0"}), 1, {RONDO_DEMO_MODEL, "tensor 'token_embd.weight' is q8_0, and only f32, f16 and bf16 are quantised to q4_0"});
}

TEST(QuantizeTest, GenerateAndBench) {
  const nlohmann::json generated = parse_output(run_device_command({"generate", "-m", kFolder, "--quantize", "q8_0", "--tokens", "1,2,3", "-n", "4", "--temp", "0", "--json"}));
  EXPECT_EQ(generated["tokens"].size(), 4u);
  const nlohmann::json plain = parse_output(run_device_command({"bench", "-m", kFolder, "-p", "0", "-n", "1", "-r", "1", "-o", "json"}));
  const nlohmann::json narrow = parse_output(run_device_command({"bench", "-m", kFolder, "--quantize", "q8_0", "-p", "0", "-n", "1", "-r", "1", "-o", "json"}));
  EXPECT_LT(narrow["model"]["weight_bytes"].get<int>(), plain["model"]["weight_bytes"].get<int>() / 2);
}

/// On the device as on the CPU.
TEST(QuantizeTest, Eval) {
  const testing::TemporaryFolder folder;
  const std::int32_t ids[] = {1, 2, 3, 200};
  const models::SafetensorsTensor input{"input_ids", models::SafetensorsDtype::kI32, {1, 4}, std::as_bytes(std::span(ids))};
  ASSERT_TRUE(models::write_safetensors(folder.path("in"), {&input, 1}).ok());
  const auto logits = [&](bool reference, const std::string& type) {
    testing::Arguments arguments = {"eval", "-m", kFolder, "--quantize", type, "--inputs", folder.path("in"), "--outputs", folder.path("out"), "--kv-type", "f32"};
    if (reference) arguments.push_back("--reference");
    testing::expect_done(reference ? run_command(arguments) : run_device_command(arguments));
    const ByteSource source = open_file(folder.path("out")).value();
    return models::SafetensorsFile::parse(source)->read_f32(source, "logits").value();
  };
  for (const std::string type : {"q8_0", "q4_0", "mxfp4"}) {
    const std::vector<float> found = logits(false, type), expected = logits(true, type);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-3) << type << " " << i;
  }
  EXPECT_NE(logits(true, "q8_0"), logits(true, "f32"));
}

}  // namespace
}  // namespace rondo::cli_quantize_test
