// kv_write: cache (B, G, S, D), update (B, G, T, D), start i32 (B), count? i32 (B): rows start .. start + count - 1 of the
// cache become the update's, converted to the cache's type as graph/cache_layout.h says, to nearest even. In place, no
// output. With `ring` row r is stored at r mod S.
#include "graph/attribute_reader.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/cache_checks.h"
#include "kv_write.params.h"

namespace rondo::graph {

namespace {

enum Input { kCache, kUpdate, kStart, kCount, kInputs };

Status infer(Graph& graph, Node& node) {
  if (node.inputs.size() == 3) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, kInputs));
  RONDO_TRY(check_cache(graph, node.inputs[kCache], "cache"));
  RONDO_TRY(check_activation(graph, node.inputs[kUpdate], "update", 4, 4));
  make_columns_dense(graph, node.inputs[kUpdate]);
  const Shape& cache = graph.tensor(node.inputs[kCache]).shape;
  const Tensor& update = graph.tensor(node.inputs[kUpdate]);
  RONDO_TRY(check_shape(graph, node.inputs[kUpdate], "update", {cache[0], cache[1], update.shape[2], cache[3]}));
  if (attributes_of<KvWriteAttributes>(node).ring) RONDO_TRY(check_ring(cache, update.shape[2]));
  RONDO_TRY(check_per_sequence(graph, node.inputs[kStart], "start", cache[0]));
  return node.inputs[kCount] == kNone ? Status() : check_per_sequence(graph, node.inputs[kCount], "count", cache[0]);
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& cache = lowering.tensor(node.inputs[kCache]);
  const Tensor& update = lowering.tensor(node.inputs[kUpdate]);
  shaders::KvWriteParams push{};
  push.rows_per_sequence = u32(update.shape[2]);
  push.head_dim = u32(cache.shape[3]);
  push.cache_rows = u32(cache.shape[2]);
  push.cache_row_elements = stride_of(cache, 2);
  push.stride_sequence = stride_of(update, 0);
  push.stride_head = stride_of(update, 1);
  push.stride_row = stride_of(update, 2);
  push.has_count = node.inputs[kCount] != kNone;
  push.ring = attributes_of<KvWriteAttributes>(node).ring;
  const CacheLanes lanes = cache_lanes(cache);
  RONDO_ASSIGN(const std::vector<StoragePiece> pieces, lowering.cache_pieces(node.inputs[kCache]));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    push.kv_heads = u32(pieces[i].count);
    push.cache_scales = scales_offset(cache, pieces[i]);
    push.input_offset = u32(update.offset_elements + pieces[i].first * update.strides[1]);
    lowering.dispatch(fmt::format("kv_write {}", type_name(cache.type)), lowering.module_for(runtime::Shader::kv_write, update.type), {lanes.width, cache_type_constant(cache)},
                      {{cache.storage, runtime::Access::kReadWrite, i},
                       {update.storage, runtime::Access::kRead},
                       {lowering.read_only(node.inputs[kStart]), runtime::Access::kRead},
                       {lowering.read_only(node.inputs[kCount]), runtime::Access::kRead}},
                      push, {lanes.groups, push.rows_per_sequence, u32(cache.shape[0]) * push.kv_heads},
                      {2 * tensor_bytes(update), 0});
  }
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  HostView cache = tensors.view(node.inputs[kCache]);
  const HostView update = tensors.view(node.inputs[kUpdate]), start = tensors.view(node.inputs[kStart]);
  std::vector<float> elements(static_cast<std::size_t>(cache.dim(3)));
  for (std::int64_t b = 0; b < cache.dim(0); ++b) {
    const std::int64_t count = node.inputs[kCount] == kNone ? update.dim(2) : tensors.view(node.inputs[kCount]).int_at(b);
    for (std::int64_t t = 0; t < count && t < update.dim(2); ++t) {
      const std::int64_t wanted = start.int_at(b) + t, row = attributes_of<KvWriteAttributes>(node).ring && wanted >= 0 ? wanted % cache.dim(2) : wanted;
      if (row < 0 || row >= cache.dim(2)) continue;
      for (std::int64_t g = 0; g < cache.dim(1); ++g) {
        for (std::int64_t d = 0; d < cache.dim(3); ++d) elements[static_cast<std::size_t>(d)] = update.at(b, g, t, d);
        cache.set_row(elements, b, g, row);
      }
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  KvWriteAttributes attributes;
  reader.read("ring", attributes.ring);
  return attributes;
}

constexpr NamedInput kNamedInputs[] = {
    {.name = "cache", .role = InputRole::kCache, .written = true},
    {"update"},
    {"start", InputRole::kIntegers},
    {"count", InputRole::kIntegers, kOptional},
};

}  // namespace

extern const Operator kv_write_operator = {
    .name = "kv_write",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .rows = StepRows::kSequences,
    .accuracy = {ErrorClass::kExact, 3e4f},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
