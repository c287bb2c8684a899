#include "models/json.h"

#include <vector>

#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using nlohmann::json;

Status corrupt(std::string_view what, std::string_view message) {
  return Status(StatusCode::kCorruptData, fmt::format("{}: {}", what, message));
}

// nlohmann's lexer copies what it reads until the next string or number begins, and ends at a NUL byte. Both are
// checked here first, so that its memory is bounded and nothing hides behind the NUL.
Status check_tokens(std::string_view text, std::string_view what, std::size_t max_token_bytes) {
  bool in_string = false;
  bool in_number = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') return corrupt(what, fmt::format("is not valid JSON: byte {} is NUL", i));
    if (i - begin > max_token_bytes) {
      return corrupt(what, fmt::format("JSON at byte {}: one token is longer than {} bytes", begin, max_token_bytes));
    }
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
        begin = i;
      }
    } else if (c == '"') {
      in_string = true;
      begin = i;
    } else if ((c == '-' || (c >= '0' && c <= '9')) && !in_number) {
      begin = i;
    }
    in_number = !in_string && std::string_view("0123456789+-.eE").find(c) != std::string_view::npos;
  }
  return Status();
}

// What nlohmann::json::sax_parse calls: counts, bounds, and passes on.
class SaxAdapter {
 public:
  SaxAdapter(std::string_view what, const JsonLimits& limits, JsonEvents& events)
      : what_(what), limits_(limits), events_(events) {}

  bool null() { return count() && pass(events_.on_null()); }
  bool boolean(bool value) { return count() && pass(events_.on_bool(value)); }
  bool number_integer(std::int64_t value) { return count() && pass(events_.on_i64(value)); }
  bool number_unsigned(std::uint64_t value) { return count() && pass(events_.on_u64(value)); }
  bool number_float(double value, const std::string&) { return count() && pass(events_.on_f64(value)); }
  bool string(std::string& value) { return count() && pass(events_.on_string(std::move(value))); }
  bool binary(json::binary_t&) { return pass(corrupt(what_, "is not valid JSON")); }
  bool key(std::string& value) { return pass(events_.on_key(std::move(value))); }
  bool start_object(std::size_t) { return count() && descend() && pass(events_.on_object_begin()); }
  bool end_object() { return ascend() && pass(events_.on_object_end()); }
  bool start_array(std::size_t) { return count() && descend() && pass(events_.on_array_begin()); }
  bool end_array() { return ascend() && pass(events_.on_array_end()); }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    std::string_view text = error.what();
    if (const std::size_t end = text.find("] "); text.starts_with("[json.") && end != std::string_view::npos) {
      text.remove_prefix(end + 2);
    }
    return pass(corrupt(what_, fmt::format("is not valid JSON: {}", printable(text))));
  }

  const Status& status() const { return status_; }

 private:
  bool pass(Status status) {
    status_ = std::move(status);
    return status_.ok();
  }
  bool count() {
    if (++n_values_ <= limits_.max_values) return true;
    return pass(corrupt(what_, fmt::format("JSON holds more than {} values", limits_.max_values)));
  }
  bool descend() {
    if (++depth_ <= limits_.max_depth) return true;
    return pass(corrupt(what_, fmt::format("JSON is nested more than {} deep", limits_.max_depth)));
  }
  bool ascend() {
    --depth_;
    return true;
  }

  std::string_view what_;
  const JsonLimits& limits_;
  JsonEvents& events_;
  Status status_;
  std::size_t n_values_ = 0;
  std::size_t depth_ = 0;
};

class TreeBuilder final : public JsonEvents {
 public:
  explicit TreeBuilder(std::string_view what) : what_(what) {}

  Status on_null() override { return add(json()); }
  Status on_bool(bool value) override { return add(json(value)); }
  Status on_u64(std::uint64_t value) override { return add(json(value)); }
  Status on_i64(std::int64_t value) override { return add(json(value)); }
  Status on_f64(double value) override { return add(json(value)); }
  Status on_string(std::string&& value) override { return add(json(std::move(value))); }
  Status on_key(std::string&& key) override {
    const auto* object = open_.back()->get_ptr<const json::object_t*>();
    if (object->find(key) != object->end()) {
      return corrupt(what_, fmt::format("JSON has the key '{}' twice in one object", printable(key)));
    }
    key_ = std::move(key);
    return Status();
  }
  Status on_object_begin() override { return add(json(json::value_t::object), true); }
  Status on_object_end() override { return close(); }
  Status on_array_begin() override { return add(json(json::value_t::array), true); }
  Status on_array_end() override { return close(); }

  json& root() { return root_; }

 private:
  Status add(json&& value, bool opens = false) {
    json* place = &root_;
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = open_.back()->get_ptr<json::array_t*>(); array != nullptr) {
      array->push_back(std::move(value));
      place = &array->back();
    } else {
      auto* object = open_.back()->get_ptr<json::object_t*>();
      place = &object->insert_or_assign(std::move(key_), std::move(value)).first->second;
    }
    if (opens) open_.push_back(place);
    return Status();
  }
  Status close() {
    open_.pop_back();
    return Status();
  }

  std::string_view what_;
  json root_;
  std::string key_;
  // An open value is never moved: its parent only grows after it is closed.
  std::vector<json*> open_;
};

const json* field_of(const json& object, std::string_view field) {
  const auto* members = object.get_ptr<const json::object_t*>();
  if (members == nullptr) return nullptr;
  const auto it = members->find(field);
  return it == members->end() || it->second.is_null() ? nullptr : &it->second;
}

Result<const json*> require(const json& object, std::string_view field, std::string_view what) {
  if (!object.is_object()) return corrupt(what, fmt::format("is {}, expected an object", object.type_name()));
  const json* value = field_of(object, field);
  if (value == nullptr) return Status(StatusCode::kNotFound, fmt::format("{}: '{}' is missing", what, field));
  return value;
}

Status wrong_type(const json& value, std::string_view field, std::string_view what, const char* expected) {
  // Negative and fractional numbers are both "number" to nlohmann; the value itself says more.
  const std::string found = value.is_number() ? value.dump() : std::string(value.type_name());
  return corrupt(what, fmt::format("'{}' is {}, expected {}", field, found, expected));
}

}  // namespace

Status read_json(std::string_view text, std::string_view what, const JsonLimits& limits, JsonEvents& events) {
  if (text.size() > limits.max_text_bytes) {
    return corrupt(what, fmt::format("JSON of {} bytes, expected at most {}", text.size(), limits.max_text_bytes));
  }
  RONDO_TRY(check_tokens(text, what, limits.max_token_bytes));
  SaxAdapter adapter(what, limits, events);
  const bool done = json::sax_parse(text.begin(), text.end(), &adapter);
  if (!adapter.status().ok()) return adapter.status();
  return done ? Status() : corrupt(what, "is not valid JSON");
}

Result<json> parse_json(std::string_view text, std::string_view what, const JsonLimits& limits) {
  TreeBuilder builder(what);
  RONDO_TRY(read_json(text, what, limits, builder));
  return std::move(builder.root());
}

bool has_field(const json& object, std::string_view field) { return field_of(object, field) != nullptr; }

Result<const json*> find_object(const json& object, std::string_view field, std::string_view what) {
  RONDO_ASSIGN(const json* value, require(object, field, what));
  if (!value->is_object()) return wrong_type(*value, field, what, "an object");
  return value;
}

Result<const json*> find_array(const json& object, std::string_view field, std::string_view what) {
  RONDO_ASSIGN(const json* value, require(object, field, what));
  if (!value->is_array()) return wrong_type(*value, field, what, "an array");
  return value;
}

Result<std::string> find_string(const json& object, std::string_view field, std::string_view what) {
  RONDO_ASSIGN(const json* value, require(object, field, what));
  const auto* text = value->get_ptr<const json::string_t*>();
  if (text == nullptr) return wrong_type(*value, field, what, "a string");
  return std::string(*text);
}

Result<std::uint64_t> find_u64(const json& object, std::string_view field, std::string_view what) {
  RONDO_ASSIGN(const json* value, require(object, field, what));
  const auto* number = value->get_ptr<const json::number_unsigned_t*>();
  if (number == nullptr) return wrong_type(*value, field, what, "an unsigned integer");
  return std::uint64_t{*number};
}

Result<std::uint64_t> find_u64_or(const json& object, std::string_view field, std::uint64_t fallback, std::string_view what) {
  if (object.is_object() && !has_field(object, field)) return fallback;
  return find_u64(object, field, what);
}

}  // namespace rondo::models
