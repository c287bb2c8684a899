// The factors of matmul: a of M rows, b of N columns, both as rows of a tile along the depth. Needs p of matmul.params.h, kM and kN rows of a
// tile, kRowQuads vectors of four steps of the depth that a tile has, kWidth, and how each factor lies in memory, by which invocations share
// out its loads: kALies and kBLies are 0: along the depth, by vectors of four; 1: along the depth; 2: across it. kWhole: the depth is a multiple of
// 32, as it must be for 0.
layout(std430, set = 0, binding = 1) readonly buffer A { ELEMENT a_values[]; };
layout(std430, set = 0, binding = 1) readonly buffer A4 { ELEMENT4 a_values4[]; };
layout(std430, set = 0, binding = 2) readonly buffer B { ELEMENT b_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer B4 { ELEMENT4 b_values4[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };

// What an invocation brings: every kWidth-th vector of each factor.
const uint kAItems = kM * kRowQuads, kBItems = kN * kRowQuads;
const uint kAs = (kAItems + kWidth - 1u) / kWidth, kBs = (kBItems + kWidth - 1u) / kWidth;
vec4 a_items[kAs], b_items[kBs];

uint own_number();  // of this invocation, each below kWidth once: the order in which rows along the depth are stored. The includer defines it
uint unknown_zero = 0u;  // a zero that compilers don't know: places made with it are reckoned anew for each part of the depth, not kept in registers
// The row of a tile of n, and the vector in it, of item i of this invocation. Those beyond the last are the last. From item to item it grows by a constant where
// it can: compilers keep little more than where the first is.
uvec2 place_of(uint i, uint lies, uint n) {
  const uint own = (lies == 2u ? gl_LocalInvocationID.x : own_number()) + unknown_zero;
  if (n * kRowQuads % kWidth == 0u) {
    if (lies != 2u) return uvec2(i * (kWidth / kRowQuads) + own / kRowQuads, own % kRowQuads);
    if (kWidth % n == 0u) return uvec2(own % n, i * (kWidth / n) + own / n);
  }
  const uint item = min(i * kWidth + own, n * kRowQuads - 1u);
  return lies == 2u ? uvec2(item % n, item / n) : uvec2(item / kRowQuads, item % kRowQuads);
}
uvec2 place_of_a(uint i) { return place_of(i, kALies, kM); }
uvec2 place_of_b(uint i) { return place_of(i, kBLies, kN); }
// Rows of which an invocation brings something: one, where it has the same of all vectors across the depth.
const uint kRowsOfA = kALies == 2u ? (kWidth % kM == 0u ? 1u : kAs) : kAs, kRowsOfB = kBLies == 2u ? (kWidth % kN == 0u ? 1u : kBs) : kBs;
// Where the items are no multiple of kWidth.
bool is_item(uint i, uint n_items) { return n_items % kWidth == 0u || i * kWidth + own_number() < n_items; }

uint first_row() { return gl_WorkGroupID.y * kM; }
uint first_column() { return gl_WorkGroupID.x * kN; }
uint output_row(uint row) { return gl_WorkGroupID.z * p.rows + first_row() + row; }
bool row_counts(uint row) { return first_row() + row < p.rows ? row_active(output_row(row), p.rows_per_sequence) : false; }
// Uniform for the workgroup only where all rows are one sequence's; others decide row by row.
bool is_idle() { return p.rows_per_sequence >= p.total_rows && !sequence_active(0u); }
void store(uint row, uint column, float sum) {
  const uint n = first_column() + column;
  if (n < p.columns) values[output_row(row) * p.columns + n] = to_element(p.scale * sum);
}

// Of a row that begins at `at`, zeros beyond the depth.
float a_element(uint at, uint step) {
  if (kWhole == 1u) return from_factor(a_values[at + step * p.a_depth]);
  return mix(0.0, from_factor(a_values[at + min(step, p.depth - 1u) * p.a_depth]), step < p.depth);
}
float b_element(uint at, uint step) {
  if (kWhole == 1u) return from_factor(b_values[at + step * p.b_depth]);
  return mix(0.0, from_factor(b_values[at + min(step, p.depth - 1u) * p.b_depth]), step < p.depth);
}
vec4 a_vector(uint at, uint step) {
  if (kALies == 0u) return from_elements(a_values4[(at + step) >> 2]);
  return vec4(a_element(at, step), a_element(at, step + 1u), a_element(at, step + 2u), a_element(at, step + 3u));
}
vec4 b_vector(uint at, uint step) {
  if (kBLies == 0u) return from_elements(b_values4[(at + step) >> 2]);
  return vec4(b_element(at, step), b_element(at, step + 1u), b_element(at, step + 2u), b_element(at, step + 3u));
}

// Item i of part `part` of the depth. Rows beyond the last are the last.
void load_a(uint part, uint i) {
  const uvec2 place = place_of_a(i);
  const uint at = p.a_offset + gl_WorkGroupID.z / p.batch1 * p.a_batch0 + gl_WorkGroupID.z % p.batch1 * p.a_batch1 + min(first_row() + place.x, p.rows - 1u) * p.a_row;
  a_items[i] = a_vector(at, (part * kRowQuads + place.y) * 4u);
}
void load_b(uint part, uint i) {
  const uvec2 place = place_of_b(i);
  const uint at = p.b_offset + gl_WorkGroupID.z / p.batch1 * p.b_batch0 + gl_WorkGroupID.z % p.batch1 * p.b_batch1 + min(first_column() + place.x, p.columns - 1u) * p.b_column;
  b_items[i] = b_vector(at, (part * kRowQuads + place.y) * 4u);
}
void load_factors(uint part) {
  [[unroll]] for (uint i = 0u; i < kAs; ++i) load_a(part, i);
  [[unroll]] for (uint i = 0u; i < kBs; ++i) load_b(part, i);
}
