#include "models/reference.h"

#include <cstring>

#include "graph/interpreter.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

Result<std::vector<float>> reference_logits(const Checkpoint& checkpoint, std::span<const std::int32_t> tokens, graph::Type kv_type) {
  const Network& network = checkpoint.network;
  const std::uint32_t n_vocab = network.facts.n_vocab;
  if (tokens.empty()) return Status(StatusCode::kInvalidArgument, "reference: there are no tokens");
  for (std::int32_t id : tokens) {
    if (id >= 0 && id < static_cast<std::int32_t>(n_vocab)) continue;
    return Status(StatusCode::kInvalidArgument, fmt::format("reference: token id {} is outside [0, {})", id, n_vocab));
  }
  const auto n = static_cast<std::int64_t>(tokens.size());
  StepPlaces places;
  places.n_ctx = n;
  places.kv_type = kv_type;
  for (const CacheSpec& spec : network.caches) places.caches.push_back({spec.extent == CacheExtent::kWindow ? n : cache_positions(spec, n, n), {}, {}});  // one step writes all
  graph::Graph step = network.build(Role::kLogits, n, places);
  RONDO_TRY(Status(step.status()));

  graph::HostTensors host(step, [&](const graph::Storage& storage, std::vector<float>& values) -> Status {
    for (const WeightBlock& block : network.blocks) {
      if (block.name != storage.name) continue;
      RONDO_ASSIGN(values, read_values(checkpoint.source, block));
      return {};
    }
    return Status(StatusCode::kInternal, fmt::format("reference: no weight {}", storage.name));
  });
  std::vector<std::int32_t> state(RONDO_STATE_WORDS, 0);
  state[RONDO_STATE_COUNT] = static_cast<std::int32_t>(n);
  state[RONDO_STATE_ACTIVE] = 1;
  std::memcpy(host.bytes(step.state).data(), state.data(), state.size() * 4);
  const graph::Node& begin = step.nodes().front();
  std::memcpy(host.bytes(step.tensor(begin.inputs[0]).storage).data(), tokens.data(), tokens.size_bytes());
  RONDO_TRY(graph::interpret(step, host));

  std::vector<float> logits(tokens.size() * n_vocab);
  for (std::size_t i = 0; i < step.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    if (step.storage(id).kind == graph::StorageKind::kOutput) std::memcpy(logits.data(), host.bytes(id).data(), logits.size() * 4);
  }
  return logits;
}

}  // namespace rondo::models
