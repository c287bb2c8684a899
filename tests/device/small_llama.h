// A Llama of some thousand parameters as a GGUF file in memory: right, or wrong in one place; and fast.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "graph/float16.h"
#include "models/formats/gguf.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/small_vocabulary.h"

namespace rondo::tests {

/// Two layers of made-up weights, so strong beside the embedding that its texts wander; or whatever a test wants to be wrong.
struct SmallLlama {
  std::string architecture = "llama";
  std::uint32_t n_layers = 2, width = 32, n_heads = 4, n_kv_heads = 2, ffn = 64, context = 2048, n_vocab = 300, n_tokens = 300;
  std::uint32_t eos = 2;
  float epsilon = 1e-5f;
  bool rms_epsilon = true;
  std::string missing;                               ///< a tensor that is left out
  std::string changed;                               ///< a tensor with other dimensions or another type; of zeros unless that is f16
  std::vector<std::uint64_t> changed_dims;
  models::GgmlType changed_type = models::GgmlType::kF32;
  std::function<void(testing::GgufWriter&)> add_keys;
  std::string extra;                                 ///< a tensor that llamas don't have

  std::string build() const {
    testing::GgufWriter writer;
    writer.string("general.architecture", architecture).string("general.name", "small");
    writer.u32("llama.block_count", n_layers).u32("llama.embedding_length", width).u32("llama.attention.head_count", n_heads);
    writer.u32("llama.attention.head_count_kv", n_kv_heads).u32("llama.feed_forward_length", ffn).u32("llama.context_length", context);
    if (rms_epsilon) writer.f32("llama.attention.layer_norm_rms_epsilon", epsilon);
    if (add_keys) add_keys(writer);
    testing::write_byte_tokenizer(writer, n_tokens, eos);
    write_tensors(writer);
    return writer.build();
  }

 private:
  void write_tensors(testing::GgufWriter& writer) const {
    const std::uint64_t kv_rows = std::uint64_t{width} / std::max(n_heads, 1u) * n_kv_heads;
    add(writer, "token_embd.weight", {width, n_vocab});
    for (std::uint32_t i = 0; i < n_layers && i < 2; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      add(writer, block + "attn_norm.weight", {width});
      add(writer, block + "attn_q.weight", {width, width});
      add(writer, block + "attn_k.weight", {width, kv_rows});
      add(writer, block + "attn_v.weight", {width, kv_rows});
      add(writer, block + "attn_output.weight", {width, width});
      add(writer, block + "ffn_norm.weight", {width});
      add(writer, block + "ffn_gate.weight", {width, ffn});
      add(writer, block + "ffn_up.weight", {width, ffn});
      add(writer, block + "ffn_down.weight", {ffn, width});
    }
    add(writer, "output_norm.weight", {width});
    if (!extra.empty()) add(writer, extra, {width});
  }

  void add(testing::GgufWriter& writer, const std::string& name, std::vector<std::uint64_t> dims) const {
    if (name == missing) return;
    models::GgmlType type = models::GgmlType::kF32;
    if (name == changed) {
      if (!changed_dims.empty()) dims = changed_dims;
      type = changed_type;
    }
    std::uint64_t n = 1;
    for (const std::uint64_t dim : dims) n *= dim;
    const models::GgmlTypeInfo& stored = models::ggml_type_info(type);
    std::string data(n / stored.block_elements * stored.block_bytes, '\0');
    if (type == models::GgmlType::kF32 || type == models::GgmlType::kF16) {
      std::uint32_t random = 0;
      for (const char c : name) random = random * 31 + static_cast<std::uint8_t>(c);
      for (std::uint64_t i = 0; i < n; ++i) {
        random = random * 1664525u + 1013904223u;
        const float uniform = static_cast<float>(random >> 8) / static_cast<float>(1u << 23) - 1;
        const float value = dims.size() == 1 ? 1 + 0.2f * uniform : name == "token_embd.weight" ? 0.1f * uniform : 0.5f * uniform;
        const std::uint16_t half = graph::float_to_half(value);
        if (type == models::GgmlType::kF16) std::memcpy(data.data() + 2 * i, &half, 2);
        else std::memcpy(data.data() + 4 * i, &value, 4);
      }
    }
    writer.tensor(name, dims, type, data);
  }
};

}  // namespace rondo::tests
