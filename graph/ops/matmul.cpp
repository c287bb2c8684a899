// matmul: a (..., M, K), b (..., K, N) -> scale * a b, (..., M, N). Batch dimensions broadcast; either may be transposed.
#include <algorithm>
#include <cmath>

#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "matmul.params.h"

namespace rondo::graph {

namespace {

/// What llvmpipe's limit of 65,535 loop iterations per invocation leaves for the depth.
constexpr std::int64_t kMaxDepth = 49152;

/// The dimensions of four that count a matrix' rows and columns.
struct MatrixAxes {
  int row, column;
};
MatrixAxes axes_of(bool transposed) { return transposed ? MatrixAxes{3, 2} : MatrixAxes{2, 3}; }

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 2));
  RONDO_TRY(check_activation(graph, node.inputs[0], "a", 2, kMaxRank));
  RONDO_TRY(check_activation(graph, node.inputs[1], "b", 2, kMaxRank));
  const Type type = make_types_equal(graph, {&node.inputs[0], &node.inputs[1]});
  const auto attributes = attributes_of<MatmulAttributes>(node);
  const Shape a = graph.tensor(node.inputs[0]).shape, b = graph.tensor(node.inputs[1]).shape;
  const MatrixAxes in_a = axes_of(attributes.transpose_a), in_b = axes_of(attributes.transpose_b);
  const std::int64_t depth = extent4(a, in_a.column);
  if (depth != extent4(b, in_b.row)) {
    return refuse(fmt::format("a is {}{} and b is {}{}: {} columns against {} rows", to_string(a), attributes.transpose_a ? " transposed" : "", to_string(b),
                              attributes.transpose_b ? " transposed" : "", depth, extent4(b, in_b.row)));
  }
  if (depth > kMaxDepth) return refuse(fmt::format("a is {}: sums of {} terms, at most {} are there", to_string(a), depth, kMaxDepth));
  if (!std::isfinite(attributes.scale)) return refuse(fmt::format("scale is {} but must be finite", attributes.scale));
  Shape shape;
  shape.rank = std::max(a.rank, b.rank);
  for (int axis = kMaxRank - shape.rank; axis < 2; ++axis) {
    if (extent4(a, axis) != extent4(b, axis) && extent4(a, axis) != 1 && extent4(b, axis) != 1) {
      return refuse(fmt::format("a is {} and b is {}, whose batches do not broadcast", to_string(a), to_string(b)));
    }
    shape[axis - (kMaxRank - shape.rank)] = std::max(extent4(a, axis), extent4(b, axis));
  }
  shape[shape.rank - 2] = extent4(a, in_a.row);
  shape[shape.rank - 1] = extent4(b, in_b.column);
  node.outputs.push_back(graph.add_tensor("matmul", StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const auto attributes = attributes_of<MatmulAttributes>(node);
  const Tensor& a = lowering.tensor(node.inputs[0]);
  const Tensor& b = lowering.tensor(node.inputs[1]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  const MatrixAxes in_a = axes_of(attributes.transpose_a), in_b = axes_of(attributes.transpose_b);
  shaders::MatmulParams push{};
  push.rows = u32(extent4(output.shape, 2));
  push.columns = u32(extent4(output.shape, 3));
  push.depth = u32(extent4(a.shape, in_a.column));
  push.batch1 = u32(extent4(output.shape, 1));
  push.total_rows = u32(output.shape.n_rows());
  push.rows_per_sequence = lowering.rows_per_sequence(push.total_rows);
  push.a_offset = u32(a.offset_elements);
  push.a_batch0 = stride4(a, 0), push.a_batch1 = stride4(a, 1), push.a_row = stride4(a, in_a.row), push.a_depth = stride4(a, in_a.column);
  push.b_offset = u32(b.offset_elements);
  push.b_batch0 = stride4(b, 0), push.b_batch1 = stride4(b, 1), push.b_depth = stride4(b, in_b.row), push.b_column = stride4(b, in_b.column);
  push.scale = static_cast<float>(attributes.scale);
  const std::uint32_t tile_rows = push.rows <= 8 ? 1 : 4;
  const std::uint32_t batches = u32(extent4(output.shape, 0)) * push.batch1;
  constexpr std::uint32_t steps = 16;  // kDepth of the shader
  lowering.dispatch("matmul", lowering.module_for(runtime::Shader::matmul, output.type), {64, tile_rows},
                    {{a.storage, runtime::Access::kRead}, {b.storage, runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}}, push,
                    {ceil_div(push.columns, 32), ceil_div(push.rows, 8 * tile_rows), batches},
                    {tensor_bytes(a) + tensor_bytes(b) + tensor_bytes(output), 14.0 * push.depth * static_cast<double>(output.shape.n_elements()), {{{4 * tile_rows, 4 * tile_rows * steps}}}});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const auto attributes = attributes_of<MatmulAttributes>(node);
  const HostView a = tensors.view(node.inputs[0]), b = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t depth = extent4(a.shape(), axes_of(attributes.transpose_a).column);
  for_each_element(output.shape(), [&](const Index4& index) {
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      Index4 from_a = {index[0], index[1], index[2], k}, from_b = {index[0], index[1], k, index[3]};
      if (attributes.transpose_a) std::swap(from_a[2], from_a[3]);
      if (attributes.transpose_b) std::swap(from_b[2], from_b[3]);
      sum += at4(a, from_a) * at4(b, from_b);
    }
    set4(output, attributes.scale * sum, index);
  });
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  MatmulAttributes matmul;
  reader.read("transpose_a", matmul.transpose_a);
  reader.read("transpose_b", matmul.transpose_b);
  reader.read("scale", matmul.scale);
  return matmul;
}

constexpr NamedInput kNamedInputs[] = {{"a"}, {"b"}};

}  // namespace

extern const Operator matmul_operator = {
    .name = "matmul",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .all_rows = true,
    .accuracy = {ErrorClass::kExactSums, 1e6f, 50},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
