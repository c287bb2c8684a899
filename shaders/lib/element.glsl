// An element of an activation in memory: f32, or f16 in the modules <name>_f16, which are made of the same text with
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
#else
#define ELEMENT float
#define ELEMENT_BITS uint
#define from_element(stored) (stored)
#define to_element(value) (value)
#endif
#endif
