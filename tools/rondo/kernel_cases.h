// The shapes that kernels are measured at: those of two well-known Llamas, in one table (kernel_cases.cpp).
//
// Pure: graphs of one operator, with the bytes and operations that the operator needs however it is computed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "models/graph_run.h"

namespace rondo::tools {

/// The extents of a Llama that operators see.
struct LlamaExtents {
  const char* name;  ///< "135m", "8b"
  bool large;        ///< not for CPU drivers
  std::int64_t width, heads, kv_heads, head_dim, ffn, vocabulary;
};

struct StandardShape;

/// One kernel at one shape.
struct KernelCase {
  graph::Op op{};
  const char* kernel = "";
  const StandardShape* shape = nullptr;
  const LlamaExtents* model = nullptr;
  std::int64_t rows = 1;   ///< of the step: 1 for decode
  std::int64_t depth = 0;  ///< tokens in the cache before
  std::optional<graph::Type> type;  ///< of the weight or the cache
};

/// A case's graph of one node, and what it takes at least.
struct CaseGraph {
  graph::Graph graph;
  models::StorageContents contents;
  std::string shape;  ///< in words: "135m: 64 rows, 1536 to 576"
  double bytes = 0;   ///< that must be read and written once
  double flops = 0;   ///< a multiplication and an addition are two; 0 where arithmetic is not the point
};

/// "linear/wide"
std::string kernel_name(const KernelCase& one);
/// "q4_0", or "" where there is neither a weight nor a cache.
std::string type_of(const KernelCase& one);

/// Every kernel that the operators register, at every standard shape of its operator, of kernels whose OP/KERNEL contains
/// `filter`, or begins with it where it has an operator and a slash; those of large models only with `large`.
std::vector<KernelCase> kernel_cases(std::string_view filter, bool large);

/// The names of all operators, for messages: "step_begin, embedding, ...".
std::string operator_names();

/// The graph of a case. Never fails; a shape that its operator refuses is in the graph's status.
CaseGraph build_case(const KernelCase& one);

}  // namespace rondo::tools
