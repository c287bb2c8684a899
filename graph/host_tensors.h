// The tensors of a Graph on the host, for the operators' references.
//
// Owns one byte array per storage, made at first touch. Weights are dense f32 here, whatever their type on the device;
// caches are what they are there, with a storage in pieces as if it were whole.
// Slow and plain by intent. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include <rondo/status.h>

#include "graph/cache_layout.h"
#include "graph/float16.h"
#include "graph/graph.h"

namespace rondo::graph {

/// Elements of one tensor by index; missing leading indices are 0.
class HostView {
 public:
  /// `type` is what the bytes hold: the tensor's own, but f32 for weights.
  HostView(const Tensor& tensor, Type type, std::byte* data) : tensor_(tensor), type_(type), data_(data) {}

  const Shape& shape() const { return tensor_.shape; }
  std::int64_t dim(int axis) const { return tensor_.shape[axis]; }

  float at(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) const {
    const std::size_t index = index_of(i, j, k, l);
    if (type_ == Type::kF16) return half_to_float(read<std::uint16_t>(index));
    if (type_ == Type::kI32) return static_cast<float>(read<std::int32_t>(index));
    if (type_ == Type::kQ8_0) return static_cast<float>(read<std::int8_t>(index)) * half_to_float(read<std::uint16_t>(scale_index(index)));
    return read<float>(index);
  }
  /// Not for q8_0, whose elements share scales: see set_row.
  void set(float value, std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) {
    const std::size_t index = index_of(i, j, k, l);
    if (type_ == Type::kF16) write(index, float_to_half(value));
    else write(index, value);
  }
  /// Row (i, j, k) of a cache, with its padding where that is written too. Of f32, f16 or q8_0, and all of it.
  void set_row(std::span<const float> values, std::int64_t i, std::int64_t j, std::int64_t k) {
    if (type_ != Type::kQ8_0) {
      for (std::size_t l = 0; l < values.size(); ++l) set(values[l], i, j, k, static_cast<std::int64_t>(l));
      return;
    }
    constexpr std::size_t kGroup = kCacheGroup;
    for (std::size_t first = 0; first < values.size(); first += kGroup) {
      const std::size_t index = index_of(i, j, k, static_cast<std::int64_t>(first));
      std::array<std::int8_t, kGroup> quants;
      write(scale_index(index), quantize_group(values.subspan(first, std::min(kGroup, values.size() - first)), quants));
      std::memcpy(data_ + index, quants.data(), kGroup);
    }
  }
  std::int32_t int_at(std::int64_t i, std::int64_t j = 0) const { return read<std::int32_t>(index_of(i, j, 0, 0)); }
  void set_int(std::int32_t value, std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) { write(index_of(i, j, k, l), value); }

  /// Indices of flattened row `row` (all dimensions but the last), to be used with `l` as the column.
  std::array<std::int64_t, kMaxRank> row_index(std::int64_t row) const {
    std::array<std::int64_t, kMaxRank> index{};
    for (int axis = shape().rank - 2; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = row % dim(axis);
      row /= dim(axis);
    }
    return index;
  }
  float row_at(std::int64_t row, std::int64_t column) const {
    auto index = row_index(row);
    index[static_cast<std::size_t>(shape().rank - 1)] = column;
    return at(index[0], index[1], index[2], index[3]);
  }
  void row_set(float value, std::int64_t row, std::int64_t column) {
    auto index = row_index(row);
    index[static_cast<std::size_t>(shape().rank - 1)] = column;
    set(value, index[0], index[1], index[2], index[3]);
  }

 private:
  std::size_t index_of(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) const {
    const Strides& s = tensor_.strides;
    return static_cast<std::size_t>(tensor_.offset_elements + i * s[0] + j * s[1] + k * s[2] + l * s[3]);
  }
  /// Of the scale of a q8_0 element, in halves.
  std::size_t scale_index(std::size_t index) const {
    const CacheLayout layout = cache_layout(Type::kQ8_0, tensor_.shape.n_rows(), tensor_.shape.last());
    const auto row_elements = static_cast<std::size_t>(layout.row_elements);
    return 2 * (layout.scales_offset_words + index / row_elements * layout.scale_row_words) + index % row_elements / kCacheGroup;
  }
  template <typename T>
  T read(std::size_t index) const {
    T value;
    std::memcpy(&value, data_ + index * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void write(std::size_t index, T value) {
    std::memcpy(data_ + index * sizeof(T), &value, sizeof(T));
  }

  const Tensor& tensor_;
  Type type_;
  std::byte* data_;
};

/// Fills a weight storage with its values, row after row.
using WeightReader = std::function<Status(const Storage& storage, std::vector<float>& values)>;

class HostTensors {
 public:
  /// `graph` outlives this. `read_weight` is called once per weight storage that is read.
  HostTensors(const Graph& graph, WeightReader read_weight) : graph_(graph), read_weight_(std::move(read_weight)) {}

  HostView view(TensorId id) {
    const Tensor& tensor = graph_.tensor(id);
    const bool is_weight = graph_.storage(tensor.storage).kind == StorageKind::kWeight;
    return HostView(tensor, is_weight ? Type::kF32 : tensor.type, bytes(tensor.storage).data());
  }
  /// The storage's bytes, zero at first (constants: their content; weights: f32 values).
  std::vector<std::byte>& bytes(StorageId id);
  /// Takes over the bytes of a storage: step state, tokens and caches that outlive a graph.
  void set_bytes(StorageId id, std::vector<std::byte> content);

  const Graph& graph() const { return graph_; }
  /// The first failure of a weight reader.
  const Status& status() const { return status_; }

 private:
  const Graph& graph_;
  WeightReader read_weight_;
  Status status_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<bool> filled_;
};

}  // namespace rondo::graph
