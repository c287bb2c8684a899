// An element of an activation in memory, or four side by side: f32, or f16 in the modules <name>_f16, which are made of the same text with
// RONDO_F16 and need 16-bit storage; the build makes them of shaders that include this file themselves. Kernels compute in f32
// either way. Halves are converted by integers: a driver may round towards zero, and flush subnormals.
#ifndef RONDO_ELEMENT_GLSL
#define RONDO_ELEMENT_GLSL
#ifdef RONDO_F16
#extension GL_EXT_shader_16bit_storage : require
#include "lib/float16.glsl"
#define ELEMENT uint16_t
#define ELEMENT_BITS uint16_t
#define from_element(stored) half_float(uint(stored))
#define to_element(value) uint16_t(half_bits(value))
#define ELEMENT4 uvec2
vec4 from_elements(uvec2 stored) { return vec4(half_float(stored.x & 0xffffu), half_float(stored.x >> 16), half_float(stored.y & 0xffffu), half_float(stored.y >> 16)); }
uvec2 to_elements(vec4 value) { return uvec2(pack_halves(value.x, value.y), pack_halves(value.z, value.w)); }
#else
#define ELEMENT float
#define ELEMENT_BITS uint
#define from_element(stored) (stored)
#define to_element(value) (value)
#define ELEMENT4 vec4
#define from_elements(stored) (stored)
#define to_elements(value) (value)
#endif
#endif
