#include <rondo/model.h>

#include <algorithm>

#include "models/loaded_model.h"
#include "models/model_loader.h"
#include "models/self_test.h"
#include "models/tokenizers/tokenizer_model.h"
#include "models/tuner.h"
#include "models/tuning.h"
#include "runtime/fmt.h"

namespace rondo::models {

Result<std::shared_ptr<const SessionPlan>> plan_default_session(const LoadedModel& model) {
  const Network& network = model.network();
  const runtime::DeviceCaps& caps = model.device.caps();
  constexpr std::uint32_t kSmallest = 16;
  const bool decodes = network.find(Role::kDecode);
  std::uint32_t n_source = default_source(network);
  for (std::uint32_t n_ctx = decodes ? default_context(network) : default_text(network);; n_ctx /= 2, n_source = std::min(n_source, std::max(n_source / 2, kSmallest))) {
    Result<SessionPlan> plan = decodes ? plan_session(network, model.weights, caps, model.options, n_ctx, step_kinds(network, caps, n_ctx, n_source), 1, n_source)
                                       : plan_default_encoder(network, model.weights, caps, model.options, n_ctx);
    if (plan.ok()) return std::make_shared<const SessionPlan>(std::move(plan).value());
    const bool too_large = plan.status().code() == StatusCode::kOutOfMemory || plan.status().code() == StatusCode::kUnsupported;
    if (!too_large || n_ctx <= kSmallest) return plan.status();
  }
}

Result<std::shared_ptr<LoadedModel>> plan_model(std::shared_ptr<runtime::Device> on, ByteSource source, const ModelOptions& options) {
  auto model = std::make_shared<LoadedModel>(std::move(on));
  runtime::Device& device = model->device;
  model->options = options;
  RONDO_ASSIGN(model->checkpoint, open_checkpoint(std::move(source)));
  const Checkpoint& checkpoint = *model->checkpoint;
  const NetworkFacts& facts = checkpoint.network.facts;
  if (options.tokenizer) {
    RONDO_ASSIGN(model->tokenizer, Tokenizer::create(*options.tokenizer));
    if (model->tokenizer.n_vocab() > static_cast<std::int32_t>(facts.n_vocab)) {
      return Status(StatusCode::kInvalidArgument, fmt::format("{}: tokenizer.ggml.tokens has {} entries but the network of {} a vocabulary of {}", options.tokenizer->name,
                                                              model->tokenizer.n_vocab(), checkpoint.file.name(), facts.n_vocab));
    }
  } else if (facts.n_vocab > 0 && TokenizerModel::is_there(checkpoint.file)) {
    RONDO_ASSIGN(std::shared_ptr<const TokenizerModel> tokenizer, TokenizerModel::create(checkpoint.file, &checkpoint.source));
    model->tokenizer = Tokenizer(std::move(tokenizer));
    if (model->tokenizer.n_vocab() != static_cast<std::int32_t>(facts.n_vocab)) {
      return Status(StatusCode::kCorruptData, fmt::format("{}: tokenizer.ggml.tokens has {} entries but the network a vocabulary of {}", checkpoint.file.name(),
                                                          model->tokenizer.n_vocab(), facts.n_vocab));
    }
  }
  RONDO_ASSIGN(model->weights, plan_weights(checkpoint, device.caps()));
  model->info = {facts.architecture, facts.name, facts.n_layers, facts.width, facts.n_heads, facts.n_kv_heads, facts.n_vocab, facts.context, facts.source_context, checkpoint.network.start_tokens, checkpoint.n_parameters, model->weights.size_bytes, facts.n_token_types, facts.head, facts.labels};
  for (std::uint32_t i = static_cast<std::uint32_t>(facts.labels.size()); i < facts.n_labels && facts.head != ModelHead::kAnswers; ++i) model->info.labels.push_back(fmt::format("LABEL_{}", i));
  model->options.tuned = tuned_kernels(device, options.tuning);
  RONDO_ASSIGN(model->plan, plan_default_session(*model));
  log_unfit_choices(device, model->options.tuned, *model->plan);
  if (options.self_test) RONDO_TRY(run_self_test(*model));
  for (const std::uint64_t bytes : model->weights.buffer_bytes) {
    RONDO_ASSIGN(runtime::Buffer buffer, runtime::Buffer::create(device, bytes, runtime::MemoryIntent::kDevice, "weights"));
    model->weight_buffers.push_back(std::move(buffer));
  }
  return model;
}

}  // namespace rondo::models

namespace rondo {

/// A budget that the clock, which counts nanoseconds, can add to now.
constexpr std::chrono::microseconds kLongest = std::chrono::hours(10'000);

Model::Model(std::unique_ptr<models::ModelLoader> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelInfo& Model::info() const {
  static const ModelInfo kNone;
  return impl_ ? impl_->model().info : kNone;
}

const Tokenizer& Model::tokenizer() const {
  static const Tokenizer kNone(nullptr);
  return impl_ ? impl_->model().tokenizer : kNone;
}

Result<Model> Model::create(Device& device, ByteSource source, const ModelOptions& options) {
  if (!device.shared()) return Status(StatusCode::kFailedPrecondition, "model: the Device is empty; it was moved from");
  if (options.activations > Activations::kQ8) {
    return Status(StatusCode::kInvalidArgument, fmt::format("model: activations is {} but must be kAuto (0), kF32 (1), kF16 (2) or kQ8 (3)", static_cast<unsigned>(options.activations)));
  }
  if (options.kv_type > KvType::kQ8_0) {
    return Status(StatusCode::kInvalidArgument, fmt::format("model: kv_type is {} but must be kF16 (0), kF32 (1) or kQ8_0 (2)", static_cast<unsigned>(options.kv_type)));
  }
  RONDO_ASSIGN(std::shared_ptr<models::LoadedModel> planned, models::plan_model(device.shared(), std::move(source), options));
  return Model(std::make_unique<models::ModelLoader>(std::move(planned)));
}

Result<LoadProgress> Model::load_some(std::chrono::microseconds budget) {
  if (!impl_) return Status(StatusCode::kFailedPrecondition, "model: the Model is empty; it was moved from");
  return impl_->load_some(std::clamp(budget, std::chrono::microseconds(0), kLongest));
}

Result<std::string> Model::wait_tuned(const std::function<void(std::size_t, std::size_t)>& on_progress) {
  if (!impl_) return Status(StatusCode::kFailedPrecondition, "model: the Model is empty; it was moved from");
  RONDO_ASSIGN(models::Tuned tuned, models::tune(*impl_, *this, on_progress));
  return std::move(tuned.text);
}

Status Model::wait_loaded() { return load_some(kLongest).status(); }

}  // namespace rondo
