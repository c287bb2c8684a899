// An RMS norm between linears, which these can compute (shaders/lib/linear_norm.glsl).
#pragma once

#include "tools/check/device_run.h"

namespace rondo::tests::norm_chain {

using check::OpCase;
using check::WeightValues;
using graph::Op;
using graph::TensorId;
using graph::Type;

struct Sizes {
  std::int64_t rows, inner, columns, outputs;
};

/// What stands between the two linears; the output of the first is one of the case's.
struct Chain {
  graph::RmsNormAttributes norm{1e-5, 0};
  bool residual = true, bias = true;
  bool again = false;  ///< the second linear has a norm behind it as well, and a linear behind that
  float scale = 1;
};

/// Nothing but subgroups, as GPUs choose.
inline check::RunOptions by_subgroups() {
  check::RunOptions options;
  options.fusion = true;
  options.kernels["linear"] = "subgroup";
  return options;
}

/// As GPUs choose where activations are to be rounded.
inline check::RunOptions by_dots() {
  check::RunOptions options;
  options.fusion = true;
  options.activations = Activations::kQ8;
  options.pretend = runtime::DeviceType::kDiscrete;
  return options;
}

/// Weights of f16 in registers of 16 bits, others by subgroups.
inline check::RunOptions by_halves() {
  check::RunOptions options;
  options.fusion = true;
  options.pretend = runtime::DeviceType::kDiscrete;
  for (const char* op : {"linear", "linear_glu"}) options.preferred[op] = "halves";
  return options;
}

inline std::vector<float> numbers(std::int64_t n, std::uint32_t seed, float scale = 1) { return check::random_values(static_cast<std::size_t>(n), seed, scale); }

inline TensorId weight(OpCase& c, const char* name, Type type, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
  return c.weight(name, type, rows, columns, check::weight_rows(type, rows, columns, seed, WeightValues::kRandom));
}

/// linear, rms_norm, and of that another linear and a linear_glu.
inline OpCase chain(Type type, Sizes s, const Chain& with, int sequences = 1) {
  s.inner = check::whole_blocks(type, s.inner), s.columns = check::whole_blocks(type, s.columns);
  OpCase c(sequences);
  const TensorId input = c.f32("input", {s.rows, s.inner}, numbers(s.rows * s.inner, 1, with.scale));
  const TensorId residual = with.residual ? c.f32("residual", {s.rows, s.columns}, numbers(s.rows * s.columns, 2, with.scale)) : graph::kNone;
  const TensorId bias = with.bias ? c.f32("bias", {s.columns}, numbers(s.columns, 3, with.scale)) : graph::kNone;
  const TensorId made = c.graph.add(Op::linear, {input, weight(c, "first", type, s.columns, s.inner, 4), residual, bias});
  const TensorId norm = c.graph.add(Op::rms_norm, {made, c.f32("gains", {s.columns}, numbers(s.columns, 5))}, with.norm);
  const TensorId second = c.graph.add(Op::linear, {norm, weight(c, "second", type, s.outputs, s.columns, 6)});
  if (with.again) {
    const TensorId other = c.graph.add(Op::rms_norm, {second, c.f32("other gains", {s.outputs}, numbers(s.outputs, 8))}, with.norm);
    c.output(c.graph.add(Op::linear, {other, weight(c, "fourth", Type::kF32, 3, s.outputs, 9)}));
  }
  c.output(second);
  c.output(c.graph.add(Op::linear_glu, {norm, weight(c, "third", type, 2 * s.outputs, s.columns, 7)}));
  c.output(made);
  return c;
}

}  // namespace rondo::tests::norm_chain
