// The fusion passes. Each looks for one shape of nodes and replaces it; all work on storages, because views share them.
#include <algorithm>
#include <optional>

#include "graph/block_format.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/rope_tables.h"

namespace rondo::graph {

namespace {

/// How many nodes read the storage of `id`.
int count_readers(const Graph& graph, TensorId id) {
  const StorageId storage = graph.tensor(id).storage;
  int readers = 0;
  for (const Node& node : graph.nodes()) {
    for (TensorId input : node.inputs) readers += input != kNone && graph.tensor(input).storage == storage ? 1 : 0;
  }
  return readers;
}

/// The index of the node whose output is exactly tensor `id`, or nothing for a view or an input.
std::optional<std::size_t> find_producer(const Graph& graph, TensorId id) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const std::vector<TensorId>& outputs = graph.nodes()[i].outputs;
    if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) return i;
  }
  return std::nullopt;
}

/// A linear, a sum over experts or a norm of rows that nothing is added to yet, and that no caller reads.
bool takes_residual(const Graph& graph, const Node& node) {
  const Tensor& output = graph.tensor(node.outputs[0]);
  const bool can_add = node.op == Op::linear || node.op == Op::weighted_sum || (node.op == Op::rms_norm && output.shape.rank < 4);
  return can_add && node.inputs[2] == kNone && graph.storage_of(node.outputs[0]).kind != StorageKind::kOutput;
}

/// A linear of these, with nothing but a bias after its sums.
bool is_affine(const Graph& graph, const Node& node) {
  return node.op == Op::linear && takes_residual(graph, node) && attributes_of<LinearAttributes>(node).activation == Activation::kIdentity;
}

/// The same without a bias.
bool is_plain_linear(const Graph& graph, const Node& node) { return is_affine(graph, node) && node.inputs[3] == kNone; }

/// Rows of `b` follow those of `a` in one weight block.
bool weights_adjoin(const Graph& graph, TensorId a_id, TensorId b_id) {
  const Tensor& a = graph.tensor(a_id);
  const Tensor& b = graph.tensor(b_id);
  return a.storage == b.storage && b.offset_elements == a.offset_elements + a.shape[0] * a.shape[1];
}

/// Elements of `b` follow those of `a` in one storage; or neither is there.
bool vectors_adjoin(const Graph& graph, TensorId a_id, TensorId b_id) {
  if (a_id == kNone || b_id == kNone) return a_id == b_id;
  const Tensor& a = graph.tensor(a_id);
  const Tensor& b = graph.tensor(b_id);
  return a.storage == b.storage && a.is_contiguous() && b.is_contiguous() && b.offset_elements == a.offset_elements + a.shape[0];
}

/// Makes every view of `old` (rows of `old_width`) a view of columns [column, column + old_width) of `merged`.
void move_views(Graph& graph, StorageId old, std::int64_t old_width, const Tensor merged, std::int64_t column) {
  const std::int64_t width = merged.shape.last();
  for (std::size_t i = 0; i < graph.n_tensors(); ++i) {
    Tensor& view = graph.tensor(static_cast<TensorId>(i));
    if (view.storage != old) continue;
    view.storage = merged.storage;
    view.offset_elements = view.offset_elements / old_width * width + view.offset_elements % old_width + column;
    for (int axis = 0; axis < view.shape.rank; ++axis) {
      std::int64_t& stride = view.strides[static_cast<std::size_t>(axis)];
      if (stride >= old_width) stride = stride / old_width * width;
    }
  }
}

/// The weight tensor made of the rows of nodes [first, last), which adjoin.
TensorId joined_weight(Graph& graph, std::size_t first, std::size_t last) {
  Tensor weight = graph.tensor(graph.nodes()[first].inputs[1]);
  weight.shape[0] = 0;
  for (std::size_t i = first; i < last; ++i) weight.shape[0] += graph.tensor(graph.nodes()[i].inputs[1]).shape[0];
  return graph.add_view(std::move(weight));
}

/// The bias made of those of nodes [first, last), which adjoin; kNone where they have none.
TensorId joined_bias(Graph& graph, std::size_t first, std::size_t last) {
  if (graph.nodes()[first].inputs[3] == kNone) return kNone;
  Tensor bias = graph.tensor(graph.nodes()[first].inputs[3]);
  bias.strides = {1};
  for (std::size_t i = first + 1; i < last; ++i) bias.shape[0] += graph.tensor(graph.nodes()[i].inputs[3]).shape[0];
  return graph.add_view(std::move(bias));
}

/// One input of one node reads its storage, and no caller does.
bool has_one_reader(const Graph& graph, TensorId id) { return count_readers(graph, id) == 1 && graph.storage_of(id).kind != StorageKind::kOutput; }

/// glu(f(x, gate), f(x, up)) -> one node of gate and up: f is linear without a bias, or expert_linear of the same experts. Not where
/// the weight is in pieces: gates and ups of the same columns would be in different ones.
void fuse_glu(Graph& graph) {
  std::vector<Node>& nodes = graph.nodes();
  for (std::size_t i = 2; i < nodes.size(); ++i) {
    if (nodes[i].op != Op::glu) continue;
    const Node &gate = nodes[i - 2], &up = nodes[i - 1];
    const bool experts = gate.op == Op::expert_linear && up.op == Op::expert_linear;
    if (!experts && (!is_plain_linear(graph, gate) || !is_plain_linear(graph, up))) continue;
    const bool match = nodes[i].inputs[0] == gate.outputs[0] && nodes[i].inputs[1] == up.outputs[0] && has_one_reader(graph, gate.outputs[0]) && has_one_reader(graph, up.outputs[0]) &&
                       gate.inputs[0] == up.inputs[0] && gate.inputs[2] == up.inputs[2] && weights_adjoin(graph, gate.inputs[1], up.inputs[1]) &&
                       vectors_adjoin(graph, gate.inputs[3], up.inputs[3]) && graph.tensor(gate.inputs[1]).shape == graph.tensor(up.inputs[1]).shape &&
                       graph.storage_of(gate.inputs[1]).pieces.empty() && attributes_of<ExpertAttributes>(gate).experts == attributes_of<ExpertAttributes>(up).experts;
    if (!match) continue;
    const auto glu = attributes_of<GluAttributes>(nodes[i]);
    Node fused{Op::linear_glu, {gate.inputs[0], joined_weight(graph, i - 2, i)}, nodes[i].outputs, glu};
    if (experts) {
      fused.op = Op::expert_linear_glu;
      fused.inputs.insert(fused.inputs.end(), {gate.inputs[2], joined_bias(graph, i - 2, i)});
      fused.attributes = ExpertAttributes{attributes_of<ExpertAttributes>(gate).experts, glu};
    }
    nodes[i] = std::move(fused);
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i) - 2, nodes.begin() + static_cast<std::ptrdiff_t>(i));
    i -= 2;
  }
}

/// Columns behind this output begin with a word, as they did before: f16 keys are read in words.
bool ends_with_a_word(const Graph& graph, const Node& node) {
  const Tensor& output = graph.tensor(node.outputs[0]);
  return output.type != Type::kF16 || output.shape.last() % 2 == 0;
}

/// Linears in a row that share their input and whose weights, and biases, adjoin -> one linear; the old outputs become views
/// of it.
Status merge_linears(Graph& graph) {
  std::vector<Node>& nodes = graph.nodes();
  for (std::size_t first = 0; first < nodes.size(); ++first) {
    std::size_t last = first + 1;
    while (last < nodes.size() && is_affine(graph, nodes[first]) && is_affine(graph, nodes[last]) && nodes[last].inputs[0] == nodes[first].inputs[0] &&
           weights_adjoin(graph, nodes[last - 1].inputs[1], nodes[last].inputs[1]) && vectors_adjoin(graph, nodes[last - 1].inputs[3], nodes[last].inputs[3]) &&
           ends_with_a_word(graph, nodes[last - 1]) && ends_with_a_word(graph, nodes[last])) {
      ++last;
    }
    if (last - first < 2) continue;
    const TensorId weight = joined_weight(graph, first, last), bias = joined_bias(graph, first, last);
    Shape shape = graph.tensor(nodes[first].outputs[0]).shape;
    shape[shape.rank - 1] = graph.tensor(weight).shape[0];
    const Type type = graph.tensor(nodes[first].outputs[0]).type;
    const TensorId output = graph.add_tensor("merged linear", StorageKind::kActivation, type, shape);
    RONDO_TRY(graph.status());
    std::int64_t column = 0;
    for (std::size_t i = first; i < last; ++i) {
      const Tensor& old = graph.tensor(nodes[i].outputs[0]);
      const std::int64_t width = old.shape.last();
      move_views(graph, old.storage, width, graph.tensor(output), column);
      column += width;
    }
    nodes[first] = {Op::linear, {nodes[first].inputs[0], weight, kNone, bias}, {output}, {}};
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(first) + 1, nodes.begin() + static_cast<std::ptrdiff_t>(last));
  }
  return {};
}

/// A node strictly between the two changes, in place, what the first one reads: it can't be moved to the second's place.
bool reads_what_changes(const Graph& graph, std::size_t first, std::size_t second) {
  const auto is_read = [&](TensorId written) {
    const std::vector<TensorId>& inputs = graph.nodes()[first].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](TensorId read) { return read != kNone && graph.tensor(read).storage == graph.tensor(written).storage; });
  };
  for (std::size_t i = first + 1; i < second; ++i) {
    const Node& node = graph.nodes()[i];
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      if (node.inputs[input] != kNone && writes_input(node, input) && is_read(node.inputs[input])) return true;
    }
  }
  return false;
}

/// add(f(x), residual), either way round -> f(x, residual): f is linear, whatever it does with its sums before, weighted_sum or
/// rms_norm.
void fuse_residual(Graph& graph) {
  std::vector<Node>& nodes = graph.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op != Op::add) continue;
    for (std::size_t side : {0u, 1u}) {
      const TensorId produced = nodes[i].inputs[side], residual = nodes[i].inputs[1 - side];
      const std::optional<std::size_t> producer = find_producer(graph, produced);
      if (!producer || !takes_residual(graph, nodes[*producer]) || count_readers(graph, produced) != 1 || reads_what_changes(graph, *producer, i)) continue;
      if (!(graph.tensor(residual).shape == graph.tensor(produced).shape) || row_stride(graph.tensor(residual)) < 0) continue;
      Node fused = nodes[*producer];
      fused.inputs[2] = residual;
      fused.outputs = nodes[i].outputs;
      nodes[i] = std::move(fused);
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(*producer));
      --i;
      break;
    }
  }
}

/// rope(q), rope(k), kv_write(k), kv_write(v), one after the other from node `i` on, with equal attributes.
bool is_rope_and_cache(const Graph& graph, std::size_t i) {
  const std::vector<Node>& nodes = graph.nodes();
  if (i + 3 >= nodes.size()) return false;
  const Node &rope_q = nodes[i], &rope_k = nodes[i + 1], &write_k = nodes[i + 2], &write_v = nodes[i + 3];
  if (rope_q.op != Op::rope || rope_k.op != Op::rope || write_k.op != Op::kv_write || write_v.op != Op::kv_write) return false;
  const bool same_rope = attributes_of<RopeAttributes>(rope_q) == attributes_of<RopeAttributes>(rope_k) && rope_q.inputs[1] == rope_k.inputs[1] &&
                         rope_q.inputs[2] == rope_k.inputs[2];
  const bool same_rows = write_k.inputs[1] == rope_k.outputs[0] && write_k.inputs[2] == write_v.inputs[2] && write_k.inputs[3] == write_v.inputs[3] &&
                         is_step_count(graph, write_k.inputs[3]) && has_one_reader(graph, rope_k.outputs[0]);
  const bool same_cache = graph.tensor(write_k.inputs[0]).shape == graph.tensor(write_v.inputs[0]).shape &&
                          graph.tensor(write_k.inputs[0]).type == graph.tensor(write_v.inputs[0]).type;
  const bool same_ring = attributes_of<KvWriteAttributes>(write_k).ring == attributes_of<KvWriteAttributes>(write_v).ring;
  return same_rope && same_rows && same_cache && same_ring;
}

/// Nodes [first, last) become the one that adding this makes.
Status replace_nodes(Graph& graph, std::size_t first, std::size_t last, Op op, std::vector<TensorId> inputs, const Attributes& attributes, std::vector<TensorId> outputs) {
  std::vector<Node>& nodes = graph.nodes();
  const std::size_t end = nodes.size();
  graph.add(op, std::move(inputs), attributes);
  RONDO_TRY(graph.status());
  Node fused = std::move(nodes[end]);
  nodes.resize(end);
  fused.outputs = std::move(outputs);
  nodes[first] = std::move(fused);
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(first) + 1, nodes.begin() + static_cast<std::ptrdiff_t>(last));
  return {};
}

/// Rows of a cache begin where positions do: both come from the step.
bool start_is_first_position(const Graph& graph, TensorId start, TensorId positions) {
  const std::optional<std::size_t> producer = find_producer(graph, positions);
  if (!producer || graph.nodes()[*producer].op != Op::step_begin) return false;
  const std::vector<TensorId>& outputs = graph.nodes()[*producer].outputs;
  return outputs[1] == positions && outputs[2] == start;
}

/// These four, q and k views of one storage, v of that or another -> rope_kv_write.
Status fuse_rope_and_cache(Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!is_rope_and_cache(graph, i)) continue;
    const Node rope_q = graph.nodes()[i], rope_k = graph.nodes()[i + 1], write_k = graph.nodes()[i + 2], write_v = graph.nodes()[i + 3];
    const bool of_step = start_is_first_position(graph, write_k.inputs[2], rope_q.inputs[1]);
    if (!lie_for_rope_kv_write(graph.tensor(rope_q.inputs[0]), graph.tensor(rope_k.inputs[0]), graph.tensor(write_v.inputs[1]), of_step)) continue;
    RONDO_TRY(replace_nodes(graph, i, i + 4, Op::rope_kv_write,
                            {rope_q.inputs[0], rope_k.inputs[0], write_v.inputs[1], rope_q.inputs[1], write_k.inputs[2], write_k.inputs[3], write_k.inputs[0], write_v.inputs[0], rope_q.inputs[2]},
                            RopeKvWriteAttributes{attributes_of<RopeAttributes>(rope_q), {}, attributes_of<KvWriteAttributes>(write_k).ring, of_step}, rope_q.outputs));
  }
  return {};
}

/// The heads (B, H, T, D) that a norm of (B, T, H, D) reads, if `rotated` is nothing but that norm's output and nobody else
/// reads it; else kNone.
TensorId heads_before_norm(Graph& graph, const Node& norm, TensorId rotated) {
  if (norm.op != Op::rms_norm || norm.inputs[1] == kNone || norm.inputs[2] != kNone || graph.storage_of(norm.outputs[0]).kind == StorageKind::kOutput) return kNone;
  const Tensor &made = graph.tensor(norm.outputs[0]), &read = graph.tensor(rotated);
  if (made.shape.rank != 4 || read.shape.rank != 4 || read.storage != made.storage || read.offset_elements != 0 || count_readers(graph, norm.outputs[0]) != 1) return kNone;
  const bool turned = read.shape[1] == made.shape[2] && read.shape[2] == made.shape[1] && read.shape[3] == made.shape[3] && read.strides[1] == made.strides[2] && read.strides[2] == made.strides[1];
  return turned ? graph.transpose(norm.inputs[0], {0, 2, 1, 3}) : kNone;
}

/// rms_norm(q), rms_norm(k), and the four nodes that follow them, of the same -> norm_rope_kv_write.
Status fuse_norm_rope_and_cache(Graph& graph) {
  for (std::size_t i = 0; i + 5 < graph.nodes().size(); ++i) {
    if (!is_rope_and_cache(graph, i + 2)) continue;
    const Node norm_q = graph.nodes()[i], norm_k = graph.nodes()[i + 1], rope_q = graph.nodes()[i + 2], rope_k = graph.nodes()[i + 3], write_k = graph.nodes()[i + 4], write_v = graph.nodes()[i + 5];
    const TensorId query = heads_before_norm(graph, norm_q, rope_q.inputs[0]), key = heads_before_norm(graph, norm_k, rope_k.inputs[0]), value = write_v.inputs[1];
    if (query == kNone || key == kNone || !start_is_first_position(graph, write_k.inputs[2], rope_q.inputs[1]) || !lie_for_rope_kv_write(graph.tensor(query), graph.tensor(key), graph.tensor(value), true)) continue;
    const bool same_norm = attributes_of<RmsNormAttributes>(norm_q) == attributes_of<RmsNormAttributes>(norm_k) && vectors_adjoin(graph, norm_q.inputs[1], norm_k.inputs[1]);
    if (!same_norm) continue;
    Tensor weights = graph.tensor(norm_q.inputs[1]);
    weights.shape = {2, weights.shape[0]};
    weights.strides = {weights.shape[1], 1};
    const TensorId both = graph.add_view(std::move(weights));
    const RopeKvWriteAttributes attributes{attributes_of<RopeAttributes>(rope_q), attributes_of<RmsNormAttributes>(norm_q), attributes_of<KvWriteAttributes>(write_k).ring, true};
    RONDO_TRY(replace_nodes(graph, i, i + 6, Op::norm_rope_kv_write,
                            {query, key, value, rope_q.inputs[1], write_k.inputs[2], write_k.inputs[3], write_k.inputs[0], write_v.inputs[0], rope_q.inputs[2], both}, attributes, rope_q.outputs));
  }
  return {};
}

}  // namespace

Status fuse(Graph& graph) {
  fuse_glu(graph);
  RONDO_TRY(merge_linears(graph));
  RONDO_TRY(fuse_norm_rope_and_cache(graph));
  RONDO_TRY(fuse_rope_and_cache(graph));
  fuse_residual(graph);
  return graph.status();
}

}  // namespace rondo::graph
