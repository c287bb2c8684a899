// A set of lanes of a subgroup of up to 128.
#pragma once

#include <bit>
#include <cstdint>

namespace rondo::simulator {

constexpr std::uint32_t kMostLanes = 128;

struct Mask {
  std::uint64_t low = 0, high = 0;

  static constexpr Mask first(std::uint32_t n) {
    const auto ones = [](std::uint32_t k) { return k >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << k) - 1; };
    return {ones(n), n > 64 ? ones(n - 64) : 0};
  }
  constexpr bool has(std::uint32_t lane) const { return ((lane < 64 ? low >> lane : high >> (lane - 64)) & 1u) != 0; }
  constexpr void add(std::uint32_t lane) { (lane < 64 ? low : high) |= std::uint64_t{1} << (lane & 63u); }
  constexpr bool none() const { return (low | high) == 0; }
  constexpr std::uint32_t count() const { return static_cast<std::uint32_t>(std::popcount(low) + std::popcount(high)); }
  /// Of a set that is not empty.
  constexpr std::uint32_t lowest() const { return static_cast<std::uint32_t>(low ? std::countr_zero(low) : 64 + std::countr_zero(high)); }
  constexpr std::uint32_t word(std::uint32_t i) const { return static_cast<std::uint32_t>((i < 2 ? low : high) >> (32 * (i & 1u))); }

  constexpr Mask operator&(Mask other) const { return {low & other.low, high & other.high}; }
  constexpr Mask operator|(Mask other) const { return {low | other.low, high | other.high}; }
  constexpr Mask without(Mask other) const { return {low & ~other.low, high & ~other.high}; }
  bool operator==(const Mask&) const = default;

  /// Calls `each` with every lane, in order.
  template <typename Each>
  void for_each(const Each& each) const {
    for (std::uint64_t rest = low; rest; rest &= rest - 1) each(static_cast<std::uint32_t>(std::countr_zero(rest)));
    for (std::uint64_t rest = high; rest; rest &= rest - 1) each(static_cast<std::uint32_t>(64 + std::countr_zero(rest)));
  }
};

}  // namespace rondo::simulator
