// What SPIRV-Tools makes of a module before it is decoded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rondo/status.h>

namespace rondo::simulator {

/// Validates a module for Vulkan 1.2, gives its specialization constants 0, 1, ... these values (others keep their own), inlines
/// every call and optimises as drivers do before they choose instructions: memory of an invocation becomes values, what is known
/// is computed, loops that ask for it are unrolled. Lines are kept. Errors: kCorruptData, with what SPIRV-Tools says.
Result<std::vector<std::uint32_t>> prepare(std::span<const std::uint32_t> words, std::span<const std::uint32_t> constants, const std::string& name);

}  // namespace rondo::simulator
