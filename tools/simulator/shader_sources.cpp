#include "tools/simulator/shader_sources.h"

#include <cstddef>
#include <span>

#include "runtime/kernel.h"
#include "shaders_with_lines.inc"

namespace rondo::simulator {

std::vector<std::uint32_t> shader_with_lines(runtime::Shader shader) {
  const PackedShader& packed = kShaders[static_cast<std::size_t>(shader)];
  return runtime::unpack_words(std::span(kPackedShaders).subspan(packed.offset, packed.size_bytes), packed.n_words);
}

}  // namespace rondo::simulator
