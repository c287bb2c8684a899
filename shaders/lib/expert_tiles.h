// A tile of rows that have one expert: its number, and as many rows of the output as tiles have. In the place of what is not there, an expert where the
// tile has nothing to do or a row where the expert has no more, is RONDO_NOTHING.
#define RONDO_NOTHING 0xffffffffu
#define RONDO_EXPERT_TILE_WORDS(n_rows) ((n_rows) + 1u)
