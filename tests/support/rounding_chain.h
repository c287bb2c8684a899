// What leaves its outputs in bytes for a linear behind it (shaders/lib/rounding.glsl).
#pragma once

#include "graph/ops/attention_inputs.h"
#include "tests/support/norm_chain.h"

namespace rondo::tests::rounding_chain {

using namespace norm_chain;

inline TensorId q8(OpCase& c, const char* name, std::int64_t rows, std::int64_t columns) { return weight(c, name, Type::kQ8_0, rows, columns, static_cast<std::uint32_t>(rows * 31 + columns)); }
inline TensorId input(OpCase& c, const graph::Shape& shape, float scale = 1, const char* name = "input") { return c.f32(name, shape, numbers(shape.n_elements(), static_cast<std::uint32_t>(shape.n_elements()), scale)); }

/// A norm of an input, which no linear before it can compute. 0: rms_norm, 1: the same with a residual, 2: layer_norm.
inline TensorId norm_of_kind(OpCase& c, int kind, std::int64_t rows, std::int64_t columns, float gains_scale = 1) {
  const TensorId x = input(c, {rows, columns}), gains = c.f32("gains", {columns}, numbers(columns, 5, gains_scale));
  if (kind == 0) return c.graph.add(Op::rms_norm, {x, gains});
  if (kind == 1) return c.graph.add(Op::rms_norm, {x, gains, input(c, {rows, columns}, 3, "residual")});
  return c.graph.add(Op::layer_norm, {x, gains, c.f32("bias", {columns}, numbers(columns, 6, gains_scale))});
}

/// A linear of 64 columns and one behind it; the first one's output.
inline TensorId linears(OpCase& c, std::int64_t rows, std::int64_t columns, float scale = 1, Type first = Type::kQ8_0) {
  const TensorId made = c.graph.add(Op::linear, {input(c, {rows, 64}, scale), weight(c, "first", first, columns, 64, 3)});
  c.output(c.graph.add(Op::linear, {made, q8(c, "second", 41, columns)}));
  return made;
}

/// Attention of four heads over two of keys, and a linear of its output or of two heads of it.
inline OpCase attention(std::int64_t rows, std::int64_t keys, std::int64_t width, bool part = false) {
  constexpr std::int64_t kHeads = 4;
  OpCase c;
  std::vector<TensorId> in(graph::kAttentionFileInputs, graph::kNone);
  in[graph::kQuery] = input(c, {1, kHeads, rows, width}), in[graph::kKey] = input(c, {1, 2, keys, width}, 1, "key"), in[graph::kValue] = input(c, {1, 2, keys, width}, 2, "value");
  const TensorId made = c.graph.reshape(c.graph.transpose(c.graph.add(Op::attention, in, graph::AttentionAttributes{}), {0, 2, 1, 3}), {1, rows, kHeads * width});
  c.output(c.graph.add(Op::linear, {part ? c.graph.slice(made, 2, 0, 2 * width) : made, q8(c, "output", 41, (part ? 2 : kHeads) * width)}));
  return c;
}

}  // namespace rondo::tests::rounding_chain
