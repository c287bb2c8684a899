// One line on stderr where compiling kernels takes long, so that nobody takes a first run for a hang.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "tools/rondo/command.h"

namespace rondo::tools {

/// Prints `rondo: <text>` once, when a phase that it is told of has lasted two seconds, on a terminal half a second; not at all
/// with --log-level error. Not for several threads; a phase ends with the object.
class CompileNotice {
 public:
  CompileNotice(const GlobalFlags& flags, std::string text);
  ~CompileNotice() { end(); }
  CompileNotice(const CompileNotice&) = delete;
  CompileNotice& operator=(const CompileNotice&) = delete;

  /// Compiling begins; nothing happens if it has begun already.
  void begin();
  void end();

 private:
  std::string text_;
  bool wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

/// What is said of `n` kernels.
std::string compiling_text(std::size_t n, const Device& device);

}  // namespace rondo::tools
