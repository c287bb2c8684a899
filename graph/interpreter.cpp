#include "graph/interpreter.h"

#include "graph/operator.h"
#include "runtime/fmt.h"

namespace rondo::graph {

std::vector<std::byte>& HostTensors::bytes(StorageId id) {
  const auto index = static_cast<std::size_t>(id);
  if (bytes_.size() <= index) {
    bytes_.resize(graph_.n_storages());
    filled_.resize(graph_.n_storages(), false);
  }
  if (!filled_[index]) {
    filled_[index] = true;
    const Storage& storage = graph_.storage(id);
    if (storage.kind == StorageKind::kConstant) {
      bytes_[index] = storage.content;
    } else if (storage.kind == StorageKind::kWeight) {
      std::vector<float> values;
      if (Status status = read_weight_(storage, values); !status.ok() && status_.ok()) status_ = std::move(status);
      bytes_[index].resize(values.size() * sizeof(float));
      std::memcpy(bytes_[index].data(), values.data(), bytes_[index].size());
    } else {
      bytes_[index].resize(storage.size_bytes);
    }
  }
  return bytes_[index];
}

void HostTensors::set_bytes(StorageId id, std::vector<std::byte> content) { bytes(id) = std::move(content); }

namespace {

Status run_node(Graph& graph, HostTensors& tensors, const Node& node) {
  const Operator& table = operator_of(node.op);
  if (table.reference) {
    for (TensorId input : node.inputs) {
      if (input != kNone) tensors.bytes(graph.tensor(input).storage);
    }
    RONDO_TRY(tensors.status());
    if (Status status = table.reference(node, tensors); !status.ok()) return status.with_prefix(fmt::format("[{}]", table.name));
    return {};
  }
  for (const Node& simple : table.decompose(graph, node)) RONDO_TRY(run_node(graph, tensors, simple));
  return graph.status();
}

}  // namespace

Status interpret(Graph& graph, HostTensors& tensors) {
  RONDO_TRY(graph.status());
  const std::vector<Node> nodes = graph.nodes();
  for (const Node& node : nodes) RONDO_TRY(run_node(graph, tensors, node));
  return {};
}

}  // namespace rondo::graph
