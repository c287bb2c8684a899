#include "graph/ops/linear_kernels.h"

#include <algorithm>
#include <array>

#include "graph/block_format.h"
#include "graph/kernel_choice.h"
#include "graph/cache_layout.h"
#include "graph/ops/checks.h"
#include "graph/ops/rope_tables.h"
#include "graph/ops/wide_kernels.h"
#include "graph/tiles.h"
#include "expert_tiles.params.h"
#include "linear.params.h"

namespace rondo::graph {

constexpr const char* const kLinearKernels[9] = {"subgroup", "dot", "vector", "wide", "tiled", "matrix", "dot_tiled", "half_tiled", "halves"};

namespace {

/// What decides between kernels.
struct LinearShape {
  std::uint32_t rows, groups, outputs;  ///< outputs: of the largest piece
  Type activations, weight;
  bool glu;
  std::uint32_t experts;  ///< that share the rows, or LoweringOptions::experts; 0: there is one weight
  bool rounds;            ///< outputs are left in bytes as well
  Activations rounding = Activations::kF32;  ///< of the activations
  bool turns = false;     ///< outputs, as a rope_kv_write behind it would

  std::uint32_t n_chunks() const { return groups * (kGroupElements / columns_of_chunk(weight)); }
  SubgroupTile tile(const runtime::DeviceCaps& caps) const { return subgroup_tile(caps, activations, experts ? 1 : rows, glu, outputs, n_chunks(), turns ? 0 : columns_of_chunk(weight), least_outputs()); }  // what turns is two outputs of either half of a head
  SubgroupTile tile_of_dots(const runtime::DeviceCaps& caps) const { return dot_tile(caps, experts ? 1 : rows, glu, least_outputs(), outputs, n_chunks()); }
  /// Of a workgroup of few rows.
  std::uint32_t least_outputs() const { return rounds ? kRoundedTogether : turns ? kTurnedTogether : 0; }
  FloatTile tile_of_floats(const runtime::DeviceCaps& caps) const { return float_tile(caps, rows_of_weight(), groups, outputs, glu, experts); }
  DotTile tile_of_many_dots(const runtime::DeviceCaps& caps) const { return many_dots_tile(caps, rows_of_weight(), groups, outputs, glu, experts); }
  DotTile tile_of_halves(const runtime::DeviceCaps& caps) const { return half_tile(caps, rows_of_weight(), groups, outputs, glu, experts); }
  MatrixTile tile_of_matrices(const runtime::DeviceCaps& caps) const { return matrix_tile(caps, weight, rows_of_weight(), groups, outputs, glu, experts); }
  /// Where experts have as many each.
  std::uint32_t rows_of_weight() const { return experts == 0 ? rows : ceil_div(rows, experts); }
  /// The mat-vec reads a weight for up to so many rows at once, but for each row of an expert by itself.
  bool few_rows() const { return rows_of_weight() <= (experts == 0 ? kMostSubgroupRows : kMostRowsOfExpert); }
};

/// Up to this many rows a CPU driver, or a device without subgroup reductions, reads the weight once per row rather than through tiles.
constexpr std::uint32_t kVectorRows = 4;
/// Rows that an invocation of the wide kernel makes where there are as many.
constexpr std::uint32_t kWideRows = 8;

std::string label_of(std::string_view op, std::string_view kernel, Type weight) { return fmt::format("{} {} {}", op, kernel, type_name(weight)); }

std::string lacks_nothing(const runtime::DeviceCaps&, const LinearShape&) { return ""; }

std::string tiled_lacks(const runtime::DeviceCaps&, const LinearShape& shape) { return shape.experts > RONDO_MOST_SORTED_EXPERTS ? fmt::format("{} experts or fewer", RONDO_MOST_SORTED_EXPERTS) : ""; }

std::string tile_lacks(const runtime::DeviceCaps& caps, const LinearShape& shape, const SubgroupTile& tile) {
  if (!caps.subgroup_arithmetic) return "subgroup reductions";
  if (tile.lanes == 0) return "subgroups of a size that can be relied on";
  const std::uint32_t workgroups = ceil_div(shape.outputs, tile.outputs_of_workgroup());
  return workgroups > caps.max_grid[0] ? fmt::format("{} workgroups", workgroups) : "";
}

std::string subgroup_lacks(const runtime::DeviceCaps& caps, const LinearShape& shape) { return tile_lacks(caps, shape, shape.tile(caps)); }

std::string halves_lack(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  if (shape.weight != Type::kF16) return "weights of f16";
  return caps.storage16 ? subgroup_lacks(caps, shape) : "16-bit storage";
}

/// What kernels that take activations in bytes need.
std::string bytes_lack(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  if (shape.rounding == Activations::kF32 || shape.rounding == Activations::kF16) return "activations that may be rounded to bytes";
  if (shape.activations != Type::kF32) return "activations in f32";
  if (shape.weight == Type::kF32 || shape.weight == Type::kF16 || shape.weight == Type::kBF16) return "weights of a type with blocks";
  if (!caps.integer_dot) return "integer dot products";
  return caps.subgroup_shuffle ? "" : "subgroup shuffles";
}

std::string dot_lacks(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  if (const std::string lacks = bytes_lack(caps, shape); !lacks.empty()) return lacks;
  const SubgroupTile tile = shape.tile_of_dots(caps);
  return tile.lanes != 0 && tile.lanes < 8 ? "subgroups of 8 or more" : tile_lacks(caps, shape, tile);
}

std::string dot_tiled_lacks(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  if (const std::string lacks = bytes_lack(caps, shape); !lacks.empty()) return lacks;
  if (const std::string lacks = tiled_lacks(caps, shape); !lacks.empty()) return lacks;
  return shape.tile_of_many_dots(caps).lanes == 0 ? "subgroups of 8 to 64 invocations that can be relied on, workgroups of 256, and 16 KB of shared memory" : "";
}

/// Above all others where activations are to be rounded.
template <typename Pays>
int rank_of_dots(const runtime::DeviceCaps& caps, const LinearShape& shape, const Pays& pays) {
  if (shape.rounding == Activations::kF32 || shape.rounding == Activations::kF16) return -1;
  return shape.rounding == Activations::kQ8 || (caps.fast_integer_dot && !is_cpu(caps) && pays()) ? 6 : -1;
}
int dot_rank(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  return shape.few_rows() ? rank_of_dots(caps, shape, [&] { return dot_pays(caps, shape.weight); }) : -1;
}
int dot_tiled_rank(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  return shape.few_rows() ? -1 : rank_of_dots(caps, shape, [&] { return shape.tile_of_many_dots(caps).pays; });
}

std::string matrix_lacks(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  if (shape.rounding == Activations::kF32) return "activations that may be rounded";
  if (caps.matrices.empty()) return "cooperative matrices of f16";
  if (const std::string lacks = tiled_lacks(caps, shape); !lacks.empty()) return lacks;
  return shape.tile_of_matrices(caps).lanes == 0 ? "cooperative matrices and subgroups of sizes that fit" : "";
}

/// Above integer dot products of few rows where these take longer, unless activations are to be rounded to bytes.
int matrix_rank(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  if (shape.rounding == Activations::kAuto && is_cpu(caps)) return -1;
  if (!shape.few_rows()) return 6;
  return shape.experts == 0 && shape.rows >= least_matrix_rows(caps, shape.weight) && shape.rounding != Activations::kQ8 ? 7 : -1;
}

std::string half_tiled_lacks(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  if (shape.rounding == Activations::kF32) return "activations that may be rounded";
  if (!caps.half_dot) return "dot products of f16 with sums in f32";
  if (const std::string lacks = tiled_lacks(caps, shape); !lacks.empty()) return lacks;
  return shape.tile_of_halves(caps).rows_of_invocation == 0 ? "workgroups of 256, and 26 KB of shared memory" : "";
}

std::string wide_lacks(const runtime::DeviceCaps& caps, const LinearShape& shape) {
  const char* missing = wide_kernel_needs(caps, shape.activations);
  return missing ? missing : "";
}

/// What the dispatches of one linear have in common.
struct LinearVariant {
  Type activations;
  std::uint32_t type, glu, input_vec4, activation, has_bias, experts, limited, norm, rounds, rotation;
  std::string label;
};

/// The rows of a weight that lie in one piece, `weight_bytes` of it.
struct LinearPiece {
  std::array<Lowering::Argument, 7> arguments;
  shaders::LinearParams push;
  runtime::Cost cost;
  double weight_bytes = 0;
  TensorId input = kNone;

  /// Of the kernels that compute no norm of their output.
  std::span<const Lowering::Argument> without_norm() const { return std::span(arguments).first(5); }
};

/// As many as there are, or as the options say.
std::uint32_t experts_of(const Lowering& lowering, std::uint32_t n) { return lowering.experts() != 0 ? lowering.experts() : n; }

LinearShape shape_of(const Lowering& lowering, const LinearVariant& v, const LinearPiece& piece) {
  return {piece.push.rows, piece.push.groups, piece.push.outputs, v.activations, static_cast<Type>(v.type), v.glu != 0, v.experts != 0 ? experts_of(lowering, piece.push.experts) : 0, v.rounds != 0, Activations::kF32, v.rotation != 0};
}

/// What the piece reads of its input.
ActivationRows input_rows(const LinearVariant& v, const LinearPiece& piece) {
  const shaders::LinearParams& push = piece.push;
  const bool each = v.experts != 0 && push.input_choice_stride != 0;  // of a token's experts has an input
  const std::uint32_t tokens = push.rows / push.chosen;
  return {piece.input, tokens, each ? push.chosen : 1, push.columns, push.input_offset, tokens == 1 ? push.columns * (each ? push.chosen : 1) : push.input_stride, each ? push.input_choice_stride : push.columns};
}

/// The piece with its input rounded, `element_bytes` each.
LinearPiece with_input(const Lowering& lowering, const LinearVariant& v, const LinearPiece& piece, const RoundedTensor& rounded, double element_bytes_now) {
  LinearPiece made = piece;
  made.arguments[0].storage = rounded.storage;
  made.cost.bytes += (element_bytes_now - element_bytes(v.activations)) * tensor_elements(lowering.tensor(piece.input));
  made.push.input_offset = rounded.elements_at, made.push.input_stride = rounded.scales_at;
  return made;
}

/// The piece with its input in bytes.
LinearPiece with_rounded_input(Lowering& lowering, const LinearVariant& v, const LinearPiece& piece, RoundedOrder order, std::uint32_t lanes) {
  return with_input(lowering, v, piece, lowering.round(input_rows(v, piece), order, lanes), kRoundedBytes);
}

/// The piece with its input in f16.
LinearPiece with_halved_input(Lowering& lowering, const LinearVariant& v, const LinearPiece& piece) {
  return with_input(lowering, v, piece, lowering.halve(input_rows(v, piece), v.activations, v.input_vec4), 2);
}

void emit_few_rows(Lowering& lowering, const LinearVariant& v, const LinearPiece& piece, runtime::Shader shader, const SubgroupTile& tile) {
  runtime::Cost cost = piece.cost;
  if (!v.experts) cost.bytes += piece.weight_bytes * (ceil_div(piece.push.rows, tile.tokens) - 1);
  cost.loops[0] = {(tile.rows / tile.row_lanes * tile.tokens * tile.loads * columns_of_chunk(static_cast<Type>(v.type))) << v.glu};
  const std::uint32_t how = shader == runtime::Shader::linear_dot ? v.rounds : v.input_vec4;
  lowering.dispatch(v.label, {lowering.module_for(shader, v.activations), tile.lanes},
                    {tile.lanes * tile.subgroups, v.type, tile.lanes, tile.rows, tile.tokens, v.glu, how, v.activation, v.has_bias, v.experts, v.limited, v.norm, tile.split, tile.loads, v.rotation, tile.row_lanes}, piece.arguments, piece.push,
                    {ceil_div(piece.push.outputs, tile.outputs_of_workgroup()), ceil_div(piece.push.rows, tile.tokens), 1}, cost);
}

SubgroupTile tile_of_subgroup(const runtime::DeviceCaps& caps, const LinearShape& shape) { return shape.tile(caps); }
SubgroupTile tile_of_dots(const runtime::DeviceCaps& caps, const LinearShape& shape) { return shape.tile_of_dots(caps); }

void emit_subgroup(Lowering& lowering, const LinearVariant& v, const LinearPiece& piece) {
  emit_few_rows(lowering, v, piece, runtime::Shader::linear_subgroup, shape_of(lowering, v, piece).tile(lowering.caps()));
}

void emit_halves(Lowering& lowering, const LinearVariant& v, const LinearPiece& piece) {
  SubgroupTile tile = shape_of(lowering, v, piece).tile(lowering.caps());
  tile.loads = 1;
  emit_few_rows(lowering, v, piece, runtime::Shader::linear_halves, tile);
}

void emit_dot(Lowering& lowering, const LinearVariant& v, const LinearPiece& piece) {
  const SubgroupTile tile = shape_of(lowering, v, piece).tile_of_dots(lowering.caps());
  emit_few_rows(lowering, v, with_rounded_input(lowering, v, piece, RoundedOrder::kRows, tile.lanes), runtime::Shader::linear_dot, tile);
}

void emit_vector(Lowering& lowering, const LinearVariant& v, const LinearPiece& piece) {
  // On a CPU driver every barrier switches between all subgroups of the workgroup, so there are few.
  const std::uint32_t width = is_cpu(lowering.caps()) ? 32 : 128, lanes = is_cpu(lowering.caps()) ? 8 : 32;
  constexpr std::uint32_t rows = 2;
  runtime::Cost cost = piece.cost;
  if (!v.experts) cost.bytes += piece.weight_bytes * (piece.push.rows - 1);
  cost.loops[0] = {rows * 32 << v.glu};
  lowering.dispatch(v.label, lowering.module_for(runtime::Shader::linear_vector, v.activations), {width, v.type, lanes, rows, v.glu, v.input_vec4, v.activation, v.has_bias, v.experts, v.limited}, piece.without_norm(), piece.push,
                    {ceil_div(piece.push.outputs, width / lanes * rows), piece.push.rows, 1}, cost);
}

/// Has the piece's rows sorted into tiles of so many rows, each of one expert, and the piece take them in the place of its experts. Returns how many tiles
/// there are at most. A table that has been made for another linear of the same experts serves.
std::uint32_t sort_into_tiles(Lowering& lowering, LinearPiece& piece, std::uint32_t rows) {
  const shaders::LinearParams& push = piece.push;
  Lowering::Argument& experts = piece.arguments[2];
  // Each expert may leave its last tile with one row.
  const std::uint32_t n = (push.rows + std::min(push.rows, push.experts) * (rows - 1)) / rows;
  StorageId& made = lowering.made_before({static_cast<std::int64_t>(Op::expert_linear), experts.storage, push.experts_offset, push.experts_stride, push.experts, push.chosen, push.rows, rows});
  if (made == kNone) {
    const std::uint64_t words = std::uint64_t{n} * RONDO_EXPERT_TILE_WORDS(rows);
    made = lowering.scratch(4 * words, "tiles of experts");
    constexpr std::uint32_t kWidth = 256;
    lowering.dispatch("expert tiles", runtime::Shader::expert_tiles, {std::min(kWidth, lowering.caps().max_invocations)}, {experts, {made, runtime::Access::kWrite}},
                      shaders::ExpertTilesParams{push.rows, push.rows_per_sequence, push.chosen, push.experts, push.experts_offset, push.experts_stride, rows, n}, {1, 1, 1}, {4.0 * (2.0 * push.rows + static_cast<double>(words)), 0});
  }
  experts.storage = made;
  piece.cost.bytes += piece.weight_bytes * (1.0 * n / push.rows - 1);
  piece.cost.flops *= 1.0 * n * rows / push.rows;
  return n;
}

void emit_wide(Lowering& lowering, const LinearVariant& v, const LinearPiece& whole) {
  LinearPiece piece = whole;
  const std::uint32_t width = lowering.caps().min_subgroup_size, columns = v.glu ? 2 : 4;
  const LinearShape shape = shape_of(lowering, v, piece);
  const bool by_tiles = v.experts ? !shape.few_rows() && tiled_lacks(lowering.caps(), shape).empty() : piece.push.rows >= kWideRows;
  const std::uint32_t tile_rows = by_tiles ? kWideRows : 1, n_tiles = by_tiles && v.experts ? sort_into_tiles(lowering, piece, tile_rows) : ceil_div(piece.push.rows, tile_rows);
  lowering.dispatch(v.label, runtime::Shader::linear_wide, {width, v.type, tile_rows, columns, v.glu, v.input_vec4, v.activation, v.has_bias, v.experts, v.limited}, piece.without_norm(), piece.push,
                    {n_tiles, ceil_div(piece.push.outputs, width * columns), 1}, piece.cost);
}

using Grid = std::array<std::uint32_t, 3>;

/// Emits a dispatch of tiles, rows by outputs (with GLU gates and ups). Where `splits` workgroups share a tile's columns, a second dispatch adds up and
/// finishes. `dispatch` takes the piece, whether they do, and the grid.
template <typename Dispatch>
void emit_tiles(Lowering& lowering, const LinearVariant& v, LinearPiece piece, std::uint32_t rows, std::uint32_t outputs, std::uint32_t splits, const Dispatch& dispatch) {
  shaders::LinearParams& push = piece.push;
  const std::uint32_t x = v.experts ? sort_into_tiles(lowering, piece, rows) : ceil_div(push.rows, rows), y = ceil_div(push.outputs, outputs >> v.glu);
  push.groups_of_split = ceil_div(push.groups, splits);
  splits = ceil_div(push.groups, push.groups_of_split);  // of 129 groups 15 times 9
  if (splits == 1) return dispatch(piece, 0u, Grid{x, y, 1});
  const Lowering::Argument output = piece.arguments[3];
  const std::uint64_t sums = std::uint64_t{splits} * push.rows * (push.outputs << v.glu);
  const StorageId partial = lowering.scratch(4 * sums, "partial sums");
  piece.arguments[3] = {partial, runtime::Access::kWrite};
  piece.cost.bytes += 4.0 * static_cast<double>(sums);
  dispatch(piece, 1u, Grid{x, y, splits});
  push.RONDO_COMBINE_SPLITS = splits;
  constexpr std::uint32_t kWidth = 128;
  lowering.dispatch("linear combine", lowering.module_for(runtime::Shader::linear_combine, v.activations), {kWidth, v.glu, v.activation, v.has_bias, v.limited},
                    {{partial, runtime::Access::kRead}, {kNone, runtime::Access::kRead}, piece.arguments[2], output, piece.arguments[4]}, push,
                    {ceil_div(push.outputs, kWidth), push.rows, 1}, {4.0 * static_cast<double>(sums) + 1.0 * element_bytes(v.activations) * push.rows * push.outputs, 0});
}

void emit_tiled(Lowering& lowering, const LinearVariant& v, const LinearPiece& whole) {
  const FloatTile tile = shape_of(lowering, v, whole).tile_of_floats(lowering.caps());
  emit_tiles(lowering, v, whole, tile.rows(), tile.outputs(), tile.splits, [&](LinearPiece& piece, std::uint32_t is_split, const Grid& grid) {
    piece.cost.loops[0] = {tile.rows_of_invocation * tile.outputs_of_invocation * 4 * tile.steps};
    lowering.dispatch(v.label, {lowering.module_for(runtime::Shader::linear_tiled, v.activations), tile.lanes},
                      {tile.threads, v.type, tile.columns, tile.rows_of_invocation, tile.outputs_of_invocation, tile.steps, v.glu, v.input_vec4, v.activation, v.has_bias, v.limited, is_split, v.experts}, piece.without_norm(), piece.push, grid, piece.cost);
  });
}

void emit_matrix(Lowering& lowering, const LinearVariant& v, const LinearPiece& whole) {
  const MatrixTile tile = shape_of(lowering, v, whole).tile_of_matrices(lowering.caps());
  emit_tiles(lowering, v, with_halved_input(lowering, v, whole), tile.rows(), tile.outputs, tile.splits, [&](LinearPiece& piece, std::uint32_t is_split, const Grid& grid) {
    piece.cost.loops[0] = tile.loop();
    piece.cost.shared_bytes = piece.cost.flops / 2 * tile.shared_traffic();
    lowering.dispatch(v.label, {lowering.module_for(runtime::Shader::linear_matrix, v.activations), tile.lanes},
                      {tile.threads, v.type, tile.lanes, tile.row_matrices, tile.output_matrices, tile.row_subgroups, v.glu, v.activation, v.has_bias, v.limited, is_split, tile.shape.rows, tile.shape.columns, tile.shape.depth, tile.ahead, v.experts, tile.pairs, tile.columns_in_lanes},
                      piece.without_norm(), piece.push, grid, piece.cost);
  });
}

void emit_dot_tiled(Lowering& lowering, const LinearVariant& v, const LinearPiece& whole) {
  const DotTile tile = shape_of(lowering, v, whole).tile_of_many_dots(lowering.caps());
  emit_tiles(lowering, v, with_rounded_input(lowering, v, whole, RoundedOrder::kColumns, tile.lanes), tile.rows(), DotTile::kOutputs, tile.splits, [&](LinearPiece& piece, std::uint32_t is_split, const Grid& grid) {
    piece.cost.loops[0] = {tile.rows() * DotTile::kOutputs * kGroupElements / DotTile::kThreads};
    lowering.dispatch(v.label, {runtime::Shader::linear_dot_tiled, tile.lanes}, {DotTile::kThreads, v.type, tile.lanes, tile.rows_of_invocation, v.glu, v.activation, v.has_bias, v.limited, is_split, v.experts, tile.fused_fma},
                      piece.without_norm(), piece.push, grid, piece.cost);
  });
}

void emit_half_tiled(Lowering& lowering, const LinearVariant& v, const LinearPiece& whole) {
  const DotTile tile = shape_of(lowering, v, whole).tile_of_halves(lowering.caps());
  emit_tiles(lowering, v, with_halved_input(lowering, v, whole), tile.rows(), DotTile::kOutputs, tile.splits, [&](LinearPiece& piece, std::uint32_t is_split, const Grid& grid) {
    piece.cost.loops[0] = {tile.rows() * DotTile::kOutputs * kGroupElements / DotTile::kThreads};
    lowering.dispatch(v.label, {lowering.module_for(runtime::Shader::linear_half_tiled, v.activations), tile.lanes}, {DotTile::kThreads, v.type, tile.rows_of_invocation, v.glu, v.activation, v.has_bias, v.limited, is_split, v.experts},
                      piece.without_norm(), piece.push, grid, piece.cost);
  });
}

struct LinearEmit {
  void (*dispatch)(Lowering&, const LinearVariant&, const LinearPiece&);
  /// Of kernels that compute norms of their inputs and outputs, else null.
  SubgroupTile (*tile)(const runtime::DeviceCaps&, const LinearShape&) = nullptr;
};
using LinearEntry = KernelEntry<LinearShape, LinearEmit>;

/// The order of the ranks is that of the kernels in use: on CPU drivers wide, on others subgroup or vector for few rows and tiles for many.
constexpr LinearEntry kTable[] = {
    {kLinearKernels[0], subgroup_lacks, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{2} * shape.groups + 100; },  // 4 lanes or more share at most 8 chunks a group; and its short loops, unrolled or not
     [](const runtime::DeviceCaps& caps, const LinearShape& shape) { return is_cpu(caps) ? 0 : shape.few_rows() ? 4 : 1; },
     {emit_subgroup, tile_of_subgroup}},
    {kLinearKernels[1], dot_lacks, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{2} * shape.groups + 100; },  // as subgroup
     dot_rank, {emit_dot, tile_of_dots}},
    {kLinearKernels[2], lacks_nothing, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{shape.groups}; },
     [](const runtime::DeviceCaps&, const LinearShape& shape) { return shape.rows <= kVectorRows || (shape.experts != 0 && shape.few_rows()) ? 3 : 1; },
     {emit_vector}},
    {kLinearKernels[3], wide_lacks, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{20'000} + shape.groups; },  // linear_wide.comp's touch() with scales
     [](const runtime::DeviceCaps& caps, const LinearShape&) { return is_cpu(caps) ? 5 : -1; },
     {emit_wide}},
    {kLinearKernels[4], tiled_lacks, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{2} * shape.groups + 1000; },  // and what stores the sums
     [](const runtime::DeviceCaps&, const LinearShape&) { return 2; },
     {emit_tiled}},
    {kLinearKernels[5], matrix_lacks, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{2} * shape.groups + 1000; },  // twice where rows must be scaled; and what stores the sums
     matrix_rank, {emit_matrix}},
    {kLinearKernels[6], dot_tiled_lacks, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{shape.groups} + 1000; },  // and loops that may not be unrolled
     dot_tiled_rank, {emit_dot_tiled}},
    {kLinearKernels[7], half_tiled_lacks, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{2} * shape.groups + 1000; },  // as matrix
     [](const runtime::DeviceCaps& caps, const LinearShape& shape) { return shape.few_rows() || is_cpu(caps) ? -1 : 5; }, {emit_half_tiled}},
    {kLinearKernels[8], halves_lack, [](const runtime::DeviceCaps&, const LinearShape& shape) { return std::uint64_t{2} * shape.groups + 100; },  // as subgroup
     [](const runtime::DeviceCaps& caps, const LinearShape& shape) { return caps.half_registers && shape.few_rows() ? 5 : -1; },
     {emit_halves, tile_of_subgroup}},
};

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

namespace {

/// What is in bytes where the linear leaves such: its output, or the norm of it that it makes.
TensorId rounded_of(const Lowering& lowering, const LinearCall& call) {
  const DeferredNorm* const norm = lowering.norm_after(call.output);
  return norm ? norm->output : call.output;
}

LinearShape shape_of(const Lowering& lowering, const LinearCall& call) {
  const Tensor& input = lowering.tensor(call.input);
  const Tensor& weight = lowering.tensor(call.weight);
  const bool by_experts = call.experts != kNone;
  const std::uint32_t chosen = by_experts ? u32(lowering.tensor(call.experts).shape.last()) : 1;
  std::uint32_t largest = 0;
  for (const WeightPlanes& planes : planes_of(lowering.graph(), weight)) largest = std::max(largest, planes.n_rows / (call.glu ? 2 : 1) / u32(call.n_experts));
  return {u32(lowering.tensor(call.output).shape.n_rows()) * chosen, ceil_div(u32(weight.shape[1]), kGroupElements), largest, input.type, weight.type, call.glu.has_value(), by_experts ? experts_of(lowering, u32(call.n_experts)) : 0, lowering.rounds(rounded_of(lowering, call)), lowering.activations(), lowering.rotation_after(call.output) != nullptr};
}

/// What KernelChoice::key is of a linear: rows, outputs, columns, and how many experts share the rows.
std::string key_of(const Operator& op, const LinearShape& shape) {
  const std::string experts = shape.experts == 0 ? "" : fmt::format(" of {}", shape.experts);
  return fmt::format("{} {} {} {} x {} x {}{}", op.name, type_name(shape.weight), type_name(shape.activations), shape.rows, shape.outputs, shape.groups * kGroupElements, experts);
}

Result<const LinearEntry*> choose_linear(const Lowering& lowering, const Operator& op, LinearShape shape, bool by_experts) {
  std::string_view forced = lowering.forced_kernel(op.name);
  const auto has = [&](std::string_view kernel) { return std::find(op.kernels.begin(), op.kernels.end(), kernel) != op.kernels.end(); };
  if (const std::string_view of_linear = lowering.forced_kernel("linear"); forced.empty() && !by_experts && has(of_linear)) forced = of_linear;
  if (forced == kLinearKernels[1] || forced == kLinearKernels[6]) shape.rounding = Activations::kQ8;
  if (forced == kLinearKernels[5] || forced == kLinearKernels[7]) shape.rounding = Activations::kF16;
  const auto label = [&](const char* name) { return label_of(op.name, name, shape.weight); };
  return choose_kernel(lowering, std::span<const LinearEntry>(kTable), shape, {op.name, key_of(op, shape), forced, op.kernels}, label);
}

Result<const LinearEntry*> choose_linear(const Lowering& lowering, const Operator& op, const LinearCall& call) { return choose_linear(lowering, op, shape_of(lowering, call), call.experts != kNone); }

/// What linear_subgroup.comp's kNorm and its parameters are.
std::uint32_t defer_norm(Lowering& lowering, const LinearCall& call, const LinearEntry& kernel, shaders::LinearParams& push) {
  std::uint32_t kinds = 0;
  if (DeferredNorm* const makes = lowering.norm_after(call.output)) {
    makes->n_squares = ceil_div(u32(lowering.tensor(call.output).shape.last()), kernel.emit.tile(lowering.caps(), shape_of(lowering, call)).outputs_of_workgroup());
    push.gain_offset = u32(lowering.tensor(makes->gains).offset_elements);
    push.gain_bias = makes->gain_bias;
    makes->first_square = static_cast<std::uint32_t>(lowering.append_bytes(makes->output, std::uint64_t{16} * ceil_div(makes->n_squares, 4) * push.rows) / 4);
    push.squares_to = makes->first_square;
    kinds |= 1;
  }
  if (const DeferredNorm* const takes = lowering.norm_before(call.input)) {
    push.squares_from = takes->first_square;
    push.n_squares = takes->n_squares;
    push.epsilon = takes->epsilon;
    kinds |= 2;
  }
  return kinds;
}

bool can_compute_norms(const Node& node, const LinearCall& call, const Lowering& lowering) {
  if (call.experts != kNone) return false;
  if (lowering.tensor(call.input).type != Type::kF32) return false;
  const Result<const LinearEntry*> kernel = choose_linear(lowering, operator_of(node.op), call);
  if (!kernel.ok()) return false;
  // Self-tests put a linear of f32 on a norm's other side, which must be able to as well: "subgroup", as GPUs choose.
  const bool alone = (*kernel)->name != kLinearKernels[0] && (is_cpu(lowering.caps()) || lowering.forced_kernel("linear") == (*kernel)->name);
  return (*kernel)->emit.tile != nullptr && !alone;
}

/// Inputs of a rope_kv_write that the linear before it needs.
enum RotationInput : std::size_t { kQuery, kKey, kValue, kKeyCache = 6, kValueCache = 7, kRotationTable = 9 };

/// Heads that a linear makes for a rope_kv_write behind it.
struct RotatedHeads {
  std::int64_t queries = 0, keys = 0, values = 0;
  bool turn() const { return queries + keys != 0; }
};

/// Those that lie side by side in each row of the linear's output, of T rows for each sequence, and are all of it; or nothing.
std::optional<RotatedHeads> find_rotated_heads(const Lowering& lowering, const Tensor& output, const Node& rotation) {
  RotatedHeads heads;
  const std::int64_t width = lowering.tensor(rotation.inputs[kQuery]).shape[3], all = output.shape.last();
  std::int64_t next = 0;
  for (const auto& [input, n] : {std::pair{kQuery, &heads.queries}, {kKey, &heads.keys}, {kValue, &heads.values}}) {
    const Tensor& part = lowering.tensor(rotation.inputs[input]);
    if (part.storage != output.storage) continue;
    const auto has_stride = [&](std::size_t axis, std::int64_t stride) { return part.shape[static_cast<int>(axis)] == 1 || part.strides[axis] == stride; };
    if (part.offset_elements != next || !has_stride(0, part.shape[2] * all) || !has_stride(1, width) || !has_stride(2, all)) return std::nullopt;
    *n = part.shape[1];
    next += part.shape[1] * width;
  }
  if (next == 0 || next != all || !output.is_contiguous()) return std::nullopt;
  return heads;
}

/// Whether neighbours turn together: pairs of elements, or none.
bool turns_neighbours(const RotatedHeads& heads, const RopeKvWriteAttributes& attributes) { return !heads.turn() || attributes.rope.style == RopeStyle::kInterleaved; }

/// What shaders/lib/linear_rotation.glsl's kRotation, parameters and bindings are, in those of the linear.
void defer_rotation(const Lowering& lowering, const Tensor& output, const Node& rotation, LinearVariant& variant, LinearPiece& piece) {
  const auto attributes = attributes_of<RopeKvWriteAttributes>(rotation);
  const RotatedHeads heads = *find_rotated_heads(lowering, output, rotation);
  const Tensor &query = lowering.tensor(rotation.inputs[kQuery]), &cache = lowering.tensor(rotation.inputs[kKeyCache]);
  const StorageId value_cache = lowering.tensor(rotation.inputs[kValueCache]).storage;
  const RopeTable table = rope_table_of(attributes.rope, query.shape[3]);
  variant.rotation = RONDO_ROTATION;
  if (turns_neighbours(heads, attributes)) variant.rotation |= RONDO_ROTATION_INTERLEAVED;
  if (cache.type == Type::kF16) variant.rotation |= RONDO_ROTATION_HALVES;
  if (attributes.ring) variant.rotation |= RONDO_ROTATION_RING;
  piece.push.RONDO_ROTATION_HEADS = u32(heads.queries);
  piece.push.RONDO_ROTATION_KEY_HEADS = u32(heads.keys);
  piece.push.RONDO_ROTATION_KV_HEADS = u32(cache.shape[1]);
  piece.push.RONDO_ROTATION_HEAD_DIM = u32(query.shape[3]);
  piece.push.RONDO_ROTATION_CACHE_ROWS = u32(cache.shape[2]);
  piece.push.RONDO_ROTATION_CACHE_ROW = stride_of(cache, 2);
  piece.push.RONDO_ROTATION_FREQUENCIES = table.frequencies;
  piece.push.RONDO_ROTATION_HIGH_LINES = table.high_lines;
  piece.push.RONDO_ROTATION_FACTOR = static_cast<float>(attributes.rope.attention_factor);
  piece.arguments[2] = {lowering.read_only(rotation.inputs[kRotationTable]), runtime::Access::kRead};
  // What it makes none of is not bound, or it would have to wait for who does: another of the bindings is, in its place.
  if (heads.queries != 0) piece.arguments[3] = {lowering.tensor(rotation.outputs[0]).storage, runtime::Access::kWrite};
  piece.arguments[5] = {heads.keys != 0 ? cache.storage : value_cache, runtime::Access::kWrite};
  piece.arguments[6] = {heads.values != 0 ? value_cache : cache.storage, runtime::Access::kWrite};
}

}  // namespace

std::optional<LinearCall> find_linear_call(const Node& node) {
  if (node.op == Op::linear) {
    return LinearCall{.input = node.inputs[0], .weight = node.inputs[1], .output = node.outputs[0], .bias = node.inputs[3], .residual = node.inputs[2], .activation = attributes_of<LinearAttributes>(node).activation};
  }
  if (node.op == Op::linear_glu) return LinearCall{.input = node.inputs[0], .weight = node.inputs[1], .output = node.outputs[0], .glu = attributes_of<GluAttributes>(node)};
  if (node.op != Op::expert_linear && node.op != Op::expert_linear_glu) return std::nullopt;
  const auto attributes = attributes_of<ExpertAttributes>(node);
  LinearCall call{.input = node.inputs[0], .weight = node.inputs[1], .output = node.outputs[0], .bias = node.inputs[3], .experts = node.inputs[2], .n_experts = attributes.experts};
  if (node.op == Op::expert_linear_glu) call.glu = attributes.glu;
  return call;
}

bool can_make_norm(const Node& node, const Lowering& lowering) {
  const std::optional<LinearCall> call = find_linear_call(node);
  return call && lowering.tensor(call->output).shape.last() % 4 == 0 && planes_of(lowering.graph(), lowering.tensor(call->weight)).size() == 1 && can_compute_norms(node, *call, lowering);
}

bool can_take_norm(const Node& node, const Lowering& lowering) {
  const std::optional<LinearCall> call = find_linear_call(node);
  return call && can_compute_norms(node, *call, lowering);
}

bool can_rotate(const Node& node, const Node& rotation, const Lowering& lowering) {
  const std::optional<LinearCall> call = find_linear_call(node);
  const auto attributes = attributes_of<RopeKvWriteAttributes>(rotation);
  if (!call || call->glu || call->experts != kNone || call->residual != kNone || call->activation != Activation::kIdentity || !attributes.of_step) return false;
  const std::optional<RotatedHeads> heads = find_rotated_heads(lowering, lowering.tensor(call->output), rotation);
  if (!heads || lowering.tensor(rotation.inputs[kKeyCache]).type == Type::kQ8_0) return false;
  for (const TensorId id : {rotation.inputs[kKeyCache], rotation.inputs[kValueCache], call->weight}) {
    if (lowering.graph().storage_of(id).pieces.size() > 1) return false;
  }
  const Result<const LinearEntry*> kernel = choose_linear(lowering, operator_of(node.op), *call);
  if (!kernel.ok() || !(*kernel)->emit.tile) return false;
  // A workgroup has whole pairs of what turns together, of neighbours, since halves are stored by twos, and of one head.
  LinearShape shape = shape_of(lowering, *call);
  shape.turns = true;
  const SubgroupTile tile = (*kernel)->emit.tile(lowering.caps(), shape);
  const std::uint32_t made = tile.outputs_of_workgroup(), width = u32(lowering.tensor(rotation.inputs[kQuery]).shape[3]);
  const bool all_turn = 2 * rope_table_of(attributes.rope, width).frequencies == width;
  return width % made == 0 && (turns_neighbours(*heads, attributes) ? made % 2 == 0 : all_turn && made % 4 == 0 && made / 2 % tile.rows == 0);
}

bool takes_bytes_in_few_rows(const Node& node, const Lowering& lowering) {
  const std::optional<LinearCall> call = find_linear_call(node);
  if (!call) return false;
  const Result<const LinearEntry*> kernel = choose_linear(lowering, operator_of(node.op), *call);
  return kernel.ok() && (*kernel)->name == kLinearKernels[1];
}

bool takes_halves(const Node& node, const Lowering& lowering) {
  const std::optional<LinearCall> call = find_linear_call(node);
  if (!call || lowering.tensor(call->input).shape.last() != lowering.tensor(call->weight).shape[1]) return false;
  const Result<const LinearEntry*> kernel = choose_linear(lowering, operator_of(node.op), *call);
  return kernel.ok() && rounds_to_halves(std::string_view((*kernel)->name));
}

namespace {

/// The kernel of a linear of 8 outputs, or "".
std::string_view kernel_of_narrow_linear(const Lowering& lowering, std::uint32_t rows, std::uint32_t columns, Type weight) {
  const LinearShape shape{rows, ceil_div(columns, kGroupElements), 8, Type::kF32, weight, false, 0, false, lowering.activations()};
  const Result<const LinearEntry*> kernel = choose_linear(lowering, operator_of(Op::linear), shape, false);
  return kernel.ok() ? (*kernel)->name : "";
}

}  // namespace

bool linears_of_bytes_take_dots(const Lowering& lowering, std::uint32_t rows, std::uint32_t columns) { return kernel_of_narrow_linear(lowering, rows, columns, Type::kQ8_0) == kLinearKernels[1]; }
bool linears_of_halves_take_halves(const Lowering& lowering, std::uint32_t rows, std::uint32_t columns) { return rounds_to_halves(kernel_of_narrow_linear(lowering, rows, columns, Type::kF16)); }

bool can_round_outputs(const Node& node, const Lowering& lowering) {
  const std::optional<LinearCall> call = find_linear_call(node);
  if (!call || !takes_bytes_in_few_rows(node, lowering) || planes_of(lowering.graph(), lowering.tensor(call->weight)).size() != 1) return false;
  LinearShape shape = shape_of(lowering, *call);
  shape.rounds = true;
  return shape.outputs % kGroupElements == 0 && shape.tile_of_dots(lowering.caps()).outputs_of_workgroup() % kRoundedTogether == 0;
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
  const bool quads = (push.columns | push.input_offset | push.input_stride | push.input_choice_stride) % 4 == 0;
  variant.input_vec4 = !quads ? 0 : push.columns % kGroupElements == 0 ? 2 : 1;
  if (call.glu) push.glu_limit = static_cast<float>(call.glu->limit), push.glu_up_bias = static_cast<float>(call.glu->up_bias);
  push.output_stride = u32(row_stride(output)) / push.chosen;
  push.has_residual = call.residual != kNone;
  if (push.has_residual) push.residual_stride = u32(row_stride(lowering.tensor(call.residual)));

  const std::vector<WeightPlanes> pieces = planes_of(lowering.graph(), weight);
  if (in_one && pieces.size() > 1) {
    return Status(StatusCode::kUnsupported, fmt::format("weight {} is in {} pieces, which is there for linear only", weight.name, pieces.size()));
  }
  RONDO_ASSIGN(const LinearEntry* kernel, choose_linear(lowering, op, call));
  lowering.set_choice(key_of(op, shape_of(lowering, call)));
  if (const TensorId rounded = rounded_of(lowering, call); lowering.rounds(rounded)) {
    variant.rounds = 1;
    lowering.append_rounded(rounded);
  }
  variant.norm = defer_norm(lowering, call, *kernel, push);
  const DeferredRotation* const rotation = lowering.rotation_after(call.output);
  const DeferredNorm* const makes = lowering.norm_after(call.output);
  variant.label = label_of(op.name, kernel->name, weight.type);

  // What may be written is never the state's place, or validation layers, which look at modules without their constants, see it written.
  const Lowering::Argument gains = makes ? Lowering::Argument{lowering.read_only(makes->gains), runtime::Access::kRead} : Lowering::Argument{output.storage, runtime::Access::kWrite};
  for (const WeightPlanes& planes : pieces) {
    push.outputs = (planes.n_rows >> variant.glu) / push.experts;
    push.output_offset = u32(output.offset_elements) + planes.tensor_row;
    push.weight_offset_rows = planes.first_row;
    push.row_words = planes.layout.row_words;
    push.scale_row_words = planes.layout.scale_row_words;
    push.scale_offset_words = static_cast<std::uint32_t>(planes.layout.scale_offset_words);
    if (variant.has_bias) push.bias_offset = u32(lowering.tensor(call.bias).offset_elements) + planes.tensor_row;
    if (push.has_residual) push.residual_offset = u32(lowering.tensor(call.residual).offset_elements) + planes.tensor_row;
    const std::array<Lowering::Argument, 7> arguments = {{{input.storage, runtime::Access::kRead},
                                                                 {weight.storage, runtime::Access::kRead, planes.piece},
                                                                 {lowering.read_only(by_experts ? call.experts : call.residual), runtime::Access::kRead},
                                                                 {output.storage, runtime::Access::kWrite},
                                                                 {lowering.read_only(call.bias), runtime::Access::kRead},
                                                                 gains,
                                                                 {lowering.tensor(makes ? makes->output : call.output).storage, runtime::Access::kWrite}}};
    // Of experts the weights of those that are chosen are read, and no others.
    const double weight_rows = by_experts ? 1.0 * push.rows * (push.outputs << variant.glu) : 1.0 * planes.n_rows;
    const double weight_bytes = 4.0 * weight_rows * (planes.layout.row_words + planes.layout.scale_row_words);
    const double output_bytes = (element_bytes(output.type) + (variant.rounds != 0 ? kRoundedBytes : 0)) * push.rows * push.outputs, flops = 2.0 * push.rows * push.columns * (push.outputs << variant.glu);
    LinearPiece piece{arguments, push, {weight_bytes + tensor_bytes(input) + output_bytes, flops}, weight_bytes, call.input};
    if (rotation) defer_rotation(lowering, output, rotation->node, variant, piece);
    kernel->emit.dispatch(lowering, variant, piece);
  }
  return {};
}

}  // namespace rondo::graph
