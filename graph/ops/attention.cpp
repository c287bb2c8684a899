// attention: query (B, H, Q, D), key (B, G, S, D), value (B, G, S, E), query_offset? i32 (B), lengths? i32 (B), of all of which B
// may be 1 for the query's, mask? f32 or
// i32 (boolean) that broadcasts to (B, H, Q, S), alibi_slopes? (H), relative_bias? (buckets, H), relative_key? (2 R + 1, D),
// relative_value? (2 R + 1, E), sinks? (H) -> (B, H, Q, E), stored as (B, Q, H, E) so that heads join without a copy.
// Key and value have one type, f32, f16 or q8_0; the output has the query's. Query head h uses KV head h / (H / G). Key j is at
// position j, query i at query_offset + i.
// Dao 2023 (FlashAttention-2) for the partitioning, Milakov and Gimelshein 2018 for the online softmax.
#include <algorithm>
#include <bit>

#include "attention_combine.params.h"
#include "graph/block_format.h"
#include "graph/kernel_choice.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/attention_inputs.h"
#include "graph/ops/attention_kernels.h"
#include "graph/ops/cache_checks.h"
#include "graph/ops/checks.h"
#include "graph/ops/wide_kernels.h"
#include "graph/tiles.h"
#include "shaders/lib/attention_features.h"
#include "shaders/lib/step_state.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  while (node.inputs.size() < kAttentionFileInputs) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, kAttentionFileInputs));
  RONDO_TRY(check_activation(graph, node.inputs[kQuery], "query", 4, 4));
  if (node.inputs[kKey] == kNone || node.inputs[kValue] == kNone) return refuse("key or value is missing");
  RONDO_TRY(take_attention_inputs(graph, node));
  const Shape q = graph.tensor(node.inputs[kQuery]).shape;
  const TensorId stored = graph.add_tensor("attention", StorageKind::kActivation, graph.tensor(node.inputs[kQuery]).type, {q[0], q[2], q[1], graph.tensor(node.inputs[kValue]).shape[3]});
  if (stored != kNone) node.outputs.push_back(graph.transpose(stored, {0, 2, 1, 3}));
  return {};
}

/// What decides between kernels.
struct AttentionCall {
  const Node& node;
  AttentionAttributes attributes;
  AttentionFeatures features;
  const Tensor &query, &key, &value, &output;
  shaders::AttentionParams push;
  std::uint32_t rows = 0;  ///< of a KV head: its queries, for each of its query heads
  std::uint32_t sequences = 0;
  Activations rounding = Activations::kF32;  ///< of queries, keys, weights and values, as far as kernels round them
  bool rounds = false;  ///< the output is left in bytes as well

  std::uint32_t heads() const { return sequences * push.kv_heads; }
};

/// Rows of a workgroup of "tiled": a power of two, as many as the shared tiles hold (1024 elements) and the rows can use. More than 8 save
/// 2 % of the instructions, and take twice the registers: Intel's compilers then spill, and half as many subgroups fit NVIDIA's.
std::uint32_t tiled_rows(const AttentionCall& call) {
  const std::uint32_t width = std::max((call.push.head_dim + 7) & ~7u, (call.push.value_dim + 1) & ~1u);
  std::uint32_t tile = 1;
  while (tile < 8 && tile < call.rows && 2 * tile * width <= 1024) tile *= 2;
  return tile;
}

/// On a CPU driver a barrier switches between all subgroups of the workgroup: one or two are enough.
std::uint32_t tiled_threads(const runtime::DeviceCaps& caps, const AttentionCall& call) { return is_cpu(caps) ? std::max(tiled_rows(call), 8u) : 64; }

/// Of 8 elements of the output, that a lane of a wide kernel adds up; and parts of 8 columns of a key that it scores in one pass.
std::uint32_t wide_units(const runtime::DeviceCaps& caps, const AttentionCall& call) { return ceil_div(call.push.value_dim, 8 * std::max(caps.min_subgroup_size, 1u)); }
std::uint32_t wide_parts(const AttentionCall& call) { return std::min(4u, call.push.head_dim / 8); }

std::uint32_t fixed_splits(const runtime::DeviceCaps& caps) { return is_cpu(caps) ? 4 : 16; }

/// What the splits of all rows leave for the combination: sums, the maximum and the weight.
std::uint64_t partial_bytes(const AttentionCall& call, std::uint32_t n_splits) {
  return std::uint64_t{4} * call.sequences * call.push.queries * call.push.heads * n_splits * RONDO_PARTIAL_STRIDE(call.push.value_dim);
}

std::string splits_lack(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  const std::uint64_t bytes = partial_bytes(call, fixed_splits(caps));
  return bytes <= caps.max_storage_range_bytes ? "" : fmt::format("a storage buffer of {} bytes for partial results", bytes);
}

/// Keys and values are vectors of 8 elements, and queries of `of_queries`.
bool has_whole_vectors(const AttentionCall& call, std::int64_t of_queries) {
  std::int64_t keys = call.query.shape[3] | call.value.shape[3] | call.key.offset_elements | call.value.offset_elements, queries = call.query.offset_elements;
  for (std::size_t axis = 0; axis < 3; ++axis) keys |= call.key.strides[axis] | call.value.strides[axis], queries |= call.query.strides[axis];
  return keys % 8 == 0 && queries % of_queries == 0;
}

std::string wide_lacks(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  if (const char* missing = wide_kernel_needs(caps, call.query.type)) return missing;
  const AttentionAttributes& attributes = call.attributes;
  const bool looks_back_only = attributes.window_back >= 0 && attributes.window_ahead < 0 && attributes.prefix == 0 && attributes.chunk == 0;
  const std::uint32_t there = RONDO_ATTENTION_SOFTCAP | RONDO_ATTENTION_RING | (looks_back_only ? RONDO_ATTENTION_RANGES : 0);
  if ((call.features.bits & ~there) != 0) return "scores without mask, bias and the like, and no ranges but windows that end at the query";
  return has_whole_vectors(call, 8) ? "" : "head widths, strides and offsets that are multiples of 8";
}

std::string wide_split_lacks(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  const std::string lacks = wide_lacks(caps, call);
  return lacks.empty() ? splits_lack(caps, call) : lacks;
}

AttentionTile tile_of(const runtime::DeviceCaps& caps, const AttentionCall& call) { return attention_tile(caps, call.rows, call.push.head_dim, call.push.value_dim); }

std::string subgroup_lacks(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  if (!caps.subgroup_shuffle) return "subgroup shuffles";
  const AttentionTile tile = tile_of(caps, call);
  if (tile.lanes == 0) return "subgroups of a size that can be relied on";
  const std::uint32_t shared_bytes = attention_shared_bytes(tile, call.push.value_dim);
  if (shared_bytes > caps.max_shared_bytes) return fmt::format("{} bytes of shared memory", shared_bytes);
  return has_whole_vectors(call, 4) ? "" : "head widths, strides and offsets that are multiples of 8, of queries of 4";
}

std::string half_subgroup_lacks(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  if (call.rounding == Activations::kF32) return "activations that may be rounded";
  if (!caps.half_dot) return "dot products of f16 with sums in f32";
  if (call.key.type != Type::kF16) return "keys and values in f16";
  if (call.query.type != Type::kF32) return "queries in f32";
  if ((call.features.bits & RONDO_ATTENTION_RELATIVE_KEY) != 0) return "scores without relative keys";
  return subgroup_lacks(caps, call);
}

/// Splits of "subgroup" and "half_subgroup": as many as fill the device, and have keys and room for what they leave.
std::uint32_t subgroup_splits(const runtime::DeviceCaps& caps, const AttentionCall& call, const AttentionTile& tile) {
  const std::uint32_t workgroups = call.heads() * ceil_div(call.rows, tile.rows), rounds = ceil_div(call.push.keys, tile.keys * (tile.lanes / tile.cluster));
  if (rounds <= 2 * tile.subgroups) return 1;
  std::uint32_t splits = std::min({ceil_div(workgroups_to_fill(caps), workgroups), rounds, RONDO_MAX_SPLITS});
  while (splits > 1 && partial_bytes(call, splits) > caps.max_storage_range_bytes) splits /= 2;
  return splits;
}

/// Whether their last workgroup to end joins what all have left. Partials then have the binding of sinks and slopes.
bool subgroup_joins(const Lowering& lowering, const AttentionCall& call, const AttentionTile& tile) {
  const bool tables = (call.features.bits & RONDO_ATTENTION_TABLES) != 0;
  const bool has_binding = tables || (call.node.inputs[kSinks] == kNone && call.node.inputs[kSlopes] == kNone);
  const bool in_pieces = !lowering.graph().storage_of(call.node.inputs[kKey]).pieces.empty();
  const std::uint32_t join_bytes = 4 * (3 * tile.rows * RONDO_MAX_SPLITS + 1);  // what each split of a row counts, and how many workgroups came before
  const bool has_room = attention_shared_bytes(tile, call.push.value_dim) + join_bytes <= lowering.caps().max_shared_bytes;
  return lowering.caps().device_scope && has_binding && !in_pieces && has_room && ceil_div(call.rows, tile.rows) * call.push.kv_heads <= RONDO_STATE_MAX_ARRIVED;
}

MatrixTile matrix_tile_of(const runtime::DeviceCaps& caps, const AttentionCall& call) { return attention_matrix_tile(caps, call.rows, call.heads(), call.push.head_dim, call.push.value_dim); }

std::string matrix_lacks(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  if (call.rounding == Activations::kF32) return "activations that may be rounded";
  if (caps.matrices.empty()) return "cooperative matrices of f16";
  if (!caps.subgroup_shuffle) return "subgroup shuffles";
  if ((call.features.bits & (RONDO_ATTENTION_RELATIVE_KEY | RONDO_ATTENTION_RELATIVE_VALUE)) != 0) return "scores without relative keys and values";
  if (matrix_tile_of(caps, call).lanes == 0) return "cooperative matrices, subgroups and shared memory of sizes that fit";
  return has_whole_vectors(call, 1) ? "" : "head widths, strides and offsets of keys and values that are multiples of 8";
}

RegisterTile register_tile_of(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  return attention_register_tile(caps, call.push.value_dim, call.value.type == Type::kQ8_0, (call.features.bits & RONDO_ATTENTION_RELATIVE_KEY) != 0);
}

std::string registers_lack(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  if (register_tile_of(caps, call).threads == 0) return "invocations, subgroups and shared memory for its tiles";
  return has_whole_vectors(call, 4) ? "" : "head widths, strides and offsets that are multiples of 8, of queries of 4";
}

/// Splits of "matrix" and "registers", where tiles leave half of the cores idle.
template <typename Tile>
std::uint32_t tile_splits(const runtime::DeviceCaps& caps, const AttentionCall& call, const Tile& tile) {
  const std::uint32_t workgroups = call.heads() * ceil_div(call.rows, tile.rows()) * tile.parts;
  std::uint32_t splits = std::clamp(workgroups_to_fill(caps) / 2 / workgroups, 1u, ceil_div(call.push.keys, 2 * kBlockKeys));
  while (splits > 1 && partial_bytes(call, splits) > caps.max_storage_range_bytes) splits /= 2;
  return splits;
}

/// Whether "matrix" would leave cores idle, for which keys are not split: of two parts one may do its rows in f32, and what a split's sums are scaled by would differ
/// between them.
bool parts_lack_splits(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  const MatrixTile tile = matrix_tile_of(caps, call);
  return tile.parts > 1 && tile_splits(caps, call, tile) > 1;
}

/// What all do where `parts` workgroups share a row's values, and each scores all keys, for what one would.
double work_of_parts(const AttentionCall& call, std::uint32_t parts) {
  return (1.0 * parts * call.push.head_dim + call.push.value_dim) / (call.push.head_dim + call.push.value_dim);
}

// Upper bounds of an invocation's iterations, over all keys.

/// With all rows in f32 behind them.
std::uint64_t matrix_iterations(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  const MatrixTile tile = matrix_tile_of(caps, call);
  return ceil_div(call.push.keys, kBlockKeys) * (140 + tile.rows() * std::uint64_t{kBlockKeys / 2 + ceil_div(call.push.head_dim, 8)}) + 1000;
}

/// With values that are not finite in all blocks, and relative keys and values that differ in all.
std::uint64_t register_iterations(const runtime::DeviceCaps&, const AttentionCall& call) {
  const bool relative = (call.features.bits & (RONDO_ATTENTION_RELATIVE_KEY | RONDO_ATTENTION_RELATIVE_VALUE)) != 0;
  return ceil_div(call.push.keys, kBlockKeys) * std::uint64_t{40 + ceil_div(call.push.head_dim, 32) * (relative ? 7 : 1) + (relative ? 210 : 70) * ceil_div(call.push.value_dim, 64)} + 1000;
}

std::uint64_t tiled_iterations(const runtime::DeviceCaps& caps, const AttentionCall& call, std::uint32_t n_splits) {
  const std::uint32_t tile = tiled_rows(call), threads = tiled_threads(caps, call);
  const std::uint64_t blocks = ceil_div(ceil_div(call.push.keys, 64), n_splits);
  const std::uint32_t relative = call.features.bits & RONDO_ATTENTION_RELATIVE_KEY ? tile * call.push.head_dim : 0;
  const std::uint64_t score = ceil_div(64, threads) * std::uint64_t{ceil_div(call.push.head_dim, 8) * 5 + 3 * tile + relative};
  const std::uint64_t values = ceil_div(tile * ceil_div(call.push.value_dim, 2), threads) * std::uint64_t{17};
  return blocks * (score + values + 2 * threads + 2);
}

std::uint64_t wide_iterations(const runtime::DeviceCaps& caps, const AttentionCall& call, std::uint32_t n_splits) {
  const std::uint64_t blocks = ceil_div(ceil_div(call.push.keys, 4 * caps.min_subgroup_size), n_splits);
  return blocks * (5 + ceil_div(call.push.head_dim, 8 * std::max(wide_parts(call), 1u)));
}

std::uint64_t subgroup_iterations(const runtime::DeviceCaps& caps, const AttentionCall& call) {
  const AttentionTile tile = tile_of(caps, call);
  const std::uint64_t rounds = ceil_div(call.push.keys, tile.keys * (tile.lanes / tile.cluster) * tile.subgroups * subgroup_splits(caps, call, tile));
  const std::uint64_t eights = ceil_div(call.push.head_dim, 8 * tile.cluster) + ceil_div(call.push.value_dim, 8 * tile.cluster);
  return rounds * (40 + 16 * std::uint64_t{tile.rows} * tile.keys * eights) + 200;  // were no loop unrolled
}

/// Invocations of a workgroup that joins partials: for so many elements, each shared by some.
struct CombineTile {
  std::uint32_t elements, shares;
  std::uint32_t taken;  ///< splits that one of them takes at most; the same for many depths, so that a self-test's is the step's
};

CombineTile combine_tile(const runtime::DeviceCaps& caps, std::uint32_t n_splits, std::uint32_t value_dim) {
  const std::uint32_t elements = std::clamp(std::bit_ceil(value_dim), 16u, 64u);
  const std::uint32_t most = std::clamp(std::min(caps.max_invocations, 256u) / elements, 1u, 16u);
  std::uint32_t shares = 1;
  while (!is_cpu(caps) && shares * 4 <= n_splits && 2 * shares <= most) shares *= 2;
  if (elements * shares < n_splits || shares == 1) return {elements, 1, 1};
  return {elements, shares, 2 * shares <= most ? 4 : ceil_div(std::max(n_splits, 64u), shares)};
}

/// Emits one dispatch for each piece of the heads: what differs between kernels is theirs. With `joins` they join what splits leave themselves.
template <typename Dispatch>
Status emit_pieces(Lowering& lowering, const AttentionCall& call, std::uint32_t n_splits, const Dispatch& dispatch, bool joins = false) {
  const bool tables = (call.features.bits & RONDO_ATTENTION_TABLES) != 0;
  shaders::AttentionParams push = call.push;
  push.n_splits = n_splits;
  RONDO_ASSIGN(const std::vector<StoragePiece> pieces, lowering.cache_pieces(call.node.inputs[kKey]));
  RONDO_ASSIGN(const std::vector<StoragePiece> value_pieces, lowering.cache_pieces(call.node.inputs[kValue]));
  if (!pieces_agree(pieces, value_pieces)) return Status(StatusCode::kUnsupported, "key and value are in different pieces");
  const StorageId partials = n_splits > 1 ? lowering.scratch(partial_bytes(call, n_splits), "attention partials") : kNone;
  const StorageId target = n_splits > 1 && !joins ? partials : call.output.storage;
  // Eight buffers at most, the step's state among them: with tables, these take the place of the offsets, and the mask that of the
  // lengths.
  const StorageId offsets = tables ? gather_attention_tables(call.node, lowering) : lowering.read_only(call.node.inputs[kOffset]);
  const StorageId lengths = lowering.read_only(call.node.inputs[tables ? kMask : kLengths]);
  const TensorId of_heads = tables ? kNone : call.node.inputs[call.node.inputs[kSinks] != kNone ? kSinks : kSlopes];
  if (of_heads != kNone) push.of_heads_offset = u32(lowering.tensor(of_heads).offset_elements);
  // What may be written is never the state's place, or validation layers, which look at modules without their constants, see it written.
  const Lowering::Argument last = joins ? Lowering::Argument{partials, runtime::Access::kReadWrite} : of_heads != kNone ? Lowering::Argument{lowering.read_only(of_heads), runtime::Access::kRead} : Lowering::Argument{target, runtime::Access::kWrite};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    push.kv_heads = u32(pieces[i].count);
    push.first_head = u32(pieces[i].first) * push.group;
    push.query_offset = u32(call.query.offset_elements + push.first_head * call.query.strides[1]);
    // Typical rather than largest cost: half the context. Cuts need an order of magnitude only.
    const double keys_read = 0.5 * push.keys * push.kv_heads * (push.head_dim * cache_element_bytes(call.key) + push.value_dim * cache_element_bytes(call.value));
    const double flops = 0.5 * 2.0 * push.queries * push.kv_heads * push.group * push.keys * (push.head_dim + push.value_dim);
    dispatch({{call.query.storage, runtime::Access::kRead},
              {call.key.storage, runtime::Access::kRead, i},
              {call.value.storage, runtime::Access::kRead, i},
              {offsets, runtime::Access::kRead},
              {lengths, runtime::Access::kRead},
              {target, runtime::Access::kWrite},
              last},
             push, runtime::Cost{call.sequences * keys_read, call.sequences * flops});
  }
  if (n_splits == 1 || joins) return {};

  // CPU drivers have few splits, and switch between invocations at every barrier.
  const CombineTile tile = combine_tile(lowering.caps(), n_splits, push.value_dim);
  lowering.dispatch("attention combine", lowering.module_for(runtime::Shader::attention_combine, call.query.type), {tile.elements * tile.shares, tile.shares, tile.taken, call.rounds},
                    {{target, runtime::Access::kRead}, {call.output.storage, runtime::Access::kWrite}}, shaders::AttentionCombineParams{push.queries, push.heads, push.value_dim, n_splits},
                    {ceil_div(push.value_dim, tile.elements), call.sequences * push.queries * push.heads, 1}, {static_cast<double>(partial_bytes(call, n_splits)), 0});
  return {};
}

using Arguments = std::initializer_list<Lowering::Argument>;

Status emit_tiled(Lowering& lowering, const AttentionCall& call, const std::string& label, std::uint32_t n_splits) {
  const std::uint32_t tile = tiled_rows(call), threads = tiled_threads(lowering.caps(), call);
  const AttentionFeatures& features = call.features;
  return emit_pieces(lowering, call, n_splits, [&](Arguments arguments, const shaders::AttentionParams& push, runtime::Cost cost) {
    cost.loops = {{{8 * tile}, {8}}};  // scores, values
    lowering.dispatch(label, lowering.module_for(runtime::Shader::attention, call.query.type), {threads, cache_type_constant(call.key), tile, n_splits > 1 ? 1u : 0u, features.bits, features.radii, features.buckets, push.group}, arguments, push,
                      {ceil_div(call.rows, tile), call.sequences * push.kv_heads, n_splits}, cost);
  });
}

Status emit_wide(Lowering& lowering, const AttentionCall& call, const std::string& label, std::uint32_t n_splits) {
  const std::uint32_t units = wide_units(lowering.caps(), call), tile = std::min(call.rows, std::clamp(16 / units, 1u, 8u));
  return emit_pieces(lowering, call, n_splits, [&](Arguments arguments, const shaders::AttentionParams& push, runtime::Cost cost) {
    lowering.dispatch(label, runtime::Shader::attention_wide, {lowering.caps().min_subgroup_size, cache_type_constant(call.key), tile, n_splits > 1 ? 1u : 0u, wide_parts(call), units, call.features.bits, push.group}, arguments, push,
                      {ceil_div(call.rows, tile), call.sequences * push.kv_heads, n_splits}, cost);
  });
}

Status emit_subgroup(Lowering& lowering, const AttentionCall& call, const std::string& label, runtime::Shader shader) {
  const AttentionTile tile = tile_of(lowering.caps(), call);
  const std::uint32_t n_splits = subgroup_splits(lowering.caps(), call, tile);
  const bool joins = n_splits > 1 && subgroup_joins(lowering, call, tile);
  AttentionFeatures features = call.features;
  if (call.push.queries > 1 || (features.bits & RONDO_ATTENTION_MASK_HEADS) != 0) features.bits |= RONDO_ATTENTION_ROWS_DIFFER;
  const std::uint32_t eights = ceil_div(call.push.head_dim, 8 * tile.cluster) + ceil_div(call.push.value_dim, 8 * tile.cluster);
  return emit_pieces(lowering, call, n_splits, [&](Arguments arguments, const shaders::AttentionParams& push, runtime::Cost cost) {
    cost.loops[0] = {tile.rows * tile.keys * 8 * eights};
    lowering.dispatch(label, {lowering.module_for(shader, call.query.type), tile.lanes},
                      {tile.lanes * tile.subgroups, cache_type_constant(call.key), tile.lanes, tile.cluster, tile.rows, tile.keys, n_splits > 1 ? 1u : 0u, features.bits, features.radii, features.buckets, push.head_dim, push.value_dim, call.rounds && (n_splits == 1 || joins), !tile.shuffles, joins, push.group}, arguments, push,
                      {ceil_div(call.rows, tile.rows), call.sequences * push.kv_heads, n_splits}, cost, runtime::Access::kReadWrite);
  }, joins);
}

Status emit_matrix(Lowering& lowering, const AttentionCall& call, const std::string& label) {
  const MatrixTile tile = matrix_tile_of(lowering.caps(), call);
  const std::uint32_t n_splits = tile.parts == 1 ? tile_splits(lowering.caps(), call, tile) : 1;
  return emit_pieces(lowering, call, n_splits, [&](Arguments arguments, const shaders::AttentionParams& push, runtime::Cost cost) {
    cost.flops *= work_of_parts(call, tile.parts);
    cost.shared_bytes = cost.flops / 2 * tile.attention_shared_traffic(push.head_dim, ceil_div(push.value_dim, tile.parts));
    const std::uint32_t of_column = tile.rows() * tile.outputs / tile.threads, of_block = of_column * (push.head_dim + ceil_div(push.value_dim, tile.parts));
    if (push.head_dim <= 2 * kBlockColumns) cost.loops[0] = {of_block};
    else cost.loops[0] = {of_column * kBlockColumns, of_block, ceil_div(push.head_dim, kBlockColumns)};
    lowering.dispatch(label, {lowering.module_for(runtime::Shader::attention_matrix, call.query.type), tile.lanes},
                      {tile.threads, cache_type_constant(call.key), tile.lanes, tile.row_matrices, tile.output_matrices, tile.row_subgroups, n_splits > 1 ? 1u : 0u, call.features.bits, call.features.buckets, push.head_dim, push.value_dim, tile.shape.rows, tile.shape.columns, tile.shape.depth, tile.columns_in_lanes, tile.parts, push.group},
                      arguments, push, {ceil_div(call.rows, tile.rows()) * tile.parts, call.sequences * push.kv_heads, n_splits}, cost);
  });
}

Status emit_registers(Lowering& lowering, const AttentionCall& call, const std::string& label) {
  const RegisterTile tile = register_tile_of(lowering.caps(), call);
  const std::uint32_t n_splits = tile_splits(lowering.caps(), call, tile);
  return emit_pieces(lowering, call, n_splits, [&](Arguments arguments, const shaders::AttentionParams& push, runtime::Cost cost) {
    cost.flops *= work_of_parts(call, tile.parts);
    cost.loops.fill({16 * tile.rows_of_invocation * tile.unrolled, 128 * tile.rows_of_invocation});  // scores of 32 columns, values of 32 rows
    lowering.dispatch(label, {lowering.module_for(runtime::Shader::attention_registers, call.query.type), tile.lanes},
                      {tile.threads, cache_type_constant(call.key), n_splits > 1 ? 1u : 0u, call.features.bits, call.features.buckets, push.head_dim, push.value_dim, tile.rows_of_invocation, tile.unrolled, tile.parts, call.features.radii, push.group}, arguments, push,
                      {ceil_div(call.rows, tile.rows()) * tile.parts, call.sequences * push.kv_heads, n_splits}, cost);
  });
}

using AttentionEntry = KernelEntry<AttentionCall, Status (*)(Lowering&, const AttentionCall&, const std::string&)>;

/// Few queries: their keys are split, so that a device has enough to do. Otherwise rows alone fill it.
bool has_few(const AttentionCall& call) { return call.push.queries <= 2; }

constexpr const char* kKernels[] = {"tiled", "split", "wide", "wide_split", "subgroup", "matrix", "registers", "half_subgroup"};
/// On CPU drivers the wide ones where they can; on others half_subgroup or subgroup for few rows, and for many matrix units where there are any, or else registers.
constexpr AttentionEntry kTable[] = {
    {kKernels[0], [](const runtime::DeviceCaps&, const AttentionCall&) { return std::string(); },
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return tiled_iterations(caps, call, 1); },
     [](const runtime::DeviceCaps&, const AttentionCall& call) { return has_few(call) ? 1 : 2; },
     [](Lowering& lowering, const AttentionCall& call, const std::string& label) { return emit_tiled(lowering, call, label, 1); }},
    {kKernels[1], splits_lack,
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return tiled_iterations(caps, call, fixed_splits(caps)); },
     [](const runtime::DeviceCaps&, const AttentionCall& call) { return has_few(call) ? 2 : 1; },
     [](Lowering& lowering, const AttentionCall& call, const std::string& label) { return emit_tiled(lowering, call, label, fixed_splits(lowering.caps())); }},
    {kKernels[2], wide_lacks,
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return wide_iterations(caps, call, 1); },
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return !is_cpu(caps) ? -1 : has_few(call) ? 3 : 4; },
     [](Lowering& lowering, const AttentionCall& call, const std::string& label) { return emit_wide(lowering, call, label, 1); }},
    {kKernels[3], wide_split_lacks,
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return wide_iterations(caps, call, fixed_splits(caps)); },
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return !is_cpu(caps) ? -1 : has_few(call) ? 4 : 3; },
     [](Lowering& lowering, const AttentionCall& call, const std::string& label) { return emit_wide(lowering, call, label, fixed_splits(lowering.caps())); }},
    {kKernels[4], subgroup_lacks, subgroup_iterations,
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return !is_cpu(caps) && call.push.queries <= kMostSubgroupQueries && tile_of(caps, call).fits ? 4 : 0; },
     [](Lowering& lowering, const AttentionCall& call, const std::string& label) { return emit_subgroup(lowering, call, label, runtime::Shader::attention_subgroup); }},
    {kKernels[5], matrix_lacks, matrix_iterations,
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return call.push.queries <= kMostSubgroupQueries || (call.rounding == Activations::kAuto && is_cpu(caps)) ? -1 : parts_lack_splits(caps, call) ? 2 : 5; },
     emit_matrix},
    {kKernels[6], registers_lack, register_iterations,
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return is_cpu(caps) ? 0 : call.push.queries <= kMostSubgroupQueries ? 1 : 3; },
     emit_registers},
    {kKernels[7], half_subgroup_lacks, subgroup_iterations,
     [](const runtime::DeviceCaps& caps, const AttentionCall& call) { return !is_cpu(caps) && call.push.queries <= kMostSubgroupQueries && tile_of(caps, call).fits ? 5 : 0; },
     [](Lowering& lowering, const AttentionCall& call, const std::string& label) { return emit_subgroup(lowering, call, label, runtime::Shader::attention_half_subgroup); }},
};

AttentionCall call_of(const Node& node, const Lowering& lowering) {
  const Tensor &query = lowering.tensor(node.inputs[kQuery]), &key = lowering.tensor(node.inputs[kKey]), &value = lowering.tensor(node.inputs[kValue]);
  AttentionCall call{node, attributes_of<AttentionAttributes>(node), attention_features(lowering.graph(), node), query, key, value, lowering.tensor(node.outputs[0]), attention_params(node, lowering)};
  call.push.value_dim = u32(value.shape[3]);
  call.push.value_offset = u32(value.offset_elements);
  call.push.value_sequence = sequence_stride(value), call.push.value_head = stride_of(value, 1), call.push.value_row = stride_of(value, 2);
  call.push.kv_heads = u32(key.shape[1]);
  call.rows = call.push.queries * call.push.group;
  call.sequences = u32(query.shape[0]);
  call.rounding = rounds_to_halves(lowering.forced_kernel("attention")) ? Activations::kF16 : lowering.activations();
  call.rounds = lowering.rounds(node.outputs[0]);
  return call;
}

std::string label_of(const AttentionCall& call, const char* kernel) { return fmt::format("attention {} {}", kernel, type_name(call.key.type)); }

/// The kernel, and what it was chosen for.
Result<std::pair<const AttentionEntry*, std::string>> choose(const Lowering& lowering, const AttentionCall& call) {
  // Not by the number of keys, which is the context's: sessions of any context share what was measured.
  KernelChoice choice{"attention", fmt::format("attention {} {} {} x {}, {}/{} heads of {} and {}, features {}", type_name(call.key.type), type_name(call.query.type), call.sequences, call.push.queries, call.push.heads, call.push.kv_heads,
                                               call.push.head_dim, call.push.value_dim, call.features.bits), lowering.forced_kernel("attention")};
  RONDO_ASSIGN(const AttentionEntry* kernel, choose_kernel(lowering, std::span<const AttentionEntry>(kTable), call, choice, [&](const char* name) { return label_of(call, name); }, "; ask for a smaller context"));
  return std::pair(kernel, std::move(choice.key));
}

Status lower(const Node& node, Lowering& lowering) {
  const AttentionCall call = call_of(node, lowering);
  RONDO_ASSIGN(const auto chosen, choose(lowering, call));
  const auto& [kernel, choice] = chosen;
  lowering.set_choice(choice);
  if (call.rounds) lowering.append_rounded(node.outputs[0]);
  return kernel->emit(lowering, call, label_of(call, kernel->name));
}

constexpr NamedInput kNamedInputs[] = {
    {"query"},
    {"key", InputRole::kKeys},
    {"value", InputRole::kKeys},
    {"query_offset", InputRole::kIntegers, kOptional},
    {"lengths", InputRole::kIntegers, kOptional},
    {"mask", InputRole::kMask, kOptional},
    {"alibi_slopes", InputRole::kParameter, kOptional},
    {"relative_bias", InputRole::kParameter, kOptional},
    {"relative_key", InputRole::kParameter, kOptional},
    {"relative_value", InputRole::kParameter, kOptional},
    {"sinks", InputRole::kParameter, kOptional},
};

}  // namespace

bool can_round_attention(const Node& node, const Lowering& lowering) {
  const AttentionCall call = call_of(node, lowering);
  if (call.query.type != Type::kF32 || call.push.value_dim % kRoundedTogether != 0 || call.push.heads * call.push.value_dim % kGroupElements != 0) return false;
  const auto chosen = choose(lowering, call);
  return chosen.ok() && (chosen->first->name == kKernels[4] || chosen->first->name == kKernels[7]);
}

extern const Operator attention_operator = {
    .name = "attention",
    .inputs = kNamedInputs,
    .read_attributes = read_attention_attributes,
    .rows = StepRows::kHeads,
    .accuracy = {ErrorClass::kFunctions, 30, 30},
    .infer = infer,
    .lower = lower,
    .reference = attention_reference,
    .kernels = kKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
