// Where blocks of bytes go: a pure function from sizes to buffers and offsets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rondo/status.h>

#include "runtime/program.h"

namespace rondo::models {

/// Blocks placed in order, each at a multiple of `alignment`, in buffers of at most `max_buffer_bytes`.
struct Placement {
  std::vector<runtime::BufferRange> places;   ///< one per block; buffer indices count from `first_buffer`
  std::vector<std::uint64_t> buffer_bytes;    ///< one per buffer
};

/// Errors: kUnsupported if a block alone is larger than a buffer (its index is in the message).
Result<Placement> place_blocks(std::span<const std::uint64_t> sizes, std::uint64_t alignment, std::uint64_t max_buffer_bytes, std::uint32_t first_buffer);

}  // namespace rondo::models
