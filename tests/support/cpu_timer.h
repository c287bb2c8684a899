// Bounds on time that catch work out of proportion and hold on any machine.
#pragma once

#include <ctime>

namespace rondo::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RONDO_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_TEST_SANITIZED 1
#endif
#endif

/// The CPU time that this process takes from here on: time of other programs doesn't count, and under sanitizers, whose
/// checks take several times what the work does, a tenth of it does.
class CpuTimer {
 public:
  double seconds() const {
#ifdef RONDO_TEST_SANITIZED
    constexpr double kCost = 10;
#else
    constexpr double kCost = 1;
#endif
    return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC / kCost;
  }

 private:
  std::clock_t begin_ = std::clock();
};

#undef RONDO_TEST_SANITIZED

}  // namespace rondo::testing
