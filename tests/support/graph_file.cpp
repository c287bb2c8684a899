#include "tests/support/graph_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <rondo/byte_source.h>

#include "graph/activation.h"
#include "graph/operator.h"
#include "models/formats/safetensors.h"

namespace rondo::tests {

namespace {

using graph::Op;
using graph::TensorId;
using nlohmann::json;

Status unsupported(std::string what) { return Status(StatusCode::kUnsupported, std::move(what)); }

/// What an operator calls its inputs in files, in the order of the node's.
struct Signature {
  const char* op;
  std::vector<const char*> inputs;
  std::set<std::string> attributes;
};

const std::vector<Signature>& signatures() {
  static const std::vector<Signature> kSignatures = {
      {"embedding", {"ids", "weight"}, {}},
      {"linear", {"input", "weight", "residual", "bias"}, {"activation"}},
      {"matmul", {"a", "b"}, {"transpose_a", "transpose_b", "scale"}},
      {"layer_norm", {"input", "weight", "bias"}, {"epsilon"}},
      {"rms_norm", {"input", "weight"}, {"epsilon", "weight_offset"}},
      {"rope", {"input", "positions", "frequency_factors"}, {"style", "dimensions", "theta", "attention_factor", "max_position"}},
      {"attention",
       {"query", "key", "value", "query_offset", "lengths", "mask", "alibi_slopes", "relative_bias", "relative_key", "relative_value", "sinks"},
       {"scale", "causal", "window_back", "window_ahead", "prefix", "chunk", "chunks_back", "softcap", "bidirectional_buckets", "max_distance"}},
      {"softmax", {"input", "mask"}, {"axis", "scale"}},
      {"log_softmax", {"input", "mask"}, {"axis", "scale"}},
      {"glu", {"gate", "up"}, {"activation"}},
      {"concat", {"a", "b", "c", "d", "e", "f", "g"}, {"axis"}},
      {"pad", {"input"}, {"before", "after", "value"}},
      {"slice", {"input"}, {"starts", "ends", "steps"}},
      {"transpose", {"input"}, {"permutation"}},
      {"reshape", {"input"}, {"shape"}},
      {"sinusoidal_positions", {"positions"}, {"width", "theta", "layout"}},
      {"patch_embed", {"pixels", "weight", "bias"}, {"patch"}},
      {"argmax", {"input"}, {}},
      {"top_k", {"input"}, {"k"}},
  };
  return kSignatures;
}

graph::Attributes attention_attributes(const json& given) {
  graph::AttentionAttributes attention;
  attention.scale = given.value("scale", 0.0);
  attention.causal = given.value("causal", false);
  attention.window_back = given.value("window_back", std::int64_t{-1});
  attention.window_ahead = given.value("window_ahead", std::int64_t{-1});
  attention.prefix = given.value("prefix", std::int64_t{0});
  attention.chunk = given.value("chunk", std::int64_t{0});
  attention.chunks_back = given.value("chunks_back", std::int64_t{0});
  attention.softcap = given.value("softcap", 0.0);
  attention.bidirectional_buckets = given.value("bidirectional_buckets", true);
  attention.max_distance = given.value("max_distance", std::int64_t{128});
  return attention;
}

std::optional<Signature> find_signature(const std::string& name) {
  for (const Signature& known : signatures()) {
    if (name == known.op) return known;
  }
  for (const char* unary : {"relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "exp", "neg"}) {
    if (name == unary) return Signature{unary, {"input"}, {}};
  }
  for (const char* binary : {"add", "sub", "mul", "div"}) {
    if (name == binary) return Signature{binary, {"a", "b"}, {}};
  }
  for (const char* reduction : {"mean", "sum", "max"}) {
    if (name == reduction) return Signature{reduction, {"input"}, {"axis", "keep"}};
  }
  return std::nullopt;
}

using Integers = std::vector<std::int64_t>;

graph::RopeAttributes rope_attributes(const json& given) {
  graph::RopeAttributes rope;
  rope.style = given.value("style", "half") == "half" ? graph::RopeStyle::kHalf : graph::RopeStyle::kInterleaved;
  rope.dimensions = given.value("dimensions", std::int64_t{0});
  rope.theta = given.value("theta", 10000.0);
  rope.attention_factor = given.value("attention_factor", 1.0);
  rope.max_position = given.value("max_position", std::int64_t{131072});
  return rope;
}

graph::PadAttributes pad_attributes(const json& given) {
  graph::PadAttributes pad;
  const Integers before = given.at("before"), after = given.at("after");
  std::copy(before.begin(), before.end(), pad.before.begin());
  std::copy(after.begin(), after.end(), pad.after.begin());
  pad.value = given.value("value", 0.0);
  return pad;
}

/// `given` names only activations that there are.
graph::Attributes attributes_of(Op op, const json& given) {
  const std::int64_t axis = given.value("axis", std::int64_t{-1});
  switch (op) {
    case Op::rms_norm: return graph::RmsNormAttributes{given.value("epsilon", 1e-5), given.value("weight_offset", 0.0)};
    case Op::layer_norm: return graph::LayerNormAttributes{given.value("epsilon", 1e-5)};
    case Op::attention: return attention_attributes(given);
    case Op::rope: return rope_attributes(given);
    case Op::linear: return graph::LinearAttributes{*graph::find_activation(given.value("activation", "none"))};
    case Op::glu: return graph::GluAttributes{*graph::find_activation(given.value("activation", "silu"))};
    case Op::matmul: return graph::MatmulAttributes{given.value("transpose_a", false), given.value("transpose_b", false), given.value("scale", 1.0)};
    case Op::softmax:
    case Op::log_softmax: return graph::SoftmaxAttributes{axis, given.value("scale", 1.0)};
    case Op::mean:
    case Op::sum:
    case Op::max: return graph::ReduceAttributes{axis, given.value("keep", false)};
    case Op::top_k: return graph::TopKAttributes{given.at("k")};
    case Op::concat: return graph::ConcatAttributes{axis};
    case Op::pad: return pad_attributes(given);
    case Op::sinusoidal_positions:
      return graph::SinusoidAttributes{given.at("width"), given.value("theta", 10000.0),
                                       given.value("layout", "interleaved") == "split" ? graph::SinusoidLayout::kSplit : graph::SinusoidLayout::kInterleaved};
    case Op::patch_embed: return graph::PatchEmbedAttributes{given.at("patch")};
    default: return {};
  }
}

/// The view that one of slice, transpose and reshape makes.
TensorId add_view(graph::Graph& graph, const std::string& name, TensorId input, const json& given) {
  if (name == "transpose") {
    const std::vector<int> permutation = given.at("permutation");
    return graph.transpose(input, permutation);
  }
  if (name == "slice") {
    const Integers starts = given.at("starts"), ends = given.at("ends"), steps = given.value("steps", Integers(starts.size(), 1));
    std::vector<graph::SliceRange> ranges;
    for (std::size_t i = 0; i < starts.size(); ++i) ranges.push_back({starts[i], ends.at(i), steps.at(i)});
    return graph.slice(input, ranges);
  }
  graph::Shape shape;
  for (const json& extent : given.at("shape")) shape[shape.rank++] = extent.get<std::int64_t>();
  return graph.reshape_or_copy(input, shape);
}

/// Makes tensors as nodes ask for them, because what a tensor is depends on its role.
class Reader {
 public:
  Reader(const json& description, GraphFile& file, ByteSource inputs) : description_(description), file_(file), source_(std::move(inputs)) {}

  Status read() {
    RONDO_ASSIGN(tensors_, models::SafetensorsFile::parse(source_));
    for (const json& node : description_.at("nodes")) RONDO_TRY(add_node(node));
    return file_.op.graph.status();
  }
  TensorId find(const std::string& name) const { return made_.at(name); }

 private:
  Status add_node(const json& node) {
    const auto name = node.at("op").get<std::string>();
    const std::optional<Signature> signature = find_signature(name);
    if (!signature) return unsupported("operator " + name);
    const json given = node.value("attributes", json::object());
    for (const auto& [key, value] : given.items()) {
      if (!signature->attributes.contains(key)) return unsupported(fmt::format("attribute {} of {}", key, name));
      if (key == "activation" && !graph::find_activation(value.get<std::string>())) return unsupported(fmt::format("activation {}", value.get<std::string>()));
    }
    for (const auto& input : node.at("inputs").items()) {
      const auto& roles = signature->inputs;
      if (std::find(roles.begin(), roles.end(), input.key()) == roles.end()) return unsupported(fmt::format("input {} of {}", input.key(), name));
    }
    std::vector<TensorId> inputs;
    for (const char* role : signature->inputs) {
      const bool there = node.at("inputs").contains(role);
      if (!there && name == "concat") break;
      inputs.push_back(graph::kNone);
      if (!there) continue;
      RONDO_ASSIGN(inputs.back(), find_or_make(node.at("inputs").at(role).get<std::string>(), name, role));
    }
    graph::Graph& graph = file_.op.graph;
    const std::optional<Op> op = graph::find_operator(name);
    std::vector<TensorId> outputs;
    if (op) {
      graph.add(*op, inputs, attributes_of(*op, given));
      if (graph.status().ok()) outputs = graph.last_outputs();
    } else {
      outputs = {add_view(graph, name, inputs.front(), given)};
    }
    RONDO_TRY(graph.status());
    for (std::size_t i = 0; i < node.at("outputs").size(); ++i) made_[node.at("outputs").at(i).get<std::string>()] = outputs.at(i);
    return {};
  }

  Result<TensorId> find_or_make(const std::string& name, const std::string& op, const std::string& role) {
    if (const auto found = made_.find(name); found != made_.end()) return found->second;
    const json& input = description_.at("inputs").at(name);
    const auto type = input.at("type").get<std::string>();
    graph::Shape shape;
    for (const json& extent : input.at("shape")) shape[shape.rank++] = extent.get<std::int64_t>();
    if (type == "i32" || type == "i64" || type == "bool") {
      RONDO_ASSIGN(const std::vector<std::int64_t> wide, tensors_->read_i64(source_, name));
      const std::vector<std::int32_t> ids(wide.begin(), wide.end());
      return made_[name] = file_.op.i32(name, shape, ids);
    }
    if (type != "f32") return unsupported("inputs of type " + type);
    RONDO_ASSIGN(const std::vector<float> values, tensors_->read_f32(source_, name));
    if (role == "weight" && op != "rms_norm" && op != "layer_norm") {
      const auto bytes = std::as_bytes(std::span(values));
      return made_[name] = file_.op.weight(name, graph::Type::kF32, shape[0], shape.n_elements() / shape[0], {bytes.begin(), bytes.end()});
    }
    if (role == "frequency_factors") return made_[name] = file_.op.graph.add_constant(name, shape, values);
    return made_[name] = file_.op.f32(name, shape, values);
  }

  const json& description_;
  GraphFile& file_;
  ByteSource source_;
  std::optional<models::SafetensorsFile> tensors_;
  std::map<std::string, TensorId> made_;
};

/// Operators on heads number their sequences by the first dimension; without them all rows are one sequence's.
std::int64_t n_sequences(const json& description) {
  for (const json& node : description.at("nodes")) {
    const auto op = node.at("op").get<std::string>();
    if (op != "attention" && op != "rope") continue;
    const json& inputs = description.at("inputs");
    const auto input = node.at("inputs").at(op == "rope" ? "input" : "query").get<std::string>();
    const json& shaped = inputs.contains(input) ? inputs.at(input) : inputs.at(description.at("nodes").at(0).at("inputs").at("input").get<std::string>());
    return shaped.at("shape").at(0).get<std::int64_t>();
  }
  return 1;
}

}  // namespace

std::vector<float> elements_of(const graph::Tensor& tensor, std::span<const std::byte> bytes) {
  std::vector<float> values;
  for (std::int64_t flat = 0; flat < tensor.shape.n_elements(); ++flat) {
    std::int64_t rest = flat, element = tensor.offset_elements;
    for (int axis = tensor.shape.rank - 1; axis >= 0; --axis) {
      element += rest % tensor.shape[axis] * tensor.strides[static_cast<std::size_t>(axis)];
      rest /= tensor.shape[axis];
    }
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + element * 4, 4);
    float value = 0;
    std::memcpy(&value, &word, 4);
    values.push_back(tensor.type == graph::Type::kI32 ? static_cast<float>(static_cast<std::int32_t>(word)) : value);
  }
  return values;
}

Result<GraphFile> read_graph_file(const std::string& folder) {
  std::ifstream stream(folder + "/graph.json");
  const json description = json::parse(stream, nullptr, false);
  if (description.is_discarded()) return Status(StatusCode::kCorruptData, folder + "/graph.json is not JSON");
  GraphFile file{OpCase(n_sequences(description)), {}};
  RONDO_ASSIGN(ByteSource inputs, open_file(folder + "/inputs.safetensors"));
  Reader reader(description, file, std::move(inputs));
  RONDO_TRY(reader.read());
  RONDO_ASSIGN(const ByteSource source, open_file(folder + "/expected.safetensors"));
  RONDO_ASSIGN(const models::SafetensorsFile expected, models::SafetensorsFile::parse(source));
  for (const json& output : description.at("outputs")) {
    GraphFile::Output& made = file.outputs.emplace_back();
    made.name = output.get<std::string>();
    made.tensor = reader.find(made.name);
    // A view of an input has no dispatch of its own, and its storage can't be an output.
    if (file.op.graph.storage_of(made.tensor).kind == graph::StorageKind::kInput) made.tensor = file.op.graph.add(Op::copy, {made.tensor});
    if (file.op.graph.tensor(made.tensor).type == graph::Type::kI32) {
      RONDO_ASSIGN(const std::vector<std::int64_t> indices, expected.read_i64(source, made.name));
      for (std::int64_t index : indices) made.expected.push_back(static_cast<float>(index));
    } else {
      RONDO_ASSIGN(made.expected, expected.read_f32(source, made.name));
    }
    file.op.output(made.tensor, file.op.graph.n_sequences == 1 ? 0 : 2);
  }
  return file;
}

}  // namespace rondo::tests
