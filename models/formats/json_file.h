// JSON documents in files.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <rondo/status.h>

#include "models/json.h"

namespace rondo::models {

/// The document in the file at `path`. Errors: those of open_file, and kCorruptData (no JSON, or beyond `limits`).
Result<nlohmann::json> read_json_file(const std::string& path, const JsonLimits& limits = {});

/// A folder's document, with its errors, which name file and field.
class JsonDocument {
 public:
  JsonDocument(nlohmann::json value, std::string name) : value_(std::move(value)), name_(std::move(name)) {}
  /// Null if there is no such file. Errors: as read_json_file; kCorruptData (no object).
  static Result<JsonDocument> read(const std::string& path, const JsonLimits& limits = {});

  const nlohmann::json& value() const { return value_; }
  const std::string& name() const { return name_; }
  /// What errors of the functions in models/json.h begin with for objects in `field`.
  std::string within(std::string_view field) const;
  /// kCorruptData and kUnsupported: "config.json: 'hidden_size' is 0".
  Status wrong(std::string_view field, const std::string& what) const;
  Status later(std::string_view field, const std::string& what) const;

  /// A field of `object`, which is the document or lies in its `place` ("model"). Errors: kCorruptData (of another type).
  Result<bool> boolean_or(const nlohmann::json& object, const char* field, bool fallback, std::string_view place = "") const;
  Result<std::string> string_or(const nlohmann::json& object, const char* field, const char* fallback, std::string_view place = "") const;

 private:
  nlohmann::json value_;
  std::string name_;
};

}  // namespace rondo::models
