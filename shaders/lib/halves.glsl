// Rounded as the device rounds: most to nearest, where their packHalf2x16 may cut off. Who knows that it does not defines RONDO_PACKS_HALVES, a condition.
#ifndef RONDO_PACKS_HALVES
#define RONDO_PACKS_HALVES false
#endif
uvec2 to_halves(vec4 x) {
  if (RONDO_PACKS_HALVES) return uvec2(packHalf2x16(x.xy), packHalf2x16(x.zw));
  return uvec2(packFloat2x16(f16vec2(x.xy)), packFloat2x16(f16vec2(x.zw)));
}
