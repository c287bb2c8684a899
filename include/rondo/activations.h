// How exactly kernels take the activations of a network.
#pragma once

#include <cstdint>

namespace rondo {

/// Whether matrices may be multiplied with activations that are rounded: to signed bytes, 32 of a row that share a scale of their
/// largest magnitude / 127 (the way of llama.cpp's q8_1), for the integer dot products that many GPUs have. Sums are exact, or f32.
/// Logits move by less than 2e-2 of their range. It is there for up to 8 rows, and weights of all types but f32, f16 and bf16.
enum class Activations : std::uint8_t {
  kAuto,  ///< where the device computes such products fast, and by the compilers' counts they save 15 % of the instructions
  kF32,   ///< never
  kQ8,    ///< wherever the device can
};

}  // namespace rondo
