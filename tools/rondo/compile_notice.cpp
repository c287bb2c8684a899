#include "tools/rondo/compile_notice.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "runtime/fmt.h"

namespace rondo::tools {

CompileNotice::CompileNotice(const GlobalFlags& flags, std::string text) : text_(std::move(text)), wanted_(flags.log_level != "error") {}

void CompileNotice::begin() {
  if (!wanted_ || thread_.joinable()) return;
  ended_ = false;
  thread_ = std::thread([this] {
    const bool terminal = isatty(STDERR_FILENO) != 0;
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::milliseconds(terminal ? 500 : 2000), [this] { return ended_; })) return;
    fmt::print(stderr, "{}rondo: {}\n", terminal ? "\r" : "", text_);
    wanted_ = false;
  });
}

void CompileNotice::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::string compiling_text(std::size_t n, const Device& device) {
  return fmt::format("compiling {} kernel{} for {} (first run; cached afterwards)", n, n == 1 ? "" : "s", device.info().name);
}

}  // namespace rondo::tools
