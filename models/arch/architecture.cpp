#include "models/arch/architecture.h"

#include "models/arch/encoder.h"
#include "models/arch/families.h"
#include "models/arch/seq2seq.h"
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
  for (const char* encoder : encoder_architectures()) {
    known.emplace_back(encoder);
    if (name == encoder) return open_encoder(file, name);
  }
  for (const std::string_view seq2seq : seq2seq_architectures()) {
    known.push_back(seq2seq);
    if (name == seq2seq) return open_seq2seq(file, name);
  }
  return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key 'general.architecture' is '{}', which is not there yet ({} are)", file.name(), printable(name),
                                                      fmt::join(known, ", ")));
}

}  // namespace rondo::models
