#include "models/self_test_cases.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <set>

#include "graph/compare.h"
#include "graph/host_tensors.h"
#include "graph/kernel_choice.h"
#include "graph/operator.h"
#include "graph/quantize.h"
#include "graph/tiles.h"
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

/// Tokens of a step: more than a tile of any kernel has. Of them so many are not valid.
constexpr std::int64_t kRows = 40, kInvalidRows = 3;
/// Keys of a step of one row: more than one block of 64 for each split of the kernels that have most. Of few rows, as kernels call
/// them: so many that they are split. Of other steps.
constexpr std::int64_t kKeysOfOneRow = 2 * 64 * 16 + 37, kKeysOfFewRows = 600, kKeys = 3 * 64 + 11;
/// Rows kept of a weight, or of either half where gates come before ups: more than a workgroup of any kernel makes, in whole groups of 32; in front
/// of them as many as leave an offset.
constexpr std::int64_t kOutputs = 256, kRowsBefore = 3;
/// Experts kept of those that a weight has rows of.
constexpr std::int64_t kExperts = 3;
/// Rows kept of a table that ids choose from.
constexpr std::int64_t kEmbeddings = 251;
/// Bounds are so many times those of `check`, since a good kernel in quarantine is slow for ever; sums in f16 are off by 1e-6.
constexpr double kSlack = 100;
/// Of linears of bytes behind others, so many times that of one.
constexpr double kTwiceRounded = 20;
/// Of cores that a case is lowered for, if not those of the device.
constexpr std::uint32_t kMostCores = 8192;

/// What stands before and behind a node of a fused graph, and counts for its kernels.
struct Neighbours {
  const graph::DeferredNorm *norm_before = nullptr, *norm_after = nullptr;  ///< that it computes with linears on their other sides
  bool rounds = false;  ///< it leaves what it makes, or that norm of it, in bytes for a linear
  const graph::HalvedOutput* halves = nullptr;  ///< how it leaves what it makes in f16 for a linear
  const graph::DeferredRotation* rotation = nullptr;  ///< that it does

  bool any() const { return norm_before || norm_after || rounds || halves || rotation; }
};

/// What a case of an operator puts in, besides the step's own shapes.
struct Variant {
  const char* name = "";
  float scale = 1;                  ///< of floats
  float temperature = 0, top_p = 1, min_p = 0, repeat_penalty = 1;
  std::uint32_t top_k = 0;
  std::uint64_t seed = 0;
  bool stops = false, full = false;  ///< at an id that ends the text; at the end of the context
};

bool is_of_experts(Op op) { return op == Op::expert_linear || op == Op::expert_linear_glu; }
bool is_linear(Op op) { return op == Op::linear || op == Op::linear_glu || is_of_experts(op); }

/// Norms where epsilon counts; every way to sample, several times; every way to end a step.
std::span<const Variant> variants_of(Op op) {
  static constexpr Variant kPlain[] = {{}};
  static constexpr Variant kNorms[] = {{}, {.name = "small", .scale = 0.003f}};
  static constexpr Variant kSamples[] = {
      {.name = "greedy"},
      {.name = "greedy, repeated", .repeat_penalty = 1.5f},
      {.name = "temperature 1", .temperature = 0.7f, .seed = 1},
      {.name = "temperature 2", .temperature = 1.6f, .seed = 0x200000003},
      {.name = "top-k 1", .temperature = 1.3f, .top_k = 3, .seed = 0x500000002},
      {.name = "top-k 2", .temperature = 1.3f, .top_k = 40, .seed = 7},
      {.name = "top-p 1", .temperature = 1.5f, .top_p = 0.3f, .seed = 11},
      {.name = "top-p 2", .temperature = 1.5f, .top_p = 0.6f, .seed = 0x300000004},
      {.name = "min-p 1", .temperature = 1.7f, .min_p = 0.4f, .seed = 5},
      {.name = "min-p 2", .temperature = 2.5f, .min_p = 0.8f, .seed = 0x600000006},
      {.name = "all", .temperature = 0.9f, .top_p = 0.9f, .min_p = 0.02f, .repeat_penalty = 1.2f, .top_k = 20, .seed = 0x900000001},
  };
  static constexpr Variant kEnds[] = {{}, {.name = "stops", .stops = true}, {.name = "full", .full = true}};
  if (op == Op::rms_norm || op == Op::layer_norm) return kNorms;
  if (op == Op::sample) return kSamples;
  return op == Op::step_end ? std::span<const Variant>(kEnds) : kPlain;
}

/// A step's numbers: the last of `count` valid rows is at position `end` - 1.
struct StepNumbers {
  std::int64_t n_ctx = 0, rows = 0, count = 0, end = 0, n_vocab = 0, n_types = 1;

  std::int32_t position(const Variant& variant) const { return static_cast<std::int32_t>(variant.full ? n_ctx - 1 - count : end - count); }
};

/// A token of the array of them.
std::int32_t token_at(std::int64_t index, const StepNumbers& numbers) { return static_cast<std::int32_t>((index * 7919 + 3) % numbers.n_vocab); }

/// The step state of one sequence, as all have it.
std::vector<std::int32_t> state_words(const StepNumbers& numbers, const Variant& variant) {
  std::vector<std::int32_t> words(RONDO_STATE_WORDS, 0);
  words[RONDO_STATE_ACTIVE] = 1;
  words[RONDO_STATE_POSITION] = numbers.position(variant);
  words[RONDO_STATE_COUNT] = static_cast<std::int32_t>(numbers.count);
  words[RONDO_STATE_SEED_LOW] = static_cast<std::int32_t>(variant.seed & 0xffffffffu);
  words[RONDO_STATE_SEED_HIGH] = static_cast<std::int32_t>(variant.seed >> 32);
  words[RONDO_STATE_TEMPERATURE] = std::bit_cast<std::int32_t>(variant.temperature);
  words[RONDO_STATE_TOP_K] = static_cast<std::int32_t>(variant.top_k);
  words[RONDO_STATE_TOP_P] = std::bit_cast<std::int32_t>(variant.top_p);
  words[RONDO_STATE_MIN_P] = std::bit_cast<std::int32_t>(variant.min_p);
  words[RONDO_STATE_REPEAT_PENALTY] = std::bit_cast<std::int32_t>(variant.repeat_penalty);
  words[RONDO_STATE_REPEAT_LAST_N] = 16;
  words[RONDO_STATE_N_STOP] = 2;
  words[RONDO_STATE_STOP_IDS] = -1;
  words[RONDO_STATE_STOP_IDS + 1] = variant.stops ? 5 : -1;
  return words;
}

/// Reproducible floats in [-scale, scale).
class Floats {
 public:
  Floats(std::uint32_t seed, float scale) : bits_(seed * 0x9e3779b9u + 1), scale_(scale) {}

  float next() {
    bits_ ^= bits_ << 13;
    bits_ ^= bits_ >> 17;
    bits_ ^= bits_ << 5;
    return (static_cast<float>(bits_ >> 8) * 0x1p-23f - 1.0f) * scale_;
  }

 private:
  std::uint32_t bits_;
  float scale_;
};

/// Floats for all of a storage of which `tensor` is a view.
std::vector<std::byte> float_bytes(const graph::Storage& storage, const Tensor& tensor, Floats floats) {
  std::vector<std::byte> bytes(storage.size_bytes);
  if (storage.kind == StorageKind::kCache) {
    graph::HostView view(tensor, storage.type, bytes.data());
    std::vector<float> row(static_cast<std::size_t>(tensor.shape.last()));
    for (std::int64_t i = 0; i < tensor.shape.n_rows(); ++i) {
      for (float& value : row) value = floats.next();
      const auto index = view.row_index(i);
      view.set_row(row, index[0], index[1], index[2]);
    }
    return bytes;
  }
  const auto element_bytes = static_cast<std::size_t>(graph::element_bytes(storage.type));
  for (std::size_t at = 0; at + element_bytes <= bytes.size(); at += element_bytes) {
    const float value = floats.next();
    const std::uint16_t half = graph::float_to_half(value);
    if (storage.type == Type::kF16) std::memcpy(bytes.data() + at, &half, 2);
    else std::memcpy(bytes.data() + at, &value, 4);
  }
  return bytes;
}

/// Copies one node out of a step. Tensors keep their strides and, but for matrices, their offsets: kernels see what they see in
/// the step. Used for one node, then filled as often as there are variants of it.
class Cutter {
 public:
  Cutter(const Network& network, const graph::Graph& step, const StepNumbers& numbers) : network_(network), step_(step), numbers_(numbers) {
    test_.graph.n_sequences = step.n_sequences;
    test_.rows = numbers.rows;
    test_.count = static_cast<std::int32_t>(numbers.count);
    const auto found = std::find_if(step_.nodes().begin(), step_.nodes().end(), [](const graph::Node& node) { return node.op == Op::step_begin; });
    begin_ = found == step_.nodes().end() ? nullptr : &*found;
    for (std::size_t i = 0; i < step_.n_tensors() && test_.graph.state == graph::kNone; ++i) {
      const auto id = static_cast<TensorId>(i);
      if (step_.tensor(id).storage == step_.state) test_.graph.state = test_.graph.tensor(copy(id, false)).storage;
    }
  }

  /// Errors: kInternal (a weight that is no block of the network).
  Result<SelfTestCase> cut(const graph::Node& node) {
    graph::Node made{node.op, {}, {}, node.attributes};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_matrix = i == 1 && is_weight(node.inputs[i]) && (is_linear(node.op) || node.op == Op::embedding);
      made.inputs.push_back(is_matrix ? cut_matrix(node) : copy(node.inputs[i], false));
    }
    for (const TensorId id : node.outputs) made.outputs.push_back(copy(id, true));
    if (!missing_.empty()) return Status(StatusCode::kInternal, fmt::format("self-test: weight {} is no block of the network", missing_));
    if (is_linear(node.op)) cut_columns(made);
    set_bounds(made);
    test_.graph.name = fmt::format("self-test of {}", graph::operator_of(node.op).name);
    test_.graph.nodes().push_back(std::move(made));
    return test_;
  }

  /// The case that was cut with a narrow linear before the node or behind it, and between them an RMS norm that both compute, or bytes or halves that the node leaves.
  /// Errors: the graph's.
  Result<SelfTestCase> add_neighbours(const Neighbours& wanted) {
    const auto& [before, after, rounds, halves, rotation] = wanted;
    graph::Graph& g = test_.graph;
    graph::Node node = std::move(g.nodes().back());
    g.nodes().clear();
    test_.fused = true;
    if (before) node.inputs[0] = input_behind(*before, g.tensor(node.inputs[0]).shape);
    const bool is_attention = node.op == Op::attention;
    const double bound = test_.bounds[g.tensor(node.outputs[0]).storage];
    // What is rounded has its storage for itself, and no columns missing.
    if ((rounds || halves) && !after && !is_attention) node.outputs[0] = g.add_tensor("output", StorageKind::kActivation, Type::kF32, g.tensor(node.outputs[0]).shape);
    const TensorId output = node.outputs[0];
    if (rounds && is_attention) g.storage(g.tensor(output).storage).kind = StorageKind::kActivation;
    g.nodes().push_back(std::move(node));
    if (after || rounds || halves) {
      TensorId read = output;
      if (after) read = norm("weights of the norm behind", output, *after);
      if (is_attention) read = g.transpose(output, {0, 2, 1, 3});
      const graph::Shape shape = g.tensor(read).shape;
      if (is_attention) read = g.reshape(read, {shape[0], shape[1], shape[2] * shape[3]});
      std::vector<TensorId> behind;
      if (halves) behind.push_back(linear("linear of halves behind", read, 8, Type::kF16));
      // Whoever rounds leaves the numbers themselves as well, and somebody may read them: of halves one that does not take these.
      const std::int64_t columns = g.tensor(read).shape.last();
      if (!halves) behind.push_back(linear("linear behind", read, 8, Type::kF32));
      else if (!halves->only) behind.push_back(linear("linear behind", g.slice(read, g.tensor(read).shape.rank - 1, 0, columns / 2), 8, Type::kF32));
      if (rounds) behind.push_back(linear("linear of bytes behind", read, 8, Type::kQ8_0));
      for (const TensorId id : behind) {
        if (!g.status().ok()) break;
        g.storage(g.tensor(id).storage).kind = StorageKind::kOutput;
        test_.bounds[g.tensor(id).storage] = bound;
      }
    }
    RONDO_TRY(Status(g.status()));
    return test_;
  }

  /// What the storages hold before.
  void fill(SelfTestCase& test, const Variant& variant) const {
    for (const auto& [from, made] : storages_) {
      const graph::Storage& storage = test.graph.storage(made);
      if (storage.kind == StorageKind::kWeight || storage.kind == StorageKind::kConstant || storage.kind == StorageKind::kOutput) continue;
      const Tensor& tensor = step_.tensor(views_.at(from));
      const Floats floats(static_cast<std::uint32_t>(made + 1), variant.scale);
      test.contents[made] = storage.type == Type::kI32 ? words_of(tensor, storage, variant) : float_bytes(storage, tensor, floats);
    }
    const graph::Node& node = test.graph.nodes().front();
    if (node.op == Op::sample) spread_logits(test, variant);
    if (is_of_experts(node.op)) choose_experts(test, node);
  }

  /// A linear that does a rope_kv_write behind it, or a part: three of its heads as one each of queries, keys and values. Errors: kInternal (a weight that is no block of the network), the graph's.
  Result<SelfTestCase> cut_rotation(const graph::Node& node, const Neighbours& wanted) {
    const graph::Node& rotation = wanted.rotation->node;
    const auto input_of = [&](std::string_view name) {
      const auto& inputs = graph::operator_of(Op::rope_kv_write).inputs;
      const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const graph::NamedInput& input) { return input.name == name; });
      return rotation.inputs[static_cast<std::size_t>(found - inputs.begin())];
    };
    graph::Graph& g = test_.graph;
    test_.fused = true;
    g.name = "self-test of a linear that turns its output";
    const Tensor weight = step_.tensor(node.inputs[1]), query = step_.tensor(input_of("query")), cache = step_.tensor(input_of("key_cache"));
    const std::int64_t width = query.shape[3], first = weight.offset_elements / weight.shape[1], n_heads = weight.shape[0] / width;
    // Of values alone nothing turns; neighbours are stored together.
    auto attributes = graph::attributes_of<graph::RopeKvWriteAttributes>(rotation);
    if (step_.tensor(node.outputs[0]).storage != query.storage) attributes.rope.style = graph::RopeStyle::kInterleaved;
    const std::size_t block = block_of(node.inputs[1]);
    if (!missing_.empty()) return Status(StatusCode::kInternal, fmt::format("self-test: weight {} is no block of the network", missing_));
    const TensorId cut = g.add_weight(step_.storage_of(node.inputs[1]).name, weight.type, {3 * width, weight.shape[1]});
    std::vector<WeightSlice> runs;
    for (const std::int64_t head : {std::int64_t{0}, n_heads / 2, n_heads - 1}) runs.push_back({static_cast<std::int32_t>(block), first + head * width, width});
    test_.weights.push_back({g.tensor(cut).storage, block, std::move(runs)});
    const graph::Shape shape = step_.tensor(node.inputs[0]).shape;
    const TensorId input = wanted.norm_before ? input_behind(*wanted.norm_before, shape) : copy(node.inputs[0], false);
    const TensorId made = g.add(Op::linear, {input, cut, graph::kNone, node.inputs[3] == graph::kNone ? graph::kNone : f32("bias", {3 * width})});
    const auto head = [&](std::int64_t i) {
      return g.transpose(g.reshape(g.slice(made, shape.rank - 1, i * width, (i + 1) * width), {query.shape[0], query.shape[2], 1, width}), {0, 2, 1, 3});
    };
    const graph::Shape cache_shape = {cache.shape[0], 1, cache.shape[2], width};
    const TensorId keys = g.add_cache("keys", StorageKind::kCache, cache.type, cache_shape), values = g.add_cache("values", StorageKind::kCache, cache.type, cache_shape);
    const TensorId turned = g.add(Op::rope_kv_write, {head(0), head(1), head(2), copy(input_of("positions"), false), copy(input_of("start"), false), graph::kNone, keys, values, copy(input_of("frequency_factors"), false)}, attributes);
    RONDO_TRY(Status(g.status()));
    g.nodes().back().inputs[5] = copy(input_of("count"), false);  // the step's, which is an input here
    g.storage(g.tensor(turned).storage).kind = StorageKind::kOutput;
    const double bound = kSlack * graph::bound_in_f32(graph::operator_of(Op::linear).accuracy.error, graph::Activation::kIdentity);
    test_.bounds[g.tensor(turned).storage] = bound;
    for (const TensorId id : {keys, values}) {
      const StorageId storage = g.tensor(id).storage;
      test_.contents[storage].resize(g.storage(storage).size_bytes);
      test_.bounds[storage] = std::max(bound, graph::bound_of_rounding(cache.type));
    }
    return test_;
  }

 private:
  /// What a matrix or an input of a case holds that is no part of the model.
  void fill_storage(StorageId storage, std::int64_t n) {
    Floats floats(++seed_, 1);
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) value = floats.next();
    const Type type = test_.graph.storage(storage).type;
    std::vector<std::byte>& bytes = test_.contents[storage];
    bytes.resize(static_cast<std::size_t>(graph::file_row_bytes(*graph::find_block_format(type), static_cast<std::uint32_t>(n))));
    graph::find_quantizer(type)(values, bytes.data());
  }

  TensorId f32(const char* name, const graph::Shape& shape) {
    const TensorId id = test_.graph.add_tensor(name, StorageKind::kInput, Type::kF32, shape);
    fill_storage(test_.graph.tensor(id).storage, shape.n_elements());
    return id;
  }

  TensorId linear(const char* name, TensorId input, std::int64_t outputs, Type type) {
    graph::Graph& g = test_.graph;
    const TensorId weight = g.add_weight(name, type, {outputs, g.tensor(input).shape.last()});
    fill_storage(g.tensor(weight).storage, g.tensor(weight).shape.n_elements());
    return g.add(Op::linear, {input, weight});
  }

  TensorId norm(const char* name, TensorId input, const graph::DeferredNorm& like) {
    return test_.graph.add(Op::rms_norm, {input, f32(name, {test_.graph.tensor(input).shape.last()})}, graph::RmsNormAttributes{like.epsilon, like.gain_bias});
  }

  /// An input of this shape that is such a norm of a narrow linear's output.
  TensorId input_behind(const graph::DeferredNorm& before, graph::Shape shape) {
    const std::int64_t columns = shape.last();
    shape[shape.rank - 1] = 4;
    return norm("weights of the norm before", linear("linear before", f32("input before", shape), columns, Type::kF32), before);
  }

  bool is_weight(TensorId id) const { return id != graph::kNone && step_.storage_of(id).kind == StorageKind::kWeight; }

  std::size_t block_of(TensorId id) {
    const std::string& name = step_.storage_of(id).name;
    const auto found = std::find_if(network_.blocks.begin(), network_.blocks.end(), [&](const WeightBlock& block) { return block.name == name; });
    if (found != network_.blocks.end()) return static_cast<std::size_t>(found - network_.blocks.begin());
    missing_ = name;
    return 0;
  }

  /// Some rows of the node's weight, as a weight of its own: of gates and of ups, and of some experts.
  TensorId cut_matrix(const graph::Node& node) {
    const Tensor& weight = step_.tensor(node.inputs[1]);
    const std::size_t block = block_of(node.inputs[1]);
    const auto index = static_cast<std::int32_t>(block);
    const auto* experts = std::get_if<graph::ExpertAttributes>(&node.attributes);
    const std::int64_t n_experts = experts ? experts->experts : 1, n_parts = parts_of(node.op), n = weight.shape[0] / n_parts / n_experts, first = weight.offset_elements / weight.shape[1];
    // Positions choose from a table as far as they go.
    const bool by_position = begin_ && node.op == Op::embedding && step_.tensor(node.inputs[0]).storage == step_.tensor(begin_->outputs[1]).storage;
    const std::int64_t kept = std::min(n, node.op != Op::embedding ? kOutputs : by_position ? numbers_.end : kEmbeddings), before = std::min(first, kRowsBefore);
    std::vector<WeightSlice> runs = {{index, first - before, before}};
    for (std::int64_t part = 0; part < n_parts; ++part) {
      for (std::int64_t expert = 0; expert < std::min(n_experts, kExperts); ++expert) runs.push_back({index, first + (part * n_experts + expert) * n, kept});
    }
    const std::int64_t rows = before + kept * static_cast<std::int64_t>(runs.size() - 1);
    const TensorId whole = test_.graph.add_weight(step_.storage_of(node.inputs[1]).name, weight.type, {rows, weight.shape[1]});
    test_.weights.push_back({test_.graph.tensor(whole).storage, block, std::move(runs)});
    return test_.graph.slice(whole, 0, before, rows);
  }

  /// Matrices of one expert that lie one after the other.
  static std::int64_t parts_of(Op op) { return op == Op::linear_glu || op == Op::expert_linear_glu ? 2 : 1; }

  /// Makes outputs, residual and bias of a linear as wide as what is left of its weight.
  void cut_columns(graph::Node& node) {
    const std::int64_t rows = test_.graph.tensor(node.inputs[1]).shape[0];
    auto* experts = std::get_if<graph::ExpertAttributes>(&node.attributes);
    if (experts) {
      test_.experts = static_cast<std::uint32_t>(experts->experts);
      experts->experts = std::min(experts->experts, kExperts);
    }
    const std::int64_t kept = rows / parts_of(node.op) / (experts ? experts->experts : 1);
    const auto narrow = [&](TensorId id, std::int64_t columns) {
      if (id == graph::kNone) return;
      graph::Shape& shape = test_.graph.tensor(id).shape;
      shape[shape.rank - 1] = std::min(shape.last(), columns);
    };
    Tensor& output = test_.graph.tensor(node.outputs[0]);
    narrow(node.outputs[0], kept * (experts ? test_.graph.tensor(node.inputs[2]).shape.last() : 1));
    if (experts) output.strides = graph::contiguous_strides(output.shape);  // outputs of a token's experts lie side by side
    for (std::size_t i = experts ? 3 : 2; i < node.inputs.size(); ++i) {
      // What is the input as well keeps its columns there.
      if (node.inputs[i] != graph::kNone && node.inputs[i] == node.inputs[0]) node.inputs[i] = test_.graph.add_view(test_.graph.tensor(node.inputs[i]));
      narrow(node.inputs[i], experts ? rows : kept);
    }
  }

  /// As `check` has them, with slack where rounding differs between devices.
  void set_bounds(const graph::Node& node) {
    const graph::Operator& table = graph::operator_of(node.op);
    const auto* linear = std::get_if<graph::LinearAttributes>(&node.attributes);
    const double bound = kSlack * graph::bound_in_f32(table.accuracy.error, linear ? linear->activation : graph::Activation::kIdentity);
    for (const TensorId id : node.outputs) {
      if (test_.graph.tensor(id).type != Type::kI32) test_.bounds[test_.graph.tensor(id).storage] = bound;
    }
    if (node.op != Op::rope_kv_write && node.op != Op::norm_rope_kv_write) return;
    for (std::size_t i = 0; i < table.inputs.size(); ++i) {
      const Tensor* cache = std::string_view(table.inputs[i].name) == "key_cache" ? &test_.graph.tensor(node.inputs[i]) : nullptr;
      if (cache) test_.bounds[cache->storage] = std::max(bound, graph::bound_of_rounding(cache->type));
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
    const StorageId from = step_.tensor(id).storage;
    if (const auto found = storages_.find(from); found != storages_.end()) return found->second;
    graph::Storage storage = step_.storage(from);
    storage.place = {};
    storage.pieces.clear();
    if (storage.kind == StorageKind::kActivation || storage.kind == StorageKind::kOutput) storage.kind = is_output ? StorageKind::kOutput : StorageKind::kInput;
    const bool is_vector = storage.kind == StorageKind::kWeight;
    const std::int64_t rows = storage.matrix[0];
    const StorageId made = storages_[from] = test_.graph.add_storage(std::move(storage));
    views_[from] = id;
    if (!is_vector) return made;
    const std::size_t block = block_of(id);
    test_.weights.push_back({made, block, {WeightSlice{static_cast<std::int32_t>(block), 0, rows}}});
    return made;
  }

  /// Whole numbers: the step state, tokens, or what step_begin makes of them.
  std::vector<std::byte> words_of(const Tensor& tensor, const graph::Storage& storage, const Variant& variant) const {
    std::vector<std::int32_t> words(storage.size_bytes / 4);
    const auto made_by_begin = [&](std::size_t output) { return begin_ && step_.tensor(begin_->outputs[output]).storage == tensor.storage; };
    enum { kIds, kPositions, kStart, kCount, kLengths, kLast };
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      const std::int64_t row = index % numbers_.rows;
      std::int64_t word = storage.kind == StorageKind::kStep ? token_at(index, numbers_) : 5;
      if (storage.name == "source types") word = index % numbers_.n_types;
      if (storage.name == "source lengths") word = numbers_.end;
      if (made_by_begin(kIds)) word = (index * 29 + 7) % std::min(kEmbeddings, numbers_.n_vocab);
      else if (made_by_begin(kPositions)) word = std::min(numbers_.position(variant) + row, numbers_.end - 1);
      else if (made_by_begin(kStart)) word = numbers_.position(variant);
      else if (made_by_begin(kCount)) word = numbers_.count;
      else if (made_by_begin(kLengths)) word = numbers_.end;
      else if (made_by_begin(kLast)) word = index * numbers_.rows + numbers_.count - 1;
      words[i] = static_cast<std::int32_t>(word);
    }
    if (tensor.storage == step_.state) {
      const std::vector<std::int32_t> one = state_words(numbers_, variant);
      for (std::size_t at = 0; at + one.size() <= words.size(); at += one.size()) std::copy(one.begin(), one.end(), words.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
  }

  /// All experts that there are, in turn.
  static void choose_experts(SelfTestCase& test, const graph::Node& node) {
    const Tensor& chosen = test.graph.tensor(node.inputs[2]);
    std::vector<std::byte>& bytes = test.contents[chosen.storage];
    const auto n = static_cast<std::int32_t>(std::get<graph::ExpertAttributes>(node.attributes).experts);
    for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
      const std::int32_t expert = static_cast<std::int32_t>(i * 5 / 2) % n;
      std::memcpy(bytes.data() + 4 * i, &expert, 4);
    }
  }

  /// Logits of which a few matter, among them those of tokens that were there before: every way to sample shows, and no rounding
  /// decides which token is drawn.
  void spread_logits(SelfTestCase& test, const Variant& variant) const {
    constexpr std::int64_t kCandidates = 24;
    const Tensor& logits = test.graph.tensor(test.graph.nodes().front().inputs[0]);
    graph::HostView view(logits, Type::kF32, test.contents[logits.storage].data());
    const std::int64_t n = logits.shape.last();
    for (std::int64_t i = 0; i < n; ++i) view.set(view.at(0, i) - 60, 0, i);
    for (std::int64_t i = 0; i < kCandidates; ++i) view.set(6 - 0.23f * static_cast<float>(i), 0, (i * n / kCandidates + 5 * i) % n);
    const std::int64_t end = numbers_.position(variant) + numbers_.count;
    for (std::int64_t i = std::max<std::int64_t>(end - 4, 0); i < end; ++i) view.set(6.1f + 0.2f * static_cast<float>(end - i), 0, token_at(i, numbers_));
  }

  const Network& network_;
  const graph::Graph& step_;
  const StepNumbers numbers_;
  const graph::Node* begin_ = nullptr;
  SelfTestCase test_;
  std::map<TensorId, TensorId> tensors_;
  std::map<StorageId, StorageId> storages_;
  std::map<StorageId, TensorId> views_;  ///< the first of each storage
  std::string missing_;
  std::uint32_t seed_ = 1000;
};

/// The label of all dispatches of an operator: its name, where they have several, or that of the first with a kernel's name, or the first.
std::string label_of(const graph::Node& node, std::span<const runtime::Dispatch> dispatches) {
  const graph::Operator& table = graph::operator_of(node.op);
  const char* name = table.name;
  for (const runtime::Dispatch& dispatch : dispatches) {
    if (!graph::kernel_in_label(table, dispatch.label).empty()) return dispatch.label;
  }
  const bool named = std::any_of(dispatches.begin(), dispatches.end(), [&](const runtime::Dispatch& dispatch) { return dispatch.label == name; });
  return named ? name : dispatches.front().label;
}

bool is_in(const std::vector<runtime::Kernel>& kernels, const runtime::Kernel& kernel) { return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end(); }

/// Lowers cases and keeps those that are new.
class Collector {
 public:
  Collector(const Network& network, const runtime::DeviceCaps& caps, const SessionPlan& plan, const PlanOptions& options) : network_(network), caps_(caps), plan_(plan), model_options_(options), options_(case_options(options, {})), missing_(plan.kernels()) { fusion_ = options.fusion; }

  /// Cases of a step of `rows` tokens. With `wanted`, only those that have one of these kernels.
  Status add_step(const StepKind& kind, std::int64_t rows, const std::vector<runtime::Kernel>* wanted) {
    const Role role = kind.role;
    const bool encodes_now = encodes(role);
    if (takes_images(role)) rows = kind.rows;
    StepNumbers numbers;
    numbers.rows = rows;
    numbers.count = std::max<std::int64_t>(rows - kInvalidRows, 1);
    numbers.end = std::clamp<std::int64_t>(rows == 1 ? kKeysOfOneRow : rows <= graph::kMostSubgroupQueries ? kKeysOfFewRows : rows + kKeys, rows, std::max<std::int64_t>(network_.facts.context, rows));
    if (takes_images(role)) numbers.count = rows;
    if (encodes_now) numbers.end = numbers.count;
    numbers.n_ctx = numbers.end + kInvalidRows + 2;
    numbers.n_types = std::max<std::int64_t>(network_.facts.n_token_types, 1);
    numbers.n_vocab = std::max<std::int64_t>(network_.facts.n_vocab, 1);
    StepPlaces places;
    places.n_ctx = numbers.n_ctx;
    places.session_ctx = plan_.places.n_ctx;
    places.kv_type = plan_.places.kv_type;
    places.weights = plan_.places.weights;
    places.n_sequences = std::max<std::int64_t>(kind.n_texts, 1);
    places.n_source = encodes_now ? rows : numbers.n_ctx;
    for (std::size_t i = 0; i < plan_.places.caches.size(); ++i) {
      if (network_.caches[i].extent == CacheExtent::kSource) {
        places.caches.push_back({encodes_now ? rows : numbers.n_ctx, {}, {}});
        continue;
      }
      // A ring is one here too, and wraps.
      const bool ring = network_.caches[i].extent == CacheExtent::kWindow && plan_.places.caches[i].positions < plan_.places.n_ctx;
      places.caches.push_back({ring ? std::max<std::int64_t>(numbers.end - 7, rows) : places.n_ctx, {}, {}});
    }
    graph::Graph step = network_.build(role, rows, places);
    RONDO_TRY(Status(step.status()));
    if (fusion_) RONDO_TRY(graph::fuse(step));
    RONDO_TRY(graph::replace_quarantined(step, caps_, options_.lowering));
    const auto norms = fusion_ ? graph::find_deferred_norms(step, caps_, options_.lowering) : std::vector<graph::DeferredNorm>();
    const auto rounded = fusion_ ? graph::find_rounded_outputs(step, caps_, options_.lowering) : std::vector<TensorId>();
    const auto halved = fusion_ ? graph::find_halved_outputs(step, caps_, options_.lowering) : std::vector<graph::HalvedOutput>();
    const auto rotations = fusion_ ? graph::find_deferred_rotations(step, caps_, options_.lowering) : std::vector<graph::DeferredRotation>();
    const auto rounds = [&](TensorId id) { return std::find(rounded.begin(), rounded.end(), id) != rounded.end(); };
    for (const graph::Node& node : step.nodes()) {
      RONDO_TRY(add(node, Cutter(network_, step, numbers), wanted, {}));
      if (node.outputs.empty()) continue;
      Neighbours neighbours;
      for (const graph::DeferredNorm& norm : norms) {
        if (is_linear(node.op) && norm.output == node.inputs[0]) neighbours.norm_before = &norm;
        if (norm.input == node.outputs[0]) neighbours.norm_after = &norm;
      }
      // What computes the norm stands before it.
      const bool is_norm = std::any_of(norms.begin(), norms.end(), [&](const graph::DeferredNorm& norm) { return norm.output == node.outputs[0]; });
      neighbours.rounds = !is_norm && rounds(neighbours.norm_after ? neighbours.norm_after->output : node.outputs[0]);
      for (const graph::HalvedOutput& halves : halved) {
        if (halves.output == node.outputs[0]) neighbours.halves = &halves;
      }
      for (const graph::DeferredRotation& rotation : rotations) {
        if (rotation.input == node.outputs[0]) neighbours.rotation = &rotation;
      }
      if (neighbours.any()) RONDO_TRY(add(node, Cutter(network_, step, numbers), wanted, neighbours));
    }
    return {};
  }

  /// Kernels of the plan that no case has.
  const std::vector<runtime::Kernel>& missing() const { return missing_; }

  std::vector<SelfTestCase> take() { return std::move(cases_); }

 private:
  Status add(const graph::Node& node, Cutter cutter, const std::vector<runtime::Kernel>* wanted, const Neighbours& neighbours) {
    SelfTestCase test;
    if (neighbours.rotation) {
      RONDO_ASSIGN(test, cutter.cut_rotation(node, neighbours));
    } else {
      RONDO_ASSIGN(test, cutter.cut(node));
      if (neighbours.any()) {
        RONDO_ASSIGN(test, cutter.add_neighbours(neighbours));
      }
    }
    const bool has_input_made = neighbours.norm_before != nullptr;
    RONDO_ASSIGN(std::string key, add_lowered(node, cutter, test, wanted, has_input_made));
    if (!nodes_.insert(std::move(key)).second) return {};  // layers are alike
    // How the rows of linears and of attention are shared out depends on how many there are, and a case has fewer. Some ways are there
    // for a range of cores that holds no power of two. Attention of many rows is split where there are more keys than a case has; that of few rows leaves the same to who joins it then.
    const bool is_attention = node.op == graph::Op::attention;
    for (test.joins_splits = true; is_attention || is_linear(node.op); test.joins_splits = false) {
      for (test.cores = 1; test.cores <= kMostCores && !missing_.empty(); test.cores += std::max(1u, test.cores / 8)) {
        RONDO_TRY(add_lowered(node, cutter, test, wanted, has_input_made).status());
      }
      if (!is_attention || !test.joins_splits) break;
    }
    return {};
  }

  /// Keeps the case if it is new. Returns its key.
  Result<std::string> add_lowered(const graph::Node& node, const Cutter& cutter, const SelfTestCase& unlabelled, const std::vector<runtime::Kernel>* wanted, bool has_input_made) {
    graph::Graph lowered = unlabelled.graph;
    RONDO_ASSIGN(const GraphPlan plan, plan_graph(lowered, caps_, case_options(model_options_, unlabelled)));
    const runtime::Program& program = plan.lowered.program;
    std::string key;
    for (const runtime::Dispatch& dispatch : program.dispatches) {
      const runtime::Kernel& kernel = program.kernels[dispatch.kernel];
      key += fmt::format("{} {} ", runtime::shader_name(kernel.shader), fmt::join(std::span(kernel.constants).first(kernel.n_constants), ","));
      key.append(reinterpret_cast<const char*>(dispatch.push.data()), dispatch.push.size());
    }
    if (program.dispatches.empty() || keys_.contains(key)) return key;
    const auto has_one_of = [&](const std::vector<runtime::Kernel>& kernels) { return std::any_of(program.kernels.begin(), program.kernels.end(), [&](const runtime::Kernel& kernel) { return is_in(kernels, kernel); }); };
    if ((unlabelled.cores != 0 && !has_one_of(missing_)) || (wanted && !has_one_of(*wanted))) return key;
    keys_.insert(key);
    SelfTestCase test = unlabelled;
    test.label = label_of(node, std::span(program.dispatches).subspan(has_input_made ? 1 : 0));  // what makes its input comes first
    test.kernels = program.kernels;
    test.key = key;
    // Small differences of large numbers that are rounded twice.
    const auto n_dots = std::count_if(program.dispatches.begin(), program.dispatches.end(), [&](const runtime::Dispatch& dispatch) { return graph::by_integer_dots(program.kernels[dispatch.kernel]); });
    for (const runtime::Kernel& kernel : program.kernels) {
      const double rounding = graph::by_integer_dots(kernel) ? (n_dots > 1 ? kTwiceRounded : 1) * graph::kRoundedActivations : graph::rounds_to_halves(kernel) ? 10 * graph::kRoundedFactors : 0;
      for (auto& bound : test.bounds) bound.second = std::max(bound.second, rounding);
    }
    std::erase_if(missing_, [&](const runtime::Kernel& kernel) { return is_in(test.kernels, kernel); });
    for (const Variant& variant : variants_of(node.op)) {
      SelfTestCase one = test;
      one.key += variant.name;
      cutter.fill(one, variant);
      cases_.push_back(std::move(one));
    }
    return key;
  }

  const Network& network_;
  const runtime::DeviceCaps& caps_;
  const SessionPlan& plan_;
  const PlanOptions& model_options_;
  const GraphRunOptions options_;
  std::vector<runtime::Kernel> missing_;  ///< kernels of the plan that no case has yet
  bool fusion_ = true;
  std::vector<SelfTestCase> cases_;
  std::set<std::string> keys_, nodes_;  ///< of cases; of nodes as they were lowered for the device's own cores
};

}  // namespace

GraphRunOptions case_options(const PlanOptions& options, const SelfTestCase& test) {
  GraphRunOptions run;
  run.lowering = lowering_options(options, 0);
  run.lowering.fusion = test.fused;  // what else fusion makes is in the case
  run.lowering.cores = test.cores;
  run.lowering.joins_splits = test.joins_splits;
  run.lowering.experts = test.experts;
  run.guard_bytes = 256;
  return run;
}

Result<std::vector<SelfTestCase>> self_test_cases(const Network& network, const runtime::DeviceCaps& caps, const SessionPlan& plan, std::span<const StepKind> kinds,
                                                  const PlanOptions& options) {
  Collector collector(network, caps, plan, options);
  for (const StepKind& kind : kinds) RONDO_TRY(collector.add_step(kind, std::min(kind.rows, kRows), nullptr));
  // Some kernel may be chosen for more rows only.
  if (const std::vector<runtime::Kernel> missing = collector.missing(); !missing.empty()) {
    for (const StepKind& kind : kinds) RONDO_TRY(collector.add_step(kind, kind.rows, &missing));
  }
  if (const std::vector<runtime::Kernel> missing = collector.missing(); !missing.empty()) {
    return Status(StatusCode::kInternal, fmt::format("self-test: no case has kernel {} {}", runtime::shader_name(missing.front().shader), fmt::join(std::span(missing.front().constants).first(missing.front().n_constants), ",")));
  }
  return collector.take();
}

}  // namespace rondo::models
