#include "models/formats/json_file.h"

#include <span>

#include <rondo/byte_source.h>

#include "runtime/fmt.h"

namespace rondo::models {

Result<nlohmann::json> read_json_file(const std::string& path, const JsonLimits& limits) {
  RONDO_ASSIGN(const ByteSource source, open_file(path));
  if (source.size_bytes > limits.max_text_bytes) return Status(StatusCode::kCorruptData, fmt::format("{}: has {} bytes, more than {}", path, source.size_bytes, limits.max_text_bytes));
  std::string text(static_cast<std::size_t>(source.size_bytes), '\0');
  RONDO_TRY(source.read(0, std::as_writable_bytes(std::span(text))));
  return parse_json(text, path, limits);
}

}  // namespace rondo::models
