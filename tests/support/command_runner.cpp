#include "tests/support/command_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/fmt.h"

extern char** environ;  // NOLINT: POSIX leaves its declaration to the program

namespace rondo::testing {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Pointers to the strings, and a null.
std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> changed_environment(const CommandInput& input) {
  auto changes = input.environment;
  const auto is_changed = [&](std::string_view variable) { return std::any_of(changes.begin(), changes.end(), [&](const auto& change) { return variable.substr(0, variable.find('=')) == change.first; }); };
  if (!is_changed("XDG_CACHE_HOME")) changes.emplace_back("XDG_CACHE_HOME", RONDO_TEST_CACHE);  // what the user has tuned or in quarantine is not under test
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    if (!is_changed(*variable)) variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : changes) {
    if (value) variables.push_back(name + "=" + *value);
  }
  return variables;
}

/// The reading end of one output; closed at its end.
class Output {
 public:
  explicit Output(std::string& text) : text_(text) {
    std::array<int, 2> ends = {-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ADD_FAILURE() << "pipe: " << std::strerror(errno);
    read_ = ends[0];
    write_ = ends[1];
  }
  ~Output() {
    close_end(read_);
    close_end(write_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  int write_end() const { return write_; }
  int read_end() const { return read_; }
  void close_write_end() { close_end(write_); }
  /// Takes what is there; waits for nothing that poll() has not announced.
  void take() {
    std::array<char, 65536> bytes;
    const ssize_t n = ::read(read_, bytes.data(), bytes.size());
    if (n > 0) text_.append(bytes.data(), static_cast<std::size_t>(n));
    if (n == 0) close_end(read_);
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }

  std::string& text_;
  int read_ = -1, write_ = -1;
};

/// Whether the process catches SIGINT already; before that, the signal would end it as any other program.
bool catches_interrupt(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigCgt:", 0) != 0) continue;
    return ((std::strtoull(line.c_str() + 7, nullptr, 16) >> (SIGINT - 1)) & 1) != 0;
  }
  return false;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// CPU time that all threads of the process have used so far.
double cpu_seconds_of(pid_t process) {
  clockid_t clock = 0;
  timespec time = {};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// One run: the process, what it writes, and when it gets its signals.
class Run {
 public:
  explicit Run(const CommandInput& input) : input_(input), out_(result_.out), err_(result_.err) {}

  CommandResult finish() {
    if (!start()) return result_;
    while (!ended()) {
      std::array<pollfd, 2> ends = {pollfd{out_.read_end(), POLLIN, 0}, pollfd{err_.read_end(), POLLIN, 0}};
      ::poll(ends.data(), ends.size(), 2);
      if (ends[0].revents) out_.take();
      if (ends[1].revents) err_.take();
      send_signals();
    }
    while (out_.read_end() >= 0) out_.take();
    while (err_.read_end() >= 0) err_.take();
    return result_;
  }

 private:
  bool start() {
    std::vector<std::string> arguments = {RONDO_COMMAND};
    arguments.insert(arguments.end(), input_.arguments.begin(), input_.arguments.end());
    std::vector<std::string> environment = changed_environment(input_);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (input_.stdout_path.empty()) {
      posix_spawn_file_actions_adddup2(&actions, out_.write_end(), STDOUT_FILENO);
    } else {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, input_.stdout_path.c_str(), O_WRONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, err_.write_end(), STDERR_FILENO);
    const int error = ::posix_spawn(&process_, RONDO_COMMAND, &actions, nullptr, pointers_to(arguments).data(),
                                    pointers_to(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    out_.close_write_end();
    err_.close_write_end();
    if (error != 0) ADD_FAILURE() << RONDO_COMMAND << " can't be started: " << std::strerror(error);
    return error == 0;
  }

  bool ended() {
    int status = 0;
    rusage usage = {};
    if (::wait4(process_, &status, WNOHANG, &usage) != process_) return false;
    result_.seconds = seconds_since(started_);
    if (interrupted_at_) {
      result_.seconds_after_interrupt = seconds_since(*interrupted_at_);
      result_.cpu_seconds_after_interrupt = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) - cpu_at_interrupt_;
    }
    if (WIFEXITED(status)) result_.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
    result_.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
    return true;
  }

  void send_signals() {
    if (!result_.timed_out && Clock::now() - started_ > input_.timeout) {
      result_.timed_out = true;
      ::kill(process_, SIGKILL);
    }
    if (!input_.interrupt || interrupted_at_) return;
    const Interrupt& interrupt = *input_.interrupt;
    if (!due_at_ && (!interrupt.after_output || !result_.out.empty()) &&
        result_.err.find(interrupt.after_message) != std::string::npos && catches_interrupt(process_)) {
      due_at_ = Clock::now() + interrupt.delay;
    }
    if (!due_at_ || Clock::now() < *due_at_) return;
    cpu_at_interrupt_ = cpu_seconds_of(process_);
    interrupted_at_ = Clock::now();
    ::kill(process_, SIGINT);
  }

  const CommandInput& input_;
  CommandResult result_;
  Output out_, err_;
  pid_t process_ = -1;
  Clock::time_point started_ = Clock::now();
  std::optional<Clock::time_point> due_at_, interrupted_at_;
  double cpu_at_interrupt_ = 0;
};

std::string with_gguf_value(std::string bytes, std::string_view key, std::uint32_t type, std::string_view value) {
  const std::uint64_t key_bytes = key.size();
  std::string entry(reinterpret_cast<const char*>(&key_bytes), sizeof(key_bytes));
  entry += key;
  entry.append(reinterpret_cast<const char*>(&type), sizeof(type));
  const std::size_t at = bytes.find(entry);
  EXPECT_NE(at, std::string::npos) << "the file has no key " << key << " of this type";
  if (at != std::string::npos) bytes.replace(at + entry.size(), value.size(), value);
  return bytes;
}

}  // namespace

std::string CommandResult::description() const {
  const std::string end = timed_out ? "it took too long"
                          : signal  ? fmt::format("signal {} ended it", signal)
                                    : fmt::format("exit status {}", exit_status);
  return fmt::format("{} after {:.2f} s\nstdout: {}\nstderr: {}", end, seconds, out.substr(0, 2000),
                     err.substr(0, 2000));
}

CommandResult run_command(const CommandInput& input) { return Run(input).finish(); }

CommandResult run_command(const Arguments& arguments) {
  CommandInput input;
  input.arguments = arguments;
  return run_command(input);
}

Arguments device_arguments(Arguments arguments) {
  const char* validate = std::getenv("RONDO_TEST_VALIDATE");
  if (validate && std::strcmp(validate, "1") == 0) arguments.emplace_back("--validate");
  return arguments;
}

CommandResult run_device_command(const Arguments& arguments) { return run_command(device_arguments(arguments)); }

void expect_error(const CommandResult& result, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_status, status) << result.description();
  constexpr std::string_view kStart = "rondo: error: ", kNotice = "rondo: compiling ";
  std::string_view err = result.err;
  if (err.starts_with(kNotice)) err.remove_prefix(err.find('\n') + 1);  // on a machine that is busy
  EXPECT_TRUE(err.starts_with(kStart)) << result.description();
  EXPECT_GT(err.size(), kStart.size() + 1) << result.description();
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << result.description();
  EXPECT_TRUE(!err.empty() && err.back() == '\n') << result.description();
  EXPECT_EQ(result.out, "") << "an error leaves no result";
  for (const std::string& part : parts)
    EXPECT_NE(result.err.find(part), std::string::npos) << "without '" << part << "': " << result.description();
}

void expect_done(const CommandResult& result) { EXPECT_EQ(result.exit_status, 0) << result.description(); }

std::size_t count_warnings(const CommandResult& result) {
  constexpr std::string_view kWarning = "rondo: warn:";
  std::size_t n = 0;
  for (std::size_t at = result.err.find(kWarning); at != std::string::npos; at = result.err.find(kWarning, at + 1)) ++n;
  return n;
}

nlohmann::json parse_output(const CommandResult& result) {
  nlohmann::json document = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_TRUE(!document.is_discarded() && !result.out.empty() && result.out.back() == '\n')
      << "not one JSON document: " << result.description();
  return document.is_discarded() ? nlohmann::json() : document;
}

TemporaryFolder::TemporaryFolder() {
  folder_ = (std::filesystem::temp_directory_path() / "rondo-test-XXXXXX").string();
  if (!::mkdtemp(folder_.data())) ADD_FAILURE() << folder_ << ": " << std::strerror(errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TemporaryFolder::write(std::string_view name, std::string_view bytes) const {
  std::ofstream stream(path(name), std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  EXPECT_TRUE(stream.good()) << path(name);
  return path(name);
}

std::vector<std::string> TemporaryFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string with_gguf_scalar(std::string bytes, std::string_view key, std::uint32_t value) {
  return with_gguf_value(std::move(bytes), key, 4,
                         std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
}

std::string with_gguf_scalar(std::string bytes, std::string_view key, bool value) {
  return with_gguf_value(std::move(bytes), key, 7, std::string_view(value ? "\1" : "\0", 1));
}

}  // namespace rondo::testing
