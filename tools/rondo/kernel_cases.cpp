#include "tools/rondo/kernel_cases.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "graph/block_format.h"
#include "graph/kernel_choice.h"
#include "graph/operator.h"
#include "lib/step_state.h"
#include "runtime/fmt.h"

namespace rondo::tools {

using graph::Op;
using graph::Shape;
using graph::StorageKind;
using graph::TensorId;
using graph::Type;

namespace {

/// The graph of one case, as it grows.
class Builder {
 public:
  explicit Builder(const KernelCase& one) : op(one.op), rows(one.rows), depth(one.depth), model(*one.model), type(one.type.value_or(Type::kF32)) {
    graph.name = kernel_name(one);
    std::vector<std::int32_t> words(RONDO_STATE_WORDS, 0);
    words[RONDO_STATE_POSITION] = static_cast<std::int32_t>(depth);
    words[RONDO_STATE_COUNT] = static_cast<std::int32_t>(rows);
    words[RONDO_STATE_ACTIVE] = 1;
    words[RONDO_STATE_TEMPERATURE] = std::bit_cast<std::int32_t>(0.8f);
    words[RONDO_STATE_TOP_K] = 40;
    words[RONDO_STATE_TOP_P] = std::bit_cast<std::int32_t>(0.95f);
    words[RONDO_STATE_MIN_P] = std::bit_cast<std::int32_t>(0.05f);
    words[RONDO_STATE_REPEAT_PENALTY] = std::bit_cast<std::int32_t>(1.0f);
    state = i32("state", {1, RONDO_STATE_WORDS}, StorageKind::kStep, words);
    graph.state = graph.tensor(state).storage;
  }

  TensorId f32(const char* name, const Shape& shape) { return graph.add_tensor(name, StorageKind::kInput, Type::kF32, shape); }
  /// With `values`, these before each measurement; else zeros at first.
  TensorId i32(const char* name, const Shape& shape, StorageKind kind, std::span<const std::int32_t> values = {}) {
    const TensorId id = graph.add_tensor(name, kind, Type::kI32, shape);
    if (id == graph::kNone || values.empty()) return id;
    const auto content = std::as_bytes(values);
    contents[graph.tensor(id).storage] = {content.begin(), content.end()};
    return id;
  }
  /// `n` numbers from `first` on, `step` apart.
  TensorId count_up(const char* name, const Shape& shape, std::int64_t first, std::int64_t step = 1, std::int64_t below = 1 << 30) {
    std::vector<std::int32_t> values;
    for (std::int64_t i = 0; i < shape.n_elements(); ++i) values.push_back(static_cast<std::int32_t>((first + i * step) % below));
    return i32(name, shape, StorageKind::kInput, values);
  }
  TensorId weight(std::int64_t outputs, std::int64_t columns) { return graph.add_weight("weight", type, {outputs, columns}); }
  TensorId cache(const char* name, std::int64_t n_ctx) {
    return graph.add_cache(name, StorageKind::kCache, type, {1, model.kv_heads, n_ctx, model.head_dim});
  }
  TensorId row_positions() { return count_up("positions", {1, rows}, depth); }
  TensorId start() { return count_up("start", {1}, depth); }

  /// Bytes of a row of a weight in this type.
  double weight_row_bytes(std::int64_t columns) const { return static_cast<double>(graph::file_row_bytes(*graph::find_block_format(type), static_cast<std::uint64_t>(columns))); }
  double cache_element_bytes() const { return type == Type::kF16 ? 2 : 4; }
  /// Adds to what must be moved once: f32 and i32 elements, and other bytes.
  void moves(std::int64_t words, double other_bytes = 0) { bytes += 4.0 * static_cast<double>(words) + other_bytes; }
  void computes(double operations) { flops += operations; }

  Op op;
  std::int64_t rows, depth;
  const LlamaExtents& model;
  Type type;
  graph::Graph graph;
  TensorId state = graph::kNone;
  models::StorageContents contents;
  double bytes = 0, flops = 0;

};

/// The tokens that a session keeps room for. step_end stops where it is full, far beyond what a measurement repeats.
constexpr std::int64_t kContext = 1 << 20;

constexpr double real(std::int64_t n) { return static_cast<double>(n); }

std::string rows_of(const Builder& b) { return b.rows == 1 ? "1 row" : fmt::format("{} rows", b.rows); }

// Each adds one operator to the graph and returns its shape in words.

std::string step_begin(Builder& b) {
  graph::StepBeginAttributes attributes;
  attributes.rows = b.rows;
  b.graph.add(Op::step_begin, {b.i32("tokens", {1, kContext}, StorageKind::kStep), b.state}, attributes);
  b.moves(3 * b.rows);
  return rows_of(b);
}

std::string step_end(Builder& b) {
  b.graph.add(Op::step_end, {b.i32("token", {1}, StorageKind::kInput), b.i32("tokens", {1, kContext}, StorageKind::kStep), b.i32("mirror", {1, kContext}, StorageKind::kStep), b.state});
  b.moves(2 * RONDO_STATE_WORDS + 3);
  return "1 token";
}

std::string embedding(Builder& b) {
  const LlamaExtents& m = b.model;
  const TensorId ids = b.count_up("ids", {1, b.rows}, 17, 4099, m.vocabulary);
  b.graph.add(Op::embedding, {ids, b.weight(m.vocabulary, m.width)});
  b.moves(b.rows * (1 + m.width), real(b.rows) * b.weight_row_bytes(m.width));
  return fmt::format("{} of {}", rows_of(b), m.width);
}

std::string matrix(Builder& b, std::int64_t outputs, std::int64_t columns) {
  b.graph.add(Op::linear, {b.f32("input", {1, b.rows, columns}), b.weight(outputs, columns)});
  b.moves(b.rows * (columns + outputs), real(outputs) * b.weight_row_bytes(columns));
  b.computes(2 * real(b.rows) * real(columns) * real(outputs));
  return fmt::format("{}, {} to {}", rows_of(b), columns, outputs);
}
std::string linear_down(Builder& b) { return matrix(b, b.model.width, b.model.ffn); }
std::string linear_output(Builder& b) { return matrix(b, b.model.vocabulary, b.model.width); }

std::string linear_glu(Builder& b) {
  const LlamaExtents& m = b.model;
  b.graph.add(Op::linear_glu, {b.f32("input", {1, b.rows, m.width}), b.weight(2 * m.ffn, m.width)});
  b.moves(b.rows * (m.width + m.ffn), 2 * real(m.ffn) * b.weight_row_bytes(m.width));
  b.computes(4 * real(b.rows) * real(m.width) * real(m.ffn));
  return fmt::format("{}, {} to {}", rows_of(b), m.width, m.ffn);
}

/// Eight experts, two of which each token has, as wide as the model's network.
constexpr std::int64_t kExperts = 8, kChosen = 2;

std::string route(Builder& b) {
  b.graph.add(Op::route, {b.f32("logits", {1, b.rows, kExperts})}, graph::RouteAttributes{kChosen});
  b.moves(b.rows * (kExperts + 2 * kChosen));
  return fmt::format("{}, {} of {}", rows_of(b), kChosen, kExperts);
}

/// Neighbouring tokens have different experts.
std::string of_experts(Builder& b, std::int64_t outputs, std::int64_t columns, bool up) {
  const bool glu = b.op == Op::expert_linear_glu;
  const TensorId experts = b.count_up("experts", {1, b.rows, kChosen}, 0, 3, kExperts);
  const TensorId input = b.f32("input", {1, b.rows, up ? columns : kChosen * columns});
  b.graph.add(b.op, {input, b.weight((glu ? 2 : 1) * kExperts * outputs, columns), experts}, graph::ExpertAttributes{kExperts, {}});
  const double rows = (glu ? 2 : 1) * real(outputs), read = real(std::min(kExperts, b.rows * kChosen));
  b.moves(b.rows * kChosen * outputs + b.rows * (up ? 1 : kChosen) * columns, read * rows * b.weight_row_bytes(columns));
  b.computes(2 * real(b.rows * kChosen) * real(columns) * rows);
  return fmt::format("{}, {} of {}, {} to {}", rows_of(b), kChosen, kExperts, columns, outputs);
}
std::string expert_linear(Builder& b) { return of_experts(b, b.model.width, b.model.ffn, false); }
std::string expert_linear_glu(Builder& b) { return of_experts(b, b.model.ffn, b.model.width, true); }

std::string weighted_sum(Builder& b) {
  const std::int64_t width = b.model.width;
  b.graph.add(Op::weighted_sum, {b.f32("input", {1, b.rows, kChosen * width}), b.f32("weights", {1, b.rows, kChosen})});
  b.moves(b.rows * (kChosen * (width + 1) + width));
  b.computes(2 * real(b.rows * kChosen) * real(width));
  return fmt::format("{}, {} of {}", rows_of(b), kChosen, width);
}

std::string layer_norm(Builder& b) {
  const std::int64_t width = b.model.width;
  b.graph.add(Op::layer_norm, {b.f32("input", {1, b.rows, width}), b.f32("weight", {width}), b.f32("bias", {width})}, graph::LayerNormAttributes{});
  b.moves(2 * b.rows * width + 2 * width);
  b.computes(7 * real(b.rows) * real(width));
  return fmt::format("{} of {}", rows_of(b), width);
}

/// Keys and queries of all heads, as attention without a cache multiplies them.
std::string matmul(Builder& b) {
  const LlamaExtents& m = b.model;
  graph::MatmulAttributes attributes;
  attributes.transpose_b = true;
  b.graph.add(Op::matmul, {b.f32("a", {m.heads, b.rows, m.head_dim}), b.f32("b", {m.heads, b.depth, m.head_dim})}, attributes);
  b.moves(m.heads * (b.rows * m.head_dim + b.depth * m.head_dim + b.rows * b.depth));
  b.computes(2 * real(m.heads * b.rows) * real(b.depth * m.head_dim));
  return fmt::format("{} of {} by {}, {} heads", rows_of(b), m.head_dim, b.depth, m.heads);
}

/// And what they weigh: values, along which rows lie.
std::string matmul_of_values(Builder& b) {
  const LlamaExtents& m = b.model;
  b.graph.add(Op::matmul, {b.f32("a", {m.heads, b.rows, b.depth}), b.f32("b", {m.heads, b.depth, m.head_dim})}, graph::MatmulAttributes{});
  b.moves(m.heads * (b.rows * m.head_dim + b.depth * m.head_dim + b.rows * b.depth));
  b.computes(2 * real(m.heads * b.rows) * real(b.depth * m.head_dim));
  return fmt::format("{} of {} by values of {}, {} heads", rows_of(b), b.depth, m.head_dim, m.heads);
}

/// Scores of one sequence.
Shape scores(const Builder& b) { return {1, b.model.heads, b.rows, b.depth}; }

std::string softmax(Builder& b) {
  b.graph.add(b.op, {b.f32("input", scores(b))}, graph::SoftmaxAttributes{});
  b.moves(2 * scores(b).n_elements());
  return fmt::format("{} of {}, {} heads", rows_of(b), b.depth, b.model.heads);
}

std::string reduce(Builder& b) {
  b.graph.add(b.op, {b.f32("input", {1, b.rows, b.model.width})}, graph::ReduceAttributes{});
  b.moves(b.rows * (b.model.width + 1));
  return fmt::format("{} of {}", rows_of(b), b.model.width);
}

std::string concat(Builder& b) {
  const Shape half = {1, b.rows, b.model.width / 2};
  b.graph.add(Op::concat, {b.f32("a", half), b.f32("b", half)}, graph::ConcatAttributes{2});
  b.moves(2 * b.rows * b.model.width);
  return fmt::format("{} of two times {}", rows_of(b), b.model.width / 2);
}

std::string pad(Builder& b) {
  graph::PadAttributes attributes;
  attributes.after[2] = 32;
  b.graph.add(Op::pad, {b.f32("input", {1, b.rows, b.model.width})}, attributes);
  b.moves(b.rows * (2 * b.model.width + 32));
  return fmt::format("{} of {} and 32", rows_of(b), b.model.width);
}

/// Heads before rows become rows before heads.
std::string copy(Builder& b) {
  const LlamaExtents& m = b.model;
  b.graph.add(Op::copy, {b.graph.transpose(b.f32("input", {1, m.heads, b.rows, m.head_dim}), {0, 2, 1, 3})});
  b.moves(2 * b.rows * m.heads * m.head_dim);
  return fmt::format("{} of {} heads", rows_of(b), m.heads);
}

/// f16 to f32.
std::string widen(Builder& b) {
  b.graph.add(Op::widen, {b.graph.add_tensor("input", StorageKind::kInput, Type::kF16, {1, b.rows, b.model.width})});
  b.moves(b.rows * b.model.width, 2.0 * real(b.rows * b.model.width));
  return fmt::format("{} of {}", rows_of(b), b.model.width);
}

std::string sinusoidal_positions(Builder& b) {
  graph::SinusoidAttributes attributes;
  attributes.width = b.model.width;
  b.graph.add(Op::sinusoidal_positions, {b.count_up("positions", {b.rows}, 0)}, attributes);
  b.moves(b.rows * (b.model.width + 1));
  return fmt::format("{} of {}", rows_of(b), b.model.width);
}

/// Patches of 16 by 16 pixels of three channels, one to a row.
std::string patch_embed(Builder& b) {
  const std::int64_t patch = 16, columns = 3 * patch * patch, width = b.model.width;
  b.graph.add(Op::patch_embed, {b.f32("pixels", {1, 3, patch, patch * b.rows}), b.weight(width, columns)}, graph::PatchEmbedAttributes{patch});
  b.moves(b.rows * (columns + width), real(width) * b.weight_row_bytes(columns));
  b.computes(2 * real(b.rows) * real(columns) * real(width));
  return fmt::format("{}, 3 x 16 x 16 to {}", b.rows == 1 ? "1 patch" : fmt::format("{} patches", b.rows), width);
}

std::string top_k(Builder& b) {
  b.graph.add(Op::top_k, {b.f32("input", {1, b.model.vocabulary})}, graph::TopKAttributes{40});
  b.moves(b.model.vocabulary + 80);
  return fmt::format("40 of {}", b.model.vocabulary);
}

std::string rms_norm(Builder& b) {
  const std::int64_t width = b.model.width;
  b.graph.add(Op::rms_norm, {b.f32("input", {1, b.rows, width}), b.f32("weight", {width})}, graph::RmsNormAttributes{});
  b.moves(2 * b.rows * width + width);
  b.computes(4 * real(b.rows) * real(width));
  return fmt::format("{} of {}", rows_of(b), width);
}

graph::RopeAttributes rope_attributes() {
  graph::RopeAttributes attributes;
  attributes.style = graph::RopeStyle::kInterleaved;
  attributes.max_position = 8192;
  return attributes;
}

std::string rope(Builder& b) {
  const LlamaExtents& m = b.model;
  b.graph.add(Op::rope, {b.f32("input", {1, m.heads, b.rows, m.head_dim}), b.row_positions()}, rope_attributes());
  b.moves(b.rows * (2 * m.heads * m.head_dim + 1));
  b.computes(3 * real(b.rows) * real(m.heads * m.head_dim));
  return fmt::format("{}, {} heads of {}", rows_of(b), m.heads, m.head_dim);
}

std::string rope_kv_write(Builder& b) {
  const LlamaExtents& m = b.model;
  const TensorId all = b.f32("query, key and value", {1, b.rows, (m.heads + 2 * m.kv_heads) * m.head_dim});
  const auto heads = [&](std::int64_t first, std::int64_t n) {
    const TensorId part = b.graph.slice(all, 2, first * m.head_dim, (first + n) * m.head_dim);
    return b.graph.transpose(b.graph.reshape(part, {1, b.rows, n, m.head_dim}), {0, 2, 1, 3});
  };
  const TensorId keys = b.cache("keys", b.depth + b.rows), values = b.cache("values", b.depth + b.rows);
  std::vector<TensorId> inputs = {heads(0, m.heads), heads(m.heads, m.kv_heads), heads(m.heads + m.kv_heads, m.kv_heads), b.row_positions(), b.start(), graph::kNone, keys, values};
  inputs.push_back(graph::kNone);
  if (b.op == Op::norm_rope_kv_write) inputs.push_back(b.f32("norm weights", {2, m.head_dim}));
  b.graph.add(b.op, inputs, graph::RopeKvWriteAttributes{rope_attributes(), {}, false});
  b.moves(b.rows * ((2 * m.heads + 2 * m.kv_heads) * m.head_dim + 1), 2 * real(b.rows * m.kv_heads * m.head_dim) * b.cache_element_bytes());
  b.computes(3 * real(b.rows) * real((m.heads + m.kv_heads) * m.head_dim));
  return fmt::format("{}, {}/{} heads of {}", rows_of(b), m.heads, m.kv_heads, m.head_dim);
}

std::string kv_write(Builder& b) {
  const LlamaExtents& m = b.model;
  b.graph.add(Op::kv_write, {b.cache("keys", b.depth + b.rows), b.f32("update", {1, m.kv_heads, b.rows, m.head_dim}), b.start()});
  const std::int64_t n = b.rows * m.kv_heads * m.head_dim;
  b.moves(n, real(n) * b.cache_element_bytes());
  return fmt::format("{}, {} heads of {}", rows_of(b), m.kv_heads, m.head_dim);
}

std::string attention(Builder& b) {
  const LlamaExtents& m = b.model;
  const std::int64_t keys = b.depth + b.rows;
  graph::AttentionAttributes attributes;
  attributes.causal = true;
  b.graph.add(Op::attention, {b.f32("query", {1, m.heads, b.rows, m.head_dim}), b.cache("keys", keys), b.cache("values", keys), b.start(), b.count_up("lengths", {1}, keys)}, attributes);
  b.moves(2 * b.rows * m.heads * m.head_dim, 2 * real(keys * m.kv_heads * m.head_dim) * b.cache_element_bytes());
  const double pairs = real(b.rows) * real(b.depth) + 0.5 * real(b.rows) * real(b.rows + 1);  // of a query and a key that it sees
  b.computes(4 * real(m.heads * m.head_dim) * pairs);
  return fmt::format("{} at depth {}, {}/{} heads of {}", rows_of(b), b.depth, m.heads, m.kv_heads, m.head_dim);
}

std::string attention_weights(Builder& b) {
  const LlamaExtents& m = b.model;
  const std::int64_t keys = b.depth + b.rows;
  graph::AttentionAttributes attributes;
  attributes.causal = true;
  b.graph.add(Op::attention_weights, {b.f32("query", {1, m.heads, b.rows, m.head_dim}), b.cache("keys", keys), b.start(), b.count_up("lengths", {1}, keys)}, attributes);
  b.moves(b.rows * m.heads * (m.head_dim + keys), real(keys * m.kv_heads * m.head_dim) * b.cache_element_bytes());
  b.computes(2 * real(m.heads * m.head_dim) * real(b.rows) * real(keys));
  return fmt::format("{} at depth {}, {}/{} heads of {}", rows_of(b), b.depth, m.heads, m.kv_heads, m.head_dim);
}

std::string glu(Builder& b) {
  const Shape shape = {1, b.rows, b.model.ffn};
  b.graph.add(Op::glu, {b.f32("gate", shape), b.f32("up", shape)});
  b.moves(3 * b.rows * b.model.ffn);
  b.computes(5 * real(b.rows) * real(b.model.ffn));
  return fmt::format("{} of {}", rows_of(b), b.model.ffn);
}

std::string unary(Builder& b) {
  b.graph.add(b.op, {b.f32("input", {1, b.rows, b.model.ffn})});
  b.moves(2 * b.rows * b.model.ffn);
  return fmt::format("{} of {}", rows_of(b), b.model.ffn);
}

std::string binary(Builder& b) {
  const Shape shape = {1, b.rows, b.model.width};
  b.graph.add(b.op, {b.f32("a", shape), b.f32("b", shape)});
  b.moves(3 * b.rows * b.model.width);
  b.computes(real(b.rows) * real(b.model.width));
  return fmt::format("{} of {}", rows_of(b), b.model.width);
}

std::string argmax(Builder& b) {
  b.graph.add(Op::argmax, {b.f32("logits", {1, b.model.vocabulary})});
  b.moves(b.model.vocabulary + 1);
  return fmt::format("{} logits", b.model.vocabulary);
}

std::string sample(Builder& b) {
  b.graph.add(Op::sample, {b.f32("logits", {1, b.model.vocabulary}), b.i32("tokens", {1, kContext}, StorageKind::kStep), b.state});
  b.moves(b.model.vocabulary + 1);
  return fmt::format("{} logits, top-k 40, top-p 0.95", b.model.vocabulary);
}

constexpr LlamaExtents kModels[] = {
    {"135m", false, 576, 9, 3, 64, 1536, 49152},
    {"8b", true, 4096, 32, 8, 128, 14336, 128256},
};

/// Decode, and two sizes of prefill.
constexpr std::int64_t kAllRows[] = {1, 64, 512};
constexpr std::int64_t kOneRow[] = {1};
constexpr std::int64_t kNear[] = {64};
constexpr std::int64_t kDepths[] = {512, 4096};

/// Types that a case is measured with: none, each that weights can have or the commonest, or what sessions keep their cache in.
enum class Types { kNone, kWeights, kCommonWeights, kCache };
constexpr Type kCommonTypes[] = {Type::kF16, Type::kQ8_0, Type::kQ4_0, Type::kQ4_K, Type::kQ6_K};

}  // namespace

struct StandardShape {
  Op op;
  Types types;
  std::span<const std::int64_t> rows, depths;
  std::string (*build)(Builder& builder);
  std::int64_t LlamaExtents::*columns = nullptr;  ///< of the weight, where there is one
};

namespace {

constexpr StandardShape kShapes[] = {
    {Op::step_begin, Types::kNone, kAllRows, kNear, step_begin},
    {Op::embedding, Types::kCommonWeights, kAllRows, kNear, embedding, &LlamaExtents::width},
    {Op::linear, Types::kWeights, kAllRows, kNear, linear_down, &LlamaExtents::ffn},
    {Op::linear, Types::kCommonWeights, kOneRow, kNear, linear_output, &LlamaExtents::width},
    {Op::linear_glu, Types::kCommonWeights, kAllRows, kNear, linear_glu, &LlamaExtents::width},
    {Op::route, Types::kNone, kAllRows, kNear, route},
    {Op::expert_linear, Types::kCommonWeights, kAllRows, kNear, expert_linear, &LlamaExtents::ffn},
    {Op::expert_linear_glu, Types::kCommonWeights, kAllRows, kNear, expert_linear_glu, &LlamaExtents::width},
    {Op::weighted_sum, Types::kNone, kAllRows, kNear, weighted_sum},
    {Op::matmul, Types::kNone, kAllRows, kNear, matmul},
    {Op::matmul, Types::kNone, kAllRows, kNear, matmul_of_values},
    {Op::layer_norm, Types::kNone, kAllRows, kNear, layer_norm},
    {Op::rms_norm, Types::kNone, kAllRows, kNear, rms_norm},
    {Op::rope, Types::kNone, kAllRows, kNear, rope},
    {Op::rope_kv_write, Types::kCache, kAllRows, kNear, rope_kv_write},
    {Op::norm_rope_kv_write, Types::kCache, kAllRows, kNear, rope_kv_write},
    {Op::kv_write, Types::kCache, kAllRows, kNear, kv_write},
    {Op::attention, Types::kCache, kAllRows, kDepths, attention},
    {Op::attention_weights, Types::kCache, kNear, kNear, attention_weights},
    {Op::glu, Types::kNone, kAllRows, kNear, glu},
    {Op::softmax, Types::kNone, kAllRows, kNear, softmax},
    {Op::log_softmax, Types::kNone, kAllRows, kNear, softmax},
    {Op::relu, Types::kNone, kNear, kNear, unary},
    {Op::gelu, Types::kNone, kNear, kNear, unary},
    {Op::gelu_tanh, Types::kNone, kNear, kNear, unary},
    {Op::quick_gelu, Types::kNone, kNear, kNear, unary},
    {Op::silu, Types::kNone, kNear, kNear, unary},
    {Op::tanh, Types::kNone, kNear, kNear, unary},
    {Op::sigmoid, Types::kNone, kNear, kNear, unary},
    {Op::exp, Types::kNone, kNear, kNear, unary},
    {Op::neg, Types::kNone, kNear, kNear, unary},
    {Op::add, Types::kNone, kAllRows, kNear, binary},
    {Op::sub, Types::kNone, kNear, kNear, binary},
    {Op::mul, Types::kNone, kNear, kNear, binary},
    {Op::div, Types::kNone, kNear, kNear, binary},
    {Op::mean, Types::kNone, kNear, kNear, reduce},
    {Op::sum, Types::kNone, kNear, kNear, reduce},
    {Op::max, Types::kNone, kNear, kNear, reduce},
    {Op::concat, Types::kNone, kNear, kNear, concat},
    {Op::pad, Types::kNone, kNear, kNear, pad},
    {Op::copy, Types::kNone, kNear, kNear, copy},
    {Op::widen, Types::kNone, kNear, kNear, widen},
    {Op::sinusoidal_positions, Types::kNone, kNear, kNear, sinusoidal_positions},
    {Op::patch_embed, Types::kNone, kNear, kNear, patch_embed},
    {Op::top_k, Types::kNone, kOneRow, kNear, top_k},
    {Op::argmax, Types::kNone, kOneRow, kNear, argmax},
    {Op::sample, Types::kNone, kOneRow, kNear, sample},
    {Op::step_end, Types::kNone, kOneRow, kNear, step_end},
};

/// The types that the shape is measured with; of weight types those whose blocks the model's rows are made of.
std::vector<std::optional<Type>> list_types(const StandardShape& shape, const LlamaExtents& model) {
  if (shape.types == Types::kNone) return {std::nullopt};
  if (shape.types == Types::kCache) return {Type::kF16};
  std::vector<std::optional<Type>> all;
  for (const Type type : graph::kWeightTypes) {
    const bool wanted = shape.types == Types::kWeights || std::find(std::begin(kCommonTypes), std::end(kCommonTypes), type) != std::end(kCommonTypes);
    if (wanted && model.*shape.columns % graph::find_block_format(type)->block_elements == 0) all.push_back(type);
  }
  return all;
}

/// "linear" is in names of several operators, "linear/" and "linear/ti" are of one, "/ti" of any.
bool is_wanted(const KernelCase& one, std::string_view filter) {
  const std::size_t at = kernel_name(one).find(filter), slash = filter.find('/');
  return slash == 0 || slash == std::string_view::npos ? at != std::string::npos : at == 0;
}

/// Whether the operator's work depends on the model at all.
bool depends_on_model(Op op) { return op != Op::step_begin && op != Op::step_end; }

}  // namespace

std::string kernel_name(const KernelCase& one) { return fmt::format("{}/{}", graph::operator_of(one.op).name, one.kernel); }

std::string type_of(const KernelCase& one) { return one.type ? graph::type_name(*one.type) : ""; }

std::vector<KernelCase> kernel_cases(std::string_view filter, bool large) {
  std::vector<KernelCase> cases;
  for (const StandardShape& shape : kShapes) {
    for (const char* kernel : graph::operator_of(shape.op).kernels) {
      KernelCase one;
      one.op = shape.op;
      one.kernel = kernel;
      one.shape = &shape;
      if (!is_wanted(one, filter)) continue;
      for (const LlamaExtents& model : kModels) {
        if (model.large && (!large || !depends_on_model(shape.op))) continue;
        for (const std::optional<Type>& type : list_types(shape, model)) {
          if (graph::takes_only_f16(kernel) && type != Type::kF16) continue;
          if (graph::by_integer_dots(kernel) && type && graph::find_block_format(*type)->block_elements == 1) continue;
          for (const std::int64_t rows : shape.rows) {
            for (const std::int64_t depth : shape.depths) {
              one.model = &model;
              one.type = type;
              one.rows = rows;
              one.depth = depth;
              cases.push_back(one);
            }
          }
        }
      }
    }
  }
  return cases;
}

std::string operator_names() {
  std::string names;
  for (std::size_t i = 0; i < graph::kOpCount; ++i) names += (i == 0 ? "" : ", ") + std::string(graph::operator_of(static_cast<Op>(i)).name);
  return names;
}

CaseGraph build_case(const KernelCase& one) {
  Builder builder(one);
  std::string words = one.shape->build(builder);
  if (depends_on_model(one.op)) words = fmt::format("{}: {}", one.model->name, words);
  return {std::move(builder.graph), std::move(builder.contents), std::move(words), builder.bytes, builder.flops};
}

}  // namespace rondo::tools
