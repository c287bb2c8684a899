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

Result<JsonDocument> JsonDocument::read(const std::string& path, const JsonLimits& limits) {
  Result<nlohmann::json> value = read_json_file(path, limits);
  if (value.status().code() == StatusCode::kNotFound) return JsonDocument(nlohmann::json(), path);
  RONDO_TRY(value.status());
  if (!value->is_object()) return Status(StatusCode::kCorruptData, fmt::format("{}: is no object", path));
  return JsonDocument(std::move(value).value(), path);
}

std::string JsonDocument::within(std::string_view field) const { return field.empty() ? name_ : fmt::format("{}: {}", name_, field); }

Status JsonDocument::wrong(std::string_view field, const std::string& what) const { return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' {}", name_, field, what)); }

Status JsonDocument::later(std::string_view field, const std::string& what) const {
  return Status(StatusCode::kUnsupported, fmt::format("{}: '{}' {}, which is not there yet", name_, field, what));
}

Result<bool> JsonDocument::boolean_or(const nlohmann::json& object, const char* field, bool fallback, std::string_view place) const {
  if (!has_field(object, field)) return fallback;
  const nlohmann::json& value = *object.find(field);
  if (!value.is_boolean()) return wrong(fmt::format("{}{}{}", place, place.empty() ? "" : ".", field), "must be true or false");
  return *value.get_ptr<const nlohmann::json::boolean_t*>();
}

Result<std::string> JsonDocument::string_or(const nlohmann::json& object, const char* field, const char* fallback, std::string_view place) const {
  return has_field(object, field) ? find_string(object, field, within(place)) : Result<std::string>(std::string(fallback));
}

}  // namespace rondo::models
