// Qwen2 from a GGUF file, made here of a published model's tensors, against its reference in double: biases on q, k and v,
// rotation in halves.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/checkpoint.h"
#include "models/formats/safetensors.h"
#include "models/reference.h"
#include "tests/device/session_harness.h"
#include "tests/support/gguf_writer.h"

namespace rondo::tests::qwen2_test {
namespace {

constexpr std::uint32_t kVocab = 256, kTokens = 24, kPrompt = 8, kNew = 16;

/// A safetensors file of the case.
struct Tensors {
  explicit Tensors(const char* name) : source(open_file(testing::tests_data_path(std::string("qwen2/") + name)).value()), file(models::SafetensorsFile::parse(source).value()) {}
  std::vector<float> f32(const std::string& name) const { return file.read_f32(source, name).value(); }
  Tokens ids(const std::string& name) const { return as_tokens(file.read_i64(source, name).value()); }
  ByteSource source;
  models::SafetensorsFile file;
};

/// The checkpoint's tensors under GGUF's names; `without` leaves one out.
std::string build_gguf(const std::string& without = "") {
  const Tensors model("model.safetensors");
  testing::GgufWriter writer;
  writer.string("general.architecture", "qwen2").string("general.name", "tiny Qwen2");
  writer.u32("qwen2.block_count", 3).u32("qwen2.embedding_length", 64).u32("qwen2.attention.head_count", 4).u32("qwen2.attention.head_count_kv", 2);
  writer.u32("qwen2.feed_forward_length", 176).u32("qwen2.context_length", 128).f32("qwen2.attention.layer_norm_rms_epsilon", 1e-6f);
  writer.f32("qwen2.rope.freq_base", 1e6f);
  std::vector<std::string> tokens;
  for (std::uint32_t i = 0; i < kVocab; ++i) tokens.push_back("t" + std::to_string(i));
  writer.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", tokens).f32s("tokenizer.ggml.scores", std::vector<float>(kVocab));
  const auto add = [&](const std::string& name, const std::string& from) {
    if (name == without) return;
    const std::vector<float> values = model.f32(from);
    const std::vector<std::uint64_t>& shape = model.file.find(from)->shape;
    writer.tensor(name, {shape.rbegin(), shape.rend()}, models::GgmlType::kF32, {reinterpret_cast<const char*>(values.data()), values.size() * 4});
  };
  add("token_embd.weight", "model.embed_tokens.weight");
  add("output_norm.weight", "model.norm.weight");
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"attn_norm.weight", "input_layernorm.weight"}, {"attn_q.weight", "self_attn.q_proj.weight"},      {"attn_q.bias", "self_attn.q_proj.bias"},
      {"attn_k.weight", "self_attn.k_proj.weight"},   {"attn_k.bias", "self_attn.k_proj.bias"},          {"attn_v.weight", "self_attn.v_proj.weight"},
      {"attn_v.bias", "self_attn.v_proj.bias"},       {"attn_output.weight", "self_attn.o_proj.weight"}, {"ffn_norm.weight", "post_attention_layernorm.weight"},
      {"ffn_gate.weight", "mlp.gate_proj.weight"},    {"ffn_up.weight", "mlp.up_proj.weight"},           {"ffn_down.weight", "mlp.down_proj.weight"}};
  for (int layer = 0; layer < 3; ++layer) {
    for (const auto& [name, from] : kNames) add("blk." + std::to_string(layer) + "." + name, "model.layers." + std::to_string(layer) + "." + from);
  }
  return writer.build();
}

class Qwen2Test : public ::testing::Test {
 protected:
  Model load(KvType kv_type, bool fusion = true) const {
    ModelOptions options;
    options.kv_type = kv_type;
    options.fusion = fusion;
    return load_model_from(file, options);
  }
  static std::span<const std::int32_t> row(const Tokens& ids, std::size_t index, std::size_t width) { return std::span(ids).subspan(index * width, width); }

  const std::string file = build_gguf();
  const Tensors inputs{"inputs.safetensors"}, expected{"expected.safetensors"};
};

TEST_F(Qwen2Test, LogitsAreThePublishedOnes) {
  const Tokens ids = inputs.ids("input_ids");
  const std::vector<float> logits = expected.f32("logits");
  for (const auto& [kv_type, fusion, bound] : {std::tuple{KvType::kF32, true, 1e-4}, std::tuple{KvType::kF32, false, 1e-4}, std::tuple{KvType::kF16, true, 1e-3}}) {
    const Model model = load(kv_type, fusion);
    EXPECT_EQ(model.info().architecture, "qwen2");
    Session session = make_session(model, without_model_stops());
    for (std::size_t text = 0; text < 2; ++text) {
      RONDO_ASSERT_OK(session.rewind(0));
      const Result<std::vector<float>> found = session.wait_logits(row(ids, text, kTokens));
      RONDO_ASSERT_OK(found.status());
      const auto wanted = std::span(logits).subspan(text * kTokens * kVocab, kTokens * kVocab);
      EXPECT_LE(relative_to_range(*found, {wanted.begin(), wanted.end()}), bound) << "text " << text << (fusion ? "" : ", no fusion");
    }
  }
}

TEST_F(Qwen2Test, TheInterpreterAgrees) {
  const auto checkpoint = models::open_checkpoint(testing::source_of(file)).value();
  const Result<std::vector<float>> found = models::reference_logits(*checkpoint, row(inputs.ids("input_ids"), 0, kTokens), graph::Type::kF32);
  RONDO_ASSERT_OK(found.status());
  std::vector<float> wanted = expected.f32("logits");
  wanted.resize(kTokens * kVocab);
  EXPECT_LE(relative_to_range(*found, wanted), 1e-5);
}

TEST_F(Qwen2Test, GreedyTokensAreThePublishedOnes) {
  const Tokens prompts = expected.ids("gen_prompt_ids"), made = expected.ids("gen_tokens");
  for (const KvType kv_type : {KvType::kF32, KvType::kF16}) {
    const Model model = load(kv_type);
    Session session = make_session(model, without_model_stops());
    for (std::size_t text = 0; text < 2; ++text) {
      RONDO_ASSERT_OK(session.rewind(0));
      const auto prompt = row(prompts, text, kPrompt), wanted = row(made, text, kNew);
      EXPECT_EQ(continue_with(session, {prompt.begin(), prompt.end()}, kNew), Tokens(wanted.begin(), wanted.end())) << "text " << text;
    }
  }
}

/// A layer of a decode step takes as many dispatches as a Llama's: the biases come with q, k and v.
TEST_F(Qwen2Test, NineDispatchesALayer) {
  const Model model = load(KvType::kF16);
  const Session session = make_session(model);
  constexpr std::uint32_t kBesideLayers = 7;  // begin, embedding, norm, head, two of sampling, end
  EXPECT_EQ(session.statistics().dispatches_per_decode_step, 3 * 9 + kBesideLayers);
}

TEST_F(Qwen2Test, AMissingBiasIsRefusedByName) {
  const std::string broken = build_gguf("blk.1.attn_k.bias");
  const Result<Model> model = Model::create(test_device(), testing::source_of(broken));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kCorruptData);
  EXPECT_NE(model.status().message().find("tensor 'blk.1.attn_k.bias' is missing"), std::string::npos) << model.status().message();
}

}  // namespace
}  // namespace rondo::tests::qwen2_test
