#include "tools/simulator/shader_sources.h"

#include <cstddef>
#include <map>
#include <mutex>

#include "runtime/packed_spirv.h"
#include "shaders_with_lines.inc"

namespace rondo::simulator {

const std::vector<std::uint32_t>& shader_with_lines(runtime::Shader shader) {
  static std::mutex mutex;
  static std::map<runtime::Shader, std::vector<std::uint32_t>> unpacked;
  const std::scoped_lock lock(mutex);
  const auto [found, is_new] = unpacked.try_emplace(shader);
  if (is_new) found->second = runtime::unpack_module(kPackedShaders, kShaders, static_cast<std::size_t>(shader));
  return found->second;
}

}  // namespace rondo::simulator
