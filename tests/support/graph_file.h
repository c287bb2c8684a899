// Operator cases from files: graph.json, inputs.safetensors and expected.safetensors of one folder, as an OpCase.
#pragma once

#include <string>
#include <vector>

#include "tools/check/op_case.h"

namespace rondo::tests {

using check::OpCase;

struct GraphFile {
  struct Output {
    std::string name;
    graph::TensorId tensor = graph::kNone;
    std::vector<float> expected;  ///< row-major; indices as floats, which hold them exactly
  };
  OpCase op;
  std::vector<Output> outputs;
};

/// Reads the case in `folder`. Errors: kUnsupported for an operator, input or attribute that the library hasn't got,
/// naming it; anything else means that the case is broken.
Result<GraphFile> read_graph_file(const std::string& folder);

/// The elements of `tensor` in row-major order, out of its storage's bytes.
std::vector<float> elements_of(const graph::Tensor& tensor, std::span<const std::byte> bytes);

}  // namespace rondo::tests
