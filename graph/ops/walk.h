// Strided views of any rank as four dimensions, leading ones 1, and walks along one axis of them.
#pragma once

#include <array>

#include "graph/host_tensors.h"
#include "graph/kernel_choice.h"
#include "graph/lowering.h"
#include "graph/ops/checks.h"

namespace rondo::graph {

/// Extent of dimension `axis` of four.
inline std::int64_t extent4(const Shape& shape, int axis) {
  const int own = axis - (kMaxRank - shape.rank);
  return own < 0 ? 1 : shape[own];
}

/// Stride of dimension `axis` of four; 0 where the extent is 1, so that the tensor broadcasts.
inline std::uint32_t stride4(const Tensor& tensor, int axis) {
  const int own = axis - (kMaxRank - tensor.shape.rank);
  return own < 0 || tensor.shape[own] == 1 ? 0 : stride_of(tensor, own);
}

using Index4 = std::array<std::int64_t, kMaxRank>;

/// Calls visit(index) for each element of `shape`, in row-major order.
template <typename Visit>
void for_each_element(const Shape& shape, Visit&& visit) {
  Index4 index{};
  const std::int64_t n = shape.n_elements();
  for (std::int64_t flat = 0; flat < n; ++flat) {
    std::int64_t rest = flat;
    for (int axis = kMaxRank - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % extent4(shape, axis);
      rest /= extent4(shape, axis);
    }
    visit(index);
  }
}

/// What HostView takes: the view's own dimensions of four, 0 where it has extent 1.
inline Index4 own_index(const HostView& view, const Index4& index) {
  Index4 own{};
  const int missing = kMaxRank - view.shape().rank;
  for (int axis = 0; axis < view.shape().rank; ++axis) {
    own[static_cast<std::size_t>(axis)] = view.dim(axis) == 1 ? 0 : index[static_cast<std::size_t>(axis + missing)];
  }
  return own;
}

/// Element at an index of four dimensions; the view broadcasts.
inline double at4(const HostView& view, const Index4& index) {
  const Index4 own = own_index(view, index);
  return view.at(own[0], own[1], own[2], own[3]);
}

inline void set4(HostView& view, double value, const Index4& index) {
  const Index4 own = own_index(view, index);
  view.set(static_cast<float>(value), own[0], own[1], own[2], own[3]);
}

/// `axis`, which counts from the last where negative, as a dimension of `shape`, or -1 where there is none.
inline int resolve_axis(const Shape& shape, std::int64_t axis) {
  const std::int64_t resolved = axis < 0 ? axis + shape.rank : axis;
  return resolved < 0 || resolved >= shape.rank ? -1 : static_cast<int>(resolved);
}

/// The three dimensions of four that are not `axis`, which is one of four too.
inline std::array<int, 3> other_axes(int axis) {
  std::array<int, 3> others{};
  for (int i = 0, n = 0; i < kMaxRank; ++i) {
    if (i != axis) others[static_cast<std::size_t>(n++)] = i;
  }
  return others;
}

/// Invocations that share a row. On a CPU driver every barrier switches between all subgroups of the workgroup, so few do,
/// unless the row is so long that llvmpipe would end their loops (65,535 iterations).
inline std::uint32_t row_width(const runtime::DeviceCaps& caps, std::uint32_t columns) {
  return is_cpu(caps) && columns <= 65536 ? 8 : 128;
}

}  // namespace rondo::graph
