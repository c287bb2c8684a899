#include "models/formats/graph_checks.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "graph/operator.h"
#include "models/printable.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

using graph::Op;

// As many as any device takes workgroups in one dimension.
constexpr std::int64_t kMaxSequences = 65'535;
// Positions are added to windows and chunks in 32 bits.
constexpr std::int64_t kMaxPosition = 1 << 29;

Status invalid(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

std::int32_t value_at(std::span<const std::byte> bytes, std::size_t element) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + element * 4, 4);
  return value;
}

Status check_range(const IntegerCheck::Range& range, const StorageBytes& contents) {
  const auto bytes = contents.find(range.tensor.storage);
  if (bytes == contents.end()) return {};
  return for_each_element(range.tensor, [&](std::size_t element) -> Status {
    const std::int32_t value = value_at(bytes->second, element);
    if (value >= range.least && value <= range.most) return {};
    return invalid(fmt::format("input '{}' ({}) holds {}, outside [{}, {}]", range.role, printable(range.tensor.name), value, range.least, range.most));
  });
}

Status check_rows(const IntegerCheck::Rows& rows, const StorageBytes& contents) {
  const auto value_of = [&](const std::optional<graph::Tensor>& tensor, std::int64_t sequence) -> std::optional<std::int64_t> {
    if (!tensor) return rows.update_rows;
    const auto bytes = contents.find(tensor->storage);
    if (bytes == contents.end()) return std::nullopt;
    return value_at(bytes->second, static_cast<std::size_t>(tensor->offset_elements + sequence * (tensor->shape.n_elements() == 1 ? 0 : tensor->strides[0])));
  };
  for (std::int64_t b = 0; b < rows.sequences; ++b) {
    const auto start = value_of(rows.start, b), count = value_of(rows.count, b);
    if (!start || !count || *start + *count <= rows.cache_rows) continue;
    return invalid(fmt::format("writes rows {} to {} of sequence {}, but the cache has {}", *start, *start + *count - 1, b, rows.cache_rows));
  }
  return {};
}

}  // namespace

std::vector<IntegerCheck> integer_checks(const graph::Graph& graph, const NodeNames& name) {
  std::vector<IntegerCheck> checks;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const graph::Node& node = graph.nodes()[i];
    IntegerCheck check;
    const auto tensor = [&](std::size_t input) { return node.inputs.size() <= input || node.inputs[input] == graph::kNone ? nullptr : &graph.tensor(node.inputs[input]); };
    const auto add = [&](std::size_t input, const char* role, std::int64_t least, std::int64_t most) {
      if (tensor(input)) check.ranges.push_back({*tensor(input), role, least, most});
    };
    if (node.op == Op::embedding) add(0, "ids", 0, tensor(1)->shape[0] - 1);
    if (node.op == Op::rope) add(1, "positions", 0, graph::attributes_of<graph::RopeAttributes>(node).max_position - 1);
    if (node.op == Op::attention || node.op == Op::attention_weights) {
      const std::size_t offset = node.op == Op::attention ? 3 : 2;
      add(offset, "query_offset", -kMaxPosition, kMaxPosition);
      add(offset + 1, "lengths", 0, tensor(1)->shape[2]);
    }
    if (node.op == Op::kv_write) {
      const graph::Shape &cache = tensor(0)->shape, &update = tensor(1)->shape;
      add(2, "start", 0, cache[2]);
      add(3, "count", 0, update[2]);
      check.rows = {*tensor(2), std::nullopt, cache[0], update[2], cache[2]};
      if (tensor(3)) check.rows->count = *tensor(3);
    }
    if (check.ranges.empty() && !check.rows) continue;
    check.node = name(i);
    checks.push_back(std::move(check));
  }
  return checks;
}

Status check_ranges(const std::vector<IntegerCheck>& checks, const StorageBytes& contents) {
  for (const IntegerCheck& check : checks) {
    for (const IntegerCheck::Range& range : check.ranges) {
      if (Status checked = check_range(range, contents); !checked.ok()) return checked.with_prefix(check.node);
    }
  }
  return {};
}

Status check_integers(const std::vector<IntegerCheck>& checks, const StorageBytes& contents) {
  for (const IntegerCheck& check : checks) {
    Status checked;
    for (const IntegerCheck::Range& range : check.ranges) {
      if (checked.ok()) checked = check_range(range, contents);
    }
    if (checked.ok() && check.rows) checked = check_rows(*check.rows, contents);
    if (!checked.ok()) return checked.with_prefix(check.node);
  }
  return {};
}

Result<std::vector<std::byte>> add_step_state(graph::Graph& graph, const NodeNames& name) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const graph::Node& node = graph.nodes()[i];
    if (node.op != Op::attention && node.op != Op::attention_weights && node.op != Op::rope && node.op != Op::kv_write) continue;
    graph.n_sequences = std::max(graph.n_sequences, graph.tensor(node.inputs[0]).shape[0]);
    if (graph.n_sequences > kMaxSequences) return invalid(fmt::format("{}: has {} sequences, at most {} are there", name(i), graph.n_sequences, kMaxSequences));
  }
  std::vector<std::int32_t> words(static_cast<std::size_t>(graph.n_sequences * RONDO_STATE_WORDS), 0);
  for (std::size_t at = 0; at < words.size(); at += RONDO_STATE_WORDS) {
    words[at + RONDO_STATE_ACTIVE] = 1;
    words[at + RONDO_STATE_COUNT] = 0x7fffffff;
  }
  const graph::TensorId state = graph.add_tensor("step state", graph::StorageKind::kStep, graph::Type::kI32, {graph.n_sequences, RONDO_STATE_WORDS});
  RONDO_TRY(Status(graph.status()));
  graph.state = graph.tensor(state).storage;
  const auto bytes = std::as_bytes(std::span(words));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

}  // namespace rondo::models
