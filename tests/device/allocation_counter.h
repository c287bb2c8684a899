// Counts operator new on the calling thread; session_allocation_test.cpp replaces it for the whole program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rondo::tests {

struct AllocationCounter {
  static thread_local std::uint64_t n_allocations;
  /// Those made by the program itself, and not by a shared library (layers, drivers, also libstdc++).
  static thread_local std::uint64_t n_own_allocations;
  static thread_local std::size_t largest_bytes;

  /// Counts from here on.
  AllocationCounter() { n_allocations = n_own_allocations = largest_bytes = 0; }
};

}  // namespace rondo::tests
