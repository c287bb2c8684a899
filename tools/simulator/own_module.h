// A module of one's own: what it is given, from the command line.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/simulator/simulate.h"

namespace rondo::simulator {

struct OwnModule {
  std::string path;
  std::vector<std::string> buffers;   ///< BINDING=zeros:BYTES, =random:BYTES, =unwritten:BYTES or =FILE
  std::vector<std::string> outputs;   ///< BINDING=FILE, written afterwards
  std::string push, constants;        ///< numbers with commas: 3, 0x10, 1.5f
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::uint32_t subgroup_size = 32;
  std::string spirv_tools;            ///< as of ReadOptions
};

/// 32-bit words of a text like "3,0x10,-1,1.5f". Errors: kInvalidArgument, quoting what is none.
Result<std::vector<std::uint32_t>> parse_words(const std::string& text);

/// What was run, and what came of it.
struct OwnRun {
  Module module;
  Report report;
};

/// Errors: kNotFound and kIo (files), kInvalidArgument (flags), those of read_module and simulate.
Result<OwnRun> run_own_module(const OwnModule& own);

}  // namespace rondo::simulator
