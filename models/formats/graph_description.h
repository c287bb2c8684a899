// A graph file's JSON as plain structs: inputs, nodes and outputs by name, in the order of the file.
//
// Pure: reads text, knows no tensors. What it returns is well formed: every name that is read is an input or an output of an
// earlier node, every operator exists, and no name means two things.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rondo/status.h>

#include "graph/named_node.h"
#include "models/formats/safetensors.h"

namespace rondo::models {

/// How elements of an input are spelled in graph and safetensors file.
struct GraphInputType {
  enum class Kind : std::uint8_t { kFloat, kInteger, kBool, kBlocks };
  Kind kind = Kind::kFloat;
  graph::Type type = graph::Type::kF32;  ///< kFloat and kBlocks: of the elements; else kI32, what kernels read
  SafetensorsDtype dtype = SafetensorsDtype::kF32;
  std::string name;  ///< "f32", "q8_0", ...
};

/// The type called `name`; those with blocks in either case, as "q4_K" and "q4_k".
std::optional<GraphInputType> find_input_type(const std::string& name);

struct DescribedInput {
  std::string name;
  GraphInputType type;
  graph::Shape shape;  ///< positive extents, at most 2^31 - 1 elements; rows of kBlocks are whole blocks, but any of q8_0 (B, G, S, D)
  bool transposed = false;  ///< a matrix that is stored (K, N), which is its shape here, and read as the weight (N, K)
  /// Whether the graph says them; else they are what the safetensors file has.
  bool has_type = true, has_shape = true;
};

/// Refuses blocks that rows of `input` do not fill. Errors: kInvalidArgument, beginning with the field.
Status check_whole_blocks(const DescribedInput& input);

/// The shape that a safetensors file has for it: the input's, of blocks with bytes for the last dimension.
std::vector<std::uint64_t> stored_shape(const DescribedInput& input);

/// Sets type and shape that the graph leaves open to those of the file's tensor. Errors: kInvalidArgument (a dtype or a shape
/// that no input has, blocks of which nobody says what they are), beginning with what is wrong.
Status complete_from(const SafetensorsEntry& entry, DescribedInput& input);

/// What a node reads: a tensor by name, or a number.
struct DescribedOperand {
  std::string role;    ///< the operator's name for it
  std::string tensor;  ///< "" for a number
  std::optional<graph::AttributeValue> number;  ///< std::int64_t or double
};

struct DescribedNode {
  std::string op;
  std::string name;  ///< for messages, or ""
  std::vector<DescribedOperand> inputs;
  std::vector<std::pair<std::string, graph::AttributeValue>> attributes;
  std::vector<std::string> outputs;
};

/// How messages call node `index`: `node 3 "query" (linear)`.
std::string node_name(const DescribedNode& node, std::size_t index);

struct GraphDescription {
  std::vector<DescribedInput> inputs;  ///< by name
  std::vector<DescribedNode> nodes;
  std::vector<std::string> outputs;  ///< at least one, none twice
};

/// Reads the text of a graph file; `file` names it in messages. Memory stays below 64 MB, whatever the text.
/// Errors, in one line that begins with `file`, the node's index and operator: kCorruptData (not JSON, unknown or missing
/// fields, fields of another type), kInvalidArgument (unknown types and operators, operators that files can't have, shapes
/// that are empty or too large, names that are missing, given twice, or made by a later node).
Result<GraphDescription> parse_graph_description(std::string_view text, std::string_view file);

}  // namespace rondo::models
