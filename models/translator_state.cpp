#include "models/translator_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "graph/cache_layout.h"
#include "models/model_loader.h"
#include "models/take_all.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

constexpr std::uint32_t kMostBeams = 16, kUsualTokens = 512;

/// Greedily, as a session does it: on the device, many steps at a time.
class GreedyDecoder final : public Decoder {
 public:
  GreedyDecoder(std::unique_ptr<SessionState> session, std::span<const std::int32_t> start, std::uint32_t max_tokens) : session_(std::move(session)), start_(start.begin(), start.end()), max_tokens_(max_tokens) {}

  Status begin(std::span<const std::int32_t> source) override {
    result_ = {};
    RONDO_TRY(session_->set_source(source));
    return session_->append(start_, max_tokens_);
  }
  Status advance() override { return session_->advance(); }
  Status wait(std::uint64_t timeout_ns) override { return session_->wait(timeout_ns); }
  Result<std::optional<BeamSearch::Result>> take() override {
    std::array<std::int32_t, 64> tokens;
    for (;;) {
      RONDO_ASSIGN(const std::size_t n, session_->take_tokens(tokens));
      result_.tokens.insert(result_.tokens.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
      if (n < tokens.size()) break;
    }
    if (!session_->idle()) return std::optional<BeamSearch::Result>();
    result_.ended = session_->stop_reason() == StopReason::kStopId;
    return std::optional(std::move(result_));
  }

 private:
  std::unique_ptr<SessionState> session_;
  std::vector<std::int32_t> start_;
  std::uint32_t max_tokens_;
  BeamSearch::Result result_;
};

Status check_options(const Network& network, const TranslatorOptions& options) {
  const auto refuse = [](const std::string& what) { return Status(StatusCode::kInvalidArgument, "translator: " + what); };
  if (network.facts.source_context == 0 || !network.find(Role::kDecode)) return Status(StatusCode::kUnsupported, fmt::format("translator: {} is no encoder-decoder", network.facts.architecture));
  if (options.beams < 1 || options.beams > kMostBeams) return refuse(fmt::format("beams is {} but must be in [1, {}]", options.beams, kMostBeams));
  if (!(std::fabs(options.length_penalty) <= 10)) return refuse(fmt::format("length_penalty is {} but must be from -10 to 10", options.length_penalty));
  if (!(options.max_segment_us > 0)) return refuse("max_segment_us must be positive");
  if (options.max_source > network.facts.source_context) return refuse(fmt::format("max_source is {} but {} was made for {}", options.max_source, network.facts.architecture, network.facts.source_context));
  return {};
}

}  // namespace

Result<std::unique_ptr<BeamDecoder>> BeamDecoder::create(std::shared_ptr<const LoadedModel> model, const TranslatorOptions& options, std::uint32_t n_ctx, std::uint32_t n_source) {
  const Network& network = model->network();
  const std::vector<StepKind> kinds = beam_kinds(network, options.beams, n_source);
  PlanOptions of_model = model->options;
  if (of_model.kv_type == KvType::kQ8_0) of_model.kv_type = KvType::kF16;  // planes of a source can't be one for all
  RONDO_ASSIGN(SessionPlan planned, plan_session(network, model->weights, model->device.caps(), of_model, n_ctx, kinds, options.beams, n_source, true));
  auto plan = std::make_shared<const SessionPlan>(std::move(planned));
  RONDO_ASSIGN(PlanBuffers buffers, PlanBuffers::create(model, plan));
  std::unique_ptr<BeamDecoder> decoder(new BeamDecoder(std::move(model), std::move(plan), std::move(buffers), options));
  RONDO_TRY(decoder->prepare(options.max_segment_us));
  return decoder;
}

BeamDecoder::BeamDecoder(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan, PlanBuffers buffers, const TranslatorOptions& options)
    : model_(std::move(model)), device_(&model_->device), plan_(std::move(plan)), buffers_(std::move(buffers)), n_beams_(options.beams), length_penalty_(options.length_penalty), before_(*device_), after_(*device_) {}

Status BeamDecoder::prepare(double max_segment_us) {
  const std::vector<const runtime::Buffer*> table = buffers_.table();
  for (const PlannedStep& planned : plan_->steps) {
    const runtime::Program& program = planned.lowered.program;
    const std::vector<runtime::Segment> segments = graph::cut_segments(program, device_->caps(), max_segment_us * 1000);
    RONDO_ASSIGN(runtime::Recording recording, runtime::Recording::create(*device_, program, segments, table));
    if (planned.kind.role == Role::kEncode) encode_.push_back({planned.kind, std::move(recording)});
    else step_ = {planned.kind, std::move(recording)};
  }
  RONDO_ASSIGN(readback_, runtime::Buffer::create(*device_, plan_->memory.slots[plan_->output_slot].size_bytes, runtime::MemoryIntent::kReadback, "logits of beams"));
  list_caches();
  // What a kernel may read before it is written is finite.
  RONDO_TRY(before_.begin());
  for (const runtime::Buffer& cache : buffers_.slots_from(plan_->output_activation_slot + 1)) before_.fill(cache, 0);
  for (const std::uint32_t index : {plan_->places.state.buffer, plan_->places.tokens.buffer, plan_->activation_slot}) before_.fill(slot(index), 0);
  before_.fill(slot(plan_->places.source_state.buffer), 0);
  RONDO_ASSIGN(const VkCommandBuffer commands, before_.end());
  const runtime::Batch batch{{&commands, 1}};
  RONDO_ASSIGN(in_flight_, device_->submit({&batch, 1}));
  return {};
}

/// Where the rows of each slot's caches lie.
void BeamDecoder::list_caches() {
  const StepPlaces& places = plan_->places;
  const Network& network = model_->network();
  caches_.resize(n_beams_);
  for (std::size_t i = 0; i < network.caches.size(); ++i) {
    const CacheSpec& spec = network.caches[i];
    if (spec.extent == CacheExtent::kSource) continue;
    const CachePlaces& cache = places.caches[i];
    const auto positions = static_cast<std::uint64_t>(cache.positions), n_heads = static_cast<std::uint64_t>(spec.n_heads);
    for (const auto& [pieces, width] : {std::pair{&cache.keys, spec.key_width}, std::pair{&cache.values, spec.value_width}}) {
      std::uint64_t head = 0;
      for (const graph::StoragePiece& piece : *pieces) {
        const graph::CacheLayout layout = graph::cache_layout(places.kv_type, piece.count * cache.positions, width);
        const std::uint64_t row_bytes = static_cast<std::uint64_t>(layout.row_elements) * (places.kv_type == graph::Type::kF32 ? 4 : 2);
        for (std::uint64_t of_piece = 0; of_piece < static_cast<std::uint64_t>(piece.count); ++of_piece, ++head) {
          caches_[head / n_heads].push_back({&slot(piece.place.buffer), piece.place.offset_bytes + of_piece * positions * row_bytes, row_bytes});
        }
      }
    }
  }
}

Status BeamDecoder::begin(std::span<const std::int32_t> source) {
  const std::vector<std::int32_t>& start = model_->network().start_tokens;
  BeamSearch::Options options{n_beams_, length_penalty_, plan_->memory.n_ctx - static_cast<std::uint32_t>(start.size()), {}};
  for (const std::int32_t id : model_->tokenizer.stop_ids()) options.end_ids.push_back(id);
  search_.emplace(std::move(options));
  source_.assign(source.begin(), source.end());
  source_pending_ = true, over_ = false;
  position_ = 0;
  tokens_.assign(1, start[0]);
  slots_.assign(1, 0);
  copies_.clear();
  return {};
}

Status BeamDecoder::submit(const Step& step, VkCommandBuffer before, VkCommandBuffer after) {
  const std::span<const VkCommandBuffer> segments = step.recording.command_buffers();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    std::array<VkCommandBuffer, 3> commands{};
    std::size_t n = 0;
    if (i == 0) commands[n++] = before;
    commands[n++] = segments[i];
    if (i + 1 == segments.size() && after != VK_NULL_HANDLE) commands[n++] = after;
    const runtime::Batch batch{std::span<const VkCommandBuffer>(commands).first(n)};
    RONDO_ASSIGN(in_flight_, device_->submit({&batch, 1}));
  }
  return {};
}

Status BeamDecoder::submit_source() {
  const StepPlaces& places = plan_->places;
  const auto n = static_cast<std::int64_t>(source_.size());
  const auto step = std::find_if(encode_.begin(), encode_.end(), [&](const Step& each) { return each.kind.rows >= n; });
  const std::int32_t words[] = {0, static_cast<std::int32_t>(n), 1};
  static_assert(RONDO_STATE_POSITION == 0 && RONDO_STATE_COUNT == 1 && RONDO_STATE_ACTIVE == 2);
  const runtime::Buffer& buffer = slot(places.source_state.buffer);
  RONDO_TRY(before_.begin());
  before_.update(buffer, places.source_state.offset_bytes, std::as_bytes(std::span(words)));
  before_.update(buffer, places.source_lengths.offset_bytes, std::as_bytes(std::span(words).subspan(1, 1)));
  before_.update(buffer, places.source_tokens.offset_bytes, std::as_bytes(std::span(source_)));
  RONDO_ASSIGN(const VkCommandBuffer before, before_.end());
  RONDO_TRY(submit(*step, before, VK_NULL_HANDLE));
  source_pending_ = false;
  return {};
}

Status BeamDecoder::submit_step() {
  const StepPlaces& places = plan_->places;
  RONDO_TRY(before_.begin());
  for (const auto& [from, to] : copies_) {
    for (std::size_t i = 0; i < caches_[from].size(); ++i) {
      const CacheRows &source = caches_[from][i], &target = caches_[to][i];
      before_.copy(*source.buffer, source.offset_bytes, *target.buffer, target.offset_bytes, position_ * source.row_bytes);
    }
  }
  std::vector<std::int32_t> state(std::size_t{n_beams_} * RONDO_STATE_WORDS);
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    std::int32_t* const words = &state[slots_[i] * RONDO_STATE_WORDS];
    words[RONDO_STATE_POSITION] = static_cast<std::int32_t>(position_);
    words[RONDO_STATE_COUNT] = words[RONDO_STATE_ACTIVE] = 1;
    before_.update(slot(places.tokens.buffer), (std::uint64_t{slots_[i]} * plan_->memory.n_ctx + position_) * 4, std::as_bytes(std::span(tokens_).subspan(i, 1)));
  }
  before_.update(slot(places.state.buffer), 0, std::as_bytes(std::span(state)));
  RONDO_ASSIGN(const VkCommandBuffer before, before_.end());
  RONDO_TRY(after_.begin());
  after_.copy(slot(plan_->output_slot), 0, readback_, 0, std::uint64_t{n_beams_} * model_->info.n_vocab * 4);
  RONDO_ASSIGN(const VkCommandBuffer after, after_.end());
  return submit(step_, before, after);
}

void BeamDecoder::place(std::span<const BeamSearch::Beam> beams) {
  constexpr std::uint32_t kNowhere = ~0u;
  std::vector<std::uint32_t> slots(beams.size(), kNowhere);
  std::vector<bool> taken(n_beams_, false);
  copies_.clear();
  // The first of each parent's children stays where the parent was.
  for (std::size_t i = 0; i < beams.size(); ++i) {
    const std::uint32_t parent = slots_[beams[i].parent];
    if (taken[parent]) continue;
    slots[i] = parent;
    taken[parent] = true;
  }
  for (std::size_t i = 0; i < beams.size(); ++i) {
    if (slots[i] != kNowhere) continue;
    slots[i] = static_cast<std::uint32_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
    taken[slots[i]] = true;
    copies_.emplace_back(slots_[beams[i].parent], slots[i]);
  }
  slots_ = std::move(slots);
  tokens_.clear();
  for (const BeamSearch::Beam& beam : beams) tokens_.push_back(beam.token);
}

Status BeamDecoder::finish_step() {
  const std::vector<std::int32_t>& start = model_->network().start_tokens;
  ++position_;
  if (position_ < start.size()) {
    tokens_[0] = start[position_];
    return {};
  }
  const std::size_t n_vocab = model_->info.n_vocab;
  RONDO_TRY(readback_.invalidate(0, readback_.size_bytes()));
  const auto* all = reinterpret_cast<const float*>(readback_.mapped());
  std::vector<float> logits;
  for (const std::uint32_t index : slots_) logits.insert(logits.end(), all + index * n_vocab, all + (index + 1) * n_vocab);
  const std::vector<BeamSearch::Beam> beams = search_->step(logits, n_vocab);
  over_ = search_->over();
  if (!over_) place(beams);
  return {};
}

Status BeamDecoder::advance() {
  if (over_) return {};
  if (in_flight_ > 0) {
    RONDO_ASSIGN(const std::uint64_t done, device_->completed_value());
    if (done < in_flight_) return {};
    in_flight_ = 0;
  }
  if (std::exchange(stepping_, false)) {
    RONDO_TRY(finish_step());
    if (over_) return {};
  }
  if (source_pending_) return submit_source();
  RONDO_TRY(submit_step());
  stepping_ = true;
  return {};
}

Status BeamDecoder::wait(std::uint64_t timeout_ns) {
  if (in_flight_ == 0) return {};
  return device_->wait(in_flight_, timeout_ns);
}

Result<std::optional<BeamSearch::Result>> BeamDecoder::take() {
  if (!over_ || !search_) return std::optional<BeamSearch::Result>();
  if (search_->results().empty()) {
    search_.reset();
    return Status(StatusCode::kInternal, fmt::format("translator: the logits of {} are no numbers; its weights may be damaged", model_->info.architecture));
  }
  std::optional<BeamSearch::Result> best = search_->results().front();
  search_.reset();
  return best;
}

Result<std::unique_ptr<TranslatorState>> TranslatorState::create(std::shared_ptr<const LoadedModel> model, const TranslatorOptions& options) {
  const Network& network = model->network();
  RONDO_TRY(check_options(network, options));
  const auto n_start = static_cast<std::uint32_t>(network.start_tokens.size());
  const std::uint32_t most = network.positions_end > 0 ? network.positions_end : network.facts.context;
  if (most <= n_start) return Status(StatusCode::kUnsupported, fmt::format("translator: {} has {} positions and begins with {} tokens, which leaves none", network.facts.architecture, most, n_start));
  if (options.max_tokens > most - n_start) return Status(StatusCode::kInvalidArgument, fmt::format("translator: max_tokens is {} but {} makes at most {}", options.max_tokens, network.facts.architecture, most - n_start));
  const std::uint32_t max_tokens = options.max_tokens > 0 ? options.max_tokens : std::min(most - n_start, kUsualTokens);
  const std::uint32_t n_source = options.max_source > 0 ? options.max_source : default_source(network);
  std::unique_ptr<Decoder> decoder;
  if (options.beams == 1) {
    SessionOptions session_options;
    session_options.n_ctx = n_start + max_tokens;
    session_options.n_source = n_source;
    session_options.max_segment_us = options.max_segment_us;
    RONDO_ASSIGN(std::unique_ptr<SessionState> session, SessionState::create(model, session_options));
    decoder = std::make_unique<GreedyDecoder>(std::move(session), network.start_tokens, max_tokens);
  } else {
    RONDO_ASSIGN(decoder, BeamDecoder::create(model, options, n_start + max_tokens, n_source));
  }
  return std::unique_ptr<TranslatorState>(new TranslatorState(std::move(model), std::move(decoder), n_source));
}

Status TranslatorState::append(std::span<const std::int32_t> tokens) {
  const auto refuse = [](const std::string& what) { return Status(StatusCode::kInvalidArgument, "translator: " + what); };
  if (tokens.empty()) return refuse("a text has no tokens");
  if (tokens.size() > n_source_) return refuse(fmt::format("a text has {} tokens but at most {} fit (TranslatorOptions::max_source)", tokens.size(), n_source_));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<std::uint32_t>(tokens[i]) >= model_->info.n_vocab) return refuse(fmt::format("token {} is {} but ids go from 0 to {}", i, tokens[i], model_->info.n_vocab - 1));
  }
  waiting_.emplace_back(tokens.begin(), tokens.end());
  return {};
}

Status TranslatorState::collect() {
  if (!busy_) return {};
  RONDO_ASSIGN(std::optional<BeamSearch::Result> result, decoder_->take());
  if (!result) return {};
  done_.push_back(std::move(*result));
  busy_ = false;
  return {};
}

Status TranslatorState::advance() {
  RONDO_TRY(collect());
  if (!busy_) {
    if (waiting_.empty()) return model_->device.check_lost();
    RONDO_TRY(decoder_->begin(waiting_.front()));
    waiting_.pop_front();
    busy_ = true;
  }
  RONDO_TRY(decoder_->advance());
  return collect();
}

Status TranslatorState::wait(std::uint64_t timeout_ns) {
  if (!done_.empty() || (!busy_ && !waiting_.empty())) return {};
  if (!busy_) return Status(StatusCode::kTimeout, "translator: idle");
  return decoder_->wait(timeout_ns);
}

Result<bool> TranslatorState::take(Translation& translation) {
  if (done_.empty()) RONDO_TRY(collect());
  if (done_.empty()) return false;
  BeamSearch::Result& result = done_.front();
  translation.text = model_->tokenizer.decode(result.tokens);
  translation.tokens = std::move(result.tokens);
  translation.score = result.score;
  translation.ended = result.ended;
  done_.pop_front();
  return true;
}

}  // namespace rondo::models

namespace rondo {

namespace {

Status moved_from() { return Status(StatusCode::kFailedPrecondition, "translator: it was moved from"); }

}  // namespace

Translator::Translator(std::unique_ptr<models::TranslatorState> impl) : impl_(std::move(impl)) {}
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;
Translator::~Translator() = default;

Result<Translator> Translator::create(const Model& model, const TranslatorOptions& options) {
  if (!model.internal()) return Status(StatusCode::kFailedPrecondition, "translator: its Model is empty; it was moved from");
  RONDO_ASSIGN(std::shared_ptr<const models::LoadedModel> loaded, model.internal()->loaded());
  RONDO_ASSIGN(std::unique_ptr<models::TranslatorState> impl, models::TranslatorState::create(std::move(loaded), options));
  return Translator(std::move(impl));
}

Status Translator::append(std::span<const std::int32_t> tokens) { return impl_ ? impl_->append(tokens) : moved_from(); }

Status Translator::append(std::string_view text) {
  if (!impl_) return moved_from();
  const Tokenizer& tokenizer = impl_->model().tokenizer;
  if (tokenizer.n_vocab() == 0) return Status(StatusCode::kFailedPrecondition, fmt::format("translator: {} has no tokenizer; give it tokens", impl_->model().checkpoint->file.name()));
  return impl_->append(tokenizer.encode(text));
}

Status Translator::advance() { return impl_ ? impl_->advance() : moved_from(); }
Status Translator::wait(std::chrono::nanoseconds timeout) { return impl_ ? impl_->wait(timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count())) : moved_from(); }

Result<bool> Translator::take(Translation& translation) {
  if (!impl_) return moved_from();
  return impl_->take(translation);
}

bool Translator::idle() const { return !impl_ || impl_->idle(); }

Result<std::vector<Translation>> Translator::translate(std::span<const std::string_view> texts) {
  if (!impl_) return moved_from();
  if (!idle()) return Status(StatusCode::kFailedPrecondition, "translator: translate while texts are not taken; take them first");
  return models::append_and_take_all<Translation>(*impl_, texts, [this](std::string_view text) { return append(text); });
}

}  // namespace rondo
