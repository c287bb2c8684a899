// Weights that are made on the device rather than read, for measurements: only the header of the checkpoint is needed.
#pragma once

#include <rondo/status.h>

#include "models/loaded_model.h"

namespace rondo::models {

/// Fills block `index`: vectors with ones, matrices as make_random_matrix. Errors: as make_random_matrix.
Status make_random_block(const LoadedModel& model, std::size_t index);

/// Fills the planes of a (rows, columns) matrix of a weight type that lie at `place` of `buffer` (its index is not used), so
/// that activations keep their size: values of variance 1 / columns. The same `seed` makes the same values. Waits.
/// Errors: kUnsupported (a type whose weights can't be made), the device's.
Status make_random_matrix(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, graph::Type type, const graph::Shape& matrix,
                          std::uint32_t seed);

/// Fills `place` of `buffer` with f32 or f16 numbers, uniform in [-1, 1). Waits. Errors: kInvalidArgument (another type),
/// the device's.
Status make_random_floats(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, graph::Type type, std::uint32_t seed);

}  // namespace rondo::models
