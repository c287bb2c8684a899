// Linears of few rows on GPUs: output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of
// weight rows n and up_rows() + n; with kExperts of the weight that row m has (lib/linear_experts.glsl), and kTokens is 1.
// A subgroup makes kRows neighbouring outputs of kTokens rows. Its lanes load chunks of weights side by side, 16 bytes each, and add
// their sums up at the end. Chunks of many columns are as far apart in the activations, of which each lane would touch lines of its own: with kRowLanes lanes side by side
// have the same columns of different rows, and activations are as many lines less. Where there are few outputs for a large device, kSplit subgroups share them, and meet in shared memory.
// f32 accumulation in fixed order. Grid (ceil(N / (kRows kSubgroups / kSplit)), ceil(M / kTokens)).
// On devices that wait longer for memory than they multiply, a lane asks for kLoads chunks at a time.
// Who includes this defines add_products, which makes the sums, and constant 6, kInputVec4 (lib/linear_input.glsl), or with RONDO_ROUNDED_INPUT, if the input is in bytes, kRounds:
// outputs are left in bytes as well (lib/linear_rounding.glsl). With RONDO_NO_TABLE weights are of types without one.
// With kRotation it makes queries, keys and values, and turns and stores them as rope_kv_write would (lib/linear_rotation.glsl).
// Needs: subgroups of exactly kLanes invocations, subgroupAdd.
#include "linear.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kRows = 2u;
layout(constant_id = 4) const uint kTokens = 1u;
layout(constant_id = 5) const uint kGlu = 0u;
layout(constant_id = 7) const uint kActivation = 0u;
layout(constant_id = 8) const uint kBias = 0u;
layout(constant_id = 9) const uint kExperts = 0u;
layout(constant_id = 10) const uint kLimited = 0u;
layout(constant_id = 11) const uint kNorm = 0u;
layout(constant_id = 12) const uint kSplit = 1u;
layout(constant_id = 13) const uint kLoads = 1u;  // chunks of a row that a lane asks for before it multiplies the first
layout(constant_id = 14) const uint kRotation = 0u;  // RONDO_ROTATION_ of linear.params.h
layout(constant_id = 15) const uint kRowLanes = 1u;  // lanes side by side that have the same columns of different rows; divides kRows and kLanes; 1 of inputs in bytes and chunks of 8 columns
const uint kSubgroups = kWidth / kLanes;

#ifndef RONDO_ROUNDED_INPUT
#include "lib/linear_input.glsl"
#endif
#ifndef RONDO_NO_TABLE
#define RONDO_SHARED_TABLE
#endif
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_experts.glsl"
#include "lib/linear_output.glsl"
#include "lib/linear_norm.glsl"
#include "lib/linear_rotation.glsl"
#ifdef RONDO_ROUNDED_INPUT
#include "lib/rounded_input.glsl"
#include "lib/linear_rounding.glsl"
#define input_place input_row
#else
#define input_place input_at
#endif

const uint kLaneRows = kRows / kRowLanes, kColumnLanes = kLanes / kRowLanes;
const uint kWeightRows = kLaneRows << kGlu;  // of a lane, gates first
const uint kSums = kWeightRows * kTokens;
shared float split_sums[kSubgroups * kSums * kRowLanes];

// This lane's place among those that have columns of the same rows.
uint column_lane() { return gl_SubgroupInvocationID / kRowLanes; }

// A row of the weight. Where it begins is reckoned before the loop, which compilers don't all see to themselves; where registers are needed for more rows of the input, or for more loads at a time, in it.
struct FewRow { uint number; WeightRow begin; };
FewRow few_row(uint number) { return FewRow(number, row_at(number)); }
WeightRow begin_of(FewRow row) { return kTokens == 1u && kLoads == 1u ? row.begin : row_at(row.number); }

// Chunks of n_rows rows, from the from-th on, that are loaded together: this lane's first, and those kColumnLanes kSplit further on; behind the last comes the last again.
#define LOAD_CHUNKS(loaded, from, n_rows, first, n_chunks)                                                                                                \
  Chunk loaded[kLoads * n_rows];                                                                                                                          \
  [[unroll]] for (uint n = 0u; n < kLoads; ++n) {                                                                                                         \
    [[unroll]] for (uint r = 0u; r < n_rows; ++r) loaded[n * n_rows + r] = load_chunk(begin_of(rows[(from) + r]), n == 0u ? (first) : min((first) + n * kColumnLanes * kSplit, (n_chunks) - 1u)); \
  }

// This lane's share of the sums, of row r of the weight and row t of the input at t kWeightRows + r: of chunks `share` kColumnLanes + column_lane() and
// every kColumnLanes kSplit-th behind it. All invocations of the workgroup call. rows: of the weight; at: elements where rows of the input
// begin, or, if it is in bytes, these rows.
void add_products(uint share, FewRow rows[kWeightRows], uint at[kTokens], inout float sums[kSums]);

void main() {
#ifdef RONDO_SHARED_TABLE
  fill_table();
#endif
  const uint first_token = gl_WorkGroupID.y * kTokens;
  const uint first = kRotates ? output_at(gl_SubgroupID / kSplit * kRows) : (gl_WorkGroupID.x * (kSubgroups / kSplit) + gl_SubgroupID / kSplit) * kRows, lane = gl_SubgroupInvocationID, share = gl_SubgroupID % kSplit;
  // What this lane stores in the end. The step's state is asked for here and looked at there, so that nothing waits for it.
  const uint own_token = kTokens == 1u ? first_token : first_token + lane / kRows, own_output = first + lane % kRows;
  const uvec3 state = row_state(token_of(kTokens == 1u ? own_token : min(own_token, p.rows - 1u)), p.rows_per_sequence);

  // Steps have many rows of experts that are not valid, and nothing says which experts' weights these would read.
  if (kExperts == 1u && !row_valid(state)) return;

  const uint first_weight = first_weight_row(first_token);
  uint at[kTokens];
  FewRow rows[kWeightRows];
  [[unroll]] for (uint t = 0u; t < kTokens; ++t) at[t] = input_place(min(first_token + t, p.rows - 1u));
  [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) rows[r] = few_row(min(first + r % kLaneRows * kRowLanes + lane % kRowLanes, p.outputs - 1u) + (r / kLaneRows) * up_rows() + first_weight + p.weight_offset_rows);
  float sums[kSums];
  [[unroll]] for (uint s = 0u; s < kSums; ++s) sums[s] = 0.0;
  uint position = 0u;
  if (kRotates) position = turned_position(first_token);
  vec4 squares;
  if (kTakesNorm && kTokens == 1u) squares = squares_quad(first_token, gl_LocalInvocationID.x * 4u);
  add_products(share, rows, at, sums);

  // Not before: few registers while weights are waited for, and reductions to wait for these.
  Turn turn;
  if (kRotates) turn = find_turn(position);
  float own[1u + kGlu];
  [[unroll]] for (uint s = 0u; s < kSums; ++s) {
    const uint token = s / kWeightRows, r = s % kWeightRows;
    [[unroll]] for (uint m = 0u; m < kRowLanes; ++m) {
      const float sum = subgroupAdd(lane % kRowLanes == m ? sums[s] : 0.0);
      if (lane == token * kRows + r % kLaneRows * kRowLanes + m) own[r / kLaneRows] = sum;
    }
  }
  if (kTakesNorm && kTokens == 1u) add_squares(first_token, 0u, squares);
  if (kTakesNorm && kTokens != 1u) {
    [[dont_unroll]] for (uint t = 0u; t < kTokens; ++t) {  // few registers rather than few waits
      const uint row = min(first_token + t, p.rows - 1u);
      add_squares(row, t, squares_quad(row, gl_LocalInvocationID.x * 4u));
    }
  }
  if (kSplit != 1u) {
    [[unroll]] for (uint i = 0u; i <= kGlu; ++i) {
      if (lane < kRows * kTokens) split_sums[(gl_SubgroupID * (1u + kGlu) + i) * kRows * kTokens + lane] = own[i];
    }
  }
  if (kSplit != 1u || kTakesNorm) barrier();
  const bool there = share == 0u && lane < kRows * kTokens && own_token < p.rows && own_output < p.outputs && row_valid(state);
  float value = 0.0;
  if (there) {
    const uint row = first_weight + own_output;
    const float scale = kTakesNorm ? norm_scale(own_token - first_token) : 1.0;
    [[unroll]] for (uint i = 0u; i <= kGlu; ++i) {
      [[unroll]] for (uint s = 1u; s < kSplit; ++s) own[i] += split_sums[((gl_SubgroupID + s) * (1u + kGlu) + i) * kRows * kTokens + lane];
      if (kTakesNorm) own[i] *= scale;
    }
    value = kGlu == 1u ? output_of_glu(own[0], own[kGlu], row, row + up_rows()) : output_of(own[0], row);
    if (kRotates) {
      keep_for_rotation(own_token - first_token, gl_SubgroupID / kSplit * kRows + lane % kRows, value);
    } else {
      value = with_residual(own_token, own_output, value);
      store(own_token, own_output, value);
    }
  }
  if (kRotates) rotate_outputs(first_token, position, turn);
#ifdef RONDO_ROUNDED_INPUT
  if (kRounds == 1u && share == 0u && lane < kRows * kTokens) keep_for_rounding(own_token - first_token, own_output, there ? kMakesNorm ? norm_product(own_output, value) : value : 0.0);
#endif
  if (kMakesNorm) make_norm(first_token, own_token, own_output, value, there);
#ifdef RONDO_ROUNDED_INPUT
  if (kRounds == 1u) round_outputs(first_token);
#endif
}
