// Activations in bytes for integer dot products (shaders/lib/rounding.glsl), and in f16 for matrix units (shaders/lib/halved_input.glsl): who makes them, and
// the dispatch that does where nobody else can.

#include "graph/block_format.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/attention_kernels.h"
#include "graph/ops/linear_kernels.h"
#include "graph/ops/norm_kernels.h"
#include "halve.params.h"
#include "quantize.params.h"

namespace rondo::graph {

namespace {

/// All of its storage, in whatever order.
bool is_whole(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  return tensor.offset_elements == 0 && graph.storage(tensor.storage).size_bytes == 4 * static_cast<std::uint64_t>(tensor.shape.n_elements());
}

bool can_round(const Node& node, const Lowering& lowering) {
  switch (node.op) {
    case Op::attention: return can_round_attention(node, lowering);
    case Op::rms_norm:
    case Op::layer_norm: return can_round_norm(node, lowering);
    default: return can_round_outputs(node, lowering);
  }
}

}  // namespace

void Lowering::share_rounding() {
  for (const Node& node : graph_.nodes()) {
    if (!takes_bytes_in_few_rows(node, *this)) continue;
    const TensorId input = node.inputs[0];
    if (graph_.storage_of(input).kind != StorageKind::kActivation || !is_whole(graph_, input) || !tensor(input).is_contiguous()) continue;
    // Self-tests have a linear of bytes behind what rounds, of as many rows and columns: where that is wrong, or another kernel, none would be seen to be right.
    if (!linears_of_bytes_take_dots(*this, static_cast<std::uint32_t>(tensor(input).shape.n_rows()), static_cast<std::uint32_t>(tensor(input).shape.last()))) continue;
    // Of a norm that its neighbours compute, the linear before makes what this one reads.
    const DeferredNorm* const norm = norm_before(input);
    const StorageId storage = tensor(norm ? norm->input : input).storage;
    const Node* maker = nullptr;
    std::size_t n_makers = 0;
    for (const Node& other : graph_.nodes()) {
      for (const TensorId output : other.outputs) {
        if (tensor(output).storage == storage) maker = &other, ++n_makers;
      }
      for (std::size_t i = 0; i < other.inputs.size(); ++i) {
        if (other.inputs[i] != kNone && writes_input(other, i) && tensor(other.inputs[i]).storage == storage) ++n_makers;
      }
    }
    if (n_makers != 1 || maker->outputs.size() != 1 || (!norm && !is_whole(graph_, maker->outputs[0]))) continue;
    if (!norm && norm_after(maker->outputs[0])) continue;  // it leaves bytes of the norm, if of anything
    if (maker->op != Op::attention && tensor(maker->outputs[0]).shape.last() != tensor(input).shape.last()) continue;  // norms of heads
    const TensorId rounded = norm ? input : maker->outputs[0];
    if (!rounds(rounded) && can_round(*maker, *this)) rounded_.push_back(rounded);
  }
}

std::vector<TensorId> find_rounded_outputs(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options) {
  Lowering trial(graph, caps, options);
  trial.defer_norms();
  trial.share_rounding();
  return std::move(trial.rounded_);
}

namespace {

/// Of elements with their scales: kRoundedBytes each.
std::uint64_t rounded_bytes(std::uint64_t n_elements) { return n_elements + n_elements / 4; }

/// What tells rows of the same storage apart, and for bytes how they lie.
std::vector<std::int64_t> key_of(StorageId storage, const ActivationRows& rows, std::initializer_list<std::int64_t> how = {}) {
  std::vector<std::int64_t> key = {storage, rows.offset, rows.token_stride, rows.row_stride, rows.tokens, rows.rows_of_token, rows.columns};
  key.insert(key.end(), how);
  return key;
}

}  // namespace

void Lowering::append_rounded(TensorId output) { append_bytes(output, rounded_bytes(static_cast<std::uint64_t>(tensor(output).shape.n_elements()))); }

RoundedTensor Lowering::round(const ActivationRows& rows, RoundedOrder order, std::uint32_t lanes) {
  const StorageId storage = tensor(rows.tensor).storage;
  const std::uint32_t n_rows = rows.tokens * rows.rows_of_token, n = n_rows * rows.columns;
  const bool in_order = rows.offset == 0 && rows.row_stride == rows.columns && rows.token_stride == rows.rows_of_token * rows.columns;
  const auto is_maker = [&](TensorId id) { return tensor(id).storage == storage && static_cast<std::uint64_t>(tensor(id).shape.n_elements()) == n; };
  if (order == RoundedOrder::kRows && in_order && std::any_of(rounded_.begin(), rounded_.end(), is_maker)) return {storage, n, n + n / 4};
  RoundedTensor& made = quantized_[key_of(storage, rows, {lanes, static_cast<std::int64_t>(order)})];
  if (made.storage != kNone) return made;
  // Nothing changes an activation once it is made, so that one result serves all that ask for the same.
  // Whoever takes a norm that its neighbours compute looks for squares in its storage, too.
  if (norm_before(rows.tensor)) made = {storage, static_cast<std::uint32_t>(append_bytes(rows.tensor, rounded_bytes(n)) / 4), 0};
  else made = {scratch(rounded_bytes(n), "rounded activations"), 0, 0};
  made.scales_at = made.elements_at + n / 4;
  const std::uint32_t width = std::max(lanes, 64u), n_groups = rows.columns / kGroupElements;
  const bool by_rows = order == RoundedOrder::kRows;
  dispatch("quantize", {runtime::Shader::quantize, lanes}, {width, (rows.offset | rows.token_stride | rows.row_stride) % 4 == 0}, {{storage, runtime::Access::kRead}, {made.storage, runtime::Access::kWrite}},
           shaders::QuantizeParams{rows_per_sequence(rows.tokens), rows.rows_of_token, rows.columns, rows.offset, rows.token_stride, rows.row_stride, made.elements_at, made.scales_at, by_rows ? n_groups : 1, by_rows ? 1 : n_rows}, {ceil_div(rows.columns, 4 * width), n_rows, 1},
           {4.0 * n + static_cast<double>(rounded_bytes(n)), 4.0 * n});
  return made;
}

namespace {

/// Of so many rows, with their scales.
RoundedTensor halves_of(Lowering& lowering, std::uint32_t n_rows, std::uint32_t columns) {
  const std::uint32_t n = n_rows * ceil_div(columns, kGroupElements) * kGroupElements;
  return {lowering.scratch(2 * std::uint64_t{n} + 4 * std::uint64_t{n_rows}, "activations in f16"), 0, n / 2};
}

/// All rows of a contiguous tensor that is all of its storage.
ActivationRows whole_rows(const Tensor& tensor, TensorId id) {
  const auto columns = static_cast<std::uint32_t>(tensor.shape.last());
  return {id, static_cast<std::uint32_t>(tensor.shape.n_rows()), 1, columns, 0, columns, columns};
}

}  // namespace

void Lowering::share_halves() {
  for (const Node& node : graph_.nodes()) {
    if ((node.op != Op::rms_norm && node.op != Op::layer_norm) || norm_before(node.outputs[0]) || rounds(node.outputs[0])) continue;
    const TensorId output = node.outputs[0];
    const Tensor& made = tensor(output);
    if (graph_.storage_of(output).kind != StorageKind::kActivation || !is_whole(graph_, output) || !can_halve_norm(node, *this)) continue;
    // Self-tests have a linear of F16 behind it: where that takes something else, none would be seen to be right.
    if (!linears_of_halves_take_halves(*this, static_cast<std::uint32_t>(made.shape.n_rows()), static_cast<std::uint32_t>(made.shape.last()))) continue;
    bool any = false, only = true;
    for (const Node& reader : graph_.nodes()) {
      for (std::size_t i = 0; i < reader.inputs.size(); ++i) {
        if (reader.inputs[i] == kNone || tensor(reader.inputs[i]).storage != made.storage) continue;
        const Tensor& read = tensor(reader.inputs[i]);
        const bool takes = i == 0 && is_whole(graph_, reader.inputs[i]) && read.is_contiguous() && read.shape.last() == made.shape.last() && takes_halves(reader, *this);
        (takes ? any : only) = takes;
      }
    }
    if (any) halved_outputs_.push_back({output, only});
  }
}

std::vector<HalvedOutput> find_halved_outputs(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options) {
  Lowering trial(graph, caps, options);
  trial.defer_norms();
  trial.share_rounding();
  trial.share_halves();
  return std::move(trial.halved_outputs_);
}

const HalvedOutput* Lowering::halved(TensorId output) const {
  const auto found = std::find_if(halved_outputs_.begin(), halved_outputs_.end(), [&](const HalvedOutput& halved) { return halved.output == output; });
  return found == halved_outputs_.end() ? nullptr : &*found;
}

StorageId Lowering::leave_halves(const HalvedOutput& output) {
  const Tensor& made = tensor(output.output);
  const ActivationRows rows = whole_rows(made, output.output);
  const StorageId storage = made.storage;
  return (halved_[key_of(storage, rows)] = halves_of(*this, rows.tokens, rows.columns)).storage;
}

RoundedTensor Lowering::halve(const ActivationRows& rows, Type activations, std::uint32_t input_vec4) {
  const StorageId storage = tensor(rows.tensor).storage;
  RoundedTensor& made = halved_[key_of(storage, rows)];
  if (made.storage != kNone) return made;
  const std::uint32_t n_rows = rows.tokens * rows.rows_of_token, n = n_rows * ceil_div(rows.columns, kGroupElements) * kGroupElements;
  made = halves_of(*this, n_rows, rows.columns);
  const std::uint32_t width = std::min(256u, caps_.max_invocations);
  dispatch("halve", module_for(runtime::Shader::halve, activations), {width, input_vec4}, {{storage, runtime::Access::kRead}, {made.storage, runtime::Access::kWrite}},
           shaders::HalveParams{rows_per_sequence(rows.tokens), rows.rows_of_token, rows.columns, rows.offset, rows.token_stride, rows.row_stride, n_rows, made.scales_at}, {n_rows, 1, 1},
           {(2.0 + element_bytes(activations)) * n, 2.0 * n});
  return made;
}

}  // namespace rondo::graph
