// patch_embed: pixels (B, C, Y, X), weight (D, C P P) with columns in the order channel, y, x, bias? (D) -> (B, patches, D).
// Dosovitskiy et al. 2021. A convolution whose stride is its width: patches are gathered into rows, then it is linear.
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/linear_kernels.h"
#include "graph/ops/walk.h"
#include "patch_embed.params.h"

namespace rondo::graph {

extern const Operator patch_embed_operator;

namespace {

Status infer(Graph& graph, Node& node) {
  if (node.inputs.size() == 2) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, 3));
  RONDO_TRY(check_activation(graph, node.inputs[0], "pixels", 4, 4));
  widen(graph, node.inputs[2]);
  const Shape pixels = graph.tensor(node.inputs[0]).shape;
  const std::int64_t patch = attributes_of<PatchEmbedAttributes>(node).patch;
  if (patch < 1 || patch > 0x7fff || pixels[2] % patch != 0 || pixels[3] % patch != 0) {
    return refuse(fmt::format("patch is {}, which does not divide pixels {}", patch, to_string(pixels)));
  }
  RONDO_TRY(check_linear_weight(graph, node.inputs[1], pixels[1] * patch * patch));
  const Tensor& weight = graph.tensor(node.inputs[1]);
  if (node.inputs[2] != kNone) RONDO_TRY(check_vector(graph, node.inputs[2], "bias", weight.shape[0]));
  const Shape shape = {pixels[0], pixels[2] / patch * (pixels[3] / patch), weight.shape[0]};
  node.outputs.push_back(graph.add_tensor("patch_embed", StorageKind::kActivation, graph.tensor(node.inputs[0]).type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor pixels = lowering.tensor(node.inputs[0]);
  const Shape output = lowering.tensor(node.outputs[0]).shape;
  const std::int64_t patch = attributes_of<PatchEmbedAttributes>(node).patch;
  const TensorId rows = lowering.scratch_tensor({output[0], output[1], pixels.shape[1] * patch * patch}, pixels.type, "patches");
  RONDO_TRY(lowering.graph().status());
  const Tensor& gathered = lowering.tensor(rows);
  shaders::PatchEmbedParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(gathered.shape.n_rows());
  push.patch_size = u32(patch);
  push.patches_x = u32(pixels.shape[3] / patch);
  push.patches = u32(output[1]);
  push.columns = u32(gathered.shape.last());
  push.offset = u32(pixels.offset_elements);
  push.stride_image = stride_of(pixels, 0), push.stride_channel = stride_of(pixels, 1), push.stride_y = stride_of(pixels, 2), push.stride_x = stride_of(pixels, 3);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("patch_embed patches", lowering.module_for(runtime::Shader::patch_embed, pixels.type), {kWidth},
                    {{pixels.storage, runtime::Access::kRead}, {gathered.storage, runtime::Access::kWrite}}, push,
                    {ceil_div(push.columns, kWidth), u32(gathered.shape.n_rows()), 1}, {2 * tensor_bytes(gathered), 0});
  return lower_linear(lowering, patch_embed_operator, {.input = rows, .weight = node.inputs[1], .output = node.outputs[0], .bias = node.inputs[2]});
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView pixels = tensors.view(node.inputs[0]), weight = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t patch = attributes_of<PatchEmbedAttributes>(node).patch, patches_x = pixels.dim(3) / patch;
  for_each_element(output.shape(), [&](const Index4& index) {
    const std::int64_t first_y = index[2] / patches_x * patch, first_x = index[2] % patches_x * patch;
    double sum = node.inputs[2] == kNone ? 0.0 : static_cast<double>(tensors.view(node.inputs[2]).at(index[3]));
    for (std::int64_t column = 0; column < weight.dim(1); ++column) {
      const std::int64_t channel = column / patch / patch, y = first_y + column / patch % patch, x = first_x + column % patch;
      sum += static_cast<double>(pixels.at(index[1], channel, y, x)) * static_cast<double>(weight.at(index[3], column));
    }
    set4(output, sum, index);
  });
  return {};
}

Attributes read_attributes(AttributeReader& reader) {
  PatchEmbedAttributes patches;
  reader.require("patch");
  reader.read("patch", patches.patch);
  return patches;
}

/// Linear's, but for those that round to bytes, whose blocks would be of patches.
constexpr const char* kKernels[] = {"subgroup", "vector", "wide", "tiled", "matrix", "half_tiled"};

constexpr NamedInput kNamedInputs[] = {{"pixels"}, {"weight", InputRole::kMatrix}, {"bias", InputRole::kParameter, kOptional}};

}  // namespace

extern const Operator patch_embed_operator = {
    .name = "patch_embed",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kExactSums, 1e6f, 0.05f},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
