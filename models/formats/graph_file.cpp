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
#include "models/printable.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

using graph::Op;
using graph::StorageKind;
using graph::TensorId;

// As many as any device takes workgroups in one dimension.
constexpr std::int64_t kMaxSequences = 65'535;
// Tables that operators make for themselves, as RoPE does of its positions: a short file can ask for a lot of them, and they
// are made before all of it is known to be right.
constexpr std::uint64_t kMaxTableBytes = std::uint64_t{32} << 20;
// Positions are added to windows and chunks in 32 bits.
constexpr std::int64_t kMaxPosition = 1 << 29;

Status invalid(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

/// Calls visit(element of the storage) for each element of `tensor` in row-major order, until one fails.
template <typename Visit>
Status for_each_element(const graph::Tensor& tensor, Visit&& visit) {
  const std::int64_t n = tensor.shape.n_elements();
  for (std::int64_t flat = 0; flat < n; ++flat) {
    std::int64_t rest = flat, element = tensor.offset_elements;
    for (int axis = tensor.shape.rank - 1; axis >= 0; --axis) {
      element += rest % tensor.shape[axis] * tensor.strides[static_cast<std::size_t>(axis)];
      rest /= tensor.shape[axis];
    }
    RONDO_TRY(visit(static_cast<std::size_t>(element)));
  }
  return {};
}

class GraphReader {
 public:
  GraphReader(GraphDescription description, std::string name, const ByteSource& source)
      : description_(std::move(description)), name_(std::move(name)), inputs_(description_, name_, source, file_.graph) {
    file_.graph.name = name_;
  }

  Result<GraphFile> read() {
    RONDO_TRY(inputs_.check_file());
    RONDO_TRY(find_changes());
    for (std::size_t i = 0; i < description_.nodes.size(); ++i) {
      if (Status added = add_node(i); !added.ok()) return added.with_prefix(node_name(i));
    }
    for (const std::string& output : description_.outputs) RONDO_TRY(add_output(output));
    // A declared input that no node reads was checked with the others and is left where it is.
    RONDO_TRY(inputs_.load_integers(file_.contents));
    RONDO_TRY(check_integers());
    RONDO_TRY(add_state());
    RONDO_TRY(inputs_.load_rest(file_.contents));
    return std::move(file_);
  }

 private:
  std::string node_name(std::size_t index) const { return fmt::format("{}: node {} ({})", name_, index, description_.nodes[index].op); }

  /// The input that is meant by `name` where it is one or the outcome of a kv_write, else null.
  const std::string* input_behind(const std::string& name) const {
    if (const auto alias = aliases_.find(name); alias != aliases_.end()) return &alias->second;
    const auto found = std::lower_bound(description_.inputs.begin(), description_.inputs.end(), name, [](const DescribedInput& input, const std::string& wanted) { return input.name < wanted; });
    return found != description_.inputs.end() && found->name == name ? &found->name : nullptr;
  }

  /// Which inputs a kv_write changes, and the last node that does.
  Status find_changes() {
    for (std::size_t i = 0; i < description_.nodes.size(); ++i) {
      const DescribedNode& node = description_.nodes[i];
      if (node.op != "kv_write") continue;
      for (const auto& [role, name] : node.inputs) {
        if (role != "cache") continue;
        const std::string* input = input_behind(name);
        if (!input) return invalid(fmt::format("{}: input 'cache' is '{}', which a node makes; only inputs of the graph are changed in place", node_name(i), printable(name)));
        last_change_[*input] = i;
        if (node.outputs.size() > 1) return invalid(fmt::format("{}: 'outputs' has {} names, but there is one cache", node_name(i), node.outputs.size()));
        if (!node.outputs.empty()) aliases_[node.outputs.front()] = *input;
      }
    }
    return {};
  }

  Result<TensorId> find_tensor(const std::string& op, const graph::NamedInput& role, const std::string& name) {
    if (const std::string* input = input_behind(name)) return inputs_.find_or_make(op, role, *input, last_change_.contains(*input));
    return made_.find(name)->second;  // the description has only names that are there
  }

  Status add_node(std::size_t index) {
    const DescribedNode& described = description_.nodes[index];
    const auto roles = graph::named_inputs(described.op);
    graph::Graph& graph = file_.graph;
    const std::size_t n_storages = graph.n_storages();
    graph::NamedNode node{described.op, {}, described.attributes};
    for (const auto& input : described.inputs) {
      const auto role = std::find_if(roles.begin(), roles.end(), [&](const graph::NamedInput& one) { return input.first == one.name; });
      TensorId tensor = graph::kNone;  // add_named_node refuses an input that the operator hasn't got
      if (role != roles.end()) {
        RONDO_ASSIGN(tensor, find_tensor(described.op, *role, input.second));
        tensor = settled(index, input.second, tensor);
      }
      node.inputs.emplace_back(input.first, tensor);
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
    const std::string* input = input_behind(name);
    const auto change = input ? last_change_.find(*input) : last_change_.end();
    return change != last_change_.end() && change->second > index ? file_.graph.add(Op::copy, {tensor}) : tensor;
  }

  /// The weight's channels are the pixels': its matrix alone does not tell (D, C, P, P) from other orders.
  Status check_patches(const graph::NamedNode& node, const DescribedNode& described) const {
    const auto find = [](const auto& inputs, const char* name) { return std::find_if(inputs.begin(), inputs.end(), [name](const auto& input) { return input.first == name; }); };
    const auto weight = find(described.inputs, "weight");
    const auto pixels = find(node.inputs, "pixels");
    const std::string* input = weight == described.inputs.end() ? nullptr : input_behind(weight->second);
    if (!input || pixels == node.inputs.end() || pixels->second == graph::kNone) return {};
    const auto shaped = std::find_if(description_.inputs.begin(), description_.inputs.end(), [&](const DescribedInput& one) { return one.name == *input; });
    const graph::Shape& image = file_.graph.tensor(pixels->second).shape;
    if (image.rank != 4 || shaped->shape[1] == image[1]) return {};
    return invalid(fmt::format("weight is {} but pixels {} have {} channels", to_string(shaped->shape), to_string(image), image[1]));
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
    if (const std::string* input = input_behind(name)) {
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

  /// Each value of an i32 tensor that comes from the file, if it does, must lie in [least, most].
  Status check_range(const graph::Node& node, std::size_t input, const char* role, std::int64_t least, std::int64_t most) const {
    if (node.inputs.size() <= input || node.inputs[input] == graph::kNone) return {};
    const graph::Tensor& tensor = file_.graph.tensor(node.inputs[input]);
    const auto bytes = file_.contents.find(tensor.storage);
    if (bytes == file_.contents.end()) return {};
    return for_each_element(tensor, [&](std::size_t element) -> Status {
      std::int32_t value = 0;
      std::memcpy(&value, bytes->second.data() + element * 4, 4);
      if (value >= least && value <= most) return {};
      return invalid(fmt::format("input '{}' ({}) holds {}, outside [{}, {}]", role, printable(tensor.name), value, least, most));
    });
  }

  /// start + count of each sequence stays inside the cache.
  Status check_rows_written(const graph::Node& node) const {
    const graph::Tensor &cache = file_.graph.tensor(node.inputs[0]), &update = file_.graph.tensor(node.inputs[1]);
    RONDO_TRY(check_range(node, 2, "start", 0, cache.shape[2]));
    RONDO_TRY(check_range(node, 3, "count", 0, update.shape[2]));
    const auto value_of = [&](std::size_t input, std::int64_t sequence) -> std::optional<std::int64_t> {
      const TensorId id = node.inputs[input];
      if (id == graph::kNone) return update.shape[2];
      const auto bytes = file_.contents.find(file_.graph.tensor(id).storage);
      if (bytes == file_.contents.end()) return std::nullopt;
      std::int32_t value = 0;
      std::memcpy(&value, bytes->second.data() + sequence * 4, 4);
      return value;
    };
    for (std::int64_t b = 0; b < cache.shape[0]; ++b) {
      const auto start = value_of(2, b), count = value_of(3, b);
      if (!start || !count || *start + *count <= cache.shape[2]) continue;
      return invalid(fmt::format("writes rows {} to {} of sequence {}, but the cache has {}", *start, *start + *count - 1, b, cache.shape[2]));
    }
    return {};
  }

  /// What the file's integers count is there. Integers that nodes make are the device's business.
  Status check_integers() const {
    const graph::Graph& graph = file_.graph;
    const auto shape = [&](TensorId id) -> const graph::Shape& { return graph.tensor(id).shape; };
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const graph::Node& node = graph.nodes()[i];
      Status checked;
      if (node.op == Op::embedding) checked = check_range(node, 0, "ids", 0, shape(node.inputs[1])[0] - 1);
      if (node.op == Op::rope) checked = check_range(node, 1, "positions", 0, graph::attributes_of<graph::RopeAttributes>(node).max_position - 1);
      if (node.op == Op::attention) {
        checked = check_range(node, 3, "query_offset", -kMaxPosition, kMaxPosition);
        if (checked.ok()) checked = check_range(node, 4, "lengths", 0, shape(node.inputs[1])[2]);
      }
      if (node.op == Op::kv_write) checked = check_rows_written(node);
      if (!checked.ok()) return checked.with_prefix(node_name(node_of_[i]));
    }
    return {};
  }

  /// A state block for as many sequences as any node has: kernels on heads look up the state of the first dimension's index.
  Status add_state() {
    graph::Graph& graph = file_.graph;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const graph::Node& node = graph.nodes()[i];
      if (node.op != Op::attention && node.op != Op::rope && node.op != Op::kv_write) continue;
      graph.n_sequences = std::max(graph.n_sequences, graph.tensor(node.inputs[0]).shape[0]);
      if (graph.n_sequences > kMaxSequences) return invalid(fmt::format("{}: has {} sequences, at most {} are there", node_name(node_of_[i]), graph.n_sequences, kMaxSequences));
    }
    std::vector<std::int32_t> words(static_cast<std::size_t>(graph.n_sequences * RONDO_STATE_WORDS), 0);
    for (std::size_t at = 0; at < words.size(); at += RONDO_STATE_WORDS) {
      words[at + RONDO_STATE_ACTIVE] = 1;
      words[at + RONDO_STATE_COUNT] = 0x7fffffff;
    }
    const TensorId state = graph.add_tensor("step state", StorageKind::kStep, graph::Type::kI32, {graph.n_sequences, RONDO_STATE_WORDS});
    RONDO_TRY(Status(graph.status()));
    graph.state = graph.tensor(state).storage;
    const auto bytes = std::as_bytes(std::span(words));
    file_.contents[graph.state].assign(bytes.begin(), bytes.end());
    return {};
  }

  GraphDescription description_;
  std::string name_;
  GraphFile file_;
  GraphInputs inputs_;
  std::map<std::string, std::size_t> last_change_;  ///< input -> node
  std::map<std::string, std::string> aliases_;      ///< output of a kv_write -> input
  std::map<std::string, TensorId> made_;
  std::vector<std::size_t> node_of_;  ///< by node of the graph, the node of the file that it is for
  std::uint64_t table_bytes_ = 0;
  std::set<std::tuple<std::vector<std::pair<std::string, graph::AttributeValue>>, std::int64_t, TensorId>> rope_tables_;
};

}  // namespace

Result<GraphFile> read_graph_file(const ByteSource& description, const ByteSource& inputs) {
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

StorageBytes take_kernel_contents(GraphFile& file) {
  for (auto& [id, bytes] : file.contents) {
    const graph::Storage& storage = file.graph.storage(id);
    if (storage.kind != StorageKind::kWeight) continue;
    const graph::BlockFormat& format = *graph::find_block_format(storage.type);
    const graph::PlaneLayout layout = graph::plane_layout(format, storage.matrix[0], storage.matrix[1]);
    const auto columns = static_cast<std::uint32_t>(storage.matrix[1]);
    const std::size_t row_bytes = graph::file_row_bytes(format, columns);
    std::vector<std::uint32_t> words(layout.size_bytes / 4);
    for (std::size_t row = 0; row < static_cast<std::size_t>(storage.matrix[0]); ++row) {
      format.repack_row(std::span(bytes).subspan(row * row_bytes, row_bytes), columns, words.data() + row * layout.row_words,
                        words.data() + layout.scale_offset_words + row * layout.scale_row_words);
    }
    const auto planes = std::as_bytes(std::span(words));
    bytes.assign(planes.begin(), planes.end());
  }
  return std::exchange(file.contents, {});
}

Result<StorageBytes> interpret_graph_file(GraphFile file) {
  std::map<std::string, std::vector<std::byte>> weights;  // no two have one name, which is the input's
  graph::HostTensors tensors(file.graph, [&](const graph::Storage& storage, std::vector<float>& values) -> Status {
    const graph::BlockFormat& format = *graph::find_block_format(storage.type);
    const auto columns = static_cast<std::uint32_t>(storage.matrix[1]);
    const std::size_t row_bytes = graph::file_row_bytes(format, columns);
    const std::span<const std::byte> rows(weights[storage.name]);
    values.resize(static_cast<std::size_t>(storage.matrix.n_elements()));
    for (std::size_t row = 0; row < static_cast<std::size_t>(storage.matrix[0]); ++row) format.dequantize_row(rows.subspan(row * row_bytes, row_bytes), columns, values.data() + row * columns);
    return {};
  });
  for (auto& [id, bytes] : file.contents) {
    if (file.graph.storage(id).kind == StorageKind::kWeight) weights[file.graph.storage(id).name] = std::move(bytes);
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
