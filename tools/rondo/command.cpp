#include "tools/rondo/command.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "models/model_loader.h"
#include "runtime/fmt.h"
#include "tools/rondo/compile_notice.h"
#include "tools/rondo/profiles.h"
#include "tools/rondo/quarantine_file.h"
#include "tools/rondo/tuning_file.h"

namespace rondo::tools {

namespace {

Activations find_activations(std::string_view name) {
  return name == "f32" ? Activations::kF32 : name == "f16" ? Activations::kF16 : name == "q8" ? Activations::kQ8 : Activations::kAuto;
}

}  // namespace

Activations GlobalFlags::graph_activations() const { return activations == "auto" ? Activations::kF32 : find_activations(activations); }

ModelOptions GlobalFlags::model_options() const {
  ModelOptions options;
  options.kv_type = kv_type == "f32" ? KvType::kF32 : kv_type == "q8_0" ? KvType::kQ8_0 : KvType::kF16;
  options.activations = find_activations(activations);
  options.fusion = !no_fusion;
  for (const std::string& kernel : kernels) {
    const std::size_t equals = kernel.find('=');
    options.kernels[kernel.substr(0, equals)] = kernel.substr(equals + 1);
  }
  return options;
}

SessionOptions GlobalFlags::session_options() const {
  SessionOptions options;
  if (segment_us > 0) options.max_segment_us = segment_us;
  return options;
}

int report(const std::string& message, int status) {
  std::string line = message;  // names from files and file systems may hold anything
  std::replace_if(line.begin(), line.end(), [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  std::fprintf(stderr, "rondo: error: %s\n", line.c_str());
  return status;
}

int report(const Status& status) {
  if (interrupted()) return kInterrupted;  // whatever failed after Ctrl-C failed because of it
  return report(status.message());
}

double now_s() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

namespace {

std::atomic<bool> interrupt_flag{false}, ends_at_once{true};
std::atomic<Session*> interruptible_session{nullptr};

void on_interrupt(int) {
  if (ends_at_once) _exit(kInterrupted);
  interrupt_flag = true;
  if (Session* session = interruptible_session) session->cancel();
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

void keep_results() { ends_at_once = false; }

bool interrupted() { return interrupt_flag; }

Interruptible::Interruptible(Session& session) {
  keep_results();
  interruptible_session = &session;
  if (interrupt_flag) session.cancel();
}
Interruptible::~Interruptible() { interruptible_session = nullptr; }

Result<Instance> open_instance(const GlobalFlags& flags) {
  InstanceOptions options;
  options.validate = flags.validate;
  const char* const names[] = {"error", "warn", "info", "debug"};
  const auto most = std::find(std::begin(names), std::end(names), flags.log_level) - std::begin(names);
  options.log = [most, names](LogLevel level, std::string_view message) {
    if (static_cast<std::ptrdiff_t>(level) > most) return;
    std::fprintf(stderr, "rondo: %s: %.*s\n", names[static_cast<std::size_t>(level)], static_cast<int>(message.size()), message.data());
  };
  return Instance::create(options);
}

int check_validation(const Instance& instance) {
  const std::uint64_t messages = instance.n_validation_messages();
  if (messages == 0) return kDone;
  return report(fmt::format("validation: the layers printed {} messages; see above", messages));
}

Result<Device> open_device(const GlobalFlags& flags, const Instance& instance) {
  RONDO_ASSIGN(const std::optional<DeviceProfile> profile, find_profile(flags.as));
  DeviceOptions options;
  if (profile) options.profile = &*profile;
  return Device::create(instance, flags.device, options);
}

Result<std::unique_ptr<Workbench>> Workbench::open(const GlobalFlags& flags, const std::string& model_path, const OpenOptions& how, const Options& options) {
  RONDO_ASSIGN(ByteSource source, open_model(model_path, how));
  return open(flags, std::move(source), options);
}

Result<std::unique_ptr<Workbench>> Workbench::open(const GlobalFlags& flags, ByteSource source, const Options& how) {
  std::unique_ptr<Workbench> bench(new Workbench());
  RONDO_ASSIGN(Instance instance, open_instance(flags));
  bench->instance_.emplace(std::move(instance));
  RONDO_ASSIGN(Device device, open_device(flags, *bench->instance_));
  bench->device_.emplace(std::move(device));
  const double start = now_s();
  bench->cache_file_.emplace(*bench->device_, flags.pipeline_cache);
  bench->cache_file_->load();
  ModelOptions options = flags.model_options();
  options.executor = thread_pool();
  const QuarantineFile quarantine(*bench->device_, flags.quarantine, flags.pipeline_cache);
  RONDO_ASSIGN(options.quarantine, quarantine.load(how.self_test));
  options.self_test = how.self_test;
  const TuningFile tuning(*bench->device_, flags);
  RONDO_ASSIGN(options.tuning, how.makes_tuning ? tuning.load_to_replace() : tuning.load());
  if (!how.tokenizer.empty()) {
    RONDO_ASSIGN(options.tokenizer, open_model(how.tokenizer));
  }
  options.on_quarantine = [&](const std::string& kernel) { quarantine.add({&kernel, 1}); };
  Result<Model> created = Model::create(*bench->device_, std::move(source), options);
  if (!created.ok()) return quarantine.with_advice(created.status());
  if (how.self_test && quarantine.is_named()) quarantine.add({});  // later commands that name it find it
  Model model = std::move(created).value();
  if (how.accepts) RONDO_TRY(how.accepts(model));
  bench->model_.emplace(std::move(model));
  if (how.random_weights) bench->model_->internal()->use_random_weights();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  bool shown = false;
  const models::ModelLoader& loader = *bench->model_->internal();
  CompileNotice notice(flags, compiling_text(loader.n_kernels(), *bench->device_));
  for (;;) {
    if (loader.is_compiling()) notice.begin();
    else notice.end();
    RONDO_ASSIGN(const LoadProgress progress, bench->model_->load_some(std::chrono::milliseconds(50)));
    if (progress.finished) break;
    if (!terminal || now_s() - start < 1) continue;
    std::fprintf(stderr, "\rloading %3d %%", static_cast<int>(100 * progress.bytes_done / std::max<std::uint64_t>(progress.bytes_total, 1)));
    shown = true;
  }
  if (shown) std::fprintf(stderr, "\r             \r");
  bench->load_s_ = now_s() - start;
  bench->cache_file_->save();
  return bench;
}

Workbench::~Workbench() = default;

int Workbench::close() {
  model_.reset();
  device_.reset();
  const int checked = check_validation(*instance_);
  instance_.reset();
  return checked;
}

Result<RunTimes> run_session(Session& session, std::span<const std::int32_t> tokens, std::uint32_t n, const std::function<bool(std::int32_t)>& on_token) {
  RunTimes times;
  times.appended = now_s();
  RONDO_TRY(session.append(tokens, n));
  if (interrupted()) session.cancel();
  double cpu_at_first = thread_cpu_s();
  bool wanted = true;
  while (wanted && !session.idle()) {
    RONDO_TRY(session.advance());
    const Status waited = session.wait(std::chrono::seconds(1));
    if (!waited.ok() && waited.code() != StatusCode::kTimeout && waited.code() != StatusCode::kCancelled) return waited;
    std::int32_t taken[64];
    RONDO_ASSIGN(const std::size_t n_taken, session.take_tokens(taken));
    if (n_taken == 0) continue;
    const double now = now_s();
    if (times.n_tokens == 0) {
      times.first_token = now;
      cpu_at_first = thread_cpu_s();
    } else {
      times.worst_gap = std::max(times.worst_gap, now - times.last_token);
    }
    times.last_token = now;
    times.n_tokens += n_taken;
    for (std::size_t i = 0; i < n_taken && wanted; ++i) wanted = !on_token || on_token(taken[i]);
  }
  times.decode_cpu = thread_cpu_s() - cpu_at_first;
  times.finished = now_s();
  return times;
}

std::string check_burst(const std::string& text) {
  if (text == "auto") return "";
  const bool digits = !text.empty() && text.size() <= 2 && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && std::stoi(text) >= 1 && std::stoi(text) <= 64 ? "" : "--burst takes auto or a number from 1 to 64";
}

std::uint32_t parse_burst(const std::string& text) { return text == "auto" ? 0 : static_cast<std::uint32_t>(std::stoul(text)); }

Result<std::string> TextFlags::read() const {
  if (has_prompt) return prompt;
  RONDO_ASSIGN(const ByteSource source, open_file(file));
  std::string text(source.size_bytes, '\0');
  RONDO_TRY(source.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::vector<std::int32_t>> parse_ids(const std::string& text) {
  std::vector<std::int32_t> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    std::int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next != end && *next != ',') || next + 1 == end) {
      return Status(StatusCode::kInvalidArgument, fmt::format("'{}' is not a list of token ids like 1,2,3", text.substr(0, 80)));
    }
    ids.push_back(id);
    at = next == end ? end : next + 1;
  }
  return ids;
}

std::string check_ids(const std::string& text) {
  const auto ids = parse_ids(text);
  return ids.ok() ? "" : ids.status().message();
}

std::string check_u64(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped_at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped_at == end ? "" : fmt::format("'{}' is not a whole number from 0 to 2^64 - 1", text);
}

std::function<std::string(const std::string&)> number_check(double lowest, double highest, bool open) {
  return [lowest, highest, open](const std::string& text) -> std::string {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped_at, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stopped_at == end && (open ? value > lowest : value >= lowest) && value <= highest) return "";
    return fmt::format("'{}' is not a number {} {} and at most {}", text, open ? "above" : "of at least", lowest, highest);
  };
}

Status check_vocabulary(const std::string& what, std::span<const std::int32_t> ids, std::uint32_t n_vocab) {
  for (std::int32_t id : ids) {
    if (id >= 0 && static_cast<std::uint32_t>(id) < n_vocab) continue;
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: id {} is outside the vocabulary of {}", what, id, n_vocab));
  }
  return {};
}

}  // namespace rondo::tools
