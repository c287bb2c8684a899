// From a case's text to its graph: tensors of every layout, and numbers that fit their role.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <span>

#include "graph/float16.h"
#include "lib/step_state.h"
#include "runtime/fmt.h"
#include "tools/check/case_text.h"

namespace rondo::check {

namespace {

using graph::InputRole;
using graph::kNone;
using graph::Shape;
using graph::TensorId;
using graph::Type;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

/// Sequences are counted by the first axis of the operator's first input.
bool counts_sequences(std::string_view op) { return table_of(op).rows != graph::StepRows::kFirstAxis; }

class Builder {
 public:
  Builder(const CaseText& text, Values values, std::uint32_t seed, std::size_t special, bool rounded)
      : text_(text), values_(values), seed_(seed), special_(special), rounded_(rounded), case_(n_sequences(text)), hidden_(hidden_keys(text)) {}

  Result<OpCase> build() {
    RONDO_TRY(check_sequences());
    RONDO_TRY(set_state());
    RONDO_TRY(make_joined());
    graph::NamedNode node{text_.op, {}, text_.attributes};
    for (std::size_t i = 0; i < text_.inputs.size(); ++i) {
      if (text_.inputs[i].name == "state") continue;
      RONDO_ASSIGN(const TensorId id, make(text_.inputs[i], i));
      if (const Status& status = case_.graph.status(); !status.ok()) return refuse(status.message());
      node.inputs.emplace_back(text_.inputs[i].name, id);
    }
    for (const graph::NamedInput& input : graph::named_inputs(text_.op)) {
      if (std::string_view(input.name) == "state") node.inputs.emplace_back("state", case_.state);
    }
    Result<std::vector<TensorId>> outputs = graph::add_named_node(case_.graph, node);
    if (!outputs.ok()) return refuse(outputs.status().message());
    for (const TensorId output : *outputs) finish(output);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < case_.graph.n_storages(); ++i) bytes += case_.graph.storage(static_cast<graph::StorageId>(i)).size_bytes;
    if (bytes > kMostBytes) return refuse(fmt::format("takes {} MB, more than {}", bytes >> 20, kMostBytes >> 20));
    return std::move(case_);
  }

 private:
  Status refuse(const std::string& message) const { return Status(StatusCode::kInvalidArgument, fmt::format("case '{}': {}", text_.text, message)); }

  /// What is said of sequences is about those that there are.
  Status check_sequences() const {
    const std::int64_t n = case_.graph.n_sequences, rows = text_.inputs.empty() ? 0 : text_.inputs.front().shape[0];
    const bool fits = counts_sequences(text_.op) ? n == rows : rows % n == 0;
    if (!text_.valid.empty() && !fits) return refuse(fmt::format("'valid' is of {} sequences, which {} rows are not", n, rows));
    for (const std::int64_t count : text_.valid) {
      if (count < 0) return refuse(fmt::format("'valid' holds {}, which is no number of rows", count));
    }
    for (const std::int64_t b : text_.inactive) {
      if (b < 0 || b >= n) return refuse(fmt::format("'inactive' holds {} but there are {} sequences", b, n));
    }
    return {};
  }

  static std::int64_t n_sequences(const CaseText& text) {
    if (!text.valid.empty()) return static_cast<std::int64_t>(text.valid.size());
    return counts_sequences(text.op) && !text.inputs.empty() ? text.inputs.front().shape[0] : 1;
  }

  /// A result is what rows of the step it has: along axis 2 of heads, along axis 0 of all others.
  void finish(TensorId output) {
    const graph::StorageKind kind = case_.graph.storage_of(output).kind;
    const bool heads = table_of(text_.op).rows == graph::StepRows::kHeads;
    if (kind == graph::StorageKind::kActivation) case_.output(output, heads ? 2 : 0);
    else case_.output(case_.graph.add(graph::Op::copy, {output}), 0);  // a view of an input
  }

  Status set_state() {
    for (std::size_t b = 0; b < text_.valid.size(); ++b) case_.set_count(static_cast<std::int64_t>(b), static_cast<std::int32_t>(text_.valid[b]));
    const auto all = [&](int word, std::int32_t value) {
      for (std::int64_t b = 0; b < case_.graph.n_sequences; ++b) case_.set_state(b, word, value);
    };
    const std::map<std::string_view, int> integers = {{"position", RONDO_STATE_POSITION}, {"seed", RONDO_STATE_SEED_LOW}, {"top_k", RONDO_STATE_TOP_K}, {"repeat_last_n", RONDO_STATE_REPEAT_LAST_N}};
    const std::map<std::string_view, int> floats = {
        {"temperature", RONDO_STATE_TEMPERATURE}, {"top_p", RONDO_STATE_TOP_P}, {"min_p", RONDO_STATE_MIN_P}, {"repeat_penalty", RONDO_STATE_REPEAT_PENALTY}};
    if (text_.op == "sample") all(RONDO_STATE_TOP_P, std::bit_cast<std::int32_t>(1.0f)), all(RONDO_STATE_REPEAT_PENALTY, std::bit_cast<std::int32_t>(1.0f));
    for (const auto& [name, value] : text_.state) {
      if (const auto word = integers.find(name); word != integers.end()) {
        if (value != std::floor(value) || std::abs(value) > 0x7fffffff) return refuse(fmt::format("'state.{}' is {}, which is no integer of 31 bits", name, value));
        all(word->second, static_cast<std::int32_t>(value));
      }
      else if (const auto real = floats.find(name); real != floats.end()) all(real->second, std::bit_cast<std::int32_t>(static_cast<float>(value)));
      else return refuse(fmt::format("the step state has no '{}'", name));
    }
    if (text_.stop_ids.size() > RONDO_STATE_MAX_STOP_IDS) return refuse(fmt::format("'state.stop' has more than {} ids", RONDO_STATE_MAX_STOP_IDS));
    all(RONDO_STATE_N_STOP, static_cast<std::int32_t>(text_.stop_ids.size()));
    for (std::size_t i = 0; i < text_.stop_ids.size(); ++i) all(RONDO_STATE_STOP_IDS + static_cast<int>(i), static_cast<std::int32_t>(text_.stop_ids[i]));
    for (const std::int64_t b : text_.inactive) case_.set_state(b, RONDO_STATE_ACTIVE, 0);
    return {};
  }

  std::uint32_t seed_of(std::size_t index) const { return seed_ * 1000003u + static_cast<std::uint32_t>(index) * 7919u; }

  /// Row-major values of an input.
  std::vector<float> numbers(const CaseInput& input, const Shape& shape, std::size_t index) const {
    const auto n = static_cast<std::size_t>(shape.n_elements());
    const bool scaled = input.role == InputRole::kActivation || input.role == InputRole::kKeys;
    const graph::Accuracy& accuracy = table_of(text_.op).accuracy;
    const float large = has_f16_activations(text_) ? accuracy.large_f16 : accuracy.large;
    const float scale = input.scale * (values_ == Values::kLarge && scaled ? large : 1);
    if (values_ == Values::kInteger) return integer_values(n, seed_of(index), 4);
    if (values_ == Values::kBytes && input.name == "input") return bytes_of_groups(n, static_cast<std::size_t>(shape.last()), seed_of(index));
    std::vector<float> made = random_values(n, seed_of(index), scale);
    if (input.role == InputRole::kConstant) {  // factors that divide
      for (float& value : made) value = 1.5f + 0.5f * value;
    }
    // One in the first row, which counts and is seen wherever any is, the other in the middle.
    if (index == special_ && values_ == Values::kNan) made[static_cast<std::size_t>((shape.rank == 0 ? 1 : shape.last()) / 2)] = kNotANumber;
    if (index == special_ && values_ == Values::kInfinity) made[n / 2] = std::numeric_limits<float>::infinity();
    if (rounded_ && input.name == "input") {
      if (input.type == Type::kF16) std::transform(made.begin(), made.end(), made.begin(), [](float value) { return graph::half_to_float(graph::float_to_half(value)); });
      round_to_bytes(static_cast<std::size_t>(shape.last()), made);
    }
    return made;
  }

  static void round_to_bytes(std::size_t columns, std::vector<float>& values) {
    for (std::size_t first = 0; first < values.size();) {
      const auto group = std::span(values).subspan(first, std::min(kGroup, columns - first % columns));
      float most = 0;
      for (const float value : group) most = std::isfinite(most - value) ? std::max(most, std::abs(value)) : kNotANumber;
      const float scale = scale_of_bytes(most);
      for (float& value : group) value = std::isnan(most) ? kNotANumber : most < 1e-36f ? 0 : std::nearbyint(value * (1 / scale)) * scale;
      first += group.size();
    }
  }

  /// As shaders/lib/rounding.glsl has it: in 20 bits.
  static float scale_of_bytes(float most) { return std::bit_cast<float>((std::bit_cast<std::uint32_t>(most * (1.0f / 127)) + 0x800u) & ~0xfffu); }

  /// Rows of whole numbers up to 127, which the first of each 32 columns is, times a scale of these: about as large as random ones.
  static std::vector<float> bytes_of_groups(std::size_t n, std::size_t columns, std::uint32_t seed) {
    std::vector<float> made = integer_values(n, seed, 127);
    const std::vector<float> scales = random_values(n, seed + 1);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t column = i % columns, first = i - column % kGroup;
      if (column % kGroup == 0) made[i] = 127;
      made[i] *= scale_of_bytes(0.01f + std::abs(scales[first]));
    }
    return made;
  }
  static constexpr std::size_t kGroup = 32;

  /// Keys that no query of a sequence sees, because `lengths` or a boolean mask hides them: [sequence][key].
  static std::vector<std::vector<bool>> hidden_keys(const CaseText& text) {
    const auto find = [&](std::string_view name) {
      const auto found = std::find_if(text.inputs.begin(), text.inputs.end(), [&](const CaseInput& input) { return input.name == name; });
      return found == text.inputs.end() ? nullptr : &*found;
    };
    const CaseInput *query = find("query"), *key = find("key"), *lengths = find("lengths"), *mask = find("mask");
    if (!text.op.starts_with("attention") || !query || query->shape.rank != 4 || !key || key->shape.rank != 4) return {};
    std::vector<std::vector<bool>> hidden(static_cast<std::size_t>(query->shape[0]), std::vector<bool>(static_cast<std::size_t>(key->shape[2])));
    for (std::size_t b = 0; b < hidden.size(); ++b) {
      for (std::size_t j = 0; j < hidden[b].size(); ++j) {
        const bool counted = lengths && !lengths->integers.empty();
        hidden[b][j] = (counted && static_cast<std::int64_t>(j) >= lengths->integers[std::min(b, lengths->integers.size() - 1)]) ||
                       (mask && mask->boolean && mask->shape.last() == key->shape[2] && is_masked(*mask, j));
      }
    }
    return hidden;
  }
  /// Whether a mask hides key j from all queries: one key in the middle, if it is boolean, and of many keys every second block of those that kernels take at a time.
  static bool is_masked(const CaseInput& mask, std::size_t j) {
    constexpr std::size_t kMany = 256, kBlock = 64;
    const auto keys = static_cast<std::size_t>(mask.shape.last());
    return (mask.boolean && j == keys / 2) || (keys >= kMany && j / kBlock % 2 == 1);
  }
  /// Key j of the keys' sequence b is hidden; from all sequences, where these keys are for all.
  bool is_hidden(std::size_t b, bool for_all, std::size_t j) const {
    const auto in = [&](const std::vector<bool>& keys) { return j < keys.size() && keys[j]; };
    if (for_all) return !hidden_.empty() && std::all_of(hidden_.begin(), hidden_.end(), in);
    return b < hidden_.size() && in(hidden_[b]);
  }

  /// Keys and values: what nobody may see is NaN.
  std::vector<float> key_numbers(const CaseInput& input, std::size_t index) const {
    std::vector<float> made = numbers(input, input.shape, index);
    const auto heads = static_cast<std::size_t>(input.shape[1]), keys = static_cast<std::size_t>(input.shape[2]), width = static_cast<std::size_t>(input.shape[3]);
    for (std::size_t row = 0; row < made.size() / width; ++row) {
      const std::size_t b = row / keys / heads, j = row % keys;
      if (is_hidden(b, input.shape[0] == 1, j)) std::fill_n(made.begin() + static_cast<std::ptrdiff_t>(row * width), width, kNotANumber);
    }
    return made;
  }

  /// f32 or f16 of any layout; elements of the storage that are not the tensor's are NaN.
  TensorId place(const CaseInput& input, const std::vector<float>& values) {
    graph::Graph& g = case_.graph;
    const int rank = input.shape.rank;
    if (input.layout == Layout::kTransposed || input.layout == Layout::kPermuted) {
      std::vector<int> axes;
      for (int axis = 0; axis < rank; ++axis) axes.push_back(input.layout == Layout::kPermuted ? rank - 1 - axis : axis);
      if (input.layout == Layout::kTransposed && rank > 1) std::swap(axes[static_cast<std::size_t>(rank - 1)], axes[static_cast<std::size_t>(rank - 2)]);
      Shape stored = input.shape;
      for (int axis = 0; axis < rank; ++axis) stored[axis] = input.shape[axes[static_cast<std::size_t>(axis)]];
      const TensorId memory = case_.activation(input.name, input.type, stored, std::vector<float>(values.size(), kNotANumber));
      return fill(g.transpose(memory, axes), values);  // both permutations are their own inverses
    }
    if (input.layout == Layout::kSliced || input.layout == Layout::kStepped) {
      const std::int64_t step = input.layout == Layout::kStepped ? 2 : 1;
      Shape stored = input.shape;
      std::vector<graph::SliceRange> ranges;
      for (int axis = 0; axis < rank; ++axis) {
        stored[axis] = step * input.shape[axis] + 3;
        ranges.push_back({1, 1 + step * input.shape[axis], step});
      }
      const TensorId memory = case_.activation(input.name, input.type, stored, std::vector<float>(static_cast<std::size_t>(stored.n_elements()), kNotANumber));
      return fill(g.slice(memory, ranges), values);
    }
    return case_.activation(input.name, input.type, input.shape, values);
  }

  /// Puts `values` where the elements of a view are.
  TensorId fill(TensorId view, const std::vector<float>& values) {
    case_.write(view, values);
    return view;
  }

  /// All joined inputs as views of one tensor (B, T, heads, D).
  Status make_joined() {
    Shape all;
    Type type = Type::kF32;
    for (const CaseInput& input : text_.inputs) {
      if (input.layout != Layout::kJoined) continue;
      if (all.rank != 0 && input.type != type) return refuse(fmt::format("'{}' is {}, but what is joined has one type", input.name, graph::type_name(input.type)));
      type = input.type;
      if (input.shape.rank != 4) return refuse(fmt::format("'{}' is {} but joined ones are (B, heads, T, D)", input.name, to_string(input.shape)));
      const Shape own = {input.shape[0], input.shape[2], (all.rank == 0 ? 0 : all[2]) + input.shape[1], input.shape[3]};
      if (all.rank != 0 && (own[0] != all[0] || own[1] != all[1] || own[3] != all[3])) return refuse(fmt::format("'{}' is {}, which can't be joined with those before", input.name, to_string(input.shape)));
      all = own;
    }
    if (all.rank != 0) joined_ = case_.activation("joined", type, all, std::vector<float>(static_cast<std::size_t>(all.n_elements()), kNotANumber));
    return {};
  }
  TensorId take_joined(const CaseInput& input, const std::vector<float>& values) {
    const TensorId heads = case_.graph.slice(joined_, 2, first_head_, first_head_ + input.shape[1]);
    first_head_ += input.shape[1];
    return fill(case_.graph.transpose(heads, {0, 2, 1, 3}), values);
  }

  std::vector<std::int32_t> integers(const CaseInput& input, std::size_t index) const {
    if (!input.integers.empty()) return input.integers;
    std::mt19937 bits(seed_of(index));
    std::vector<std::int32_t> made(static_cast<std::size_t>(input.shape.n_elements()));
    const auto below = [&](std::int64_t end) { return static_cast<std::int32_t>(bits() % static_cast<std::uint32_t>(end)); };
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (input.name == "ids" || input.name == "experts") made[i] = below(n_numbers(input.name) + 2) - 1;  // -1 and V are outside
      else if (input.boolean) made[i] = below(4) != 0;
      else made[i] = below(100);
    }
    if (!input.boolean) return made;
    // Keys hidden from all, and one row that sees none.
    const auto columns = static_cast<std::size_t>(input.shape.last());
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = is_masked(input, i % columns) ? 0 : made[i];
    if (made.size() > columns) std::fill_n(made.begin() + static_cast<std::ptrdiff_t>(columns), columns, 0);
    return made;
  }

  /// V of an embedding, or how many experts there are.
  std::int64_t n_numbers(std::string_view name) const {
    if (name == "experts") {
      for (const auto& [attribute, value] : text_.attributes) {
        if (const std::int64_t* const count = std::get_if<std::int64_t>(&value); attribute == "count" && count) return std::clamp<std::int64_t>(*count, 1, 1 << 20);
      }
    }
    const auto weight = std::find_if(text_.inputs.begin(), text_.inputs.end(), [](const CaseInput& input) { return input.name == "weight"; });
    return weight == text_.inputs.end() ? 1 : weight->shape[0];
  }

  /// Whether an input of this role and type can lie so.
  static bool can_lie(const CaseInput& input) {
    const bool number = input.type == Type::kF32 || input.type == Type::kF16;
    switch (input.role) {
      case InputRole::kActivation: return number;
      case InputRole::kParameter: return number && input.layout != Layout::kJoined;
      case InputRole::kMask: return input.layout == Layout::kDense || (number && input.layout != Layout::kJoined);
      case InputRole::kKeys: return input.shape.rank == 4 && (input.layout == Layout::kDense || (number && input.layout != Layout::kJoined));
      case InputRole::kMatrix: return input.layout == Layout::kDense || input.layout == Layout::kSliced;
      case InputRole::kCache: return input.shape.rank == 4 && input.layout == Layout::kDense;
      default: return input.layout == Layout::kDense;
    }
  }

  /// An added mask: -infinity for one element in four, and for what all are hidden from.
  std::vector<float> mask_numbers(const CaseInput& input, std::size_t index) const {
    std::vector<float> made = random_values(static_cast<std::size_t>(input.shape.n_elements()), seed_of(index), input.scale);
    if (!text_.op.starts_with("attention")) return made;
    std::mt19937 bits(seed_of(index) + 1);
    const auto columns = static_cast<std::size_t>(input.shape.last());
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = bits() % 4 == 0 || is_masked(input, i % columns) ? -std::numeric_limits<float>::infinity() : made[i];
    return made;
  }

  Result<TensorId> make(const CaseInput& input, std::size_t index) {
    if (!can_lie(input)) return refuse(fmt::format("'{}' can't be {} {} of this layout", input.name, graph::type_name(input.type), to_string(input.shape)));
    switch (input.role) {
      case InputRole::kActivation:
      case InputRole::kParameter:
        if (input.layout == Layout::kJoined) return take_joined(input, numbers(input, input.shape, index));
        return place(input, numbers(input, input.shape, index));
      case InputRole::kMatrix: return make_matrix(input, index);
      case InputRole::kKeys:
      case InputRole::kCache:
        if (input.layout != Layout::kDense) return place(input, key_numbers(input, index));
        return case_.cache(input.name, input.type, input.shape, key_numbers(input, index));
      case InputRole::kConstant: return case_.graph.add_constant(input.name, input.shape, numbers(input, input.shape, index));
      case InputRole::kMask:
        if (!input.boolean) return place(input, mask_numbers(input, index));
        [[fallthrough]];
      case InputRole::kIntegers:
      case InputRole::kStepState: {
        const std::vector<std::int32_t> made = integers(input, index);
        if (made.size() != static_cast<std::size_t>(input.shape.n_elements())) return refuse(fmt::format("'{}' is {} but has {} integers", input.name, to_string(input.shape), made.size()));
        return input.role == InputRole::kStepState ? case_.step_i32(input.name, input.shape, made) : case_.i32(input.name, input.shape, made);
      }
    }
    return kNone;
  }

  Result<TensorId> make_matrix(const CaseInput& input, std::size_t index) {
    if (input.type == Type::kI32) return refuse(fmt::format("'{}' can't be i32", input.name));
    const bool sliced = input.layout == Layout::kSliced;
    const std::int64_t rows = input.shape[0], columns = input.shape.n_elements() / rows, stored = rows + (sliced ? 3 : 0);
    if (whole_blocks(input.type, columns) != columns) {
      return refuse(fmt::format("{} columns of '{}' are no whole blocks of {}", columns, input.name, graph::type_name(input.type)));
    }
    const WeightValues kind = values_ == Values::kInteger ? WeightValues::kInteger : values_ == Values::kLarge ? WeightValues::kLarge : WeightValues::kRandom;
    TensorId weight = case_.weight(input.name, input.type, stored, columns, weight_rows(input.type, stored, columns, seed_of(index), kind));
    if (sliced) weight = case_.graph.slice(weight, 0, 1, 1 + rows);
    return weight;
  }

  const CaseText& text_;
  Values values_;
  std::uint32_t seed_;
  std::size_t special_;
  bool rounded_;
  OpCase case_;
  std::vector<std::vector<bool>> hidden_;
  TensorId joined_ = kNone;
  std::int64_t first_head_ = 0;
};

}  // namespace

Result<OpCase> build_case(const CaseText& text, Values values, std::uint32_t seed, std::size_t special, bool rounded) {
  return Builder(text, values, seed, special, rounded).build();
}

}  // namespace rondo::check
