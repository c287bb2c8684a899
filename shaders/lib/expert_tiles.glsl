// Tiles of rows of which each has one expert, as expert_tiles.comp sorts them; without kExperts rows as they lie. A tile is its expert's
// number, or kNoExpert where there is nothing to do, and its rows, 0xffffffff where there are no more.
layout(std430, set = 0, binding = 6) readonly buffer ExpertTiles { uint expert_tiles[]; };
const uint kNoExpert = 0xffffffffu;

uint expert_of_tile(uint tile, uint n_rows) { return kExperts == 1u ? expert_tiles[tile * (n_rows + 1u)] : 0u; }
// Row i of n_rows.
uint row_of_tile(uint tile, uint n_rows, uint i) { return kExperts == 1u ? expert_tiles[tile * (n_rows + 1u) + 1u + i] : tile * n_rows + i; }
