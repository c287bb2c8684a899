// JSON from files that nobody has to trust; the only place in the library that uses nlohmann::json.
//
// Owns nothing. Nothing here throws or aborts: parsing is bounded in nesting, token length and number of values, and
// values are read through the checked accessors below, never through nlohmann's own conversions. In all functions
// `what` names the file (and object) for messages, as in "config.json" or "config.json: rope_scaling".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <rondo/status.h>

namespace rondo::models {

/// Bounds on a document. The defaults keep what parse_json allocates below 64 MB.
struct JsonLimits {
  std::size_t max_text_bytes = std::size_t{16} << 20;  ///< the document
  std::size_t max_depth = 64;                          ///< arrays and objects within each other
  std::size_t max_token_bytes = std::size_t{1} << 20;  ///< a string, or bytes between two strings or numbers
  std::size_t max_values = 250'000;                    ///< scalars, arrays and objects in all
};

/// Receives a document piece by piece, in order. A failed Status ends the parse and is returned from it.
class JsonEvents {
 public:
  virtual Status on_null() = 0;
  virtual Status on_bool(bool value) = 0;
  virtual Status on_u64(std::uint64_t value) = 0;
  virtual Status on_i64(std::int64_t value) = 0;  ///< negative numbers only
  virtual Status on_f64(double value) = 0;
  virtual Status on_string(std::string&& value) = 0;
  virtual Status on_key(std::string&& key) = 0;
  virtual Status on_object_begin() = 0;
  virtual Status on_object_end() = 0;
  virtual Status on_array_begin() = 0;
  virtual Status on_array_end() = 0;

 protected:
  ~JsonEvents() = default;
};

/// Parses `text` into `events` without building a tree; duplicate keys are for `events` to refuse.
/// Errors: kCorruptData (not JSON, or beyond `limits`), and whatever `events` returned.
Status read_json(std::string_view text, std::string_view what, const JsonLimits& limits, JsonEvents& events);

/// Parses `text` into a tree. Errors: kCorruptData (not JSON, a key twice in one object, beyond `limits`).
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what, const JsonLimits& limits = {});

/// Whether `object` is an object with a `field` that is not null.
bool has_field(const nlohmann::json& object, std::string_view field);

/// The field as an object, owned by `object`. Errors of this and the next three: kCorruptData if `object` is no object or
/// the field has another type or range, kNotFound if it is absent or null.
Result<const nlohmann::json*> find_object(const nlohmann::json& object, std::string_view field, std::string_view what);
/// The field as an array, owned by `object`.
Result<const nlohmann::json*> find_array(const nlohmann::json& object, std::string_view field, std::string_view what);
/// The field as a string.
Result<std::string> find_string(const nlohmann::json& object, std::string_view field, std::string_view what);
/// The field as an integer that is not negative; 2.0 is no integer.
Result<std::uint64_t> find_u64(const nlohmann::json& object, std::string_view field, std::string_view what);

/// As find_u64, but `fallback` where the field is absent or null.
Result<std::uint64_t> find_u64_or(const nlohmann::json& object, std::string_view field, std::uint64_t fallback,
                                  std::string_view what);

}  // namespace rondo::models
