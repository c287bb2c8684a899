// Refusals that several operators share, in words: what was found, what was expected.
#pragma once

#include <string>
#include <vector>

#include <rondo/status.h>

#include "graph/graph.h"
#include "runtime/fmt.h"

namespace rondo::graph {

inline Status refuse(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

inline Status check_rank(const Tensor& tensor, const char* role, int min_rank, int max_rank) {
  if (tensor.shape.rank >= min_rank && tensor.shape.rank <= max_rank) return {};
  const std::string wanted = min_rank == max_rank ? std::to_string(min_rank) : fmt::format("{} {} {}", min_rank, max_rank == min_rank + 1 ? "or" : "to", max_rank);
  return refuse(fmt::format("{} is {} but must have {} dimension{}", role, to_string(tensor.shape), wanted, max_rank == 1 ? "" : "s"));
}

/// The tensor exists, has this type, and a rank in [min_rank, max_rank].
inline Status check_tensor(const Graph& graph, TensorId id, const char* role, Type type, int min_rank, int max_rank) {
  if (id == kNone) return refuse(fmt::format("{} is missing", role));
  const Tensor& tensor = graph.tensor(id);
  if (tensor.type != type) return refuse(fmt::format("{} is {} but must be {}", role, type_name(tensor.type), type_name(type)));
  return check_rank(tensor, role, min_rank, max_rank);
}

/// The same of an activation: f32, or f16 where the graph asks for it.
inline Status check_activation(const Graph& graph, TensorId id, const char* role, int min_rank, int max_rank) {
  if (id == kNone) return refuse(fmt::format("{} is missing", role));
  const Tensor& tensor = graph.tensor(id);
  if (tensor.type != Type::kF32 && tensor.type != Type::kF16) return refuse(fmt::format("{} is {} but must be f32 or f16", role, type_name(tensor.type)));
  return check_rank(tensor, role, min_rank, max_rank);
}

inline Status check_shape(const Graph& graph, TensorId id, const char* role, const Shape& expected) {
  const Shape& found = graph.tensor(id).shape;
  if (found == expected) return {};
  return refuse(fmt::format("{} is {} but must be {}", role, to_string(found), to_string(expected)));
}

/// Rows (all dimensions but the last) lie at an even distance and are dense.
inline Status check_rows(const Graph& graph, TensorId id, const char* role) {
  if (row_stride(graph.tensor(id)) >= 0) return {};
  return refuse(fmt::format("{} {} has rows that are not evenly spaced", role, to_string(graph.tensor(id).shape)));
}

/// A view of the tensor in a shape that it broadcasts to by NumPy's rules, with strides of 0, or of it as it is where it has
/// the shape. Refused: what does not broadcast.
inline Result<TensorId> broadcast(Graph& graph, TensorId id, const char* role, const Shape& shape) {
  Tensor view = graph.tensor(id);
  const int missing = shape.rank - view.shape.rank;
  bool fits = missing >= 0;
  Strides strides{};
  for (int axis = 0; fits && axis < view.shape.rank; ++axis) {
    const bool repeated = view.shape[axis] == 1 && shape[axis + missing] != 1;
    fits = repeated || view.shape[axis] == shape[axis + missing];
    strides[static_cast<std::size_t>(axis + missing)] = repeated ? 0 : view.strides[static_cast<std::size_t>(axis)];
  }
  if (!fits) return refuse(fmt::format("{} is {}, which does not broadcast to {}", role, to_string(view.shape), to_string(shape)));
  if (view.shape == shape) return id;
  view.shape = shape;
  view.strides = strides;
  return graph.add_view(std::move(view));
}

/// For kernels that take one distance between rows: the tensor, an activation, becomes a dense copy of itself, by a dispatch,
/// where its rows lie otherwise. References into the graph's tensors end.
inline void make_rows_even(Graph& graph, TensorId& id) {
  if (row_stride(graph.tensor(id)) < 0) id = graph.add(Op::copy, {id});
}

/// (B, T, H, D) whose tokens are evenly spaced, and so are the heads of each: norms of heads need no copy.
inline bool has_even_heads(const Tensor& input) {
  return input.shape.rank == 4 && input.strides[3] == 1 && (input.shape[0] == 1 || input.strides[0] == input.shape[1] * input.strides[1]);
}

/// The same for kernels that take a stride for each dimension but the last.
inline void make_columns_dense(Graph& graph, TensorId& id) {
  const Tensor& tensor = graph.tensor(id);
  if (tensor.strides[static_cast<std::size_t>(tensor.shape.rank - 1)] != 1) id = graph.add(Op::copy, {id});
}

/// For what kernels read as f32 only, such as biases and masks: a tensor of f16 becomes a widened copy of itself, exact, which
/// nodes share. Weights stay what they are. References into the graph's tensors end.
void widen(Graph& graph, TensorId& id);

/// The activations of one node have one type: where any is f32, those of f16 are widened. Returns the type; ids may be kNone.
/// References into the graph's tensors end.
Type make_types_equal(Graph& graph, const std::vector<TensorId*>& ids);

inline Status check_contiguous(const Graph& graph, TensorId id, const char* role) {
  if (graph.tensor(id).is_contiguous()) return {};
  return refuse(fmt::format("{} {} must be contiguous", role, to_string(graph.tensor(id).shape)));
}

/// Contiguous from the first element of its storage on, as kernels read what they have neither strides nor an offset for.
inline Status check_whole(const Graph& graph, TensorId id, const char* role) {
  RONDO_TRY(check_contiguous(graph, id, role));
  if (graph.tensor(id).offset_elements == 0) return {};
  return refuse(fmt::format("{} {} must begin with its storage", role, to_string(graph.tensor(id).shape)));
}

/// f32 (n), contiguous: a weight or a bias of each column, a number for each head.
inline Status check_vector(const Graph& graph, TensorId id, const char* role, std::int64_t n) {
  RONDO_TRY(check_tensor(graph, id, role, Type::kF32, 1, 1));
  RONDO_TRY(check_shape(graph, id, role, {n}));
  return check_contiguous(graph, id, role);
}

/// i32 (B), whole: a position or a count of each sequence.
inline Status check_per_sequence(const Graph& graph, TensorId id, const char* role, std::int64_t sequences) {
  RONDO_TRY(check_tensor(graph, id, role, Type::kI32, 1, 1));
  RONDO_TRY(check_shape(graph, id, role, {sequences}));
  return check_whole(graph, id, role);
}

inline Status check_input_count(const Node& node, std::size_t expected) {
  if (node.inputs.size() == expected) return {};
  return refuse(fmt::format("has {} inputs but takes {}", node.inputs.size(), expected));
}

inline std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

inline std::uint32_t stride_of(const Tensor& tensor, int axis) { return u32(tensor.strides[static_cast<std::size_t>(axis)]); }

inline double tensor_elements(const Tensor& tensor) { return static_cast<double>(tensor.shape.n_elements()); }

/// Of an activation or of integers.
inline double tensor_bytes(const Tensor& tensor) { return element_bytes(tensor.type) * tensor_elements(tensor); }

}  // namespace rondo::graph
