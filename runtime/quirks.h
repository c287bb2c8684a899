// What has to be done differently for one vendor, driver or version: all of it, here, each with how to test it again.
#pragma once

#include "runtime/device_caps.h"

namespace rondo::runtime {

/// Changes `caps` of devices that report more than they can do.
void apply_quirks(DeviceCaps& caps);

}  // namespace rondo::runtime
