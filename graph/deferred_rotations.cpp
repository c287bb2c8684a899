// Which rope_kv_write need no dispatch: those behind a linear of few rows that does what they do (shaders/lib/linear_rotation.glsl).
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
  // Nothing in between may look at the caches, or change them.
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Node &linear = nodes[i - 1], &rotation = nodes[i];
    if (linear.op != Op::linear || rotation.op != Op::rope_kv_write || graph_.storage_of(linear.outputs[0]).kind != StorageKind::kActivation) continue;
    const StorageId made = tensor(linear.outputs[0]).storage;
    std::ptrdiff_t n_readers = 0;
    for (const Node& node : nodes) n_readers += std::count_if(node.inputs.begin(), node.inputs.end(), [&](TensorId id) { return id != kNone && tensor(id).storage == made; });
    const auto is_made = [&](TensorId id) { return tensor(id).storage == made; };
    if (n_readers != 3 || !std::all_of(rotation.inputs.begin(), rotation.inputs.begin() + 3, is_made) || !can_rotate(linear, rotation, *this)) continue;
    rotations_.push_back({linear.outputs[0], rotation});
  }
}

std::vector<DeferredRotation> find_deferred_rotations(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options) {
  Lowering trial(graph, caps, options);
  trial.defer_norms();
  trial.defer_rotations();
  return std::move(trial.rotations_);
}

}  // namespace rondo::graph
