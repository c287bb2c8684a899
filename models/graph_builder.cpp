#include "models/graph_builder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "graph/operator.h"
#include "models/nearest.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using Kind = GraphInputType::Kind;

Status invalid(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

/// Positive extents, four at most, and as many elements as 31 bits count.
Result<graph::Shape> checked_shape(const std::string& what, const Shape& shape) {
  if (shape.rank > graph::kMaxRank) return invalid(fmt::format("{}: its shape has {} dimensions, at most {} are there", what, shape.rank, graph::kMaxRank));
  graph::Shape checked;
  std::int64_t n = 1;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] < 1 || shape[axis] > 0x7fffffff / n) {
      return invalid(fmt::format("{}: extent {} of axis {}: extents are at least 1, and all together at most 2^31 - 1 elements", what, shape[axis], axis));
    }
    n *= shape[axis];
    checked[checked.rank++] = shape[axis];
  }
  return checked;
}

bool is_type(Type type) { return type == Type::kF32 || type == Type::kF16 || type == Type::kI32 || type == Type::kQ8_0; }

GraphInputType input_type(Type type) {
  switch (type) {
    case Type::kF16: return {Kind::kFloat, graph::Type::kF16, SafetensorsDtype::kF16, "f16"};
    case Type::kI32: return {Kind::kInteger, graph::Type::kI32, SafetensorsDtype::kI32, "i32"};
    case Type::kQ8_0: return {Kind::kBlocks, graph::Type::kQ8_0, SafetensorsDtype::kU8, "q8_0"};
    case Type::kF32: break;
  }
  return {Kind::kFloat, graph::Type::kF32, SafetensorsDtype::kF32, "f32"};
}

Type public_type(graph::Type type) {
  switch (type) {
    case graph::Type::kF16: return Type::kF16;
    case graph::Type::kI32: return Type::kI32;
    case graph::Type::kQ8_0: return Type::kQ8_0;
    default: return Type::kF32;
  }
}

}  // namespace

Shape public_shape(const graph::Shape& shape) {
  Shape made;
  made.rank = shape.rank;
  for (int axis = 0; axis < shape.rank; ++axis) made.extents[static_cast<std::size_t>(axis)] = shape[axis];
  return made;
}

Tensor GraphBuilder::fail(Status status) {
  if (status_.ok()) {
    std::string scope;
    for (const std::string& name : scopes_) scope += name + ": ";
    status_ = status.with_prefix(scope.empty() ? file_.graph.name : fmt::format("{}: {}", file_.graph.name, scope.substr(0, scope.size() - 2)));
  }
  return {};
}

std::uint64_t GraphBuilder::next_id() {
  static std::atomic<std::uint64_t> n_graphs = 0;
  return ++n_graphs;
}

bool GraphBuilder::ready() {
  if (loaded_) fail(Status(StatusCode::kFailedPrecondition, "was loaded from a file, and nothing can be added to it"));
  return status_.ok();
}

std::string GraphBuilder::scoped(std::string_view name) const {
  std::string all;
  for (const std::string& scope : scopes_) all += scope + "/";
  return all.append(name);
}

Tensor GraphBuilder::keep(Value value, const Shape& shape, Type type) {
  Tensor tensor;
  tensor.graph_ = id_;
  tensor.number_ = static_cast<std::int32_t>(values_.size());
  tensor.shape_ = shape;
  tensor.type_ = type;
  values_.push_back(std::move(value));
  return tensor;
}

Tensor GraphBuilder::keep_made(graph::TensorId id) {
  const graph::Tensor& tensor = file_.graph.tensor(id);
  Value value;
  value.name = tensor.name;
  value.made = id;
  return keep(std::move(value), public_shape(tensor.shape), public_type(tensor.type));
}

const GraphBuilder::Value* GraphBuilder::find(const Tensor& tensor) const {
  return tensor.graph_ == id_ ? &values_[static_cast<std::size_t>(tensor.number_)] : nullptr;
}

Tensor GraphBuilder::declare(std::string name, Type type, const Shape& shape, bool cache) {
  if (!ready()) return {};
  const std::string what = fmt::format("{} '{}'", cache ? "cache" : "input", printable(name));
  if (!is_type(type)) return fail(invalid(fmt::format("{}: {} is no Type", what, static_cast<int>(type))));
  const Result<graph::Shape> checked = checked_shape(what, shape);
  if (!checked.ok()) return fail(checked.status());
  if (cache && (type == Type::kI32 || checked->rank != 4)) return fail(invalid(fmt::format("{}: {} of {} must be (B, G, S, D) of f32, f16 or q8_0", what, to_string(*checked), input_type(type).name)));
  if (!cache && type == Type::kQ8_0) return fail(invalid(fmt::format("{}: q8_0 is a type of caches and weights", what)));
  return add_input({std::move(name), input_type(type), *checked}, {}, cache, true);
}

Tensor GraphBuilder::add_input(DescribedInput input, InputElements elements, bool changed, bool settable) {
  if (!ready()) return {};
  if (settable) {
    if (std::find(input_names_.begin(), input_names_.end(), input.name) != input_names_.end()) return fail(invalid(fmt::format("there is an input '{}' already", printable(input.name))));
    input_names_.push_back(input.name);
  }
  Shape shape = public_shape(input.shape);
  if (input.transposed) std::swap(shape.extents[0], shape.extents[1]);
  Value value;
  value.name = input.name;
  value.changed = changed;
  const Type type = public_type(input.type.type);
  value.input = inputs_.add(std::move(input), std::move(elements), !settable);
  return keep(std::move(value), shape, type);
}

Tensor GraphBuilder::add_constant(std::string name, const Shape& shape, Type type, std::span<const std::byte> bytes) {
  if (!ready()) return {};
  const std::string what = fmt::format("constant '{}'", printable(name));
  const Result<graph::Shape> checked = checked_shape(what, shape);
  if (!checked.ok()) return fail(checked.status());
  const auto n = static_cast<std::uint64_t>(checked->n_elements());
  if (bytes.size() != 4 * n) return fail(invalid(fmt::format("{}: {} has {} elements, but {} are given", what, to_string(*checked), n, bytes.size() / 4)));
  auto kept = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  ByteSource source = memory_source(*kept, name);
  source.read = [kept, read = std::move(source.read)](std::uint64_t offset, std::span<std::byte> out) { return read(offset, out); };
  return add_input({scoped(name), input_type(type), *checked}, {std::move(source), 0}, false, false);
}

Tensor GraphBuilder::add_number(graph::AttributeValue number) {
  if (!ready()) return {};
  const bool integer = std::holds_alternative<std::int64_t>(number);
  Value value;
  value.name = integer ? fmt::format("{}", std::get<std::int64_t>(number)) : fmt::format("{}", std::get<double>(number));
  value.number = std::move(number);
  return keep(std::move(value), {}, integer ? Type::kI32 : Type::kF32);
}

Tensor GraphBuilder::add_weight(const Weights& weights, std::string_view name, const WeightOptions& options) {
  if (!ready()) return {};
  if (!weights.internal()) return fail(Status(StatusCode::kFailedPrecondition, fmt::format("weight '{}': no file of weights was opened", printable(name))));
  const WeightsFile& file = *weights.internal();
  const std::string full = weights.prefix() + std::string(name);
  const SafetensorsEntry* entry = file.header.find(full);
  if (!entry) {
    std::vector<std::string_view> names;
    for (const SafetensorsEntry& other : file.header.entries()) names.push_back(other.name);
    return fail(Status(StatusCode::kNotFound, fmt::format("{}: tensor '{}' is missing{}", file.header.name(), printable(full), suggest(full, names))));
  }
  DescribedInput input{full, {}, {}, options.transposed, false, false};
  if (!options.type.empty()) {
    const std::optional<GraphInputType> type = find_input_type(options.type);
    if (!type || type->dtype != entry->dtype) {
      return fail(invalid(fmt::format("{}: tensor '{}' has dtype {}, which can't be '{}'", file.header.name(), printable(full), entry->spelling(), printable(options.type))));
    }
    input.type = *type;
    input.has_type = true;
  }
  if (Status completed = complete_from(*entry, input); !completed.ok()) {
    return fail(Status(completed.code(), fmt::format("{}: tensor '{}' {}", file.header.name(), printable(full), completed.message())));
  }
  return add_input(std::move(input), {file.source, entry->offset_bytes}, false, false);
}

Result<graph::TensorId> GraphBuilder::tensor_for(std::string_view op, const graph::NamedInput& role, const graph::NamedNode& node, const NamedTensor& input) {
  const Value* value = find(input.tensor);
  if (!value) return invalid(fmt::format("input '{}' is a tensor of another graph", role.name));
  if (op == "kv_write" && std::string_view(role.name) == "cache" && !value->changed) {
    return invalid(fmt::format("input 'cache' is '{}', which is no cache of the graph", printable(value->name)));
  }
  if (value->number) return add_literal(file_.graph, inputs_, node, role, *value->number);
  return value->input ? inputs_.find_or_make(op, role, *value->input, value->changed) : Result<graph::TensorId>(value->made);
}

Status GraphBuilder::add_inputs(std::string_view op, const std::vector<NamedTensor>& inputs, graph::NamedNode& node) {
  const auto roles = graph::named_inputs(op);
  for (const bool numbers : {false, true}) {  // whose type is that of the tensors
    for (const NamedTensor& input : inputs) {
      if (!input.tensor) continue;  // left out, or refused by the operator
      const Value* value = find(input.tensor);
      if ((value && value->number.has_value()) != numbers) continue;
      const auto role = std::find_if(roles.begin(), roles.end(), [&](const graph::NamedInput& one) { return input.name == one.name; });
      graph::TensorId tensor = graph::kNone;  // add_named_node refuses an input that the operator hasn't got
      if (role != roles.end()) {
        RONDO_ASSIGN(tensor, tensor_for(op, *role, node, input));
      }
      node.inputs.emplace_back(input.name, tensor);
      if (op == "patch_embed" && input.name == "weight" && value && value->input) RONDO_TRY(check_patch_channels(file_.graph, node, inputs_.input(*value->input)));
    }
  }
  return {};
}

/// Views of the cache that `node` is about to change become copies, which keep what it was.
void GraphBuilder::settle_views(const graph::NamedNode& node) {
  const auto cache = std::find_if(node.inputs.begin(), node.inputs.end(), [](const auto& input) { return input.first == "cache"; });
  if (cache == node.inputs.end() || cache->second == graph::kNone) return;
  graph::Graph& graph = file_.graph;
  const graph::StorageId storage = graph.tensor(cache->second).storage;
  for (Value& value : values_) {
    if (value.made == graph::kNone || graph.tensor(value.made).storage != storage) continue;
    const graph::TensorId copied = graph.add(graph::Op::copy, {value.made});
    if (copied == graph::kNone) return;  // the graph tells of it
    for (GraphFile::Output& output : file_.outputs) {
      if (output.tensor != value.made) continue;
      output.tensor = copied;
      graph.storage(graph.tensor(copied).storage).kind = graph::StorageKind::kOutput;
    }
    value.made = copied;
  }
}

std::vector<Tensor> GraphBuilder::add_node(std::string_view op, const std::vector<NamedTensor>& inputs, const std::vector<Attribute>& attributes) {
  if (!ready()) return {Tensor()};
  if (const auto found = graph::find_operator(op); found && graph::operator_of(*found).reserved) {
    return {fail(invalid(fmt::format("operator '{}' {}", op, graph::operator_of(*found).reserved)))};
  }
  graph::NamedNode node{std::string(op), {}, {}};
  for (const Attribute& attribute : attributes) node.attributes.emplace_back(attribute.name, attribute.value);
  Status added = add_inputs(op, inputs, node);
  if (added.ok() && op == "kv_write") settle_views(node);
  std::vector<graph::TensorId> made;
  if (!added.ok()) {
    added = added.with_prefix(fmt::format("[{}]", op));
  } else {
    Result<std::vector<graph::TensorId>> outputs = graph::add_named_node(file_.graph, node);
    if (outputs.ok()) made = std::move(*outputs);
    else added = outputs.status();
  }
  if (!added.ok()) {
    std::string given;
    for (const NamedTensor& input : inputs) {
      const Value* value = find(input.tensor);
      if (value) given += fmt::format("{}{} is '{}'", given.empty() ? "; " : ", ", input.name, printable(value->name));
    }
    return {fail(Status(added.code(), added.message() + given))};
  }
  const std::size_t index = node_names_.size();
  node_names_.resize(file_.graph.nodes().size(), fmt::format("{}: {}", file_.graph.name, scoped(op)));
  if (op == "kv_write") {
    const auto cache = std::find_if(inputs.begin(), inputs.end(), [](const NamedTensor& input) { return input.name == "cache"; });
    return {cache->tensor};
  }
  std::vector<Tensor> tensors;
  for (const graph::TensorId id : made) {
    if (id >= 0 && op != "reshape" && op != "transpose" && op != "slice") file_.graph.tensor(id).name = scoped(fmt::format("{} {}", op, index));
    tensors.push_back(keep_made(id));
  }
  return tensors;
}

void GraphBuilder::add_output(std::string name, const Tensor& tensor) {
  if (!ready()) return;
  const auto refuse = [&](const char* message) { fail(invalid(fmt::format("output '{}' {}", printable(name), message))); };
  const Value* value = find(tensor);
  if (!value) return refuse(tensor ? "is a tensor of another graph" : "is an empty tensor");
  if (std::any_of(file_.outputs.begin(), file_.outputs.end(), [&](const GraphFile::Output& output) { return output.name == name; })) return refuse("is there already");
  const graph::TensorId id = value->input ? inputs_.find_changed(*value->input) : value->made;
  if (id == graph::kNone) return refuse(value->changed ? "is a cache that no operator uses" : "is an input or a number, which nothing computes");
  graph::Storage& storage = file_.graph.storage(file_.graph.tensor(id).storage);
  if (storage.kind == graph::StorageKind::kActivation) storage.kind = graph::StorageKind::kOutput;
  file_.outputs.push_back({std::move(name), id});
}

Result<GraphFile> GraphBuilder::finish() {
  RONDO_TRY(Status(status_));
  if (loaded_) return std::move(*std::exchange(loaded_, std::nullopt));
  if (file_.outputs.empty()) return invalid(fmt::format("{}: has no output, so there is nothing to compute", file_.graph.name));
  const NodeNames names = [this](std::size_t node) { return node_names_[node]; };
  file_.inputs = inputs_.stored();
  file_.checks = integer_checks(file_.graph, names);
  for (const StoredInput& stored : file_.inputs) {
    if (stored.form != InputForm::kIntegers || !stored.elements.source.read) continue;
    std::vector<std::byte> bytes(stored_bytes_of(stored.input, stored.form));
    RONDO_TRY(read_elements(stored.input, stored.form, stored.elements, bytes));
    file_.contents[stored.storage] = std::move(bytes);
  }
  RONDO_TRY(check_integers(file_.checks, file_.contents));
  RONDO_ASSIGN(std::vector<std::byte> state, add_step_state(file_.graph, names));
  file_.contents[file_.graph.state] = std::move(state);
  status_ = Status(StatusCode::kFailedPrecondition, fmt::format("{}: was compiled already", file_.graph.name));
  return std::move(file_);
}

}  // namespace rondo::models
