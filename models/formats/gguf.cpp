#include "models/formats/gguf.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::array kGgmlTypes = {
    GgmlTypeInfo{GgmlType::kF32, "f32", 1, 4},
    GgmlTypeInfo{GgmlType::kF16, "f16", 1, 2},
    GgmlTypeInfo{GgmlType::kQ4_0, "q4_0", 32, 18},
    GgmlTypeInfo{GgmlType::kQ4_1, "q4_1", 32, 20},
    GgmlTypeInfo{GgmlType::kQ5_0, "q5_0", 32, 22},
    GgmlTypeInfo{GgmlType::kQ5_1, "q5_1", 32, 24},
    GgmlTypeInfo{GgmlType::kQ8_0, "q8_0", 32, 34},
    GgmlTypeInfo{GgmlType::kQ8_1, "q8_1", 32, 36},
    GgmlTypeInfo{GgmlType::kQ2_K, "q2_K", 256, 84},
    GgmlTypeInfo{GgmlType::kQ3_K, "q3_K", 256, 110},
    GgmlTypeInfo{GgmlType::kQ4_K, "q4_K", 256, 144},
    GgmlTypeInfo{GgmlType::kQ5_K, "q5_K", 256, 176},
    GgmlTypeInfo{GgmlType::kQ6_K, "q6_K", 256, 210},
    GgmlTypeInfo{GgmlType::kQ8_K, "q8_K", 256, 292},
    GgmlTypeInfo{GgmlType::kIQ2_XXS, "iq2_xxs", 256, 66},
    GgmlTypeInfo{GgmlType::kIQ2_XS, "iq2_xs", 256, 74},
    GgmlTypeInfo{GgmlType::kIQ3_XXS, "iq3_xxs", 256, 98},
    GgmlTypeInfo{GgmlType::kIQ1_S, "iq1_s", 256, 50},
    GgmlTypeInfo{GgmlType::kIQ4_NL, "iq4_nl", 32, 18},
    GgmlTypeInfo{GgmlType::kIQ3_S, "iq3_s", 256, 110},
    GgmlTypeInfo{GgmlType::kIQ2_S, "iq2_s", 256, 82},
    GgmlTypeInfo{GgmlType::kIQ4_XS, "iq4_xs", 256, 136},
    GgmlTypeInfo{GgmlType::kI8, "i8", 1, 1},
    GgmlTypeInfo{GgmlType::kI16, "i16", 1, 2},
    GgmlTypeInfo{GgmlType::kI32, "i32", 1, 4},
    GgmlTypeInfo{GgmlType::kI64, "i64", 1, 8},
    GgmlTypeInfo{GgmlType::kF64, "f64", 1, 8},
    GgmlTypeInfo{GgmlType::kIQ1_M, "iq1_m", 256, 56},
    GgmlTypeInfo{GgmlType::kBF16, "bf16", 1, 2},
    GgmlTypeInfo{GgmlType::kTQ1_0, "tq1_0", 256, 54},
    GgmlTypeInfo{GgmlType::kTQ2_0, "tq2_0", 256, 66},
    GgmlTypeInfo{GgmlType::kMXFP4, "mxfp4", 32, 17},
};

/// The item called `name`, or null; `order` holds all positions by name.
template <typename Item, typename NameOf>
const Item* find_by_name(const std::vector<Item>& items, const std::vector<std::uint32_t>& order, std::string_view name,
                         NameOf name_of) {
  const auto it = std::lower_bound(order.begin(), order.end(), name, [&](std::uint32_t i, std::string_view wanted) {
    return std::string_view(name_of(items[i])) < wanted;
  });
  if (it == order.end() || name_of(items[*it]) != name) return nullptr;
  return &items[*it];
}

}  // namespace

const GgmlTypeInfo* find_ggml_type(std::uint32_t id) {
  for (const GgmlTypeInfo& info : kGgmlTypes) {
    if (static_cast<std::uint32_t>(info.type) == id) return &info;
  }
  return nullptr;
}

const GgmlTypeInfo& ggml_type_info(GgmlType type) {
  const GgmlTypeInfo* info = find_ggml_type(static_cast<std::uint32_t>(type));
  assert(info != nullptr);
  return *info;
}

const char* gguf_value_type_name(GgufValueType type) {
  constexpr std::array kNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                 "bool", "string", "array", "u64", "i64", "f64"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string GgufValue::text() const {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kU16:
    case GgufValueType::kU32:
    case GgufValueType::kU64:
      return fmt::format("{}", unsigned_value);
    case GgufValueType::kI8:
    case GgufValueType::kI16:
    case GgufValueType::kI32:
    case GgufValueType::kI64:
      return fmt::format("{}", signed_value);
    case GgufValueType::kF32:
      return fmt::format("{}", static_cast<float>(float_value));
    case GgufValueType::kF64:
      return fmt::format("{}", float_value);
    case GgufValueType::kBool:
      return unsigned_value != 0 ? "true" : "false";
    case GgufValueType::kString:
      return printable(string);
    case GgufValueType::kArray:
      return fmt::format("[{} x {}]", gguf_value_type_name(element_type), n_elements);
  }
  return "";
}

const GgufTensor* GgufFile::find_tensor(std::string_view tensor_name) const {
  return find_by_name(tensors_, tensors_by_name_, tensor_name,
                      [](const GgufTensor& tensor) -> const std::string& { return tensor.name; });
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const GgufMetadata* entry =
      find_by_name(metadata_, metadata_by_key_, key, [](const GgufMetadata& m) -> const std::string& { return m.key; });
  return entry == nullptr ? nullptr : &entry->value;
}

Status GgufFile::key_error(std::string_view key, std::string_view message) const {
  return Status(StatusCode::kCorruptData, fmt::format("{}: metadata key '{}' {}", name_, printable(key), message));
}

Result<const GgufValue*> GgufFile::require(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) {
    return Status(StatusCode::kNotFound, fmt::format("{}: metadata key '{}' is missing", name_, printable(key)));
  }
  return value;
}

Status GgufFile::wrong_type(std::string_view key, const GgufValue& value, std::string_view expected) const {
  return key_error(key,
                   fmt::format("is {} ({}), expected {}", value.text(), gguf_value_type_name(value.type), expected));
}

Result<std::uint32_t> GgufFile::u32(std::string_view key) const {
  constexpr auto kMax = std::numeric_limits<std::uint32_t>::max();
  RONDO_ASSIGN(const GgufValue* value, require(key));
  switch (value->type) {
    case GgufValueType::kU8:
    case GgufValueType::kU16:
    case GgufValueType::kU32:
    case GgufValueType::kU64:
      if (value->unsigned_value > kMax) break;
      return static_cast<std::uint32_t>(value->unsigned_value);
    case GgufValueType::kI8:
    case GgufValueType::kI16:
    case GgufValueType::kI32:
    case GgufValueType::kI64:
      if (value->signed_value < 0 || value->signed_value > std::int64_t{kMax}) break;
      return static_cast<std::uint32_t>(value->signed_value);
    default:
      return wrong_type(key, *value, "an unsigned integer");
  }
  return wrong_type(key, *value, fmt::format("an integer from 0 to {}", kMax));
}

Result<float> GgufFile::f32(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require(key));
  if (value->type != GgufValueType::kF32 && value->type != GgufValueType::kF64) {
    return wrong_type(key, *value, "a float");
  }
  // Written so that NaN and infinity pass as they are: who uses the value knows its range.
  if (std::isfinite(value->float_value) && std::abs(value->float_value) > double{std::numeric_limits<float>::max()}) {
    return wrong_type(key, *value, "a float of 32 bits");
  }
  return static_cast<float>(value->float_value);
}

Result<double> GgufFile::f64(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require(key));
  if (value->type != GgufValueType::kF32 && value->type != GgufValueType::kF64) return wrong_type(key, *value, "a float");
  return value->float_value;
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require(key));
  if (value->type != GgufValueType::kBool) return wrong_type(key, *value, "a bool");
  return value->unsigned_value != 0;
}

Result<std::string_view> GgufFile::string(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require(key));
  if (value->type != GgufValueType::kString) return wrong_type(key, *value, "a string");
  return std::string_view(value->string);
}

Result<std::uint32_t> GgufFile::u32_or(std::string_view key, std::uint32_t fallback) const {
  if (!has(key)) return fallback;
  return u32(key);
}

Result<float> GgufFile::f32_or(std::string_view key, float fallback) const {
  if (!has(key)) return fallback;
  return f32(key);
}

Result<double> GgufFile::f64_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  return f64(key);
}

Result<bool> GgufFile::boolean_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  return boolean(key);
}

Result<std::string_view> GgufFile::string_or(std::string_view key, std::string_view fallback) const {
  if (!has(key)) return fallback;
  return string(key);
}

Result<const GgufValue*> GgufFile::require_array(std::string_view key, std::string_view expected) const {
  RONDO_ASSIGN(const GgufValue* value, require(key));
  if (value->type != GgufValueType::kArray) return wrong_type(key, *value, expected);
  return value;
}

Result<const GgufStrings*> GgufFile::strings(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require_array(key, "an array of strings"));
  if (value->element_type != GgufValueType::kString) return wrong_type(key, *value, "an array of strings");
  return &value->strings;
}

Result<std::span<const float>> GgufFile::f32s(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require_array(key, "an array of f32"));
  if (value->element_type != GgufValueType::kF32) return wrong_type(key, *value, "an array of f32");
  return std::span<const float>(value->f32s);
}

Result<std::span<const std::int32_t>> GgufFile::i32s(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require_array(key, "an array of i32"));
  const bool is_u32 = value->element_type == GgufValueType::kU32;
  if (value->element_type != GgufValueType::kI32 && !is_u32) return wrong_type(key, *value, "an array of i32");
  if (is_u32) {
    for (std::size_t i = 0; i < value->i32s.size(); ++i) {
      if (value->i32s[i] >= 0) continue;
      return key_error(key, fmt::format("holds {} at index {}, expected values below 2147483648",
                                        static_cast<std::uint32_t>(value->i32s[i]), i));
    }
  }
  return std::span<const std::int32_t>(value->i32s);
}

Result<std::span<const std::uint8_t>> GgufFile::booleans(std::string_view key) const {
  RONDO_ASSIGN(const GgufValue* value, require_array(key, "an array of booleans"));
  if (value->element_type != GgufValueType::kBool) return wrong_type(key, *value, "an array of booleans");
  return std::span<const std::uint8_t>(value->booleans);
}

}  // namespace rondo::models
