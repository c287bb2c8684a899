// A graph file's JSON as plain structs: inputs, nodes and outputs by name, in the order of the file.
//
// Pure: reads text, knows no tensors. What it returns is well formed: every name that is read is an input or an output of an
// earlier node, every operator exists, and no name means two things.
#pragma once

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

struct DescribedInput {
  std::string name;
  GraphInputType type;
  graph::Shape shape;  ///< positive extents, at most 2^31 - 1 elements; rows of kBlocks are whole blocks, but any of q8_0 (B, G, S, D)
};

/// Refuses blocks that rows of `input` do not fill. Errors: kInvalidArgument, beginning with the field.
Status check_whole_blocks(const DescribedInput& input);

struct DescribedNode {
  std::string op;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< the operator's name for it, and the tensor's
  std::vector<std::pair<std::string, graph::AttributeValue>> attributes;
  std::vector<std::string> outputs;
};

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
