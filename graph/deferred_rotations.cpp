// Which rope_kv_write need no dispatch: those behind linears of few rows that do what they do (shaders/lib/linear_rotation.glsl): one, or one of queries and keys and one of values.
#include <algorithm>

#include "graph/lowering.h"
#include "graph/ops/linear_kernels.h"

namespace rondo::graph {

const DeferredRotation* Lowering::rotation_after(TensorId tensor) const {
  const auto found = std::find_if(rotations_.begin(), rotations_.end(), [&](const auto& rotation) { return rotation.input == tensor; });
  return found == rotations_.end() ? nullptr : &*found;
}

const DeferredRotation* Lowering::rotation_to(TensorId output) const {
  const auto found = std::find_if(rotations_.begin(), rotations_.end(), [&](const auto& rotation) { return rotation.node.outputs[0] == output; });
  return found == rotations_.end() ? nullptr : &*found;
}

void Lowering::defer_rotations() {
  const std::vector<Node>& nodes = graph_.nodes();
  const auto n_readers = [&](StorageId storage) {
    std::ptrdiff_t n = 0;
    for (const Node& node : nodes) n += std::count_if(node.inputs.begin(), node.inputs.end(), [&](TensorId id) { return id != kNone && tensor(id).storage == storage; });
    return n;
  };
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Node& rotation = nodes[i];
    if (rotation.op != Op::rope_kv_write) continue;
    // Linears right before it: nothing in between may look at the caches, or change them.
    std::vector<TensorId> made;
    std::ptrdiff_t n_made = 0;  // of queries, keys and values
    for (std::size_t first = i; first > 0 && n_made < 3; --first) {
      const Node& linear = nodes[first - 1];
      if (linear.op != Op::linear || graph_.storage_of(linear.outputs[0]).kind != StorageKind::kActivation) break;
      const StorageId storage = tensor(linear.outputs[0]).storage;
      const std::ptrdiff_t n = std::count_if(rotation.inputs.begin(), rotation.inputs.begin() + 3, [&](TensorId id) { return tensor(id).storage == storage; });
      if (n == 0 || n_readers(storage) != n || !can_rotate(linear, rotation, *this)) break;
      made.push_back(linear.outputs[0]);
      n_made += n;
    }
    for (const TensorId output : made) {
      if (n_made == 3) rotations_.push_back({output, rotation});
    }
  }
}

std::vector<DeferredRotation> find_deferred_rotations(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options) {
  Lowering trial(graph, caps, options);
  trial.defer_norms();
  trial.defer_rotations();
  return std::move(trial.rotations_);
}

}  // namespace rondo::graph
