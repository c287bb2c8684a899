#include "models/arch/architecture.h"

#include <algorithm>

#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

#define RONDO_ARCHITECTURE(name) extern const Architecture name##_architecture;
#include "models/arch/architectures.inc"
#undef RONDO_ARCHITECTURE

namespace {

constexpr const Architecture* kArchitectures[] = {
#define RONDO_ARCHITECTURE(name) &name##_architecture,
#include "models/arch/architectures.inc"
#undef RONDO_ARCHITECTURE
};

}  // namespace

Result<Network> open_network(const GgufFile& file, const ByteSource& source) {
  RONDO_ASSIGN(const std::string_view name, file.string("general.architecture"));
  std::vector<std::string_view> known;
  for (const Architecture* architecture : kArchitectures) {
    if (name == architecture->name) return architecture->open(file, source);
    known.emplace_back(architecture->name);
  }
  return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key 'general.architecture' is '{}', which is not there yet ({} are)", file.name(), printable(name),
                                                      fmt::join(known, ", ")));
}

}  // namespace rondo::models
