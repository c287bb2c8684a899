#include "models/formats/graph_file.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "graph/block_format.h"
#include "graph/interpreter.h"
#include "graph/operator.h"
#include "models/formats/cache_blocks.h"
#include "models/formats/graph_description.h"
#include "models/formats/graph_inputs.h"
#include "models/json.h"
#include "models/nearest.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using graph::Op;
using graph::StorageKind;
using graph::TensorId;

// Tables that operators make for themselves, as RoPE does of its positions: a short file can ask for a lot of them, and they
// are made before all of it is known to be right.
constexpr std::uint64_t kMaxTableBytes = std::uint64_t{32} << 20;

Status invalid(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

/// The files of inputs, and where each input lies in them.
class InputFiles {
 public:
  explicit InputFiles(std::span<const ByteSource> sources) : sources_(sources) {}

  Status open() {
    for (const ByteSource& source : sources_) {
      RONDO_ASSIGN(SafetensorsFile file, SafetensorsFile::parse(source));
      files_.push_back(std::move(file));
    }
    return {};
  }

  /// Finds the input's tensor, completes and checks the input. Errors: kNotFound, kInvalidArgument.
  Result<InputElements> find(DescribedInput& input, const std::string& graph_file) const {
    if (sources_.empty()) {
      if (input.has_type && input.has_shape) return InputElements{};
      return invalid(fmt::format("{}: input '{}' has no {}, and there is no file of inputs that says it", graph_file, printable(input.name), input.has_type ? "shape" : "type"));
    }
    const SafetensorsEntry* entry = nullptr;
    std::size_t file = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const SafetensorsEntry* found = files_[i].find(input.name);
      if (found && entry) return invalid(fmt::format("tensor '{}' is in {} and in {}, an input of {}", printable(input.name), files_[file].name(), files_[i].name(), graph_file));
      if (found) entry = found, file = i;
    }
    if (!entry) return Status(StatusCode::kNotFound, fmt::format("{}: tensor '{}' is missing, an input of {}{}", names(), printable(input.name), graph_file, suggestion(input.name)));
    const std::string what = fmt::format("{}: tensor '{}'", files_[file].name(), printable(input.name));
    if (Status completed = complete_from(*entry, input); !completed.ok()) {
      return Status(completed.code(), fmt::format("{} {}", what, completed.message()));
    }
    RONDO_TRY(check(*entry, input, what, graph_file));
    return InputElements{sources_[file], entry->offset_bytes};
  }

 private:
  static Status check(const SafetensorsEntry& entry, const DescribedInput& input, const std::string& what, const std::string& graph_file) {
    if (entry.dtype != input.type.dtype) {
      return invalid(fmt::format("{} has dtype {}, but {} says {}, which is stored as {}", what, entry.spelling(), graph_file, input.type.name, safetensors_dtype_name(input.type.dtype)));
    }
    const std::vector<std::uint64_t> expected = stored_shape(input);
    if (entry.shape == expected) return {};
    return invalid(fmt::format("{} is ({}), but {} says {}{}", what, fmt::join(entry.shape, ", "), graph_file, to_string(input.shape),
                               input.type.kind == GraphInputType::Kind::kBlocks ? fmt::format(" of {}, which is stored as ({})", input.type.name, fmt::join(expected, ", ")) : ""));
  }
  std::string names() const {
    std::string all;
    for (const SafetensorsFile& file : files_) all += (all.empty() ? "" : ", ") + file.name();
    return all.empty() ? "no file of inputs" : all;
  }
  std::string suggestion(const std::string& name) const {
    std::vector<std::string_view> candidates;
    for (const SafetensorsFile& file : files_) {
      for (const SafetensorsEntry& entry : file.entries()) candidates.push_back(entry.name);
    }
    return suggest(name, candidates);
  }

  std::span<const ByteSource> sources_;
  std::vector<SafetensorsFile> files_;
};

class GraphReader {
 public:
  GraphReader(GraphDescription description, std::string name, std::span<const ByteSource> sources)
      : description_(std::move(description)), name_(std::move(name)), files_(sources), inputs_(file_.graph) {
    file_.graph.name = name_;
  }

  Result<GraphFile> read() {
    RONDO_TRY(files_.open());
    for (DescribedInput& input : description_.inputs) {
      RONDO_ASSIGN(InputElements elements, files_.find(input, name_));
      inputs_.add(input, std::move(elements));
    }
    RONDO_TRY(find_changes());
    for (std::size_t i = 0; i < description_.nodes.size(); ++i) {
      if (Status added = add_node(i); !added.ok()) return added.with_prefix(name_of(i));
    }
    for (const std::string& output : description_.outputs) RONDO_TRY(add_output(output));
    // A declared input that no node reads was checked with the others and is left where it is.
    file_.inputs = inputs_.stored();
    const NodeNames names = [this](std::size_t node) { return name_of(node_of_[node]); };
    file_.checks = integer_checks(file_.graph, names);
    RONDO_TRY(read_contents(file_, true));
    RONDO_TRY(check_integers(file_.checks, file_.contents));
    RONDO_ASSIGN(std::vector<std::byte> state, add_step_state(file_.graph, names));
    file_.contents[file_.graph.state] = std::move(state);
    return std::move(file_);
  }

  /// Reads i32 and i64, which are to be checked before anything else is read; else all the others.
  static Status read_contents(GraphFile& file, bool integers) {
    for (const StoredInput& stored : file.inputs) {
      if (!stored.elements.source.read) continue;
      // Booleans grow fourfold, and nothing about them needs a check.
      if ((stored.form == InputForm::kIntegers && stored.input.type.kind == GraphInputType::Kind::kInteger) != integers) continue;
      std::vector<std::byte> bytes(stored_bytes_of(stored.input, stored.form));
      RONDO_TRY(read_elements(stored.input, stored.form, stored.elements, bytes));
      file.contents[stored.storage] = std::move(bytes);
    }
    return {};
  }

 private:
  std::string name_of(std::size_t index) const { return fmt::format("{}: {}", name_, node_name(description_.nodes[index], index)); }

  /// The number of the input that is meant by `name` where it is one or the outcome of a kv_write.
  std::optional<std::size_t> input_behind(const std::string& name) const {
    if (const auto alias = aliases_.find(name); alias != aliases_.end()) return alias->second;
    const auto found = std::lower_bound(description_.inputs.begin(), description_.inputs.end(), name, [](const DescribedInput& input, const std::string& wanted) { return input.name < wanted; });
    if (found == description_.inputs.end() || found->name != name) return std::nullopt;
    return static_cast<std::size_t>(found - description_.inputs.begin());
  }

  /// Which inputs a kv_write changes, and the last node that does.
  Status find_changes() {
    for (std::size_t i = 0; i < description_.nodes.size(); ++i) {
      const DescribedNode& node = description_.nodes[i];
      if (node.op != "kv_write") continue;
      for (const DescribedOperand& operand : node.inputs) {
        if (operand.role != "cache" || operand.number) continue;
        const auto input = input_behind(operand.tensor);
        if (!input) return invalid(fmt::format("{}: input 'cache' is '{}', which a node makes; only inputs of the graph are changed in place", name_of(i), printable(operand.tensor)));
        last_change_[*input] = i;
        if (node.outputs.size() > 1) return invalid(fmt::format("{}: 'outputs' has {} names, but there is one cache", name_of(i), node.outputs.size()));
        if (!node.outputs.empty()) aliases_[node.outputs.front()] = *input;
      }
    }
    return {};
  }

  Result<TensorId> find_tensor(const std::string& op, const graph::NamedInput& role, const std::string& name) {
    if (const auto input = input_behind(name)) return inputs_.find_or_make(op, role, *input, last_change_.contains(*input));
    return made_.find(name)->second;  // the description has only names that are there
  }

  Status add_node(std::size_t index) {
    const DescribedNode& described = description_.nodes[index];
    const auto roles = graph::named_inputs(described.op);
    graph::Graph& graph = file_.graph;
    const std::size_t n_storages = graph.n_storages();
    graph::NamedNode node{described.op, {}, described.attributes};
    for (const bool numbers : {false, true}) {  // whose type is that of the tensors
      for (const DescribedOperand& operand : described.inputs) {
        if (operand.number.has_value() != numbers) continue;
        const auto role = std::find_if(roles.begin(), roles.end(), [&](const graph::NamedInput& one) { return operand.role == one.name; });
        TensorId tensor = graph::kNone;  // add_named_node refuses an input that the operator hasn't got
        if (role != roles.end() && numbers) {
          RONDO_ASSIGN(tensor, add_literal(graph, inputs_, node, *role, *operand.number));
        } else if (role != roles.end()) {
          RONDO_ASSIGN(tensor, find_tensor(described.op, *role, operand.tensor));
          tensor = settled(index, operand.tensor, tensor);
        }
        node.inputs.emplace_back(operand.role, tensor);
      }
    }
    if (described.op == "patch_embed") RONDO_TRY(check_patches(node, described));
    if (described.op == "rope") RONDO_TRY(check_tables(table_bytes_ + rope_table_bytes(node)));
    const Result<std::vector<TensorId>> made = graph::add_named_node(graph, node);
    if (!made.ok()) return without_operator(made.status(), described.op);
    RONDO_TRY(count_tables(n_storages));
    node_of_.resize(graph.nodes().size(), index);
    if (described.op == "kv_write") return {};  // its output is its input
    if (described.outputs.size() != made->size()) {
      return invalid(fmt::format("'outputs' has {} names, but the operator has {} outputs", described.outputs.size(), made->size()));
    }
    for (std::size_t i = 0; i < made->size(); ++i) made_[described.outputs[i]] = (*made)[i];
    return {};
  }

  /// What a view is taken of: of an input that a later node changes, a copy, so that the view keeps what it had.
  TensorId settled(std::size_t index, const std::string& name, TensorId tensor) {
    const std::string& op = description_.nodes[index].op;
    if (op != "slice" && op != "transpose" && op != "reshape") return tensor;
    const auto input = input_behind(name);
    const auto change = input ? last_change_.find(*input) : last_change_.end();
    return change != last_change_.end() && change->second > index ? file_.graph.add(Op::copy, {tensor}) : tensor;
  }

  /// The weight's channels are the pixels': its matrix alone does not tell (D, C, P, P) from other orders.
  Status check_patches(const graph::NamedNode& node, const DescribedNode& described) const {
    const auto weight = std::find_if(described.inputs.begin(), described.inputs.end(), [](const DescribedOperand& operand) { return operand.role == "weight"; });
    if (weight == described.inputs.end()) return {};
    const auto input = input_behind(weight->tensor);
    return input ? check_patch_channels(file_.graph, node, description_.inputs[*input]) : Status();
  }

  /// The message without the operator in brackets, which is already in front of it.
  static Status without_operator(const Status& status, const std::string& op) {
    const std::string prefix = fmt::format("[{}] ", op);
    return Status(status.code(), status.message().starts_with(prefix) ? status.message().substr(prefix.size()) : status.message());
  }

  Status count_tables(std::size_t first_storage) {
    for (std::size_t i = first_storage; i < file_.graph.n_storages(); ++i) table_bytes_ += file_.graph.storage(static_cast<graph::StorageId>(i)).content.size();
    return check_tables(table_bytes_);
  }
  static Status check_tables(std::uint64_t total_bytes) {
    if (total_bytes <= kMaxTableBytes) return {};
    return invalid(fmt::format("needs tables of {} bytes with the nodes before it, at most {} are there", total_bytes, kMaxTableBytes));
  }

  /// What a rope node's table will take, before it is made; 0 where a node before it has the same, and of what `infer` refuses.
  std::uint64_t rope_table_bytes(const graph::NamedNode& node) {
    std::int64_t positions = graph::RopeAttributes{}.max_position, rotated = 0, width = 0;
    for (const auto& [name, value] : node.attributes) {
      const auto* number = std::get_if<std::int64_t>(&value);
      if (number && name == "max_position") positions = *number;
      if (number && name == "dimensions") rotated = *number;
    }
    TensorId factors = graph::kNone;
    for (const auto& [name, id] : node.inputs) {
      if (name == "frequency_factors") factors = id;
      if (name == "input" && id != graph::kNone && file_.graph.tensor(id).shape.rank == 4) width = file_.graph.tensor(id).shape[3];
    }
    if (rotated != 0) width = rotated > width ? 0 : rotated;
    if (positions < 1 || positions > 1 << 24 || width < 2) return 0;
    if (!rope_tables_.emplace(node.attributes, width, factors).second) return 0;
    return static_cast<std::uint64_t>((positions + 63) / 64 + 64) * static_cast<std::uint64_t>(width) * 4;
  }

  Status add_output(const std::string& name) {
    TensorId tensor = graph::kNone;
    if (const auto input = input_behind(name)) {
      tensor = inputs_.find_changed(*input);
      if (tensor == graph::kNone) return invalid(fmt::format("{}: output '{}' is an input that no node changes", name_, printable(name)));
    } else {
      tensor = made_.find(name)->second;
    }
    graph::Storage& storage = file_.graph.storage(file_.graph.tensor(tensor).storage);
    if (storage.kind == StorageKind::kActivation) storage.kind = StorageKind::kOutput;
    file_.outputs.push_back({name, tensor});
    return {};
  }

  GraphDescription description_;
  std::string name_;
  InputFiles files_;
  GraphFile file_;
  GraphInputs inputs_;
  std::map<std::size_t, std::size_t> last_change_;  ///< input -> node
  std::map<std::string, std::size_t> aliases_;      ///< output of a kv_write -> input
  std::map<std::string, TensorId> made_;
  std::vector<std::size_t> node_of_;  ///< by node of the graph, the node of the file that it is for
  std::uint64_t table_bytes_ = 0;
  std::set<std::tuple<std::vector<std::pair<std::string, graph::AttributeValue>>, std::int64_t, TensorId>> rope_tables_;
};

}  // namespace

Result<GraphFile> open_graph_file(const ByteSource& description, std::span<const ByteSource> inputs) {
  constexpr std::uint64_t kMaxText = JsonLimits{}.max_text_bytes;
  if (!description.read) return invalid(fmt::format("{}: the byte source has no read function", description.name));
  if (description.size_bytes > kMaxText) return Status(StatusCode::kCorruptData, fmt::format("{}: has {} bytes, at most {} are read as a graph", description.name, description.size_bytes, kMaxText));
  GraphDescription parsed;
  {
    std::string text(description.size_bytes, '\0');
    RONDO_TRY(description.read(0, std::as_writable_bytes(std::span(text))));
    RONDO_ASSIGN(parsed, parse_graph_description(text, description.name));
  }
  return GraphReader(std::move(parsed), description.name, inputs).read();
}

Result<GraphFile> read_graph_file(const ByteSource& description, std::span<const ByteSource> inputs) {
  RONDO_ASSIGN(GraphFile file, open_graph_file(description, inputs));
  RONDO_TRY(GraphReader::read_contents(file, false));
  return file;
}

Result<GraphFile> read_graph_file(const ByteSource& description, const ByteSource& inputs) { return read_graph_file(description, std::span(&inputs, 1)); }

Result<std::vector<std::byte>> kernel_bytes(const graph::Graph& graph, const StoredInput& stored) {
  std::vector<std::byte> bytes(stored_bytes_of(stored.input, stored.form));
  RONDO_TRY(read_elements(stored.input, stored.form, stored.elements, bytes));
  const graph::Storage& storage = graph.storage(stored.storage);
  if (storage.kind != StorageKind::kWeight) return bytes;
  return graph::pack_planes(*graph::find_block_format(storage.type), storage.matrix[0], storage.matrix[1], bytes);
}

StorageBytes take_kernel_contents(GraphFile& file) {
  for (auto& [id, bytes] : file.contents) {
    const graph::Storage& storage = file.graph.storage(id);
    if (storage.kind != StorageKind::kWeight) continue;
    bytes = graph::pack_planes(*graph::find_block_format(storage.type), storage.matrix[0], storage.matrix[1], bytes);
  }
  return std::exchange(file.contents, {});
}

Result<StorageBytes> interpret_graph_file(GraphFile file) {
  StorageBytes weights;
  graph::HostTensors tensors(file.graph, [&](const graph::Storage& storage, std::vector<float>& values) -> Status {
    const graph::BlockFormat& format = *graph::find_block_format(storage.type);
    const auto columns = static_cast<std::uint32_t>(storage.matrix[1]);
    const std::size_t row_bytes = graph::file_row_bytes(format, columns);
    const std::span<const std::byte> rows(weights[static_cast<graph::StorageId>(&storage - &file.graph.storage(0))]);
    values.resize(static_cast<std::size_t>(storage.matrix.n_elements()));
    for (std::size_t row = 0; row < static_cast<std::size_t>(storage.matrix[0]); ++row) format.dequantize_row(rows.subspan(row * row_bytes, row_bytes), columns, values.data() + row * columns);
    return {};
  });
  for (auto& [id, bytes] : file.contents) {
    if (file.graph.storage(id).kind == StorageKind::kWeight) weights[id] = std::move(bytes);
    else tensors.set_bytes(id, std::move(bytes));
  }
  RONDO_TRY(graph::interpret(file.graph, tensors));
  StorageBytes after;
  for (const GraphFile::Output& output : file.outputs) {
    const graph::StorageId id = file.graph.tensor(output.tensor).storage;
    if (!after.contains(id)) after[id] = std::move(tensors.bytes(id));
  }
  return after;
}

std::vector<std::byte> dense_elements(const graph::Tensor& tensor, std::span<const std::byte> storage) {
  if (tensor.type == graph::Type::kQ8_0) return blocks_of_planes(storage, tensor.shape.n_rows(), tensor.shape.last());
  const auto size = static_cast<std::size_t>(graph::element_bytes(tensor.type));
  std::vector<std::byte> dense(static_cast<std::size_t>(tensor.shape.n_elements()) * size);
  if (tensor.is_contiguous()) {
    std::memcpy(dense.data(), storage.data() + static_cast<std::size_t>(tensor.offset_elements) * size, dense.size());
    return dense;
  }
  std::size_t to = 0;
  const Status done = for_each_element(tensor, [&](std::size_t element) -> Status {
    std::memcpy(dense.data() + to, storage.data() + element * size, size);
    to += size;
    return {};
  });
  assert(done.ok());
  (void)done;
  return dense;
}

std::vector<std::uint64_t> dense_shape(const graph::Tensor& tensor) {
  std::vector<std::uint64_t> shape;
  for (int axis = 0; axis < tensor.shape.rank; ++axis) shape.push_back(static_cast<std::uint64_t>(tensor.shape[axis]));
  if (tensor.type == graph::Type::kQ8_0) shape.back() = cache_row_file_bytes(tensor.shape.last());
  return shape;
}

}  // namespace rondo::models
