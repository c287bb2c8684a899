// The Llama architecture and its hyper-parameters, as GGUF files name them, and the graphs of its steps.
// Touvron et al. 2023 (Llama), with grouped-query attention (Ainslie et al. 2023).
//
// Pure: no files are read beyond the parsed header, no Vulkan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "graph/graph.h"
#include "models/formats/gguf.h"

namespace rondo::models {

struct LlamaConfig {
  std::string architecture;
  std::string name;
  std::uint32_t n_layers = 0, width = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, ffn = 0, n_vocab = 0, context = 0;
  double epsilon = 1e-5;
  graph::RopeAttributes rope;
};

/// Reads and checks the hyper-parameters. Errors: kUnsupported (another architecture, a feature that isn't there yet),
/// kCorruptData (missing, wrongly typed or contradictory), naming file and key.
Result<LlamaConfig> read_llama_config(const GgufFile& file);

/// Rows [first_row, first_row + n_rows) of one weight block.
struct WeightSlice {
  std::int32_t block = -1;
  std::int64_t first_row = 0;
  std::int64_t n_rows = 0;
};

/// Where the weights of the model are among the blocks.
struct LlamaWeights {
  struct Layer {
    WeightSlice attention_norm, query, key, value, output, ffn_norm, gate, up, down;
  };
  WeightSlice embedding, output_norm, output;
  std::vector<Layer> layers;
  std::vector<float> rope_factors;  ///< head_dim / 2 or empty
};

/// One run of bytes in device memory that holds one weight, or several of equal type and width, row after row.
struct WeightBlock {
  std::string name;
  graph::Type type{};
  graph::Shape matrix;  ///< (N, K)
  std::vector<graph::StoragePiece> pieces;  ///< of rows, in order; none until they have places
  struct Part {
    const GgufTensor* tensor;
    std::int64_t first_row;
  };
  std::vector<Part> parts;
};

/// The type in which matrices of a file's type are kept; none for types that are not there yet.
std::optional<graph::Type> find_weight_type(GgmlType type);

/// Finds the model's tensors in the file, checks their shapes and types, and groups them into blocks (q, k, v; gate, up).
/// Errors: kCorruptData (missing tensors, wrong shapes), kUnsupported (weight types), naming file and tensor.
Status find_llama_weights(const GgufFile& file, const LlamaConfig& config, const std::vector<float>& rope_factors,
                          std::vector<WeightBlock>& blocks, LlamaWeights& weights);

/// What a step leaves behind.
enum class StepHead : std::uint8_t {
  kNone,    ///< only the cache
  kSample,  ///< the next token, sampled from the last valid row
  kLogits,  ///< logits of all rows, in the output storage
};

/// Places of what a session owns.
struct StepPlaces {
  std::int64_t n_ctx = 0;
  graph::Type kv_type = graph::Type::kF16;
  runtime::BufferRange state, tokens, mirror, logits;
  std::vector<std::vector<graph::StoragePiece>> key_caches, value_caches;  ///< per layer, in pieces of KV heads
};

/// The graph of one step of `rows` tokens: step_begin, embedding, layers, head, step_end, in simple operators.
graph::Graph build_llama_step(const LlamaConfig& config, const LlamaWeights& weights, const std::vector<WeightBlock>& blocks,
                              const StepPlaces& places, std::int64_t rows, StepHead head);

/// Bytes of one KV head's keys, or values, in one layer: context x head width, with padding and scales.
std::uint64_t cache_head_bytes(const LlamaConfig& config, graph::Type kv_type, std::int64_t n_ctx);

/// Floats of the widest row that a step of this model computes, its logits aside.
std::int64_t widest_row(const LlamaConfig& config);

}  // namespace rondo::models
