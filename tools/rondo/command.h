// What the subcommands share: global flags, opening devices and models, errors, interruption.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rondo/model.h>
#include <rondo/session.h>

#include "tools/rondo/pipeline_cache_file.h"

namespace rondo::tools {

/// Exit status of the command.
enum ExitStatus : int { kDone = 0, kFailed = 1, kUsage = 2, kInterrupted = 130 };

/// Flags that hold for every subcommand.
struct GlobalFlags {
  std::string device;
  bool names_device = false;  ///< by the flag, not only by the environment
  bool validate = false;
  std::string as;  ///< device profile, or ""
  std::string kv_type = "auto", activations = "auto";
  std::vector<std::string> kernels;  ///< OP=NAME
  bool no_fusion = false;
  double segment_us = 0;
  std::string log_level = "warn";
  std::string pipeline_cache;  ///< a file, "none", or "": one in the user's cache directory
  std::string quarantine;      ///< a file, "none", or "": one beside the pipeline cache
  std::string tuning;          ///< the same
  double started_s = 0;  ///< monotonic time at the entry of main

  /// Without the quarantine, which is the device's.
  ModelOptions model_options() const;
  /// Of operator graphs, which compute what their operators say unless a flag allows less.
  Activations graph_activations() const;
  SessionOptions session_options() const;
};

/// Prints `rondo: error: message` on one line and returns the exit status.
int report(const std::string& message, int status = kFailed);
int report(const Status& status);

/// Monotonic seconds; CPU seconds (user and system) of the calling thread.
double now_s();
double thread_cpu_s();

/// A loaded model with what it runs on.
class Workbench {
 public:
  struct Options {
    bool random_weights = false;  ///< only the source's header is read, and the device makes the weights
    bool self_test = false;
    bool makes_tuning = false;  ///< the file of --tuning may still have to be made
    std::string tokenizer = {};  ///< the model whose tokenizer is used, or "" for its own
    /// What a command needs of a model, looked at before weights are read and kernels compiled; may be empty.
    std::function<Status(const Model&)> accepts = {};
  };
  /// Opens the device, then the model, showing progress on a terminal.
  static Result<std::unique_ptr<Workbench>> open(const GlobalFlags& flags, ByteSource source, const Options& options);
  /// The same for a file.
  static Result<std::unique_ptr<Workbench>> open(const GlobalFlags& flags, const std::string& model_path, const OpenOptions& how, const Options& options);
  ~Workbench();

  Device& device() { return *device_; }
  Model& model() { return *model_; }
  double load_s() const { return load_s_; }
  /// Ends everything; kFailed if the validation layers said something.
  int close();

 private:
  Workbench() = default;
  std::optional<Instance> instance_;
  std::optional<Device> device_;
  std::optional<PipelineCacheFile> cache_file_;
  std::optional<Model> model_;
  double load_s_ = 0;
};

Result<Instance> open_instance(const GlobalFlags& flags);
/// kDone, or kFailed with a line on stderr if the validation layers have said something.
int check_validation(const Instance& instance);
/// The device that the flags choose, clamped to the profile of --as.
Result<Device> open_device(const GlobalFlags& flags, const Instance& instance);

/// While it lives, Ctrl-C cancels `session`.
class Interruptible {
 public:
  explicit Interruptible(Session& session);
  ~Interruptible();
};
/// Makes Ctrl-C end the process with kInterrupted, at once: there is nothing to keep until a session runs.
void install_interrupt_handler();
/// From now on, as from the first Interruptible, Ctrl-C ends nothing by itself: results are on their way out.
void keep_results();
/// Ctrl-C was pressed since.
bool interrupted();

/// Times of one run of a session, monotonic seconds.
struct RunTimes {
  double appended = 0, first_token = 0, last_token = 0, finished = 0;
  double worst_gap = 0;
  double decode_cpu = 0;  ///< of this thread, from the first token to the end
  std::size_t n_tokens = 0;
};

/// Appends `tokens`, asks for `n` more, and drives the session until it is idle or `on_token` says false.
Result<RunTimes> run_session(Session& session, std::span<const std::int32_t> tokens, std::uint32_t n,
                             const std::function<bool(std::int32_t)>& on_token);

/// CLI11's check of --burst, "" if the text is fine; and its value, 0 for auto.
std::string check_burst(const std::string& text);
std::uint32_t parse_burst(const std::string& text);

/// A text from the command line, or that of a file.
struct TextFlags {
  std::string prompt, file;
  bool has_prompt = false, has_file = false;  ///< they were given: a prompt may be empty

  bool given() const { return has_prompt || has_file; }
  /// The text, byte for byte. Errors: those of open_file.
  Result<std::string> read() const;
};

/// "1,2,3" as integers; kInvalidArgument if it is none.
Result<std::vector<std::int32_t>> parse_ids(const std::string& text);
/// CLI11 checks: what is wrong with a flag's text, or "".
std::string check_ids(const std::string& text);
std::string check_u64(const std::string& text);
/// The text is a number in [lowest, highest], or above `lowest` where `open`.
std::function<std::string(const std::string&)> number_check(double lowest, double highest, bool open = false);
/// kInvalidArgument, naming `what`, if an id is outside the vocabulary.
Status check_vocabulary(const std::string& what, std::span<const std::int32_t> ids, std::uint32_t n_vocab);

}  // namespace rondo::tools
