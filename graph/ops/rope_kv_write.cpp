// rope_kv_write (fused): query (B, H, T, D), key and value (B, G, T, D), all views of one storage with equal strides,
// positions, start, the step's count?, key cache, value cache, frequency_factors? -> rotated query (B, H, T, D); the
// caches get the rotated keys and the values at rows start .. start + count - 1, in place.
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/cache_checks.h"
#include "graph/ops/rope_tables.h"
#include "rope_kv_write.params.h"

namespace rondo::graph {

namespace {

enum Input { kQuery, kKey, kValue, kPositions, kStart, kCount, kKeyCache, kValueCache, kFactors, kTable, kInputs };

Status infer(Graph& graph, Node& node) {
  const auto attributes = attributes_of<RopeAttributes>(node);
  RONDO_TRY(check_input_count(node, kTable));
  for (auto [input, role] : {std::pair{kQuery, "query"}, std::pair{kKey, "key"}, std::pair{kValue, "value"}}) {
    RONDO_TRY(check_activation(graph, node.inputs[input], role, 4, 4));
  }
  const Tensor query = graph.tensor(node.inputs[kQuery]);
  const Tensor& key = graph.tensor(node.inputs[kKey]);
  const Tensor& value = graph.tensor(node.inputs[kValue]);
  if (key.storage != query.storage || value.storage != query.storage || !strides_agree(query, key) || !strides_agree(query, value) ||
      !strides_agree(key, value) || query.strides[3] != 1) {
    return refuse("query, key and value must be views of one storage with equal strides");
  }
  RONDO_TRY(check_per_sequence(graph, node.inputs[kStart], "start", query.shape[0]));
  if (!is_step_count(graph, node.inputs[kCount])) return refuse("count must be the step's or absent");
  RONDO_TRY(check_cache(graph, node.inputs[kKeyCache], "key cache"));
  RONDO_TRY(check_cache(graph, node.inputs[kValueCache], "value cache"));
  const Tensor& cache = graph.tensor(node.inputs[kKeyCache]);
  const Shape expected = {cache.shape[0], cache.shape[1], query.shape[2], cache.shape[3]};
  RONDO_TRY(check_shape(graph, node.inputs[kKey], "key", expected));
  RONDO_TRY(check_shape(graph, node.inputs[kValue], "value", expected));
  RONDO_TRY(check_shape(graph, node.inputs[kValueCache], "value cache", cache.shape));
  if (graph.tensor(node.inputs[kValueCache]).type != cache.type) return refuse("key and value caches differ in type");
  RONDO_TRY(check_rope(graph, attributes, query.shape[3], node.inputs[kFactors]));
  RONDO_TRY(check_positions(graph, node.inputs[kPositions], query.shape[0], query.shape[2]));
  node.inputs.push_back(find_or_add_rope_table(graph, attributes, query.shape[3], node.inputs[kFactors]));
  node.outputs.push_back(graph.add_tensor("rope", StorageKind::kActivation, query.type, query.shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const auto attributes = attributes_of<RopeAttributes>(node);
  const Tensor& query = lowering.tensor(node.inputs[kQuery]);
  const Tensor& cache = lowering.tensor(node.inputs[kKeyCache]);
  const Tensor& positions = lowering.tensor(node.inputs[kPositions]);
  const RopeTable table = rope_table_of(attributes, query.shape[3]);
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
  push.interleaved = attributes.style == RopeStyle::kInterleaved;
  push.attention_factor = static_cast<float>(attributes.attention_factor);
  const CacheLanes lanes = cache_lanes(cache);
  const Tensor &key = lowering.tensor(node.inputs[kKey]), &value = lowering.tensor(node.inputs[kValue]);
  const Tensor& value_cache = lowering.tensor(node.inputs[kValueCache]);
  RONDO_ASSIGN(const std::vector<StoragePiece> pieces, lowering.cache_pieces(node.inputs[kKeyCache]));
  RONDO_ASSIGN(const std::vector<StoragePiece> value_pieces, lowering.cache_pieces(node.inputs[kValueCache]));
  if (!pieces_agree(pieces, value_pieces)) return Status(StatusCode::kUnsupported, "key and value caches are in different pieces");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    push.heads = i == 0 ? u32(query.shape[1]) : 0;  // the query once
    push.kv_heads = u32(pieces[i].count);
    push.cache_scales = scales_offset(cache, pieces[i]);
    push.key_offset = u32(key.offset_elements + pieces[i].first * key.strides[1]);
    push.value_offset = u32(value.offset_elements + pieces[i].first * value.strides[1]);
    lowering.dispatch(fmt::format("rope_kv_write {}", type_name(cache.type)), lowering.module_for(runtime::Shader::rope_kv_write, query.type), {lanes.width, cache_type_constant(cache)},
                      {{query.storage, runtime::Access::kRead},
                       {positions.storage, runtime::Access::kRead},
                       {lowering.read_only(node.inputs[kStart]), runtime::Access::kRead},
                       {lowering.read_only(node.inputs[kTable]), runtime::Access::kRead},
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
  const auto in = [&](Input input) { return node.inputs[input]; };
  const TensorId key = graph.add(Op::rope, {in(kKey), in(kPositions), in(kFactors)}, node.attributes);
  graph.add(Op::kv_write, {in(kKeyCache), key, in(kStart), in(kCount)});
  graph.add(Op::kv_write, {in(kValueCache), in(kValue), in(kStart), in(kCount)});
  graph.add(Op::rope, {in(kQuery), in(kPositions), in(kFactors)}, node.attributes);
  return take_nodes_from(graph, before, node);
}

constexpr const char* kKernels[] = {"baseline"};

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
};

}  // namespace

extern const Operator rope_kv_write_operator = {
    .name = "rope_kv_write",
    .reserved = "is made by fusion of rope and kv_write",
    .inputs = kNamedInputs,
    .read_attributes = read_rope_attributes,
    .rows = StepRows::kHeads,
    .accuracy = {ErrorClass::kSums, 3e4f},
    .infer = infer,
    .lower = lower,
    .decompose = decompose,
    .kernels = kKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
