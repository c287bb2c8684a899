#include "models/formats/graph_description.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "graph/block_format.h"
#include "models/formats/cache_blocks.h"
#include "models/json.h"
#include "models/nearest.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using nlohmann::json;
using Kind = GraphInputType::Kind;

// Far above any network; passes over a graph look at each node's neighbours, some at all nodes.
constexpr std::size_t kMaxNodes = 8'192;

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Status invalid(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

Status check_fields(const json& object, std::initializer_list<std::string_view> known, const std::string& what) {
  for (const auto& field : *object.get_ptr<const json::object_t*>()) {
    if (std::find(known.begin(), known.end(), field.first) != known.end()) continue;
    return Status(StatusCode::kCorruptData, fmt::format("{}: field '{}' is unknown, expected {}", what, printable(field.first), fmt::join(known, ", ")));
  }
  return {};
}

/// A value as messages show it, cut short.
std::string shown(const json& value) { return value.is_structured() ? std::string(value.type_name()) : printable(value.dump(-1, ' ', true)); }

Result<std::vector<std::string>> read_names(const json& object, const char* field, const std::string& what) {
  RONDO_ASSIGN(const json* array, find_array(object, field, what));
  std::vector<std::string> names;
  for (const json& value : *array->get_ptr<const json::array_t*>()) {
    const auto* name = value.get_ptr<const json::string_t*>();
    if (!name) return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' holds {}, expected names", what, field, shown(value)));
    names.push_back(*name);
  }
  return names;
}

Result<graph::Shape> read_shape(const json& object, const std::string& what) {
  RONDO_ASSIGN(const json* array, find_array(object, "shape", what));
  const auto& extents = *array->get_ptr<const json::array_t*>();
  if (extents.size() > static_cast<std::size_t>(graph::kMaxRank)) {
    return invalid(fmt::format("{}: 'shape' has {} dimensions, expected at most {}", what, extents.size(), graph::kMaxRank));
  }
  graph::Shape shape;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  std::uint64_t n = 1;
  for (const json& value : extents) {
    const auto* extent = value.get_ptr<const json::number_unsigned_t*>();
    if (!extent || *extent == 0) return invalid(fmt::format("{}: 'shape' holds {}, expected whole numbers of at least 1", what, shown(value)));
    if (*extent > kMost / n) return invalid(fmt::format("{}: 'shape' has more than 2^31 - 1 elements", what));
    n *= *extent;
    shape[shape.rank++] = static_cast<std::int64_t>(*extent);
  }
  return shape;
}

/// What holds of every input, once its type and shape are known.
Status check_input(const DescribedInput& input) {
  if (input.transposed && (input.type.kind != Kind::kFloat || input.shape.rank != 2)) {
    return invalid(input.shape.rank != 2 ? fmt::format("'layout' is kn, which is (K, N), but 'shape' is {}", to_string(input.shape))
                                         : fmt::format("'layout' is kn, but {} comes in {}; only f32, f16 and bf16 can be transposed", input.type.name,
                                                       input.type.kind == Kind::kBlocks ? "blocks along K" : "whole numbers"));
  }
  if (input.type.kind == Kind::kBlocks && input.shape.rank == 0) return invalid(fmt::format("is {}, which comes in rows, but 'shape' is ()", input.type.name));
  // A cache has heads of any width; what else reads it must check the rows again.
  if (input.type.type == graph::Type::kQ8_0 && input.shape.rank == 4) return {};
  return check_whole_blocks(input);
}

Result<DescribedInput> read_input(const std::string& name, const json& value, std::string_view file) {
  const std::string what = fmt::format("{}: input '{}'", file, printable(name));
  if (!value.is_object()) return Status(StatusCode::kCorruptData, fmt::format("{}: is {}, expected an object with type and shape, or {{}}", what, value.type_name()));
  DescribedInput input{name, {}, {}, false, has_field(value, "type"), has_field(value, "shape")};
  if (input.has_type) {
    RONDO_ASSIGN(const std::string type_name, find_string(value, "type", what));
    const std::optional<GraphInputType> type = find_input_type(type_name);
    if (!type) return invalid(fmt::format("{}: type '{}' is unknown, expected f32, f16, bf16, i32, i64, bool or a weight type like q8_0", what, printable(type_name)));
    input.type = *type;
  }
  RONDO_TRY(check_fields(value, {"type", "shape", "layout"}, what));
  if (has_field(value, "layout")) {
    RONDO_ASSIGN(const std::string layout, find_string(value, "layout", what));
    if (layout != "nk" && layout != "kn") return invalid(fmt::format("{}: layout '{}' is unknown, expected \"nk\" or \"kn\"", what, printable(layout)));
    input.transposed = layout == "kn";
  }
  if (input.has_shape) {
    RONDO_ASSIGN(input.shape, read_shape(value, what));
  }
  if (input.has_type && input.has_shape) {
    if (Status checked = check_input(input); !checked.ok()) return checked.with_prefix(what);
  }
  return input;
}

/// An object of inputs by name, or a list of names, of which the safetensors file says all else.
Status read_inputs(const json& document, std::string_view file, std::vector<DescribedInput>& inputs) {
  const std::string what(file);
  if (document.is_object() && has_field(document, "inputs") && document["inputs"].is_array()) {
    RONDO_ASSIGN(std::vector<std::string> names, read_names(document, "inputs", what));
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) return invalid(fmt::format("{}: 'inputs' has '{}' twice", file, printable(*twice)));
    for (std::string& name : names) inputs.push_back({std::move(name), {}, {}, false, false, false});
    return {};
  }
  RONDO_ASSIGN(const json* object, find_object(document, "inputs", what));
  for (const auto& input : *object->get_ptr<const json::object_t*>()) {
    RONDO_ASSIGN(DescribedInput read, read_input(input.first, input.second, file));
    inputs.push_back(std::move(read));
  }
  return {};
}

Result<graph::AttributeValue> read_attribute(const std::string& name, const json& value, const std::string& what) {
  using graph::AttributeValue;
  if (const auto* boolean = value.get_ptr<const json::boolean_t*>()) return AttributeValue(bool{*boolean});
  if (const auto* text = value.get_ptr<const json::string_t*>()) return AttributeValue(std::string(*text));
  if (const auto* real = value.get_ptr<const json::number_float_t*>()) return AttributeValue(double{*real});
  const auto integer = [](const json& number) -> std::optional<std::int64_t> {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (const auto* natural = number.get_ptr<const json::number_unsigned_t*>()) return static_cast<std::int64_t>(std::min<std::uint64_t>(*natural, kMost));
    if (const auto* negative = number.get_ptr<const json::number_integer_t*>()) return std::int64_t{*negative};
    return std::nullopt;
  };
  if (const auto number = integer(value)) return AttributeValue(*number);
  const auto* array = value.get_ptr<const json::array_t*>();
  if (!array) return Status(StatusCode::kCorruptData, fmt::format("{}: attribute '{}' is {}, which no attribute is", what, printable(name), shown(value)));
  std::vector<std::int64_t> list;
  for (const json& element : *array) {
    const auto number = integer(element);
    if (!number) return Status(StatusCode::kCorruptData, fmt::format("{}: attribute '{}' holds {}, but lists are of integers", what, printable(name), shown(element)));
    list.push_back(*number);
  }
  return AttributeValue(std::move(list));
}

Status check_operator(const std::string& op, const std::string& what) {
  if (const auto found = graph::find_operator(op); found && graph::operator_of(*found).reserved) {
    return invalid(fmt::format("{}: operator '{}' {} and can't be in a file", what, op, graph::operator_of(*found).reserved));
  }
  return graph::named_inputs(op).empty() ? invalid(fmt::format("{}: {}", what, graph::no_such_operator(printable(op)))) : Status();
}

Result<DescribedOperand> read_operand(const std::string& role, const json& value, const std::string& what) {
  if (const auto* name = value.get_ptr<const json::string_t*>()) return DescribedOperand{role, *name, std::nullopt};
  if (!value.is_number()) return Status(StatusCode::kCorruptData, fmt::format("{}: input '{}' is {}, expected the name of a tensor or a number", what, printable(role), shown(value)));
  RONDO_ASSIGN(graph::AttributeValue number, read_attribute(role, value, what));
  return DescribedOperand{role, "", std::move(number)};
}

Result<DescribedNode> read_node(const json& value, std::size_t index, std::string_view file) {
  std::string what = fmt::format("{}: node {}", file, index);
  DescribedNode node;
  RONDO_ASSIGN(node.op, find_string(value, "op", what));
  for (const char* field : {"note", "name"}) {
    if (!has_field(value, field)) continue;
    RONDO_ASSIGN(node.name, find_string(value, field, what));
  }
  RONDO_TRY(check_operator(node.op, what));
  what = fmt::format("{}: {}", file, node_name(node, index));
  RONDO_TRY(check_fields(value, {"op", "name", "note", "inputs", "attributes", "outputs"}, what));
  RONDO_ASSIGN(const json* inputs, find_object(value, "inputs", what));
  for (const auto& input : *inputs->get_ptr<const json::object_t*>()) {
    RONDO_ASSIGN(DescribedOperand operand, read_operand(input.first, input.second, what));
    node.inputs.push_back(std::move(operand));
  }
  if (value.contains("attributes")) {
    RONDO_ASSIGN(const json* attributes, find_object(value, "attributes", what));
    for (const auto& attribute : *attributes->get_ptr<const json::object_t*>()) {
      RONDO_ASSIGN(graph::AttributeValue read, read_attribute(attribute.first, attribute.second, what));
      node.attributes.emplace_back(attribute.first, std::move(read));
    }
  }
  RONDO_ASSIGN(node.outputs, read_names(value, "outputs", what));
  return node;
}

/// Where each name comes from, and that it is there when it is read.
class Names {
 public:
  Names(const GraphDescription& graph, std::string_view file) : graph_(graph), file_(file) {}

  Status check() {
    for (const DescribedInput& input : graph_.inputs) makers_.emplace(input.name, kInput);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) RONDO_TRY(add_outputs(i));
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) RONDO_TRY(check_inputs(i));
    return check_outputs();
  }

 private:
  static constexpr std::ptrdiff_t kInput = -1;

  Status refuse(std::size_t node, const std::string& message) const { return invalid(fmt::format("{}: {}: {}", file_, node_name(graph_.nodes[node], node), message)); }
  std::string suggestion(std::string_view name) const {
    std::vector<std::string_view> names;
    for (const auto& maker : makers_) names.push_back(maker.first);
    return suggest(name, names);
  }

  Status add_outputs(std::size_t node) {
    for (const std::string& name : graph_.nodes[node].outputs) {
      const auto [made, is_new] = makers_.emplace(name, static_cast<std::ptrdiff_t>(node));
      if (is_new) continue;
      return refuse(node, made->second == kInput ? fmt::format("output '{}' has the name of an input", printable(name))
                                                 : fmt::format("output '{}' is already made by node {}", printable(name), made->second));
    }
    return {};
  }
  Status check_inputs(std::size_t node) const {
    for (const auto& [role, name, number] : graph_.nodes[node].inputs) {
      if (number) continue;
      const auto made = makers_.find(name);
      if (made == makers_.end()) {
        return refuse(node, fmt::format("input '{}' is '{}', which is neither an input of the graph nor made by a node{}", printable(role), printable(name), suggestion(name)));
      }
      if (made->second < static_cast<std::ptrdiff_t>(node)) continue;
      return refuse(node, fmt::format("input '{}' is '{}', which {}: a cycle, or nodes out of order", printable(role), printable(name),
                                      made->second == static_cast<std::ptrdiff_t>(node) ? std::string("is its own output") : fmt::format("node {} makes later", made->second)));
    }
    return {};
  }
  Status check_outputs() const {
    if (graph_.outputs.empty()) return invalid(fmt::format("{}: 'outputs' is empty, so there is nothing to compute", file_));
    std::set<std::string_view> seen;
    for (const std::string& name : graph_.outputs) {
      if (!seen.insert(name).second) return invalid(fmt::format("{}: 'outputs' has '{}' twice", file_, printable(name)));
      if (!makers_.contains(name)) return invalid(fmt::format("{}: output '{}' is made by no node{}", file_, printable(name), suggestion(name)));
    }
    return {};
  }

  const GraphDescription& graph_;
  std::string_view file_;
  std::map<std::string_view, std::ptrdiff_t> makers_;  ///< a node's index, or kInput
};

}  // namespace

std::optional<GraphInputType> find_input_type(const std::string& name) {
  const GraphInputType plain[] = {{Kind::kFloat, graph::Type::kF32, SafetensorsDtype::kF32, "f32"},   {Kind::kFloat, graph::Type::kF16, SafetensorsDtype::kF16, "f16"},
                                  {Kind::kFloat, graph::Type::kBF16, SafetensorsDtype::kBF16, "bf16"}, {Kind::kInteger, graph::Type::kI32, SafetensorsDtype::kI32, "i32"},
                                  {Kind::kInteger, graph::Type::kI32, SafetensorsDtype::kI64, "i64"},  {Kind::kBool, graph::Type::kI32, SafetensorsDtype::kBool, "bool"}};
  for (const GraphInputType& type : plain) {
    if (name == type.name) return type;
  }
  for (int value = 0; value < static_cast<int>(graph::Type::kI32); ++value) {
    const auto type = static_cast<graph::Type>(value);
    const graph::BlockFormat* format = graph::find_block_format(type);
    if (!format || format->block_elements == 1 || lower_case(name) != lower_case(graph::type_name(type))) continue;
    return GraphInputType{Kind::kBlocks, type, SafetensorsDtype::kU8, graph::type_name(type)};
  }
  return std::nullopt;
}

Status check_whole_blocks(const DescribedInput& input) {
  if (input.type.kind != Kind::kBlocks) return {};
  const std::uint32_t block = graph::find_block_format(input.type.type)->block_elements;
  return input.shape.last() % block == 0 ? Status() : invalid(fmt::format("'shape' is {}, but rows of {} come in blocks of {}", to_string(input.shape), input.type.name, block));
}

std::vector<std::uint64_t> stored_shape(const DescribedInput& input) {
  std::vector<std::uint64_t> shape;
  for (int axis = 0; axis < input.shape.rank; ++axis) shape.push_back(static_cast<std::uint64_t>(input.shape[axis]));
  if (shape.empty()) return shape;
  if (input.type.type == graph::Type::kQ8_0) shape.back() = cache_row_file_bytes(input.shape.last());
  else if (input.type.kind == Kind::kBlocks) shape.back() = graph::file_row_bytes(*graph::find_block_format(input.type.type), shape.back());
  return shape;
}

Status complete_from(const SafetensorsEntry& entry, DescribedInput& input) {
  if (input.has_type && input.has_shape) return {};
  if (!input.has_type) {
    if (entry.dtype == SafetensorsDtype::kU8) return invalid("has dtype U8, which may be blocks of any type; say which, as in \"type\": \"q8_0\"");
    std::string name = lower_case(safetensors_dtype_name(entry.dtype));
    const std::optional<GraphInputType> type = find_input_type(name);
    if (!type) return invalid(fmt::format("has dtype {}, which no input can have", entry.spelling()));
    input.type = *type;
  }
  if (!input.has_shape) {
    std::vector<std::uint64_t> shape = entry.shape;
    if (shape.size() > static_cast<std::size_t>(graph::kMaxRank)) return invalid(fmt::format("has {} dimensions, at most {} are there", shape.size(), graph::kMaxRank));
    if (input.type.kind == Kind::kBlocks) {
      const graph::BlockFormat& format = *graph::find_block_format(input.type.type);
      const std::uint64_t block_bytes = graph::file_row_bytes(format, format.block_elements);
      if (shape.size() == 4) return invalid(fmt::format("is {} in four dimensions, whose rows may be filled up; say its 'shape'", input.type.name));
      if (shape.empty() || shape.back() % block_bytes != 0) return invalid(fmt::format("is ({}), but rows of {} come in blocks of {} bytes", fmt::join(shape, ", "), input.type.name, block_bytes));
      shape.back() = shape.back() / block_bytes * format.block_elements;
    }
    std::uint64_t n = 1;
    for (const std::uint64_t extent : shape) {
      if (extent == 0 || extent > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) / n) {
        return invalid(fmt::format("is ({}), which is empty or has more than 2^31 - 1 elements", fmt::join(entry.shape, ", ")));
      }
      n *= extent;
      input.shape[input.shape.rank++] = static_cast<std::int64_t>(extent);
    }
  }
  input.has_type = input.has_shape = true;
  return check_input(input);
}

std::string node_name(const DescribedNode& node, std::size_t index) {
  return node.name.empty() ? fmt::format("node {} ({})", index, node.op) : fmt::format("node {} \"{}\" ({})", index, printable(node.name), node.op);
}

Result<GraphDescription> parse_graph_description(std::string_view text, std::string_view file) {
  RONDO_ASSIGN(const json document, parse_json(text, file));
  const std::string what(file);
  GraphDescription graph;
  RONDO_TRY(read_inputs(document, file, graph.inputs));
  RONDO_TRY(check_fields(document, {"inputs", "nodes", "outputs", "note"}, what));
  if (has_field(document, "note")) RONDO_TRY(Status(find_string(document, "note", what).status()));
  RONDO_ASSIGN(const json* nodes, find_array(document, "nodes", what));
  const auto& list = *nodes->get_ptr<const json::array_t*>();
  if (list.size() > kMaxNodes) return invalid(fmt::format("{}: 'nodes' has {} nodes, at most {} are there", file, list.size(), kMaxNodes));
  for (const json& node : list) {
    RONDO_ASSIGN(DescribedNode read, read_node(node, graph.nodes.size(), file));
    graph.nodes.push_back(std::move(read));
  }
  RONDO_ASSIGN(graph.outputs, read_names(document, "outputs", what));
  RONDO_TRY(Names(graph, file).check());
  return graph;
}

}  // namespace rondo::models
