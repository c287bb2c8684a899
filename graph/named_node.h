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

#include "graph/graph.h"

namespace rondo::graph {

/// An attribute's value as a file spells it. Integers are numbers too; a list is of integers.
using AttributeValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

struct NamedNode {
  std::string op;
  std::vector<std::pair<std::string, TensorId>> inputs;  ///< in any order; none twice
  std::vector<std::pair<std::string, AttributeValue>> attributes;
};

/// What an input is for. The kind decides how a file's tensor is stored.
enum class InputRole : std::uint8_t {
  kActivation,  ///< f32 or f16, any strides
  kMatrix,      ///< (N, K) or what flattens to it, of any weight type
  kParameter,      ///< f32, dense, or f16 that is widened: a weight or bias of norms and the like
  kKeys,        ///< (B, G, S, D) of f32, f16 or q8_0; rows of f16 and q8_0 from files are padded to words
  kCache,       ///< the same, changed in place
  kIntegers,    ///< i32
  kMask,        ///< f32 that is added, or boolean as i32
  kConstant,    ///< f32 that kernels are built for: known when the graph is
  kStepState,   ///< i32 of the step state, the token array or the mirror, changed in place
};

struct NamedInput {
  const char* name = nullptr;
  InputRole role = InputRole::kActivation;
  bool optional = false;
};

/// The inputs of `op` in the order of its node's, or an empty list if there is no such operator or view. concat takes the
/// first ones of its list, at least one.
std::span<const NamedInput> named_inputs(std::string_view op);

/// Adds the node. slice, transpose and reshape, which are no operators, make views (or a copy, where no view can be had).
/// Returns its outputs. Errors: kInvalidArgument, beginning with the operator in brackets (no such operator, input or
/// attribute; a missing or repeated one; an attribute of another type or out of range; what `infer` refuses).
Result<std::vector<TensorId>> add_named_node(Graph& graph, const NamedNode& node);

}  // namespace rondo::graph
