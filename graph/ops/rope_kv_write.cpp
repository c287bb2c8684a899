// rope_kv_write (fused): query (B, H, T, D), key and value (B, G, T, D), all views of one storage with equal strides, or with
// positions of the step's state the value of another, positions, start, the step's count?, key cache, value cache,
// frequency_factors? -> rotated query (B, H, T, D); the caches get the rotated keys and the values at rows
// start .. start + count - 1, in place.
// norm_rope_kv_write (fused): the same after an RMS norm of each head of query and key, with norm_weights (2, D), the query's
// first; positions, which are start, start + 1 and so on, are the rows of the caches.
#include "graph/attribute_reader.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/cache_checks.h"
#include "graph/ops/rope_tables.h"
#include "rope_kv_write.params.h"

namespace rondo::graph {

namespace {

/// Inputs of both operators; kNone where one has none.
struct Call {
  TensorId query = kNone, key = kNone, value = kNone, positions = kNone, start = kNone, count = kNone, key_cache = kNone, value_cache = kNone;
  TensorId weights = kNone, factors = kNone, table = kNone;
  RopeKvWriteAttributes attributes;
};

bool has_norm(const Node& node) { return node.op == Op::norm_rope_kv_write; }

Call call_of(const Node& node) {
  const auto in = [&](std::size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNone; };
  Call call{.query = in(0), .key = in(1), .value = in(2), .positions = in(3), .start = in(4), .count = in(5), .key_cache = in(6), .value_cache = in(7), .factors = in(8), .attributes = attributes_of<RopeKvWriteAttributes>(node)};
  const bool norm = has_norm(node);
  if (norm) call.weights = in(9);
  call.table = in(norm ? 10 : 9);
  return call;
}

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, has_norm(node) ? 10 : 9));
  const Call call = call_of(node);
  for (auto [input, role] : {std::pair{call.query, "query"}, std::pair{call.key, "key"}, std::pair{call.value, "value"}}) {
    RONDO_TRY(check_activation(graph, input, role, 4, 4));
  }
  const Tensor query = graph.tensor(call.query);
  const Tensor& key = graph.tensor(call.key);
  const Tensor& value = graph.tensor(call.value);
  if (!lie_for_rope_kv_write(query, key, value, call.attributes.of_step)) return refuse("query, key and value must be views of one storage with equal strides");
  RONDO_TRY(check_per_sequence(graph, call.start, "start", query.shape[0]));
  if (!is_step_count(graph, call.count)) return refuse("count must be the step's or absent");
  RONDO_TRY(check_cache(graph, call.key_cache, "key cache"));
  RONDO_TRY(check_cache(graph, call.value_cache, "value cache"));
  const Tensor& cache = graph.tensor(call.key_cache);
  const Shape expected = {cache.shape[0], cache.shape[1], query.shape[2], cache.shape[3]};
  RONDO_TRY(check_shape(graph, call.key, "key", expected));
  RONDO_TRY(check_shape(graph, call.value, "value", expected));
  RONDO_TRY(check_shape(graph, call.value_cache, "value cache", cache.shape));
  if (graph.tensor(call.value_cache).type != cache.type) return refuse("key and value caches differ in type");
  if (call.attributes.ring) RONDO_TRY(check_ring(cache.shape, query.shape[2]));
  if (has_norm(node)) {
    RONDO_TRY(check_tensor(graph, call.weights, "norm_weights", Type::kF32, 2, 2));
    RONDO_TRY(check_shape(graph, call.weights, "norm_weights", {2, query.shape[3]}));
    RONDO_TRY(check_contiguous(graph, call.weights, "norm_weights"));
  }
  RONDO_TRY(check_rope(graph, call.attributes.rope, query.shape[3], call.factors));
  RONDO_TRY(check_positions(graph, call.positions, query.shape[0], query.shape[2]));
  node.inputs.push_back(find_or_add_rope_table(graph, call.attributes.rope, query.shape[3], call.factors));
  node.outputs.push_back(graph.add_tensor("rope", StorageKind::kActivation, query.type, query.shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  if (lowering.rotation_to(node.outputs[0])) return {};
  const Call call = call_of(node);
  const bool norm = has_norm(node);
  const Tensor& query = lowering.tensor(call.query);
  const Tensor& cache = lowering.tensor(call.key_cache);
  const Tensor& positions = lowering.tensor(call.positions);
  const RopeTable table = rope_table_of(call.attributes.rope, query.shape[3]);
  shaders::RopeKvWriteParams push{};
  push.rows_per_sequence = u32(query.shape[2]);
  push.head_dim = u32(query.shape[3]);
  push.cache_rows = u32(cache.shape[2]);
  push.cache_row_elements = stride_of(cache, 2);
  push.query_offset = u32(query.offset_elements);
  push.stride_sequence = stride_of(query, 0);
  push.stride_head = stride_of(query, 1);
  push.stride_row = stride_of(query, 2);
  push.positions_stride = positions.shape.rank == 2 ? push.rows_per_sequence : 0;
  push.frequencies = table.frequencies;
  push.high_lines = table.high_lines;
  push.interleaved = call.attributes.rope.style == RopeStyle::kInterleaved;
  push.attention_factor = static_cast<float>(call.attributes.rope.attention_factor);
  push.ring = call.attributes.ring;
  if (norm) {
    push.norm_weights = u32(lowering.tensor(call.weights).offset_elements);
    push.epsilon = static_cast<float>(call.attributes.norm.epsilon);
    push.weight_bias = static_cast<float>(call.attributes.norm.weight_offset);
  }
  const CacheLanes lanes = cache_lanes(cache);
  const Tensor &key = lowering.tensor(call.key), &value = lowering.tensor(call.value);
  const bool of_step = call.attributes.of_step;
  push.value_stride_sequence = stride_of(value, 0);
  push.value_stride_head = stride_of(value, 1);
  push.value_stride_row = stride_of(value, 2);
  const Tensor& value_cache = lowering.tensor(call.value_cache);
  RONDO_ASSIGN(const std::vector<StoragePiece> pieces, lowering.cache_pieces(call.key_cache));
  RONDO_ASSIGN(const std::vector<StoragePiece> value_pieces, lowering.cache_pieces(call.value_cache));
  if (!pieces_agree(pieces, value_pieces)) return Status(StatusCode::kUnsupported, "key and value caches are in different pieces");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    push.heads = i == 0 ? u32(query.shape[1]) : 0;  // the query once
    push.kv_heads = u32(pieces[i].count);
    push.cache_scales = scales_offset(cache, pieces[i]);
    push.key_offset = u32(key.offset_elements + pieces[i].first * key.strides[1]);
    push.value_offset = u32(value.offset_elements + pieces[i].first * value.strides[1]);
    lowering.dispatch(fmt::format("{} {}", operator_of(node.op).name, type_name(cache.type)), lowering.module_for(runtime::Shader::rope_kv_write, query.type), {lanes.width, cache_type_constant(cache), norm ? 1u : 0u, of_step ? 1u : 0u},
                      {{query.storage, runtime::Access::kRead},
                       {of_step ? value.storage : positions.storage, runtime::Access::kRead},
                       {lowering.read_only(norm ? call.weights : of_step ? call.table : call.start), runtime::Access::kRead},
                       {lowering.read_only(call.table), runtime::Access::kRead},
                       {lowering.tensor(node.outputs[0]).storage, runtime::Access::kWrite},
                       {cache.storage, runtime::Access::kWrite, i},
                       {value_cache.storage, runtime::Access::kWrite, i}},
                      push, {lanes.groups, push.rows_per_sequence, u32(query.shape[0]) * (push.heads + 2 * push.kv_heads)},
                      {4 * tensor_bytes(query), 64 * tensor_elements(query)});
  }
  return {};
}

std::vector<Node> decompose(Graph& graph, const Node& node) {
  const std::size_t before = graph.nodes().size();
  Call call = call_of(node);
  if (has_norm(node)) {
    const auto normed = [&](TensorId heads, std::int64_t row) {
      const TensorId weight = graph.reshape(graph.slice(call.weights, 0, row, row + 1), {graph.tensor(heads).shape[3]});
      return graph.transpose(graph.add(Op::rms_norm, {graph.transpose(heads, {0, 2, 1, 3}), weight}, call.attributes.norm), {0, 2, 1, 3});
    };
    call.query = normed(call.query, 0);
    call.key = normed(call.key, 1);
  }
  const KvWriteAttributes ring{call.attributes.ring};
  const TensorId key = graph.add(Op::rope, {call.key, call.positions, call.factors}, call.attributes.rope);
  graph.add(Op::kv_write, {call.key_cache, key, call.start, call.count}, ring);
  graph.add(Op::kv_write, {call.value_cache, call.value, call.start, call.count}, ring);
  graph.add(Op::rope, {call.query, call.positions, call.factors}, call.attributes.rope);
  return take_nodes_from(graph, before, node);
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  RopeKvWriteAttributes attributes;
  attributes.rope = std::get<RopeAttributes>(read_rope_attributes(reader));
  reader.read("ring", attributes.ring);
  reader.read("of_step", attributes.of_step);
  return attributes;
}

Attributes read_norm_attributes(AttributeReader& reader) {
  RopeKvWriteAttributes attributes = std::get<RopeKvWriteAttributes>(read_attributes(reader));
  reader.read("epsilon", attributes.norm.epsilon);
  reader.read("weight_offset", attributes.norm.weight_offset);
  return attributes;
}

constexpr NamedInput kNamedInputs[] = {
    {"query"},
    {"key"},
    {"value"},
    {"positions", InputRole::kIntegers},
    {"start", InputRole::kIntegers},
    {"count", InputRole::kIntegers, kOptional},
    {.name = "key_cache", .role = InputRole::kCache, .written = true},
    {.name = "value_cache", .role = InputRole::kCache, .written = true},
    {"frequency_factors", InputRole::kConstant, kOptional},
    {"norm_weights", InputRole::kParameter},  // the last: rope_kv_write has none
};

}  // namespace

bool lie_for_rope_kv_write(const Tensor& query, const Tensor& key, const Tensor& value, bool of_step) {
  if (query.storage != key.storage || !strides_agree(query, key) || query.strides[3] != 1) return false;
  if (value.storage != query.storage) return of_step && value.type == query.type && value.strides[3] == 1;
  return strides_agree(query, value) && strides_agree(key, value);
}

extern const Operator rope_kv_write_operator = {
    .name = "rope_kv_write",
    .reserved = "is made by fusion of rope and kv_write",
    .inputs = std::span(kNamedInputs).first(9),
    .read_attributes = read_attributes,
    .rows = StepRows::kHeads,
    .accuracy = {ErrorClass::kSums, 3e4f},
    .infer = infer,
    .lower = lower,
    .decompose = decompose,
    .kernels = kKernels,
    .kernels_have_types = true,
};

extern const Operator norm_rope_kv_write_operator = {
    .name = "norm_rope_kv_write",
    .reserved = "is made by fusion of rms_norm, rope and kv_write",
    .inputs = kNamedInputs,
    .read_attributes = read_norm_attributes,
    .rows = StepRows::kHeads,
    .accuracy = {ErrorClass::kSums, 3e4f},
    .infer = infer,
    .lower = lower,
    .decompose = decompose,
    .kernels = kKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
