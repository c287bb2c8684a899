// Cache lines and banks of one access by a subgroup. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "tools/simulator/report.h"

namespace rondo::simulator {

/// Adds an execution by lanes that each touch `lane_bytes` from their address on, to buffers' lines and sectors. `addresses` are
/// those of the active lanes, and are put in order.
void count_lines(AccessCount& count, std::span<std::uint64_t> addresses, std::uint32_t lane_bytes);

/// The same for shared memory's banks: lanes 0 to 31 together, then the next 32, where they have 4 bytes each, 16 of 8 and 8 of 16
/// bytes, take as many rounds as the fullest bank has different words. `lanes` are those of the addresses, in order.
void count_banks(AccessCount& count, std::span<const std::uint64_t> addresses, std::span<const std::uint32_t> lanes, std::uint32_t lane_bytes);

}  // namespace rondo::simulator
