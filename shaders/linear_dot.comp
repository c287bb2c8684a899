// linear of few rows (lib/linear_few_rows.glsl) with integer dot products: the activations, f32, are rounded to bytes, 32 that share
// a scale of largest magnitude / 127, in shared memory, by each workgroup for itself and a tile of columns at a time; sums of
// products of bytes are exact, their sums f32. Weights of all types but floats.
// Needs: subgroups of 8 invocations or more, shuffles, VK_KHR_shader_integer_dot_product.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#define RONDO_WEIGHT_BYTES
#define RONDO_BARRIER_FOLLOWS  // behind the rounding of activations
#include "lib/linear_few_rows.glsl"
#include "lib/dot.glsl"

// Groups of 32 columns of a tile: those of a round of all lanes that share a row, or of one row as many as take 5 KB.
const uint kRoundGroups = kLanes * kSplit * kQuads / 8u;
const uint kTileGroups = kRoundGroups * kTokens > 128u ? kRoundGroups : 128u / kTokens;
const uint kSumsOfGroup = 2u / (kScaledQuads / 4u);  // a sum for each scale of a weight
// Of the activations: bytes, in the order in which lanes side by side read them; scales; sums of the bytes.
shared uvec4 tile_bytes[kTokens * kTileGroups * 2u];
shared float tile_scales[kTokens * kTileGroups];
shared int tile_sums[kHasAddend ? kTokens * kTileGroups * kSumsOfGroup : 1u];

// Where the 16 bytes are that begin with quad 4 `half_of_group` of the tile.
uint bytes_at(uint token, uint half_of_group) { return token * kTileGroups * 2u + (kQuads == 8u ? (half_of_group & 1u) * kTileGroups + (half_of_group >> 1) : half_of_group); }

// Rounds the rows of the input from `first_token` on, of the groups that the tile has of them from `first_group` on.
void round_tile(uint first_token, uint first_group) {
  const uint kAtOnce = kLanes < 32u ? 2u : 4u, kTileQuads = kTileGroups * 8u;  // 4 spill on Intel
  const uint n_quads = min(kTileGroups, p.groups - first_group) * 8u;
  const uint end = kTokens == 1u ? n_quads : kTokens * kTileQuads;
  for (uint first = gl_SubgroupID * kLanes; first < end; first += kAtOnce * kWidth) {  // all lanes of a subgroup together
    const uint begin = first + gl_SubgroupInvocationID;
    vec4 x[kAtOnce];
    [[unroll]] for (uint j = 0u; j < kAtOnce; ++j) {
      const uint i = begin + j * kWidth, quad = kTokens == 1u ? i : i % kTileQuads;  // those beyond are groups that there are
      x[j] = input_quad(input_at(min(first_token + (kTokens == 1u ? 0u : i / kTileQuads), p.rows - 1u)), (first_group * 8u + min(quad, n_quads - 8u + quad % 8u)) * 4u);
    }
    [[unroll]] for (uint j = 0u; j < kAtOnce; ++j) {
      const uint i = begin + j * kWidth, token = kTokens == 1u ? 0u : i / kTileQuads, quad = kTokens == 1u ? i : i % kTileQuads, group = quad >> 3, place = quad & 7u;
      const Rounding rounding = rounding_of(largest_bits(x[j]), 8u);
      const uint bytes = rounded_bytes(x[j], rounding);
      int sum = 0;
      if (kHasAddend) {
        sum = sum_of_lanes(packed_dot(bytes, 0x01010101u, 0), 8u / kSumsOfGroup);
      }
      if (quad < n_quads && i < kTokens * kTileQuads) {
        tile_bytes[bytes_at(token, quad >> 2)][quad & 3u] = bytes;
        if (kHasAddend && place % (8u / kSumsOfGroup) == 0u) tile_sums[(token * kTileGroups + group) * kSumsOfGroup + place / (8u / kSumsOfGroup)] = sum;
        if (place == 0u) tile_scales[token * kTileGroups + group] = rounding.scale;
      }
    }
  }
}

// Adds the products of chunks that begin with quad `quad` of the tile.
void multiply(Chunk chunks[kWeightRows], uint quad, inout float sums[kSums]) {
  int parts[kSums];
  uvec4 x[kTokens];
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
    [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
      if (i % 4u == 0u) x[t] = tile_bytes[bytes_at(t, (quad >> 2) + (i >> 2))];
    }
    [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) {
      const uint w = chunk_bytes(chunks[r], i);
      [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
        const uint s = t * kWeightRows + r;
        int part = packed_dot(w, x[t][i & 3u], 0);
        if (i % kScaledQuads != 0u) part += parts[s];
        parts[s] = part;
        if (i % kScaledQuads == kScaledQuads - 1u) {
          const uint in_tile = t * kTileGroups + (quad >> 3), sum_of_group = kSumsOfGroup == 1u ? 0u : i >> 2;
          const float scale = tile_scales[in_tile];
          if (kCentre != 0u) part -= int(kCentre) * tile_sums[in_tile];
          sums[s] += (chunks[r].scale[i >> 2] * scale) * float(part);
          if (!kHasOneFactor) sums[s] += chunks[r].addend[i >> 2] * (scale * float(tile_sums[in_tile * kSumsOfGroup + sum_of_group]));
        }
      }
    }
  }
}

void add_products(uint share, uint rows[kWeightRows], uint at[kTokens], inout float sums[kSums]) {
  const uint n_chunks = p.groups * (8u / kQuads), tile_chunks = kTileGroups * (8u / kQuads);
  for (uint first = 0u; first < n_chunks; first += tile_chunks) {
    uint chunk = first + share * kLanes + gl_SubgroupInvocationID;
    Chunk chunks[kWeightRows];  // asked for before activations are rounded
    [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) chunks[r] = load_chunk(rows[r], min(chunk, n_chunks - 1u));
    if (first != 0u) barrier();
    round_tile(gl_WorkGroupID.y * kTokens, first * kQuads / 8u);
    barrier();
    const uint end = min(first + tile_chunks, n_chunks);
    if (chunk < end) multiply(chunks, (chunk - first) * kQuads, sums);
    for (chunk += kLanes * kSplit; chunk < end; chunk += kLanes * kSplit) {
      [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) chunks[r] = load_chunk(rows[r], chunk);
      multiply(chunks, (chunk - first) * kQuads, sums);
    }
  }
}
