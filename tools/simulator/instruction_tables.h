// Which operation an instruction becomes, where it is one for each component.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include <spirv/unified1/spirv.hpp11>

#include "tools/simulator/module.h"

namespace rondo::simulator {

/// "OpLoad", or "instruction 61" where the headers have no name for it.
std::string instruction_name(spv::Op op);

/// "Normalize" of GLSL.std.450, or its number.
std::string extended_instruction_name(std::uint32_t number);

struct Simple {
  Code code;
  bool swapped = false;  ///< its operands
};

const std::unordered_map<spv::Op, Simple>& simple_instructions();
/// Of GLSL.std.450.
const std::unordered_map<std::uint32_t, Code>& extended_instructions();
/// Of what lanes hold together.
const std::unordered_map<spv::Op, Code>& reductions();
const std::unordered_map<spv::Op, Code>& atomics();

}  // namespace rondo::simulator
