#include "tools/isa/isolated.h"

#include <fcntl.h>
#include <poll.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>

#include "runtime/fmt.h"

namespace rondo::isa {

namespace {

/// Of opening: drivers start, and cases are built.
constexpr std::chrono::milliseconds kOpenLimit{60'000};

enum class Frame : std::uint32_t { kAbout, kBegin, kDone, kFailed, kError, kEnd };

struct Header {
  Frame frame{};
  std::uint32_t code = 0;  ///< of an error; of what is done, the complaints so far
  std::uint64_t number = 0;
  std::uint64_t n_bytes = 0;
};

struct Message {
  Header header;
  std::string text;
};

// In the child.

void write_all(int to, const void* bytes, std::size_t n) {
  for (const char* at = static_cast<const char*>(bytes); n > 0;) {
    const ssize_t written = ::write(to, at, n);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // the parent is gone
    at += written, n -= static_cast<std::size_t>(written);
  }
}

void send(int to, Frame frame, std::uint64_t number, const std::string& text, std::uint32_t code = 0) {
  const Header header{frame, code, number, text.size()};
  write_all(to, &header, sizeof header);
  write_all(to, text.data(), text.size());
}

[[noreturn]] void work(const std::function<Result<Jobs>()>& open, std::size_t first, std::size_t most, int to) {
  // Results are the parent's; what a driver prints is no result.
  dup2(STDERR_FILENO, STDOUT_FILENO);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // else a child that hangs would outlive its parent
#endif
  try {
    const Result<Jobs> jobs = open();
    if (!jobs.ok()) {
      send(to, Frame::kError, 0, jobs.status().message(), static_cast<std::uint32_t>(jobs.status().code()));
      _exit(0);
    }
    send(to, Frame::kAbout, jobs->n, jobs->about);
    for (std::size_t i = first; i < jobs->n && i - first < most; ++i) {
      send(to, Frame::kBegin, i, jobs->name(i));
      std::string output;
      Frame how = Frame::kDone;
      try {
        output = jobs->run(i);
      } catch (const std::exception& error) {
        output = error.what();
        how = Frame::kFailed;
      }
      send(to, how, i, output, jobs->n_complaints ? static_cast<std::uint32_t>(jobs->n_complaints()) : 0);
    }
    send(to, Frame::kEnd, 0, "");
  } catch (const std::exception& error) {
    send(to, Frame::kError, 0, error.what(), static_cast<std::uint32_t>(StatusCode::kInternal));
  }
  _exit(0);  // no driver's destructors: some hang
}

// In the parent.

class Child {
 public:
  static Result<Child> start(const std::function<Result<Jobs>()>& open, std::size_t first, std::size_t most) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Status(StatusCode::kInternal, fmt::format("a pipe can't be made: {}", std::strerror(errno)));
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid < 0) {
      close(ends[0]), close(ends[1]);
      return Status(StatusCode::kInternal, fmt::format("a process can't be made: {}", std::strerror(errno)));
    }
    if (pid == 0) {
      close(ends[0]);
      work(open, first, most, ends[1]);
    }
    close(ends[1]);
    Child child;
    child.pid_ = pid, child.from_ = ends[0];
    return child;
  }
  Child(Child&& other) noexcept : pid_(other.pid_), from_(other.from_) { other.pid_ = -1, other.from_ = -1; }
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    wait();
  }

  /// The next message; nothing where there is none, and then `how_it_ended` says why.
  std::optional<Message> receive(std::chrono::milliseconds limit, std::string& how_it_ended) {
    const auto until = std::chrono::steady_clock::now() + limit;
    Message message;
    bool late = false;
    if (read_all(&message.header, sizeof message.header, until, late)) {
      message.text.resize(message.header.n_bytes);
      if (read_all(message.text.data(), message.text.size(), until, late)) return message;
    }
    if (late) {
      kill(pid_, SIGKILL);
      wait();
      how_it_ended = fmt::format("took longer than {} s", static_cast<double>(limit.count()) / 1000);
      return std::nullopt;
    }
    const int status = wait();
    how_it_ended = WIFSIGNALED(status) ? fmt::format("crashed ({})", strsignal(WTERMSIG(status))) : fmt::format("crashed (its process ended with status {})", WEXITSTATUS(status));
    return std::nullopt;
  }

 private:
  Child() = default;
  bool read_all(void* bytes, std::size_t n, std::chrono::steady_clock::time_point until, bool& late) const {
    for (char* at = static_cast<char*>(bytes); n > 0;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
      pollfd waiting{from_, POLLIN, 0};
      const int ready = left > 0 ? poll(&waiting, 1, static_cast<int>(left)) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return late = true, false;
      const ssize_t got = ::read(from_, at, n);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got, n -= static_cast<std::size_t>(got);
    }
    return true;
  }
  /// Takes the process's end, and closes the pipe.
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    close(from_);
    pid_ = from_ = -1;
    return status;
  }

  pid_t pid_ = -1;
  int from_ = -1;
};

}  // namespace

Result<JobsDone> run_isolated(const std::function<Result<Jobs>()>& open, std::chrono::milliseconds limit, const std::function<void(const std::string&)>& on_about,
                              const std::function<bool(const JobResult&)>& on_result) {
  const std::chrono::milliseconds open_limit = std::max(limit, kOpenLimit);
  JobsDone done;
  std::size_t next = 0, n_false_starts = 0;
  bool told = false, alone = false;
  while (!told || next < done.total) {
    RONDO_ASSIGN(Child child, Child::start(open, next, alone ? 1 : SIZE_MAX));
    std::optional<JobResult> current;
    std::size_t n_done = 0, n_complaints = 0;
    const auto finish = [&](const std::string& failure) {
      current->failure = failure;
      if (!failure.empty()) ++done.failed;
      ++n_done, ++next;
      alone = false;
      const bool goes_on = on_result(*current);
      current.reset();
      return goes_on;
    };
    for (bool ended = false; !ended;) {
      std::string how_it_ended;
      const std::optional<Message> message = child.receive(current ? limit : open_limit, how_it_ended);
      if (!message) {
        ended = true;
        if (!current && n_done == 0 && (!told || ++n_false_starts > 1)) return Status(StatusCode::kInternal, fmt::format("the driver {} before its first kernel", how_it_ended));
        if (current && n_done > 0) alone = true;  // again, by itself
        else if (current && !finish(how_it_ended)) return done;
        continue;
      }
      switch (message->header.frame) {
        case Frame::kError: return Status(static_cast<StatusCode>(message->header.code), message->text);
        case Frame::kAbout:
          done.total = message->header.number;
          if (!told) on_about(message->text);
          told = true;
          break;
        case Frame::kBegin: current = {message->header.number, done.total, message->text, "", ""}; break;
        case Frame::kDone:
        case Frame::kFailed: {
          const bool failed = message->header.frame == Frame::kFailed;
          n_complaints = message->header.code;
          if (!failed) current->output = message->text;
          if (!finish(failed ? message->text : "")) return done;
          break;
        }
        case Frame::kEnd: ended = true; break;
      }
    }
    done.complaints += n_complaints;
  }
  return done;
}

}  // namespace rondo::isa
