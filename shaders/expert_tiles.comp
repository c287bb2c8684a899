// Sorts the rows of linears with experts into tiles of rows that have the same: as lib/expert_tiles.h has them. Experts come in
// order, rows of one in any; rows that hold no token come not at all. One workgroup, which counts, then places.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "expert_tiles.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 256u;
layout(std430, set = 0, binding = 1) readonly buffer Experts { int expert_of_choice[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Tiles { uint tiles[]; };
shared uint counts[RONDO_MOST_SORTED_EXPERTS], first_tiles[RONDO_MOST_SORTED_EXPERTS], placed[RONDO_MOST_SORTED_EXPERTS];
shared uint n_tiles;

uint tiles_for(uint n_rows) { return (n_rows + p.rows_of_tile - 1u) / p.rows_of_tile; }
uint place_of(uint tile) { return tile * RONDO_EXPERT_TILE_WORDS(p.rows_of_tile); }

// The expert of a row, or RONDO_NOTHING.
uint expert_of(uint row) {
  const uint token = row / p.chosen;
  if (!row_valid(token, p.rows_per_sequence)) return RONDO_NOTHING;
  return uint(clamp(expert_of_choice[p.experts_offset + token * p.experts_stride + row - token * p.chosen], 0, int(p.experts) - 1));
}

void main() {
  const uint self = gl_LocalInvocationID.x;
  for (uint expert = self; expert < p.experts; expert += kWidth) counts[expert] = placed[expert] = 0u;
  barrier();
  for (uint row = self; row < p.rows; row += kWidth) {
    const uint expert = expert_of(row);
    if (expert != RONDO_NOTHING) atomicAdd(counts[expert], 1u);
  }
  barrier();
  for (uint expert = self; expert < p.experts; expert += kWidth) {
    uint first = 0u;
    for (uint other = 0u; other < expert; ++other) first += tiles_for(counts[other]);
    const uint n_rows = counts[expert], end = first + tiles_for(n_rows);
    first_tiles[expert] = first;
    for (uint tile = first; tile < end; ++tile) tiles[place_of(tile)] = expert;
    for (uint i = n_rows; i < (end - first) * p.rows_of_tile; ++i) tiles[place_of(end - 1u) + 1u + i % p.rows_of_tile] = RONDO_NOTHING;
    if (expert == p.experts - 1u) n_tiles = end;
  }
  barrier();
  for (uint row = self; row < p.rows; row += kWidth) {
    const uint expert = expert_of(row);
    if (expert == RONDO_NOTHING) continue;
    const uint i = atomicAdd(placed[expert], 1u);
    tiles[place_of(first_tiles[expert] + i / p.rows_of_tile) + 1u + i % p.rows_of_tile] = row;
  }
  for (uint tile = n_tiles + self; tile < p.tiles; tile += kWidth) tiles[place_of(tile)] = RONDO_NOTHING;
}
