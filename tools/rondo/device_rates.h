// What a device does at best, to hold kernels against: the bytes it copies, the operations it computes, and how soon a
// dispatch follows the one it depends on. Measured, not looked up.
#pragma once

#include <cstdint>

#include <rondo/status.h>

#include "tools/rondo/stopwatch.h"

namespace rondo::tools {

struct DeviceRates {
  double copy_gbps = 0;            ///< 1e9 bytes read and written per second, by the better of copies within device-local memory and a kernel that copies
  double fma_gflops = 0;           ///< 1e9 f32 operations per second; a fused multiply-add is two
  double dispatch_latency_us = 0;  ///< of a dispatch of one workgroup behind a barrier
};

/// Measures for some tenths of a second, each rate as the median of `n_measurements`.
/// Errors: kOutOfMemory, kDeviceLost, kInternal (the device computed something else than it was told to).
Result<DeviceRates> measure_device_rates(Stopwatch& stopwatch, std::uint32_t n_measurements);

}  // namespace rondo::tools
