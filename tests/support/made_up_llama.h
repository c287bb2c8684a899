// A small decoder that no file holds: its network, places for its steps, and its run in the interpreter.
#pragma once

#include <string>
#include <vector>

#include <rondo/status.h>

#include "graph/graph.h"
#include "models/arch/decoder.h"

namespace rondo::tests {

struct MadeUpOptions {
  std::uint32_t n_layers = 2;
  std::uint32_t n_kv_heads = 2;
  graph::Type kv_type = graph::Type::kF16;
  graph::Type weight_type = graph::Type::kQ8_0;
  graph::Type value_type = graph::Type::kQ8_0;  ///< another type than the others' keeps v out of q's and k's block
  graph::Type up_type = graph::Type::kQ8_0;
  bool biases = false;  ///< on q, k and v, as Qwen2 has them, and on the output
};

struct MadeUpLlama {
  explicit MadeUpLlama(const MadeUpOptions& options);

  /// The graph of a step with every place set, constants too.
  graph::Graph build(models::Role role, std::int64_t rows) const;
  /// Runs `step` in the interpreter after `n_past` tokens of made-up cache; the bytes of storage `id` afterwards.
  Result<std::vector<std::vector<std::byte>>> interpret(graph::Graph step, std::int32_t n_past, std::int32_t count) const;

  models::Network network;
  models::StepPlaces places;
};

}  // namespace rondo::tests
