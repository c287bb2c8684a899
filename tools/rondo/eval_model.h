// rondo eval --model: inputs of all architectures from a safetensors file, and what a model makes of them.
#pragma once

#include "tools/rondo/subcommands.h"

namespace rondo::tools {

/// `closed`: the exit code of the validation layers.
Status evaluate_model(const GlobalFlags& flags, const EvalFlags& own, int& closed);

}  // namespace rondo::tools
