#include "graph/ops/linear_kernels.h"

#include "graph/block_format.h"
#include "graph/ops/checks.h"
#include "graph/ops/wide_kernels.h"
#include "linear.params.h"

namespace rondo::graph {

const char* const kLinearKernels[3] = {"vector", "wide", "tiled"};

namespace {

enum class LinearKernel { kVector, kWide, kTiled };

/// Up to this many rows the weight is read once per row rather than through tiles.
constexpr std::uint32_t kVectorRows = 4;
/// Rows that an invocation of the wide kernel makes where there are as many.
constexpr std::uint32_t kWideRows = 8;

std::string label_of(std::string_view op, LinearKernel kernel, Type weight) { return fmt::format("{} {} {}", op, kLinearKernels[static_cast<std::size_t>(kernel)], type_name(weight)); }

bool has_kernel(const Operator& op, LinearKernel kernel) { return static_cast<std::size_t>(kernel) < op.kernels.size(); }

/// Upper bound of the iterations of an invocation's loops: drivers may end them early, and say nothing.
std::uint64_t iterations_of(LinearKernel kernel, std::uint32_t groups) {
  constexpr std::uint64_t kTouched = 20'000, kOfTiledGroup = 40;  // linear_wide.comp's touch() with scales; a group's 32 columns, and its loads
  switch (kernel) {
    case LinearKernel::kTiled: return kOfTiledGroup * groups;
    case LinearKernel::kWide: return kTouched + groups;
    default: return groups;
  }
}

Result<LinearKernel> choose(const Lowering& lowering, const Operator& op, std::uint32_t rows, std::uint32_t groups, Type activations, Type weight) {
  std::string_view forced = lowering.forced_kernel(op.name);
  if (forced.empty() && op.kernels.size() == std::size(kLinearKernels)) forced = lowering.forced_kernel("linear");
  const char* missing = wide_kernel_needs(lowering.caps(), activations);
  if (forced == "wide" && missing) {
    return Status(StatusCode::kUnsupported, fmt::format("kernel 'wide' needs {}, which device {} or this graph does not have", missing, lowering.caps().name));
  }
  const runtime::DeviceCaps& caps = lowering.caps();
  const auto ends = [&](LinearKernel kernel) { return caps.max_loop_iterations == 0 || iterations_of(kernel, groups) <= caps.max_loop_iterations; };
  for (std::size_t i = 0; i < std::size(kLinearKernels); ++i) {
    const auto kernel = static_cast<LinearKernel>(i);
    if (forced != kLinearKernels[i]) continue;
    if (ends(kernel)) return kernel;
    return Status(StatusCode::kUnsupported, fmt::format("kernel '{}' takes {} loop iterations for rows of {} groups, but driver {} ends a kernel's loops after {}", forced, iterations_of(kernel, groups), groups, caps.driver, caps.max_loop_iterations));
  }
  std::vector<LinearKernel> candidates = {LinearKernel::kVector};  // best first
  const bool tiles = has_kernel(op, LinearKernel::kTiled);
  if (tiles) candidates.insert(rows > kVectorRows ? candidates.begin() : candidates.end(), LinearKernel::kTiled);
  if (lowering.caps().type == runtime::DeviceType::kCpu && !missing) candidates.insert(candidates.begin(), LinearKernel::kWide);
  std::erase_if(candidates, [&](LinearKernel candidate) { return !ends(candidate); });
  if (candidates.empty()) return Status(StatusCode::kUnsupported, fmt::format("rows of {} groups take more loop iterations than driver {} lets a kernel have, which are {}", groups, caps.driver, caps.max_loop_iterations));
  for (const LinearKernel candidate : candidates) {
    if (!lowering.is_quarantined(label_of(op.name, candidate, weight))) return candidate;
  }
  return candidates.front();
}

/// What the dispatches of one linear have in common.
struct LinearVariant {
  LinearKernel kernel;
  Type activations;
  std::uint32_t type, glu, input_vec4, activation, has_bias, experts, limited;
  std::string label;
};

/// Emits the dispatch of the rows of a weight that lie in one piece, `weight_bytes` of it.
void dispatch_linear(Lowering& lowering, const LinearVariant& variant, std::initializer_list<Lowering::Argument> arguments, const shaders::LinearParams& push,
                     runtime::Cost cost, double weight_bytes) {
  const auto [kernel, activations, type, glu, input_vec4, activation, has_bias, experts, limited, label] = variant;
  if (kernel == LinearKernel::kTiled) {
    const std::uint32_t tile_rows = push.rows_per_sequence <= 8 ? 1 : 4;
    cost.loops[0] = {tile_rows * 8, tile_rows * 8 * 32};
    lowering.dispatch(label, lowering.module_for(runtime::Shader::linear_tiled, activations), {64, type, tile_rows, glu, input_vec4, activation, has_bias, limited}, arguments, push,
                      {ceil_div(push.outputs, glu ? 32 : 64), ceil_div(push.rows, 8 * tile_rows), 1}, cost);
  } else if (kernel == LinearKernel::kWide) {
    const std::uint32_t width = lowering.caps().min_subgroup_size;
    const std::uint32_t tile_rows = push.rows >= kWideRows && !experts ? kWideRows : 1, columns = glu ? 2 : 4;
    lowering.dispatch(label, runtime::Shader::linear_wide, {width, type, tile_rows, columns, glu, input_vec4, activation, has_bias, experts, limited}, arguments, push,
                      {ceil_div(push.rows, tile_rows), ceil_div(push.outputs, width * columns), 1}, cost);
  } else {
    if (!experts) cost.bytes += weight_bytes * (push.rows - 1);
    // On a CPU driver every barrier switches between all subgroups of the workgroup, so there are few.
    const bool cpu = lowering.caps().type == runtime::DeviceType::kCpu;
    const std::uint32_t width = cpu ? 32 : 128, lanes = cpu ? 8 : 32;
    constexpr std::uint32_t rows = 2;
    cost.loops[0] = {rows * 32 << glu};
    lowering.dispatch(label, lowering.module_for(runtime::Shader::linear_vector, activations), {width, type, lanes, rows, glu, input_vec4, activation, has_bias, experts, limited}, arguments, push,
                      {ceil_div(push.outputs, width / lanes * rows), push.rows, 1}, cost);
  }
}

}  // namespace

Status check_linear(Graph& graph, Node& node) {
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  make_rows_even(graph, node.inputs[0]);
  return check_linear_weight(graph, node.inputs[1], graph.tensor(node.inputs[0]).shape.last());
}

Status check_linear_weight(const Graph& graph, TensorId id, std::int64_t columns) {
  if (id == kNone) return refuse("weight is missing");
  const Tensor& weight = graph.tensor(id);
  const BlockFormat* format = find_block_format(weight.type);
  if (!format) return refuse(fmt::format("weight is {}, which is not a weight type", type_name(weight.type)));
  if (graph.storage(weight.storage).kind != StorageKind::kWeight) return refuse("weight must be an input as it is stored, not computed or a view");
  if (weight.shape.rank != 2 || weight.shape[1] != columns) {
    return refuse(fmt::format("weight is {} but input has {} columns", to_string(weight.shape), columns));
  }
  if (weight.shape[1] % format->block_elements != 0) {
    return refuse(fmt::format("weight is {} of type {}, whose rows come in blocks of {}", to_string(weight.shape), type_name(weight.type),
                              format->block_elements));
  }
  return {};
}

Status lower_linear(Lowering& lowering, const Operator& op, const LinearCall& call) {
  const Tensor& input = lowering.tensor(call.input);
  const Tensor& weight = lowering.tensor(call.weight);
  const Tensor& output = lowering.tensor(call.output);
  const bool by_experts = call.experts != kNone, in_one = call.glu || by_experts;
  shaders::LinearParams push{};
  push.columns = u32(weight.shape[1]);
  push.groups = ceil_div(push.columns, kGroupElements);
  push.input_offset = u32(input.offset_elements);
  push.input_stride = u32(row_stride(input));
  push.experts = u32(call.n_experts);
  push.chosen = 1;
  if (by_experts) {
    const Tensor& experts = lowering.tensor(call.experts);
    push.chosen = u32(experts.shape.last());
    if (input.shape.last() > weight.shape[1]) push.input_choice_stride = push.columns;
    push.experts_offset = u32(experts.offset_elements);
    push.experts_stride = u32(row_stride(experts));
  }
  push.rows = u32(output.shape.n_rows()) * push.chosen;
  push.rows_per_sequence = lowering.rows_per_sequence(output.shape.n_rows());
  LinearVariant variant{};
  variant.activations = input.type;
  variant.type = static_cast<std::uint32_t>(weight.type);
  variant.glu = call.glu ? 1 : 0;
  variant.activation = static_cast<std::uint32_t>(call.glu ? call.glu->activation : call.activation);
  variant.has_bias = call.bias != kNone;
  variant.experts = by_experts;
  variant.limited = call.glu && call.glu->is_limited();
  variant.input_vec4 = (push.columns | push.input_offset | push.input_stride) % 4 == 0;
  if (call.glu) push.glu_limit = static_cast<float>(call.glu->limit), push.glu_up_bias = static_cast<float>(call.glu->up_bias);
  push.output_stride = u32(row_stride(output)) / push.chosen;
  push.has_residual = call.residual != kNone;
  if (push.has_residual) push.residual_stride = u32(row_stride(lowering.tensor(call.residual)));

  RONDO_ASSIGN(variant.kernel, choose(lowering, op, push.rows, push.groups, input.type, weight.type));
  variant.label = label_of(op.name, variant.kernel, weight.type);

  const std::vector<WeightPlanes> pieces = planes_of(lowering.graph(), weight);
  if (in_one && pieces.size() > 1) {
    return Status(StatusCode::kUnsupported, fmt::format("weight {} is in {} pieces, which is there for linear only", weight.name, pieces.size()));
  }
  for (const WeightPlanes& planes : pieces) {
    push.outputs = (planes.n_rows >> variant.glu) / push.experts;
    push.output_offset = u32(output.offset_elements) + planes.tensor_row;
    push.weight_offset_rows = planes.first_row;
    push.row_words = planes.layout.row_words;
    push.scale_row_words = planes.layout.scale_row_words;
    push.scale_offset_words = static_cast<std::uint32_t>(planes.layout.scale_offset_words);
    if (variant.has_bias) push.bias_offset = u32(lowering.tensor(call.bias).offset_elements) + planes.tensor_row;
    if (push.has_residual) push.residual_offset = u32(lowering.tensor(call.residual).offset_elements) + planes.tensor_row;
    const std::initializer_list<Lowering::Argument> arguments = {{input.storage, runtime::Access::kRead},
                                                                 {weight.storage, runtime::Access::kRead, planes.piece},
                                                                 {lowering.read_only(call.residual), runtime::Access::kRead},
                                                                 {output.storage, runtime::Access::kWrite},
                                                                 {lowering.read_only(call.bias), runtime::Access::kRead},
                                                                 {lowering.read_only(call.experts), runtime::Access::kRead}};
    // Of experts the weights of those that are chosen are read, and no others.
    const double weight_rows = by_experts ? 1.0 * push.rows * (push.outputs << variant.glu) : 1.0 * planes.n_rows;
    const double weight_bytes = 4.0 * weight_rows * (planes.layout.row_words + planes.layout.scale_row_words);
    const double output_bytes = 1.0 * element_bytes(output.type) * push.rows * push.outputs, flops = 2.0 * push.rows * push.columns * (push.outputs << variant.glu);
    dispatch_linear(lowering, variant, arguments, push, {weight_bytes + tensor_bytes(input) + output_bytes, flops}, weight_bytes);
  }
  return {};
}

}  // namespace rondo::graph
