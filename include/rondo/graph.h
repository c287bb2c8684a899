// Networks of your own: a Graph is built in C++ or read from a graph file, compiled once for a device, and run many times.
//
//   rondo::Graph graph;
//   rondo::Tensor x = graph.input("x", rondo::Type::kF32, {7, 64});
//   graph.output("y", graph.linear(x, graph.weight(weights, "layer.weight"), rondo::Activation::kGelu));
//   auto program = rondo::Program::compile(device, std::move(graph));
//   program->set_input("x", values);  program->run_and_wait();  program->read("y", results);
//
// Operators, their inputs and attributes are those of graph files; each refuses what it can't take in words. A Graph keeps its
// first error: after it, calls do nothing and give empty tensors, so that a program may look at each result, or at status()
// once. Graphs, Tensors and Programs are for one thread at a time. Handles may go in any order.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <rondo/activations.h>
#include <rondo/byte_source.h>
#include <rondo/device.h>
#include <rondo/executor.h>
#include <rondo/export.h>
#include <rondo/session.h>
#include <rondo/status.h>

namespace rondo {

namespace models {
class GraphBuilder;
class GraphProgram;
struct WeightsFile;
}  // namespace models

/// Type of a tensor's elements. kQ8_0 is for caches: signed bytes in groups of 32, each with a scale in f16. Weights have more
/// types, which they bring from their file.
enum class Type : std::uint8_t { kF32, kF16, kI32, kQ8_0 };

/// Extents of a tensor, the last one fastest; none for a scalar. The call that is given more than four refuses them.
struct Shape {
  static constexpr int kMaxRank = 4;
  std::array<std::int64_t, kMaxRank> extents{};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> list) : rank(static_cast<int>(list.size())) {
    std::size_t axis = 0;
    for (const std::int64_t extent : list) {
      if (axis < extents.size()) extents[axis++] = extent;
    }
  }
  std::int64_t operator[](int axis) const { return extents[static_cast<std::size_t>(axis)]; }
  /// The product of the extents.
  std::int64_t n_elements() const {
    std::int64_t n = 1;
    for (int axis = 0; axis < rank && axis < kMaxRank; ++axis) n *= extents[static_cast<std::size_t>(axis)];
    return n;
  }
  bool operator==(const Shape&) const = default;
};

/// A function of one element.
enum class Activation : std::uint8_t { kIdentity, kRelu, kGelu, kGeluTanh, kQuickGelu, kSilu, kTanh, kSigmoid, kExp, kNeg };

/// A tensor of a Graph: a small value that names it. Empty by default, which stands for an input that is left out, and for what
/// a call gives that failed.
class Tensor {
 public:
  Tensor() = default;
  /// Whether it is a tensor.
  explicit operator bool() const { return graph_ != 0; }
  const Shape& shape() const { return shape_; }
  Type type() const { return type_; }

 private:
  friend class models::GraphBuilder;
  std::uint64_t graph_ = 0;  ///< whose it is: no two graphs have the same number
  std::int32_t number_ = -1;
  Type type_ = Type::kF32;
  Shape shape_;
};

/// The tensors of a safetensors file, found by name. Copies share the file.
class RONDO_API Weights {
 public:
  Weights() = default;
  /// Those whose names begin with `prefix`, to be called by the rest of their names.
  Weights at(std::string_view prefix) const;
  /// Whether there is such a tensor.
  bool has(std::string_view name) const;
  /// All names, without the prefix.
  std::vector<std::string> names() const;

  /// For Rondo's own use.
  const std::shared_ptr<const models::WeightsFile>& internal() const { return file_; }
  const std::string& prefix() const { return prefix_; }
  explicit Weights(std::shared_ptr<const models::WeightsFile> file) : file_(std::move(file)) {}

 private:
  std::shared_ptr<const models::WeightsFile> file_;
  std::string prefix_;
};

/// Reads the header of a safetensors file; the tensors that a Graph takes are read by Program::compile.
/// Errors: kCorruptData, naming file and tensor, or the source's own.
RONDO_API Result<Weights> open_weights(ByteSource source);

/// How a file has a weight.
struct WeightOptions {
  std::string type;         ///< of tensors of dtype U8, which hold blocks in GGUF's order: "q8_0", "q4_K", ...
  bool transposed = false;  ///< (K, N) in the file, as GPT-2 has its linears, and (N, K) as a tensor; f32, f16 and bf16 only
};

/// An input of an operator, by the operator's name for it.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// An attribute of an operator.
struct Attribute {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>> value;
};

/// What Graph::linear does beside the product.
struct LinearOptions {
  Tensor bias;      ///< (N)
  Activation activation = Activation::kIdentity;
  Tensor residual;  ///< added last; broadcasts to the result's shape
};

/// How Graph::attention scores keys.
struct AttentionOptions {
  float scale = 0;      ///< 0: 1 / sqrt(D)
  bool causal = false;  ///< a query sees keys up to its own position
  Tensor query_offset;  ///< i32 (B): the position of the first query; without it the last query is at the last key
  Tensor lengths;       ///< i32 (B): how many keys there are; without it all S
  Tensor mask;          ///< added to the scores, or boolean; broadcasts to (B, H, T, S)
};

/// The weights of Graph::self_attention: (N, K) each, and their biases, of which any may be empty.
struct SelfAttentionWeights {
  Tensor query, key, value, output;
  Tensor query_bias, key_bias, value_bias, output_bias;
};

/// A network: inputs, weights, caches, operators and outputs.
class RONDO_API Graph {
 public:
  /// `name` is for messages.
  explicit Graph(std::string name = "graph");
  /// Reads a graph file (JSON) whose inputs lie in `inputs` (safetensors), as `rondo eval --graph` does. Nothing can be added
  /// to it. Without files the graph says all types and shapes, and its inputs are set before a run; weights need one.
  /// Errors: kCorruptData, kInvalidArgument and kNotFound, naming file, node and field; the sources' own.
  static Result<Graph> load(const ByteSource& description, std::span<const ByteSource> inputs);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// The first error of all calls so far, naming scope, operator and tensors, or success. kFailedPrecondition of a Graph that
  /// was moved from.
  Status status() const;

  /// While it lives, what is added is called "name/..." in messages, within the scopes around it.
  class RONDO_API Scope {
   public:
    Scope(Scope&&) noexcept = default;
    Scope& operator=(Scope&&) = delete;
    ~Scope();

   private:
    friend class Graph;
    explicit Scope(std::shared_ptr<models::GraphBuilder> graph) : graph_(std::move(graph)) {}
    std::shared_ptr<models::GraphBuilder> graph_;
  };
  /// Opens a scope, as in `auto scope = graph.scope("layer 0");`.
  [[nodiscard]] Scope scope(std::string name);

  /// What Program::set_input sets: of f32, f16 or i32. Names are the program's, whatever the scope; none twice.
  Tensor input(std::string name, Type type, const Shape& shape);
  /// Keys or values (B, G, S, D) of f32, f16 or q8_0 that stay on the device from run to run: zeros at first, changed by
  /// kv_write, and what Program::reset_caches makes zeros again.
  Tensor cache(std::string name, Type type, const Shape& shape);
  /// Fixed values, which are copied: weights, biases, tables. Errors: kInvalidArgument (another number of values).
  Tensor constant(std::string name, const Shape& shape, std::span<const float> values);
  Tensor constant(std::string name, const Shape& shape, std::span<const std::int32_t> values);
  /// A number for an input of an operator that takes activations, of the type of the others.
  Tensor scalar(float value);
  /// An i32 for an input that takes integers.
  Tensor integer(std::int32_t value);
  /// A tensor of the file: a matrix in its own type where an operator takes a weight, else widened to f32, but f16 stays f16
  /// where an activation is taken. Errors: kNotFound (with the nearest name), kInvalidArgument.
  Tensor weight(const Weights& weights, std::string_view name, const WeightOptions& options = {});
  /// Makes `tensor`, which an operator or a view has made or a cache is, readable by Program::read. Names: none twice.
  void output(std::string name, Tensor tensor);

  /// The operator called `op`, with inputs and attributes by name, as in add("rope", {{"input", x}, {"positions", p}},
  /// {{"theta", 1e6}}): for all that has no function below. Empty tensors are inputs left out. Gives the first output.
  Tensor add(std::string_view op, const std::vector<NamedTensor>& inputs, const std::vector<Attribute>& attributes = {});

  /// activation(x weight^T + bias) + residual: (..., K) times (N, K) is (..., N).
  Tensor linear(Tensor x, Tensor weight, const LinearOptions& options = {});
  Tensor linear(Tensor x, Tensor weight, Activation activation);
  /// Rows of weight (V, D) by ids of one or two dimensions: (...) to (..., D).
  Tensor embedding(Tensor ids, Tensor weight);
  /// scale a b over the last two dimensions, of which either may be transposed; those before broadcast.
  Tensor matmul(Tensor a, Tensor b, bool transpose_a = false, bool transpose_b = false, float scale = 1);
  /// Of the last dimension; weight and bias may be empty.
  Tensor layer_norm(Tensor x, Tensor weight, Tensor bias, float epsilon = 1e-5f);
  /// Of the last dimension; the weight may be empty.
  Tensor rms_norm(Tensor x, Tensor weight, float epsilon = 1e-5f);
  /// Of each element.
  Tensor activate(Tensor x, Activation activation);
  /// activation(gate) * up
  Tensor glu(Tensor gate, Tensor up, Activation activation = Activation::kSilu);
  /// Along an axis; negative ones count from the last.
  Tensor softmax(Tensor x, int axis = -1);
  /// Element by element; shapes broadcast as in NumPy.
  Tensor add(Tensor a, Tensor b);
  Tensor add(Tensor a, float b);
  Tensor sub(Tensor a, Tensor b);
  Tensor sub(Tensor a, float b);
  Tensor mul(Tensor a, Tensor b);
  Tensor mul(Tensor a, float b);
  Tensor div(Tensor a, Tensor b);
  Tensor div(Tensor a, float b);
  /// Over one axis, which goes unless it is kept with extent 1.
  Tensor mean(Tensor x, int axis = -1, bool keep = false);
  Tensor sum(Tensor x, int axis = -1, bool keep = false);
  Tensor max(Tensor x, int axis = -1, bool keep = false);
  /// i32: where the largest of the last dimension is.
  Tensor argmax(Tensor x);
  /// The k largest of the last dimension, largest first, and where they are (i32).
  std::pair<Tensor, Tensor> top_k(Tensor x, int k);
  /// Views where strides can express them, else copies.
  Tensor reshape(Tensor x, const Shape& shape);
  Tensor transpose(Tensor x, std::initializer_list<int> permutation);
  /// Elements start, ..., end - 1 of one axis; negative axes count from the last, negative bounds from the axis's end.
  Tensor slice(Tensor x, int axis, std::int64_t start, std::int64_t end);
  /// One behind the other along an axis; at most 11.
  Tensor concat(std::span<const Tensor> tensors, int axis);
  Tensor concat(std::initializer_list<Tensor> tensors, int axis) { return concat(std::span<const Tensor>(tensors.begin(), tensors.size()), axis); }

  /// Queries (B, H, T, D), keys and values (B, G, S, D) to (B, H, T, D).
  Tensor attention(Tensor query, Tensor key, Tensor value, const AttentionOptions& options = {});
  /// Puts `update` (B, G, T, D) into rows start (i32 (B), or integer()) and on of each head of `cache`, which cache() has made;
  /// gives the cache, as it is from then on. Views that were taken of it before keep what they had.
  Tensor kv_write(Tensor cache, Tensor update, Tensor start);
  /// (B, T, H D) to (B, H, T, D).
  Tensor split_heads(Tensor x, int n_heads);
  /// (B, H, T, D) to (B, T, H D).
  Tensor merge_heads(Tensor x);
  /// Attention of x (B, T, K) to itself, with linears before and after: (B, T, N of the output). Keys and values may have fewer
  /// heads than queries: as many as their weights have rows for.
  Tensor self_attention(Tensor x, const SelfAttentionWeights& weights, int n_heads, const AttentionOptions& options = {});

  /// For Rondo's own use.
  const std::shared_ptr<models::GraphBuilder>& internal() const { return impl_; }

 private:
  std::shared_ptr<models::GraphBuilder> impl_;
};

/// What is decided when a graph is compiled.
struct ProgramOptions {
  Activations activations = Activations::kF32;  ///< what is computed is what the operators say
  bool fusion = true;  ///< false: one dispatch per operator, for tests and hunting bugs
  /// Operator name -> kernel name, to force a kernel where several could run ("linear" -> "tiled").
  std::map<std::string, std::string, std::less<>> kernels;
  std::vector<std::string> quarantine;  ///< kernels that are wrong on this device: see ModelOptions
  double max_segment_us = 100'000;  ///< predicted time above which a run is cut into several submissions
  bool profile = false;             ///< timestamps around every dispatch, slower: see take_profile
  /// Creates pipelines on the caller's threads; empty: one at a time on the calling thread.
  Executor executor;
};

/// An input or output of a Program.
struct ProgramTensor {
  std::string name;
  std::string type;         ///< "f32", "f16", "i32"; of inputs from files also "bf16", "i64", "bool" or a weight's
  Shape shape;
  std::uint64_t size_bytes = 0;  ///< dense, as set_input takes it and read gives it
};

/// A Graph compiled for a device, with its weights, caches, pipelines and recordings. The results of a run are bit-identical
/// for the same device, driver and inputs, however it is cut.
class RONDO_API Program {
 public:
  /// Chooses kernels, allocates, uploads weights, creates pipelines and records, all of it once. Blocks for as long as that
  /// takes, as Model::create and load_some together.
  /// Errors: the graph's; kFailedPrecondition (an empty handle), kInvalidArgument (no output), kUnsupported (what the device
  /// can't run, by name), kOutOfMemory, kDeviceLost, those of the weights' sources.
  static Result<Program> compile(Device& device, Graph graph, const ProgramOptions& options = {});
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  /// Returns at once, also in the middle of a run. Device memory is freed once the device is done with it, by the next call that
  /// reaches the driver on that device, or by Device::collect(). The last handle of a device waits for what is in flight.
  ~Program();

  /// What can be set, and what can be read, by name.
  std::span<const ProgramTensor> inputs() const;
  std::span<const ProgramTensor> outputs() const;
  /// Device memory that it owns, in bytes.
  std::uint64_t device_bytes() const;
  /// Dispatches of a run.
  std::uint32_t n_dispatches() const;

  /// Sets an input of a graph for the following runs: all elements, dense, in its own type; it keeps them until it is set
  /// again. Nothing waits. Errors: kNotFound (with the nearest name), kInvalidArgument (another type or number of elements, ids
  /// and lengths outside of what they count), kFailedPrecondition (a run is in flight), kOutOfMemory.
  Status set_input(std::string_view name, std::span<const float> values);
  Status set_input(std::string_view name, std::span<const std::int32_t> values);
  Status set_input(std::string_view name, std::span<const std::byte> bytes);
  /// All caches are zeros again at the next run, or what their file says. Errors: kFailedPrecondition (a run is in flight),
  /// those of the file's source.
  Status reset_caches();

  /// Starts a run: submits as much of it as bounds allow, at most two segments. Nothing waits.
  /// Errors: kFailedPrecondition (a run is in flight, an input was never set), kInvalidArgument (rows beyond a cache's end),
  /// kDeviceLost, kOutOfMemory.
  Status submit();
  /// Submits more of the run where earlier segments have finished: for loops that do not wait. Errors: the device's.
  Status advance();
  /// Whether a run is in flight; advance() and wait() end it.
  bool running() const;
  /// Sleeps until the run has ended, submitting its segments one after the other, at most `timeout`: then kTimeout. Ok where
  /// nothing runs.
  Status wait(std::chrono::nanoseconds timeout);
  /// submit() and wait() without end. Blocks. Errors: theirs, kInternal (the device has done no work for two minutes).
  Status run_and_wait();

  /// Copies an output of the last run, dense; floats of an f16 output are widened. Errors: kNotFound (with the nearest name),
  /// kInvalidArgument (another type or number of elements), kFailedPrecondition (there was no run, or one is in flight).
  Status read(std::string_view name, std::span<float> out) const;
  Status read(std::string_view name, std::span<std::int32_t> out) const;
  Status read(std::string_view name, std::span<std::byte> out) const;

  /// The last run, dispatch after dispatch; nothing unless ProgramOptions::profile. Errors: the device's.
  Result<ProfiledStep> take_profile();

  /// For Rondo's own use.
  models::GraphProgram& internal() { return *impl_; }

 private:
  explicit Program(std::unique_ptr<models::GraphProgram> impl);
  std::unique_ptr<models::GraphProgram> impl_;
};

}  // namespace rondo
