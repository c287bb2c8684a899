// A kernel's first dispatch, which does nothing: drivers that compile lazily do so then. Pure.
#pragma once

#include <cstring>
#include <utility>

#include "runtime/kernel.h"
#include "runtime/program.h"

namespace rondo::runtime {

/// Of the one buffer that all bindings of a warm_up_program are, filled with zeros: the state of a sequence that is not active.
constexpr std::uint64_t kWarmUpBytes = 65536;

/// One workgroup of the kernel. Not all kernels look at the state before they read anything else, so every parameter is 1: rows,
/// columns and strides, with which no kernel gets beyond the buffer, and divisors.
inline Program warm_up_program(const Kernel& kernel) {
  Program program;
  program.name = shader_name(kernel.shader);
  program.kernels.push_back(kernel);
  Dispatch dispatch;
  dispatch.label = program.name;
  dispatch.bindings.assign(kernel.n_bindings, {{0, 0, kWarmUpBytes}, Access::kReadWrite});
  dispatch.push.resize(kernel.push_bytes);
  for (std::size_t at = 0; at + 4 <= dispatch.push.size(); at += 4) {
    const std::uint32_t one = 1;
    std::memcpy(dispatch.push.data() + at, &one, 4);
  }
  program.dispatches.push_back(std::move(dispatch));
  return program;
}

}  // namespace rondo::runtime
