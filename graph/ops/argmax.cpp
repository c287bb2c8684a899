// argmax: input (..., D) -> i32 (...): the lowest index of the largest value; NaN is never the largest.
#include "argmax.params.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"

namespace rondo::graph {

namespace {

/// Columns that one workgroup looks through; wider rows take a second pass over the winners of the first.
constexpr std::uint32_t kChunk = 4096;
constexpr std::uint32_t kWidth = 128;

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  make_rows_even(graph, node.inputs[0]);
  Shape shape = graph.tensor(node.inputs[0]).shape;
  shape.dims[static_cast<std::size_t>(--shape.rank)] = 0;
  node.outputs.push_back(graph.add_tensor("argmax", StorageKind::kActivation, Type::kI32, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const StorageId output = lowering.tensor(node.outputs[0]).storage;
  const std::uint32_t rows = u32(input.shape.n_rows());
  shaders::ArgmaxParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(rows);
  push.columns = u32(input.shape.last());
  push.input_offset = u32(input.offset_elements);
  push.input_stride = u32(row_stride(input));
  push.chunk = push.columns;
  StorageId source = input.storage;
  if (push.columns > kChunk) {
    const std::uint32_t chunks = ceil_div(push.columns, kChunk);
    push.chunk = kChunk;
    push.to_pairs = 1;
    source = lowering.scratch(std::uint64_t{8} * rows * chunks, "argmax pairs");
    lowering.dispatch("argmax chunks", lowering.module_for(runtime::Shader::argmax, input.type), {kWidth},
                      {{input.storage, runtime::Access::kRead}, {source, runtime::Access::kWrite}}, push, {chunks, rows, 1}, {tensor_bytes(input), 0});
    push.columns = push.chunk = chunks;
    push.input_offset = 0;
    push.input_stride = 2 * chunks;
    push.from_pairs = 1;
    push.to_pairs = 0;
  }
  lowering.dispatch("argmax", lowering.module_for(runtime::Shader::argmax, input.type), {kWidth}, {{source, runtime::Access::kRead}, {output, runtime::Access::kWrite}}, push,
                    {1, rows, 1}, {4.0 * push.columns * rows, 0});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView input = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  for (std::int64_t row = 0; row < input.shape().n_rows(); ++row) {
    std::int64_t best = -1;
    for (std::int64_t i = 0; i < input.shape().last(); ++i) {
      const float value = input.row_at(row, i);
      if (value == value && (best < 0 || value > input.row_at(row, best))) best = i;
    }
    const auto index = input.row_index(row);
    output.set_int(static_cast<std::int32_t>(std::max<std::int64_t>(best, 0)), index[0], index[1], index[2]);
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {{"input"}};

}  // namespace

extern const Operator argmax_operator = {
    .name = "argmax",
    .inputs = kNamedInputs,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
