// Folders that are wrong: one line that names the file and the field, whatever is in them.
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "models/checkpoint.h"
#include "models/formats/safetensors.h"
#include "models/json.h"
#include "models/reference.h"
#include "runtime/fmt.h"
#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::models::hugging_face_file_test {
namespace {

using json = nlohmann::json;

/// The bundled folder's files, to be changed.
class HuggingFaceFileTest : public ::testing::Test {
 protected:
  HuggingFaceFileTest() : bundled_(testing::tests_data_path("qwen2")), config_(json::parse(testing::read_whole_file(bundled_ + "/config.json"))), source_(open_file(bundled_ + "/model.safetensors").value()), file_(SafetensorsFile::parse(source_).value()) {
    for (const SafetensorsEntry& entry : file_.entries()) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(entry.size_bytes));
      EXPECT_TRUE(source_.read(entry.offset_bytes, bytes).ok());
      tensors_[entry.name] = {entry.shape, std::move(bytes), entry.dtype};
    }
  }

  struct Tensor {
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
    SafetensorsDtype dtype = SafetensorsDtype::kF32;
  };
  using Tensors = std::map<std::string, Tensor>;

  std::string path(const std::string& name) const { return folder_.path(name); }
  void write_config() const { folder_.write("config.json", config_.dump()); }
  void write_tensors(const std::string& file, const Tensors& tensors) const {
    std::vector<SafetensorsTensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    const Status written = write_safetensors(path(file), list);
    ASSERT_TRUE(written.ok()) << written.message();
  }
  void write_all() const {
    write_config();
    write_tensors("model.safetensors", tensors_);
  }
  /// The network that the folder stands for, or why there is none.
  Status opened() const {
    const Result<ByteSource> source = open_model(folder_.path(""));
    return source.ok() ? open_checkpoint(*source).status() : source.status();
  }
  void expect_refusal(StatusCode code, std::initializer_list<std::string> parts) const {
    const Status status = opened();
    EXPECT_EQ(status.code(), code) << status.message();
    for (const std::string& part : parts) EXPECT_NE(status.message().find(part), std::string::npos) << "'" << part << "' is not in: " << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  }

  testing::TemporaryFolder folder_;
  const std::string bundled_;
  json config_;
  const ByteSource source_;
  const SafetensorsFile file_;
  Tensors tensors_;
};

TEST_F(HuggingFaceFileTest, FilesThatAreMissing) {
  expect_refusal(StatusCode::kNotFound, {"config.json"});
  write_config();
  expect_refusal(StatusCode::kNotFound, {"model.safetensors", "model.safetensors.index.json"});
  folder_.write("config.json", "{");
  expect_refusal(StatusCode::kCorruptData, {"config.json"});
  folder_.write("config.json", "{}");
  expect_refusal(StatusCode::kNotFound, {"config.json", "model_type"});
  write_all();
  EXPECT_TRUE(opened().ok()) << opened().message();
}

TEST_F(HuggingFaceFileTest, ModelTypesThatAreNotThere) {
  config_["model_type"] = "mamba";
  write_all();
  expect_refusal(StatusCode::kUnsupported, {"config.json", "'mamba'", "llama", "gemma3_text", "bloom"});
}

/// JSON of the wrong kind at every key: refused by the key's name, or of no meaning.
TEST_F(HuggingFaceFileTest, ValuesOfTheWrongKind) {
  const json original = config_;
  const std::vector<json> values = {"text", json::array({1}), json::object({{"a", 1}}), -1, 1.5, true, 1e300, std::uint64_t{1} << 40, 0};
  std::size_t n_refused = 0;
  write_tensors("model.safetensors", tensors_);
  for (auto field = original.begin(); field != original.end(); ++field) {
    for (const json& value : values) {
      config_ = original;
      config_[field.key()] = value;
      write_config();
      const Status status = opened();
      if (status.ok()) continue;
      ++n_refused;
      EXPECT_NE(status.message().find(folder_.path("").substr(0, folder_.path("").size() - 1)), std::string::npos) << field.key() << " " << value << ": " << status.message();
      EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    }
  }
  EXPECT_GT(n_refused, 60u);
  for (const char* needed : {"num_hidden_layers", "hidden_size", "num_attention_heads"}) {
    config_ = original;
    config_.erase(needed);
    write_config();
    expect_refusal(StatusCode::kCorruptData, {"config.json", std::string("'") + needed + "' is missing"});
  }
}

TEST_F(HuggingFaceFileTest, FeaturesThatAreNotThere) {
  const json original = config_;
  write_tensors("model.safetensors", tensors_);
  const std::pair<const char*, json> features[] = {{"hidden_act", "relu"}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}, {"use_qk_norm", true}};
  for (const auto& [field, value] : features) {
    config_ = original;
    config_[field] = value;
    write_config();
    expect_refusal(StatusCode::kUnsupported, {"config.json", std::string("'") + field + "'", "not there yet"});
  }
  config_ = original;
  config_["use_sliding_window"] = true, config_["sliding_window"] = 8;
  write_config();
  expect_refusal(StatusCode::kUnsupported, {"config.json", "'use_sliding_window'"});
}

TEST_F(HuggingFaceFileTest, TensorsThatContradictTheConfig) {
  Tensors changed = tensors_;
  write_config();
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  changed.erase(name);
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kCorruptData, {"blk.1.ffn_up.weight", "missing"});
  changed = tensors_;
  std::swap(changed[name].shape[0], changed[name].shape[1]);
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kCorruptData, {"blk.1.ffn_up.weight"});
  changed[name].shape = {changed[name].shape[0], changed[name].shape[1], 1};
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kUnsupported, {name, "3 dimensions"});
  changed[name] = {{0, 64}, {}, SafetensorsDtype::kF32};
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kCorruptData, {name, "no elements"});
  changed = tensors_;
  changed[name].dtype = SafetensorsDtype::kI32;
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kUnsupported, {name, "I32", "F32, F16 and BF16"});
  changed = tensors_;
  for (const char* extra : {"model.layers.0.mamba.weight", "model.layers.7.mlp.up_proj.weight", "model.norm.bias"}) {
    changed = tensors_;
    changed[extra] = tensors_.at(name);
    write_tensors("model.safetensors", changed);
    const Status status = opened();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << extra << ": " << status.message();
  }
  write_tensors("model.safetensors", tensors_);
  config_["tie_word_embeddings"] = false;
  write_config();
  expect_refusal(StatusCode::kCorruptData, {"config.json", "lm_head.weight", "'tie_word_embeddings'"});
}

/// Shards: as one file, and every way in which an index and its files disagree.
TEST_F(HuggingFaceFileTest, ShardsAndTheirIndex) {
  write_config();
  Tensors halves[2];
  std::size_t n = 0;
  for (const auto& [name, tensor] : tensors_) halves[n++ % 2][name] = tensor;
  const auto write_index = [&](const std::map<std::string, std::string>& map) { folder_.write("model.safetensors.index.json", json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump()); };
  std::map<std::string, std::string> map;
  for (int i = 0; i < 2; ++i) {
    write_tensors(fmt::format("model-0000{}-of-00002.safetensors", i + 1), halves[i]);
    for (const auto& [name, tensor] : halves[i]) map[name] = fmt::format("model-0000{}-of-00002.safetensors", i + 1);
  }
  write_index(map);
  ASSERT_TRUE(opened().ok()) << opened().message();
  const std::vector<std::int32_t> ids = {1, 2, 3, 200};
  const auto in_shards = open_checkpoint(open_model(folder_.path("")).value()).value(), whole = open_checkpoint(open_model(bundled_).value()).value();
  EXPECT_EQ(reference_logits(*in_shards, ids, graph::Type::kF32).value(), reference_logits(*whole, ids, graph::Type::kF32).value());

  const std::string first = map.begin()->first;
  auto changed = map;
  changed["model.extra.weight"] = "model-00003-of-00002.safetensors";
  write_index(changed);
  expect_refusal(StatusCode::kNotFound, {"model-00003-of-00002.safetensors"});
  changed = map;
  changed[first] = std::next(map.begin())->second;
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {first, "not in the index, or in another file"});
  changed = map;
  changed.erase(first);
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {first, "not in the index"});
  changed = map;
  changed["model.extra.weight"] = map.at(first);
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {"model.extra.weight", "missing"});
  changed = map;
  changed[first] = "../model.safetensors";
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {"index.json", "no file of the folder"});
  folder_.write("model.safetensors.index.json", R"({"weight_map": {"a": 3}})");
  expect_refusal(StatusCode::kCorruptData, {"index.json", "'a'"});
  folder_.write("model.safetensors.index.json", R"({"weight_map": 3})");
  expect_refusal(StatusCode::kCorruptData, {"index.json", "weight_map"});
}

/// The header that a config becomes, with no tensor looked at.
class HeaderTest : public ::testing::Test {
 protected:
  HeaderTest() {
    const float zero = 0;
    const SafetensorsTensor tensor{"lm_head.weight", SafetensorsDtype::kF32, {1, 1}, std::as_bytes(std::span(&zero, 1))};
    EXPECT_TRUE(write_safetensors(folder_.path("model.safetensors"), {&tensor, 1}).ok());
  }
  Result<GgufFile> header(json config) const {
    for (const auto& [field, value] : {std::pair{"num_hidden_layers", 4}, std::pair{"hidden_size", 64}, std::pair{"num_attention_heads", 4}}) config[field] = value;
    if (!config.contains("rms_norm_eps")) config["rms_norm_eps"] = 1e-6;
    folder_.write("config.json", config.dump());
    RONDO_ASSIGN(source_, open_model(folder_.path("")));
    return GgufFile::parse(source_);
  }
  std::vector<float> values_of(const GgufFile& file, const char* name) const {
    const GgufTensor* tensor = file.find_tensor(name);
    EXPECT_NE(tensor, nullptr) << name;
    std::vector<float> values(tensor ? static_cast<std::size_t>(tensor->dims[0]) : 0);
    EXPECT_TRUE(!tensor || source_.read(tensor->offset_bytes, std::as_writable_bytes(std::span(values))).ok());
    return values;
  }

  testing::TemporaryFolder folder_;
  mutable ByteSource source_;
};

TEST_F(HeaderTest, WhatTransformersTakesWhereAFieldIsAbsent) {
  EXPECT_EQ(header({{"model_type", "mistral"}})->u32("llama.attention.sliding_window").value(), 4096u);
  EXPECT_FALSE(header({{"model_type", "mistral"}, {"sliding_window", nullptr}})->has("llama.attention.sliding_window"));
  EXPECT_EQ(header({{"model_type", "stablelm"}})->u32("stablelm.rope.dimension_count").value(), 4u);
  EXPECT_EQ(header({{"model_type", "gpt_neox"}})->u32("gptneox.rope.dimension_count").value(), 4u);
  EXPECT_FLOAT_EQ(header({{"model_type", "gemma2"}})->f32("gemma2.attention.scale").value(), 1.0f / 16);
  EXPECT_FALSE(header({{"model_type", "gemma2"}})->has("gemma2.attn_logit_softcapping"));
  EXPECT_EQ(header({{"model_type", "gemma2"}, {"attn_logit_softcapping", nullptr}})->f32("gemma2.attn_logit_softcapping").value(), 0);
  EXPECT_EQ(header({{"model_type", "granite"}})->f32("granite.attention.scale").value(), 1);
  EXPECT_FLOAT_EQ(header({{"model_type", "cohere"}})->f32("command-r.logit_scale").value(), 0.0625f);
}

TEST_F(HeaderTest, RopeScalingOfEveryKind) {
  const json llama3 = {{"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 8192}};
  const auto file = header({{"model_type", "llama"}, {"rope_theta", 500000.0}, {"rope_scaling", llama3}, {"head_dim", 128}});
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::vector<float> factors = values_of(*file, "rope_freqs.weight");
  ASSERT_EQ(factors.size(), 64u);
  // As in the files that are published: 1 up to index 28, 8 from 36 on.
  EXPECT_EQ(factors[0], 1);
  EXPECT_EQ(factors[28], 1);
  EXPECT_GT(factors[29], 1);
  EXPECT_LT(factors[34], 8);
  EXPECT_FLOAT_EQ(factors[36], 8);
  EXPECT_FLOAT_EQ(factors[63], 8);
  const auto yarn = header({{"model_type", "llama"}, {"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 4096}}}});
  ASSERT_TRUE(yarn.ok()) << yarn.status().message();
  EXPECT_EQ(yarn->u32("llama.rope.scaling.original_context_length").value(), 4096u);
  // What GGUF's keys can't say; by hand: 64 ln(4096 / (2 pi turns)) / (2 ln 150000) is 8.0928 for 32 turns and 17.3980 for one.
  const json gpt_oss = {{"rope_type", "yarn"}, {"factor", 32.0}, {"beta_fast", 32.0}, {"beta_slow", 1.0}, {"truncate", false}, {"original_max_position_embeddings", 4096}};
  const auto exact = header({{"model_type", "llama"}, {"rope_theta", 150000}, {"head_dim", 64}, {"rope_scaling", gpt_oss}});
  ASSERT_TRUE(exact.ok()) << exact.status().message();
  EXPECT_FALSE(exact->has("llama.rope.scaling.type"));
  EXPECT_NEAR(exact->f32("llama.rope.scaling.attn_factor").value(), 1.3465736, 1e-6);
  const std::vector<float> divisors = values_of(*exact, "rope_freqs.weight");
  ASSERT_EQ(divisors.size(), 32u);
  EXPECT_EQ(divisors[8], 1);
  EXPECT_NEAR(divisors[12], 1.685695, 1e-5);
  EXPECT_FLOAT_EQ(divisors[18], 32);
  const json longrope = {{"type", "longrope"}, {"short_factor", {1.0, 1.5}}, {"long_factor", {2, 3.5}}};
  const auto phi = header({{"model_type", "phi3"}, {"rope_scaling", longrope}, {"max_position_embeddings", 131072}, {"original_max_position_embeddings", 4096}});
  ASSERT_TRUE(phi.ok()) << phi.status().message();
  EXPECT_EQ(values_of(*phi, "rope_factors_short.weight"), (std::vector<float>{1, 1.5f}));
  EXPECT_EQ(values_of(*phi, "rope_factors_long.weight"), (std::vector<float>{2, 3.5f}));
  EXPECT_NEAR(phi->f32("phi3.rope.scaling.attn_factor").value(), 1.190238, 1e-6);  // sqrt(1 + ln 32 / ln 4096)
}

/// As transformers writes configs since version 5.
TEST_F(HeaderTest, RopeParameters) {
  const json theta = {{"rope_theta", 5e5}, {"rope_type", "default"}};
  const auto llama = header({{"model_type", "llama"}, {"rope_parameters", theta}});
  ASSERT_TRUE(llama.ok()) << llama.status().message();
  EXPECT_EQ(llama->f32("llama.rope.freq_base").value(), 5e5f);
  json yarn = theta;
  yarn.update({{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 4096}});
  const auto scaled = header({{"model_type", "llama"}, {"rope_parameters", yarn}});
  ASSERT_TRUE(scaled.ok()) << scaled.status().message();
  EXPECT_EQ(scaled->f32("llama.rope.scaling.factor").value(), 4);
  EXPECT_EQ(scaled->u32("llama.rope.scaling.original_context_length").value(), 4096u);
  const auto gemma = header({{"model_type", "gemma3_text"}, {"rope_parameters", {{"full_attention", {{"rope_theta", 1e6}, {"rope_type", "linear"}, {"factor", 8.0}}}, {"sliding_attention", {{"rope_theta", 2e4}}}}}});
  ASSERT_TRUE(gemma.ok()) << gemma.status().message();
  EXPECT_EQ(gemma->f32("gemma3.rope.freq_base").value(), 1e6f);
  EXPECT_EQ(gemma->f32("gemma3.rope.freq_base_swa").value(), 2e4f);
  EXPECT_EQ(gemma->f32("gemma3.rope.scaling.factor").value(), 8);
}

TEST_F(HeaderTest, KindsOfLayers) {
  const auto gemma = header({{"model_type", "gemma3_text"}, {"layer_types", {"full_attention", "sliding_attention", "sliding_attention", "full_attention"}}});
  ASSERT_TRUE(gemma.ok()) << gemma.status().message();
  const auto layers = gemma->booleans("gemma3.attention.sliding_window_pattern");
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  EXPECT_EQ(std::vector<std::uint8_t>(layers->begin(), layers->end()), (std::vector<std::uint8_t>{0, 1, 1, 0}));
}

TEST_F(HeaderTest, Experts) {
  const auto mixtral = header({{"model_type", "mixtral"}, {"num_local_experts", 8}, {"num_experts_per_tok", 2}});
  ASSERT_TRUE(mixtral.ok()) << mixtral.status().message();
  EXPECT_EQ(mixtral->u32("llama.expert_count").value(), 8u);
  EXPECT_EQ(mixtral->u32("llama.expert_used_count").value(), 2u);
  EXPECT_TRUE(mixtral->boolean("llama.expert_weights_norm").value());
  const json config = {{"model_type", "qwen3_moe"}, {"num_experts", 128}, {"num_experts_per_tok", 8}, {"moe_intermediate_size", 768}, {"decoder_sparse_step", 1}, {"mlp_only_layers", json::array()}};
  const auto qwen = header(config);
  ASSERT_TRUE(qwen.ok()) << qwen.status().message();
  EXPECT_EQ(qwen->u32("qwen3moe.expert_feed_forward_length").value(), 768u);
  EXPECT_FALSE(qwen->boolean("qwen3moe.expert_weights_norm").value());
}

TEST_F(HeaderTest, WhatWouldChangeResultsIsRefused) {
  const auto refusal = [&](const json& config) { return header(config).status().message(); };
  const auto names = [&](const json& config, const char* field) { EXPECT_NE(refusal(config).find(fmt::format("'{}'", field)), std::string::npos) << config.dump() << ": " << refusal(config); };
  names({{"model_type", "llama"}, {"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}, {"beta_fast", 0}}}}, "rope_scaling");
  names({{"model_type", "llama"}, {"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}, {"attention_factor", -1.5}}}}, "rope_scaling");
  names({{"model_type", "llama"}, {"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}, {"mscale", 1}}}}, "rope_scaling");
  names({{"model_type", "phi3"}, {"rope_scaling", {{"type", "longrope"}, {"short_factor", {"x"}}}}}, "rope_scaling");
  names({{"model_type", "gemma2"}, {"layer_types", {"full_attention", "sliding_attention", "full_attention"}}}, "layer_types");
  names({{"model_type", "gemma2"}, {"layer_types", {"full_attention", "sliding_attention", "full_attention", "chunked_attention"}}}, "layer_types");
  names({{"model_type", "smollm3"}, {"no_rope_layers", {1, 1, 1, 1}}}, "no_rope_layers");
  names({{"model_type", "gptj"}, {"rotary_dim", 4294967294u}, {"rope_scaling", {{"type", "yarn"}, {"factor", 2.0}, {"truncate", false}}}}, "rotary_dim");
  names({{"model_type", "mpt"}}, "attn_config");
  names({{"model_type", "mpt"}, {"attn_config", {{"alibi", false}}}}, "attn_config");
  names({{"model_type", "mpt"}, {"attn_config", {{"alibi", true}, {"clip_qkv", 8}}}}, "attn_config");
  names({{"model_type", "falcon"}, {"alibi", true}}, "alibi");
  names({{"model_type", "gpt2"}, {"scale_attn_weights", false}}, "scale_attn_weights");
  names({{"model_type", "stablelm"}, {"partial_rotary_factor", 2}}, "partial_rotary_factor");
  names({{"model_type", "llama"}, {"rope_parameters", 5}}, "rope_parameters");
  names({{"model_type", "gemma3_text"}, {"rope_parameters", {{"sliding_attention", {{"rope_type", "linear"}}}}}}, "rope_parameters");
  names({{"model_type", "gemma3_text"}, {"rope_parameters", {{"sliding_attention", {{"rope_theta", 1e4}}}}}}, "full_attention");
  names({{"model_type", "qwen3_moe"}, {"num_experts", 8}}, "num_experts_per_tok");
  names({{"model_type", "qwen3_moe"}, {"num_experts", 8}, {"num_experts_per_tok", 2}, {"decoder_sparse_step", 2}}, "decoder_sparse_step");
  names({{"model_type", "qwen3_moe"}, {"num_experts", 8}, {"num_experts_per_tok", 2}, {"mlp_only_layers", {1}}}, "mlp_only_layers");
  names({{"model_type", "olmoe"}, {"num_experts", 8}, {"num_experts_per_tok", 2}, {"clip_qkv", 8}}, "clip_qkv");
  names({{"model_type", "qwen3"}, {"use_bidirectional_attention", true}}, "use_bidirectional_attention");
  names({{"model_type", "llama"}, {"rope_scaling", {{"factor", 2.0}}}}, "rope_scaling");
  names({{"model_type", "llama"}, {"rope_scaling", {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", -5}}}}, "original_max_position_embeddings");
  names({{"model_type", "llama"}, {"head_dim", 4294967295u}}, "head_dim");
  names({{"model_type", "llama"}, {"num_key_value_heads", 0}}, "num_key_value_heads");
  names({{"model_type", "llama"}, {"num_key_value_heads", 1u << 30}}, "num_key_value_heads");
}

/// BF16 and F16 are what they mean.
TEST_F(HuggingFaceFileTest, HalvesAreRead) {
  write_config();
  for (auto& [name, tensor] : tensors_) {
    std::vector<std::byte> halves(tensor.bytes.size() / 2);
    for (std::size_t i = 0; i < halves.size() / 2; ++i) std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(4 * i + 2), 2, halves.begin() + static_cast<std::ptrdiff_t>(2 * i));
    tensor.bytes = std::move(halves);
    tensor.dtype = SafetensorsDtype::kBF16;
  }
  write_tensors("model.safetensors", tensors_);
  const std::vector<std::int32_t> ids = {1, 2, 3, 200};
  const auto narrow = open_checkpoint(open_model(folder_.path("")).value()).value(), whole = open_checkpoint(open_model(bundled_).value()).value();
  const std::vector<float> a = reference_logits(*narrow, ids, graph::Type::kF32).value(), b = reference_logits(*whole, ids, graph::Type::kF32).value();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 0.3);  // of logits with a deviation of 2.4
}

}  // namespace
}  // namespace rondo::models::hugging_face_file_test
