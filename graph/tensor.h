// Element types, shapes, strides and storages: what a tensor is, without saying where it lives on a device.
//
// Plain values: copyable, no threads, no ownership of device memory. A Tensor is a strided view of a Storage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace rondo::graph {

/// Element types of activations, caches, ids and weights. The value of a weight type is that of the shaders' type constant.
enum class Type : std::uint8_t {
#define RONDO_WEIGHT_TYPE(enumerator, name, value, text, ggml) enumerator = value,
#include "lib/weight_types.inc"
#undef RONDO_WEIGHT_TYPE
  kI32,  ///< behind the weight types
};

/// All types that weights have; each at the place of its value.
inline constexpr Type kWeightTypes[] = {
#define RONDO_WEIGHT_TYPE(enumerator, name, value, text, ggml) Type::enumerator,
#include "lib/weight_types.inc"
#undef RONDO_WEIGHT_TYPE
};
static_assert(static_cast<std::size_t>(Type::kI32) == std::size(kWeightTypes), "the lines of weight_types.inc are in the order of their values, from 0");

/// "f32", "q8_0", ...
const char* type_name(Type type);

/// Of f32, f16 and i32; of others there are blocks.
constexpr int element_bytes(Type type) { return type == Type::kF16 ? 2 : 4; }

constexpr int kMaxRank = 4;

/// Row-major extents, last dimension fastest. Rank 0 is a scalar.
struct Shape {
  std::array<std::int64_t, kMaxRank> dims{};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  std::int64_t operator[](int axis) const { return dims[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims[static_cast<std::size_t>(axis)]; }
  /// Product of the extents; 1 for a scalar. Extents are checked on entry to a Graph, so it does not wrap.
  std::int64_t n_elements() const;
  std::int64_t last() const { return dims[static_cast<std::size_t>(rank - 1)]; }
  /// Product of all extents but the last.
  std::int64_t n_rows() const;
  bool operator==(const Shape& other) const;
};

/// "(1, 7, 64)"
std::string to_string(const Shape& shape);

using Strides = std::array<std::int64_t, kMaxRank>;
Strides contiguous_strides(const Shape& shape);

using TensorId = std::int32_t;
using StorageId = std::int32_t;
constexpr std::int32_t kNone = -1;

/// What a storage is for; decides which buffer it lives in and who fills it.
enum class StorageKind : std::uint8_t {
  kActivation,  ///< written and read by the graph; placed by the memory planner
  kWeight,      ///< read only; placed by the model
  kCache,       ///< survives steps; placed by the model
  kStep,        ///< step state, token array or mirror; placed by the session
  kConstant,    ///< bytes known when the graph is built (tables); placed by the session
  kInput,       ///< filled by the host before a run
  kOutput,      ///< read by the host after a run
};

/// Rows of a weight, or KV heads of a cache, that are bound on their own where the whole is more than a binding can hold. A
/// weight's piece has its own planes, a cache's piece is (B, count, S, D).
struct StoragePiece {
  std::int64_t first = 0;  ///< row or KV head
  std::int64_t count = 0;
  runtime::BufferRange place;
};
/// [0, n) in as few pieces of at most `most` as there can be, about equally long; places unset. None if `most` is 0.
std::vector<StoragePiece> split_evenly(std::int64_t n, std::int64_t most);

/// Both have the same rows or heads in each piece.
bool pieces_agree(std::span<const StoragePiece> a, std::span<const StoragePiece> b);

/// A run of bytes that tensors look into.
struct Storage {
  std::string name;
  StorageKind kind = StorageKind::kActivation;
  Type type = Type::kF32;
  std::uint64_t size_bytes = 0;
  /// kWeight only: (N, K) of the whole block, of which tensors may be slices of rows.
  Shape matrix;
  /// Where it lies. Activations: set by the memory planner. Others: set by whoever places them before lowering.
  runtime::BufferRange place;
  /// kWeight and kCache: consecutive pieces that make up the whole, where it is not in one place.
  std::vector<StoragePiece> pieces;
  /// kConstant only: the content.
  std::vector<std::byte> content;
};

/// A strided view: element (i0, i1, ...) is at offset + sum(i * stride), in elements of the storage.
struct Tensor {
  std::string name;
  Type type = Type::kF32;
  Shape shape;
  Strides strides{};
  std::int64_t offset_elements = 0;
  StorageId storage = kNone;

  /// Strides equal to those of a fresh tensor of this shape (dimensions of extent 1 may have any).
  bool is_contiguous() const;
};

/// Both walk their storages alike: equal strides wherever both have more than one element.
bool strides_agree(const Tensor& a, const Tensor& b);

/// The stride from one flattened row (all dimensions but the last) to the next, or -1 where rows are not evenly spaced
/// or the last dimension is not dense.
std::int64_t row_stride(const Tensor& tensor);

}  // namespace rondo::graph
