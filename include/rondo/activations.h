// How exactly kernels take the activations of a network.
#pragma once

#include <cstdint>

namespace rondo {

/// Whether matrices may be multiplied with activations that are rounded.
///
/// To signed bytes, 16 or 32 of a row that share a scale of their largest magnitude / 127 in 20 bits (llama.cpp's q8_1 has 32 and f16), for
/// the integer dot products that many GPUs have; weights of all types but f32, f16 and bf16. Sums are exact, or f32. Logits move by
/// less than 2e-2 of their range.
/// With more than 8 rows, of experts with more than two each on average, rather to f16, and with them the weights' values, for matrix units (VK_KHR_cooperative_matrix); weights of all types, and
/// both factors of matmul. Also where one instruction makes two products of f16
/// (VK_VALVE_shader_mixed_float_dot_product), and weights' activations are not rounded to bytes. Rows that f16 does not suit are multiplied by a power of two, of weights in f32, bf16 and mxfp4 and of both factors of matmul, too. In attention
/// queries, keys and values are rounded, and what keys weigh; where f16 does not suit keys or values, nothing is. In attention of up to 8 queries over keys in f16, where
/// the other instruction is there, queries are, each row of a head in units of a power of two. In operators other than linear, linear_glu,
/// these with experts, patch_embed, matmul and attention, nothing is rounded to f16. Sums are f32. Logits move by less than 2e-3 of their range.
enum class Activations : std::uint8_t {
  kAuto,  ///< to bytes where the device computes such products fast, and by the compilers' counts they save 15 % of the instructions; to f16 where it has matrix units or the other instruction
  kF32,   ///< never
  kF16,   ///< never to bytes; to f16 wherever the device can
  kQ8,    ///< to bytes or f16 wherever the device can
};

}  // namespace rondo
