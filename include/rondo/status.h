// What every fallible call of Rondo returns: Status, or Result<T> for a value or a Status.
//
// Owns its message. Cheap to move, safe to copy, no threads. Nothing in Rondo throws, aborts or prints: whatever goes
// wrong in the outside world (files, drivers, devices, arguments) arrives here, in words that a user can act on.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <rondo/export.h>

namespace rondo {

/// The kind of failure, for programs; the message is for people.
enum class StatusCode : std::uint8_t {
  kOk = 0,
  kInvalidArgument,   ///< the caller passed something that can't be meant
  kNotFound,          ///< a file, device, tensor or symbol that isn't there
  kCorruptData,       ///< a file whose content contradicts itself or its format
  kUnsupported,       ///< legal, but not built yet or beyond this device
  kOutOfMemory,       ///< host or device memory
  kDeviceLost,        ///< VK_ERROR_DEVICE_LOST: every later call on the device says so too
  kTimeout,           ///< a wait ended before what it waited for
  kCancelled,         ///< the session was cancelled
  kIo,                ///< reading or writing failed
  kFailedPrecondition,///< a call out of order
  kInternal,          ///< a bug in Rondo or in the driver
};

/// The code's name in lower case, as in "out of memory". Never null.
RONDO_API const char* status_code_name(StatusCode code);

/// Success, or what failed, where, and the VkResult behind it (0 where none was).
class [[nodiscard]] RONDO_API Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : code_(code), line_(line), file_(file), message_(std::move(message)) {}

  /// A failed Vulkan call. `vk_result` is the VkResult; the code is derived from it.
  static Status from_vulkan(std::int32_t vk_result, std::string message, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE());

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  /// One line, no newline at its end, beginning with the object concerned.
  const std::string& message() const { return message_; }
  /// Source file and line in Rondo where the Status was made; "" and 0 on success.
  const char* file() const { return file_; }
  int line() const { return line_; }
  std::int32_t vk_result() const { return vk_result_; }

  /// The same failure with `prefix` and ": " before its message.
  Status with_prefix(const std::string& prefix) const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::int32_t vk_result_ = 0;
  int line_ = 0;
  const char* file_ = "";
  std::string message_;
};

/// A T, or the Status that says why there is none. `value()` on a failure is a bug of the caller (asserted).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { assert(ok()); return *value_; }
  const T& value() const& { assert(ok()); return *value_; }
  T&& value() && { assert(ok()); return std::move(*value_); }
  T* operator->() { assert(ok()); return &*value_; }
  const T* operator->() const { assert(ok()); return &*value_; }
  T& operator*() & { assert(ok()); return *value_; }
  const T& operator*() const& { assert(ok()); return *value_; }
  T&& operator*() && { assert(ok()); return std::move(*value_); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace rondo

/// Returns the Status of `expression` from the enclosing function if it failed.
#define RONDO_TRY(expression)                              \
  do {                                                     \
    if (::rondo::Status rondo_status_ = (expression); !rondo_status_.ok()) return rondo_status_; \
  } while (false)

#define RONDO_CONCATENATE_(a, b) a##b
#define RONDO_CONCATENATE(a, b) RONDO_CONCATENATE_(a, b)

/// `RONDO_ASSIGN(auto x, make_x());` declares x from a Result, or returns the Result's Status.
#define RONDO_ASSIGN(declaration, ...) \
  RONDO_ASSIGN_(RONDO_CONCATENATE(rondo_result_, __LINE__), declaration, __VA_ARGS__)
#define RONDO_ASSIGN_(result, declaration, ...)    \
  auto result = (__VA_ARGS__);                     \
  if (!result.ok()) return result.status();        \
  declaration = std::move(result).value()
