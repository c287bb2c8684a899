// Model files that are missing, cut, damaged or of a kind that isn't built yet: one line that names the file, and no
// crash.
#include <sys/stat.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/gguf_split.h"
#include "tests/support/test_data.h"

namespace rondo::model_file_test {
namespace {

using testing::Arguments;
using testing::CommandResult;
using testing::expect_error;

const std::string kModel = testing::tests_data_path("tiny-Q4_0.gguf");
/// Far below what a driver needs, so that an error with less came before any was opened.
constexpr std::uint64_t kSmallMemory = std::uint64_t{64} << 20;

CommandResult generate(const std::string& model) {
  return testing::run_device_command({"generate", "-m", model, "-p", "x", "-n", "1"});
}

CommandResult tokenize(const std::string& model) {
  return testing::run_command(Arguments{"tokenize", "-m", model, "-p", "x"});
}

TEST(ModelFileTest, SoundFileWorks) {
  testing::expect_done(generate(kModel));
  testing::expect_done(tokenize(kModel));
}

TEST(ModelFileTest, AnyPartIsTheModel) {
  const testing::TemporaryFolder folder;
  for (const std::string& path : testing::split_file(folder, kModel)) {
    const CommandResult result = testing::run_command({"info", "-m", path});
    testing::expect_done(result);
    EXPECT_NE(result.out.find("q4_0"), std::string::npos) << result.out;
    EXPECT_EQ(result.out.find("split."), std::string::npos) << result.out;
  }
}

TEST(ModelFileTest, WhatIsNoFileIsRefusedBeforeTheDeviceOpens) {
  const testing::TemporaryFolder folder;
  const std::string pipe = folder.path("pipe.gguf");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& model : {folder.path("absent.gguf"), folder.path("absent/folder.gguf"), folder.path(""), pipe,
                                   std::string("/dev/null")}) {
    for (const CommandResult& result : {generate(model), tokenize(model)}) {
      expect_error(result, 1, {model});
      EXPECT_LT(result.peak_bytes, kSmallMemory);
    }
  }
}

TEST(ModelFileTest, WhatIsNoModelIsRefused) {
  const testing::TemporaryFolder folder;
  for (const auto& [name, bytes] : {std::pair<std::string, std::string>{"empty.gguf", ""},
                                    {"magic.gguf", "GGUF"},
                                    {"text.gguf", "Once upon a time there was"}}) {
    const std::string model = folder.write(name, bytes);
    expect_error(generate(model), 1, {model});
    const CommandResult result = tokenize(model);
    expect_error(result, 1, {model});
    EXPECT_LT(result.peak_bytes, kSmallMemory);
  }
}

TEST(ModelFileTest, CutFilesAreRefused) {
  const std::string bytes = testing::read_whole_file(kModel);
  const testing::TemporaryFolder folder;
  constexpr std::size_t kPlaces = 200, kHeaderBytes = 12515;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    // Half of the places in what describes the tensors, half in their data.
    const std::size_t half = kPlaces / 2;
    const std::size_t size =
        i < half ? i * kHeaderBytes / half : kHeaderBytes + (i - half) * (bytes.size() - kHeaderBytes) / half + 1;
    ASSERT_LT(size, bytes.size());
    const std::string model = folder.write("cut.gguf", bytes.substr(0, size));
    SCOPED_TRACE(size);
    const CommandResult result = tokenize(model);
    expect_error(result, 1, {model});
    EXPECT_LT(result.peak_bytes, kSmallMemory);
    if (i % 17 == 0) expect_error(generate(model), 1, {model});
    if (HasFailure()) return;
  }
}

TEST(ModelFileTest, DamagedFilesNeverCrash) {
  const std::string bytes = testing::read_whole_file(kModel);
  const testing::TemporaryFolder folder;
  std::mt19937 random(20240229);
  std::size_t n_refused = 0;
  for (int i = 0; i < 150; ++i) {
    std::string damaged = bytes;
    const std::size_t at = random() % 1024;  // where the counts and most keys are
    damaged[at] = static_cast<char>(random());
    const std::string model = folder.write("damaged.gguf", damaged);
    SCOPED_TRACE(at);
    const CommandResult result = i % 10 == 0 ? generate(model) : tokenize(model);
    if (result.exit_status != 0) {
      ++n_refused;
      expect_error(result, 1, {model});
      EXPECT_LT(result.peak_bytes, std::uint64_t{400} << 20);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(n_refused, 30U) << "most damage must be noticed, else this tests nothing";
}

TEST(ModelFileTest, OtherKindsNameWhatIsNotThereYet) {
  std::string other = testing::read_whole_file(kModel);
  const std::string key("general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama", 37);
  const std::size_t at = other.find(key);
  ASSERT_NE(at, std::string::npos);
  other.replace(at + key.size() - 5, 5, "mamba");
  const testing::TemporaryFolder folder;
  const std::string model = folder.write("other.gguf", other);
  expect_error(generate(model), 1, {model, "general.architecture", "mamba", "not there yet"});
  testing::expect_done(tokenize(model));
}

TEST(ModelFileTest, OtherWeightTypesNameTheTensor) {
  std::string other = testing::read_whole_file(kModel);
  const std::string name = "token_embd.weight";
  const std::size_t at = other.find(name);
  ASSERT_NE(at, std::string::npos);
  other.at(at + name.size() + 4 + 2 * 8) = 23;  // behind the number of dimensions and the two of them: IQ4_XS, which is smaller
  const testing::TemporaryFolder folder;
  const std::string model = folder.write("other.gguf", other);
  expect_error(generate(model), 1, {model, "tensor 'token_embd.weight'", "iq4_xs", "not there yet"});
  testing::expect_done(tokenize(model));
}

TEST(ModelFileTest, VocabularyFilesOnlyTokenize) {
  RONDO_REQUIRE_TEST_DATA();
  const std::string llama = testing::test_data_path("vocab/ggml-vocab-llama-spm.gguf"),
                    gpt2 = testing::test_data_path("vocab/ggml-vocab-gpt-2.gguf"),
                    bert = testing::test_data_path("vocab/ggml-vocab-bert-bge.gguf"),
                    deepseek = testing::test_data_path("vocab/ggml-vocab-deepseek-llm.gguf");
  testing::expect_done(tokenize(llama));
  expect_error(generate(llama), 1, {llama, "token_embd.weight"});
  testing::expect_done(tokenize(gpt2));
  expect_error(generate(gpt2), 1, {gpt2, "token_embd.weight"});
  testing::expect_done(tokenize(bert));
  expect_error(generate(bert), 1, {bert, "token_embd.weight"});
  testing::expect_done(tokenize(deepseek));
}

}  // namespace
}  // namespace rondo::model_file_test
