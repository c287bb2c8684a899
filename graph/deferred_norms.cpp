// Which RMS norms need no dispatch: those between linears that compute them (shaders/lib/linear_norm.glsl).
#include <algorithm>

#include "graph/lowering.h"
#include "graph/ops/linear_kernels.h"

namespace rondo::graph {

DeferredNorm* Lowering::norm_after(TensorId tensor) {
  const auto found = std::find_if(deferred_.begin(), deferred_.end(), [&](const auto& norm) { return norm.input == tensor; });
  return found == deferred_.end() ? nullptr : &*found;
}

const DeferredNorm* Lowering::norm_before(TensorId tensor) const {
  const auto found = std::find_if(deferred_.begin(), deferred_.end(), [&](const auto& norm) { return norm.output == tensor; });
  return found == deferred_.end() ? nullptr : &*found;
}

void Lowering::defer_norms() {
  // Self-tests have a norm between the linear that they test and one of f32: where that one is wrong, none was seen to be right.
  if (!forced_kernel("rms_norm").empty() || is_quarantined("linear subgroup f32")) return;
  for (const Node& norm : graph_.nodes()) {
    if (norm.op != Op::rms_norm || norm.inputs[1] == kNone || norm.inputs[2] != kNone) continue;
    // The linear before reads the gains: they must be there by then.
    const StorageKind gains = graph_.storage_of(norm.inputs[1]).kind;
    if (gains != StorageKind::kWeight && gains != StorageKind::kConstant && gains != StorageKind::kInput) continue;
    const TensorId input = norm.inputs[0], output = norm.outputs[0];
    const auto made = std::find_if(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node& node) { return !node.outputs.empty() && node.outputs[0] == input; });
    if (made == graph_.nodes().end() || !can_make_norm(*made, *this) || norm_after(input)) continue;
    // All that reads the products knows them for what they are.
    bool all = graph_.storage_of(output).kind == StorageKind::kActivation;
    for (const Node& node : graph_.nodes()) {
      for (std::size_t i = 0; i < node.inputs.size() && all; ++i) {
        if (node.inputs[i] == kNone || tensor(node.inputs[i]).storage != tensor(output).storage) continue;
        all = i == 0 && node.inputs[0] == output && can_take_norm(node, *this);
      }
    }
    if (!all) continue;
    const auto attributes = attributes_of<RmsNormAttributes>(norm);
    deferred_.push_back({input, output, norm.inputs[1], static_cast<float>(attributes.epsilon), static_cast<float>(attributes.weight_offset)});
  }
}

std::vector<DeferredNorm> find_deferred_norms(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options) {
  Lowering trial(graph, caps, options);
  trial.defer_norms();
  return std::move(trial.deferred_);
}

}  // namespace rondo::graph
