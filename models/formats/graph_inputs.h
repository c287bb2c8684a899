// Inputs of graphs by name: how each is stored for the nodes that read it, and how its elements get there.
//
// Used while a graph is built, from a file or by a program; borrows the graph. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/byte_source.h>

#include "models/formats/graph_description.h"

namespace rondo::models {

/// How an input is stored.
enum class InputForm : std::uint8_t {
  kDense,      ///< f32
  kHalves,     ///< f16, dense
  kCacheRows,  ///< f16 or q8_0 (B, G, S, D), as graph/cache_layout.h says
  kIntegers,   ///< i32
  kWeight,     ///< a matrix of a weight type
  kConstant,   ///< f32 in the graph itself
};

/// Elements of an input as files have them, from `offset_bytes` on; no read function where a program sets them later.
struct InputElements {
  ByteSource source;
  std::uint64_t offset_bytes = 0;
};

/// An input in one of its forms.
struct StoredInput {
  DescribedInput input;
  InputForm form = InputForm::kDense;
  graph::StorageId storage = graph::kNone;
  InputElements elements;
  bool fixed = false;  ///< a constant or a number in a node: nothing that can be set
};

/// Bytes of `input` where files have it: no gaps, blocks in rows.
std::uint64_t element_bytes_of(const DescribedInput& input);
/// Bytes of its storage in that form, a multiple of 4; of a weight's rows in file order.
std::uint64_t stored_bytes_of(const DescribedInput& input, InputForm form);

/// Fills `out`, of stored_bytes_of(), with the elements as kernels read them; a weight's rows as files have them, those of a
/// transposed one gathered. Reads in pieces. Errors: kInvalidArgument (integers beyond 32 bits), the source's.
Status read_elements(const DescribedInput& input, InputForm form, const InputElements& elements, std::span<std::byte> out);

class GraphInputs {
 public:
  /// `graph` outlives this.
  explicit GraphInputs(graph::Graph& graph) : graph_(graph) {}

  /// Another input; returns its number.
  std::size_t add(DescribedInput input, InputElements elements, bool fixed = false);
  const DescribedInput& input(std::size_t number) const { return inputs_[number].input; }

  /// The input's tensor for a node of operator `op` that reads it as `role`; made when first asked for. `changed`: some node
  /// changes it in place. Errors (beginning with the node's name for it): kInvalidArgument (a type that the role does not
  /// take, a shape that a weight or a cache can't have, an input that is changed and read in another form).
  Result<graph::TensorId> find_or_make(std::string_view op, const graph::NamedInput& role, std::size_t number, bool changed);

  /// The tensor that is changed in place, kNone if no node has asked for it.
  graph::TensorId find_changed(std::size_t number) const;

  /// Inputs that nodes read, by storage. Constants are in the graph.
  std::vector<StoredInput> stored() const;

 private:
  struct Declared {
    DescribedInput input;
    InputElements elements;
    bool fixed = false;
  };

  Result<graph::TensorId> make(std::string_view op, const Declared& declared, InputForm form, bool changed);
  Result<graph::TensorId> add_constant(const Declared& declared);

  graph::Graph& graph_;
  std::vector<Declared> inputs_;
  std::map<std::pair<std::size_t, InputForm>, graph::TensorId> made_;
  std::map<graph::StorageId, std::pair<std::size_t, InputForm>> stored_;
};

/// Adds a number that `node`, which has its tensors already, reads as `role`: i32 where integers are read, else of the
/// activations' type. Errors: kInvalidArgument (a role that takes no number).
Result<graph::TensorId> add_literal(graph::Graph& graph, GraphInputs& inputs, const graph::NamedNode& node, const graph::NamedInput& role, const graph::AttributeValue& number);

/// The channels of a patch_embed's weight (D, C, P, P) are the pixels': its matrix alone does not tell that order from others.
/// Errors: kInvalidArgument.
Status check_patch_channels(const graph::Graph& graph, const graph::NamedNode& node, const DescribedInput& weight);

}  // namespace rondo::models
