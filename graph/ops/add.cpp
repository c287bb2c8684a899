// add: a, b -> a + b with NumPy's broadcasting.
#include <algorithm>

#include "add.params.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"

namespace rondo::graph {

namespace {

/// Extent of `shape` at `axis` of a result with `rank` dimensions: missing leading dimensions are 1.
std::int64_t extent(const Shape& shape, int axis, int rank) {
  const int own = axis - (rank - shape.rank);
  return own < 0 ? 1 : shape[own];
}

/// The stride to walk with: 0 where the tensor broadcasts.
std::int64_t walk(const Tensor& tensor, int axis, int rank) {
  const int own = axis - (rank - tensor.shape.rank);
  return own < 0 || tensor.shape[own] == 1 ? 0 : tensor.strides[static_cast<std::size_t>(own)];
}

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 2));
  RONDO_TRY(check_tensor(graph, node.inputs[0], "a", Type::kF32, 1, kMaxRank));
  RONDO_TRY(check_tensor(graph, node.inputs[1], "b", Type::kF32, 1, kMaxRank));
  const Shape a = graph.tensor(node.inputs[0]).shape, b = graph.tensor(node.inputs[1]).shape;
  Shape shape;
  shape.rank = std::max(a.rank, b.rank);
  for (int axis = 0; axis < shape.rank; ++axis) {
    const std::int64_t in_a = extent(a, axis, shape.rank), in_b = extent(b, axis, shape.rank);
    if (in_a != in_b && in_a != 1 && in_b != 1) return refuse(fmt::format("a is {} and b is {}, which do not broadcast", to_string(a), to_string(b)));
    shape[axis] = std::max(in_a, in_b);
  }
  node.outputs.push_back(graph.add_tensor("add", StorageKind::kActivation, Type::kF32, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& a = lowering.tensor(node.inputs[0]);
  const Tensor& b = lowering.tensor(node.inputs[1]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  const auto at = [](const Tensor& tensor, int axis) { return u32(walk(tensor, axis, kMaxRank)); };
  shaders::AddParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(output.shape.n_rows());
  push.dim1 = u32(extent(output.shape, 1, kMaxRank));
  push.dim2 = u32(extent(output.shape, 2, kMaxRank));
  push.dim3 = u32(output.shape.last());
  push.a_offset = u32(a.offset_elements);
  push.a_stride0 = at(a, 0), push.a_stride1 = at(a, 1), push.a_stride2 = at(a, 2), push.a_stride3 = at(a, 3);
  push.b_offset = u32(b.offset_elements);
  push.b_stride0 = at(b, 0), push.b_stride1 = at(b, 1), push.b_stride2 = at(b, 2), push.b_stride3 = at(b, 3);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("add", runtime::Shader::add, {kWidth},
                    {{a.storage, runtime::Access::kRead}, {b.storage, runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}}, push,
                    {ceil_div(push.dim3, kWidth), u32(output.shape.n_rows()), 1}, {3 * tensor_bytes(output), tensor_bytes(output)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView a = tensors.view(node.inputs[0]), b = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  const int rank = output.shape().rank;
  const auto value = [rank](const HostView& view, std::array<std::int64_t, kMaxRank> index) {
    std::array<std::int64_t, kMaxRank> own{};
    const int missing = rank - view.shape().rank;
    for (int axis = 0; axis < view.shape().rank; ++axis) {
      own[static_cast<std::size_t>(axis)] = view.dim(axis) == 1 ? 0 : index[static_cast<std::size_t>(axis + missing)];
    }
    return view.at(own[0], own[1], own[2], own[3]);
  };
  for (std::int64_t row = 0; row < output.shape().n_rows(); ++row) {
    auto index = output.row_index(row);
    for (std::int64_t i = 0; i < output.shape().last(); ++i) {
      index[static_cast<std::size_t>(rank - 1)] = i;
      output.row_set(value(a, index) + value(b, index), row, i);
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

}  // namespace

extern const Operator add_operator = {"add", infer, lower, reference, nullptr, kKernels};

}  // namespace rondo::graph
