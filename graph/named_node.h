// Nodes by name, as graph files and checks write them: an operator with its inputs and attributes, each by name.
//
// The names are those of the operator table. Pure; nothing is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/operator.h"

namespace rondo::graph {

/// An attribute's value as a file spells it. Integers are numbers too; a list is of integers.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

struct NamedNode {
  std::string op;
  std::vector<std::pair<std::string, TensorId>> inputs;  ///< in any order; none twice
  std::vector<std::pair<std::string, AttributeValue>> attributes;
};

/// The inputs of `op` in the order of its node's, or an empty list if there is no such operator or view. concat takes the
/// first ones of its list, at least one.
std::span<const NamedInput> named_inputs(std::string_view op);

/// "there is no operator 'rms_nrom'; did you mean 'rms_norm'?"
std::string no_such_operator(std::string_view op);

/// Adds the node. slice, transpose and reshape, which are no operators, make views (or a copy, where no view can be had).
/// Returns its outputs. Errors: kInvalidArgument, beginning with the operator in brackets (no such operator, input or
/// attribute; a missing or repeated one; an attribute of another type or out of range; what `infer` refuses).
Result<std::vector<TensorId>> add_named_node(Graph& graph, const NamedNode& node);

}  // namespace rondo::graph
