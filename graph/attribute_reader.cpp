#include "graph/attribute_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/activation.h"
#include "graph/nearest_name.h"
#include "runtime/fmt.h"

namespace rondo::graph {

namespace {

bool fits(std::int64_t value) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  return value >= -kMost && value <= kMost;
}

Status refusal(const NamedNode& node, const std::string& message) { return Status(StatusCode::kInvalidArgument, fmt::format("[{}] {}", node.op, message)); }

}  // namespace

void AttributeReader::read(const char* name, bool& field) {
  if (const AttributeValue* found = take(name, field)) {
    if (const bool* value = std::get_if<bool>(found)) field = *value;
    else fail(name, "true or false");
  }
}

void AttributeReader::read(const char* name, std::int64_t& field) {
  if (const AttributeValue* found = take(name, field)) {
    if (const auto* value = std::get_if<std::int64_t>(found); value && fits(*value)) field = *value;
    else fail(name, "an integer of at most 31 bits");
  }
}

void AttributeReader::read(const char* name, double& field) {
  if (const AttributeValue* found = take(name, field)) {
    double value = std::numeric_limits<double>::infinity();
    if (const auto* integer = std::get_if<std::int64_t>(found)) value = static_cast<double>(*integer);
    if (const auto* real = std::get_if<double>(found)) value = *real;
    if (std::abs(value) <= std::numeric_limits<float>::max()) field = value;
    else fail(name, "a number that fits f32");
  }
}

void AttributeReader::read(const char* name, std::vector<std::int64_t>& field) {
  if (const AttributeValue* found = take(name, field)) {
    const auto* value = std::get_if<std::vector<std::int64_t>>(found);
    if (value && value->size() <= kMaxRank && std::all_of(value->begin(), value->end(), fits)) field = *value;
    else fail(name, fmt::format("a list of at most {} integers of at most 31 bits", kMaxRank));
  }
}

void AttributeReader::read(const char* name, Activation& field) {
  if (const AttributeValue* found = take(name, std::string(activation_name(field)))) {
    const auto* text = std::get_if<std::string>(found);
    const std::optional<Activation> value = text ? find_activation(*text) : std::nullopt;
    if (value) field = *value;
    else if (text) fail(name, fmt::format("one of {}, not '{}'{}", fmt::join(activation_names(), ", "), *text, did_you_mean(*text, activation_names())));
    else fail(name, "the name of an activation, as in \"gelu\"");
  }
}

void AttributeReader::read(GluAttributes& glu) {
  read("activation", glu.activation);
  read("limit", glu.limit);
  read("up_bias", glu.up_bias);
  if (glu.limit < 0) refuse(fmt::format("limit is {} but must be positive, or 0 for none", glu.limit));
}

int AttributeReader::take_choice(const char* name, int fallback, const char* first, const char* second) {
  const char* const names[] = {first, second};
  const AttributeValue* found = take(name, fallback < 0 ? std::nullopt : std::optional<AttributeValue>(names[fallback]));
  if (!found) return fallback;
  if (const auto* text = std::get_if<std::string>(found)) {
    if (*text == first) return 0;
    if (*text == second) return 1;
  }
  fail(name, fmt::format("\"{}\" or \"{}\"", first, second));
  return fallback;
}

void AttributeReader::require(const char* name) {
  required_.emplace_back(name);
  if (status_.ok() && !find(name)) status_ = refusal(node_, fmt::format("attribute '{}' is missing", name));
}

Status AttributeReader::finish() const {
  RONDO_TRY(Status(status_));
  for (const auto& attribute : node_.attributes) {
    const std::string& name = attribute.first;
    if (std::any_of(known_.begin(), known_.end(), [&](const KnownAttribute& known) { return name == known.name; })) continue;
    if (known_.empty()) return refusal(node_, fmt::format("has no attributes, but '{}' is given", name));
    std::vector<const char*> names;
    for (const KnownAttribute& known : known_) names.push_back(known.name);
    return refusal(node_, fmt::format("has no attribute '{}'; there are {}{}", name, fmt::join(names, ", "), did_you_mean(name, names)));
  }
  return {};
}

const AttributeValue* AttributeReader::find(std::string_view name) const {
  const auto found = std::find_if(node_.attributes.begin(), node_.attributes.end(), [&](const auto& attribute) { return attribute.first == name; });
  return found == node_.attributes.end() ? nullptr : &found->second;
}

const AttributeValue* AttributeReader::take(const char* name, std::optional<AttributeValue> fallback) {
  if (std::find(required_.begin(), required_.end(), name) != required_.end()) fallback.reset();
  known_.push_back({name, std::move(fallback)});
  const auto named = [&](const auto& attribute) { return attribute.first == name; };
  if (status_.ok() && std::count_if(node_.attributes.begin(), node_.attributes.end(), named) > 1) {
    status_ = refusal(node_, fmt::format("attribute '{}' is given twice", name));
  }
  return find(name);
}

void AttributeReader::refuse(const std::string& message) {
  if (status_.ok()) status_ = refusal(node_, message);
}

void AttributeReader::fail(const char* name, const std::string& expected) {
  if (status_.ok()) status_ = refusal(node_, fmt::format("attribute '{}' must be {}", name, expected));
}

}  // namespace rondo::graph
