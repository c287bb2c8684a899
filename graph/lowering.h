// From a Graph to a Program: choose kernels, emit dispatches, plan memory, place barriers.
//
// A pure function of graph, caps and options. Storages of kind weight, cache, step, constant, input and output must
// have their `place` set before; activations get theirs here. Not thread-safe per Lowering object.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/activations.h>
#include <rondo/status.h>

#include "graph/graph.h"
#include "runtime/device_caps.h"
#include "runtime/program.h"

namespace rondo::graph {

/// Everything the choices depend on besides the device.
struct LoweringOptions {
  bool fusion = true;
  /// Operator name -> kernel name: that kernel or an error.
  std::map<std::string, std::string, std::less<>> forced_kernels;
  /// What a choice is for (`KernelChoice::key`) -> the kernel that measurements say is fastest, used where it can be.
  std::map<std::string, std::string, std::less<>> tuned;
  /// Operator name -> a kernel to be measured: used wherever it can be and is no mere substitute for others.
  std::map<std::string, std::string, std::less<>> measured;
  /// Kernels that give wrong results on this device, by the label of their dispatches ("linear tiled q4_0", "rms_norm baseline").
  /// The next one that can do the same takes their place; where there is none, a fused operator is lowered as the simple
  /// ones that it means.
  std::vector<std::string> quarantine;
  /// Whether linears may round them.
  Activations activations = Activations::kF32;
  /// Cores for which work is shared out instead of the device's; 0: the device's.
  std::uint32_t cores = 0;
  /// Experts among which rows are taken to be shared out instead of those that a weight has; 0: those.
  std::uint32_t experts = 0;
  /// Whether attention may join what its splits leave, without a dispatch more.
  bool joins_splits = true;
  /// Buffer index that activations and scratch are placed in.
  std::uint32_t activation_buffer = 0;
};

/// A lowered graph.
struct Lowered {
  runtime::Program program;
  std::uint64_t activation_bytes = 0;           ///< size the activation buffer must have
  std::uint64_t unaliased_activation_bytes = 0; ///< what it would be without sharing memory between activations
};

/// Bytes of activations each storage needs and when, in; offsets out. See plan_memory.
struct Lifetime {
  std::uint64_t size_bytes = 0;
  std::uint32_t first = 0;  ///< first dispatch that touches it
  std::uint32_t last = 0;   ///< last dispatch that touches it, inclusive
};

/// Offsets, `alignment`-aligned, such that storages whose lifetimes overlap share no byte. Largest first, lowest gap that
/// fits. Returns one offset per lifetime and the total in `total_bytes`.
std::vector<std::uint64_t> plan_memory(std::span<const Lifetime> lifetimes, std::uint64_t alignment, std::uint64_t& total_bytes);

/// Sets `barrier_before` where a dispatch conflicts with one since the last barrier.
void place_barriers(runtime::Program& program);

/// Index ranges whose predicted cost stays below `bound_ns` (a single dispatch may exceed it).
std::vector<runtime::Segment> cut_segments(const runtime::Program& program, const runtime::DeviceCaps& caps, double bound_ns);

/// Predicted time of one dispatch: max(bytes / bandwidth, flops / rate) + a constant, in nanoseconds.
double predict_ns(const runtime::Cost& cost, const runtime::DeviceCaps& caps);

/// Replaces runs of nodes by fused ones: linears that share their input and lie side by side in one weight, RoPE of q and
/// k, and norms before it, with the cache writes, gate and up with GLU, a residual into the linear or norm before it.
Status fuse(Graph& graph);

/// Replaces fused operators of which every kernel is in quarantine by the simple ones that they mean. Errors: kInternal.
Status replace_quarantined(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

/// The passes in order: validate, fuse, replace what is in quarantine, choose kernels and emit, plan memory, place barriers.
/// Errors: the graph's own, kUnsupported (a tensor beyond the device's storage range, a forced kernel that can't run or is in
/// quarantine, an operator of which all kernels are, activations in f16 on a device without 16-bit storage),
/// kInvalidArgument (a kernel, forced or in quarantine, that there is not).
Result<Lowered> lower(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

/// An RMS norm between linears that its neighbours compute (shaders/lib/linear_norm.glsl). Behind the products in the output's
/// storage, f32, lie the sums of squares, as many a row as the linear before has workgroups, padded to a multiple of 4.
struct DeferredNorm {
  TensorId input = kNone;       ///< of the norm: what the linear before has as its output, too
  TensorId output = kNone;      ///< of the norm: the products
  TensorId gains = kNone;       ///< its weight
  float epsilon = 0, gain_bias = 0;
  std::uint32_t n_squares = 0, first_square = 0;  ///< of a row, and where they begin; set by the linear before
};

/// The norms of a fused graph that linears compute when it is lowered.
std::vector<DeferredNorm> find_deferred_norms(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

/// What a linear does of a rope_kv_write behind it (shaders/lib/linear_rotation.glsl).
struct DeferredRotation {
  TensorId input = kNone;  ///< the linear's output, which nothing else reads: queries, keys and values, or some of them
  Node node;               ///< the rope_kv_write
};

/// Those of a fused graph when it is lowered.
std::vector<DeferredRotation> find_deferred_rotations(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

/// Activations in bytes, as shaders/lib/rounding.glsl has them, or in f16, as shaders/lib/halved_input.glsl does: in which storage, and at which words of
/// it they and scales begin.
struct RoundedTensor {
  StorageId storage = kNone;
  std::uint32_t elements_at = 0, scales_at = 0;
};

/// What an activation takes in bytes, with its share of a scale.
constexpr double kRoundedBytes = 1.25;

/// How groups of 32 columns lie: row after row, or all rows' first, then all rows' second, so that tiles read whole cache lines.
enum class RoundedOrder : std::uint8_t { kRows, kColumns };

/// Rows of activations, of all tokens: `rows_of_token` each, of `columns`. Offset and strides are in elements.
struct ActivationRows {
  TensorId tensor = kNone;
  std::uint32_t tokens = 0, rows_of_token = 1, columns = 0, offset = 0, token_stride = 0, row_stride = 0;
};

/// The outputs of a fused graph, or norms of them, that those who make them round to bytes as well when it is lowered.
std::vector<TensorId> find_rounded_outputs(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

/// An output that whoever makes it leaves in f16 for linears of many rows when it is lowered, as `Lowering::halve` would: also, or only so, where nobody reads it otherwise.
struct HalvedOutput {
  TensorId output = kNone;
  bool only = false;
};

/// Those of a fused graph.
std::vector<HalvedOutput> find_halved_outputs(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

/// What an operator's `lower` writes into.
class Lowering {
 public:
  Lowering(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

  const Graph& graph() const { return graph_; }
  const runtime::DeviceCaps& caps() const { return caps_; }
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }

  /// The kernel the user forced for `op`, or "" for free choice.
  std::string_view forced_kernel(std::string_view op) const;
  Activations activations() const { return options_.activations; }
  std::uint32_t experts() const { return options_.experts; }  ///< LoweringOptions::experts
  /// The kernels that measurements favour for this choice: LoweringOptions::tuned and ::measured, or "".
  std::string_view tuned_kernel(std::string_view choice) const;
  std::string_view measured_kernel(std::string_view op) const;
  /// What the dispatches from here on to the node's end were chosen for.
  void set_choice(std::string choice) { choice_ = std::move(choice); }
  /// Whether dispatches of this label are in quarantine: an operator with a choice makes another one.
  bool is_quarantined(std::string_view label) const;

  /// Rows per sequence of a tensor with `n_rows` rows, rounded up where they can't be shared out: kernels skip row r when
  /// r % that >= the step's count.
  std::uint32_t rows_per_sequence(std::int64_t n_rows) const;

  /// The norm that the linear which makes this tensor computes too, or that its output went through before it, or null.
  DeferredNorm* norm_after(TensorId tensor);
  const DeferredNorm* norm_after(TensorId tensor) const { return const_cast<Lowering*>(this)->norm_after(tensor); }
  const DeferredNorm* norm_before(TensorId tensor) const;

  /// The rotation that the linear which makes this tensor does, or that has this output, or null.
  const DeferredRotation* rotation_after(TensorId tensor) const;
  const DeferredRotation* rotation_to(TensorId output) const;

  /// Whether the node that makes this tensor, all of a storage, leaves it in bytes as well, behind its elements; of a norm that its neighbours compute the linear before.
  bool rounds(TensorId output) const { return std::find(rounded_.begin(), rounded_.end(), output) != rounded_.end(); }
  /// Makes room for that, behind the elements. To be called before anything else is appended.
  void append_rounded(TensorId output);

  /// How the node that makes this tensor, all of a storage, leaves it in f16, or null; and where to.
  const HalvedOutput* halved(TensorId output) const;
  StorageId leave_halves(const HalvedOutput& output);

  /// These rows, f32 and of whole groups of 32 columns, in bytes: in the order of rows as whoever made them left them, or else by a dispatch in subgroups of `lanes`, with scales for 32 columns each.
  RoundedTensor round(const ActivationRows& rows, RoundedOrder order, std::uint32_t lanes);

  /// These rows, f32 or f16, in f16: as whoever made them left them, or by a dispatch that reads them by vectors of 4 or not, as linear's kernels would (shaders/lib/linear_input.glsl's kInputVec4).
  RoundedTensor halve(const ActivationRows& rows, Type activations, std::uint32_t input_vec4);

  /// More bytes for the storage of an activation, behind those that its tensor has. Returns where they begin.
  std::uint64_t append_bytes(TensorId tensor, std::uint64_t size_bytes);

  /// An unnamed activation that only this node uses.
  StorageId scratch(std::uint64_t size_bytes, const char* what);

  /// What nodes that need the same have made before, kNone at first: whoever makes it puts it there.
  StorageId& made_before(const std::vector<std::int64_t>& what) { return made_.try_emplace(what, kNone).first->second; }

  /// The same as a dense tensor, for an operator that lowers to another one's dispatches. References from `tensor` end.
  TensorId scratch_tensor(const Shape& shape, Type type, const char* what);

  /// The module of `shader` for activations of this type, f32 or f16. Where there is none, or the device can't run it, `lower`
  /// refuses the node afterwards.
  runtime::Shader module_for(runtime::Shader shader, Type activations);

  /// A module, and the size that it relies on for its subgroups; 0: none.
  struct Code {
    Code(runtime::Shader module, std::uint32_t size = 0) : shader(module), subgroup_size(size) {}
    runtime::Shader shader;
    std::uint32_t subgroup_size;
  };

  struct Argument {
    StorageId storage;  ///< kNone binds the step state in its place (a binding that the kernel does not touch)
    runtime::Access access;
    std::size_t piece = 0;  ///< of a storage in pieces
  };

  /// Emits one dispatch; binding 0, the step state, is added in front. `push` is one of the params structs.
  template <typename Push>
  void dispatch(std::string label, Code code, std::initializer_list<std::uint32_t> constants,
                std::initializer_list<Argument> arguments, const Push& push, std::array<std::uint32_t, 3> grid,
                runtime::Cost cost, runtime::Access state_access = runtime::Access::kRead) {
    dispatch(std::move(label), code, constants, std::span(arguments.begin(), arguments.size()), push, grid, cost, state_access);
  }
  template <typename Push>
  void dispatch(std::string label, Code code, std::initializer_list<std::uint32_t> constants, std::span<const Argument> arguments, const Push& push, std::array<std::uint32_t, 3> grid,
                runtime::Cost cost, runtime::Access state_access = runtime::Access::kRead) {
    static_assert(sizeof(Push) <= runtime::kMaxPushBytes);
    emit(std::move(label), code, {constants.begin(), constants.size()}, arguments, std::as_bytes(std::span<const Push, 1>(&push, 1)), grid, cost, state_access);
  }

  /// The pieces of a cache (B, G, S, D), one with all G heads where it is whole. Errors: kUnsupported (B other than 1, or
  /// a view that does not begin with the storage, of a cache in pieces).
  Result<std::vector<StoragePiece>> cache_pieces(TensorId id) const;

  StorageId read_only(TensorId id) const { return id == kNone ? kNone : graph_.tensor(id).storage; }

  /// The same without types. What does not fit a Kernel is kInternal when the lowering is finished.
  void emit(std::string label, Code code, std::span<const std::uint32_t> constants,
            std::span<const Argument> arguments, std::span<const std::byte> push, std::array<std::uint32_t, 3> grid,
            runtime::Cost cost, runtime::Access state_access);
  /// The Program, once all nodes have emitted.
  Result<Lowered> finish();

 private:
  friend Result<Lowered> lower(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);
  friend Status replace_quarantined(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);
  friend std::vector<DeferredNorm> find_deferred_norms(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);
  friend std::vector<DeferredRotation> find_deferred_rotations(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);
  friend std::vector<TensorId> find_rounded_outputs(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);
  friend std::vector<HalvedOutput> find_halved_outputs(Graph& graph, const runtime::DeviceCaps& caps, const LoweringOptions& options);

  /// The bytes that an argument binds.
  const runtime::BufferRange& place_of(const Argument& argument) const;
  /// Finds the norms that need no dispatch of their own. Before nodes are lowered.
  void defer_norms();
  /// Finds the rotations that need none. Before nodes are lowered.
  void defer_rotations();
  /// Finds who rounds what it makes, for linears of few rows with integer dot products. After defer_norms.
  void share_rounding();
  /// Finds who leaves what it makes in f16, for linears of many rows. After share_rounding.
  void share_halves();
  /// The first label in quarantine among the dispatches from `first` on, or "".
  std::string find_quarantined(std::size_t first) const;
  Status check_grids_and_ranges() const;

  Graph& graph_;
  runtime::DeviceCaps caps_;
  const LoweringOptions& options_;
  /// What a dispatch has more of than fits a Kernel: a bug of the operator's.
  std::string excess_;
  /// Why there is no module for activations in f16, as what needs more than there is; "" if there is one.
  std::string missing_;
  std::string choice_;
  std::map<std::vector<std::int64_t>, StorageId> made_;
  std::vector<DeferredNorm> deferred_;
  std::vector<DeferredRotation> rotations_;
  std::vector<TensorId> rounded_;
  std::vector<HalvedOutput> halved_outputs_;
  std::map<std::vector<std::int64_t>, RoundedTensor> quantized_, halved_;  ///< by dispatches of their own; the latter by makers, too
  runtime::Program program_;
  std::vector<std::vector<Argument>> arguments_;  ///< of each dispatch, until storages have places
};

constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

}  // namespace rondo::graph
