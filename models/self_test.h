// The self-test of a model's kernels: each runs once on the device and is compared with the reference.
//
// What is wrong goes into quarantine, the steps are planned again without it, and what takes its place is tested too.
#pragma once

#include <rondo/status.h>

#include "models/loaded_model.h"

namespace rondo::models {

/// Tests the kernels of model.plan; changes model.options.quarantine and model.plan where one is wrong. Blocks for as long as
/// that takes. Errors: kUnsupported (nothing can take the place of a wrong kernel), kDeviceLost or kInternal (the device was
/// lost, or stood still, in a kernel, which is in quarantine then), kOutOfMemory, the source's.
Status run_self_test(LoadedModel& model);

}  // namespace rondo::models
