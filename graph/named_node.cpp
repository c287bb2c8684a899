#include "graph/named_node.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "graph/attribute_reader.h"
#include "graph/nearest_name.h"
#include "runtime/fmt.h"

namespace rondo::graph {

namespace {

Status refuse(const NamedNode& node, const std::string& message) { return Status(StatusCode::kInvalidArgument, fmt::format("[{}] {}", node.op, message)); }

/// The node's inputs in the operator's order, kNone where an optional one is absent; of `any_number`, the first ones.
Result<std::vector<TensorId>> order_inputs(const NamedNode& node, std::span<const NamedInput> expected, bool any_number) {
  std::vector<TensorId> ordered(expected.size(), kNone);
  for (const auto& [name, tensor] : node.inputs) {
    const auto found = std::find_if(expected.begin(), expected.end(), [&wanted = name](const NamedInput& input) { return wanted == input.name; });
    if (found == expected.end()) {
      std::vector<const char*> names;
      for (const NamedInput& input : expected) names.push_back(input.name);
      return refuse(node, fmt::format("has no input '{}'; there are {}{}", name, fmt::join(names, ", "), did_you_mean(name, names)));
    }
    TensorId& slot = ordered[static_cast<std::size_t>(found - expected.begin())];
    if (slot != kNone) return refuse(node, fmt::format("input '{}' is given twice", name));
    slot = tensor;
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].optional && ordered[i] == kNone) return refuse(node, fmt::format("input '{}' is missing", expected[i].name));
  }
  if (!any_number) return ordered;
  while (ordered.back() == kNone) ordered.pop_back();
  const auto hole = std::find(ordered.begin(), ordered.end(), kNone);
  if (hole != ordered.end()) return refuse(node, fmt::format("input '{}' is missing", expected[static_cast<std::size_t>(hole - ordered.begin())].name));
  return ordered;
}

/// Of one axis, counted from the last where negative.
Result<TensorId> add_slice_of_axis(Graph& graph, const NamedNode& node, AttributeReader& reader, TensorId input) {
  std::int64_t axis = 0;
  SliceRange range{0, std::numeric_limits<std::int32_t>::max(), 1};
  reader.require("axis");
  reader.read("axis", axis);
  reader.read("start", range.start);
  reader.read("end", range.end);
  reader.read("step", range.step);
  RONDO_TRY(reader.finish());
  const Shape shape = graph.tensor(input).shape;
  const std::int64_t resolved = axis < 0 ? axis + shape.rank : axis;
  if (resolved < 0 || resolved >= shape.rank) return refuse(node, fmt::format("axis is {} but input is {}", axis, to_string(shape)));
  std::vector<SliceRange> ranges;
  for (int i = 0; i < shape.rank; ++i) ranges.push_back(i == resolved ? range : SliceRange{0, shape[i], 1});
  return graph.slice(input, ranges);
}

Result<TensorId> add_slice(Graph& graph, const NamedNode& node, AttributeReader& reader, TensorId input) {
  if (reader.has("axis") || reader.has("start") || reader.has("end") || reader.has("step")) return add_slice_of_axis(graph, node, reader, input);
  std::vector<std::int64_t> starts, ends, steps;
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

Result<TensorId> add_transpose(Graph& graph, const NamedNode&, AttributeReader& reader, TensorId input) {
  std::vector<std::int64_t> permutation;
  reader.require("permutation");
  reader.read("permutation", permutation);
  RONDO_TRY(reader.finish());
  const int rank = graph.tensor(input).shape.rank;
  std::vector<int> axes;
  for (std::int64_t axis : permutation) axes.push_back(static_cast<int>(axis < 0 && axis >= -rank ? axis + rank : axis));
  return graph.transpose(input, axes);
}

/// An extent of -1 becomes what is left of the input's elements.
Result<TensorId> add_reshape(Graph& graph, const NamedNode& node, AttributeReader& reader, TensorId input) {
  std::vector<std::int64_t> extents;
  reader.require("shape");
  reader.read("shape", extents);
  RONDO_TRY(reader.finish());
  Shape shape;
  std::int64_t n = 1;
  int open = -1;
  for (std::int64_t extent : extents) {
    if (extent == -1 && open < 0) {
      open = shape.rank;
      extent = 1;
    }
    if (extent < 1 || n > std::numeric_limits<std::int32_t>::max() / extent) {
      return refuse(node, fmt::format("attribute 'shape' must have extents of at least 1 that fit 31 bits together, one of them -1 for what is left, not ({})", fmt::join(extents, ", ")));
    }
    n *= extent;
    shape[shape.rank++] = extent;
  }
  if (open >= 0) {
    const std::int64_t elements = graph.tensor(input).shape.n_elements();
    if (elements % n != 0) return refuse(node, fmt::format("input {} of {} elements can't become ({})", to_string(graph.tensor(input).shape), elements, fmt::join(extents, ", ")));
    shape[open] = elements / n;
  }
  return graph.reshape_or_copy(input, shape);
}

/// slice, transpose and reshape: views, which are no operators.
struct View {
  const char* name;
  Result<TensorId> (*add)(Graph& graph, const NamedNode& node, AttributeReader& reader, TensorId input);
};
constexpr View kViews[] = {{"slice", add_slice}, {"transpose", add_transpose}, {"reshape", add_reshape}};
constexpr NamedInput kViewInputs[] = {{"input"}};

const View* find_view(std::string_view name) {
  const auto found = std::find_if(std::begin(kViews), std::end(kViews), [&](const View& view) { return name == view.name; });
  return found == std::end(kViews) ? nullptr : found;
}

Result<Attributes> read_attributes(const Operator& table, const NamedNode& node) {
  AttributeReader reader(node);
  Attributes attributes = table.read_attributes ? table.read_attributes(reader) : Attributes{};
  RONDO_TRY(reader.finish());
  return attributes;
}

}  // namespace

std::span<const NamedInput> named_inputs(std::string_view op) {
  if (const std::optional<Op> found = find_operator(op)) return operator_of(*found).inputs;
  return find_view(op) ? std::span<const NamedInput>(kViewInputs) : std::span<const NamedInput>();
}

std::string no_such_operator(std::string_view op) {
  std::vector<const char*> names;
  for (std::size_t i = 0; i < kOpCount; ++i) names.push_back(operator_of(static_cast<Op>(i)).name);
  for (const View& view : kViews) names.push_back(view.name);
  return fmt::format("there is no operator '{}'{}", op, did_you_mean(op, names));
}

Result<std::vector<TensorId>> add_named_node(Graph& graph, const NamedNode& node) {
  const std::optional<Op> op = find_operator(node.op);
  const View* view = find_view(node.op);
  if (!op && !view) return Status(StatusCode::kInvalidArgument, no_such_operator(node.op));
  RONDO_ASSIGN(const std::vector<TensorId> inputs, order_inputs(node, named_inputs(node.op), op && operator_of(*op).any_number_of_inputs));
  std::vector<TensorId> outputs;
  if (op) {
    RONDO_ASSIGN(Attributes attributes, read_attributes(operator_of(*op), node));
    graph.add(*op, inputs, std::move(attributes));
    RONDO_TRY(Status(graph.status()));
    outputs = graph.last_outputs();
  } else {
    AttributeReader reader(node);
    RONDO_ASSIGN(const TensorId made, view->add(graph, node, reader, inputs.front()));
    outputs = {made};
  }
  RONDO_TRY(Status(graph.status()));
  return outputs;
}

}  // namespace rondo::graph
