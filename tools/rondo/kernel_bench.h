// rondo bench --kernels: each kernel at standard shapes, beside what the device does at best.
#pragma once

#include <cstdint>
#include <string>

#include "tools/rondo/command.h"

namespace rondo::tools {

struct KernelBenchFlags {
  std::string filter;  ///< as of kernel_cases(), "" for all
  std::uint32_t repetitions = 3;
  bool json = false;
};

/// What is wrong with a filter, naming the operators, or "".
std::string check_kernel_filter(const std::string& filter);

/// Measures and prints. `closed` gets the exit status of a run without errors: kFailed if the validation layers said
/// something. Errors: those of opening a device, the device's, kInternal (a standard shape that its operator refuses).
Status bench_kernels(const GlobalFlags& flags, const KernelBenchFlags& own, int& closed);

}  // namespace rondo::tools
