// The Vulkan device that tests run on, made once per program; validation messages fail the test during which they came.
//
// RONDO_TEST_VALIDATE=1 turns the validation layers on. RONDO_DEVICE chooses the device as for the command.
#pragma once

#include <rondo/device.h>

#include "runtime/device.h"

namespace rondo::tests {

/// The device. A test program that can't have one ends with a failure that says why.
Device& test_device();
inline runtime::Device& test_runtime_device() { return test_device().internal(); }
/// The instance it belongs to.
Instance& test_instance();

}  // namespace rondo::tests
