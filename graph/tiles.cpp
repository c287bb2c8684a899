#include "graph/tiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <span>

#include "graph/block_format.h"
#include "graph/lowering.h"

namespace rondo::graph {

namespace {

/// A class of devices is told by the sizes that their subgroups can have.
struct SubgroupClass {
  std::uint32_t min_size, max_size;  ///< sizes that a kernel can rely on are within these
  std::uint32_t lanes, subgroups;
  std::uint32_t rows[4];  ///< of the weight, with 1, 2, 4 and 8 rows of input; 0: not so many at a time
  std::uint32_t loads = 1;  ///< chunks of a row that a lane asks for at a time, with 1 row of input
  bool waits = false;       ///< subgroups share rows until three times as many workgroups are there as fill the device
  std::uint32_t row_lanes = 1;  ///< lanes side by side that have the same columns of different rows, of types whose chunks have kManyColumns

  /// Rows of input at a time, of n, and with them rows of the weight, of which GLU takes two for one.
  void set_rows(std::uint32_t n, std::uint32_t most, bool glu, SubgroupTile& tile) const {
    for (tile.tokens = std::min(std::bit_ceil(n), most); rows[std::bit_width(tile.tokens) - 1] == 0;) tile.tokens /= 2;
    tile.rows = rows[std::bit_width(tile.tokens) - 1];
    if (glu && tile.rows == 1) tile.tokens = std::min(tile.tokens, 4u);  // a gate and an up of 8 are as much as 2 rows of 8
    if (glu) tile.rows = std::max(tile.rows / 2, 1u);
    tile.tokens = std::min(tile.tokens, tile.lanes / tile.rows);  // each lane stores one sum
    tile.loads = tile.tokens == 1 ? loads : 1;
  }
};

// By compilers' counts (docs/gpus-without-one.md), where no GPU has run them: as many rows as leave 12 waves of RDNA, 128 registers of
// Intel and 4 waves of Adreno, since each row more spares activations. On an H200 (docs/measurements) memory is what is waited for.
constexpr SubgroupClass kClasses[] = {
    {32, 32, 32, 4, {2, 4, 2, 2}, 2, true, 4},  // NVIDIA: 8B F16 makes 198 tokens/s, with 4 rows and one load 176
    {8, 32, 16, 4, {2, 2, 2, 1}, 1, false, 4},    // Intel: 2 rows of 8 spill on tgl and dg2
    {32, 64, 64, 2, {4, 4, 2, 2}},   // AMD: 64 registers, 16 waves on navi21
    {64, 128, 64, 2, {2, 2, 1, 1}, 1, false, 4},  // Adreno: 4 rows leave 2 waves on adreno660
    {4, 128, 32, 4, {2, 2, 2, 1}},   // CPUs, and what is not known
};

constexpr std::uint32_t kManyColumns = 16;

/// The row of `classes` that a device belongs to, the last one if to none; null if its subgroups can't be relied on.
template <typename Class>
const Class* class_of(std::span<const Class> classes, const runtime::DeviceCaps& caps) {
  const std::uint32_t least = caps.min_required_subgroup_size, most = caps.max_required_subgroup_size;
  if (most < 4) return nullptr;
  return &*std::find_if(classes.begin(), classes.end() - 1, [&](const Class& of) { return of.min_size <= least && most <= of.max_size; });
}

/// Of a workgroup.
std::uint32_t most_subgroups(const runtime::DeviceCaps& caps, std::uint32_t lanes) { return std::max(std::min(caps.max_invocations / lanes, caps.max_workgroup_subgroups), 1u); }

std::uint32_t possible_lanes(const runtime::DeviceCaps& caps, std::uint32_t lanes) { return std::clamp(lanes, caps.min_required_subgroup_size, caps.max_required_subgroup_size); }

/// Workgroups that fill the device for each so many rows of input.
std::uint32_t fill_with(const runtime::DeviceCaps& caps, std::uint32_t n_rows, const SubgroupTile& tile) { return workgroups_to_fill(caps) / ceil_div(std::max(n_rows, 1u), tile.tokens); }

/// A device that has too little in flight waits for memory: by `graph --predict` a matrix of 2,048 rows takes 2.5 times as long on an
/// H200 as its bytes do. So subgroups share rows.
void share_rows(const SubgroupClass& one, std::uint32_t fill, std::uint32_t n_outputs, std::uint32_t n_chunks, SubgroupTile& tile) {
  const auto share_while = [&](std::uint32_t below, std::uint32_t least_chunks) {
    while (tile.split * 2 <= tile.subgroups && tile.subgroups % (tile.split * 2) == 0 && tile.split * 2 * (tile.lanes / tile.row_lanes) * least_chunks <= n_chunks && n_outputs / tile.outputs_of_workgroup() < below) tile.split *= 2;
  };
  share_while(fill, 1);
  if (one.waits && tile.tokens == 1) share_while(3 * fill, 8);
}

/// As many rows for each of several lanes, as long as subgroups fill the device that share rows. Of more than 2 rows of input it takes registers that Intel lacks.
void give_rows_to_lanes(const SubgroupClass& one, std::uint32_t fill, std::uint32_t n_outputs, SubgroupTile& tile) {
  while (tile.tokens <= 2 && tile.row_lanes < one.row_lanes && 2 * tile.rows * tile.tokens <= tile.lanes && n_outputs / (2 * tile.rows) >= fill) tile.row_lanes *= 2, tile.rows *= 2;
}

/// More subgroups of a workgroup, or fewer that share rows, until it makes as many outputs.
void make_outputs(std::uint32_t least, std::uint32_t most_subgroups, SubgroupTile& tile) {
  while (tile.outputs_of_workgroup() < least && tile.subgroups * 2 <= most_subgroups) tile.subgroups *= 2;
  while (tile.outputs_of_workgroup() < least && tile.split > 1) tile.split /= 2;
}

}  // namespace

SubgroupTile subgroup_tile(const runtime::DeviceCaps& caps, Type activations, std::uint32_t n_rows, bool glu, std::uint32_t n_outputs, std::uint32_t n_chunks, std::uint32_t chunk_columns, std::uint32_t least) {
  const SubgroupClass* found = class_of(std::span<const SubgroupClass>(kClasses), caps);
  if (!found) return {};
  const SubgroupClass& one = *found;
  SubgroupTile tile{possible_lanes(caps, one.lanes), one.subgroups};
  one.set_rows(n_rows, activations == Type::kF16 ? 4 : 8, glu, tile);  // 8 rows in f16 spill on tgl
  const std::uint32_t most = most_subgroups(caps, tile.lanes);
  tile.subgroups = std::min(tile.subgroups, most);
  const std::uint32_t fill = fill_with(caps, n_rows, tile);
  if (chunk_columns >= kManyColumns) give_rows_to_lanes(one, fill, n_outputs, tile);
  share_rows(one, fill, n_outputs, n_chunks, tile);
  make_outputs(least, most, tile);
  return tile;
}

namespace {

// As kClasses.
constexpr SubgroupClass kDotClasses[] = {
    {32, 32, 32, 4, {1, 4, 2, 2}, 2},  // NVIDIA: 1B Q8_0 makes 1,031 tokens/s and 8B Q4_K 389, with 4 rows and one load 939 and 342
    {8, 32, 16, 4, {2, 2, 0, 0}},    // Intel: 2 rows of 4 spill on tgl and dg2
    {32, 64, 64, 2, {4, 4, 2, 2}},   // AMD: 32 to 56 registers for a row of input, of 32 lanes 64
    {64, 128, 64, 2, {2, 2, 1, 1}},  // Adreno
    {4, 128, 32, 4, {2, 2, 2, 1}},   // CPUs, and what is not known
};

}  // namespace

SubgroupTile dot_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, bool glu, std::uint32_t least, std::uint32_t n_outputs, std::uint32_t n_chunks) {
  const SubgroupClass* found = class_of(std::span<const SubgroupClass>(kDotClasses), caps);
  if (!found) return {};
  const SubgroupClass& one = *found;
  SubgroupTile tile{possible_lanes(caps, one.lanes), one.subgroups};
  one.set_rows(n_rows, 8, glu, tile);
  const std::uint32_t most = most_subgroups(caps, tile.lanes);
  tile.subgroups = std::min(tile.subgroups, most);
  share_rows(one, fill_with(caps, n_rows, tile), n_outputs, n_chunks, tile);
  make_outputs(least, most, tile);
  return tile;
}

namespace {

/// Vector instructions for a multiply-add with one row of input, without dot products and with them, by `rondo isa` (Mesa 26.1.6).
struct DotCount {
  Type weight;
  float nvidia[2], intel[2], amd[2];  ///< of gh100, tgl and navi21
};
constexpr DotCount kDotCounts[] = {
    {Type::kQ8_0, {4.55f, 2.31f}, {2.78f, 1.16f}, {2.44f, 0.86f}},  {Type::kQ4_0, {4.84f, 2.31f}, {3.33f, 1.37f}, {2.86f, 1.07f}},
    {Type::kQ4_1, {4.80f, 2.30f}, {3.30f, 1.34f}, {2.85f, 1.02f}},  {Type::kQ5_0, {5.74f, 3.22f}, {4.45f, 2.48f}, {3.73f, 1.91f}},
    {Type::kQ5_1, {5.55f, 2.98f}, {4.29f, 2.32f}, {3.54f, 1.72f}},  {Type::kQ2_K, {5.60f, 3.03f}, {4.09f, 2.15f}, {3.48f, 1.68f}},
    {Type::kQ3_K, {6.26f, 3.81f}, {4.94f, 2.99f}, {4.09f, 2.26f}},  {Type::kQ4_K, {5.35f, 2.91f}, {3.91f, 1.95f}, {3.22f, 1.38f}},
    {Type::kQ5_K, {6.26f, 3.67f}, {5.07f, 3.10f}, {4.03f, 2.20f}},  {Type::kQ6_K, {6.24f, 3.84f}, {4.84f, 2.88f}, {3.98f, 2.18f}},
    {Type::kIQ4_NL, {3.32f, 3.19f}, {3.81f, 3.21f}, {2.64f, 2.24f}}, {Type::kMXFP4, {3.45f, 3.31f}, {4.08f, 3.49f}, {2.78f, 2.38f}},
};

bool is_nvidia(const runtime::DeviceCaps& caps) { return caps.min_required_subgroup_size == 32 && caps.max_required_subgroup_size == 32; }
bool is_intel(const runtime::DeviceCaps& caps) { return caps.min_required_subgroup_size < 32; }

}  // namespace

bool dot_pays(const runtime::DeviceCaps& caps, Type weight) {
  const auto count = std::find_if(std::begin(kDotCounts), std::end(kDotCounts), [&](const DotCount& one) { return one.weight == weight; });
  if (count == std::end(kDotCounts)) return false;
  const float* const instructions = is_nvidia(caps) ? count->nvidia : is_intel(caps) ? count->intel : count->amd;
  return instructions[1] <= 0.85f * instructions[0];
}

namespace {

/// What the core that gets most has to do.
struct Work {
  std::uint32_t splits;  ///< workgroups that share the columns of a tile
  double groups;         ///< groups of 32 columns of a tile
};

constexpr std::uint32_t kMostSplits = 16;

/// With the number of splits that makes it least, where cores have room for `of_core` workgroups; one unless tiles leave a third of that idle. To store a
/// sum of some columns and to add it up takes 8 bytes of memory, in which time devices multiply hundreds of columns.
Work least_work(const runtime::DeviceCaps& caps, std::uint64_t n_tiles, std::uint32_t n_groups, std::uint32_t of_core = 1) {
  constexpr std::uint32_t kGroupsOfASum = 8;
  const double room = 1.0 * std::max(workgroups_to_fill(caps) / 2, 1u) * of_core, tiles = static_cast<double>(n_tiles);
  Work least = {1, std::ceil(tiles / room) * n_groups};
  if (3 * tiles >= 2 * room) return least;
  for (std::uint32_t splits = 2; splits <= std::min(kMostSplits, n_groups / kGroupsOfASum); splits *= 2) {
    const double groups = std::ceil(tiles * splits / room) * ceil_div(n_groups, splits) + kGroupsOfASum * tiles * splits / room;
    if (groups < least.groups) least = {splits, groups};
  }
  return least;
}

struct FloatTileClass {
  std::uint32_t min_size, max_size, lanes;
  FloatTile large;  ///< where its tiles leave no core idle; elsewhere kSmallTile
  std::uint32_t least_threads = large.threads;  ///< of fewer rows: half as many threads, as long as there are so many, before half as many rows of each
};

constexpr FloatTile kSmallTile = {0, 128, 16, 4, 4, 8};

// By compilers' counts, as kClasses: as large as spill nothing and leave 4 waves. Weights of f16 take 1.03 to 1.21 instructions for a
// multiply-add of the large tile, of 4 bits to 1.5; of the small one to 0.1 more.
constexpr FloatTileClass kFloatTileClasses[] = {
    {32, 32, 0, {0, 128, 16, 8, 8, 8}},   // NVIDIA: 160 registers, 12 warps
    {16, 32, 16, {0, 256, 16, 4, 8, 4}},  // Intel's Xe2
    {8, 32, 8, {0, 256, 16, 4, 8, 4}},    // Intel's others: 115 to 124 registers; 32 columns at a time spill
    {32, 64, 32, {0, 128, 8, 8, 16, 4}, 64},  // AMD: 240 registers, 4 waves on navi21; 0.19 words of shared memory
    {64, 128, 0, kSmallTile},             // Adreno: 4 waves
    {4, 128, 0, kSmallTile},              // CPUs, and what is not known
};

/// Rows of all tiles, 16 bytes more each, and a table of 16 values.
std::uint32_t float_shared_bytes(const FloatTile& tile) { return 16 * (tile.rows() + tile.outputs()) * (tile.steps + 1) + 64; }

FloatTile float_tile_of(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_batches) {
  const std::span<const FloatTileClass> classes(kFloatTileClasses);
  const FloatTileClass* found = class_of(classes, caps);
  const FloatTileClass& one = found ? *found : classes.back();
  const auto fits = [&](const FloatTile& tile) { return tile.threads <= caps.max_invocations && float_shared_bytes(tile) <= caps.max_shared_bytes; };
  const auto n_tiles = [&](const FloatTile& tile) { return std::uint64_t{n_batches} * ceil_div(n_rows, tile.rows()) * ceil_div(n_outputs, tile.outputs() >> (glu ? 1 : 0)); };
  const auto fills = [&](const FloatTile& tile) { return n_tiles(tile) >= workgroups_to_fill(caps) / 2; };
  FloatTile tile = one.large;
  while (tile.threads > one.least_threads && n_rows <= tile.rows() / 2) tile.threads /= 2;
  while (tile.rows_of_invocation > 1 && n_rows <= tile.rows() / 2) tile.rows_of_invocation /= 2;
  if (!fits(tile) || !fills(tile)) {
    tile = kSmallTile;
    while (tile.rows_of_invocation > 1 && (n_rows <= tile.rows() / 2 || (tile.rows_of_invocation > 2 && !fills(tile)))) tile.rows_of_invocation /= 2;
  }
  while (!fits(tile) && tile.threads > 32) tile.threads /= 2;
  tile.lanes = found && one.lanes != 0 && tile.threads / possible_lanes(caps, one.lanes) <= caps.max_workgroup_subgroups ? possible_lanes(caps, one.lanes) : 0;
  tile.splits = least_work(caps, n_tiles(tile), n_groups).splits;
  return tile;
}

}  // namespace

FloatTile float_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts) {
  return n_experts == 0 ? float_tile_of(caps, n_rows, n_groups, n_outputs, glu, 1) : float_tile_of(caps, n_rows, 1, n_outputs, glu, n_experts);
}

FloatTile matmul_float_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_outputs, std::uint32_t n_batches) {
  return float_tile_of(caps, n_rows, 1, n_outputs, false, n_batches);
}

namespace {

struct DotTileClass {
  std::uint32_t min_size, max_size, lanes;
  std::uint32_t rows;  ///< most of an invocation
  bool pays;           ///< it saves 15 % of the instructions of "tiled", whatever the type
};

// By compilers' counts, as kClasses: as many rows as spill nothing. With them Q8_0 takes 0.32 to 0.40 instructions for a multiply-add, and
// Q2_K, the worst, 0.50 to 0.59, where "tiled" takes 1.1 to 1.6.
constexpr DotTileClass kDotTileClasses[] = {
    {32, 32, 32, 4, true},    // NVIDIA: 120 registers, 16 warps
    {16, 32, 16, 4, true},    // Intel's Xe2: 245 registers
    {8, 32, 8, 4, true},      // Intel's others: 124 registers, of twice as many lanes 209 and more
    {32, 64, 32, 8, true},    // AMD: all 256 registers, 4 waves on navi21
    {64, 128, 64, 1, false},  // Adreno: 2 rows spill on adreno660; its loops are not told apart
    {4, 128, 32, 2, false},   // CPUs, and what is not known
};

/// Two tiles of 32 columns in f16 and 16 bytes a row, magnitudes of all rows, with experts where rows begin, and a table of 16 values; and what makes multiples of 16 bytes of these.
std::uint32_t matrix_shared_bytes(std::uint32_t rows, std::uint32_t outputs) { return (rows + outputs) * (2 * 80 + 4) + 4 * rows + 48 + 64; }
std::uint32_t f16_shared_bytes(std::uint32_t rows) { return matrix_shared_bytes(rows, DotTile::kOutputs); }

/// Two tiles of 32 columns in bytes, scales and sums of rows, factors of weights, and a table of 256 pairs of values: more than any one type needs.
std::uint32_t dots_shared_bytes(std::uint32_t rows) { return 64 * (rows + DotTile::kOutputs + 4) + 24 * rows + 32 * DotTile::kOutputs + 1024; }

/// As matrix_tile_of, with so many rows of an invocation or fewer, but not less than `least_rows`. What a row or an output takes besides products is as
/// much as 3 of them (Q8_0) to 9 (Q6_K).
template <typename SharedBytes>
DotTile dot_tile_of(const runtime::DeviceCaps& caps, DotTile tile, std::uint32_t least_rows, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts, const SharedBytes& shared_bytes) {
  constexpr std::uint32_t kProductsOfARow = 6;
  const std::uint64_t columns = std::uint64_t{std::max(n_experts, 1u)} * ceil_div(n_outputs, DotTile::kOutputs >> (glu ? 1 : 0));
  DotTile best;
  double least = 0;
  for (; tile.rows_of_invocation >= least_rows; tile.rows_of_invocation /= 2) {
    if (shared_bytes(tile.rows()) > caps.max_shared_bytes) continue;
    const Work own = least_work(caps, columns * ceil_div(n_rows, tile.rows()), n_experts == 0 ? n_groups : 1);
    const double work = own.groups * (tile.rows() * DotTile::kOutputs + kProductsOfARow * (tile.rows() + DotTile::kOutputs));
    if (best.rows_of_invocation != 0 && work >= least) continue;
    best = tile, least = work;
    best.splits = own.splits;
  }
  return best;
}

}  // namespace

DotTile many_dots_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts) {
  const DotTileClass* one = class_of(std::span<const DotTileClass>(kDotTileClasses), caps);
  if (!one || caps.max_invocations < DotTile::kThreads) return {};
  const DotTile tile{possible_lanes(caps, one->lanes), one->rows, one->pays, caps.fused_fma};
  if (tile.lanes < 8 || DotTile::kThreads / tile.lanes > caps.max_workgroup_subgroups) return {};
  return dot_tile_of(caps, tile, 1, n_rows, n_groups, n_outputs, glu, n_experts, dots_shared_bytes);
}

// By RADV's counts: with 8 rows of an invocation F16 takes 0.537 instructions for a multiply-add, but 224 registers, 4 waves, rather than 0.542 and 128, 8. With
// fewer than 2 some invocations would bring nothing.
DotTile half_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts) {
  if (caps.max_invocations < DotTile::kThreads) return {};
  DotTile tile{caps.max_required_subgroup_size < 4 ? 0 : possible_lanes(caps, 32), 4, true, false};
  if (tile.lanes != 0 && DotTile::kThreads / tile.lanes > caps.max_workgroup_subgroups) tile.lanes = 0;
  return dot_tile_of(caps, tile, 2, n_rows, n_groups, n_outputs, glu, n_experts, f16_shared_bytes);
}

DotTile matmul_half_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_outputs, std::uint32_t n_batches) {
  return half_tile(caps, n_rows, 1, n_outputs, false, n_batches);
}

namespace {

/// Most rows of the first factor in a tile, by what invocations have in registers meanwhile.
struct MatrixRows {
  std::uint32_t of_blocks = 0, of_f16 = 0, of_wide = 0, of_f32 = 0;  ///< weights of blocks, but for MXFP4; of wide: of bf16 and MXFP4, which reach beyond f16
  std::uint32_t of_factors = 0;                                      ///< of matmul; 0: no such tiles

  /// Which of them is of weights of this type.
  static std::uint32_t MatrixRows::*of_weight(Type type) {
    if (type == Type::kF32) return &MatrixRows::of_f32;
    if (type == Type::kF16) return &MatrixRows::of_f16;
    return type == Type::kBF16 || type == Type::kMXFP4 ? &MatrixRows::of_wide : &MatrixRows::of_blocks;
  }
};

struct MatrixWorkgroup {
  std::uint32_t threads, outputs;
  std::uint32_t ahead;  ///< groups of a linear's columns that are on their way
  MatrixRows most_rows;
};

struct MatrixClass {
  std::uint32_t min_size, max_size;
  std::uint32_t least_rows_of_blocks, least_rows_of_floats;  ///< of one weight, from which on these take less time than kernels of few rows, though a tile has 16
  MatrixWorkgroup large_of_weights, large, small;  ///< `large` for what has no rows in the first; large ones with the most rows, or with half as many
};

// By compilers' counts, as kClasses: as many rows as spill nothing. In a larger tile each input and weight is converted less often: 128 x 128
// outputs ask for 0.6 of the bytes of 128 x 64, which are more than an H200's caches deliver.
constexpr MatrixClass kMatrixClasses[] = {
    // NVIDIA: 232 to 255 registers, so that a core of an H200 has two; 16 matrices of a subgroup with weights in f32 spill 31. There linear_glu of 512 rows
    // of 8B F16 takes 640 us, with 256 threads 738.
    {32, 32, 9, 9, {128, 128, 2, {128, 128, 128}}, {256, 128, 2, {0, 0, 0, 128, 128}}, {128, 64, 2, {128, 128, 128, 128, 128}}},
    {16, 32, 3, 5, {256, 128, 1, {128, 128, 128, 128}}, {256, 128, 1, {0, 0, 0, 0, 128}}, {128, 64, 1, {64, 64, 64, 64, 64}}},    // Intel's Xe2: 245 registers; by `graph --predict` 4 rows of 8B Q4_K_M take 0.6 times as long as by dots of few rows, whose registers hold 2, and 8 rows 0.4 times; 64 rows of F16 take a fifth less instructions, and more of shared memory
    {8, 32, 3, 5, {256, 128, 1, {128, 128, 128, 128}}, {256, 128, 1, {0, 0, 0, 0, 128}}, {128, 64, 1, {64, 64, 64, 64, 64}}},     // Intel's others: 128
    {32, 64, 9, 9, {256, 128, 1, {128, 128, 128, 128}}, {256, 128, 1, {0, 0, 0, 0, 128}}, {128, 64, 1, {64, 64, 64, 64, 64}}},    // AMD: 192 registers; 128 rows of the small one spilled on navi31 when the input was f32
    {4, 128, 9, 9, {128, 64, 3, {64, 64, 64}}, {128, 64, 2, {0, 0, 0, 64, 64}}, {128, 64, 2, {64, 64, 64, 64, 64}}},             // what is not known
};

bool is_of(std::uint32_t size, std::uint32_t least, std::uint32_t most) { return std::has_single_bit(size) && size >= least && size <= most; }

/// Lanes of a subgroup, the least that there are: that of which Intel's and all others' matrix units are made; 0 where none fit.
std::uint32_t matrix_lanes(const runtime::DeviceCaps& caps, std::uint32_t threads) {
  const std::uint32_t lanes = caps.min_required_subgroup_size;
  return lanes < 8 || lanes > threads || caps.max_invocations < threads || threads / lanes > caps.max_workgroup_subgroups ? 0 : lanes;
}

/// Of two ways to share out matrices by which as many are loaded: the one that gives a subgroup more rows, or more outputs. A linear's kernel has all of a subgroup's rows in registers at
/// once, but one by one what it multiplies them by.
enum class Rather : std::uint8_t { kRows, kOutputs };

/// The matrices that subgroups of a tile of `rows` rows have, so that few are loaded for a product; lanes is 0 where none fit.
MatrixTile share_out(const runtime::MatrixShape& shape, std::uint32_t threads, std::uint32_t outputs, std::uint32_t lanes, std::uint32_t rows, bool glu, Rather rather) {
  const std::uint32_t subgroups = threads / lanes;
  MatrixTile best;
  double fewest = 0;
  for (std::uint32_t row_subgroups = 1; row_subgroups <= subgroups; row_subgroups *= 2) {
    const MatrixTile tile{lanes, threads, outputs, row_subgroups, rows / (row_subgroups * shape.rows), outputs / (subgroups / row_subgroups * shape.columns), shape};
    if (tile.row_matrices == 0 || tile.output_matrices < (glu ? 2u : 1u)) continue;
    const double loads = 1.0 / tile.row_matrices + 1.0 / tile.output_matrices;
    if (best.lanes == 0 || loads < fewest || (loads == fewest && rather == Rather::kOutputs)) best = tile, fewest = loads;
  }
  return best;
}

/// Of the largest shape of which a tile of `rows` rows can be made.
MatrixTile largest_matrices(const runtime::DeviceCaps& caps, std::uint32_t threads, std::uint32_t outputs, std::uint32_t lanes, std::uint32_t rows, bool glu, Rather rather) {
  MatrixTile best;
  for (const runtime::MatrixShape& shape : caps.matrices) {
    if (!is_of(shape.rows, 8, 16) || !is_of(shape.columns, 8, 16) || !is_of(shape.depth, 8, 32) || shape.rows * shape.columns * shape.depth <= best.shape.rows * best.shape.columns * best.shape.depth) continue;
    MatrixTile tile = share_out(shape, threads, outputs, lanes, rows, glu, rather);
    if (tile.lanes == 0) tile = share_out(shape, threads, outputs, lanes, 2 * rows, glu, rather);  // 16 rows with GLU
    if (tile.lanes == 0) continue;
    best = tile;
    best.columns_in_lanes = caps.columns_in_lanes && shape.columns == lanes && shape.depth == 16;
  }
  return best;
}

/// Of all tiles that fit, the one of which the core that gets most has least to do, where columns may be split. A tile's work is its products, and what
/// each of its rows and outputs takes, as so many products: 64 x 64 outputs cost 1.3 times as much for a product as 128 x 128, about as counted.
MatrixTile matrix_tile_of(const runtime::DeviceCaps& caps, std::uint32_t MatrixRows::*most_rows, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_batches) {
  constexpr std::uint32_t kProductsOfARow = 32;
  const MatrixClass* one = class_of(std::span<const MatrixClass>(kMatrixClasses), caps);
  if (!one) return {};
  MatrixTile best;
  double least = 0;
  for (const MatrixWorkgroup* workgroup : {&one->large_of_weights, &one->large, &one->small}) {
    const bool is_large = workgroup != &one->small;
    const std::uint32_t lanes = matrix_lanes(caps, workgroup->threads), most = workgroup->most_rows.*most_rows;
    if (lanes == 0 || most == 0) continue;
    const std::uint32_t all_rows = std::clamp(std::bit_ceil(n_rows), 16u, most);
    for (std::uint32_t rows = all_rows; rows >= (is_large ? most / 2 : std::min(all_rows, 32u)); rows /= 2) {
      const MatrixTile tile = largest_matrices(caps, workgroup->threads, workgroup->outputs, lanes, rows, glu, Rather::kOutputs);
      if (tile.lanes == 0 || matrix_shared_bytes(tile.rows(), tile.outputs) > caps.max_shared_bytes) continue;
      const std::uint64_t n_tiles = std::uint64_t{n_batches} * ceil_div(n_rows, tile.rows()) * ceil_div(n_outputs, tile.outputs >> (glu ? 1 : 0));
      const double work = least_work(caps, n_tiles, n_groups).groups * (tile.rows() * tile.outputs + kProductsOfARow * (tile.rows() + tile.outputs));
      if (best.lanes != 0 && work >= least) continue;
      best = tile, least = work;
      best.ahead = workgroup->ahead;
      // Small ones wait more than they multiply, so that two of a core are not in each other's way.
      best.splits = least_work(caps, n_tiles, n_groups, 256 / workgroup->threads).splits;
    }
  }
  return best;
}

/// By compilers' counts 5 to 13 % fewer instructions on NVIDIA's devices, as many on AMD's, and more on Intel's. CPU drivers do it so that tests execute it, except for
/// K types: lavapipe cuts off what it rounds to f16, and all scales of these would be too small.
bool makes_pairs(const runtime::DeviceCaps& caps, Type weight) {
  return caps.type == runtime::DeviceType::kCpu ? find_block_format(weight)->block_elements == kGroupElements : is_nvidia(caps);
}

}  // namespace

MatrixTile matrix_tile(const runtime::DeviceCaps& caps, Type weight, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts) {
  MatrixTile tile = matrix_tile_of(caps, MatrixRows::of_weight(weight), n_rows, n_experts == 0 ? n_groups : 1, n_outputs, glu, std::max(n_experts, 1u));
  tile.pairs = makes_pairs(caps, weight);
  return tile;
}

std::uint32_t least_matrix_rows(const runtime::DeviceCaps& caps, Type weight) {
  const MatrixClass* one = class_of(std::span<const MatrixClass>(kMatrixClasses), caps);
  if (!one) return kMostSubgroupRows + 1;
  return find_block_format(weight)->block_elements > 1 ? one->least_rows_of_blocks : one->least_rows_of_floats;
}

MatrixTile matmul_matrix_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_outputs, std::uint32_t n_batches) {
  MatrixTile tile = matrix_tile_of(caps, &MatrixRows::of_factors, n_rows, 1, n_outputs, false, n_batches);
  tile.ahead = 1;  // its factors take more registers
  return tile;
}

namespace {

/// Workgroups that share values of so many columns, if one may have `most`, and what each gets.
struct ValueParts {
  std::uint32_t parts, columns;
};
ValueParts value_parts(std::uint32_t value_width, std::uint32_t most) {
  const std::uint32_t chunks = std::max(ceil_div(value_width, kBlockColumns), 1u), parts = ceil_div(chunks, most / kBlockColumns);
  return {parts, ceil_div(chunks, parts) * kBlockColumns};
}

struct AttentionMatrixClass {
  std::uint32_t min_size, max_size;
  std::uint32_t threads;    ///< of a workgroup
  std::uint32_t most_sums;  ///< of it
  std::uint32_t least_rows;
};

// By compilers' counts, as kClasses: 64 rows of values 128 wide.
constexpr AttentionMatrixClass kAttentionMatrixClasses[] = {
    {32, 32, 128, 8192, 16},  // NVIDIA: 168 registers
    {16, 32, 256, 8192, 32},  // Intel's Xe2: 257 by Mesa's count, of 256, and none spilled; with half the invocations many spill
    {8, 32, 256, 4096, 32},   // Intel's others: 126, of 32 rows; 64 spill 63, and twice the invocations would have one of the eights of values, which are stored by pairs
    {32, 64, 128, 8192, 16},  // AMD: all 256 registers, since shared memory leaves no more workgroups
    {4, 128, 128, 4096, 16},  // CPUs, and what is not known
};

/// Queries in f16, a block of keys or values by 64 columns in f16, and scores in f32, each row with 16 bytes more; rows' maxima and weights, and votes.
std::uint32_t attention_matrix_shared_bytes(std::uint32_t rows, std::uint32_t key_width, std::uint32_t depth) {
  return 16 * (rows * (ceil_div(key_width, depth) * depth / 8 + 1) + kBlockKeys * 9 + rows * 17) + 8 * rows + 32;
}

}  // namespace

MatrixTile attention_matrix_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_heads, std::uint32_t key_width, std::uint32_t value_width) {
  const std::span<const AttentionMatrixClass> classes(kAttentionMatrixClasses);
  const AttentionMatrixClass* found = caps.type == runtime::DeviceType::kCpu ? &classes.back() : class_of(classes, caps);
  if (!found) return {};
  const AttentionMatrixClass& one = *found;
  const std::uint32_t lanes = matrix_lanes(caps, one.threads);
  if (lanes == 0) return {};
  const auto [parts, columns] = value_parts(value_width, one.most_sums / one.least_rows);
  const std::uint32_t most = one.most_sums / std::bit_ceil(columns);
  constexpr std::uint32_t kLeastDepth = 8;
  std::uint32_t rows = std::clamp(std::bit_ceil(n_rows), one.least_rows, most);
  while (rows > one.least_rows && (attention_matrix_shared_bytes(rows, key_width, kLeastDepth) > caps.max_shared_bytes || (rows > 32 && ceil_div(n_rows, rows) * n_heads < workgroups_to_fill(caps) / 2))) rows /= 2;
  MatrixTile best = largest_matrices(caps, one.threads, kBlockKeys, lanes, rows, false, Rather::kRows);
  best.parts = parts;
  return best.lanes != 0 && attention_matrix_shared_bytes(best.rows(), key_width, best.shape.depth) <= caps.max_shared_bytes ? best : MatrixTile{};
}

namespace {

struct RegisterClass {
  std::uint32_t min_size, max_size, lanes;
  std::uint32_t threads, rows_of_invocation, unrolled;
  std::uint32_t most_width, most_of_q8_0;  ///< columns of values, and of values in q8_0: more spill
};

// By compilers' counts, as kClasses. With 2 rows of an invocation shared memory is read 1.5 times as often as with 4, which is so for values wider
// than kMostOfFourRows everywhere.
constexpr RegisterClass kRegisterClasses[] = {
    {32, 32, 0, 128, 4, 8, 512, 512},   // NVIDIA: 120 registers with heads of 128, 16 warps; 184 of 320, 136 of 512
    {16, 32, 16, 256, 2, 8, 320, 320},  // Intel's Xe2: 189 of 256, 239 of 320; 4 rows spill, and 512
    {8, 32, 8, 256, 2, 8, 320, 192},    // Intel's others: 99 of 128, 123 of 320; as well, and 2 of q8_0's 256
    {32, 64, 32, 128, 4, 8, 512, 512},  // AMD: 160 registers, 6 waves on navi21; 208 of 320, 128 of 512
    {64, 128, 0, 128, 2, 1, 320, 320},  // Adreno: 4 rows leave 2 waves, and spill on adreno660, as 512 does
    {4, 128, 0, 128, 4, 8, 512, 512},   // CPUs, and what is not known
};
constexpr std::uint32_t kMostOfFourRows = 320;

/// A tile of keys, scores of rows, with relative keys queries beside them, rows' parts and scales, and votes (shaders/attention_registers.comp).
std::uint32_t register_shared_bytes(std::uint32_t rows, bool relative_keys) { return 16 * (kBlockKeys * 9 + rows * (relative_keys ? 29 : 20)) + 4 * rows + 48; }

}  // namespace

RegisterTile attention_register_tile(const runtime::DeviceCaps& caps, std::uint32_t value_width, bool q8_0, bool relative_keys) {
  const std::span<const RegisterClass> classes(kRegisterClasses);
  const RegisterClass* found = class_of(classes, caps);
  const RegisterClass& one = found ? *found : classes.back();
  RegisterTile tile{found && one.lanes != 0 ? possible_lanes(caps, one.lanes) : 0, one.threads, one.rows_of_invocation, one.unrolled};
  const auto [parts, columns] = value_parts(value_width, q8_0 ? one.most_of_q8_0 : one.most_width);
  tile.parts = parts;
  if (columns > kMostOfFourRows) tile.rows_of_invocation = std::min(tile.rows_of_invocation, 2u);
  const auto has_room = [&] { return tile.threads <= caps.max_invocations && register_shared_bytes(tile.rows(), relative_keys) <= caps.max_shared_bytes; };
  while (tile.threads > 64 && !has_room()) tile.threads /= 2;
  const bool fits = has_room() && (tile.lanes == 0 || tile.threads / tile.lanes <= caps.max_workgroup_subgroups);
  return fits ? tile : RegisterTile{};
}

namespace {

struct AttentionClass {
  std::uint32_t min_size, max_size;
  std::uint32_t lanes, subgroups;
  std::uint32_t rows, keys;            ///< where a lane has 8 elements of a head
  std::uint32_t rows_of_16, keys_of_16;  ///< where it has 16; of more, as many rows less
  bool shuffles;                         ///< by an instruction, where the lane is not a constant
};

constexpr AttentionClass kAttentionClasses[] = {
    {32, 32, 32, 4, 4, 4, 2, 2, true},    // NVIDIA
    {8, 32, 8, 4, 2, 4, 2, 1, true},      // Intel: 4 rows of 8 and 2 keys of 16 elements spill on tgl and dg2
    {32, 64, 32, 4, 4, 4, 2, 2, true},    // AMD: of 64 lanes, halves don't see each other's registers
    {64, 128, 64, 2, 4, 4, 2, 2, false},  // Adreno: a shuffle is a loop; of 2 rows 4 to 6 waves rather than 2, and a third more instructions
    {4, 128, 32, 4, 4, 4, 2, 2, true},    // CPUs, and what is not known
};

}  // namespace

AttentionTile attention_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t key_width, std::uint32_t value_width) {
  const AttentionClass* found = class_of(std::span<const AttentionClass>(kAttentionClasses), caps);
  if (!found) return {};
  const AttentionClass& one = *found;
  AttentionTile tile{possible_lanes(caps, one.lanes)};
  const std::uint32_t head_width = std::max(key_width, value_width);
  tile.cluster = std::clamp(std::bit_ceil(head_width / 8), 1u, tile.lanes);
  // Each lane of a cluster weighs one pair, and has the same registers whatever the width.
  const std::uint32_t eights = (head_width + 8 * tile.cluster - 1) / (8 * tile.cluster);
  const std::uint32_t rows = eights == 1 ? one.rows : std::max(one.rows_of_16 * 2 / std::bit_ceil(eights), 1u);
  tile.rows = std::min({std::bit_ceil(n_rows), rows, tile.cluster});
  tile.keys = std::min(eights == 1 ? one.keys : eights == 2 ? one.keys_of_16 : 1, tile.cluster / tile.rows);
  tile.subgroups = std::min({one.subgroups, std::max(128u / tile.lanes, 1u), most_subgroups(caps, tile.lanes)});
  while (tile.subgroups > 1 && attention_shared_bytes(tile, value_width) > caps.max_shared_bytes) tile.subgroups /= 2;
  tile.fits = eights <= 4;  // of 64 elements a lane, one row spills on tgl and dg2
  tile.shuffles = one.shuffles;
  return tile;
}

std::uint32_t attention_shared_bytes(const AttentionTile& tile, std::uint32_t value_width) {
  const std::uint32_t parts = tile.subgroups * (tile.lanes / tile.cluster), span = 8 * tile.cluster;
  return 4 * parts * tile.rows * ((value_width + span - 1) / span * span + 2);
}

RowTile row_tile(const runtime::DeviceCaps& caps, std::uint32_t columns) {
  const SubgroupClass* one = class_of(std::span<const SubgroupClass>(kClasses), caps);
  if (!one) return {};
  // Lanes are not left idle where a device can have fewer, and two rounds of half as many invocations meet sooner than one.
  RowTile tile{possible_lanes(caps, std::min(one->lanes, std::bit_ceil(ceil_div(columns, 4))))};
  tile.threads = tile.lanes * std::min({ceil_div(columns, 8 * tile.lanes), std::max(1024u / tile.lanes, 1u), most_subgroups(caps, tile.lanes)});
  tile.quads = ceil_div(columns, 4 * tile.threads);
  return tile;
}

std::uint32_t workgroups_to_fill(const runtime::DeviceCaps& caps) {
  if (caps.cores != 0) return 2 * caps.cores;
  switch (caps.type) {
    case runtime::DeviceType::kDiscrete: return 512;
    case runtime::DeviceType::kCpu: return 16;
    default: return 64;
  }
}

}  // namespace rondo::graph
