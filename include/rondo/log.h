// Log messages: Rondo prints nothing itself, it calls back.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace rondo {

enum class LogLevel : std::uint8_t { kError, kWarn, kInfo, kDebug };

/// Called with one line without a newline, from the thread that called Rondo, or from a driver's thread for messages of
/// the validation layers. Must not throw, nor call back into Rondo.
using LogCallback = std::function<void(LogLevel level, std::string_view message)>;

}  // namespace rondo
