#include "graph/graph.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "graph/attribute_reader.h"
#include "graph/block_format.h"
#include "graph/cache_layout.h"
#include "graph/operator.h"
#include "runtime/fmt.h"

namespace rondo::graph {

namespace {

/// None, or of the struct that the operator reads.
bool fits(const Operator& table, const Attributes& attributes) {
  if (std::holds_alternative<std::monostate>(attributes)) return true;
  const NamedNode none;
  AttributeReader reader(none);
  return table.read_attributes && table.read_attributes(reader).index() == attributes.index();
}

/// One past the last element a view touches, or -1 where an index is negative or does not fit.
std::int64_t view_end(const Tensor& tensor) {
  std::int64_t last = tensor.offset_elements;
  for (int i = 0; i < tensor.shape.rank; ++i) last += (tensor.shape[i] - 1) * tensor.strides[static_cast<std::size_t>(i)];
  return tensor.offset_elements < 0 ? -1 : last + 1;
}

/// The evenly spaced elements that end before dimension `end`: how many and how far apart. `end` moves to their first
/// dimension. Nothing where only dimensions of extent 1 are left.
bool next_run(const Tensor& tensor, int& end, std::int64_t& elements, std::int64_t& step) {
  const auto stride = [&](int axis) { return tensor.strides[static_cast<std::size_t>(axis)]; };
  while (end > 0 && tensor.shape[end - 1] == 1) --end;
  if (end == 0) return false;
  --end;
  elements = tensor.shape[end];
  step = stride(end);
  for (; end > 0 && (tensor.shape[end - 1] == 1 || stride(end - 1) == step * elements); --end) elements *= tensor.shape[end - 1];
  return true;
}

/// The strides that show the elements of `view` in another shape, or nothing where they do not lie so.
std::optional<Strides> reshaped_strides(const Tensor& view, const Shape& shape) {
  // Dimensions that follow each other evenly are one run; a new dimension is a part of one run. Both from the last one on.
  Strides strides{};
  int source = view.shape.rank;
  std::int64_t left = 1, step = 1;  // elements of the run that are still to be given out, and their distance
  for (int i = shape.rank - 1; i >= 0; --i) {
    if (left == 1 && shape[i] != 1 && !next_run(view, source, left, step)) left = 0;
    if (left == 0 || left % shape[i] != 0) return std::nullopt;
    strides[static_cast<std::size_t>(i)] = step;
    step *= shape[i];
    left /= shape[i];
  }
  return strides;
}

std::uint64_t dense_bytes(Type type, std::int64_t n) {
  return static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(type == Type::kQ8_0 ? 1 : element_bytes(type));
}

/// Extents are positive and their product fits 31 bits.
bool has_elements(const Shape& shape) {
  std::int64_t n = 1;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] <= 0 || shape[i] > std::numeric_limits<std::int32_t>::max() / n) return false;
    n *= shape[i];
  }
  return true;
}

}  // namespace

void Graph::fail(std::string message) {
  if (status_.ok()) status_ = Status(StatusCode::kInvalidArgument, std::move(message));
}

StorageId Graph::add_storage(Storage storage) {
  storages_.push_back(std::move(storage));
  return static_cast<StorageId>(storages_.size() - 1);
}

TensorId Graph::add_tensor(std::string tensor_name, StorageKind kind, Type type, const Shape& shape) {
  if (!has_elements(shape)) {
    fail(fmt::format("tensor {}: shape {} is empty or has more than 2^31 elements", tensor_name, to_string(shape)));
    return kNone;
  }
  if (type == Type::kQ8_0) {
    fail(fmt::format("tensor {}: q8_0 is a type of caches and weights", tensor_name));
    return kNone;
  }
  Storage storage;
  storage.name = std::move(tensor_name);
  storage.kind = kind;
  storage.type = type;
  storage.size_bytes = (dense_bytes(type, shape.n_elements()) + 3) / 4 * 4;
  return add_whole(std::move(storage), shape, contiguous_strides(shape));
}

TensorId Graph::add_cache(std::string tensor_name, StorageKind kind, Type type, const Shape& shape) {
  if (shape.rank != 4 || !has_elements(shape) || !has_elements({shape[0], shape[1], shape[2], shape[3] + kCacheGroup})) {
    fail(fmt::format("cache {}: shape {} is not (B, G, S, D), is empty or has more than 2^31 elements", tensor_name, to_string(shape)));
    return kNone;
  }
  if (!is_cache_type(type)) {
    fail(fmt::format("cache {} is {} but must be f32, f16 or q8_0", tensor_name, type_name(type)));
    return kNone;
  }
  Storage storage;
  storage.name = std::move(tensor_name);
  storage.kind = kind;
  storage.type = type;
  storage.size_bytes = cache_layout(type, shape.n_rows(), shape[3]).size_bytes;
  return add_whole(std::move(storage), shape, cache_strides(type, shape));
}

TensorId Graph::add_weight(std::string tensor_name, Type type, const Shape& matrix) {
  const BlockFormat* format = find_block_format(type);
  if (!format || matrix.rank != 2 || !has_elements(matrix)) {
    fail(fmt::format("weight {}: {} of type {} is no matrix of a weight type", tensor_name, to_string(matrix), type_name(type)));
    return kNone;
  }
  Storage storage;
  storage.name = std::move(tensor_name);
  storage.kind = StorageKind::kWeight;
  storage.type = type;
  storage.matrix = matrix;
  storage.size_bytes = plane_layout(*format, matrix[0], matrix[1]).size_bytes;
  return add_whole(std::move(storage), matrix, contiguous_strides(matrix));
}

TensorId Graph::add_whole(Storage storage, const Shape& shape, const Strides& strides) {
  Tensor tensor;
  tensor.name = storage.name;
  tensor.type = storage.type;
  tensor.shape = shape;
  tensor.strides = strides;
  tensor.storage = add_storage(std::move(storage));
  return add_view(std::move(tensor));
}

TensorId Graph::add_view(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId Graph::add_constant(std::string tensor_name, const Shape& shape, std::span<const float> values) {
  const TensorId id = add_tensor(std::move(tensor_name), StorageKind::kConstant, Type::kF32, shape);
  if (id == kNone) return kNone;
  std::vector<std::byte>& content = storage(tensor(id).storage).content;
  content.resize(values.size_bytes());
  std::memcpy(content.data(), values.data(), values.size_bytes());
  return id;
}

TensorId Graph::add(Op op, std::vector<TensorId> inputs, Attributes attributes) {
  if (!status_.ok()) return kNone;
  const Operator& table = operator_of(op);
  if (!fits(table, attributes)) {
    fail(fmt::format("[{}] attributes are another operator's", table.name));
    return kNone;
  }
  Node node{op, std::move(inputs), {}, std::move(attributes)};
  if (Status inferred = table.infer(*this, node); !inferred.ok()) {
    if (status_.ok()) status_ = Status(inferred.code(), fmt::format("[{}] {}", table.name, inferred.message()), inferred.file(), inferred.line());
    return kNone;
  }
  if (!status_.ok()) return kNone;
  nodes_.push_back(std::move(node));
  const std::vector<TensorId>& outputs = nodes_.back().outputs;
  return outputs.empty() ? kNone : outputs.front();
}

const std::vector<TensorId>& Graph::last_outputs() const { return nodes_.back().outputs; }

TensorId Graph::reshape(TensorId input, const Shape& shape) {
  if (!status_.ok()) return kNone;
  Tensor view = tensor(input);
  if (shape.n_elements() != view.shape.n_elements()) {
    fail(fmt::format("[reshape] {} {} can't become {}", view.name, to_string(view.shape), to_string(shape)));
    return kNone;
  }
  const std::optional<Strides> strides = reshaped_strides(view, shape);
  if (!strides) {
    fail(fmt::format("[reshape] {} {} is not laid out so that it can be seen as {}", view.name, to_string(view.shape), to_string(shape)));
    return kNone;
  }
  view.shape = shape;
  view.strides = *strides;
  return add_view(std::move(view));
}

TensorId Graph::reshape_or_copy(TensorId input, const Shape& shape) {
  if (!status_.ok()) return kNone;
  const bool needs_copy = shape.n_elements() == tensor(input).shape.n_elements() && !reshaped_strides(tensor(input), shape);
  return reshape(needs_copy ? add(Op::copy, {input}) : input, shape);
}

TensorId Graph::transpose(TensorId input, std::span<const int> permutation) {
  if (!status_.ok()) return kNone;
  const Tensor from = tensor(input);
  const auto named_once = [&](int axis) { return std::count(permutation.begin(), permutation.end(), axis) == 1; };
  bool each_once = static_cast<int>(permutation.size()) == from.shape.rank;
  for (int axis = 0; axis < from.shape.rank; ++axis) each_once = each_once && named_once(axis);
  if (!each_once) {
    fail(fmt::format("[transpose] {} {}: ({}) is not a permutation of its axes", from.name, to_string(from.shape), fmt::join(permutation, ", ")));
    return kNone;
  }
  Tensor view = from;
  std::size_t to = 0;
  for (int axis : permutation) {
    view.shape.dims[to] = from.shape[axis];
    view.strides[to++] = from.strides[static_cast<std::size_t>(axis)];
  }
  return add_view(std::move(view));
}

TensorId Graph::slice(TensorId input, int axis, std::int64_t start, std::int64_t end) {
  if (!status_.ok()) return kNone;
  Tensor view = tensor(input);
  if (axis < 0 || axis >= view.shape.rank || start < 0 || end <= start || end > view.shape[axis]) {
    fail(fmt::format("[slice] {} {}: [{}, {}) of axis {} is not inside", view.name, to_string(view.shape), start, end, axis));
    return kNone;
  }
  view.offset_elements += start * view.strides[static_cast<std::size_t>(axis)];
  view.shape[axis] = end - start;
  return add_view(std::move(view));
}

TensorId Graph::slice(TensorId input, std::span<const SliceRange> ranges) {
  if (!status_.ok()) return kNone;
  Tensor view = tensor(input);
  if (static_cast<int>(ranges.size()) != view.shape.rank) {
    fail(fmt::format("[slice] {} {} has {} dimensions but {} ranges are given", view.name, to_string(view.shape), view.shape.rank, ranges.size()));
    return kNone;
  }
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    const auto [start, end, step] = ranges[static_cast<std::size_t>(axis)];
    const std::int64_t extent = view.shape[axis];
    if (step < 1) {
      fail(fmt::format("[slice] {} {}: step {} of axis {} must be at least 1", view.name, to_string(view.shape), step, axis));
      return kNone;
    }
    const std::int64_t first = std::clamp<std::int64_t>(start < 0 ? start + extent : start, 0, extent);
    const std::int64_t last = std::clamp<std::int64_t>(end < 0 ? end + extent : end, 0, extent);
    if (first >= last) {
      fail(fmt::format("[slice] {} {}: [{}, {}) of axis {} is empty", view.name, to_string(view.shape), start, end, axis));
      return kNone;
    }
    std::int64_t& stride = view.strides[static_cast<std::size_t>(axis)];
    view.offset_elements += first * stride;
    view.shape[axis] = (last - first - 1) / step + 1;
    stride = view.shape[axis] == 1 ? stride : stride * step;
  }
  return add_view(std::move(view));
}

Status validate(const Graph& graph) {
  RONDO_TRY(graph.status());
  std::vector<bool> written(graph.n_storages(), false);
  for (std::size_t i = 0; i < graph.n_storages(); ++i) {
    const StorageKind kind = graph.storage(static_cast<StorageId>(i)).kind;
    written[i] = kind != StorageKind::kActivation && kind != StorageKind::kOutput;
  }
  for (const Node& node : graph.nodes()) {
    const char* op = operator_of(node.op).name;
    for (TensorId id : node.inputs) {
      if (id == kNone) continue;
      if (id < 0 || static_cast<std::size_t>(id) >= graph.n_tensors()) {
        return Status(StatusCode::kInternal, fmt::format("graph {}: [{}] has no tensor {}", graph.name, op, id));
      }
      const Tensor& input = graph.tensor(id);
      if (!written[static_cast<std::size_t>(input.storage)]) {
        return Status(StatusCode::kInternal, fmt::format("graph {}: [{}] reads {} before it is written", graph.name, op, input.name));
      }
    }
    for (TensorId id : node.outputs) written[static_cast<std::size_t>(graph.tensor(id).storage)] = true;
  }
  for (std::size_t i = 0; i < graph.n_tensors(); ++i) {
    const Tensor& tensor = graph.tensor(static_cast<TensorId>(i));
    const Storage& storage = graph.storage(tensor.storage);
    if (storage.kind == StorageKind::kWeight) continue;  // planes: the block format knows their layout
    const std::int64_t end = view_end(tensor);
    if (end < 0 || dense_bytes(tensor.type, end) > storage.size_bytes + 3) {
      return Status(StatusCode::kInternal, fmt::format("graph {}: tensor {} reaches beyond its storage", graph.name, tensor.name));
    }
  }
  return {};
}

}  // namespace rondo::graph
