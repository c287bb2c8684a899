// What an Encoder or ImageEncoder is made of: recordings for a few lengths and batch sizes, inputs that wait for one, and runs.
//
// A run is: a copy of its inputs from host memory, a recording's segments, a copy of the output to host memory. Two segments are in
// flight at a time; a run's host memory is its slot's until the host has seen its output. See include/rondo/encoder.h for threads
// and errors.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <rondo/encoder.h>

#include "models/loaded_model.h"
#include "models/plan_buffers.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::models {

class EncoderState {
 public:
  static Result<std::unique_ptr<EncoderState>> create(std::shared_ptr<const LoadedModel> model, const EncoderOptions& options, bool images);

  Status append(std::span<const std::int32_t> tokens, std::span<const std::int32_t> types);
  Status append(std::span<const float> pixels);
  Status advance();
  Status wait(std::uint64_t timeout_ns);
  Result<bool> take(Encoding& encoding);
  bool idle() const { return results_.empty(); }
  /// Forgets all that was appended, of which nothing was submitted.
  void forget_all();

  const LoadedModel& model() const { return *model_; }
  const EncoderStatistics& statistics() const { return statistics_; }
  std::vector<ProfiledStep> take_profile() { return std::exchange(profile_, {}); }
  std::uint32_t max_tokens() const { return plan_->memory.n_ctx; }
  /// The Programs as recorded, for proofs.
  std::vector<const runtime::Program*> programs() const;
  const SessionPlan& plan() const { return *plan_; }

 private:
  struct Input {
    std::uint64_t ticket = 0;
    std::vector<std::int32_t> tokens, types;
    std::vector<float> pixels;
    std::int64_t n_rows = 0;
  };
  struct Step {
    StepKind kind;
    const runtime::Program* program = nullptr;  ///< of the plan
    runtime::TimestampPool timestamps;
    runtime::Recording recording;
  };
  /// Of one run: its host memory, and what it is about.
  struct Slot {
    runtime::Buffer upload, readback;
    runtime::CommandList before, after;
    bool busy = false;
    std::size_t step = 0, next_segment = 0;
    std::vector<Input> inputs;
    VkCommandBuffer before_commands = VK_NULL_HANDLE, after_commands = VK_NULL_HANDLE;
  };
  struct Segment {
    std::uint64_t value = 0;
    std::size_t slot = 0;
    bool last = false;
  };
  static constexpr std::size_t kSlots = 2, kMostInFlight = 2;

  EncoderState(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan, PlanBuffers buffers, const EncoderOptions& options, Role role);
  Status prepare(const EncoderOptions& options);
  Status poll();
  Status finish(Slot& slot);
  /// What a step of so many rows has left of the text or image number `index`.
  Encoding read_encoding(const Slot& slot, std::size_t index, std::int64_t rows) const;
  Result<bool> begin_run();
  Status stage(Slot& slot);
  Status submit_segment(std::size_t slot);
  /// The shortest recordings that hold `n_rows`, by rows.
  std::int64_t rows_for(std::int64_t n_rows) const;
  void add(Input input);

  std::shared_ptr<const LoadedModel> model_;
  runtime::Device* device_;
  std::shared_ptr<const SessionPlan> plan_;
  PlanBuffers buffers_;
  Role role_;
  const RoleSpec* spec_;
  Pooling pooling_;
  bool profiles_;
  std::vector<Step> steps_;  ///< fewest rows first, and of as many the one with fewest texts
  std::vector<Slot> slots_;
  std::deque<Segment> in_flight_;
  std::optional<std::size_t> unfinished_;  ///< the slot whose run is submitted in part
  std::deque<Input> waiting_;
  std::uint64_t first_ticket_ = 0;
  std::deque<std::optional<Encoding>> results_;  ///< of all inputs that were not taken, from first_ticket_ on
  EncoderStatistics statistics_;
  std::vector<ProfiledStep> profile_;
};

}  // namespace rondo::models
