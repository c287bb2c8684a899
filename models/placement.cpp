#include "models/placement.h"

#include "runtime/fmt.h"

namespace rondo::models {

Result<Placement> place_blocks(std::span<const std::uint64_t> sizes, std::uint64_t alignment, std::uint64_t max_buffer_bytes, std::uint32_t first_buffer) {
  Placement placement;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > max_buffer_bytes) {
      return Status(StatusCode::kUnsupported, fmt::format("block {} has {} bytes but a buffer can have {}", i, sizes[i], max_buffer_bytes));
    }
    std::uint64_t offset = placement.buffer_bytes.empty() ? 0 : (placement.buffer_bytes.back() + alignment - 1) / alignment * alignment;
    if (placement.buffer_bytes.empty() || offset + sizes[i] > max_buffer_bytes) {
      placement.buffer_bytes.push_back(0);
      offset = 0;
    }
    placement.places.push_back({first_buffer + static_cast<std::uint32_t>(placement.buffer_bytes.size() - 1), offset, sizes[i]});
    placement.buffer_bytes.back() = offset + sizes[i];
  }
  return placement;
}

}  // namespace rondo::models
