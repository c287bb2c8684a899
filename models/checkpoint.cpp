#include "models/checkpoint.h"

#include <utility>

#include "models/arch/architecture.h"

namespace rondo::models {

Result<std::unique_ptr<const Checkpoint>> open_checkpoint(ByteSource source) {
  RONDO_ASSIGN(GgufFile file, GgufFile::parse(source));
  RONDO_ASSIGN(Network network, open_network(file, source));
  const std::uint64_t n_parameters = count_parameters(network.blocks);
  return std::make_unique<const Checkpoint>(Checkpoint{std::move(source), std::move(file), std::move(network), n_parameters});
}

}  // namespace rondo::models
