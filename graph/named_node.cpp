#include "graph/named_node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>

#include "graph/activation.h"
#include "graph/operator.h"
#include "runtime/fmt.h"

namespace rondo::graph {

namespace {

using enum InputRole;

/// What an operator or view calls its inputs.
struct Signature {
  const char* op;
  std::array<NamedInput, 11> inputs;  ///< those behind the last have no name
};

constexpr bool kOptional = true;

constexpr Signature kSignatures[] = {
    {"embedding", {{{"ids", kIntegers}, {"weight", kMatrix}}}},
    {"linear", {{{"input"}, {"weight", kMatrix}, {"residual", kActivation, kOptional}, {"bias", kParameter, kOptional}}}},
    {"linear_glu", {{{"input"}, {"weight", kMatrix}}}},
    {"matmul", {{{"a"}, {"b"}}}},
    {"layer_norm", {{{"input"}, {"weight", kParameter, kOptional}, {"bias", kParameter, kOptional}}}},
    {"rms_norm", {{{"input"}, {"weight", kParameter, kOptional}}}},
    {"rope", {{{"input"}, {"positions", kIntegers}, {"frequency_factors", kConstant, kOptional}}}},
    {"attention",
     {{{"query"},
      {"key", kKeys},
      {"value", kKeys},
      {"query_offset", kIntegers, kOptional},
      {"lengths", kIntegers, kOptional},
      {"mask", kMask, kOptional},
      {"alibi_slopes", kParameter, kOptional},
      {"relative_bias", kParameter, kOptional},
      {"relative_key", kParameter, kOptional},
      {"relative_value", kParameter, kOptional},
      {"sinks", kParameter, kOptional}}}},
    {"rope_kv_write",
     {{{"query"},
      {"key"},
      {"value"},
      {"positions", kIntegers},
      {"start", kIntegers},
      {"count", kIntegers, kOptional},
      {"key_cache", kCache},
      {"value_cache", kCache},
      {"frequency_factors", kConstant, kOptional}}}},
    {"kv_write", {{{"cache", kCache}, {"update"}, {"start", kIntegers}, {"count", kIntegers, kOptional}}}},
    {"softmax", {{{"input"}, {"mask", kMask, kOptional}}}},
    {"log_softmax", {{{"input"}, {"mask", kMask, kOptional}}}},
    {"glu", {{{"gate"}, {"up"}}}},
    {"relu", {{{"input"}}}},
    {"gelu", {{{"input"}}}},
    {"gelu_tanh", {{{"input"}}}},
    {"quick_gelu", {{{"input"}}}},
    {"silu", {{{"input"}}}},
    {"tanh", {{{"input"}}}},
    {"sigmoid", {{{"input"}}}},
    {"exp", {{{"input"}}}},
    {"neg", {{{"input"}}}},
    {"add", {{{"a"}, {"b"}}}},
    {"sub", {{{"a"}, {"b"}}}},
    {"mul", {{{"a"}, {"b"}}}},
    {"div", {{{"a"}, {"b"}}}},
    {"mean", {{{"input"}}}},
    {"sum", {{{"input"}}}},
    {"max", {{{"input"}}}},
    {"concat",
     {{{"a"},
       {"b", kActivation, kOptional},
       {"c", kActivation, kOptional},
       {"d", kActivation, kOptional},
       {"e", kActivation, kOptional},
       {"f", kActivation, kOptional},
       {"g", kActivation, kOptional},
       {"h", kActivation, kOptional},
       {"i", kActivation, kOptional},
       {"j", kActivation, kOptional},
       {"k", kActivation, kOptional}}}},
    {"pad", {{{"input"}}}},
    {"copy", {{{"input"}}}},
    {"widen", {{{"input"}}}},
    {"slice", {{{"input"}}}},
    {"transpose", {{{"input"}}}},
    {"reshape", {{{"input"}}}},
    {"sinusoidal_positions", {{{"positions", kIntegers}}}},
    {"patch_embed", {{{"pixels"}, {"weight", kMatrix}, {"bias", kParameter, kOptional}}}},
    {"argmax", {{{"input"}}}},
    {"top_k", {{{"input"}}}},
    {"step_begin", {{{"tokens", kStepState}, {"state", kStepState}}}},
    {"sample", {{{"logits"}, {"tokens", kStepState}, {"state", kStepState}}}},
    {"step_end", {{{"token", kIntegers, kOptional}, {"tokens", kStepState}, {"mirror", kStepState}, {"state", kStepState}}}},
};

Status refuse(const NamedNode& node, const std::string& message) { return Status(StatusCode::kInvalidArgument, fmt::format("[{}] {}", node.op, message)); }

/// Takes attributes by name, each into the field that it sets; the fields keep their defaults where there is none.
class AttributeReader {
 public:
  explicit AttributeReader(const NamedNode& node) : node_(node) {}

  void read(const char* name, bool& field) {
    if (const AttributeValue* found = take(name)) {
      if (const bool* value = std::get_if<bool>(found)) field = *value;
      else fail(name, "true or false");
    }
  }
  void read(const char* name, std::int64_t& field) {
    if (const AttributeValue* found = take(name)) {
      if (const auto* value = std::get_if<std::int64_t>(found); value && fits(*value)) field = *value;
      else fail(name, "an integer of at most 31 bits");
    }
  }
  void read(const char* name, double& field) {
    if (const AttributeValue* found = take(name)) {
      double value = std::numeric_limits<double>::infinity();
      if (const auto* integer = std::get_if<std::int64_t>(found)) value = static_cast<double>(*integer);
      if (const auto* real = std::get_if<double>(found)) value = *real;
      if (std::abs(value) <= std::numeric_limits<float>::max()) field = value;
      else fail(name, "a number that fits f32");
    }
  }
  /// A list of at most kMaxRank integers, empty if it is absent.
  void read(const char* name, std::vector<std::int64_t>& field) {
    if (const AttributeValue* found = take(name)) {
      const auto* value = std::get_if<std::vector<std::int64_t>>(found);
      if (value && value->size() <= kMaxRank && std::all_of(value->begin(), value->end(), fits)) field = *value;
      else fail(name, fmt::format("a list of at most {} integers of at most 31 bits", kMaxRank));
    }
  }
  void read(const char* name, Activation& field) {
    if (const AttributeValue* found = take(name)) {
      const auto* text = std::get_if<std::string>(found);
      const std::optional<Activation> value = text ? find_activation(*text) : std::nullopt;
      if (value) field = *value;
      else fail(name, "the name of an activation, as in \"gelu\"");
    }
  }
  /// The field becomes the first value for the first name, the second one for the second name.
  template <typename Choice>
  void read_choice(const char* name, Choice& field, const char* first, const char* second) {
    static_assert(std::is_enum_v<Choice>);
    if (const AttributeValue* found = take(name)) {
      const auto* text = std::get_if<std::string>(found);
      if (text && (*text == first || *text == second)) field = static_cast<Choice>(*text == first ? 0 : 1);
      else fail(name, fmt::format("\"{}\" or \"{}\"", first, second));
    }
  }
  /// The same of a field that has no default.
  template <typename Choice>
  void read_choice(const char* name, std::optional<Choice>& field, const char* first, const char* second) {
    Choice value{};
    read_choice(name, value, first, second);
    if (find(name)) field = value;
  }
  void require(const char* name) {
    if (status_.ok() && !find(name)) status_ = refuse(node_, fmt::format("attribute '{}' is missing", name));
  }

  /// The first refusal; of attributes that nobody asked for if there was none before.
  Status finish() const {
    RONDO_TRY(Status(status_));
    for (const auto& [name, value] : node_.attributes) {
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      return refuse(node_, known_.empty() ? fmt::format("has no attributes, but '{}' is given", name)
                                          : fmt::format("has no attribute '{}'; there are {}", name, fmt::join(known_, ", ")));
    }
    return {};
  }

 private:
  static constexpr std::int64_t kMostInteger = (std::int64_t{1} << 31) - 1;
  static bool fits(std::int64_t value) { return value >= -kMostInteger && value <= kMostInteger; }

  const AttributeValue* find(std::string_view name) const {
    const auto named = [&](const auto& attribute) { return attribute.first == name; };
    const auto found = std::find_if(node_.attributes.begin(), node_.attributes.end(), named);
    return found == node_.attributes.end() ? nullptr : &found->second;
  }
  const AttributeValue* take(const char* name) {
    known_.emplace_back(name);
    const auto named = [&](const auto& attribute) { return attribute.first == name; };
    if (status_.ok() && std::count_if(node_.attributes.begin(), node_.attributes.end(), named) > 1) {
      status_ = refuse(node_, fmt::format("attribute '{}' is given twice", name));
    }
    return find(name);
  }
  void fail(const char* name, const std::string& expected) {
    if (status_.ok()) status_ = refuse(node_, fmt::format("attribute '{}' must be {}", name, expected));
  }

  const NamedNode& node_;
  std::vector<std::string_view> known_;
  Status status_;
};

void read_attributes(AttributeReader& reader, RopeAttributes& rope) {
  reader.read_choice("style", rope.style, "half", "interleaved");
  reader.read("dimensions", rope.dimensions);
  reader.read("theta", rope.theta);
  reader.read("attention_factor", rope.attention_factor);
  reader.read("max_position", rope.max_position);
}

void read_attributes(AttributeReader& reader, AttentionAttributes& attention) {
  reader.read("scale", attention.scale);
  reader.read("causal", attention.causal);
  reader.read("window_back", attention.window_back);
  reader.read("window_ahead", attention.window_ahead);
  reader.read("prefix", attention.prefix);
  reader.read("chunk", attention.chunk);
  reader.read("chunks_back", attention.chunks_back);
  reader.read("softcap", attention.softcap);
  reader.read("bidirectional_buckets", attention.bidirectional_buckets);
  reader.read("max_distance", attention.max_distance);
}

void read_attributes(AttributeReader& reader, RmsNormAttributes& norm) {
  reader.read("epsilon", norm.epsilon);
  reader.read("weight_offset", norm.weight_offset);
}

void read_attributes(AttributeReader& reader, LayerNormAttributes& norm) { reader.read("epsilon", norm.epsilon); }
void read_attributes(AttributeReader& reader, LinearAttributes& linear) { reader.read("activation", linear.activation); }
void read_attributes(AttributeReader& reader, GluAttributes& glu) { reader.read("activation", glu.activation); }
void read_attributes(AttributeReader& reader, StepBeginAttributes& begin) { reader.read("rows", begin.rows); }
void read_attributes(AttributeReader& reader, ConcatAttributes& concat) { reader.read("axis", concat.axis); }

void read_attributes(AttributeReader& reader, SoftmaxAttributes& softmax) {
  reader.read("axis", softmax.axis);
  reader.read("scale", softmax.scale);
}

void read_attributes(AttributeReader& reader, MatmulAttributes& matmul) {
  reader.read("transpose_a", matmul.transpose_a);
  reader.read("transpose_b", matmul.transpose_b);
  reader.read("scale", matmul.scale);
}

void read_attributes(AttributeReader& reader, ReduceAttributes& reduce) {
  reader.read("axis", reduce.axis);
  reader.read("keep", reduce.keep);
}

void read_attributes(AttributeReader& reader, TopKAttributes& top) {
  reader.require("k");
  reader.read("k", top.k);
}

void read_attributes(AttributeReader& reader, PadAttributes& pad) {
  std::vector<std::int64_t> before, after;
  reader.read("before", before);
  reader.read("after", after);
  reader.read("value", pad.value);
  std::copy(before.begin(), before.end(), pad.before.begin());
  std::copy(after.begin(), after.end(), pad.after.begin());
}

void read_attributes(AttributeReader& reader, SinusoidAttributes& sinusoid) {
  reader.require("width");
  reader.read("width", sinusoid.width);
  reader.read("theta", sinusoid.theta);
  reader.read_choice("layout", sinusoid.layout, "interleaved", "split");
  reader.read_choice("type", sinusoid.type, "f32", "f16");
}

void read_attributes(AttributeReader& reader, EmbeddingAttributes& embedding) { reader.read_choice("type", embedding.type, "f32", "f16"); }

void read_attributes(AttributeReader& reader, PatchEmbedAttributes& patches) {
  reader.require("patch");
  reader.read("patch", patches.patch);
}

template <typename T>
Result<Attributes> read_as(const NamedNode& node) {
  AttributeReader reader(node);
  T attributes;
  read_attributes(reader, attributes);
  RONDO_TRY(reader.finish());
  return Attributes(attributes);
}

Result<Attributes> read_attributes_of(Op op, const NamedNode& node) {
  switch (op) {
    case Op::rope:
    case Op::rope_kv_write: return read_as<RopeAttributes>(node);
    case Op::rms_norm: return read_as<RmsNormAttributes>(node);
    case Op::layer_norm: return read_as<LayerNormAttributes>(node);
    case Op::attention: return read_as<AttentionAttributes>(node);
    case Op::linear: return read_as<LinearAttributes>(node);
    case Op::glu:
    case Op::linear_glu: return read_as<GluAttributes>(node);
    case Op::matmul: return read_as<MatmulAttributes>(node);
    case Op::softmax:
    case Op::log_softmax: return read_as<SoftmaxAttributes>(node);
    case Op::mean:
    case Op::sum:
    case Op::max: return read_as<ReduceAttributes>(node);
    case Op::top_k: return read_as<TopKAttributes>(node);
    case Op::concat: return read_as<ConcatAttributes>(node);
    case Op::pad: return read_as<PadAttributes>(node);
    case Op::embedding: return read_as<EmbeddingAttributes>(node);
    case Op::sinusoidal_positions: return read_as<SinusoidAttributes>(node);
    case Op::patch_embed: return read_as<PatchEmbedAttributes>(node);
    case Op::step_begin: return read_as<StepBeginAttributes>(node);
    default: {
      RONDO_TRY(AttributeReader(node).finish());
      return Attributes{};
    }
  }
}

/// The node's inputs in the operator's order, kNone where an optional one is absent.
Result<std::vector<TensorId>> order_inputs(const NamedNode& node, std::span<const NamedInput> expected) {
  std::vector<TensorId> ordered(expected.size(), kNone);
  for (const auto& [name, tensor] : node.inputs) {
    const auto found = std::find_if(expected.begin(), expected.end(), [&wanted = name](const NamedInput& input) { return wanted == input.name; });
    if (found == expected.end()) {
      std::vector<const char*> names;
      for (const NamedInput& input : expected) names.push_back(input.name);
      return refuse(node, fmt::format("has no input '{}'; there are {}", name, fmt::join(names, ", ")));
    }
    TensorId& slot = ordered[static_cast<std::size_t>(found - expected.begin())];
    if (slot != kNone) return refuse(node, fmt::format("input '{}' is given twice", name));
    slot = tensor;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].optional && ordered[i] == kNone) return refuse(node, fmt::format("input '{}' is missing", expected[i].name));
  }
  if (node.op != "concat") return ordered;
  while (ordered.back() == kNone) ordered.pop_back();
  const auto hole = std::find(ordered.begin(), ordered.end(), kNone);
  if (hole != ordered.end()) return refuse(node, fmt::format("input '{}' is missing", expected[static_cast<std::size_t>(hole - ordered.begin())].name));
  return ordered;
}

Result<TensorId> add_slice(Graph& graph, const NamedNode& node, TensorId input) {
  std::vector<std::int64_t> starts, ends, steps;
  AttributeReader reader(node);
  reader.require("starts");
  reader.require("ends");
  reader.read("starts", starts);
  reader.read("ends", ends);
  reader.read("steps", steps);
  RONDO_TRY(reader.finish());
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || steps.size() != starts.size()) return refuse(node, "'starts', 'ends' and 'steps' differ in length");
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i) ranges.push_back({starts[i], ends[i], steps[i]});
  return graph.slice(input, ranges);
}

Result<TensorId> add_transpose(Graph& graph, const NamedNode& node, TensorId input) {
  std::vector<std::int64_t> permutation;
  AttributeReader reader(node);
  reader.require("permutation");
  reader.read("permutation", permutation);
  RONDO_TRY(reader.finish());
  std::vector<int> axes;
  for (std::int64_t axis : permutation) axes.push_back(static_cast<int>(axis));
  return graph.transpose(input, axes);
}

Result<TensorId> add_reshape(Graph& graph, const NamedNode& node, TensorId input) {
  std::vector<std::int64_t> extents;
  AttributeReader reader(node);
  reader.require("shape");
  reader.read("shape", extents);
  RONDO_TRY(reader.finish());
  Shape shape;
  std::int64_t n = 1;
  for (std::int64_t extent : extents) {
    if (extent < 1 || n > std::numeric_limits<std::int32_t>::max() / extent) {
      return refuse(node, fmt::format("attribute 'shape' must have extents of at least 1 that fit 31 bits together, not ({})", fmt::join(extents, ", ")));
    }
    n *= extent;
    shape[shape.rank++] = extent;
  }
  return graph.reshape_or_copy(input, shape);
}

}  // namespace

std::span<const NamedInput> named_inputs(std::string_view op) {
  for (const Signature& signature : kSignatures) {
    if (op != signature.op) continue;
    const auto end = std::find_if(signature.inputs.begin(), signature.inputs.end(), [](const NamedInput& input) { return input.name == nullptr; });
    return {signature.inputs.begin(), end};
  }
  return {};
}

Result<std::vector<TensorId>> add_named_node(Graph& graph, const NamedNode& node) {
  const std::span<const NamedInput> expected = named_inputs(node.op);
  if (expected.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("there is no operator '{}'", node.op));
  RONDO_ASSIGN(const std::vector<TensorId> inputs, order_inputs(node, expected));
  std::vector<TensorId> outputs;
  if (const std::optional<Op> op = find_operator(node.op)) {
    RONDO_ASSIGN(Attributes attributes, read_attributes_of(*op, node));
    graph.add(*op, inputs, std::move(attributes));
    RONDO_TRY(Status(graph.status()));
    outputs = graph.last_outputs();
  } else {
    const auto add = node.op == "slice" ? add_slice : node.op == "transpose" ? add_transpose : add_reshape;
    RONDO_ASSIGN(const TensorId view, add(graph, node, inputs.front()));
    outputs = {view};
  }
  RONDO_TRY(Status(graph.status()));
  return outputs;
}

}  // namespace rondo::graph
