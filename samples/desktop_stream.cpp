// desktop_stream MODEL PROMPT [TOKENS [STOP]]: text streams in while the main thread draws sixty frames a second, until STOP.
//
// The main thread never waits for Rondo: a second one loads the model and makes the session, then each frame submits work and
// takes the tokens that are ready. `q` or Ctrl-C cancels. At the end it says what frames and calls took: on a GPU the device's
// work costs this thread nothing; a CPU driver takes its cores from the frames, so look at the CPU time there.
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <rondo/session.h>
#include <rondo/text_stream.h>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr auto kFrameTime = std::chrono::microseconds(16'667);
constexpr auto kLoadPiece = 20ms;  // of work between two looks at whether it is cancelled

volatile std::sig_atomic_t interrupted = 0;

/// What the calls of Rondo took of the main thread: on the clock, and of its CPU.
class CallTimes {
 public:
  template <typename Call>
  auto measure(const char* name, Call call) {
    const Clock::time_point start = Clock::now();
    const double cpu_start_ms = cpu_ms();
    auto result = call();
    const double ms = Milliseconds(Clock::now() - start).count();
    if (ms > worst_ms_) worst_ms_ = ms, worst_ = name;
    worst_cpu_ms_ = std::max(worst_cpu_ms_, cpu_ms() - cpu_start_ms);
    return result;
  }
  void report() const { std::fprintf(stderr, "worst call: %s, %.2f ms; most CPU time of a call: %.2f ms\n", worst_, worst_ms_, worst_cpu_ms_); }

 private:
  static double cpu_ms() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
  }
  const char* worst_ = "none";
  double worst_ms_ = 0, worst_cpu_ms_ = 0;
};

/// Frames from when they were due until they were drawn.
class FrameTimes {
 public:
  void add(Clock::duration time) {
    ++n_;
    n_late_ += time > kFrameTime;
    worst_ = std::max(worst_, time);
  }
  void report(const char* when) const { std::fprintf(stderr, "%u frames while %s, %u over 1/60 s, the worst %.2f ms\n", n_, when, n_late_, Milliseconds(worst_).count()); }

 private:
  unsigned n_ = 0, n_late_ = 0;
  Clock::duration worst_{};
};

/// The other work: a ball that bounces below the text, where stdout is a terminal; only the text elsewhere.
class Screen {
 public:
  Screen() : is_terminal_(isatty(STDOUT_FILENO) && isatty(STDIN_FILENO)) {
    if (!is_terminal_ || tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~Screen() {
    if (is_terminal_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    std::printf("%s%s\n", is_terminal_ ? "\r\033[J" : "", line_.c_str());
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void add(const std::string& text) {
    if (!is_terminal_) return void(std::fwrite(text.data(), 1, text.size(), stdout));
    for (char c : text) {
      if (c == ' ' && line_.size() > 60) c = '\n';
      if (c != '\n') {
        line_ += c;
        continue;
      }
      std::printf("\r\033[J%s\n", line_.c_str());
      line_.clear();
    }
  }
  void draw(unsigned frame, const char* note) const {
    const unsigned x = frame % 100 < 50 ? frame % 100 : 100 - frame % 100;
    if (is_terminal_) std::printf("\r\033[J%s\n%*s  (%s)\033[A\r", line_.c_str(), static_cast<int>(x + 1), "o", note);
    std::fflush(stdout);
  }
  bool quit_pressed() const {
    pollfd keyboard{STDIN_FILENO, POLLIN, 0};
    char key = 0;
    return is_terminal_ && poll(&keyboard, 1, 0) > 0 && read(STDIN_FILENO, &key, 1) == 1 && key == 'q';
  }

 private:
  bool is_terminal_;
  termios before_{};
  std::string line_;
};

struct Loaded {
  rondo::Model model;
  rondo::Session session;
};

/// Reads the file, and has the driver compile its pipelines: some take longer than a frame, and so may the session.
rondo::Result<Loaded> load(rondo::Device& device, const char* path, const std::atomic<bool>& cancelled) {
  RONDO_ASSIGN(rondo::ByteSource file, rondo::open_file(path));
  RONDO_ASSIGN(rondo::Model model, rondo::Model::create(device, file));
  for (bool finished = false; !finished;) {
    if (cancelled) return rondo::Status(rondo::StatusCode::kCancelled, "loading was cancelled");
    RONDO_ASSIGN(const rondo::LoadProgress progress, model.load_some(kLoadPiece));
    finished = progress.finished;
  }
  RONDO_ASSIGN(rondo::Session session, rondo::Session::create(model));
  return Loaded{std::move(model), std::move(session)};
}

/// The text of one prompt, a frame at a time.
class Stream {
 public:
  Stream(rondo::Device& device, const char* path, const char* prompt, std::uint32_t n_tokens, std::vector<std::string> stop_texts)
      : prompt_(prompt), n_tokens_(n_tokens), stop_texts_(std::move(stop_texts)), loading_(std::async(std::launch::async, [this, &device, path] { return load(device, path, cancelled_); })) {}

  /// Does what this frame has to do, and returns.
  rondo::Status step(Screen& screen) {
    if (!loaded_) return begin();
    rondo::Session& session = loaded_->session;
    RONDO_TRY(calls_.measure("advance", [&] { return session.advance(); }));
    std::int32_t taken[32];
    RONDO_ASSIGN(const std::size_t n, calls_.measure("take_tokens", [&] { return session.take_tokens(taken); }));
    for (std::size_t i = 0; i < n && !text_->stopped(); ++i) screen.add(text_->add(taken[i]));
    // What was made beyond a stop text is forgotten, and what is in flight dropped.
    if (text_->stopped()) RONDO_TRY(session.rewind(n_prompt_ + static_cast<std::uint32_t>(text_->n_tokens_before_stop())));
    done_ = session.idle();
    if (done_) screen.add(text_->finish());
    n_taken_ += n;
    return {};
  }
  void cancel() {
    cancelled_ = true;
    if (loaded_) loaded_->session.cancel();
  }
  bool loaded() const { return loaded_.has_value(); }
  bool done() const { return done_; }
  const char* note() const { return cancelled_ ? "stopping" : loaded_ ? "q quits" : "loading; q quits"; }
  void report() const {
    calls_.report();
    const bool cancelled = !loaded_ || loaded_->session.stop_reason() == rondo::StopReason::kCancelled;
    std::fprintf(stderr, "%zu tokens%s\n", n_taken_, cancelled ? ", cancelled" : "");
  }

 private:
  /// Asks for text once the model is there.
  rondo::Status begin() {
    if (loading_.wait_for(0s) != std::future_status::ready) return {};
    rondo::Result<Loaded> loaded = loading_.get();
    done_ = cancelled_;
    if (done_) return {};
    RONDO_ASSIGN(loaded_, std::move(loaded));
    RONDO_ASSIGN(text_, rondo::TextStream::create(loaded_->model.tokenizer(), stop_texts_));
    const std::vector<std::int32_t> ids = loaded_->model.tokenizer().encode(prompt_);
    n_prompt_ = static_cast<std::uint32_t>(ids.size());
    return calls_.measure("append", [&] { return loaded_->session.append(ids, n_tokens_); });
  }

  std::string prompt_;
  std::uint32_t n_tokens_;
  std::vector<std::string> stop_texts_;
  std::atomic<bool> cancelled_{false};
  std::future<rondo::Result<Loaded>> loading_;  // the thread ends before what it uses does
  std::optional<Loaded> loaded_;
  std::optional<rondo::TextStream> text_;
  std::uint32_t n_prompt_ = 0;  // tokens
  CallTimes calls_;
  std::size_t n_taken_ = 0;
  bool done_ = false;
};

rondo::Status run(const char* path, const char* prompt, std::uint32_t n_tokens, std::vector<std::string> stop_texts) {
  RONDO_ASSIGN(rondo::Instance instance, rondo::Instance::create());
  RONDO_ASSIGN(rondo::Device device, rondo::Device::create(instance));
  Stream stream(device, path, prompt, n_tokens, std::move(stop_texts));
  FrameTimes loading, streaming;
  {
    Screen screen;
    screen.add(prompt);
    unsigned frame = 0;
    for (Clock::time_point start = Clock::now(); !stream.done(); ++frame) {
      if (interrupted || screen.quit_pressed()) stream.cancel();
      FrameTimes& times = stream.loaded() ? streaming : loading;
      RONDO_TRY(stream.step(screen));
      screen.draw(frame, stream.note());
      const Clock::time_point drawn = Clock::now();
      times.add(drawn - start);
      std::this_thread::sleep_until(start + kFrameTime);
      start = std::max(start + kFrameTime, drawn);
    }
  }
  loading.report("loading");
  streaming.report("streaming");
  stream.report();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const long n_tokens = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 256;
  if (argc < 3 || n_tokens < 1) return std::fprintf(stderr, "usage: desktop_stream MODEL PROMPT [TOKENS [STOP]]\n"), 2;
  std::signal(SIGINT, [](int) { interrupted = 1; });
  std::vector<std::string> stop_texts;
  if (argc > 4) stop_texts.push_back(argv[4]);
  const rondo::Status status = run(argv[1], argv[2], static_cast<std::uint32_t>(n_tokens), std::move(stop_texts));
  if (!status.ok()) std::fprintf(stderr, "desktop_stream: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
