// A static compute graph: typed tensors and operator nodes in execution order.
//
// Built once per kind of step, then fused and lowered (graph/lowering.h) or run on the CPU (graph/interpreter.h). Adding a
// node infers and checks its outputs at once. The first error is kept in `status()`; after it, adding does nothing, so a
// builder checks once, at its end. Not thread-safe; copyable.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <rondo/status.h>

#include "graph/tensor.h"

namespace rondo::graph {

enum class Op : std::uint8_t {
#define RONDO_OPERATOR(name) name,
#include "graph/operators.inc"
#undef RONDO_OPERATOR
};
constexpr std::size_t kOpCount = 0
#define RONDO_OPERATOR(name) +1
#include "graph/operators.inc"
#undef RONDO_OPERATOR
    ;

/// Pairs rotated together: (i, i + n/2) as in NeoX and Hugging Face's Llama, or (2i, 2i + 1) as in GPT-J and GGUF's llama.
enum class RopeStyle : std::uint8_t { kHalf = 0, kInterleaved = 1 };

/// Rotary position embedding (Su et al. 2021). Frequency i of n/2: theta^(-2i/n) / frequency_factors[i].
struct RopeAttributes {
  RopeStyle style = RopeStyle::kHalf;
  std::int64_t dimensions = 0;  ///< n: how many leading elements of a head rotate; 0 = all
  double theta = 10000;
  double attention_factor = 1;  ///< multiplies cos and sin
  std::int64_t max_position = 131072;
  bool operator==(const RopeAttributes&) const = default;
};

struct RmsNormAttributes {
  double epsilon = 1e-5;
  double weight_offset = 0;  ///< 1 for Gemma
  bool operator==(const RmsNormAttributes&) const = default;
};

struct KvWriteAttributes {
  bool ring = false;  ///< row r is stored at r mod S: the cache keeps the last S
};

/// Of fused operators.
struct RopeKvWriteAttributes {
  RopeAttributes rope;
  RmsNormAttributes norm;  ///< of queries and keys, in norm_rope_kv_write
  bool ring = false;       ///< as of kv_write
  bool of_step = false;    ///< positions are those that the step's state has, and rows of the caches; values may then be of another storage
};

/// Which keys a query at position p may see: key j < prefix, or all that causality, window and chunks allow; -1 and 0 limit
/// nothing. Scores: softcap(q k scale), then what the inputs add.
struct AttentionAttributes {
  double scale = 0;  ///< 0: 1 / sqrt(head width)
  bool causal = false;              ///< j <= p
  std::int64_t window_back = -1;    ///< j >= p - window_back
  std::int64_t window_ahead = -1;   ///< j <= p + window_ahead
  std::int64_t prefix = 0;
  std::int64_t chunk = 0;           ///< keys of the query's own chunk of this many positions,
  std::int64_t chunks_back = 0;     ///< and of as many chunks before it
  double softcap = 0;               ///< c tanh(s / c), as in Gemma 2
  bool bidirectional_buckets = true;  ///< T5's encoder; false: its decoder
  std::int64_t max_distance = 128;  ///< from which on T5's last bucket is used
  bool ring = false;  ///< key j is stored at j mod S: of all that `lengths` counts, the last S are there
};

struct StepBeginAttributes {
  std::int64_t rows = 1;  ///< token capacity T of the step
};

/// A function of one element: what the unary operators are, and what linear and glu apply. The values are those of
/// shaders/lib/activation.h.
enum class Activation : std::uint8_t { kIdentity = 0, kRelu, kGelu, kGeluTanh, kQuickGelu, kSilu, kTanh, kSigmoid, kExp, kNeg };

/// activation(input weight^T + bias) + residual
struct LinearAttributes {
  Activation activation = Activation::kIdentity;
};

/// activation(min(gate, limit)) * (clamp(up, -limit, limit) + up_bias)
struct GluAttributes {
  Activation activation = Activation::kSilu;
  double limit = 0;      ///< 0: none
  double up_bias = 0;  ///< 1 for gpt-oss
  bool is_limited() const { return limit != 0 || up_bias != 0; }
};

/// The `k` largest logits of each row; weights are the softmax over these, or over all.
struct RouteAttributes {
  std::int64_t k = 1;
  bool normalize = true;
};

/// A weight of N `experts` rows, expert after expert; of a fused one the gates of all come first.
struct ExpertAttributes {
  std::int64_t experts = 1;
  GluAttributes glu;  ///< of the fused operator
};

/// softmax(scale * input + mask) along an axis; negative axes count from the last.
struct SoftmaxAttributes {
  std::int64_t axis = -1;
  double scale = 1;
};

struct LayerNormAttributes {
  double epsilon = 1e-5;
};

/// scale * a b, of which either may be transposed in its last two dimensions.
struct MatmulAttributes {
  bool transpose_a = false;
  bool transpose_b = false;
  double scale = 1;
};

/// mean, sum and max
struct ReduceAttributes {
  std::int64_t axis = -1;
  std::array<std::int64_t, kMaxRank> axes{};  ///< several, in any order, in the place of `axis`
  int n_axes = 0;                             ///< 0: `axis` alone
  bool keep = false;  ///< they stay, with extent 1
};

struct TopKAttributes {
  std::int64_t k = 1;
};

struct ConcatAttributes {
  std::int64_t axis = 0;
};

/// Elements put before and after each dimension.
struct PadAttributes {
  std::array<std::int64_t, kMaxRank> before{};
  std::array<std::int64_t, kMaxRank> after{};
  double value = 0;
};

struct EmbeddingAttributes {
  double scale = 1;          ///< multiplies the rows, rounded to f32
  std::optional<Type> type;  ///< of the output, f32 or f16; else f32, or the type of the activation whose rows are gathered
};

/// Column 2i has the sine of frequency i and 2i + 1 its cosine, or the sines come first, the cosines after them.
enum class SinusoidLayout : std::uint8_t { kInterleaved = 0, kSplit = 1 };

/// Frequency i of width / 2: theta^(-2i / width). Vaswani et al. 2017.
struct SinusoidAttributes {
  std::int64_t width = 0;
  double theta = 10000;
  SinusoidLayout layout = SinusoidLayout::kInterleaved;
  Type type = Type::kF32;  ///< of the output, f32 or f16
  bool end_at_theta = false;  ///< exponents -i / (width / 2 - 1): the last frequency is 1 / theta, as in tensor2tensor and Whisper
  std::int64_t first = 0;     ///< what positions are counted from
};

struct PatchEmbedAttributes {
  std::int64_t patch = 0;  ///< P: patches are P x P pixels
};

using Attributes = std::variant<std::monostate, RopeAttributes, RmsNormAttributes, KvWriteAttributes, RopeKvWriteAttributes, AttentionAttributes, StepBeginAttributes, LinearAttributes, GluAttributes, RouteAttributes, ExpertAttributes,
                                SoftmaxAttributes, LayerNormAttributes, MatmulAttributes, ReduceAttributes, TopKAttributes, ConcatAttributes, PadAttributes,
                                EmbeddingAttributes, SinusoidAttributes, PatchEmbedAttributes>;

/// Elements start, start + step, ... before end of one axis, as in NumPy: negative bounds count from the end of the axis,
/// bounds beyond it are moved to it.
struct SliceRange {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

/// One operator applied. Optional inputs that are absent are kNone. In-place operators list what they change as inputs.
struct Node {
  Op op{};
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Attributes attributes;
};

class Graph {
 public:
  std::string name;
  /// Sequences of the step state; every activation of a step graph has this as its first extent.
  std::int64_t n_sequences = 1;
  /// The step state's storage, bound by every dispatch; kNone in a graph without a step (a constant block is bound).
  StorageId state = kNone;

  /// The first error, beginning with the operator in brackets, or success.
  const Status& status() const { return status_; }
  void fail(std::string message);

  StorageId add_storage(Storage storage);
  /// A dense tensor with its own new storage. Shapes must be positive and fit 31 bits of elements (refused otherwise). Not
  /// of q8_0: see add_cache and add_weight.
  TensorId add_tensor(std::string name, StorageKind kind, Type type, const Shape& shape);
  /// Keys or values (B, G, S, D) of a cache type, laid out as graph/cache_layout.h says, in a new storage.
  TensorId add_cache(std::string name, StorageKind kind, Type type, const Shape& shape);
  /// A matrix (N, K) of a weight type in a new storage, in planes (graph/block_format.h); that K is a multiple of
  /// the type's block is for the operators to check. Rows of it are had with slice().
  TensorId add_weight(std::string name, Type type, const Shape& matrix);
  TensorId add_view(Tensor tensor);
  /// A constant f32 tensor with this content.
  TensorId add_constant(std::string name, const Shape& shape, std::span<const float> values);
  /// The `i`-th output of the new node (kNone after an error).
  TensorId add(Op op, std::vector<TensorId> inputs, Attributes attributes = {});
  const std::vector<TensorId>& last_outputs() const;

  /// Views: no dispatch, the same storage. Refused where strides can't express them.
  TensorId reshape(TensorId input, const Shape& shape);
  TensorId transpose(TensorId input, std::span<const int> permutation);
  TensorId transpose(TensorId input, std::initializer_list<int> permutation) { return transpose(input, std::span<const int>(permutation.begin(), permutation.size())); }
  TensorId slice(TensorId input, int axis, std::int64_t start, std::int64_t end);
  /// One range per axis. Refused: an empty result, a step below 1 (strides are not negative).
  TensorId slice(TensorId input, std::span<const SliceRange> ranges);

  /// `reshape`, of a dense copy (one dispatch) where strides can't express it. Refused where the counts differ.
  TensorId reshape_or_copy(TensorId input, const Shape& shape);

  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors_[static_cast<std::size_t>(id)]; }
  const Storage& storage(StorageId id) const { return storages_[static_cast<std::size_t>(id)]; }
  Storage& storage(StorageId id) { return storages_[static_cast<std::size_t>(id)]; }
  const Storage& storage_of(TensorId id) const { return storage(tensor(id).storage); }
  std::size_t n_tensors() const { return tensors_.size(); }
  std::size_t n_storages() const { return storages_.size(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& nodes() { return nodes_; }

 private:
  /// A storage and the tensor that is all of it, of the same name and type.
  TensorId add_whole(Storage storage, const Shape& shape, const Strides& strides);

  Status status_;
  std::vector<Tensor> tensors_;
  std::vector<Storage> storages_;
  std::vector<Node> nodes_;
};

/// Structure: every activation is written before it is read, ids are in range, views stay inside their storages.
/// `infer` has checked each node on its own when it was added. Errors: kInternal, naming node and tensor.
Status validate(const Graph& graph);

}  // namespace rondo::graph
