// Rotation tables, built on the CPU in double: Vulkan's sin and cos are not good enough (DESIGN: two levels).
#pragma once

#include "graph/graph.h"

namespace rondo::graph {

class AttributeReader;

/// The attributes of rope, which rope_kv_write has too.
Attributes read_rope_attributes(AttributeReader& reader);

/// What the shaders need besides the table's storage.
struct RopeTable {
  std::uint32_t frequencies = 0;  ///< n / 2
  std::uint32_t high_lines = 0;   ///< lines for position / 64; 64 lines for position mod 64 follow
};
RopeTable rope_table_of(const RopeAttributes& attributes, std::int64_t head_dim);

/// The constant (high_lines + 64, n / 2, 2) of (cos, sin); one per graph and attributes. `factors` is a constant (n / 2) or kNone.
TensorId find_or_add_rope_table(Graph& graph, const RopeAttributes& attributes, std::int64_t head_dim, TensorId factors);

/// Angle per position of frequency `i`, in double, after `factors`.
double rope_frequency(const RopeAttributes& attributes, std::int64_t head_dim, std::int64_t i, double factor);

/// Checks dimensions, and that factors are a constant of the right shape.
Status check_rope(const Graph& graph, const RopeAttributes& attributes, std::int64_t head_dim, TensorId factors);

/// Positions (B, T) or (T), i32, contiguous.
Status check_positions(const Graph& graph, TensorId positions, std::int64_t sequences, std::int64_t rows);

/// Whether rope_kv_write takes them, (B, heads, T, D) each: views of one storage with equal strides; with positions of the step's state the value may be of another.
bool lie_for_rope_kv_write(const Tensor& query, const Tensor& key, const Tensor& value, bool of_step);

}  // namespace rondo::graph
