#include "graph/tensor.h"

#include <algorithm>

#include "runtime/fmt.h"

namespace rondo::graph {

const char* type_name(Type type) {
  switch (type) {
#define RONDO_WEIGHT_TYPE(enumerator, name, value, text, ggml) \
  case Type::enumerator: return text;
#include "lib/weight_types.inc"
#undef RONDO_WEIGHT_TYPE
    case Type::kI32: return "i32";
  }
  return "?";
}

Shape::Shape(std::initializer_list<std::int64_t> extents) {
  for (std::int64_t extent : extents) dims[static_cast<std::size_t>(rank++)] = extent;
}

std::int64_t Shape::n_elements() const {
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= (*this)[i];
  return n;
}

std::int64_t Shape::n_rows() const {
  std::int64_t n = 1;
  for (int i = 0; i + 1 < rank; ++i) n *= (*this)[i];
  return n;
}

bool Shape::operator==(const Shape& other) const {
  if (rank != other.rank) return false;
  for (int i = 0; i < rank; ++i) {
    if ((*this)[i] != other[i]) return false;
  }
  return true;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank; ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + ")";
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = step;
    step *= shape[i];
  }
  return strides;
}

bool Tensor::is_contiguous() const {
  const Strides dense = contiguous_strides(shape);
  for (int i = 0; i < shape.rank; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    if (shape[i] != 1 && strides[axis] != dense[axis]) return false;
  }
  return true;
}

std::vector<StoragePiece> split_evenly(std::int64_t n, std::int64_t most) {
  std::vector<StoragePiece> pieces;
  const std::int64_t n_pieces = most == 0 ? 0 : (n + most - 1) / most;
  for (std::int64_t i = 0; i < n_pieces; ++i) {
    const std::int64_t first = n * i / n_pieces;
    pieces.push_back({first, n * (i + 1) / n_pieces - first, {}});
  }
  return pieces;
}

bool pieces_agree(std::span<const StoragePiece> a, std::span<const StoragePiece> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const StoragePiece& x, const StoragePiece& y) { return x.first == y.first && x.count == y.count; });
}

bool strides_agree(const Tensor& a, const Tensor& b) {
  for (int i = 0; i < a.shape.rank; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    if (a.shape[i] != 1 && b.shape[i] != 1 && a.strides[axis] != b.strides[axis]) return false;
  }
  return a.shape.rank == b.shape.rank;
}

std::int64_t row_stride(const Tensor& tensor) {
  const int rank = tensor.shape.rank;
  if (rank == 0) return 1;
  if (tensor.shape.last() != 1 && tensor.strides[static_cast<std::size_t>(rank - 1)] != 1) return -1;
  std::int64_t stride = -1, expected = -1;
  for (int i = rank - 2; i >= 0; --i) {
    if (tensor.shape[i] == 1) continue;
    const std::int64_t found = tensor.strides[static_cast<std::size_t>(i)];
    if (stride < 0) {
      stride = found;
    } else if (found != expected) {
      return -1;
    }
    expected = found * tensor.shape[i];
  }
  return stride < 0 ? tensor.shape.last() : stride;
}

}  // namespace rondo::graph
