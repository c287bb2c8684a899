// Weights that are made on the device rather than read, for measurements: only the header of the checkpoint is needed.
#pragma once

#include <rondo/status.h>

#include "models/loaded_model.h"

namespace rondo::models {

/// Fills block `index`: vectors with ones, matrices so that activations keep their size (variance 1 / columns).
/// Errors: kUnsupported (a type whose weights can't be made), the device's.
Status make_random_block(LoadedModel& model, std::size_t index);

}  // namespace rondo::models
