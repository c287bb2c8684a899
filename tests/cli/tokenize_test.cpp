// rondo tokenize: text to ids and back, with no Vulkan in sight.
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::tokenize_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;
using Ids = std::vector<std::int32_t>;

const std::string kModel = RONDO_DEMO_MODEL;

/// Runs `rondo tokenize -m model` and `more` where Vulkan finds no driver.
CommandResult tokenize(const Arguments& more, const std::string& model = kModel) {
  CommandInput input;
  input.arguments = {"tokenize", "-m", model};
  input.arguments.insert(input.arguments.end(), more.begin(), more.end());
  input.environment = {
      {"VK_ICD_FILENAMES", "/nonexistent"}, {"VK_DRIVER_FILES", "/nonexistent"}, {"RONDO_DEVICE", "no such device"}};
  return testing::run_command(input);
}

json tokenize_json(Arguments more, const std::string& model = kModel) {
  more.emplace_back("--json");
  const CommandResult result = tokenize(more, model);
  testing::expect_done(result);
  EXPECT_EQ(result.err, "");
  return testing::parse_output(result);
}

Ids tokens_of(Arguments more, const std::string& model = kModel) {
  return tokenize_json(std::move(more), model).at("tokens").get<Ids>();
}

std::string list_of(const Ids& ids) {
  std::string list;
  for (const std::int32_t id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  return list;
}

TEST(TokenizeTest, TextAndJsonHoldTheSameIds) {
  const json document = tokenize_json({"-p", "And Jesus answered"});
  const Ids ids = document.at("tokens").get<Ids>();
  ASSERT_GT(ids.size(), 1U);
  EXPECT_EQ(ids[0], 1) << "BOS comes first";
  const auto pieces = document.at("pieces").get<std::vector<std::string>>();
  ASSERT_EQ(pieces.size(), ids.size());
  EXPECT_EQ(pieces[0], "<s>");
  std::string joined;
  for (std::size_t i = 1; i < pieces.size(); ++i) joined += pieces[i];
  EXPECT_EQ(joined,
            "\xe2\x96\x81"
            "And\xe2\x96\x81Jesus\xe2\x96\x81"
            "answered");
  const CommandResult text = tokenize({"-p", "And Jesus answered"});
  testing::expect_done(text);
  EXPECT_EQ(text.out, list_of(ids) + "\n");
}

TEST(TokenizeTest, FilesAreTakenByteForByte) {
  const testing::TemporaryFolder folder;
  const std::string with_newline = folder.write("newline.txt", "And\n"), plain = folder.write("plain.txt", "And");
  EXPECT_EQ(tokens_of({"-f", plain}), tokens_of({"-p", "And"}));
  EXPECT_EQ(tokens_of({"-f", with_newline}), tokens_of({"-p", "And\n"}));
  EXPECT_NE(tokens_of({"-f", with_newline}), tokens_of({"-f", plain}));
  EXPECT_EQ(tokens_of({"-f", folder.write("empty.txt", "")}), Ids{1});
  EXPECT_EQ(tokens_of({"-p", ""}), Ids{1});

  // NUL, bytes that are not UTF-8, a byte order mark and carriage returns all come back.
  const std::string bytes = std::string(
      "\xef\xbb\xbf"
      "a\0b\xff\xfe\r\n\xe2\x96",
      12);
  const Ids ids = tokens_of({"-f", folder.write("bytes.txt", bytes)});
  const CommandResult decoded = tokenize({"--decode", list_of(ids)});
  testing::expect_done(decoded);
  EXPECT_EQ(decoded.out, bytes);
  const std::string as_json = tokenize_json({"--decode", list_of(ids)}).at("text");
  EXPECT_EQ(as_json.substr(0, 6), bytes.substr(0, 6));
  EXPECT_NE(as_json.find("\xef\xbf\xbd\xef\xbf\xbd\r\n"), std::string::npos)
      << "bytes that are not UTF-8 must be replaced";
}

TEST(TokenizeTest, BosAndSpaceFollowTheFile) {
  const testing::TemporaryFolder folder;
  const std::string model = testing::read_whole_file(kModel);
  const std::string without_bos =
      folder.write("bos.gguf", testing::with_gguf_scalar(model, "tokenizer.ggml.add_bos_token", false));
  const std::string without_space =
      folder.write("space.gguf", testing::with_gguf_scalar(model, "tokenizer.ggml.add_space_prefix", false));
  const Ids usual = tokens_of({"-p", "And"});
  ASSERT_EQ(usual.at(0), 1);
  EXPECT_EQ(tokens_of({"-p", "And", "--no-bos"}), Ids(usual.begin() + 1, usual.end()));
  EXPECT_EQ(tokens_of({"-p", "And"}, without_bos), Ids(usual.begin() + 1, usual.end()));
  EXPECT_EQ(tokens_of({"-p", ""}, without_bos), Ids());
  EXPECT_NE(tokens_of({"-p", "And"}, without_space), usual);
  EXPECT_EQ(tokens_of({"-p", " And"}, without_space), usual);
  EXPECT_EQ(tokenize({"--decode", list_of(tokens_of({"-p", " And"}, without_space))}, without_space).out, " And");
  EXPECT_EQ(tokenize({"--decode", list_of(usual)}).out, "And");
}

TEST(TokenizeTest, SpecialTokensAreTextUnlessParsed) {
  const Ids as_text = tokens_of({"-p", "</s>", "--no-bos"}),
            parsed = tokens_of({"-p", "</s>", "--no-bos", "--parse-special"});
  EXPECT_GT(as_text.size(), 1U);
  EXPECT_EQ(parsed, Ids{2});
  EXPECT_EQ(tokenize({"--decode", list_of(as_text)}).out, "</s>");
  EXPECT_EQ(tokenize({"--decode", "2"}).out, "");
}

TEST(TokenizeTest, IdsOutsideTheVocabularyAreNamed) {
  expect_error(tokenize({"--decode", "5,1024"}), 1, {"--decode", "1024"});
  expect_error(tokenize({"--decode", "-1"}), 1, {"--decode", "-1"});
  expect_error(tokenize({"--decode", "2147483647", "--json"}), 1, {"--decode", "2147483647"});
  EXPECT_EQ(tokenize_json({"--decode", "1023"}).at("text").get<std::string>().size(),
            tokenize({"--decode", "1023"}).out.size());
  EXPECT_EQ(tokenize_json({"--decode", ""}).at("text"), "");
}

TEST(TokenizeTest, FilesThatCannotBeReadAreNamed) {
  const testing::TemporaryFolder folder;
  expect_error(tokenize({"-f", folder.path("absent.txt")}), 1, {"absent.txt"});
  expect_error(tokenize({"-f", folder.path("")}), 1, {folder.path(""), "directory"});
  expect_error(tokenize({"-p", "x"}, folder.path("absent\n.gguf")), 1, {"absent"});
  expect_error(tokenize({"-p", "x"}, folder.write("text.gguf", "not a model")), 1, {"text.gguf", "GGUF"});
}

TEST(TokenizeTest, OutputThatCannotBeWrittenIsAnError) {
  CommandInput input;
  input.arguments = {"tokenize", "-m", kModel, "-p", "And"};
  input.stdout_path = "/dev/full";
  expect_error(testing::run_command(input), 1, {"stdout"});
}

class TokenizePublishedTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizePublishedTest, AgreesWithLlamaCpp) {
  RONDO_REQUIRE_TEST_DATA();
  const std::string model = testing::test_data_path("vocab/ggml-vocab-" + std::string(GetParam()) + ".gguf");
  const auto texts = testing::split(testing::read_whole_file(model + ".inp"), "\n__ggml_vocab_test__\n");
  const auto lines = testing::split(testing::read_whole_file(model + ".out"), "\n");
  ASSERT_EQ(texts.size(), lines.size());
  ASSERT_GT(texts.size(), 40U);
  const testing::TemporaryFolder folder;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Ids expected;
    std::istringstream line(lines[i]);
    for (std::int32_t id = 0; line >> id;) expected.push_back(id);
    const std::string file = folder.write("text.txt", texts[i]);
    EXPECT_EQ(tokens_of({"-f", file, "--no-bos"}, model), expected) << texts[i];
    const CommandResult decoded = tokenize({"--decode", list_of(expected)}, model);
    testing::expect_done(decoded);
    EXPECT_EQ(decoded.out, texts[i]);
  }
  const Ids usual = tokens_of({"-p", "Hello"}, model), without_bos = tokens_of({"-p", "Hello", "--no-bos"}, model);
  if (GetParam() == std::string("llama-spm")) {
    EXPECT_EQ(usual.at(0), 1);
  } else {
    EXPECT_EQ(usual, without_bos);
  }
}

INSTANTIATE_TEST_SUITE_P(LlamaCpp, TokenizePublishedTest, ::testing::Values("llama-spm", "gpt-2"),
                         [](const auto& param_info) { return std::string(param_info.index == 0 ? "Spm" : "Gpt2"); });

}  // namespace
}  // namespace rondo::tokenize_test
