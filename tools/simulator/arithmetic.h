// Operations that take scalars and give one, in all lanes at once. Pure.
#pragma once

#include <cstdint>

#include "tools/simulator/mask.h"
#include "tools/simulator/module.h"

namespace rondo::simulator {

/// out[lane] of `width` lanes, from the operands that the operation has; what lanes that are not active get means nothing. Returns
/// those of the active lanes whose result SPIR-V or GLSL.std.450 leaves undefined, although its operands are defined: shifts by
/// the width and more, divisions by zero, conversions out of range, minima with a NaN.
Mask compute(const Operation& operation, const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c, const std::uint32_t* d, std::uint32_t* out, std::uint32_t width, Mask active);

/// Whether `compute` knows the operation.
constexpr bool is_arithmetic(Code code) { return code < Code::kArrayLength; }

}  // namespace rondo::simulator
