// One operator with its inputs, as a line of text: what the table of cases holds, what a failing line names, and what
// `rondo check --case` takes.
//
//   attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), lengths [37, 0], causal, window_back 5
//
// The operator, then terms separated by commas, in any order. A term is one of
// - an input: its name, its type (f32 if none is given), its shape, () for a scalar, then any of
//     transposed      the last two axes are swapped in memory
//     permuted        all axes are in reverse order in memory
//     sliced          the middle of a larger tensor (rows only, of a matrix)
//     stepped         every second element along each axis of a larger tensor
//     joined          heads of one tensor (B, T, heads of all inputs that are joined, D)
//     * 0.001         how large its values are
//   or its integers: lengths [37, 0], positions (2, 3) [0, 1, 2, 5, 6, 7];
// - an attribute of the operator: `causal` (true), `axis -2`, `activation gelu`, `before [0, 1]`;
// - of the step state: `valid [5, 0]` (rows of each sequence that count), `inactive [1]` (sequences), and `position`, `seed`,
//   `temperature`, `top_k`, `top_p`, `min_p`, `repeat_penalty`, `repeat_last_n` behind `state.`, `state.stop [3, 7]`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

#include "graph/named_node.h"
#include "graph/operator.h"
#include "tools/check/op_case.h"

namespace rondo::check {

/// Where an input's elements lie.
enum class Layout : std::uint8_t { kDense, kTransposed, kPermuted, kSliced, kStepped, kJoined };

/// One input of a case.
struct CaseInput {
  std::string name;
  graph::InputRole role{};  ///< what the operator takes it for
  graph::Type type = graph::Type::kF32;
  bool boolean = false;  ///< a mask of trues and falses
  graph::Shape shape;
  Layout layout = Layout::kDense;
  float scale = 1;
  std::vector<std::int32_t> integers;  ///< given ones
};

/// A case's text, understood.
struct CaseText {
  std::string text;
  std::string op;
  std::vector<CaseInput> inputs;
  std::vector<std::pair<std::string, graph::AttributeValue>> attributes;
  std::vector<std::int64_t> valid, inactive, stop_ids;
  std::map<std::string, double> state;
};

/// The table of a case's operator; views become copies, if anything.
const graph::Operator& table_of(std::string_view op);

/// An activation is f16, which takes a device with 16-bit storage.
bool has_f16_activations(const CaseText& text);

/// Errors: kInvalidArgument, quoting the term that can't be understood.
Result<CaseText> parse_case(std::string_view text);

/// What the inputs hold. Integers, masks and weights' scales are made to fit each.
enum class Values : std::uint8_t {
  kInteger,  ///< whole numbers, so small that sums are exact
  kRandom,
  kLarge,    ///< as large as the operator has to bear
  kNan,      ///< random, but one element of one input is NaN
  kInfinity, ///< the same with an infinity
  kBytes,    ///< random, but activations of linears are bytes times a scale of 32, which rounding to bytes leaves what they are
};

/// "integer", "random", ...
const char* values_name(Values values);

/// The case's graph of one node with all it reads. `special` is the input that gets the NaN or infinity, an index into
/// `inputs`. `rounded`: "input" is rounded to bytes, 32 columns with a scale of their largest magnitude / 127, as linears with dot
/// products round it; 32 of which one is not finite become NaN. Errors: kInvalidArgument, what `infer` refuses.
Result<OpCase> build_case(const CaseText& text, Values values, std::uint32_t seed, std::size_t special = 0, bool rounded = false);

}  // namespace rondo::check
