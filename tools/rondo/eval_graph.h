// rondo eval --graph: an operator graph from a file, on the device or through the references.
#pragma once

#include <string>

#include "tools/rondo/command.h"
#include "tools/rondo/profile.h"

namespace rondo::tools {

struct GraphEvalFlags {
  std::string graph, inputs, outputs;  ///< files
  bool reference = false;              ///< on the CPU, without Vulkan
  ProfileFlags profile;
};

/// Computes the graph's outputs and writes them all, or nothing. `closed` becomes what check_validation returns.
/// Errors: those of read_graph_file, graph::lower, the device and write_safetensors.
Status evaluate_graph(const GlobalFlags& flags, const GraphEvalFlags& own, int& closed);

}  // namespace rondo::tools
