// What SPIRV-Tools makes of a module before it is decoded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "tools/simulator/module.h"

namespace rondo::simulator {

/// Validates a module for Vulkan 1.2 (1.3, if its SPIR-V is newer), gives its specialization constants their values, inlines
/// every call and optimises as drivers do before they choose instructions: memory of an invocation becomes values, what is known
/// is computed, loops that ask for it are unrolled. With Loops::kKept calls are inlined, and little else is done. Lines are kept. Errors: kCorruptData, with what SPIRV-Tools says, kUnsupported and kIo, as of read_module.
Result<std::vector<std::uint32_t>> prepare(std::span<const std::uint32_t> words, const ReadOptions& options, const std::string& name);

}  // namespace rondo::simulator
