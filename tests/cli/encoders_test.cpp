// rondo embed, classify, answer, fill, translate and attention, on the bundled models and on what is no input for them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "tests/support/command_runner.h"
#include "tests/support/packed_folder.h"
#include "tests/support/test_data.h"

namespace rondo::tests::encoders_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandResult;
using testing::expect_done;
using testing::expect_error;
using testing::TemporaryFolder;

const std::string kModels = std::string(RONDO_DEMO_MODEL).substr(0, std::string(RONDO_DEMO_MODEL).rfind('/'));
const std::string kBert = kModels + "/bert", kTranslator = kModels + "/translator", kDigits = kModels + "/digits", kLlama = RONDO_DEMO_MODEL;
const std::string kSeven = kDigits + "/pictures/0044-7.png";

std::vector<json> lines_of(const CommandResult& result) {
  expect_done(result);
  std::vector<json> all;
  for (std::size_t begin = 0; begin < result.out.size();) {
    const std::size_t end = result.out.find('\n', begin);
    all.push_back(json::parse(result.out.substr(begin, end - begin)));
    begin = end + 1;
  }
  return all;
}

TEST(EmbedTest, FormatsHoldTheSameVectors) {
  const TemporaryFolder folder;
  const std::string lines = folder.write("lines", "In the beginning\nJesus wept.\n\nhe went away");
  const Arguments base = {"embed", "-m", kBert, "-f", lines, "--normalize"};
  const auto with = [&](const char* format) {
    Arguments arguments = base;
    arguments.insert(arguments.end(), {"-o", format});
    const CommandResult result = testing::run_device_command(arguments);
    expect_done(result);
    return result.out;
  };
  const json document = json::parse(with("json"));
  ASSERT_EQ(document.at("width"), 128);
  ASSERT_EQ(document.at("vectors").size(), 4u) << "an empty line is a text too";
  std::vector<float> values;
  for (const json& vector : document.at("vectors")) {
    double squares = 0;
    for (const json& value : vector) values.push_back(value.get<float>()), squares += value.get<double>() * value.get<double>();
    EXPECT_NEAR(squares, 1, 1e-5);
  }
  const std::string npy = with("npy"), safetensors = with("safetensors");
  ASSERT_GT(npy.size(), 4 * values.size());
  EXPECT_TRUE(npy.starts_with("\x93NUMPY"));
  EXPECT_NE(npy.find("'shape': (4, 128)"), std::string::npos);
  EXPECT_EQ((npy.size() - 4 * values.size()) % 64, 0u);
  EXPECT_EQ(std::memcmp(npy.data() + npy.size() - 4 * values.size(), values.data(), 4 * values.size()), 0);
  const ByteSource source = memory_source(std::as_bytes(std::span(safetensors)), "stdout");
  const Result<models::SafetensorsFile> file = models::SafetensorsFile::parse(source);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->read_f32(source, "vectors").value(), values);
}

TEST(EmbedTest, PoolingsDiffer) {
  std::vector<json> vectors;
  for (const char* pooling : {"mean", "cls", "last", "model"}) {
    const CommandResult result = testing::run_device_command({"embed", "-m", kBert, "-p", "And God said", "--pooling", pooling});
    expect_done(result);
    vectors.push_back(json::parse(result.out).at("vectors"));
  }
  EXPECT_NE(vectors[0], vectors[1]);
  EXPECT_NE(vectors[1], vectors[2]);
}

TEST(EmbedTest, LongLinesAreRefusedByNumberOrCut) {
  const TemporaryFolder folder;
  const std::string lines = folder.write("lines", "short\n" + std::string(1 << 20, 'a') + "\n");
  std::string words = "short\n";
  for (int i = 0; i < 400; ++i) words += "the ";
  const std::string long_line = folder.write("words", words);
  expect_error(testing::run_device_command({"embed", "-m", kBert, "-f", long_line}), 1, {"line 2 of", "words", "402 tokens", "128", "--truncate"});
  const CommandResult cut = testing::run_device_command({"embed", "-m", kBert, "-f", long_line, "--truncate"});
  expect_done(cut);
  EXPECT_EQ(json::parse(cut.out).at("vectors").size(), 2u);
  expect_done(testing::run_device_command({"embed", "-m", kBert, "-f", lines}));  // a word of a megabyte is [UNK]
  expect_error(testing::run_device_command({"embed", "-m", kBert, "-f", folder.write("empty", "")}), 1, {"empty", "no line"});
  expect_error(testing::run_device_command({"embed", "-m", kBert}), 2, {"-p TEXT", "-f FILE"});
  expect_error(testing::run_device_command({"embed", "-m", kDigits, "-p", "a"}), 1, {"vit", "encoder of texts"});
  expect_error(testing::run_device_command({"embed", "-m", kLlama, "-p", "a"}), 1, {"llama", "makes tokens", "encoder of texts"});
}

TEST(FillTest, GuessesMaskedWords) {
  const std::vector<json> found = lines_of(testing::run_device_command({"fill", "-m", kBert, "-p", "And Moses said to the children of [MASK].", "-n", "3", "--json"}));
  ASSERT_EQ(found.size(), 1u);
  const json& guesses = found[0].at("masks").at(0);
  ASSERT_EQ(guesses.size(), 3u);
  EXPECT_EQ(guesses[0].at("piece"), "israel");
  EXPECT_GT(guesses[0].at("probability"), 0.5);
  const CommandResult text = testing::run_device_command({"fill", "-m", kBert, "-p", "And Moses said to the children of [MASK].", "-n", "1"});
  expect_done(text);
  EXPECT_NE(text.out.find("And Moses said to the children of israel."), std::string::npos) << text.out;
}

TEST(FillTest, SeveralMasksAndLines) {
  const TemporaryFolder folder;
  const std::string lines = folder.write("lines", "the [MASK] of [MASK]\nhe [MASK] him\n");
  const std::vector<json> found = lines_of(testing::run_device_command({"fill", "-m", kBert, "-f", lines, "-n", "2", "--json"}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at("masks").size(), 2u);
  EXPECT_EQ(found[1].at("masks").size(), 1u);
  expect_error(testing::run_device_command({"fill", "-m", kBert, "-p", "no such word"}), 1, {"[MASK]"});
  expect_error(testing::run_device_command({"fill", "-m", kTranslator, "-p", "x"}), 1, {"marian", "masked words", "BertForMaskedLM"});
}

TEST(ClassifyTest, TextsAndTheirLabels) {
  const TemporaryFolder folder;
  const std::string lines = folder.write("lines", "Jesus went out with his disciples to the sea.\nDavid reigned over Israel forty years.\n");
  const std::vector<json> found = lines_of(testing::run_device_command({"classify", "-m", kBert, "-f", lines, "--json"}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at("labels").at(0).at("label"), "New Testament");
  EXPECT_EQ(found[1].at("labels").at(0).at("label"), "Old Testament");
  for (const json& result : found) {
    double sum = 0;
    for (const json& label : result.at("labels")) sum += label.at("probability").get<double>();
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(ClassifyTest, Pictures) {
  const std::vector<json> found = lines_of(testing::run_device_command({"classify", "-m", kDigits, "--image", kSeven, "--image", kDigits + "/pictures/0054-2.png", "-n", "1", "--json"}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at("labels").at(0).at("label"), "7");
  EXPECT_EQ(found[1].at("labels").at(0).at("label"), "2");
  EXPECT_EQ(found[0].at("input"), kSeven);
}

TEST(ClassifyTest, WhatIsNoPictureIsRefused) {
  const TemporaryFolder folder;
  const std::string whole = testing::read_whole_file(kSeven);
  const auto refused = [&](const std::string& path, const std::vector<std::string>& words) { expect_error(testing::run_device_command({"classify", "-m", kDigits, "--image", path}), 1, words); };
  refused(folder.write("text.png", "no picture"), {"text.png"});
  refused(folder.write("cut.png", whole.substr(0, whole.size() / 2)), {"cut.png"});
  refused(folder.write("empty.png", ""), {"empty.png"});
  refused(folder.path("none.png"), {"none.png"});
  expect_error(testing::run_device_command({"classify", "-m", kDigits, "-p", "a text"}), 1, {"vit", "takes images", "labels texts"});
  expect_error(testing::run_device_command({"classify", "-m", kBert, "--image", kSeven}), 1, {"bert", "takes no images", "labels images"});
  expect_error(testing::run_device_command({"classify", "-m", kBert, "-p", "a", "--image", kSeven}), 2, {"--image"});
}

TEST(AnswerTest, NeedsAQuestionAContextAndAHead) {
  const TemporaryFolder folder;
  const std::string context = folder.write("context", "Jesus wept.");
  expect_error(testing::run_device_command({"answer", "-m", kBert, "-p", "Who wept?", "-f", context}), 1, {"bert", "answers questions", "BertForQuestionAnswering"});
  expect_error(testing::run_device_command({"answer", "-m", kBert, "-p", "Who wept?"}), 2, {"--file"});
  expect_error(testing::run_device_command({"answer", "-m", kBert, "-p", "", "-f", context}), 2, {"question is empty"});
  expect_error(testing::run_device_command({"answer", "-m", kBert, "-p", "Who?", "-f", folder.path("none")}), 1, {"none"});
}

TEST(AnswerTest, IsASpanOfTheContext) {
  const PackedFolder model("bert_qa");
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary += std::string(1, letter) + "\n";
  model.write_file("vocab.txt", vocabulary);
  model.write_file("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true})");
  const TemporaryFolder folder;
  std::string context;
  for (int i = 0; i < 40; ++i) context += std::string(1, static_cast<char>('A' + i * 7 % 26)) + (i % 5 == 4 ? ".\n" : " ");
  const std::vector<json> found = lines_of(testing::run_device_command({"answer", "-m", model.path(), "-p", "q r", "-f", folder.write("context", context), "-n", "4", "--json"}));
  ASSERT_EQ(found.size(), 1u);
  const json& answers = found[0].at("answers");
  ASSERT_EQ(answers.size(), 4u);
  double before = 1;
  for (const json& answer : answers) {
    const auto begin = answer.at("begin").get<std::size_t>(), end = answer.at("end").get<std::size_t>();
    EXPECT_EQ(context.substr(begin, end - begin), answer.at("text").get<std::string>());
    EXPECT_LE(answer.at("probability").get<double>(), before);
    before = answer.at("probability").get<double>();
  }
  EXPECT_GT(before, 0);
}

TEST(TranslateTest, GreedilyAndByBeams) {
  const std::string text = "In the beginning, God created the heavens and the earth.";
  const std::vector<json> beams = lines_of(testing::run_device_command({"translate", "-m", kTranslator, "-p", text, "--beams", "4", "--json"}));
  ASSERT_EQ(beams.size(), 1u);
  EXPECT_EQ(beams[0].at("text"), "En el principio, Dios crió los cielos y la tierra.");
  EXPECT_TRUE(beams[0].at("ended").get<bool>());
  EXPECT_LT(beams[0].at("score").get<double>(), 0);
  const TemporaryFolder folder;
  const CommandResult greedy = testing::run_device_command({"translate", "-m", kTranslator, "-f", folder.write("lines", text + "\nJesus wept.\n")});
  expect_done(greedy);
  EXPECT_EQ(std::count(greedy.out.begin(), greedy.out.end(), '\n'), 2);
  EXPECT_TRUE(greedy.out.starts_with("En el principio")) << greedy.out;
  // What generate makes of the same source.
  const CommandResult generated = testing::run_device_command({"generate", "-m", kTranslator, "-p", "Jesus wept.", "--temp", "0", "--json"});
  const CommandResult translated = testing::run_device_command({"translate", "-m", kTranslator, "-p", "Jesus wept.", "--json"});
  EXPECT_EQ(lines_of(generated)[0].at("tokens"), lines_of(translated)[0].at("tokens"));
}

TEST(TranslateTest, RefusesWhatItCantDo) {
  expect_error(testing::run_device_command({"translate", "-m", kBert, "-p", "x"}), 1, {"bert", "encoder-decoder"});
  expect_error(testing::run_device_command({"translate", "-m", kTranslator, "-p", "x", "--beams", "17"}), 2, {"--beams"});
  expect_error(testing::run_device_command({"translate", "-m", kTranslator, "-p", "x", "-n", "9999"}), 1, {"translator: -n", "max_tokens", "255"});
  std::string text;
  for (int i = 0; i < 400; ++i) text += "the king ";
  expect_error(testing::run_device_command({"translate", "-m", kTranslator, "-p", text}), 1, {"the text has", "256", "--truncate"});
}

TEST(AttentionTest, WritesPicturesAndNumbers) {
  const TemporaryFolder folder;
  const std::string path = folder.path("map.json");
  expect_done(testing::run_device_command({"attention", "-m", kBert, "-p", "God created the heavens", "--layer", "2", "-o", path}));
  const json map = json::parse(testing::read_whole_file(path));
  ASSERT_EQ(map.at("panels").size(), 4u);
  EXPECT_EQ(map.at("rows"), (json{"[CLS]", "god", "created", "the", "heavens", "[SEP]"}));
  for (const json& panel : map.at("panels")) {
    for (const json& row : panel.at("weights")) {
      double sum = 0;
      for (const json& weight : row) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
  expect_done(testing::run_device_command({"attention", "-m", kDigits, "--image", kSeven, "--layer", "1", "--head", "3", "-o", folder.path("map.svg")}));
  EXPECT_TRUE(testing::read_whole_file(folder.path("map.svg")).starts_with("<svg"));
  expect_done(testing::run_device_command({"attention", "-m", kLlama, "-p", "And God said", "-o", folder.path("map.png")}));
  EXPECT_TRUE(testing::read_whole_file(folder.path("map.png")).starts_with("\x89PNG"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"map.json", "map.png", "map.svg"}));
}

TEST(AttentionTest, RefusesWhatIsNotThere) {
  const TemporaryFolder folder;
  const auto refused = [&](const Arguments& more, int status, const std::vector<std::string>& words) {
    Arguments arguments = {"attention", "-m", kBert, "-p", "God"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_error(testing::run_device_command(arguments), status, words);
  };
  refused({"--layer", "4", "-o", folder.path("a.svg")}, 1, {"--layer", "is 4", "0 to 3"});
  refused({"--head", "4", "-o", folder.path("a.svg")}, 1, {"--head is 4", "0 to 3"});
  refused({"-o", folder.path("a.gif")}, 2, {"a.gif", ".svg"});
  refused({"-o", folder.path("none/a.svg")}, 1, {"none/a.svg"});
  refused({}, 2, {"--output"});
  expect_error(testing::run_device_command({"attention", "-m", kBert, "-o", folder.path("a.svg")}), 2, {"-p TEXT", "--image"});
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace rondo::tests::encoders_test
