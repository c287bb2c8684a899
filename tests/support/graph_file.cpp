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
      {"linear", {"input", "weight", "residual"}, {}},
      {"rms_norm", {"input", "weight"}, {"epsilon", "weight_offset"}},
      {"rope", {"input", "positions", "frequency_factors"}, {"style", "dimensions", "theta", "attention_factor", "max_position"}},
      {"attention",
       {"query", "key", "value", "query_offset", "lengths", "mask", "alibi_slopes", "relative_bias", "relative_key", "relative_value", "sinks"},
       {"scale", "causal", "window_back", "window_ahead", "prefix", "chunk", "chunks_back", "softcap", "bidirectional_buckets", "max_distance"}},
      {"glu", {"gate", "up"}, {"activation"}},
      {"add", {"a", "b"}, {}},
      {"argmax", {"input"}, {}},
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

graph::Attributes attributes_of(Op op, const json& given) {
  if (op == Op::rms_norm) return graph::RmsNormAttributes{given.value("epsilon", 1e-5), given.value("weight_offset", 0.0)};
  if (op == Op::attention) return attention_attributes(given);
  if (op != Op::rope) return {};
  graph::RopeAttributes rope;
  rope.style = given.value("style", "half") == "half" ? graph::RopeStyle::kHalf : graph::RopeStyle::kInterleaved;
  rope.dimensions = given.value("dimensions", std::int64_t{0});
  rope.theta = given.value("theta", 10000.0);
  rope.attention_factor = given.value("attention_factor", 1.0);
  rope.max_position = given.value("max_position", std::int64_t{131072});
  return rope;
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
    const Signature* signature = nullptr;
    for (const Signature& known : signatures()) signature = name == known.op ? &known : signature;
    if (!signature) return unsupported("operator " + name);
    const json given = node.value("attributes", json::object());
    for (const auto& [key, value] : given.items()) {
      if (!signature->attributes.contains(key)) return unsupported(fmt::format("attribute {} of {}", key, name));
      if (key == "activation" && value != "silu") return unsupported(fmt::format("activation {}", value.get<std::string>()));
    }
    std::vector<TensorId> inputs;
    std::size_t n_found = 0;
    for (const char* role : signature->inputs) {
      if (!node.at("inputs").contains(role)) {
        inputs.push_back(graph::kNone);
        continue;
      }
      ++n_found;
      RONDO_ASSIGN(const TensorId input, find_or_make(node.at("inputs").at(role).get<std::string>(), name, role));
      inputs.push_back(input);
    }
    if (n_found != node.at("inputs").size()) {
      for (const auto& [role, tensor] : node.at("inputs").items()) {
        if (std::find(signature->inputs.begin(), signature->inputs.end(), role) == signature->inputs.end()) return unsupported(fmt::format("input {} of {}", role, name));
      }
    }
    const Op op = *graph::find_operator(name);
    made_[node.at("outputs").at(0).get<std::string>()] = file_.op.graph.add(op, inputs, attributes_of(op, given));
    return file_.op.graph.status();
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
    if (role == "weight" && op != "rms_norm") {
      const auto bytes = std::as_bytes(std::span(values));
      return made_[name] = file_.op.weight(name, graph::Type::kF32, shape[0], shape[1], {bytes.begin(), bytes.end()});
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

/// Operators on heads number their sequences by the first dimension; to the others all rows are one sequence's.
std::int64_t n_sequences(const json& description) {
  const json& first = description.at("nodes").at(0);
  const auto op = first.at("op").get<std::string>();
  if (op != "attention" && op != "rope") return 1;
  const auto input = first.at("inputs").at(op == "rope" ? "input" : "query").get<std::string>();
  return description.at("inputs").at(input).at("shape").at(0).get<std::int64_t>();
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
