// What an operator is: all that is known of it in one table, declared in its own file. The tables are in the order of operators.inc.
//
// An operator's file reads: inputs by name -> infer (check, make outputs) -> kernels and their predicates -> lower (push
// constants, grid, cost) -> reference (plain loops, double inside) -> attributes as files spell them -> the table. Everything
// here is pure: no Vulkan, no files.
#pragma once

#include <span>
#include <string_view>

#include <rondo/status.h>

#include "graph/graph.h"

namespace rondo::graph {

class AttributeReader;
class Lowering;
class HostTensors;

/// What an input is for. The kind decides how a file's tensor is stored.
enum class InputRole : std::uint8_t {
  kActivation,  ///< f32 or f16, any strides
  kMatrix,      ///< (N, K) or what flattens to it, of any weight type
  kParameter,   ///< f32, dense, or f16 that is widened: a weight or bias of norms and the like
  kKeys,        ///< (B, G, S, D) of f32, f16 or q8_0; rows of f16 and q8_0 from files are padded to words
  kCache,       ///< the same, changed in place
  kIntegers,    ///< i32
  kMask,        ///< f32 that is added, or boolean as i32
  kConstant,    ///< f32 that kernels are built for: known when the graph is
  kStepState,   ///< i32 of the step state, the token array or the mirror
};

constexpr bool kOptional = true;

struct NamedInput {
  const char* name = nullptr;
  InputRole role = InputRole::kActivation;
  bool optional = false;
  bool written = false;  ///< changed in place: nodes that read it keep their place before or after this one
};

/// How the rows that the step state counts lie in the outputs.
enum class StepRows : std::uint8_t {
  kFirstAxis,  ///< all dimensions but the last are rows, sequence after sequence
  kHeads,      ///< (B, H, T, D): along axis 2
  kSequences,  ///< one thing, or none, for each sequence of (B, ...)
};

/// What results may be off, and whether sums of whole numbers come out exactly (docs/correctness.md says why). tools/check has
/// the bounds.
enum class ErrorClass : std::uint8_t {
  kExact,      ///< moves, compares or rounds by integer arithmetic: equal
  kExactSums,  ///< sums and products: of few whole numbers exact
  kSums,       ///< the same with a quotient, a root or a table in it
  kFunctions,  ///< exp, tanh and the like
};

/// What `rondo check` needs to know of an operator's numbers.
struct Accuracy {
  ErrorClass error = ErrorClass::kExact;
  float large = 1e6f;      ///< magnitude of inputs, far from what models have, that it can still hold
  float large_f16 = 3e4f;  ///< the same in f16, whose results must stay below 65,504
};

struct Operator {
  const char* name = nullptr;
  /// Why people's graphs can't have it, as in "belongs to sessions"; null where they can.
  const char* reserved = nullptr;
  /// In the order of a node's inputs.
  std::span<const NamedInput> inputs = {};
  /// A node takes the first ones of `inputs`, at least one.
  bool any_number_of_inputs = false;
  /// Asks for every attribute that there is; null where there is none.
  Attributes (*read_attributes)(AttributeReader& reader) = nullptr;
  StepRows rows = StepRows::kFirstAxis;
  bool all_rows = false;  ///< rows that the step does not count are written as well, where their sequence is active
  Accuracy accuracy = {};
  /// Checks the inputs of a node and adds its outputs to the graph. Refuses in words; the caller adds "[name] ".
  Status (*infer)(Graph& graph, Node& node) = nullptr;
  /// Emits the node's dispatches.
  Status (*lower)(const Node& node, Lowering& lowering) = nullptr;
  /// Computes the node on the host, or null for a fused operator, which is run as its decomposition.
  Status (*reference)(const Node& node, HostTensors& tensors) = nullptr;
  /// Fused operators: the same meaning in simple operators, appended to `graph` (tensors) and returned (nodes).
  std::vector<Node> (*decompose)(Graph& graph, const Node& node) = nullptr;
  /// Names of the kernels that can be forced, best known first where several are allowed.
  std::span<const char* const> kernels = {};
  /// Labels of its dispatches end in the type of weights or cache that the kernel is specialized for.
  bool kernels_have_types = false;
};

/// The operator's table. Never fails.
const Operator& operator_of(Op op);

/// The operator called `name`, if there is one.
std::optional<Op> find_operator(std::string_view name);

/// Whether `id`, a count of rows, is kNone or the one that step_begin gives: what every kernel knows from the step state.
bool is_step_count(const Graph& graph, TensorId id);

/// Whether the node changes, in place, what its input `index` shows.
bool writes_input(const Node& node, std::size_t index);

/// For `decompose`: removes the nodes added since there were `before`, and lets the last write the outputs of `fused`.
std::vector<Node> take_nodes_from(Graph& graph, std::size_t before, const Node& fused);

/// The attributes of a node as the struct its operator takes (defaults where the node carries none).
template <typename T>
T attributes_of(const Node& node) {
  const T* found = std::get_if<T>(&node.attributes);
  return found ? *found : T{};
}

}  // namespace rondo::graph
