// rondo info --graph: what a graph file holds and what running it takes. Needs no Vulkan.
#pragma once

#include "tools/rondo/subcommands.h"

namespace rondo::tools {

/// Prints operators, inputs, outputs and memory, and returns the exit status.
int run_graph_info(const GlobalFlags& flags, const InfoFlags& own);

}  // namespace rondo::tools
