// embedding: ids (...), weight (V, D) -> scale * row, (..., D). Weights of any weight type, or an activation whose rows are gathered.
#include "embedding.params.h"
#include "graph/block_format.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 2));
  RONDO_TRY(check_tensor(graph, node.inputs[0], "ids", Type::kI32, 1, 2));
  RONDO_TRY(check_contiguous(graph, node.inputs[0], "ids"));
  if (node.inputs[1] == kNone) return refuse("weight is missing");
  const Tensor& weight = graph.tensor(node.inputs[1]);
  const BlockFormat* format = find_block_format(weight.type);
  if (!format) return refuse(fmt::format("weight is {}, which is not a weight type", type_name(weight.type)));
  if (weight.shape.rank != 2) return refuse(fmt::format("weight is {} but must be (V, D)", to_string(weight.shape)));
  if (weight.shape[1] % format->block_elements != 0) {
    return refuse(fmt::format("weight is {} of type {}, whose rows come in blocks of {}", to_string(weight.shape), type_name(weight.type),
                              format->block_elements));
  }
  const bool dense = graph.storage(weight.storage).kind != StorageKind::kWeight;
  if (dense) RONDO_TRY(check_activation(graph, node.inputs[1], "weight", 2, 2));
  const Type type = attributes_of<EmbeddingAttributes>(node).type.value_or(dense ? weight.type : Type::kF32);
  if (dense && type != weight.type) return refuse(fmt::format("type is {}, but the rows of an activation stay {}", type_name(type), type_name(weight.type)));
  RONDO_TRY(check_rows(graph, node.inputs[1], "weight"));
  Shape shape = graph.tensor(node.inputs[0]).shape;
  shape[shape.rank++] = weight.shape[1];
  node.outputs.push_back(graph.add_tensor("embedding", StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& ids = lowering.tensor(node.inputs[0]);
  const Tensor& weight = lowering.tensor(node.inputs[1]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  const bool dense = lowering.graph().storage(weight.storage).kind != StorageKind::kWeight;
  shaders::EmbeddingParams push{};
  push.rows = u32(ids.shape.n_elements());
  push.rows_per_sequence = lowering.rows_per_sequence(push.rows);
  push.columns = u32(weight.shape[1]);
  push.groups = ceil_div(push.columns, kGroupElements);
  push.vocabulary = u32(weight.shape[0]);
  push.ids_offset = u32(ids.offset_elements);
  push.dense = dense;
  push.scale = static_cast<float>(attributes_of<EmbeddingAttributes>(node).scale);
  constexpr std::uint32_t kWidth = 32;
  const auto gather = [&](std::size_t piece) {
    lowering.dispatch("embedding", lowering.module_for(runtime::Shader::embedding, output.type), {kWidth, static_cast<std::uint32_t>(weight.type)},
                      {{ids.storage, runtime::Access::kRead}, {weight.storage, runtime::Access::kRead, piece}, {output.storage, runtime::Access::kWrite}},
                      push, {ceil_div(push.groups, kWidth), push.rows, 1}, {2 * tensor_bytes(output), 0});
  };
  if (dense) {
    push.n_ids = push.vocabulary;
    push.row_words = u32(row_stride(weight));
    push.dense_offset = u32(weight.offset_elements);
    gather(0);
    return {};
  }
  for (const WeightPlanes& planes : planes_of(lowering.graph(), weight)) {
    push.first_id = planes.tensor_row;
    push.n_ids = planes.n_rows;
    push.weight_offset_rows = planes.first_row;
    push.row_words = planes.layout.row_words;
    push.scale_row_words = planes.layout.scale_row_words;
    push.scale_offset_words = static_cast<std::uint32_t>(planes.layout.scale_offset_words);
    gather(planes.piece);
  }
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView ids = tensors.view(node.inputs[0]), weight = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  const Shape& shape = ids.shape();
  const auto scale = static_cast<float>(attributes_of<EmbeddingAttributes>(node).scale);
  for (std::int64_t row = 0; row < shape.n_elements(); ++row) {
    std::int64_t rest = row, index[2] = {0, 0};
    for (int axis = std::min(shape.rank, 2) - 1; axis >= 0; --axis) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    const std::int32_t id = ids.int_at(index[0], index[1]);
    for (std::int64_t d = 0; d < weight.dim(1); ++d) {
      output.row_set(id >= 0 && id < weight.dim(0) ? weight.at(id, d) * scale : 0.0f, row, d);
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  EmbeddingAttributes embedding;
  reader.read("scale", embedding.scale);
  reader.read_choice("type", embedding.type, "f32", "f16");
  return embedding;
}

constexpr NamedInput kNamedInputs[] = {{"ids", InputRole::kIntegers}, {"weight", InputRole::kMatrix}};

}  // namespace

extern const Operator embedding_operator = {
    .name = "embedding",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
