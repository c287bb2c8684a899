#include "models/arch/architecture.h"

#include "models/arch/families.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

Result<Network> open_network(const GgufFile& file, const ByteSource& source) {
  RONDO_ASSIGN(const std::string_view name, file.string("general.architecture"));
  std::vector<std::string_view> known;
  for (const Family& family : families()) {
    known.emplace_back(family.name);
    if (name != family.name) continue;
    RONDO_ASSIGN(DecoderConfig config, read_decoder_config(file, source, family));
    return open_decoder(file, std::move(config));
  }
  return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key 'general.architecture' is '{}', which is not there yet ({} are)", file.name(), printable(name),
                                                      fmt::join(known, ", ")));
}

}  // namespace rondo::models
