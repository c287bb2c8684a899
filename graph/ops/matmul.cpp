// matmul: a (..., M, K), b (..., K, N) -> scale * a b, (..., M, N). Batch dimensions broadcast; either may be transposed.
#include <algorithm>
#include <cmath>

#include "graph/attribute_reader.h"
#include "graph/block_format.h"
#include "graph/kernel_choice.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "graph/tiles.h"
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

/// How a factor lies, as kALies and kBLies of shaders/lib/matmul_factors.glsl say.
struct FactorStrides {
  std::uint32_t row, depth;  ///< row: of a, column of b
  std::uint32_t n_steps, others;  ///< others: the bits of all that is added to a row's place
};
std::uint32_t layout_of(const FactorStrides& of) {
  if (of.depth == 1) return of.n_steps % 32 == 0 && (of.row | of.others) % 4 == 0 ? 0 : 1;
  return of.row < of.depth ? 2 : 1;
}

struct MatmulCall {
  shaders::MatmulParams push;
  Type type;
  std::uint32_t batches;
  runtime::Cost cost;
  std::uint32_t a_lies = 1, b_lies = 1;
  Activations rounding = Activations::kF32;

  std::uint32_t is_whole() const { return push.depth % 32 == 0; }
  MatrixTile matrices(const runtime::DeviceCaps& caps) const { return matmul_matrix_tile(caps, push.rows, push.columns, batches); }
  DotTile halves(const runtime::DeviceCaps& caps) const { return matmul_half_tile(caps, push.rows, push.columns, batches); }
  FloatTile tile(const runtime::DeviceCaps& caps) const { return matmul_float_tile(caps, push.rows, push.columns, batches); }
};

using MatmulArguments = std::initializer_list<Lowering::Argument>;

void emit_baseline(Lowering& lowering, const MatmulCall& call, const std::string& label, const MatmulArguments& arguments) {
  const std::uint32_t tile_rows = call.push.rows <= 8 ? 1 : 4;
  constexpr std::uint32_t steps = 16;  // kDepth of the shader
  runtime::Cost cost = call.cost;
  cost.flops *= 7;  // products in four parts, and what sums lose
  cost.loops[0] = {4 * tile_rows, 4 * tile_rows * steps};
  lowering.dispatch(label, lowering.module_for(runtime::Shader::matmul, call.type), {64, tile_rows}, arguments, call.push, {ceil_div(call.push.columns, 32), ceil_div(call.push.rows, 8 * tile_rows), call.batches}, cost);
}

void emit_tiled(Lowering& lowering, const MatmulCall& call, const std::string& label, const MatmulArguments& arguments) {
  const FloatTile tile = call.tile(lowering.caps());
  runtime::Cost cost = call.cost;
  cost.loops[0] = {tile.rows_of_invocation * tile.outputs_of_invocation * 4 * tile.steps};
  lowering.dispatch(label, {lowering.module_for(runtime::Shader::matmul_tiled, call.type), tile.lanes}, {tile.threads, tile.columns, tile.rows_of_invocation, tile.outputs_of_invocation, tile.steps, call.a_lies, call.b_lies, call.is_whole()}, arguments, call.push,
                    {ceil_div(call.push.columns, tile.outputs()), ceil_div(call.push.rows, tile.rows()), call.batches}, cost);
}

void emit_matrix(Lowering& lowering, const MatmulCall& call, const std::string& label, const MatmulArguments& arguments) {
  const MatrixTile tile = call.matrices(lowering.caps());
  runtime::Cost cost = call.cost;
  cost.loops[0] = tile.loop();
  cost.shared_bytes = cost.flops / 2 * tile.shared_traffic();
  lowering.dispatch(label, {lowering.module_for(runtime::Shader::matmul_matrix, call.type), tile.lanes},
                    {tile.threads, call.a_lies, tile.lanes, tile.row_matrices, tile.output_matrices, tile.row_subgroups, call.b_lies, call.is_whole(), tile.shape.rows, tile.shape.columns, tile.shape.depth, tile.columns_in_lanes}, arguments, call.push,
                    {ceil_div(call.push.columns, tile.outputs), ceil_div(call.push.rows, tile.rows()), call.batches}, cost);
}

void emit_half_tiled(Lowering& lowering, const MatmulCall& call, const std::string& label, const MatmulArguments& arguments) {
  const DotTile tile = call.halves(lowering.caps());
  runtime::Cost cost = call.cost;
  cost.loops[0] = {tile.rows() * DotTile::kOutputs * kGroupElements / DotTile::kThreads};
  lowering.dispatch(label, {lowering.module_for(runtime::Shader::matmul_half_tiled, call.type), tile.lanes}, {DotTile::kThreads, call.a_lies, tile.rows_of_invocation, call.b_lies, call.is_whole()}, arguments, call.push,
                    {ceil_div(call.push.columns, DotTile::kOutputs), ceil_div(call.push.rows, tile.rows()), call.batches}, cost);
}

using MatmulEntry = KernelEntry<MatmulCall, void (*)(Lowering&, const MatmulCall&, const std::string&, const MatmulArguments&)>;

constexpr const char* kKernels[] = {"baseline", "tiled", "matrix", "half_tiled"};
std::string lacks_nothing(const runtime::DeviceCaps&, const MatmulCall&) { return ""; }
std::string matrix_lacks(const runtime::DeviceCaps& caps, const MatmulCall& call) {
  if (call.rounding == Activations::kF32) return "activations that may be rounded";
  if (caps.matrices.empty()) return "cooperative matrices of f16";
  return call.matrices(caps).lanes == 0 ? "cooperative matrices and subgroups of sizes that fit" : "";
}

int matrix_rank(const runtime::DeviceCaps& caps, const MatmulCall& call) {
  return call.push.rows <= kMostSubgroupRows || (call.rounding == Activations::kAuto && is_cpu(caps)) ? -1 : 4;
}

std::string half_tiled_lacks(const runtime::DeviceCaps& caps, const MatmulCall& call) {
  if (call.rounding == Activations::kF32) return "activations that may be rounded";
  if (!caps.half_dot) return "dot products of f16 with sums in f32";
  return call.halves(caps).rows_of_invocation == 0 ? "workgroups of 256, and 26 KB of shared memory" : "";
}

/// Unless activations are to be rounded CPU drivers keep sums that lose nothing, which GPUs would pay 15 times over (docs/decisions/023-matmul-in-tiles.md).
constexpr MatmulEntry kTable[] = {
    {kKernels[0], lacks_nothing, [](const runtime::DeviceCaps&, const MatmulCall& call) { return std::uint64_t{call.push.depth} + call.push.depth / 8 + 200; },
     [](const runtime::DeviceCaps& caps, const MatmulCall&) { return is_cpu(caps) ? 2 : 1; }, emit_baseline},
    {kKernels[1], lacks_nothing, [](const runtime::DeviceCaps&, const MatmulCall& call) { return std::uint64_t{call.push.depth} / 4 + 1000; },  // were loops not unrolled
     [](const runtime::DeviceCaps& caps, const MatmulCall&) { return is_cpu(caps) ? 1 : 2; }, emit_tiled},
    {kKernels[2], matrix_lacks, [](const runtime::DeviceCaps&, const MatmulCall& call) { return std::uint64_t{call.push.depth} / 16 + 1000; },  // twice where rows must be scaled; and what stores the sums
     matrix_rank, emit_matrix},
    {kKernels[3], half_tiled_lacks, [](const runtime::DeviceCaps&, const MatmulCall& call) { return std::uint64_t{call.push.depth} / 16 + 1000; },  // as matrix
     [](const runtime::DeviceCaps& caps, const MatmulCall& call) { return call.push.rows <= kMostSubgroupRows || is_cpu(caps) ? -1 : 3; }, emit_half_tiled},
};

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
  MatmulCall call{push, output.type, u32(extent4(output.shape, 0)) * push.batch1, {tensor_bytes(a) + tensor_bytes(b) + tensor_bytes(output), 2.0 * push.depth * static_cast<double>(output.shape.n_elements())}};
  call.a_lies = layout_of({push.a_row, push.a_depth, push.depth, push.a_offset | push.a_batch0 | push.a_batch1});
  call.b_lies = layout_of({push.b_column, push.b_depth, push.depth, push.b_offset | push.b_batch0 | push.b_batch1});
  const std::string_view forced = lowering.forced_kernel("matmul");
  call.rounding = forced == kKernels[2] || forced == kKernels[3] ? Activations::kF16 : lowering.activations();
  const auto label_of = [](std::string_view kernel) { return fmt::format("matmul {}", kernel); };
  const KernelChoice choice{"matmul", fmt::format("matmul {} {} x {} x {} x {}, factors {} and {}", type_name(call.type), call.batches, push.rows, push.columns, push.depth, call.a_lies, call.b_lies), forced};
  RONDO_ASSIGN(const MatmulEntry* kernel, choose_kernel(lowering, std::span<const MatmulEntry>(kTable), call, choice, label_of));
  lowering.set_choice(choice.key);
  kernel->emit(lowering, call, label_of(kernel->name), {{a.storage, runtime::Access::kRead}, {b.storage, runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}});
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
