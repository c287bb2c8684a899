#include "models/formats/gguf_writer.h"

#include <cstring>

namespace rondo::models {

namespace {

template <typename T>
void put(std::vector<std::byte>& bytes, T value) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), at, at + sizeof value);
}

void put_string(std::vector<std::byte>& bytes, std::string_view text) {
  put(bytes, std::uint64_t{text.size()});
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), at, at + text.size());
}

}  // namespace

void GgufWriter::key(std::string_view name, GgufValueType type) {
  put_string(keys_, name);
  put(keys_, static_cast<std::uint32_t>(type));
  ++n_keys_;
}

void GgufWriter::u32(std::string_view name, std::uint32_t value) {
  key(name, GgufValueType::kU32);
  put(keys_, value);
}

void GgufWriter::f32(std::string_view name, float value) {
  key(name, GgufValueType::kF32);
  put(keys_, value);
}

void GgufWriter::f64(std::string_view name, double value) {
  key(name, GgufValueType::kF64);
  put(keys_, value);
}

void GgufWriter::boolean(std::string_view name, bool value) {
  key(name, GgufValueType::kBool);
  put(keys_, static_cast<std::uint8_t>(value));
}

void GgufWriter::string(std::string_view name, std::string_view value) {
  key(name, GgufValueType::kString);
  put_string(keys_, value);
}

void GgufWriter::array_key(std::string_view name, GgufValueType element_type, std::size_t n) {
  key(name, GgufValueType::kArray);
  put(keys_, static_cast<std::uint32_t>(element_type));
  put(keys_, std::uint64_t{n});
}

void GgufWriter::strings(std::string_view name, std::span<const std::string> values) {
  array_key(name, GgufValueType::kString, values.size());
  for (const std::string& value : values) put_string(keys_, value);
}

void GgufWriter::booleans(std::string_view name, std::span<const std::uint8_t> values) {
  array_key(name, GgufValueType::kBool, values.size());
  const auto bytes = std::as_bytes(values);
  keys_.insert(keys_.end(), bytes.begin(), bytes.end());
}

void GgufWriter::i32s(std::string_view name, std::span<const std::int32_t> values) {
  array_key(name, GgufValueType::kI32, values.size());
  for (const std::int32_t value : values) put(keys_, value);
}

std::uint64_t GgufWriter::tensor(std::string_view name, std::span<const std::uint64_t> dims, GgmlType type, std::uint64_t size_bytes) {
  const std::uint64_t at = data_bytes_;
  put_string(tensors_, name);
  put(tensors_, static_cast<std::uint32_t>(dims.size()));
  for (const std::uint64_t dim : dims) put(tensors_, dim);
  put(tensors_, static_cast<std::uint32_t>(type));
  put(tensors_, at);
  ++n_tensors_;
  data_bytes_ = padded(at + size_bytes);
  return at;
}

std::vector<std::byte> GgufWriter::counts(std::uint64_t n_more_keys) const {
  std::vector<std::byte> bytes;
  for (const char c : {'G', 'G', 'U', 'F'}) bytes.push_back(static_cast<std::byte>(c));
  put(bytes, std::uint32_t{3});
  put(bytes, n_tensors_);
  put(bytes, n_keys_ + n_more_keys);
  bytes.insert(bytes.end(), keys_.begin(), keys_.end());
  return bytes;
}

std::vector<std::byte> GgufWriter::header() const {
  std::vector<std::byte> bytes = counts();
  bytes.insert(bytes.end(), tensors_.begin(), tensors_.end());
  bytes.resize(static_cast<std::size_t>(padded(bytes.size())));
  return bytes;
}

}  // namespace rondo::models
