// Tiles of rows of which each has one expert (lib/expert_tiles.h), as expert_tiles.comp sorts them; without kExperts rows as they lie.
#include "lib/expert_tiles.h"
layout(std430, set = 0, binding = 3) readonly buffer ExpertTiles { uint expert_tiles[]; };

// RONDO_NOTHING: there is nothing to do.
uint expert_of_tile(uint tile, uint n_rows) { return kExperts == 1u ? expert_tiles[tile * RONDO_EXPERT_TILE_WORDS(n_rows)] : 0u; }
// Row i of n_rows.
uint row_of_tile(uint tile, uint n_rows, uint i) { return kExperts == 1u ? expert_tiles[tile * RONDO_EXPERT_TILE_WORDS(n_rows) + 1u + i] : tile * n_rows + i; }
