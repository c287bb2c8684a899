// Rounded as the device rounds: most to nearest, where their packHalf2x16 may cut off.
uvec2 to_halves(vec4 x) { return uvec2(packFloat2x16(f16vec2(x.xy)), packFloat2x16(f16vec2(x.zw))); }
