#include "tools/simulator/shader_sources.h"

#include <cstddef>

#include "runtime/packed_spirv.h"
#include "shaders_with_lines.inc"

namespace rondo::simulator {

std::vector<std::uint32_t> shader_with_lines(runtime::Shader shader) {
  return runtime::unpack_module(kPackedShaders, kShaders, static_cast<std::size_t>(shader));
}

}  // namespace rondo::simulator
