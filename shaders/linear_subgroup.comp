// linear of few rows (lib/linear_few_rows.glsl) with products in f32. There is no barrier, but for shared rows, values from a table,
// and norms.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/element.glsl"
layout(constant_id = 6) const uint kInputVec4 = 1u;
#include "lib/linear_few_rows.glsl"

void add_products(uint share, FewRow rows[kWeightRows], uint at[kTokens], inout float sums[kSums]) {
  const uint n_chunks = p.groups * (8u / kQuads);
  for (uint first = share * kColumnLanes + column_lane(); first < n_chunks; first += kColumnLanes * kSplit * kLoads) {
    LOAD_CHUNKS(chunks, 0u, kWeightRows, first, n_chunks)
    [[unroll]] for (uint n = 0u; n < kLoads; ++n) {
      const uint chunk = first + n * kColumnLanes * kSplit;
      if (n != 0u && chunk >= n_chunks) break;
      float parts[kSums], input_sums[kTokens];
      [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
        const bool starts = !kIsFloat && i % kScaledQuads == 0u;
        vec4 x[kTokens];
        [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
          if (kTokens == 1u) x[t] = input_four(at[t], chunk * kQuads, i);
          else x[t] = input_quad(at[t], (chunk * kQuads + i) * 4u);  // Intel spills what it would keep
          if (kHasAddend) input_sums[t] = (starts ? 0.0 : input_sums[t]) + ((x[t].x + x[t].y) + (x[t].z + x[t].w));
        }
        [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) {
          const vec4 w = chunk_quad(chunks[n * kWeightRows + r], i);
          [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
            const uint s = t * kWeightRows + r;
            float sum = kIsFloat ? sums[s] : starts ? 0.0 : parts[s];
            sum += w.x * x[t].x;
            sum += w.y * x[t].y;
            sum += w.z * x[t].z;
            sum += w.w * x[t].w;
            if (kIsFloat) sums[s] = sum;
            else parts[s] = sum;
            if (!kIsFloat && i % kScaledQuads == kScaledQuads - 1u) {
              if (kCentre != 0u) sum -= float(kCentre) * input_sums[t];
              sums[s] += chunks[n * kWeightRows + r].scale[i >> 2] * sum;
              if (!kHasOneFactor) sums[s] += chunks[n * kWeightRows + r].addend[i >> 2] * input_sums[t];
            }
          }
        }
      }
    }
  }
}
