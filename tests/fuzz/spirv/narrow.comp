#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
// Narrow types, structs, vectors and what GLSL computes.
layout(local_size_x = 8, local_size_y = 4) in;
struct Block { float16_t scale; int8_t q[6]; };
layout(set = 0, binding = 0) readonly buffer Blocks { Block blocks[]; };
layout(set = 0, binding = 1) buffer Rows { vec4 rows[][2]; };
uint starts[3] = {1u, 2u, 5u};
void main() {
  const uint i = gl_LocalInvocationIndex % 16u;
  const Block block = blocks[i];
  vec4 v = vec4(0.0);
  for (uint k = 0u; k < 6u; ++k) v[k % 4u] += float(block.scale) * float(block.q[k]);
  const i16vec2 narrow = i16vec2(int16_t(v.x), int16_t(i)) * int16_t(-3);
  v += unpackHalf2x16(packHalf2x16(v.yz)).xyxy + vec4(mix(v.xyz, normalize(v.zyx + 1.0), 0.25), float(narrow.x));
  const uint low = bitfieldInsert(floatBitsToUint(v.x), uint(findMSB(i)), 3, 5) + bitCount(i) + bitfieldExtract(i, 1, 2);
  rows[i][i % 2u] = clamp(v, -4.0, float(low)) + dot(v, v) + sqrt(abs(v)) * pow(abs(v.y), 0.5) + float(starts[i % 3u]);
}
