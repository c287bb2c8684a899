#include "models/reference.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "graph/interpreter.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

using Contents = std::map<std::string, std::vector<std::byte>, std::less<>>;

template <typename Value>
std::vector<std::byte> bytes_of(std::span<const Value> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

/// The step state of `count` rows.
std::vector<std::byte> state_of(std::int64_t count) {
  std::vector<std::int32_t> state(RONDO_STATE_WORDS, 0);
  state[RONDO_STATE_COUNT] = static_cast<std::int32_t>(count);
  state[RONDO_STATE_ACTIVE] = 1;
  return bytes_of<std::int32_t>(state);
}

/// Runs a step on what its storages hold by their names, and returns what its caches and its output ("output") hold after it.
Result<Contents> run(const Checkpoint& checkpoint, graph::Graph step, const Contents& contents) {
  RONDO_TRY(Status(step.status()));
  graph::HostTensors host(step, [&](const graph::Storage& storage, std::vector<float>& values) -> Status {
    for (const WeightBlock& block : checkpoint.network.blocks) {
      if (block.name != storage.name) continue;
      RONDO_ASSIGN(values, read_values(checkpoint.source, block));
      return {};
    }
    return Status(StatusCode::kInternal, fmt::format("reference: no weight {}", storage.name));
  });
  const auto each_storage = [&](const auto& visit) {
    for (std::size_t i = 0; i < step.n_storages(); ++i) visit(static_cast<graph::StorageId>(i), step.storage(static_cast<graph::StorageId>(i)));
  };
  each_storage([&](graph::StorageId id, const graph::Storage& storage) {
    const auto found = contents.find(storage.name);
    const bool given = storage.kind == graph::StorageKind::kStep || storage.kind == graph::StorageKind::kCache;
    if (given && found != contents.end() && !found->second.empty()) std::memcpy(host.bytes(id).data(), found->second.data(), std::min(host.bytes(id).size(), found->second.size()));
  });
  RONDO_TRY(graph::interpret(step, host));
  Contents after;
  each_storage([&](graph::StorageId id, const graph::Storage& storage) {
    if (storage.kind == graph::StorageKind::kCache) after[storage.name] = host.bytes(id);
    if (storage.kind == graph::StorageKind::kOutput) after["output"] = host.bytes(id);
  });
  return after;
}

std::vector<float> output_of(const Contents& contents) {
  const std::vector<std::byte>& bytes = contents.find("output")->second;
  std::vector<float> values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

Status check_ids(const Network& network, std::span<const std::int32_t> ids) {
  if (ids.empty()) return Status(StatusCode::kInvalidArgument, "reference: there are no tokens");
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= static_cast<std::int32_t>(network.facts.n_vocab)) return Status(StatusCode::kInvalidArgument, fmt::format("reference: token id {} is outside [0, {})", id, network.facts.n_vocab));
  }
  return {};
}

}  // namespace

Result<std::vector<float>> reference_logits(const Checkpoint& checkpoint, std::span<const std::int32_t> tokens, graph::Type kv_type, std::span<const std::int32_t> source) {
  const Network& network = checkpoint.network;
  RONDO_TRY(check_ids(network, tokens));
  const auto n = static_cast<std::int64_t>(tokens.size());
  if (network.positions_end > 0 && n > network.positions_end) return Status(StatusCode::kInvalidArgument, fmt::format("reference: {} tokens are beyond the table of {} positions", n, network.positions_end));
  StepPlaces places;
  places.n_ctx = n;
  places.kv_type = kv_type;
  places.n_source = static_cast<std::int64_t>(source.size());
  for (const CacheSpec& spec : network.caches) places.caches.push_back({spec.extent == CacheExtent::kWindow ? n : cache_positions(spec, n, places.n_source), {}, {}});  // one step writes all
  Contents contents;
  if (network.facts.source_context > 0) {
    RONDO_TRY(check_ids(network, source));
    const Contents encoding = {{"source state", state_of(places.n_source)}, {"source tokens", bytes_of(source)}};
    RONDO_ASSIGN(contents, run(checkpoint, network.build(Role::kEncode, places.n_source, places), encoding));
    const auto length = static_cast<std::int32_t>(source.size());
    contents["source lengths"] = bytes_of(std::span(&length, 1));
  }
  contents["state"] = state_of(n);
  contents["tokens"] = bytes_of(tokens);
  RONDO_ASSIGN(const Contents after, run(checkpoint, network.build(Role::kLogits, n, places), contents));
  return output_of(after);
}

Result<std::vector<float>> reference_encoding(const Checkpoint& checkpoint, Role role, const ReferenceInput& input, Pooling pooling, bool normalize) {
  const Network& network = checkpoint.network;
  const bool images = takes_images(role);
  std::span<const std::int32_t> tokens = input.tokens;
  if (!images) RONDO_TRY(check_ids(network, tokens));
  if (role == Role::kPool) {
    RONDO_ASSIGN(tokens, network.until_end(tokens));
  }
  if (images && input.pixels.size() != network.facts.image.n_values()) return Status(StatusCode::kInvalidArgument, fmt::format("reference: an image has {} numbers instead of {}", input.pixels.size(), network.facts.image.n_values()));
  StepPlaces places;
  places.n_ctx = places.n_source = images ? network.facts.image_rows : static_cast<std::int64_t>(tokens.size());
  places.pooling = pooling;
  places.normalize = normalize;
  const Contents contents = {{"source state", state_of(places.n_ctx)}, {"source tokens", bytes_of(tokens)}, {"source types", bytes_of(input.types)}, {"pixels", bytes_of(input.pixels)}};
  RONDO_ASSIGN(const Contents after, run(checkpoint, network.build(role, places.n_ctx, places), contents));
  return output_of(after);
}

}  // namespace rondo::models
