// What stands behind the public Graph (include/rondo/graph.h): values, scopes, and the first error.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/graph.h>

#include "models/formats/graph_file.h"
#include "models/formats/graph_inputs.h"

namespace rondo::models {

/// A safetensors file whose header has been read.
struct WeightsFile {
  ByteSource source;
  SafetensorsFile header;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) : inputs_(file_.graph) { file_.graph.name = std::move(name); }
  /// A graph that is whole already.
  explicit GraphBuilder(GraphFile file) : inputs_(file_.graph), loaded_(std::move(file)) { file_.graph.name = loaded_->graph.name; }

  const Status& status() const { return status_; }
  /// Keeps the first error, in front of it the scopes, and gives an empty tensor.
  Tensor fail(Status status);

  void open_scope(std::string name) { scopes_.push_back(std::move(name)); }
  void close_scope() { scopes_.pop_back(); }

  /// An input that programs set, or a cache.
  Tensor declare(std::string name, Type type, const Shape& shape, bool cache);
  /// `elements` without a read function: set before a run. `name` is the program's where `settable`.
  Tensor add_input(DescribedInput input, InputElements elements, bool changed, bool settable);
  Tensor add_constant(std::string name, const Shape& shape, Type type, std::span<const std::byte> bytes);
  Tensor add_number(graph::AttributeValue number);
  Tensor add_weight(const Weights& weights, std::string_view name, const WeightOptions& options);
  void add_output(std::string name, const Tensor& tensor);
  /// All outputs of the node; one empty tensor after an error.
  std::vector<Tensor> add_node(std::string_view op, const std::vector<NamedTensor>& inputs, const std::vector<Attribute>& attributes);

  /// The graph with its step state, ready to be compiled; the builder has none from then on. Errors: status(), kInvalidArgument
  /// (no output).
  Result<GraphFile> finish();

 private:
  /// What a Tensor stands for: an input, a number, or what a node made.
  struct Value {
    std::string name;
    std::optional<std::size_t> input;
    std::optional<graph::AttributeValue> number;
    graph::TensorId made = graph::kNone;
    bool changed = false;
  };

  static std::uint64_t next_id();
  bool ready();
  std::string scoped(std::string_view name) const;
  Tensor keep(Value value, const Shape& shape, Type type);
  Tensor keep_made(graph::TensorId id);
  const Value* find(const Tensor& tensor) const;
  Result<graph::TensorId> tensor_for(std::string_view op, const graph::NamedInput& role, const graph::NamedNode& node, const NamedTensor& input);
  void settle_views(const graph::NamedNode& node);
  Status add_inputs(std::string_view op, const std::vector<NamedTensor>& inputs, graph::NamedNode& node);

  Status status_;
  const std::uint64_t id_ = next_id();  ///< in each Tensor, to tell those of other graphs, also of some that are gone
  GraphFile file_;
  GraphInputs inputs_;
  std::optional<GraphFile> loaded_;
  std::vector<Value> values_;
  std::vector<std::string> scopes_, input_names_, node_names_;
};

/// The public shape.
Shape public_shape(const graph::Shape& shape);

}  // namespace rondo::models
