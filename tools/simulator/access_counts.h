// Cache lines and banks of one access by a subgroup. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "tools/simulator/report.h"

namespace rondo::simulator {

/// Adds an execution by lanes that each touch `lane_bytes` from their address on, to buffers' lines and sectors. `addresses` are
/// those of the active lanes, and are put in order.
void count_lines(AccessCount& count, std::span<std::uint64_t> addresses, std::uint32_t lane_bytes);

/// The same for shared memory's banks: 32 lanes of 4 bytes at a time, 16 of 8, 8 of 16 take as many rounds as the fullest bank
/// has different words.
void count_banks(AccessCount& count, std::span<const std::uint64_t> addresses, std::uint32_t lane_bytes);

}  // namespace rondo::simulator
