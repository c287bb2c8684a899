// What must hold of a graph's integers before kernels use them as indices, and the step state of a graph without a session.
//
// Pure: made of a graph as it was built, kept beyond its lowering.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "graph/graph.h"

namespace rondo::models {

/// Bytes of storages, as kernels read them; but weights as rows in the order of a GGUF file where it says so.
using StorageBytes = std::map<graph::StorageId, std::vector<std::byte>>;

/// Names a node of the graph for messages, by its index.
using NodeNames = std::function<std::string(std::size_t node)>;

/// What one node asks of the integers that it reads.
struct IntegerCheck {
  /// Each value of an i32 tensor lies in [least, most].
  struct Range {
    graph::Tensor tensor;
    const char* role = "";
    std::int64_t least = 0, most = 0;
  };
  /// start + count of each sequence stays inside a cache.
  struct Rows {
    std::optional<graph::Tensor> start, count;  ///< absent: 0 and all rows of the update
    std::int64_t sequences = 0, update_rows = 0, cache_rows = 0;
  };
  std::string node;
  std::vector<Range> ranges;
  std::optional<Rows> rows;
};

/// The checks of all nodes; those of integers that nodes make are left to the device.
std::vector<IntegerCheck> integer_checks(const graph::Graph& graph, const NodeNames& name);

/// Values outside of what they count, among storages that `contents` has. Errors: kInvalidArgument, beginning with the node.
Status check_ranges(const std::vector<IntegerCheck>& checks, const StorageBytes& contents);
/// The same, and rows written beyond the end of a cache.
Status check_integers(const std::vector<IntegerCheck>& checks, const StorageBytes& contents);

/// Adds a step state with active = 1 and all rows valid, for as many sequences as any node has: kernels on heads look up the
/// state of the first dimension's index. Returns its content. Errors: kInvalidArgument (more sequences than there can be).
Result<std::vector<std::byte>> add_step_state(graph::Graph& graph, const NodeNames& name);

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

}  // namespace rondo::models
