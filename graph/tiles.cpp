#include "graph/tiles.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace rondo::graph {

namespace {

/// A class of devices is told by the sizes that their subgroups can have.
struct SubgroupClass {
  std::uint32_t min_size, max_size;  ///< sizes that a kernel can rely on are within these
  std::uint32_t lanes, subgroups;
  std::uint32_t rows, rows_of_four, rows_of_eight;  ///< of the weight, with 1 or 2, 3 or 4, and more rows of input
};

// By compilers' counts (docs/gpus-without-one.md), no GPU having run them: as many rows as leave 12 waves of RDNA, 128 registers of
// Intel and 4 waves of Adreno, since each row more spares activations.
constexpr SubgroupClass kClasses[] = {
    {32, 32, 32, 4, 4, 2, 2},   // NVIDIA: 56 registers at most for a row of input
    {8, 32, 16, 4, 2, 2, 1},    // Intel: 2 rows of 8 spill on tgl and dg2
    {32, 64, 64, 2, 4, 2, 2},   // AMD: 64 registers, 16 waves on navi21
    {64, 128, 64, 2, 2, 1, 1},  // Adreno: 4 rows leave 2 waves on adreno660
    {4, 128, 32, 4, 2, 2, 1},   // CPUs, and what is not known
};

}  // namespace

SubgroupTile subgroup_tile(const runtime::DeviceCaps& caps, Type activations, std::uint32_t n_rows, bool glu) {
  const std::uint32_t least = caps.min_required_subgroup_size, most = caps.max_required_subgroup_size;
  if (most < 4) return {};
  const SubgroupClass& one = *std::find_if(std::begin(kClasses), std::end(kClasses) - 1, [&](const SubgroupClass& of) { return of.min_size <= least && most <= of.max_size; });
  SubgroupTile tile{std::clamp(one.lanes, least, most), one.subgroups, one.rows, std::min(std::bit_ceil(n_rows), activations == Type::kF16 ? 4u : 8u)};  // 8 rows in f16 spill on tgl
  if (tile.tokens > 2) tile.rows = tile.tokens > 4 ? one.rows_of_eight : one.rows_of_four;
  if (glu) tile.rows = std::max(tile.rows / 2, 1u);
  // Each lane stores one sum.
  tile.tokens = std::min(tile.tokens, tile.lanes / tile.rows);
  tile.subgroups = std::min(tile.subgroups, std::max(caps.max_invocations / tile.lanes, 1u));
  return tile;
}

}  // namespace rondo::graph
