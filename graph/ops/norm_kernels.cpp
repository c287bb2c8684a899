#include "graph/ops/norm_kernels.h"

#include <algorithm>

#include "graph/block_format.h"
#include "graph/kernel_choice.h"
#include "graph/ops/checks.h"
#include "graph/ops/walk.h"
#include "graph/tiles.h"
#include "norm.params.h"

namespace rondo::graph {

constexpr const char* const kNormKernels[2] = {"subgroup", "baseline"};

namespace {

struct NormShape {
  Op op;
  Type activations;
  std::uint32_t tokens;
  bool quads;  ///< all rows begin and end with whole groups of four elements
  bool rounds;  ///< outputs are left in bytes as well
  const HalvedOutput* halves;  ///< they are left in f16, or null
  shaders::NormParams push;
  double elements;

  runtime::Cost cost() const {
    const double left = (halves && halves->only ? 0 : element_bytes(activations)) + (rounds ? kRoundedBytes : 0) + (halves ? 2 : 0);
    return {(element_bytes(activations) + left) * elements, (op == Op::layer_norm ? 8 : 4) * elements};
  }
};

using NormArguments = std::vector<Lowering::Argument>;

std::string subgroup_lacks(const runtime::DeviceCaps& caps, const NormShape& shape) {
  if (!caps.subgroup_arithmetic) return "subgroup reductions";
  if (!shape.quads) return "rows of whole groups of four elements";
  const RowTile tile = row_tile(caps, shape.push.columns);
  if (tile.lanes == 0) return "subgroups of a size that can be relied on";
  const std::uint32_t most = std::min(kMostRowElements, 4 * kMostRowQuads * tile.threads);
  return shape.push.columns > most ? fmt::format("rows of at most {} elements", most) : "";
}

void emit_subgroup(Lowering& lowering, const NormShape& shape, const std::string& label, const NormArguments& arguments) {
  const RowTile tile = row_tile(lowering.caps(), shape.push.columns);
  if (shape.halves) {
    NormArguments with_halves = arguments;
    with_halves.push_back({lowering.leave_halves(*shape.halves), runtime::Access::kWrite});
    if (shape.halves->only) with_halves[2] = with_halves.back();
    return lowering.dispatch(label, {runtime::Shader::norm_halving, tile.lanes}, {tile.threads, tile.lanes, tile.quads, shape.op == Op::layer_norm, shape.halves->only}, with_halves, shape.push, {shape.tokens, 1, 1}, shape.cost());
  }
  lowering.dispatch(label, {shape.rounds ? runtime::Shader::norm_rounding : lowering.module_for(runtime::Shader::norm_subgroup, shape.activations), tile.lanes}, {tile.threads, tile.lanes, tile.quads, shape.op == Op::layer_norm}, arguments, shape.push,
                    {shape.tokens, shape.push.heads, 1}, shape.cost());
}

void emit_baseline(Lowering& lowering, const NormShape& shape, const std::string& label, const NormArguments& arguments) {
  const runtime::Shader shader = shape.op == Op::layer_norm ? runtime::Shader::layer_norm : runtime::Shader::rms_norm;
  lowering.dispatch(label, lowering.module_for(shader, shape.activations), {row_width(lowering.caps(), shape.push.columns)}, arguments, shape.push, {shape.tokens, shape.push.heads, 1}, shape.cost());
}

using NormEntry = KernelEntry<NormShape, void (*)(Lowering&, const NormShape&, const std::string&, const NormArguments&)>;

constexpr NormEntry kTable[] = {
    {kNormKernels[0], subgroup_lacks, [](const runtime::DeviceCaps&, const NormShape&) { return std::uint64_t{200}; },  // unrolled or not
     [](const runtime::DeviceCaps& caps, const NormShape&) { return is_cpu(caps) ? 0 : 2; },
     emit_subgroup},
    {kNormKernels[1], [](const runtime::DeviceCaps&, const NormShape&) { return std::string(); },
     [](const runtime::DeviceCaps& caps, const NormShape& shape) { return std::uint64_t{3} * ceil_div(shape.push.columns, row_width(caps, shape.push.columns)) + 20; },
     [](const runtime::DeviceCaps&, const NormShape&) { return 1; },
     emit_baseline},
};

NormShape shape_of(const Lowering& lowering, Op op, const NormCall& call) {
  const Tensor& input = lowering.tensor(call.input);
  const bool heads = has_even_heads(input);
  NormShape shape{op, input.type, 0, false, lowering.rounds(call.output), lowering.halved(call.output), {}, tensor_elements(input)};
  shaders::NormParams& push = shape.push;
  push.heads = heads ? u32(input.shape[2]) : 1;
  shape.tokens = u32(input.shape.n_rows()) / push.heads;
  push.rows_per_sequence = lowering.rows_per_sequence(shape.tokens);
  push.columns = u32(input.shape.last());
  push.input_offset = u32(input.offset_elements);
  push.input_stride = heads ? stride_of(input, 1) : u32(row_stride(input));
  push.head_stride = heads ? stride_of(input, 2) : 0;
  push.epsilon = static_cast<float>(call.epsilon);
  push.weight_bias = static_cast<float>(call.weight_bias);
  push.has_weight = call.weight != kNone;
  if (push.has_weight) push.weight_offset = u32(lowering.tensor(call.weight).offset_elements);
  push.has_addend = call.addend != kNone;
  if (push.has_addend) {
    const Tensor& addend = lowering.tensor(call.addend);
    push.addend_offset = u32(addend.offset_elements);
    push.addend_stride = op == Op::layer_norm ? 0 : u32(row_stride(addend));
  }
  shape.quads = (push.columns | push.input_offset | push.input_stride | push.head_stride | push.weight_offset | push.addend_offset | push.addend_stride) % 4 == 0;
  return shape;
}

Result<const NormEntry*> choose(const Lowering& lowering, const NormShape& shape) {
  const std::string_view name = operator_of(shape.op).name;
  return choose_kernel(lowering, std::span<const NormEntry>(kTable), shape, {name, "", lowering.forced_kernel(name)}, [&](const char* kernel) { return fmt::format("{} {}", name, kernel); });
}

}  // namespace

bool can_round_norm(const Node& node, const Lowering& lowering) {
  const NormShape shape = shape_of(lowering, node.op, {node.inputs[0], node.outputs[0], node.inputs[1], node.inputs[2]});
  if (shape.activations != Type::kF32 || !lowering.caps().subgroup_shuffle || shape.push.columns % kRoundedTogether != 0 || (u32(lowering.tensor(node.outputs[0]).shape.n_elements()) % kGroupElements) != 0) return false;
  const Result<const NormEntry*> kernel = choose(lowering, shape);
  return kernel.ok() && (*kernel)->name == kNormKernels[0];
}

bool can_halve_norm(const Node& node, const Lowering& lowering) {
  const NormShape shape = shape_of(lowering, node.op, {node.inputs[0], node.outputs[0], node.inputs[1], node.inputs[2]});
  if (shape.activations != Type::kF32 || shape.push.heads != 1 || shape.push.columns % kGroupElements != 0) return false;
  const Result<const NormEntry*> kernel = choose(lowering, shape);
  return kernel.ok() && (*kernel)->name == kNormKernels[0];
}

Status lower_norm(Lowering& lowering, Op op, const NormCall& call) {
  const NormShape shape = shape_of(lowering, op, call);
  const std::string_view name = operator_of(op).name;
  RONDO_ASSIGN(const NormEntry* kernel, choose(lowering, shape));
  if (shape.rounds) lowering.append_rounded(call.output);
  kernel->emit(lowering, shape, fmt::format("{} {}", name, kernel->name),
               {{lowering.tensor(call.input).storage, runtime::Access::kRead},
                {lowering.read_only(call.weight), runtime::Access::kRead},
                {lowering.tensor(call.output).storage, runtime::Access::kWrite},
                {lowering.read_only(call.addend), runtime::Access::kRead}});
  return {};
}

}  // namespace rondo::graph
