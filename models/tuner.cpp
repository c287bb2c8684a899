#include "models/tuner.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <rondo/encoder.h>
#include <rondo/session.h>

#include "graph/kernel_choice.h"
#include "models/encoder_state.h"
#include "models/loaded_model.h"
#include "models/model_loader.h"
#include "models/session_state.h"
#include "models/take_all.h"
#include "models/tuning.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

/// Kernels that are measured together: one of linears, and other products that have it, one of attention; "" leaves the choice.
struct Candidates {
  const char* linear;
  const char* attention;
};
constexpr Candidates kNone = {"", ""};
constexpr Candidates kOnGpus[] = {{"subgroup", "subgroup"}, {"dot", "split"}, {"tiled", "tiled"}, {"matrix", "matrix"}, {"dot_tiled", "registers"}, {"half_tiled", "half_subgroup"}, {"vector", ""}, {"halves", ""}};
constexpr Candidates kOnCpus[] = {{"wide", "wide"}, {"tiled", "tiled"}, {"vector", "wide_split"}, {"", "split"}};

/// Measured runs of all steps, behind one that compiles and fills caches; tokens decoded in each, and how deep.
constexpr int kRuns = 3;
constexpr std::uint32_t kDecoded = 6;
constexpr std::size_t kDepth = 1024;
/// A kernel must save so much of a choice's time, and all choices so much of a step's: less is noise.
constexpr double kLeastGain = 0.03, kLeastGainOfStep = 0.005;

/// What one set of kernels took, at least.
struct Measurement {
  using Choices = std::map<std::string, MeasuredKernel, std::less<>>;
  struct Step {
    double us = std::numeric_limits<double>::infinity();
    Choices choices;
  };
  std::map<std::string, Step, std::less<>> steps;  ///< by name
};

class Tuner {
 public:
  Tuner(LoadedModel& loaded, const Model& model, const std::function<void(std::size_t, std::size_t)>& on_progress)
      : loaded_(loaded), model_(model), on_progress_(on_progress), candidates_(loaded.device.caps().type == runtime::DeviceType::kCpu ? std::span<const Candidates>(kOnCpus) : kOnGpus) {}

  /// Leaves in the model's options what is best.
  Result<std::vector<Tuned::Step>> run() {
    const TunedKernels known = std::exchange(loaded_.options.tuned, {});
    RONDO_ASSIGN(const Measurement before, measure(kNone));
    std::vector<Measurement> measured;
    for (const Candidates& candidates : candidates_) {
      Result<Measurement> one = measure(candidates);
      if (one.ok()) measured.push_back(std::move(one).value());
      else if (one.status().code() == StatusCode::kDeviceLost) return one.status();
      else loaded_.device.log(LogLevel::kWarn, fmt::format("tuning: {} and {} are left out: {}", candidates.linear, candidates.attention, one.status().message()));
    }
    TunedKernels& best = loaded_.options.tuned = fastest(before, measured);
    Measurement after = before;
    if (!best.empty()) {
      RONDO_ASSIGN(after, measure(kNone));
    }
    // What a kernel spares may cost another dispatch: a norm that it can't compute, for one.
    for (const auto& [name, step] : before.steps) {
      const auto found = after.steps.find(name);
      if (found != after.steps.end() && found->second.us < (1 - kLeastGainOfStep) * step.us) continue;
      for (const auto& [choice, taken] : step.choices) best.erase(choice);
    }
    std::vector<Tuned::Step> steps;
    for (const auto& [name, step] : before.steps) {
      steps.push_back({name, step.us, step.us, {}});
      for (const auto& [choice, taken] : step.choices) {
        if (!best.contains(choice)) continue;
        const Measurement::Step& now = after.steps.at(name);
        steps.back().us_now = now.us;
        steps.back().choices.push_back({choice, taken, now.choices.at(choice)});
      }
    }
    for (const auto& [choice, kernel] : known) {
      const auto is_measured = [&choice = choice](const auto& step) { return step.second.choices.contains(choice); };
      if (std::none_of(before.steps.begin(), before.steps.end(), is_measured)) best.try_emplace(choice, kernel);  // of other models
    }
    return steps;
  }

 private:
  static TunedKernels fastest(const Measurement& before, const std::vector<Measurement>& measured) {
    TunedKernels best;
    for (const auto& [name, step] : before.steps) {
      for (const auto& [choice, chosen] : step.choices) {
        MeasuredKernel fastest = chosen;
        for (const Measurement& one : measured) {
          const auto in_step = one.steps.find(name);
          if (in_step == one.steps.end()) continue;
          const auto found = in_step->second.choices.find(choice);
          if (found != in_step->second.choices.end() && found->second.us < fastest.us) fastest = found->second;
        }
        if (fastest.name != chosen.name && fastest.us < (1 - kLeastGain) * chosen.us) best[choice] = fastest.name;
      }
    }
    return best;
  }

  Result<Measurement> measure(const Candidates& candidates) {
    if (on_progress_) on_progress_(n_done_++, candidates_.size() + 2);
    auto& measured = loaded_.options.measured;
    measured.clear();
    for (const char* op : {"linear", "linear_glu", "expert_linear", "expert_linear_glu", "patch_embed", "matmul"}) {
      if (*candidates.linear) measured[op] = candidates.linear;
    }
    if (*candidates.attention) measured["attention"] = candidates.attention;
    RONDO_ASSIGN(loaded_.plan, plan_default_session(loaded_));
    Measurement measurement;
    const Network& network = loaded_.network();
    if (network.find(Role::kDecode)) RONDO_TRY(measure_session(measurement));
    if (network.find(Role::kPool)) RONDO_TRY(measure_encoder<Encoder>(Role::kPool, [this](const StepKind& kind) { return some_tokens(static_cast<std::size_t>(kind.rows)); }, measurement));
    if (network.find(Role::kPoolImage)) RONDO_TRY(measure_encoder<ImageEncoder>(Role::kPoolImage, [&](const StepKind&) { return std::vector<float>(network.facts.image.n_values(), 0.5f); }, measurement));
    return measurement;
  }

  Status measure_session(Measurement& measurement) const {
    SessionOptions options;
    options.profile = true;
    options.burst = 1;
    options.use_model_stop_ids = false;
    options.n_ctx = loaded_.plan->memory.n_ctx;
    options.n_source = loaded_.plan->memory.n_source;
    options.max_segment_us = kMostSegmentUs;
    RONDO_ASSIGN(Session session, Session::create(model_, options));
    for (int run = 0; run <= kRuns; ++run) {
      RONDO_TRY(run_steps(session));
      const std::vector<ProfiledStep> profile = session.take_profile();
      if (run > 0) add(profile, session.internal().steps().programs(), measurement);
    }
    return {};
  }

  /// Sources and prefills of every size, then tokens one by one at a depth.
  Status run_steps(Session& session) const {
    const std::size_t most = session.n_ctx() - kDecoded - 1;
    for (const PlannedStep& step : loaded_.plan->steps) {
      if (step.kind.role != Role::kEncode) continue;
      RONDO_TRY(session.set_source(some_tokens(std::min<std::size_t>(static_cast<std::size_t>(step.kind.rows), session.n_source()))));
      RONDO_TRY(session.generate(some_tokens(1), 1).status());
    }
    for (const PlannedStep& step : loaded_.plan->steps) {
      if (step.kind.role != Role::kPrefill && step.kind.role != Role::kPrefillAndSample) continue;
      RONDO_TRY(session.rewind(0));
      RONDO_TRY(session.generate(some_tokens(std::min(most, static_cast<std::size_t>(step.kind.rows))), 1).status());
    }
    RONDO_TRY(session.internal().pretend_depth(static_cast<std::uint32_t>(std::min(most, kDepth))));
    return session.generate(some_tokens(1), kDecoded).status();
  }

  /// Inputs of every length, alone and as many as are computed at once.
  template <typename AnyEncoder, typename MakeInput>
  Status measure_encoder(Role role, const MakeInput& make_input, Measurement& measurement) const {
    EncoderOptions options;
    options.profile = true;
    options.max_tokens = takes_images(role) ? 0 : loaded_.plan->memory.n_ctx;
    options.max_segment_us = kMostSegmentUs;
    RONDO_ASSIGN(AnyEncoder encoder, AnyEncoder::create(model_, options));
    const std::vector<const runtime::Program*> programs = encoder.internal().programs();
    for (int run = 0; run <= kRuns; ++run) {
      std::size_t next = 0;  // its programs are those of the plan's steps, in their order
      for (const PlannedStep& step : loaded_.plan->steps) {
        if (step.kind.role != role) continue;
        if (next == programs.size()) break;
        const std::vector inputs(static_cast<std::size_t>(step.kind.n_texts), make_input(step.kind));
        const auto append = [&encoder](const auto& input) { return encoder.append(input); };
        RONDO_TRY(append_and_take_all<Encoding>(encoder.internal(), std::span(inputs), append).status());
        const std::vector<ProfiledStep> profile = encoder.take_profile();
        if (run > 0) add(profile, {programs[next]}, measurement, fmt::format(" x {}", step.kind.n_texts));
        ++next;
      }
    }
    return {};
  }

  std::vector<std::int32_t> some_tokens(std::size_t n) const {
    std::vector<std::int32_t> tokens(n);
    for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<std::int32_t>((i * 7919 + 1) % loaded_.info.n_vocab);
    return tokens;
  }

  static void add(const std::vector<ProfiledStep>& profile, const std::vector<const runtime::Program*>& programs, Measurement& measurement, const std::string& batch = "") {
    for (const ProfiledStep& profiled : profile) {
      const auto program = std::find_if(programs.begin(), programs.end(), [&](const runtime::Program* one) { return one->name == profiled.name; });
      if (program == programs.end() || (*program)->dispatches.size() != profiled.dispatches.size() || profiled.dispatches.empty()) continue;
      Measurement::Choices taken;
      for (std::size_t i = 0; i < profiled.dispatches.size(); ++i) {
        const runtime::Dispatch& dispatch = (*program)->dispatches[i];
        if (dispatch.choice.empty()) continue;
        MeasuredKernel& one = taken[dispatch.choice];
        one.us += profiled.dispatches[i].end_us - profiled.dispatches[i].begin_us;
        if (one.name.empty()) one.name = graph::chosen_kernel(dispatch);
      }
      Measurement::Step& step = measurement.steps[profiled.name + batch];
      step.us = std::min(step.us, profiled.dispatches.back().end_us - profiled.dispatches.front().begin_us);
      for (const auto& [choice, kernel] : taken) {
        MeasuredKernel& least = step.choices.try_emplace(choice, kernel).first->second;
        least.us = std::min(least.us, kernel.us);
      }
    }
  }

  static constexpr double kMostSegmentUs = 100'000;
  LoadedModel& loaded_;
  const Model& model_;
  const std::function<void(std::size_t, std::size_t)>& on_progress_;
  std::span<const Candidates> candidates_;
  std::size_t n_done_ = 0;
};

}  // namespace

Result<Tuned> tune(ModelLoader& loader, const Model& model, const std::function<void(std::size_t, std::size_t)>& on_progress) {
  RONDO_ASSIGN(const std::shared_ptr<LoadedModel> loaded, loader.tunable());
  if (loaded->device.caps().timestamp_bits == 0) return Status(StatusCode::kUnsupported, fmt::format("tuning: device {} has no timestamps", loaded->device.caps().name));
  const PlanOptions before = loaded->options;
  const std::shared_ptr<const SessionPlan> plan = loaded->plan;
  Result<std::vector<Tuned::Step>> steps = Tuner(*loaded, model, on_progress).run();
  loaded->options.measured.clear();
  if (steps.ok()) {
    Result<std::shared_ptr<const SessionPlan>> tuned_plan = plan_default_session(*loaded);
    if (tuned_plan.ok()) {
      loaded->plan = std::move(tuned_plan).value();
      return Tuned{std::move(steps).value(), write_tuning(loaded->device, loaded->options.tuned)};
    }
    steps = tuned_plan.status();
  }
  loaded->options = before;
  loaded->plan = plan;
  return steps.status().with_prefix("tuning");
}

}  // namespace rondo::models
