#include "models/self_test_cases.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <random>

#include "graph/block_format.h"
#include "graph/cache_layout.h"
#include "graph/host_tensors.h"
#include "graph/operator.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

using graph::Op;
using graph::StorageId;
using graph::StorageKind;
using graph::Tensor;
using graph::TensorId;
using graph::Type;

/// Positions of the context: two blocks of 64, of which rope tables and split keys are made.
constexpr std::int64_t kContext = 128;
/// Tokens of a step: more than a tile of any kernel has.
constexpr std::int64_t kRows = 40;
/// Rows kept of a weight, or of either half where gates come before ups: more than a workgroup of any kernel makes.
constexpr std::int64_t kOutputs = 72;
/// Rows kept of a table of embeddings.
constexpr std::int64_t kEmbeddings = 61;
/// A hundred times what `check` allows, since a good kernel in quarantine is slow for ever; sums in f16 are off by 1e-6.
constexpr double kSums = 1e-9, kFunctions = 1e-8;
/// Of values rounded to the other neighbour in the type of a cache, as in `check`.
constexpr double kF16Cache = 1e-6, kQ8Cache = 2e-4;

/// What the step state says.
struct StepNumbers {
  std::int32_t n_ctx = 0, rows = 0, position = 0;
  bool draws = false;  ///< tokens are drawn at random instead of the best
};

std::vector<std::int32_t> state_words(std::size_t n, const StepNumbers& numbers) {
  std::vector<std::int32_t> words(n, 0);
  words[RONDO_STATE_ACTIVE] = 1;
  words[RONDO_STATE_POSITION] = numbers.position;
  words[RONDO_STATE_COUNT] = numbers.rows;
  words[RONDO_STATE_SEED_LOW] = 1;
  words[RONDO_STATE_TEMPERATURE] = std::bit_cast<std::int32_t>(numbers.draws ? 0.8f : 0.0f);
  words[RONDO_STATE_TOP_K] = 40;
  words[RONDO_STATE_TOP_P] = std::bit_cast<std::int32_t>(0.95f);
  words[RONDO_STATE_REPEAT_PENALTY] = std::bit_cast<std::int32_t>(1.1f);
  words[RONDO_STATE_REPEAT_LAST_N] = 16;
  return words;
}

/// Word `index` of output `output` of step_begin, or of whole numbers that another operator makes.
std::int32_t step_word(std::size_t output, std::int32_t index, const StepNumbers& numbers) {
  switch (output) {
    case 0: return index % static_cast<std::int32_t>(kEmbeddings);  // ids
    case 1: return numbers.position + index;                         // positions
    case 2: return numbers.position;                                 // start
    case 3: return numbers.rows;                                     // count
    case 4: return numbers.position + numbers.rows;                  // lengths
    case 5: return numbers.rows - 1;                                 // last
    default: return index % 2;
  }
}

/// Random floats for a storage of which `tensor` is a view.
std::vector<std::byte> random_bytes(const graph::Storage& storage, const Tensor& tensor, std::uint32_t seed) {
  std::mt19937 bits(seed);
  const auto next = [&] { return static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f; };
  std::vector<std::byte> bytes(storage.size_bytes);
  graph::HostView view(tensor, storage.type, bytes.data());
  if (storage.kind == StorageKind::kCache) {
    std::vector<float> row(static_cast<std::size_t>(tensor.shape.last()));
    for (std::int64_t i = 0; i < tensor.shape.n_rows(); ++i) {
      for (float& value : row) value = next();
      const auto index = view.row_index(i);
      view.set_row(row, index[0], index[1], index[2]);
    }
    return bytes;
  }
  const auto element_bytes = static_cast<std::size_t>(graph::element_bytes(storage.type));
  for (std::size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
    const float value = next();
    const std::uint16_t half = graph::float_to_half(value);
    if (storage.type == Type::kF16) std::memcpy(bytes.data() + at, &half, 2);
    else std::memcpy(bytes.data() + at, &value, 4);
  }
  return bytes;
}

/// Copies one node out of a step. Tensors keep their strides and offsets, so that kernels see what they see in the step.
class Cutter {
 public:
  Cutter(const Network& network, const graph::Graph& step, const StepNumbers& numbers) : network_(network), step_(step), numbers_(numbers) {
    test_.graph.n_sequences = step.n_sequences;
    const auto state = std::find_if(step_.nodes().begin(), step_.nodes().end(), [](const graph::Node& node) { return node.op == Op::step_begin; });
    begin_ = state == step_.nodes().end() ? nullptr : &*state;
    if (begin_) test_.graph.state = test_.graph.tensor(copy(begin_->inputs[1], false)).storage;
  }

  SelfTestCase cut(const graph::Node& node) {
    graph::Node made{node.op, {}, {}, node.attributes};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_matrix = i == 1 && is_weight(node.inputs[i]) && (node.op == Op::linear || node.op == Op::linear_glu || node.op == Op::embedding);
      made.inputs.push_back(is_matrix ? cut_matrix(node) : copy(node.inputs[i], false));
    }
    for (const TensorId id : node.outputs) made.outputs.push_back(copy(id, true));
    if (node.op == Op::linear || node.op == Op::linear_glu) cut_columns(made);
    test_.graph.name = fmt::format("self-test of {}", graph::operator_of(node.op).name);
    test_.bound = bound(node);
    test_.graph.nodes().push_back(std::move(made));
    return std::move(test_);
  }

 private:
  static double bound(const graph::Node& node) {
    const graph::ErrorClass error = graph::operator_of(node.op).accuracy.error;
    if (error == graph::ErrorClass::kExact) return 0;
    const auto* linear = std::get_if<graph::LinearAttributes>(&node.attributes);
    const bool plain = !linear || linear->activation == graph::Activation::kIdentity || linear->activation == graph::Activation::kRelu;
    return error == graph::ErrorClass::kFunctions || !plain ? kFunctions : kSums;
  }

  bool is_weight(TensorId id) const { return id != graph::kNone && step_.storage_of(id).kind == StorageKind::kWeight; }

  std::size_t block_of(TensorId id) const {
    const std::string& name = step_.storage_of(id).name;
    const auto found = std::find_if(network_.blocks.begin(), network_.blocks.end(), [&](const WeightBlock& block) { return block.name == name; });
    return static_cast<std::size_t>(found - network_.blocks.begin());
  }

  /// The first rows of the node's weight, as a weight of its own.
  TensorId cut_matrix(const graph::Node& node) {
    const Tensor& weight = step_.tensor(node.inputs[1]);
    const std::size_t block = block_of(node.inputs[1]);
    const bool halves = node.op == Op::linear_glu;
    const std::int64_t n = halves ? weight.shape[0] / 2 : weight.shape[0], first = weight.offset_elements / weight.shape[1];
    const std::int64_t kept = std::min(n, node.op == Op::embedding ? kEmbeddings : kOutputs);
    const TensorId made = test_.graph.add_weight(network_.blocks[block].name, weight.type, {halves ? 2 * kept : kept, weight.shape[1]});
    const auto index = static_cast<std::int32_t>(block);
    test_.weights.push_back({test_.graph.tensor(made).storage, block, {WeightSlice{index, first, kept}, halves ? WeightSlice{index, first + n, kept} : WeightSlice{}}});
    return made;
  }

  /// Makes outputs, residual and bias of a linear as wide as what is left of its weight.
  void cut_columns(graph::Node& node) {
    const std::int64_t rows = test_.graph.tensor(node.inputs[1]).shape[0], kept = node.op == Op::linear_glu ? rows / 2 : rows;
    const auto narrow = [&](TensorId id) {
      if (id == graph::kNone) return;
      graph::Shape& shape = test_.graph.tensor(id).shape;
      shape[shape.rank - 1] = std::min(shape.last(), kept);
    };
    narrow(node.outputs[0]);
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
      // What is the input as well keeps its columns there.
      if (node.inputs[i] != graph::kNone && node.inputs[i] == node.inputs[0]) node.inputs[i] = test_.graph.add_view(test_.graph.tensor(node.inputs[i]));
      narrow(node.inputs[i]);
    }
  }

  TensorId copy(TensorId id, bool is_output) {
    if (id == graph::kNone) return id;
    if (const auto found = tensors_.find(id); found != tensors_.end()) return found->second;
    Tensor tensor = step_.tensor(id);
    tensor.storage = copy_storage(id, is_output);
    return tensors_[id] = test_.graph.add_view(std::move(tensor));
  }

  StorageId copy_storage(TensorId id, bool is_output) {
    const Tensor& tensor = step_.tensor(id);
    if (const auto found = storages_.find(tensor.storage); found != storages_.end()) return found->second;
    graph::Storage storage = step_.storage(tensor.storage);
    storage.place = {};
    storage.pieces.clear();
    if (storage.kind == StorageKind::kActivation || storage.kind == StorageKind::kOutput) storage.kind = is_output ? StorageKind::kOutput : StorageKind::kInput;
    const StorageKind kind = storage.kind;
    const StorageId made = storages_[tensor.storage] = test_.graph.add_storage(storage);
    if (kind == StorageKind::kWeight) {
      const auto block = static_cast<std::int32_t>(block_of(id));
      test_.weights.push_back({made, block_of(id), {WeightSlice{block, 0, storage.matrix[0]}, {}}});
    } else if (kind != StorageKind::kOutput && kind != StorageKind::kConstant) {
      test_.contents[made] = storage.type == Type::kI32 ? words_of(tensor, storage) : random_bytes(storage, tensor, static_cast<std::uint32_t>(made + 1));
    }
    return made;
  }

  /// Whole numbers: the step state, tokens, or what step_begin makes of them.
  std::vector<std::byte> words_of(const Tensor& tensor, const graph::Storage& storage) const {
    std::vector<std::int32_t> words(storage.size_bytes / 4);
    std::size_t output = kNoOutput;
    for (std::size_t i = 0; begin_ && i < begin_->outputs.size(); ++i) {
      if (step_.tensor(begin_->outputs[i]).storage == tensor.storage) output = i;
    }
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = step_word(output, static_cast<std::int32_t>(i), numbers_);
    if (begin_ && step_.tensor(begin_->inputs[1]).storage == tensor.storage) words = state_words(words.size(), numbers_);
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
  }

  static constexpr std::size_t kNoOutput = 99;

  const Network& network_;
  const graph::Graph& step_;
  const StepNumbers numbers_;
  const graph::Node* begin_ = nullptr;
  SelfTestCase test_;
  std::map<TensorId, TensorId> tensors_;
  std::map<StorageId, StorageId> storages_;
};

/// Lowers cases and keeps those that are new.
class Collector {
 public:
  Collector(const Network& network, const runtime::DeviceCaps& caps, const SessionPlan& plan, const ModelOptions& options) : network_(network), caps_(caps), plan_(plan), options_(lowering_options(options, 0)) {}

  /// Cases of a step of `rows` tokens. With `wanted`, only those that have one of these kernels.
  Status add_step(Role role, std::int64_t rows, const std::vector<runtime::Kernel>* wanted) {
    StepPlaces places;
    places.n_ctx = std::min<std::int64_t>(plan_.places.n_ctx, std::max(kContext, 2 * rows));
    places.kv_type = plan_.places.kv_type;
    places.weights = plan_.places.weights;
    for (const CacheSpec& spec : network_.caches) places.caches.push_back({cache_positions(spec, places.n_ctx, places.n_ctx), {}, {}});
    rows = std::clamp<std::int64_t>(rows, 1, std::max<std::int64_t>(places.n_ctx / 2, 1));
    graph::Graph step = network_.build(role, rows, places);
    RONDO_TRY(Status(step.status()));
    if (options_.fusion) RONDO_TRY(graph::fuse(step));
    RONDO_TRY(graph::replace_quarantined(step, caps_, options_));
    StepNumbers numbers{static_cast<std::int32_t>(places.n_ctx), static_cast<std::int32_t>(rows), static_cast<std::int32_t>(std::max<std::int64_t>(places.n_ctx * 3 / 4 - rows, 0)), false};
    for (const graph::Node& node : step.nodes()) {
      numbers.draws = false;
      RONDO_TRY(add(Cutter(network_, step, numbers).cut(node), wanted, "best"));
      if (node.op != Op::sample) continue;
      numbers.draws = true;
      RONDO_TRY(add(Cutter(network_, step, numbers).cut(node), wanted, "drawn"));
    }
    return {};
  }

  /// Kernels of the plan that no case has.
  std::vector<runtime::Kernel> missing() const {
    std::vector<runtime::Kernel> kernels = plan_.kernels();
    std::erase_if(kernels, [&](const runtime::Kernel& kernel) { return is_in(covered_, kernel); });
    return kernels;
  }

  std::vector<SelfTestCase> take() { return std::move(cases_); }

 private:
  static bool is_in(const std::vector<runtime::Kernel>& kernels, const runtime::Kernel& kernel) { return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end(); }

  Status add(SelfTestCase test, const std::vector<runtime::Kernel>* wanted, std::string_view input) {
    GraphRunOptions run;
    run.lowering = options_;
    run.lowering.fusion = false;
    graph::Graph lowered = test.graph;
    RONDO_ASSIGN(const GraphPlan plan, plan_graph(lowered, caps_, run));
    const runtime::Program& program = plan.lowered.program;
    if (wanted && std::none_of(program.kernels.begin(), program.kernels.end(), [&](const runtime::Kernel& kernel) { return is_in(*wanted, kernel); })) return {};
    test.label = program.dispatches.front().label;
    test.kernels = program.kernels;
    test.key = input;
    for (const runtime::Dispatch& dispatch : program.dispatches) {
      const runtime::Kernel& kernel = program.kernels[dispatch.kernel];
      test.key += fmt::format(" {} {}", runtime::shader_name(kernel.shader), fmt::join(std::span(kernel.constants).first(kernel.n_constants), ","));
      test.key.append(reinterpret_cast<const char*>(dispatch.push.data()), dispatch.push.size());
    }
    if (std::any_of(cases_.begin(), cases_.end(), [&](const SelfTestCase& known) { return known.key == test.key; })) return {};
    covered_.insert(covered_.end(), test.kernels.begin(), test.kernels.end());
    cases_.push_back(std::move(test));
    return {};
  }

  const Network& network_;
  const runtime::DeviceCaps& caps_;
  const SessionPlan& plan_;
  graph::LoweringOptions options_;
  std::vector<SelfTestCase> cases_;
  std::vector<runtime::Kernel> covered_;
};

}  // namespace

Result<std::vector<SelfTestCase>> self_test_cases(const Network& network, const runtime::DeviceCaps& caps, const SessionPlan& plan, std::span<const StepKind> kinds,
                                                  const ModelOptions& options) {
  Collector collector(network, caps, plan, options);
  for (const StepKind& kind : kinds) RONDO_TRY(collector.add_step(kind.role, std::min(kind.rows, kRows), nullptr));
  // Some kernel may be chosen for more rows only.
  if (const std::vector<runtime::Kernel> missing = collector.missing(); !missing.empty()) {
    for (const StepKind& kind : kinds) RONDO_TRY(collector.add_step(kind.role, kind.rows, &missing));
  }
  if (const std::vector<runtime::Kernel> missing = collector.missing(); !missing.empty()) {
    return Status(StatusCode::kInternal, fmt::format("self-test: no case has kernel {}", runtime::shader_name(missing.front().shader)));
  }
  return collector.take();
}

double bound_of(const SelfTestCase& test, const graph::Storage& storage) {
  if (storage.type == Type::kI32) return 0;
  const double rounding = storage.kind != StorageKind::kCache ? 0 : storage.type == Type::kF16 ? kF16Cache : storage.type == Type::kQ8_0 ? kQ8Cache : 0;
  return std::max(test.bound, rounding);
}

}  // namespace rondo::models
