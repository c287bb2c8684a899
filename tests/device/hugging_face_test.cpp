// Folders as transformers saves them, against what transformers computes in float64: logits of all positions, greedy tokens.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::hugging_face_test {
namespace {

/// A safetensors file of a case.
struct Tensors {
  explicit Tensors(const std::string& path) : source(open_file(path).value()), file(models::SafetensorsFile::parse(source).value()) {}
  std::vector<float> f32(const std::string& name) const { return file.read_f32(source, name).value(); }
  Tokens ids(const std::string& name) const { return as_tokens(file.read_i64(source, name).value()); }
  ByteSource source;
  models::SafetensorsFile file;
};

class HuggingFaceTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = testing::tests_data_path(GetParam());  // one comes with the project
    if (std::filesystem::exists(folder_)) return;
    const char* data = std::getenv("RONDO_TEST_DATA");
    if (!data) GTEST_SKIP() << "RONDO_TEST_DATA is not set";
    folder_ = std::string(data) + "/models/" + GetParam();
  }

  Model load(KvType kv_type) const {
    ModelOptions options;
    options.kv_type = kv_type;
    Result<Model> model = Model::create(test_device(), open_model(folder_).value(), options);
    EXPECT_TRUE(model.ok()) << describe(model.status());
    RONDO_EXPECT_OK(model->wait_loaded());
    return std::move(model).value();
  }

  std::string folder_;
};

TEST_P(HuggingFaceTest, LogitsAreThoseOfTransformers) {
  const Tensors inputs(folder_ + "/inputs.safetensors"), expected(folder_ + "/expected.safetensors");
  const Tokens ids = inputs.ids("input_ids");
  const std::vector<float> logits = expected.f32("logits");
  const std::size_t n_tokens = ids.size() / 2;
  for (const auto& [kv_type, bound] : {std::pair{KvType::kF32, 1e-5}, std::pair{KvType::kF16, 1e-3}}) {
    const Model model = load(kv_type);
    Session session = make_session(model, without_model_stops());
    std::vector<float> found;
    for (std::size_t text = 0; text < 2; ++text) {
      RONDO_ASSERT_OK(session.rewind(0));
      const Result<std::vector<float>> one = session.wait_logits(std::span(ids).subspan(text * n_tokens, n_tokens));
      RONDO_ASSERT_OK(one.status());
      found.insert(found.end(), one->begin(), one->end());
    }
    EXPECT_LE(relative_to_range(found, logits), bound);
  }
}

TEST_P(HuggingFaceTest, GreedyTokensAreThoseOfTransformers) {
  const Tensors expected(folder_ + "/expected.safetensors");
  const Tokens prompts = expected.ids("gen_prompt_ids"), made = expected.ids("gen_tokens");
  const std::size_t n_prompt = prompts.size() / 2, n_made = made.size() / 2;
  const Model model = load(KvType::kF16);
  EXPECT_EQ(model.tokenizer().n_vocab(), 0) << "these folders have no tokenizer";
  for (std::size_t text = 0; text < 2; ++text) {
    Session session = make_session(model, without_model_stops());
    const auto wanted = std::span(made).subspan(text * n_made, n_made);
    EXPECT_EQ(continue_with(session, std::span(prompts).subspan(text * n_prompt, n_prompt), static_cast<std::uint32_t>(n_made)), Tokens(wanted.begin(), wanted.end())) << "text " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, HuggingFaceTest, ::testing::Values("llama", "mistral_sw", "mixtral", "qwen2", "gemma2", "falcon_mqa", "gpt2", "gpt_neox", "opt", "bloom", "shaw_decoder"),
                         [](const ::testing::TestParamInfo<const char*>& one) { return std::string(one.param); });

}  // namespace
}  // namespace rondo::tests::hugging_face_test
