// IEEE 754 binary16 to and from binary32, by integer arithmetic: no dependence on the compiler's half type.
#pragma once

#include <cstdint>

namespace rondo::graph {

/// Exact.
float half_to_float(std::uint16_t half);

/// Rounds to nearest, ties to even; overflow becomes infinity, NaN stays NaN.
std::uint16_t float_to_half(float value);

}  // namespace rondo::graph
