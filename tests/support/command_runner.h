// Runs the rondo command as a user does: another process, its two outputs, its exit status, and Ctrl-C on request.
//
// Owns nothing between calls; POSIX only. With RONDO_TEST_VALIDATE=1, what device_arguments() returns turns the
// validation layers on, whose messages are then an error of the command.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace rondo::testing {

using Arguments = std::vector<std::string>;

/// When to send SIGINT: `delay` after the command has its handler and, if asked for, has written something.
struct Interrupt {
  bool after_output = false;  ///< after the first byte on stdout
  std::string after_message;  ///< after this text on stderr
  std::chrono::milliseconds delay{0};
};

struct CommandInput {
  Arguments arguments;
  /// Changes of the environment: a value, or nothing to remove the variable.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  std::string stdout_path;  ///< where stdout goes in place of CommandResult::out
  std::optional<Interrupt> interrupt;
  std::chrono::milliseconds timeout{120'000};
};

struct CommandResult {
  int exit_status = -1;  ///< -1 if a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string out, err;
  std::uint64_t peak_bytes = 0;  ///< of memory, while it ran
  double seconds = 0;
  double seconds_after_interrupt = 0;      ///< from SIGINT to the end
  double cpu_seconds_after_interrupt = 0;  ///< of all its threads, so that other programs don't count

  /// What happened, for messages of failed tests.
  std::string description() const;
};

CommandResult run_command(const CommandInput& input);
CommandResult run_command(const Arguments& arguments);

/// `arguments` and what every command that opens a device gets from the test's environment.
Arguments device_arguments(Arguments arguments);
/// As run_command, with device_arguments().
CommandResult run_device_command(const Arguments& arguments);

/// Fails the test unless the command ended with `status` and nothing but one line `rondo: error: ...` that contains all
/// of `parts`.
void expect_error(const CommandResult& result, int status, const std::vector<std::string>& parts);
/// Fails the test unless the command ended with status 0.
void expect_done(const CommandResult& result);
/// How many lines `rondo: warn: ...` it printed.
std::size_t count_warnings(const CommandResult& result);
/// Fails the test unless `out` is one JSON document and a line's end; null then.
nlohmann::json parse_output(const CommandResult& result);

/// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The path of `name` in it.
  std::string path(std::string_view name) const { return folder_ + "/" + std::string(name); }
  /// Writes a file there and returns its path.
  std::string write(std::string_view name, std::string_view bytes) const;
  /// Names of what lies there, sorted.
  std::vector<std::string> names() const;

 private:
  std::string folder_;
};

/// The bytes of a GGUF file with the scalar of this key, of `sizeof(value)` bytes, replaced.
std::string with_gguf_scalar(std::string bytes, std::string_view key, std::uint32_t value);
std::string with_gguf_scalar(std::string bytes, std::string_view key, bool value);

}  // namespace rondo::testing
