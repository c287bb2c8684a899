// Folders of every family compute what the same weights compute in a GGUF file, whose logits are compared with another
// implementation's (FamilyTest). Names and layouts are those of transformers' modelling code.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "graph/block_format.h"
#include "models/checkpoint.h"
#include "models/formats/gguf.h"
#include "models/formats/safetensors.h"
#include "models/formats/stacked_experts.h"
#include "models/json.h"
#include "models/reference.h"
#include "runtime/fmt.h"
#include "tests/support/command_runner.h"
#include "tests/support/family_gguf.h"
#include "tests/support/gguf_writer.h"

namespace rondo::models::hugging_face_family_test {
namespace {

using json = nlohmann::json;
using tests::FamilyFile;
using Names = std::map<std::string, std::string>;

enum Layout : unsigned {
  kHalves = 1,       ///< rotated pairs are half a head apart, in GGUF side by side
  kOffsetNorms = 2,  ///< norms multiply by 1 + weight
  kGroups = 4,       ///< rows of q, k and v of one KV head after the other
  kPerExpert = 8,    ///< a tensor of each expert
  kStacked = 16,     ///< experts together, (in, out), gates and ups in turn
};

struct FolderFamily {
  const char* family;
  const char* model_type;
  Names names;  ///< the folder's of GGUF's; outside the layers too
  json config = json::object();
  unsigned layout = 0;
  const char* prefix = "model.";
  const char* layers = "layers.";
};
void PrintTo(const FolderFamily& one, std::ostream* stream) { *stream << one.model_type << " as " << one.family; }

Names with(Names names, const Names& more) {
  for (const auto& [ours, theirs] : more) names[ours] = theirs;
  return names;
}

const Names kLlama = {{"token_embd", "embed_tokens"},     {"output_norm", "norm"},           {"attn_norm", "input_layernorm"},  {"attn_q", "self_attn.q_proj"},
                      {"attn_k", "self_attn.k_proj"},     {"attn_v", "self_attn.v_proj"},    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
                      {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"}, {"ffn_gate", "mlp.gate_proj"},    {"ffn_up", "mlp.up_proj"},
                      {"ffn_down", "mlp.down_proj"},      {"ffn_gate_inp", "mlp.gate"}};
const Names kFourNorms = with(kLlama, {{"post_attention_norm", "post_attention_layernorm"}, {"ffn_norm", "pre_feedforward_layernorm"}, {"post_ffw_norm", "post_feedforward_layernorm"}});
const Names kPhi = with(kLlama, {{"output_norm", "final_layernorm"}, {"attn_output", "self_attn.dense"}, {"ffn_up", "mlp.fc1"}, {"ffn_down", "mlp.fc2"}});
const Names kFused = with(kLlama, {{"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}});
const Names kStarCoder2 = with(kLlama, {{"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}});
const Names kGpt2 = {{"token_embd", "wte"}, {"position_embd", "wpe"}, {"output_norm", "ln_f"}, {"attn_norm", "ln_1"}, {"attn_qkv", "attn.c_attn"}, {"attn_output", "attn.c_proj"}, {"ffn_norm", "ln_2"}, {"ffn_up", "mlp.c_fc"}, {"ffn_down", "mlp.c_proj"}};
const Names kGptJ = {{"token_embd", "wte"}, {"output_norm", "ln_f"}, {"attn_norm", "ln_1"}, {"attn_q", "attn.q_proj"}, {"attn_k", "attn.k_proj"}, {"attn_v", "attn.v_proj"}, {"attn_output", "attn.out_proj"}, {"ffn_up", "mlp.fc_in"}, {"ffn_down", "mlp.fc_out"}};
const Names kFalcon = {{"token_embd", "word_embeddings"}, {"output_norm", "ln_f"}, {"attn_norm", "ln_mlp"}, {"attn_norm_2", "ln_attn"}, {"attn_qkv", "self_attention.query_key_value"}, {"attn_output", "self_attention.dense"}, {"ffn_up", "mlp.dense_h_to_4h"}, {"ffn_down", "mlp.dense_4h_to_h"}};
const Names kMpt = {{"token_embd", "wte"}, {"output_norm", "norm_f"}, {"attn_norm", "norm_1"}, {"attn_qkv", "attn.Wqkv"}, {"attn_output", "attn.out_proj"}, {"ffn_norm", "norm_2"}, {"ffn_up", "ffn.up_proj"}, {"ffn_down", "ffn.down_proj"}};
const Names kGptOss = with(kLlama, {{"attn_sinks", "self_attn.sinks"}, {"post_attention_norm", "post_attention_layernorm"}, {"ffn_gate_inp", "mlp.router"}});
const Names kSharedExpert = with(kLlama, {{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"}, {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"}, {"ffn_up_shexp", "mlp.shared_expert.up_proj"}, {"ffn_down_shexp", "mlp.shared_expert.down_proj"}});

const std::vector<FolderFamily> kFolders = {
    {"llama-yarn", "llama", kLlama, {{"hidden_act", "silu"}, {"tie_word_embeddings", true}, {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 24}}}}, kHalves},
    {"qwen3", "qwen3", kLlama, {{"hidden_act", "silu"}, {"tie_word_embeddings", true}}},
    {"gemma", "gemma", kLlama, {{"hidden_act", "gelu"}}, kOffsetNorms},
    {"gemma3", "gemma3_text", kFourNorms, {{"query_pre_attn_scalar", 24}, {"rope_local_base_freq", 10000}, {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}}, kOffsetNorms},
    {"phi2", "phi", kPhi},
    {"phi3", "phi3", kFused},
    {"olmo2", "olmo2", kFourNorms},
    {"granite", "granite", kLlama, {{"hidden_act", "silu"}, {"tie_word_embeddings", true}, {"embedding_multiplier", 3}, {"residual_multiplier", 0.4f}, {"logits_scaling", 5}, {"attention_multiplier", 0.15f}}, kHalves},
    {"command-r", "cohere", kLlama, {{"logit_scale", 0.3f}}},
    {"cohere2", "cohere2", kLlama, {{"logit_scale", 0.3f}, {"layer_types", {"sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"}}}},
    {"olmo2-windows", "olmo3", kFourNorms, {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 24}}}}},
    {"smollm3", "smollm3", kLlama, json::object(), kHalves},
    {"starcoder2", "starcoder2", kStarCoder2, {{"hidden_act", "gelu_pytorch_tanh"}}},
    {"stablelm", "stablelm", kLlama},
    {"gptj", "gptj", kGptJ, {{"rotary_dim", 8}}, 0, "transformer.", "h."},
    {"starcoder", "gpt_bigcode", kGpt2, {{"multi_query", true}}, 0, "transformer.", "h."},
    {"falcon-40b", "falcon", kFalcon, {{"new_decoder_architecture", true}, {"tie_word_embeddings", false}}, kGroups, "transformer.", "h."},
    {"mpt", "mpt", kMpt, {{"attn_config", {{"alibi", true}, {"alibi_bias_max", 6}}}}, 0, "transformer.", "blocks."},
    {"qwen3moe", "qwen3_moe", kLlama, {{"hidden_act", "silu"}, {"norm_topk_prob", true}, {"tie_word_embeddings", true}}, kPerExpert},
    {"qwen2moe", "qwen2_moe", kSharedExpert, {{"shared_expert_intermediate_size", 72}}, kPerExpert},
    {"olmoe", "olmoe", kLlama, json::object(), kPerExpert},
    {"gpt-oss", "gpt_oss", kGptOss, {{"hidden_act", "silu"}, {"swiglu_limit", 7.0}, {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"beta_fast", 32.0}, {"beta_slow", 1.0}, {"truncate", true}, {"original_max_position_embeddings", 24}}}}, kStacked},
};

struct Matrix {
  std::vector<std::uint64_t> shape;  // outermost first
  std::vector<float> values;
};

/// `values` of (n, columns) in another order of rows.
std::vector<float> rows_of(const std::vector<float>& values, std::size_t n, const std::function<std::size_t(std::size_t)>& row_of) {
  const std::size_t columns = values.size() / n;
  std::vector<float> result;
  for (std::size_t i = 0; i < n; ++i) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row_of(i) * columns);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(columns));
  }
  return result;
}

/// A folder of the weights of a family's file.
class FolderWriter {
 public:
  FolderWriter(const FolderFamily& folder, const FamilyFile& family, const std::string& gguf) : folder_(folder), family_(family), source_(testing::source_of(gguf)), file_(GgufFile::parse(source_).value()) {}

  void write(const testing::TemporaryFolder& to) {
    to.write("config.json", config().dump());
    for (const GgufTensor& tensor : file_.tensors()) add(tensor);
    std::vector<SafetensorsTensor> list;
    for (const auto& [name, matrix] : tensors_) list.push_back({name, SafetensorsDtype::kF32, matrix.shape, std::as_bytes(std::span(matrix.values))});
    const Status written = write_safetensors(to.path("model.safetensors"), list);
    ASSERT_TRUE(written.ok()) << written.message();
  }

  json config() const {
    const auto key = [&](const char* name) { return file_.u32(fmt::format("{}.{}", family_.architecture, name)).value(); };
    json config = {{"model_type", folder_.model_type}, {"tie_word_embeddings", !family_.head}, {"partial_rotary_factor", family_.rotated ? static_cast<double>(family_.rotated) / family_.head_dim : 1.0}, {"rope_theta", family_.theta > 0 ? family_.theta : 10000}};
    for (const char* name : {"num_hidden_layers", "n_layer", "n_layers"}) config[name] = family_.n_layers;
    for (const char* name : {"hidden_size", "n_embd", "d_model"}) config[name] = family_.width;
    for (const char* name : {"num_attention_heads", "n_head", "n_heads"}) config[name] = family_.n_heads;
    for (const char* name : {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"}) config[name] = 1e-5f;
    for (const char* name : {"intermediate_size", "n_inner", "ffn_dim"}) config[name] = key("feed_forward_length");
    for (const char* name : {"max_position_embeddings", "n_positions", "max_seq_len"}) config[name] = family_.context;
    config["num_key_value_heads"] = config["num_kv_heads"] = family_.n_kv_heads;
    if (family_.head_dim * family_.n_heads != family_.width) config["head_dim"] = family_.head_dim;
    if (family_.window) config["sliding_window"] = family_.window;
    if (family_.n_experts) config["num_experts"] = family_.n_experts, config["num_experts_per_tok"] = family_.experts_used;
    if (family_.expert_ffn) config[folder_.layout & kStacked ? "intermediate_size" : "moe_intermediate_size"] = family_.expert_ffn;
    config.update(folder_.config);
    return config;
  }

 private:
  void add(const GgufTensor& tensor) {
    Matrix matrix;
    for (std::uint32_t i = tensor.n_dims; i > 0; --i) matrix.shape.push_back(tensor.dims[i - 1]);
    matrix.values.resize(static_cast<std::size_t>(tensor.size_bytes / sizeof(float)));
    ASSERT_TRUE(source_.read(tensor.offset_bytes, std::as_writable_bytes(std::span(matrix.values))).ok());

    std::string_view stem = tensor.name;
    const std::string kind(stem.substr(stem.rfind('.')));
    stem.remove_suffix(kind.size());
    if (stem == "output") return put("lm_head" + kind, std::move(matrix));
    std::string prefix = folder_.prefix;
    if (stem.starts_with("blk.")) {
      stem.remove_prefix(4);
      const std::size_t dot = stem.find('.');
      prefix += fmt::format("{}{}.", folder_.layers, stem.substr(0, dot));
      stem.remove_prefix(dot + 1);
    }
    if (stem.ends_with("_exps")) return add_experts(prefix + "mlp.experts.", std::string(stem), kind, std::move(matrix));
    if (stem == "attn_qkv" && !folder_.names.contains("attn_qkv")) return add_apart(prefix, kind, matrix);
    const auto found = folder_.names.find(std::string(stem));
    ASSERT_NE(found, folder_.names.end()) << stem;
    if ((folder_.layout & kHalves) && (stem == "attn_q" || stem == "attn_k")) {
      const std::size_t head = family_.head_dim, half = head / 2;
      matrix.values = rows_of(matrix.values, static_cast<std::size_t>(matrix.shape[0]), [&](std::size_t i) { return i / head * head + i % half * 2 + i % head / half; });
    }
    if ((folder_.layout & kOffsetNorms) && stem.ends_with("norm")) {
      for (float& value : matrix.values) value -= 1;
    }
    if ((folder_.layout & kGroups) && stem == "attn_qkv") {
      const std::size_t head = family_.head_dim, kv = family_.n_kv_heads, group = family_.n_heads / kv;
      matrix.values = rows_of(matrix.values, static_cast<std::size_t>(matrix.shape[0]), [&](std::size_t i) {
        const std::size_t of = i / ((group + 2) * head), row = i % ((group + 2) * head);
        if (row < group * head) return of * group * head + row;
        return (kv * group + (row / head - group) * kv + of) * head + row % head;
      });
    }
    // A vector in GGUF, one row there.
    if (stem == "ffn_gate_inp_shexp") matrix.shape.insert(matrix.shape.begin(), 1);
    put(prefix + found->second + (found->second.ends_with("sinks") ? "" : kind), std::move(matrix));
  }

  void add_apart(const std::string& prefix, const std::string& kind, const Matrix& qkv) {
    std::size_t first = 0;
    for (const auto& [name, n_heads] : {std::pair{"attn_q", family_.n_heads}, std::pair{"attn_k", family_.n_kv_heads}, std::pair{"attn_v", family_.n_kv_heads}}) {
      const std::size_t columns = qkv.values.size() / static_cast<std::size_t>(qkv.shape[0]), rows = std::size_t{n_heads} * family_.head_dim;
      const auto begin = qkv.values.begin() + static_cast<std::ptrdiff_t>(first * columns);
      Matrix part{qkv.shape, {begin, begin + static_cast<std::ptrdiff_t>(rows * columns)}};
      part.shape[0] = rows;
      put(prefix + folder_.names.at(name) + kind, std::move(part));
      first += rows;
    }
  }

  void add_experts(const std::string& prefix, const std::string& stem, const std::string& kind, Matrix matrix) {
    const auto n = static_cast<std::size_t>(matrix.shape[0]), rows = static_cast<std::size_t>(matrix.shape[1]), of_one = matrix.values.size() / n, columns = of_one / rows;
    if (folder_.layout & kPerExpert) {
      const char* name = stem == "ffn_gate_exps" ? "gate_proj" : stem == "ffn_up_exps" ? "up_proj" : "down_proj";
      for (std::size_t e = 0; e < n; ++e) {
        const auto begin = matrix.values.begin() + static_cast<std::ptrdiff_t>(e * of_one);
        put(fmt::format("{}{}.{}{}", prefix, e, name, kind), {{rows, columns}, {begin, begin + static_cast<std::ptrdiff_t>(of_one)}});
      }
      return;
    }
    const bool down = stem == "ffn_down_exps";
    const std::size_t step = down ? 1 : 2, first = stem == "ffn_up_exps" ? 1 : 0;
    Matrix& to = tensors_[prefix + (down ? "down_proj" : "gate_up_proj") + (kind == ".bias" ? "_bias" : "")];
    to.shape = kind == ".bias" ? std::vector<std::uint64_t>{n, step * rows} : std::vector<std::uint64_t>{n, columns, step * rows};
    to.values.resize(step * matrix.values.size());
    for (std::size_t e = 0; e < n; ++e) {
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) to.values[(e * columns + column) * step * rows + step * row + first] = matrix.values[e * of_one + row * columns + column];
      }
    }
  }

  void put(const std::string& name, Matrix matrix) { tensors_[name] = std::move(matrix); }

  const FolderFamily& folder_;
  const FamilyFile& family_;
  const ByteSource source_;
  const GgufFile file_;
  std::map<std::string, Matrix> tensors_;
};

const FamilyFile& find_family(const std::string& name) {
  return *std::find_if(tests::family_files().begin(), tests::family_files().end(), [&](const FamilyFile& each) { return name == each.name; });
}

/// Of a text longer than the windows.
Result<std::vector<float>> logits_of(const ByteSource& source) {
  RONDO_ASSIGN(const std::unique_ptr<const Checkpoint> checkpoint, open_checkpoint(source));
  const std::vector<std::int32_t> ids = {5, 300, 17, 40, 99, 201, 3, 250, 77, 123, 64, 9, 10, 11, 280, 33, 71, 150, 6, 90};
  return reference_logits(*checkpoint, ids, graph::Type::kF32);
}

class HuggingFaceFamilyTest : public ::testing::TestWithParam<FolderFamily> {
 protected:
  /// Whether the folder's logits are those of its family's file.
  static ::testing::AssertionResult agrees(const FolderFamily& one) {
    constexpr double kBound = 2e-6;  // of their range: rows of rotated heads are added up in another order
    const std::string gguf = tests::build_family_file(find_family(one.family), 1);
    const testing::TemporaryFolder folder;
    FolderWriter(one, find_family(one.family), gguf).write(folder);
    const Result<ByteSource> source = open_model(folder.path(""));
    if (!source.ok()) return ::testing::AssertionFailure() << source.status().message();
    const Result<std::vector<float>> found = logits_of(*source), expected = logits_of(testing::source_of(gguf));
    if (!found.ok()) return ::testing::AssertionFailure() << found.status().message();
    if (found->size() != expected->size()) return ::testing::AssertionFailure() << found->size() << " logits";
    const auto [low, high] = std::minmax_element(expected->begin(), expected->end());
    const double range = static_cast<double>(*high) - static_cast<double>(*low);
    for (std::size_t i = 0; i < found->size(); ++i) {
      const double error = std::abs(static_cast<double>((*found)[i]) - static_cast<double>((*expected)[i])) / range;
      if (!(error <= kBound)) return ::testing::AssertionFailure() << "differs by " << error << " of the range at " << i;
    }
    return ::testing::AssertionSuccess();
  }
};

TEST_P(HuggingFaceFamilyTest, ComputesWhatTheFileComputes) { EXPECT_TRUE(agrees(GetParam())); }

TEST_F(HuggingFaceFamilyTest, GatesForUpsAreRejected) {
  FolderFamily swapped = *std::find_if(kFolders.begin(), kFolders.end(), [](const FolderFamily& each) { return std::string_view(each.model_type) == "qwen3"; });
  swapped.names["ffn_gate"] = "mlp.up_proj", swapped.names["ffn_up"] = "mlp.gate_proj";
  EXPECT_FALSE(agrees(swapped));
}

/// gpt-oss as it is published: experts in MXFP4, scales and nibbles apart.
class GptOssFolderTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kExperts = 3, kRows = 8, kBlocks = 2;
  struct Tensor {
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
    SafetensorsDtype dtype = SafetensorsDtype::kU8;
  };

  GptOssFolderTest() {
    for (std::size_t i = 0; i < kExperts * kRows * kBlocks; ++i) {
      scales_.push_back(static_cast<std::byte>(120 + i % 11));
      for (std::size_t j = 0; j < 16; ++j) nibbles_.push_back(static_cast<std::byte>(37 * i + 59 * j));
    }
    std::vector<std::byte> bias(kExperts * kRows * 2);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<std::byte>(i);
    tensors_[name("gate_up_proj_blocks")] = {{kExperts, kRows, kBlocks, 16}, nibbles_};
    tensors_[name("gate_up_proj_scales")] = {{kExperts, kRows, kBlocks}, scales_};
    tensors_[name("gate_up_proj_bias")] = {{kExperts, kRows}, bias, SafetensorsDtype::kBF16};
    tensors_[name("down_proj_blocks")] = {{kExperts, kRows, kBlocks, 16}, nibbles_};
    tensors_[name("down_proj_scales")] = {{kExperts, kRows, kBlocks}, scales_};
    tensors_[name("down_proj_bias")] = {{kExperts, kRows}, bias, SafetensorsDtype::kBF16};
    tensors_["lm_head.weight"] = {{1, 1}, std::vector<std::byte>(4), SafetensorsDtype::kF32};
  }
  static std::string name(const char* part) { return fmt::format("model.layers.0.mlp.experts.{}", part); }

  Result<ByteSource> open() {
    json config = FolderWriter(kFolders.back(), find_family("gpt-oss"), tests::build_family_file(find_family("gpt-oss"), 1)).config();
    config["num_experts"] = kExperts;
    config.update(more_);
    folder_.write("config.json", config.dump());
    std::vector<SafetensorsTensor> list;
    for (const auto& [tensor_name, tensor] : tensors_) list.push_back({tensor_name, tensor.dtype, tensor.shape, tensor.bytes});
    const Status written = write_safetensors(folder_.path("model.safetensors"), list);
    EXPECT_TRUE(written.ok()) << written.message();
    return open_model(folder_.path(""));
  }
  void expect_refusal(std::initializer_list<std::string> parts) {
    const Status status = open().status();
    EXPECT_FALSE(status.ok());
    for (const std::string& part : parts) EXPECT_NE(status.message().find(part), std::string::npos) << part << " is not in: " << status.message();
  }

  testing::TemporaryFolder folder_;
  std::vector<std::byte> scales_, nibbles_;
  std::map<std::string, Tensor> tensors_;
  json more_ = json::object();
};

TEST_F(GptOssFolderTest, ValuesAreThose) {
  const Result<ByteSource> source = open();
  ASSERT_TRUE(source.ok()) << source.status().message();
  const GgufFile file = GgufFile::parse(*source).value();
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  constexpr std::size_t kColumns = kBlocks * 32;
  for (const auto& [ours, step, first] : {std::tuple{"ffn_gate", 2u, 0u}, std::tuple{"ffn_up", 2u, 1u}, std::tuple{"ffn_down", 1u, 0u}}) {
    const GgufTensor* weight = file.find_tensor(fmt::format("blk.0.{}_exps.weight", ours));
    ASSERT_NE(weight, nullptr);
    EXPECT_EQ(weight->type, GgmlType::kMXFP4);
    EXPECT_EQ(weight->dims[0], kColumns);
    EXPECT_EQ(weight->dims[1], kRows / step);
    EXPECT_EQ(weight->dims[2], kExperts);
    const graph::BlockFormat& format = *graph::find_block_format(graph::Type::kMXFP4);
    const std::size_t n_rows = kExperts * kRows / step, row_bytes = kBlocks * 17;
    ASSERT_EQ(weight->size_bytes, n_rows * row_bytes);
    for (std::size_t row = 0; row < n_rows; ++row) {
      std::vector<std::byte> bytes(row_bytes);
      ASSERT_TRUE(source->read(weight->offset_bytes + row * row_bytes, bytes).ok());
      std::vector<float> values(kColumns);
      format.dequantize_row(bytes, kColumns, values.data());
      for (std::size_t column = 0; column < kColumns; ++column) {
        const std::size_t block = (row * step + first) * kBlocks + column / 32, in_block = column % 32;
        const unsigned nibble = std::to_integer<unsigned>(nibbles_[block * 16 + in_block / 2]) >> (in_block % 2 * 4) & 15;
        EXPECT_EQ(values[column], std::ldexp(kValues[nibble], std::to_integer<int>(scales_[block]) - 127)) << ours << " " << row << " " << column;
      }
    }
    const GgufTensor* bias = file.find_tensor(fmt::format("blk.0.{}_exps.bias", ours));
    ASSERT_NE(bias, nullptr);
    std::vector<std::byte> bytes(static_cast<std::size_t>(bias->size_bytes));
    ASSERT_TRUE(source->read(bias->offset_bytes, bytes).ok());
    ASSERT_EQ(bytes.size(), 2 * n_rows);
    for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], static_cast<std::byte>(2 * (i / 2 * step + first) + i % 2)) << ours;
  }
}

/// Any range, over more blocks than are read at a time.
TEST_F(GptOssFolderTest, RangesOfAnySizeAreReadAlike) {
  constexpr std::size_t kMany = 40'000;
  std::mt19937 random(3);
  std::string nibbles(16 * kMany, '\0'), scales(kMany, '\0');
  for (std::string* bytes : {&nibbles, &scales}) std::generate(bytes->begin(), bytes->end(), [&] { return static_cast<char>(random()); });
  const ByteSource joined = join_mxfp4(testing::source_of(nibbles), 0, testing::source_of(scales), 0, kMany);
  ASSERT_EQ(joined.size_bytes, 17 * kMany);
  std::vector<std::byte> whole(17 * kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    whole[17 * i] = static_cast<std::byte>(scales[i]);
    for (std::size_t j = 0; j < 32; ++j) {
      const auto nibble = static_cast<std::byte>(static_cast<unsigned char>(nibbles[16 * i + j / 2]) >> (j % 2 * 4) & 15);
      whole[17 * i + 1 + j % 16] |= j < 16 ? nibble : nibble << 4;
    }
  }
  for (std::size_t i = 0; i < 100; ++i) {
    const std::size_t offset = i == 0 ? 0 : random() % whole.size(), size = i == 0 ? whole.size() : std::min<std::size_t>(random() % (i % 9 == 0 ? 600'000 : 100), whole.size() - offset);
    std::vector<std::byte> bytes(size);
    ASSERT_TRUE(joined.read(offset, bytes).ok());
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset))) << size << " bytes at " << offset;
  }
}

TEST_F(GptOssFolderTest, WhatIsWrongIsNamed) {
  const auto tensors = tensors_;
  tensors_.erase(name("gate_up_proj_scales"));
  expect_refusal({"gate_up_proj_blocks", "without", "gate_up_proj_scales"});
  tensors_ = tensors;
  tensors_.erase(name("down_proj_blocks"));
  expect_refusal({"down_proj_scales", "without", "down_proj_blocks"});
  tensors_ = tensors;
  tensors_[name("down_proj_scales")].shape = {kExperts, kRows * kBlocks, 1};
  expect_refusal({"down_proj_scales", "does not fit"});
  tensors_ = tensors;
  tensors_[name("down_proj_blocks")].shape = {kExperts, kRows, kBlocks * 16};
  expect_refusal({"down_proj_blocks", "another shape"});
  tensors_ = tensors;
  tensors_[name("gate_up_proj_bias")] = {{kExperts, 7}, std::vector<std::byte>(kExperts * 7 * 2), SafetensorsDtype::kBF16};
  expect_refusal({"gate_up_proj_bias", "gates and ups"});
  tensors_ = tensors;
  tensors_[name("gate_up_proj_bias")].dtype = SafetensorsDtype::kU8;
  tensors_[name("gate_up_proj_bias")].shape = {kExperts, 2 * kRows};
  expect_refusal({"gate_up_proj_bias", "U8"});
  tensors_ = tensors;
  tensors_[name("gate_proj_blocks")] = tensors_[name("down_proj_blocks")];
  expect_refusal({"gate_proj_blocks", "is none that a gpt_oss has"});
  tensors_ = tensors;
  more_ = {{"num_experts", kExperts + 1}};
  expect_refusal({"down_proj_bias", "is of 3 experts, but the config of 4"});
  more_ = {{"swiglu_limit", 5}};
  expect_refusal({"config.json", "'swiglu_limit'"});
  more_ = {{"swiglu_alpha", 2}};
  expect_refusal({"config.json", "'swiglu_alpha'"});
  more_ = {{"hidden_act", "gelu"}};
  expect_refusal({"config.json", "'hidden_act'"});
  more_ = {{"rope_scaling", nullptr}};
  expect_refusal({"config.json", "'rope_scaling' is missing"});
  more_ = {{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"truncate", 3}}}};
  expect_refusal({"config.json", "'truncate'"});
}

INSTANTIATE_TEST_SUITE_P(All, HuggingFaceFamilyTest, ::testing::ValuesIn(kFolders), [](const ::testing::TestParamInfo<FolderFamily>& one) { return std::string(one.param.model_type); });

}  // namespace
}  // namespace rondo::models::hugging_face_family_test
