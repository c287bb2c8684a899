// top_k: input (..., D) -> values and indices i32 (..., k): the k largest, largest first, ties to the lower index; NaN is
// the smallest.
#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "top_k.params.h"

namespace rondo::graph {

namespace {

/// A chunk must leave fewer than it takes.
constexpr std::int64_t kMaxK = RONDO_TOP_K_CHUNK / 2;
constexpr std::uint32_t kWidth = 128;

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  make_rows_even(graph, node.inputs[0]);
  const std::int64_t k = attributes_of<TopKAttributes>(node).k;
  Shape shape = graph.tensor(node.inputs[0]).shape;
  if (k < 1 || k > shape.last()) return refuse(fmt::format("k is {} but input {} has rows of {}", k, to_string(shape), shape.last()));
  if (k > kMaxK) return refuse(fmt::format("k is {} but can be at most {}", k, kMaxK));
  shape[shape.rank - 1] = k;
  node.outputs.push_back(graph.add_tensor("top_k values", StorageKind::kActivation, graph.tensor(node.inputs[0]).type, shape));
  node.outputs.push_back(graph.add_tensor("top_k indices", StorageKind::kActivation, Type::kI32, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const StorageId values = lowering.tensor(node.outputs[0]).storage, indices = lowering.tensor(node.outputs[1]).storage;
  const std::uint32_t rows = u32(input.shape.n_rows());
  shaders::TopKParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(rows);
  push.columns = u32(input.shape.last());
  push.input_offset = u32(input.offset_elements);
  push.input_stride = u32(row_stride(input));
  push.k = u32(attributes_of<TopKAttributes>(node).k);
  StorageId source = input.storage;
  while (push.columns > RONDO_TOP_K_CHUNK) {
    const std::uint32_t chunks = ceil_div(push.columns, RONDO_TOP_K_CHUNK);
    const StorageId pairs = lowering.scratch(std::uint64_t{8} * rows * chunks * push.k, "top_k pairs");
    push.sorted = RONDO_TOP_K_CHUNK;
    push.to_pairs = 1;
    lowering.dispatch("top_k chunks", lowering.module_for(runtime::Shader::top_k, input.type), {kWidth},
                      {{source, runtime::Access::kRead}, {pairs, runtime::Access::kWrite}, {kNone, runtime::Access::kRead}}, push, {chunks, rows, 1},
                      {4.0 * rows * push.columns, 300.0 * rows * push.columns});
    source = pairs;
    push.columns = chunks * push.k;
    push.input_offset = 0;
    push.input_stride = 2 * push.columns;
    push.from_pairs = 1;
  }
  push.sorted = std::max(2u, std::bit_ceil(push.columns));
  push.to_pairs = 0;
  lowering.dispatch("top_k", lowering.module_for(runtime::Shader::top_k, input.type), {kWidth}, {{source, runtime::Access::kRead}, {values, runtime::Access::kWrite}, {indices, runtime::Access::kWrite}},
                    push, {1, rows, 1}, {4.0 * rows * push.columns, 300.0 * rows * push.columns});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView input = tensors.view(node.inputs[0]);
  HostView values = tensors.view(node.outputs[0]), indices = tensors.view(node.outputs[1]);
  std::vector<std::int32_t> order(static_cast<std::size_t>(input.shape().last()));
  for (std::int64_t row = 0; row < input.shape().n_rows(); ++row) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const float left = input.row_at(row, a), right = input.row_at(row, b);
      return std::isnan(right) ? !std::isnan(left) : left > right;
    });
    for (std::int64_t i = 0; i < values.shape().last(); ++i) {
      const std::int32_t from = order[static_cast<std::size_t>(i)];
      values.row_set(input.row_at(row, from), row, i);
      Index4 to = values.row_index(row);
      to[static_cast<std::size_t>(values.shape().rank - 1)] = i;
      indices.set_int(from, to[0], to[1], to[2], to[3]);
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  TopKAttributes top;
  reader.require("k");
  reader.read("k", top.k);
  return top;
}

constexpr NamedInput kNamedInputs[] = {{"input"}};

}  // namespace

extern const Operator top_k_operator = {
    .name = "top_k",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
