// From numbers to the blocks of a weight type, as GGUF has them in files: the other way round from BlockFormat::dequantize_row.
//
// Round to nearest by the formats' reference rules, so that the bytes are those that llama.cpp's quantiser writes without an
// importance matrix: q8_0, q4_0 and q5_0 scale by the value of largest magnitude, q4_1 and q5_1 by the range from least to
// largest, mxfp4 by a power of two. Blocks of numbers below 2^-126 become zeros, blocks with an infinity or NaN become NaN (there
// the reference is undefined). Pure functions, no state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/tensor.h"

namespace rondo::graph {

/// Writes the blocks that hold `values`, a whole number of blocks, to `blocks`.
using Quantize = void (*)(std::span<const float> values, std::byte* blocks);

/// How blocks of `type` are made; null for types that come from files only.
Quantize find_quantizer(Type type);

/// The type of this name, in small or capital letters, if there is a quantiser for it.
std::optional<Type> find_quantized_type(std::string_view name);

/// For messages: "q8_0, q4_0, ...".
std::string quantized_type_names();

}  // namespace rondo::graph
