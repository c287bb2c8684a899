// rondo eval --graph: an operator graph from a file, on the device or through the references.
#pragma once

#include <string>
#include <vector>

#include <rondo/byte_source.h>

#include "tools/rondo/subcommands.h"

namespace rondo::tools {

/// The files, in their order. Errors: those of open_file.
Result<std::vector<ByteSource>> open_inputs(const std::vector<std::string>& paths);

/// Computes the graph's outputs and writes them all, or nothing. `closed` becomes what check_validation returns.
/// Errors: those of read_graph_file, graph::lower, the device and write_safetensors.
Status evaluate_graph(const GlobalFlags& flags, const EvalFlags& own, int& closed);

}  // namespace rondo::tools
