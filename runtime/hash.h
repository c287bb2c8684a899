// The hash that cached pipelines are known by. Not for anything that an adversary may choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rondo::runtime {

/// Fowler, Noll and Vo's FNV-1a of `bytes`, continued from `hash`.
inline std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
  return hash;
}

}  // namespace rondo::runtime
