#include "models/arch/llama.h"

#include <algorithm>
#include <cmath>

#include "graph/block_format.h"
#include "graph/cache_layout.h"
#include "models/printable.h"
#include "models/utf8.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

Status corrupt(const GgufFile& file, std::string message) {
  return Status(StatusCode::kCorruptData, fmt::format("{}: {}", file.name(), message));
}

Status unsupported(const GgufFile& file, std::string message) {
  return Status(StatusCode::kUnsupported, fmt::format("{}: {}", file.name(), message));
}

/// A positive integer below `limit`.
Status read_count(const GgufFile& file, const std::string& key, std::uint32_t limit, std::uint32_t& value) {
  RONDO_ASSIGN(value, file.u32(key));
  if (value >= 1 && value <= limit) return {};
  return corrupt(file, fmt::format("metadata key '{}' is {} but must be in [1, {}]", key, value, limit));
}

/// Linear scaling divides every frequency, which is what frequency factors do; other kinds aren't there yet.
Status check_rope_scaling(const GgufFile& file) {
  const char* type_key = "llama.rope.scaling.type";
  if (file.has(type_key)) {
    RONDO_ASSIGN(const std::string_view type, file.string(type_key));
    if (type != "none") return unsupported(file, fmt::format("metadata key '{}' is '{}', which is not there yet", type_key, type));
  }
  for (const char* key : {"llama.rope.scale_linear", "llama.rope.scaling.factor"}) {
    if (!file.has(key)) continue;
    RONDO_ASSIGN(const float factor, file.f32(key));
    if (factor != 0.0f && factor != 1.0f) return unsupported(file, fmt::format("metadata key '{}' is {}, which is not there yet", key, factor));
  }
  return {};
}

}  // namespace

Result<LlamaConfig> read_llama_config(const GgufFile& file) {
  LlamaConfig config;
  RONDO_ASSIGN(const std::string_view architecture, file.string("general.architecture"));
  if (architecture != "llama") {
    return unsupported(file, fmt::format("metadata key 'general.architecture' is '{}', which is not there yet (llama is)", architecture));
  }
  config.architecture = architecture;
  if (file.has("general.name")) {
    RONDO_ASSIGN(const std::string_view name, file.string("general.name"));
    Utf8Stream text;  // files promise UTF-8 but hold anything
    config.name = text.add(printable(name));
    config.name += text.finish();
  }
  RONDO_TRY(read_count(file, "llama.block_count", 4096, config.n_layers));
  RONDO_TRY(read_count(file, "llama.embedding_length", 1 << 20, config.width));
  RONDO_TRY(read_count(file, "llama.attention.head_count", 1 << 14, config.n_heads));
  RONDO_TRY(read_count(file, "llama.feed_forward_length", 1 << 22, config.ffn));
  RONDO_TRY(read_count(file, "llama.context_length", 1 << 24, config.context));
  config.n_kv_heads = config.n_heads;
  if (file.has("llama.attention.head_count_kv")) RONDO_TRY(read_count(file, "llama.attention.head_count_kv", config.n_heads, config.n_kv_heads));
  if (config.n_heads % config.n_kv_heads != 0) {
    return corrupt(file, fmt::format("metadata key 'llama.attention.head_count_kv' is {}, which does not divide the {} heads", config.n_kv_heads, config.n_heads));
  }
  config.head_dim = config.width / config.n_heads;
  if (file.has("llama.attention.key_length")) {
    RONDO_TRY(read_count(file, "llama.attention.key_length", 1 << 14, config.head_dim));
    RONDO_ASSIGN(const std::uint32_t value_length, file.u32_or("llama.attention.value_length", config.head_dim));
    if (value_length != config.head_dim) return unsupported(file, "metadata key 'llama.attention.value_length' differs from the key's, which is not there yet");
  } else if (config.width % config.n_heads != 0) {
    return corrupt(file, fmt::format("metadata key 'llama.embedding_length' is {}, which {} heads do not divide", config.width, config.n_heads));
  }
  RONDO_ASSIGN(const float epsilon, file.f32("llama.attention.layer_norm_rms_epsilon"));
  if (!(epsilon > 0 && epsilon < 1)) return corrupt(file, fmt::format("metadata key 'llama.attention.layer_norm_rms_epsilon' is {} but must be in (0, 1)", epsilon));
  config.epsilon = static_cast<double>(epsilon);
  if (file.has("llama.expert_count")) {
    RONDO_ASSIGN(const std::uint32_t experts, file.u32("llama.expert_count"));
    if (experts > 0) return unsupported(file, "metadata key 'llama.expert_count': mixtures of experts are not there yet");
  }
  RONDO_TRY(check_rope_scaling(file));
  RONDO_ASSIGN(const float theta, file.f32_or("llama.rope.freq_base", 10000.0f));
  if (!(theta > 0 && std::isfinite(theta))) return corrupt(file, fmt::format("metadata key 'llama.rope.freq_base' is {} but must be positive", theta));
  RONDO_ASSIGN(const std::uint32_t dimensions, file.u32_or("llama.rope.dimension_count", config.head_dim));
  if (dimensions < 2 || dimensions > config.head_dim || dimensions % 2 != 0) {
    return corrupt(file, fmt::format("metadata key 'llama.rope.dimension_count' is {} but must be even and in [2, {}]", dimensions, config.head_dim));
  }
  config.rope.style = graph::RopeStyle::kInterleaved;  // GGUF's llama files hold q and k permuted for it
  config.rope.dimensions = dimensions;
  config.rope.theta = static_cast<double>(theta);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (!embedding) return corrupt(file, "tensor 'token_embd.weight' is missing");
  if (embedding->n_dims != 2 || embedding->dims[1] > (1u << 24)) return corrupt(file, "tensor 'token_embd.weight' is not a matrix of at most 2^24 rows");
  config.n_vocab = static_cast<std::uint32_t>(embedding->dims[1]);
  return config;
}

std::optional<graph::Type> find_weight_type(GgmlType type) {
  switch (type) {
    case GgmlType::kF32: return graph::Type::kF32;
    case GgmlType::kF16: return graph::Type::kF16;
    case GgmlType::kQ8_0: return graph::Type::kQ8_0;
    case GgmlType::kQ4_0: return graph::Type::kQ4_0;
    case GgmlType::kQ4_K: return graph::Type::kQ4_K;
    case GgmlType::kQ6_K: return graph::Type::kQ6_K;
    case GgmlType::kBF16: return graph::Type::kBF16;
    case GgmlType::kQ4_1: return graph::Type::kQ4_1;
    case GgmlType::kQ5_0: return graph::Type::kQ5_0;
    case GgmlType::kQ5_1: return graph::Type::kQ5_1;
    case GgmlType::kQ5_K: return graph::Type::kQ5_K;
    case GgmlType::kQ2_K: return graph::Type::kQ2_K;
    case GgmlType::kQ3_K: return graph::Type::kQ3_K;
    case GgmlType::kIQ4_NL: return graph::Type::kIQ4_NL;
    case GgmlType::kMXFP4: return graph::Type::kMXFP4;
    default: return std::nullopt;
  }
}

namespace {

/// Finds, checks and groups tensors.
class WeightFinder {
 public:
  WeightFinder(const GgufFile& file, std::vector<WeightBlock>& blocks) : file_(file), blocks_(blocks) {}

  /// A matrix (rows, columns) of a weight type, as a block of its own.
  Status matrix(const std::string& name, std::int64_t rows, std::int64_t columns, WeightSlice& slice) {
    graph::Type type{};
    RONDO_ASSIGN(const GgufTensor* tensor, find(name, rows, columns, type));
    add_block(name, type, columns);
    add_part(tensor, rows, slice);
    return {};
  }

  /// Matrices that share their input: one block if their types agree, else one each.
  Status group(const std::vector<std::pair<std::string, std::int64_t>>& members, std::int64_t columns, const std::vector<WeightSlice*>& slices) {
    graph::Type previous{};
    for (std::size_t i = 0; i < members.size(); ++i) {
      graph::Type type{};
      RONDO_ASSIGN(const GgufTensor* tensor, find(members[i].first, members[i].second, columns, type));
      if (i == 0 || type != previous) add_block(members[i].first, type, columns);
      add_part(tensor, members[i].second, *slices[i]);
      previous = type;
    }
    return {};
  }

  /// A vector of norm weights, kept as f32.
  Status vector(const std::string& name, std::int64_t columns, WeightSlice& slice) {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (!tensor) return corrupt(file_, fmt::format("tensor '{}' is missing", name));
    if (tensor->n_dims != 1 || tensor->dims[0] != static_cast<std::uint64_t>(columns)) {
      return corrupt(file_, fmt::format("tensor '{}' has {} elements in {} dimensions but must have {}", name, tensor->dims[0], tensor->n_dims, columns));
    }
    if (tensor->type != GgmlType::kF32 && tensor->type != GgmlType::kF16) {
      return unsupported(file_, fmt::format("tensor '{}' is {}, which is not there yet for vectors (f32 and f16 are)", name, ggml_type_info(tensor->type).name));
    }
    add_block(name, graph::Type::kF32, columns);
    add_part(tensor, 1, slice);
    return {};
  }

 private:
  Result<const GgufTensor*> find(const std::string& name, std::int64_t rows, std::int64_t columns, graph::Type& type) {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (!tensor) return corrupt(file_, fmt::format("tensor '{}' is missing", name));
    if (tensor->n_dims != 2 || tensor->dims[0] != static_cast<std::uint64_t>(columns) || tensor->dims[1] != static_cast<std::uint64_t>(rows)) {
      return corrupt(file_, fmt::format("tensor '{}' is ({}, {}) in {} dimensions but must be ({}, {})", name, tensor->dims[1], tensor->dims[0], tensor->n_dims, rows, columns));
    }
    const std::optional<graph::Type> kept = find_weight_type(tensor->type);
    if (!kept) {
      return unsupported(file_, fmt::format("tensor '{}' is {}, a weight type that is not there yet (f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_K to q6_K, iq4_nl and mxfp4 "
                                            "are)", name, ggml_type_info(tensor->type).name));
    }
    type = *kept;
    return tensor;
  }

  void add_block(const std::string& name, graph::Type type, std::int64_t columns) {
    WeightBlock block;
    block.name = name;
    block.type = type;
    block.matrix = {0, columns};
    blocks_.push_back(std::move(block));
  }

  void add_part(const GgufTensor* tensor, std::int64_t rows, WeightSlice& slice) {
    WeightBlock& block = blocks_.back();
    slice = {static_cast<std::int32_t>(blocks_.size() - 1), block.matrix[0], rows};
    block.parts.push_back({tensor, block.matrix[0]});
    block.matrix[0] += rows;
  }

  const GgufFile& file_;
  std::vector<WeightBlock>& blocks_;
};

}  // namespace

Status find_llama_weights(const GgufFile& file, const LlamaConfig& config, const std::vector<float>& rope_factors,
                          std::vector<WeightBlock>& blocks, LlamaWeights& weights) {
  WeightFinder find(file, blocks);
  const std::int64_t width = config.width, ffn = config.ffn, vocab = config.n_vocab;
  const std::int64_t query_rows = std::int64_t{config.n_heads} * config.head_dim, kv_rows = std::int64_t{config.n_kv_heads} * config.head_dim;
  weights.rope_factors = rope_factors;
  RONDO_TRY(find.matrix("token_embd.weight", vocab, width, weights.embedding));
  for (std::uint32_t i = 0; i < config.n_layers; ++i) {
    const std::string prefix = fmt::format("blk.{}.", i);
    for (const char* bias : {"attn_q.bias", "attn_k.bias", "attn_v.bias", "attn_output.bias"}) {
      if (file.find_tensor(prefix + bias)) return unsupported(file, fmt::format("tensor '{}{}': biases are not there yet", prefix, bias));
    }
    LlamaWeights::Layer layer;
    RONDO_TRY(find.vector(prefix + "attn_norm.weight", width, layer.attention_norm));
    RONDO_TRY(find.group({{prefix + "attn_q.weight", query_rows}, {prefix + "attn_k.weight", kv_rows}, {prefix + "attn_v.weight", kv_rows}}, width,
                         {&layer.query, &layer.key, &layer.value}));
    RONDO_TRY(find.matrix(prefix + "attn_output.weight", width, query_rows, layer.output));
    RONDO_TRY(find.vector(prefix + "ffn_norm.weight", width, layer.ffn_norm));
    RONDO_TRY(find.group({{prefix + "ffn_gate.weight", ffn}, {prefix + "ffn_up.weight", ffn}}, width, {&layer.gate, &layer.up}));
    RONDO_TRY(find.matrix(prefix + "ffn_down.weight", width, ffn, layer.down));
    weights.layers.push_back(layer);
  }
  RONDO_TRY(find.vector("output_norm.weight", width, weights.output_norm));
  weights.output = weights.embedding;  // tied unless the file has a head of its own
  if (file.find_tensor("output.weight")) RONDO_TRY(find.matrix("output.weight", vocab, width, weights.output));
  return {};
}

std::uint64_t cache_head_bytes(const LlamaConfig& config, graph::Type kv_type, std::int64_t n_ctx) {
  return graph::cache_layout(kv_type, n_ctx, config.head_dim).size_bytes;
}

std::int64_t widest_row(const LlamaConfig& config) {
  const std::int64_t heads = std::int64_t{config.n_heads} + 2 * std::int64_t{config.n_kv_heads};
  return std::max({std::int64_t{config.width}, heads * config.head_dim, 2 * std::int64_t{config.ffn}});
}

namespace {

using graph::Graph;
using graph::Op;
using graph::TensorId;

void place_pieces(const std::vector<graph::StoragePiece>& pieces, graph::Storage& storage) {
  if (pieces.size() == 1) storage.place = pieces[0].place;
  else storage.pieces = pieces;
  for (const graph::StoragePiece& piece : pieces) storage.size_bytes += piece.place.size_bytes;
}

/// Builds one step. Storages are added at their places; each weight block once.
class LlamaStep {
 public:
  LlamaStep(const LlamaConfig& config, const std::vector<WeightBlock>& blocks, const StepPlaces& places)
      : config_(config), blocks_(blocks), places_(places), storages_(blocks.size(), graph::kNone) {}

  Graph build(const LlamaWeights& weights, std::int64_t rows, StepHead head);

 private:
  TensorId weight(const WeightSlice& slice);
  TensorId norm_weight(const WeightSlice& slice);
  TensorId step_tensor(const char* name, const runtime::BufferRange& place, const graph::Shape& shape);
  TensorId cache(const std::string& name, const std::vector<graph::StoragePiece>& pieces);
  TensorId heads(TensorId input, std::int64_t n_heads);
  TensorId layer(const LlamaWeights::Layer& weights, std::size_t index, TensorId hidden);

  const LlamaConfig& config_;
  const std::vector<WeightBlock>& blocks_;
  const StepPlaces& places_;
  std::vector<graph::StorageId> storages_;
  Graph graph_;
  graph::RmsNormAttributes norm_;
  graph::RopeAttributes rope_;
  TensorId positions_ = graph::kNone, start_ = graph::kNone, count_ = graph::kNone, lengths_ = graph::kNone, factors_ = graph::kNone;
};

TensorId LlamaStep::weight(const WeightSlice& slice) {
  const WeightBlock& block = blocks_[static_cast<std::size_t>(slice.block)];
  graph::StorageId& storage_id = storages_[static_cast<std::size_t>(slice.block)];
  if (storage_id == graph::kNone) {
    graph::Storage storage;
    storage.name = block.name;
    storage.kind = graph::StorageKind::kWeight;
    storage.type = block.type;
    storage.matrix = block.matrix;
    place_pieces(block.pieces, storage);
    storage_id = graph_.add_storage(std::move(storage));
  }
  graph::Tensor tensor;
  tensor.name = block.name;
  tensor.type = block.type;
  tensor.shape = {slice.n_rows, block.matrix[1]};
  tensor.strides = graph::contiguous_strides(tensor.shape);
  tensor.offset_elements = slice.first_row * block.matrix[1];
  tensor.storage = storage_id;
  return graph_.add_view(std::move(tensor));
}

TensorId LlamaStep::norm_weight(const WeightSlice& slice) {
  const TensorId matrix = weight(slice);
  return graph_.reshape(matrix, {graph_.tensor(matrix).shape[1]});
}

TensorId LlamaStep::step_tensor(const char* name, const runtime::BufferRange& place, const graph::Shape& shape) {
  const TensorId id = graph_.add_tensor(name, graph::StorageKind::kStep, graph::Type::kI32, shape);
  if (id != graph::kNone) graph_.storage(graph_.tensor(id).storage).place = place;
  return id;
}

TensorId LlamaStep::cache(const std::string& name, const std::vector<graph::StoragePiece>& pieces) {
  graph::Storage storage;
  storage.name = name;
  storage.kind = graph::StorageKind::kCache;
  storage.type = places_.kv_type;
  place_pieces(pieces, storage);
  graph::Tensor tensor;
  tensor.name = name;
  tensor.type = places_.kv_type;
  tensor.shape = {graph_.n_sequences, config_.n_kv_heads, places_.n_ctx, config_.head_dim};
  tensor.strides = graph::cache_strides(places_.kv_type, tensor.shape);
  tensor.storage = graph_.add_storage(std::move(storage));
  return graph_.add_view(std::move(tensor));
}

/// (B, T, heads * D) seen as (B, heads, T, D).
TensorId LlamaStep::heads(TensorId input, std::int64_t n_heads) {
  if (!graph_.status().ok()) return graph::kNone;
  const graph::Shape shape = graph_.tensor(input).shape;
  return graph_.transpose(graph_.reshape(input, {shape[0], shape[1], n_heads, config_.head_dim}), {0, 2, 1, 3});
}

TensorId LlamaStep::layer(const LlamaWeights::Layer& weights, std::size_t index, TensorId hidden) {
  Graph& g = graph_;
  const TensorId keys = cache(fmt::format("layer {} keys", index), places_.key_caches[index]);
  const TensorId values = cache(fmt::format("layer {} values", index), places_.value_caches[index]);

  const TensorId normed = g.add(Op::rms_norm, {hidden, norm_weight(weights.attention_norm)}, norm_);
  const TensorId query = heads(g.add(Op::linear, {normed, weight(weights.query)}), config_.n_heads);
  const TensorId key = heads(g.add(Op::linear, {normed, weight(weights.key)}), config_.n_kv_heads);
  const TensorId value = heads(g.add(Op::linear, {normed, weight(weights.value)}), config_.n_kv_heads);
  const TensorId rotated_query = g.add(Op::rope, {query, positions_, factors_}, rope_);
  const TensorId rotated_key = g.add(Op::rope, {key, positions_, factors_}, rope_);
  g.add(Op::kv_write, {keys, rotated_key, start_, count_});
  g.add(Op::kv_write, {values, value, start_, count_});
  graph::AttentionAttributes attention;
  attention.causal = true;
  const TensorId attended = g.add(Op::attention, {rotated_query, keys, values, start_, lengths_}, attention);
  if (!g.status().ok()) return graph::kNone;
  const graph::Shape shape = g.tensor(hidden).shape;
  const TensorId joined = g.reshape(g.transpose(attended, {0, 2, 1, 3}), {shape[0], shape[1], std::int64_t{config_.n_heads} * config_.head_dim});
  const TensorId after_attention = g.add(Op::add, {g.add(Op::linear, {joined, weight(weights.output)}), hidden});

  const TensorId ffn_normed = g.add(Op::rms_norm, {after_attention, norm_weight(weights.ffn_norm)}, norm_);
  const TensorId gate = g.add(Op::linear, {ffn_normed, weight(weights.gate)});
  const TensorId up = g.add(Op::linear, {ffn_normed, weight(weights.up)});
  const TensorId down = g.add(Op::linear, {g.add(Op::glu, {gate, up}), weight(weights.down)});
  return g.add(Op::add, {down, after_attention});
}

Graph LlamaStep::build(const LlamaWeights& weights, std::int64_t rows, StepHead head) {
  Graph& g = graph_;
  g.name = fmt::format("{} {}", head == StepHead::kNone ? "prefill" : head == StepHead::kLogits ? "logits" : rows == 1 ? "decode" : "prefill and sample", rows);
  norm_.epsilon = config_.epsilon;
  rope_ = config_.rope;
  rope_.max_position = places_.n_ctx;
  const TensorId state = step_tensor("state", places_.state, {g.n_sequences, RONDO_STATE_WORDS});
  const TensorId tokens = step_tensor("tokens", places_.tokens, {g.n_sequences, places_.n_ctx});
  const TensorId mirror = step_tensor("mirror", places_.mirror, {g.n_sequences, places_.n_ctx});
  if (!g.status().ok()) return std::move(graph_);
  g.state = g.tensor(state).storage;
  if (!weights.rope_factors.empty()) {
    factors_ = g.add_constant("rope factors", {static_cast<std::int64_t>(weights.rope_factors.size())}, weights.rope_factors);
  }
  const TensorId ids = g.add(Op::step_begin, {tokens, state}, graph::StepBeginAttributes{rows});
  if (!g.status().ok()) return std::move(graph_);
  const std::vector<TensorId> step = g.last_outputs();
  positions_ = step[1], start_ = step[2], count_ = step[3], lengths_ = step[4];

  TensorId hidden = g.add(Op::embedding, {ids, weight(weights.embedding)});
  for (std::size_t i = 0; i < weights.layers.size(); ++i) hidden = layer(weights.layers[i], i, hidden);
  TensorId token = graph::kNone;
  if (head != StepHead::kNone && g.status().ok()) {
    if (head == StepHead::kSample) {
      const TensorId all_rows = g.reshape(hidden, {g.n_sequences * rows, config_.width});
      hidden = rows == 1 ? all_rows : g.add(Op::embedding, {step[5], all_rows});
    }
    const TensorId normed = g.add(Op::rms_norm, {hidden, norm_weight(weights.output_norm)}, norm_);
    const TensorId logits = g.add(Op::linear, {normed, weight(weights.output)});
    if (head == StepHead::kSample) {
      token = g.add(Op::sample, {logits, tokens, state});
    } else if (g.status().ok()) {
      graph::Storage& output = g.storage(g.tensor(logits).storage);
      output.kind = graph::StorageKind::kOutput;
      output.place = places_.logits;
    }
  }
  g.add(Op::step_end, {token, tokens, mirror, state});
  return std::move(graph_);
}

}  // namespace

graph::Graph build_llama_step(const LlamaConfig& config, const LlamaWeights& weights, const std::vector<WeightBlock>& blocks,
                              const StepPlaces& places, std::int64_t rows, StepHead head) {
  return LlamaStep(config, blocks, places).build(weights, rows, head);
}

}  // namespace rondo::models
