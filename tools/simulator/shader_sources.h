// The library's kernels with their lines, as they were compiled for the simulator.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/program.h"

namespace rondo::simulator {

/// SPIR-V whose instructions know their lines. Unpacked once and kept; from any thread.
const std::vector<std::uint32_t>& shader_with_lines(runtime::Shader shader);

}  // namespace rondo::simulator
