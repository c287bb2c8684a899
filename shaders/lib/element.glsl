// An element of an activation in memory, or four side by side: f32, or f16 in the modules <name>_f16, which are made of the same text with
// RONDO_F16 and need 16-bit storage; the build makes them of shaders that include this file themselves. Kernels compute in f32
// either way. Halves are made by integers, as a driver may round towards zero, and read by integers where one of them decides. Those that are
// multiplied, which products and norms read four at a time or as factors, are converted as weights and caches of f16 are: a driver may take subnormals for 0.
#ifndef RONDO_ELEMENT_GLSL
#define RONDO_ELEMENT_GLSL
#ifdef RONDO_F16
#extension GL_EXT_shader_16bit_storage : require
#include "lib/float16.glsl"
#define ELEMENT uint16_t
#define ELEMENT_BITS uint16_t
#define from_element(stored) half_float(uint(stored))
#define from_factor(stored) (unpackHalf2x16(uint(stored)).x)
#define to_element(value) uint16_t(half_bits(value))
#define ELEMENT4 uvec2
vec4 from_elements(uvec2 stored) { return vec4(unpackHalf2x16(stored.x), unpackHalf2x16(stored.y)); }
uvec2 to_elements(vec4 value) { return uvec2(pack_halves(value.x, value.y), pack_halves(value.z, value.w)); }
#else
#define ELEMENT float
#define ELEMENT_BITS uint
#define from_element(stored) (stored)
#define from_factor(stored) (stored)
#define to_element(value) (value)
#define ELEMENT4 vec4
#define from_elements(stored) (stored)
#define to_elements(value) (value)
#endif
#endif
