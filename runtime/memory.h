// Buffers with their own memory, asked for by what they are for.
//
// A Buffer owns a VkBuffer and its memory; dropping it while the GPU uses it is safe. Few and large: models keep weights,
// caches and activations in a handful. Not thread-safe per object.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include <rondo/status.h>

#include "runtime/device.h"

namespace rondo::runtime {

class Buffer {
 public:
  /// A storage buffer of `size_bytes` that can also be copied from and to. `what` is for messages.
  /// Errors: kOutOfMemory (with the size), kUnsupported (beyond the device's largest allocation).
  static Result<Buffer> create(Device& device, std::uint64_t size_bytes, MemoryIntent intent, const char* what);
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  VkBuffer handle() const { return handle_; }
  std::uint64_t size_bytes() const { return size_bytes_; }
  /// The host's view, null where the memory is not host-visible. Mapped for the buffer's whole life.
  std::byte* mapped() const { return mapped_; }
  /// Makes the host's writes visible to later submissions / the device's finished writes visible to the host.
  /// Nothing to do on coherent memory; the range is widened to whole non-coherent atoms.
  Status flush(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;
  Status invalidate(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

 private:
  void swap(Buffer& other) noexcept;
  VkMappedMemoryRange atoms(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

  Device* device_ = nullptr;
  VkBuffer handle_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint64_t size_bytes_ = 0;
  std::byte* mapped_ = nullptr;
  bool coherent_ = true;
  std::optional<MemoryIntent> counted_as_;  ///< set once it is whole
};

}  // namespace rondo::runtime
