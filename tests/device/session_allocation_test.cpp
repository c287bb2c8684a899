// Decoding allocates nothing: operator new is replaced for the whole program and counted by thread. What drivers take by
// malloc is theirs.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "tests/device/allocation_counter.h"
#include "tests/device/session_harness.h"

// Where the program's own code lies, told by the linker.
extern "C" const char __executable_start, etext;

namespace rondo::tests {

thread_local std::uint64_t AllocationCounter::n_allocations = 0;
thread_local std::uint64_t AllocationCounter::n_own_allocations = 0;
thread_local std::size_t AllocationCounter::largest_bytes = 0;

namespace {

void* counted(std::size_t size, std::size_t alignment, const void* caller) {
  ++AllocationCounter::n_allocations;
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  if (at >= reinterpret_cast<std::uintptr_t>(&__executable_start) && at < reinterpret_cast<std::uintptr_t>(&etext)) ++AllocationCounter::n_own_allocations;
  AllocationCounter::largest_bytes = std::max(AllocationCounter::largest_bytes, size);
  void* memory = alignment == 0 ? std::malloc(std::max<std::size_t>(size, 1)) : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace
}  // namespace rondo::tests

// The other forms of new and delete call these, but for a sanitizer's, which has its own of each; std::stable_sort's does not
// throw. Not inlined: callers are told apart, and malloc must not meet delete.
[[gnu::noinline]] void* operator new(std::size_t size) { return rondo::tests::counted(size, 0, __builtin_return_address(0)); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return rondo::tests::counted(size, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return rondo::tests::counted(size, 0, __builtin_return_address(0)); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace rondo::tests {
namespace {

TEST(AllocationCounterTest, SeesAllocations) {
  const AllocationCounter counter;
  const auto memory = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(counter.n_allocations, 2u);
  EXPECT_EQ(counter.n_own_allocations, 2u);
  EXPECT_EQ(counter.largest_bytes, 400u);
}

bool validates() {
  const char* value = std::getenv("RONDO_TEST_VALIDATE");
  return value && std::strcmp(value, "1") == 0;
}

class SessionAllocationTest : public SmallModelTest {};

TEST_F(SessionAllocationTest, DecodingAllocatesNothing) {
  const Tokens input = prompt(10);
  for (const std::uint32_t burst : {1u, 16u, 0u}) {
    Session decoding = session(burst, 300);
    (void)continue_with(decoding, input, 20);  // prefill and the first bursts
    RONDO_ASSERT_OK(decoding.append({}, 80));
    std::int32_t taken[64];
    std::size_t n_taken = 0;
    bool ok = true;
    const AllocationCounter counter;
    while (ok && !decoding.idle()) {
      ok = decoding.advance().ok() && decoding.wait(std::chrono::seconds(60)).ok();
      const Result<std::size_t> n = decoding.take_tokens(taken);
      ok = ok && n.ok();
      if (n.ok()) n_taken += *n;
    }
    const std::uint64_t n_allocations = counter.n_allocations, n_own_allocations = counter.n_own_allocations;
    EXPECT_TRUE(ok);
    EXPECT_EQ(n_taken, 80u);
    EXPECT_EQ(n_own_allocations, 0u) << "burst " << burst;
    // Strings are allocated within libstdc++, where it can't be seen for whom: that is told apart where no layer allocates.
    EXPECT_TRUE(n_allocations == 0 || validates()) << n_allocations << " allocations, burst " << burst;
  }
}

}  // namespace
}  // namespace rondo::tests
