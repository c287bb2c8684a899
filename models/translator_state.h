// What a Translator is made of: a session for greedy translations, or the device's side of a beam search.
//
// A beam search has one step in flight: its logits come to the host, models/beam_search.h chooses, and before the next step what
// hypotheses that split have in common is copied, from slots that go on into slots that nobody needs any more. See
// include/rondo/translator.h for threads and errors.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <rondo/translator.h>

#include "models/beam_search.h"
#include "models/loaded_model.h"
#include "models/plan_buffers.h"
#include "models/session_state.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::models {

/// Translates one source at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual Status begin(std::span<const std::int32_t> source) = 0;
  virtual Status advance() = 0;
  /// kTimeout where nothing has come.
  virtual Status wait(std::uint64_t timeout_ns) = 0;
  /// What came of it, once it is over.
  virtual Result<std::optional<BeamSearch::Result>> take() = 0;
};

/// The device's side of a beam search.
class BeamDecoder final : public Decoder {
 public:
  static Result<std::unique_ptr<BeamDecoder>> create(std::shared_ptr<const LoadedModel> model, const TranslatorOptions& options, std::uint32_t n_ctx, std::uint32_t n_source);

  Status begin(std::span<const std::int32_t> source) override;
  Status advance() override;
  Status wait(std::uint64_t timeout_ns) override;
  Result<std::optional<BeamSearch::Result>> take() override;

  const SessionPlan& plan() const { return *plan_; }

 private:
  struct Step {
    StepKind kind;
    runtime::Recording recording;
  };
  /// Rows of one head of a cache, in one buffer.
  struct CacheRows {
    const runtime::Buffer* buffer = nullptr;
    std::uint64_t offset_bytes = 0, row_bytes = 0;
  };

  BeamDecoder(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan, PlanBuffers buffers, const TranslatorOptions& options);
  Status prepare(double max_segment_us);
  void list_caches();
  Status submit(const Step& step, VkCommandBuffer before, VkCommandBuffer after);
  Status submit_source();
  Status submit_step();
  Status finish_step();
  /// Gives the hypotheses that go on their slots, and notes what has to be copied for that.
  void place(std::span<const BeamSearch::Beam> beams);
  const runtime::Buffer& slot(std::uint32_t index) const { return buffers_.slot(index); }

  std::shared_ptr<const LoadedModel> model_;
  runtime::Device* device_;
  std::shared_ptr<const SessionPlan> plan_;
  PlanBuffers buffers_;
  std::uint32_t n_beams_;
  double length_penalty_;
  std::vector<Step> encode_;  ///< shortest first
  Step step_;
  runtime::Buffer readback_;
  runtime::CommandList before_, after_;
  std::vector<std::vector<CacheRows>> caches_;  ///< of each slot

  std::vector<std::int32_t> source_;
  bool source_pending_ = false, over_ = true;
  bool stepping_ = false;  ///< what is in flight is a step of the beams
  std::optional<BeamSearch> search_;
  std::uint32_t position_ = 0;              ///< of the next step's tokens
  std::vector<std::int32_t> tokens_;        ///< of each hypothesis, the next step's
  std::vector<std::uint32_t> slots_;        ///< of each hypothesis
  std::vector<std::pair<std::uint32_t, std::uint32_t>> copies_;  ///< from one slot to another
  std::uint64_t in_flight_ = 0;             ///< the step's value; 0: none
};

class TranslatorState {
 public:
  static Result<std::unique_ptr<TranslatorState>> create(std::shared_ptr<const LoadedModel> model, const TranslatorOptions& options);

  Status append(std::span<const std::int32_t> tokens);
  Status advance();
  Status wait(std::uint64_t timeout_ns);
  Result<bool> take(Translation& translation);
  bool idle() const { return waiting_.empty() && !busy_ && done_.empty(); }
  void forget_all() { waiting_.clear(); }
  const LoadedModel& model() const { return *model_; }

 private:
  TranslatorState(std::shared_ptr<const LoadedModel> model, std::unique_ptr<Decoder> decoder, std::uint32_t n_source) : model_(std::move(model)), decoder_(std::move(decoder)), n_source_(n_source) {}
  Status collect();

  std::shared_ptr<const LoadedModel> model_;
  std::unique_ptr<Decoder> decoder_;
  std::uint32_t n_source_;
  std::deque<std::vector<std::int32_t>> waiting_;
  std::deque<BeamSearch::Result> done_;
  bool busy_ = false;
};

}  // namespace rondo::models
