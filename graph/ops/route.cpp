// route: logits (..., E) -> experts i32 (..., k), weights f32 (..., k): the k largest, largest first, ties to the lower number,
// NaN last, and the softmax over these, or over all E without `normalize`. Shazeer et al. 2017; Jiang et al. 2024 (Mixtral).
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/attribute_reader.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "route.params.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_activation(graph, node.inputs[0], "logits", 1, kMaxRank));
  make_rows_even(graph, node.inputs[0]);
  const std::int64_t k = attributes_of<RouteAttributes>(node).k;
  Shape shape = graph.tensor(node.inputs[0]).shape;
  if (shape.last() > RONDO_ROUTE_MAX_EXPERTS) return refuse(fmt::format("logits are of {} experts; at most {} are there yet", shape.last(), RONDO_ROUTE_MAX_EXPERTS));
  if (k < 1 || k > shape.last()) return refuse(fmt::format("k is {} but logits {} are of {} experts", k, to_string(shape), shape.last()));
  shape[shape.rank - 1] = k;
  node.outputs.push_back(graph.add_tensor("experts", StorageKind::kActivation, Type::kI32, shape));
  node.outputs.push_back(graph.add_tensor("expert weights", StorageKind::kActivation, Type::kF32, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& logits = lowering.tensor(node.inputs[0]);
  const auto attributes = attributes_of<RouteAttributes>(node);
  const std::uint32_t rows = u32(logits.shape.n_rows());
  shaders::RouteParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(rows);
  push.experts = u32(logits.shape.last());
  push.input_offset = u32(logits.offset_elements);
  push.input_stride = u32(row_stride(logits));
  push.k = u32(attributes.k);
  push.normalize = attributes.normalize;
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("route", lowering.module_for(runtime::Shader::route, logits.type), {kWidth},
                    {{logits.storage, runtime::Access::kRead},
                     {lowering.tensor(node.outputs[0]).storage, runtime::Access::kWrite},
                     {lowering.tensor(node.outputs[1]).storage, runtime::Access::kWrite}},
                    push, {rows, 1, 1}, {tensor_bytes(logits) + 8.0 * rows * push.k, 3 * tensor_elements(logits) * push.experts});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView logits = tensors.view(node.inputs[0]);
  HostView experts = tensors.view(node.outputs[0]), weights = tensors.view(node.outputs[1]);
  const bool normalize = attributes_of<RouteAttributes>(node).normalize;
  std::vector<std::int32_t> order(static_cast<std::size_t>(logits.shape().last()));
  for (std::int64_t row = 0; row < logits.shape().n_rows(); ++row) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const float left = logits.row_at(row, a), right = logits.row_at(row, b);
      return std::isnan(right) ? !std::isnan(left) : left > right;
    });
    const std::int64_t k = weights.shape().last();
    const float first = logits.row_at(row, order[0]);
    const double top = std::isnan(first) ? static_cast<double>(first) : static_cast<double>(std::max(first, std::numeric_limits<float>::lowest()));
    double sum = 0;
    for (std::int64_t i = 0; i < (normalize ? k : logits.shape().last()); ++i) sum += std::exp(static_cast<double>(logits.row_at(row, order[static_cast<std::size_t>(i)])) - top);
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int32_t expert = order[static_cast<std::size_t>(i)];
      weights.row_set(static_cast<float>(std::exp(static_cast<double>(logits.row_at(row, expert)) - top) / sum), row, i);
      auto to = experts.row_index(row);
      to[static_cast<std::size_t>(experts.shape().rank - 1)] = i;
      experts.set_int(expert, to[0], to[1], to[2], to[3]);
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  RouteAttributes route;
  reader.require("k");
  reader.read("k", route.k);
  reader.read("normalize", route.normalize);
  return route;
}

constexpr NamedInput kNamedInputs[] = {{"logits"}};

}  // namespace

extern const Operator route_operator = {
    .name = "route",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kFunctions, 30, 30},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
