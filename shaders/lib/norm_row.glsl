// rms_norm and, with kLayer 1, layer_norm for GPUs; formulas, inputs and grid as in the files of these names. A workgroup has its row
// in registers: kQuads times four elements an invocation, all asked for before the first is looked at, as are weights and addends.
// One barrier a sum. f32 accumulation in fixed order. With RONDO_ROUNDS_BY_LANES outputs are left in bytes as well (lib/rounding.glsl); with RONDO_LEAVES_HALVES
// in f16, as halve.comp would of them (lib/halved_input.glsl), and with kOnlyHalves only so; then the grid has one row for a token, and columns are a multiple of 32.
// Needs: subgroups of exactly kLanes invocations, subgroupAdd; columns, offsets and strides multiples of 4, columns of 16 where bytes are made, and at most
// 4 kQuads kWidth.
#include "norm.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"
#ifdef RONDO_ROUNDS_BY_LANES
#include "lib/rounding.glsl"
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kLanes = 32u;
layout(constant_id = 2) const uint kQuads = 2u;
layout(constant_id = 3) const uint kLayer = 0u;
#ifdef RONDO_LEAVES_HALVES
#include "lib/halves.glsl"
#include "lib/f16_scale.glsl"
layout(constant_id = 4) const uint kOnlyHalves = 0u;
layout(std430, set = 0, binding = 5) writeonly buffer Halves2 { uvec2 halves2[]; };
layout(std430, set = 0, binding = 5) writeonly buffer HalfScales { float half_scales[]; };
const uint kSums = 3u;
#else
const uint kOnlyHalves = 0u;
const uint kSums = 1u << kLayer;
#endif
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 1) readonly buffer Input4 { ELEMENT4 input_values4[]; };
layout(std430, set = 0, binding = 2) readonly buffer Weight4 { vec4 weight4[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output4 { ELEMENT4 values4[]; };
#ifdef RONDO_ROUNDS_BY_LANES
layout(std430, set = 0, binding = 3) writeonly buffer Rounded { uint rounded_words[]; };
#endif
layout(std430, set = 0, binding = 4) readonly buffer Residual4 { ELEMENT4 residual4[]; };
layout(std430, set = 0, binding = 4) readonly buffer Bias4 { vec4 bias4[]; };

const uint kParts = kWidth / kLanes;
shared float parts[kParts * kSums];

// The same for all invocations, from one number of each subgroup; `which` of a row's it is.
void share_parts(float part, uint which) {
  if (gl_SubgroupInvocationID == 0u) parts[which * kParts + gl_SubgroupID] = part;
  barrier();
}
float shared_part(uint i, uint which) { return parts[which * kParts + min(i + gl_SubgroupInvocationID, kParts - 1u)]; }

// Of all invocations.
float workgroup_sum(float own, uint which) {
  const float part = subgroupAdd(own);
  if (kParts == 1u) return part;
  share_parts(part, which);
  const uint lane = gl_SubgroupInvocationID;
  float total = 0.0;
  [[unroll]] for (uint i = 0u; i < kParts; i += kLanes) total += mix(0.0, shared_part(i, which), i + lane < kParts);
  return subgroupAdd(total);
}

#ifdef RONDO_LEAVES_HALVES
float workgroup_largest(float own) {
  const float part = subgroupMax(own);
  if (kParts == 1u) return part;
  share_parts(part, 2u);
  float largest = 0.0;
  [[unroll]] for (uint i = 0u; i < kParts; i += kLanes) largest = max(largest, shared_part(i, 2u));
  return subgroupMax(largest);
}

// Four columns of a row of the grid's, and what all of the row have been multiplied by.
void store_halves(uint row, uint column, vec4 x) { halves2[((column >> 5) * gl_NumWorkGroups.x + row) * 8u + ((column >> 2) & 7u)] = to_halves(x); }
void store_half_scale(uint row, float scale) { half_scales[gl_NumWorkGroups.x * (p.columns >> 5) * 16u + row] = scale; }
#endif

#ifdef RONDO_ROUNDS_BY_LANES
uint place() { return gl_SubgroupID * kLanes + gl_SubgroupInvocationID; }  // lanes side by side have neighbouring quads
#else
uint place() { return gl_LocalInvocationID.x; }
#endif
uint column(uint i) { return (i * kWidth + place()) * 4u; }
bool is_column(uint i) { return (i + 1u) * kWidth * 4u <= p.columns || column(i) < p.columns; }

void main() {
  const uint token = gl_WorkGroupID.x, head = gl_WorkGroupID.y;
  const uvec3 state = row_state(token, p.rows_per_sequence);
  const uint at = p.input_offset + token * p.input_stride + head * p.head_stride;
  const uint added_at = p.addend_offset + token * p.addend_stride;
  float pivot = 0.0;
  if (kLayer == 1u) pivot = from_element(input_values[at]);
  vec4 x[kQuads], weights[kQuads], addends[kQuads];
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
    const uint from = min(column(i), p.columns - 4u);
    x[i] = from_elements(input_values4[(at + from) >> 2]);
    weights[i] = vec4(1.0);
    if (p.has_weight != 0u) weights[i] = weight4[(p.weight_offset + from) >> 2] + p.weight_bias;
    addends[i] = vec4(0.0);
    if (p.has_addend != 0u) addends[i] = kLayer == 1u ? bias4[(added_at + from) >> 2] : from_elements(residual4[(added_at + from) >> 2]);
  }
#ifdef RONDO_LEAVES_HALVES
  // Rows of the sequence that hold no token are zeros: tiles multiply them, too.
  if (state.z != 0u && !row_valid(state)) {
    [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
      if (is_column(i)) store_halves(token, column(i), vec4(0.0));
    }
    if (place() == 0u) store_half_scale(token, 1.0);
  }
#endif
  if (!row_valid(state)) return;

  if (kLayer == 1u) {
    float sum = 0.0;
    [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
      x[i] -= pivot;
      if (is_column(i)) sum += (x[i].x + x[i].y) + (x[i].z + x[i].w);
    }
    const float mean = workgroup_sum(sum, 1u) / float(p.columns);
    [[unroll]] for (uint i = 0u; i < kQuads; ++i) x[i] -= mean;
  }
  float squares = 0.0;
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
    const vec4 square = x[i] * x[i];
    if (is_column(i)) squares += (square.x + square.y) + (square.z + square.w);
  }
  const float scale = 1.0 / sqrt(workgroup_sum(squares, 0u) / float(p.columns) + p.epsilon);
  const uint to = (token * p.heads + head) * p.columns;
#ifdef RONDO_LEAVES_HALVES
  float largest = 0.0;
#endif
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
    const vec4 made = x[i] * scale * weights[i] + addends[i];
    if (is_column(i) && kOnlyHalves == 0u) values4[(to + column(i)) >> 2] = to_elements(made);
#ifdef RONDO_ROUNDS_BY_LANES
    const RoundedQuad rounded = round_quad(made, 4u);
    if (is_column(i)) {
      const uint elements = gl_NumWorkGroups.x * p.heads * p.columns, at = to + column(i);
      rounded_words[byte_word(elements, at)] = rounded.bytes;
      if ((at & 15u) == 0u) rounded_words[scale_word_of(elements, at)] = rounded.scale;
    }
#endif
#ifdef RONDO_LEAVES_HALVES
    x[i] = made;
    if (is_column(i)) largest = larger(largest, made);
#endif
  }
#ifdef RONDO_LEAVES_HALVES
  const float half_scale = scale_for(floatBitsToUint(workgroup_largest(largest)) & 0x7fffffffu);
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
    if (is_column(i)) store_halves(token, column(i), half_scale * x[i]);
  }
  if (place() == 0u) store_half_scale(token, half_scale);
#endif
}
