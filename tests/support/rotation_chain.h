// A step's linear of queries, keys and values with the rotation and the caches behind it, which it can do (shaders/lib/linear_rotation.glsl).
#pragma once

#include "runtime/fmt.h"
#include "tests/support/norm_chain.h"

namespace rondo::tests::rotation_chain {

using norm_chain::by_dots;
using norm_chain::by_halves;
using norm_chain::by_subgroups;
using norm_chain::numbers;
using norm_chain::weight;
using check::OpCase;
using graph::Op;
using graph::TensorId;
using graph::Type;
using graph::RopeStyle;

struct Sizes {
  std::int64_t sequences, rows, columns, heads, kv_heads, width;
};

struct Step {
  Type weight = Type::kQ8_0, cache = Type::kF16;
  RopeStyle style = RopeStyle::kInterleaved;
  std::int64_t dimensions = 0;  ///< that turn; 0: all
  std::int64_t cache_rows = 113;
  std::int32_t position = 61;
  bool bias = false, ring = false, norm = false;
  bool other_reader = false;  ///< of what is turned
  std::optional<Type> value_weight = {};  ///< values are another linear's
  double factor = 1;
  Type activations = Type::kF32;
};

/// A step's tokens through the linear of an attention, and what comes behind it.
inline OpCase step_of(Sizes s, const Step& with) {
  s.columns = check::whole_blocks(with.value_weight.value_or(with.weight), check::whole_blocks(with.weight, s.columns));
  OpCase c(static_cast<int>(s.sequences));
  const std::int64_t all = (s.heads + 2 * s.kv_heads) * s.width, context = 256;
  const TensorId tokens = c.step_i32("tokens", {s.sequences, context}, std::vector<std::int32_t>(static_cast<std::size_t>(s.sequences * context), 1));
  for (int i = 0; i < static_cast<int>(s.sequences); ++i) {
    c.set_count(i, static_cast<std::int32_t>(s.rows));
    c.set_state(i, 0, with.position + 3 * i);
  }
  c.graph.add(Op::step_begin, {tokens, c.state}, graph::StepBeginAttributes{s.rows});
  const std::vector<TensorId> step = c.graph.last_outputs();
  const graph::Shape cache_shape = {s.sequences, s.kv_heads, with.cache_rows, s.width};
  const TensorId keys = c.cache("keys", with.cache, cache_shape, numbers(cache_shape.n_elements(), 1)), values = c.cache("values", with.cache, cache_shape, numbers(cache_shape.n_elements(), 2));
  TensorId input = c.activation("input", with.activations, {s.sequences, s.rows, s.columns}, numbers(s.sequences * s.rows * s.columns, 3));
  if (with.norm) {
    const TensorId before = c.graph.add(Op::linear, {input, weight(c, "before", Type::kF32, s.columns, s.columns, 8)});
    input = c.graph.add(Op::rms_norm, {before, c.f32("gains", {s.columns}, numbers(s.columns, 9))}, graph::RmsNormAttributes{});
  }
  const std::int64_t together = with.value_weight ? all - s.kv_heads * s.width : all;
  const TensorId bias = with.bias ? c.f32("bias", {together}, numbers(together, 4)) : graph::kNone;
  const TensorId made = c.graph.add(Op::linear, {input, weight(c, "weight", with.weight, together, s.columns, 5), graph::kNone, bias});
  const TensorId apart = with.value_weight ? c.graph.add(Op::linear, {input, weight(c, "weight of values", *with.value_weight, all - together, s.columns, 6)}) : graph::kNone;
  const auto heads_of = [&](TensorId tensor, std::int64_t first, std::int64_t n) {
    return c.graph.transpose(c.graph.reshape(c.graph.slice(tensor, 2, first * s.width, (first + n) * s.width), {s.sequences, s.rows, n, s.width}), {0, 2, 1, 3});
  };
  const auto heads = [&](std::int64_t first, std::int64_t n) { return heads_of(made, first, n); };
  graph::RopeAttributes rope;
  rope.style = with.style;
  rope.dimensions = with.dimensions;
  rope.max_position = 512;
  rope.attention_factor = with.factor;
  const TensorId query = c.graph.add(Op::rope, {heads(0, s.heads), step[1]}, rope);
  const TensorId key = c.graph.add(Op::rope, {heads(s.heads, s.kv_heads), step[1]}, rope);
  c.graph.add(Op::kv_write, {keys, key, step[2], step[3]}, graph::KvWriteAttributes{with.ring});
  c.graph.add(Op::kv_write, {values, with.value_weight ? heads_of(apart, 0, s.kv_heads) : heads(s.heads + s.kv_heads, s.kv_heads), step[2], step[3]}, graph::KvWriteAttributes{with.ring});
  c.output(query, 2);
  if (with.other_reader) c.output(c.graph.add(Op::relu, {made}));
  return c;
}

inline std::string text_of(const Sizes& s, const Step& with) {
  return fmt::format("{} in {}, {} x {} of {} columns, {} heads and {} of {}, {} of {}", s.rows, with.cache_rows, s.sequences, s.rows, s.columns, s.heads, s.kv_heads, s.width, with.style == RopeStyle::kHalf ? "halves" : "pairs", with.dimensions);
}

}  // namespace rondo::tests::rotation_chain
