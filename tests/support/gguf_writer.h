// Builds GGUF files in memory: good ones by the typed functions, hostile ones by the raw functions and overrides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rondo/byte_source.h>

#include "models/formats/gguf.h"

namespace rondo::testing {

/// Little-endian bytes, one after the other.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(value));
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
    return *this;
  }
  ByteWriter& raw(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  ByteWriter& string(std::string_view text) { return number(std::uint64_t{text.size()}).raw(text); }
  template <typename T>
  ByteWriter& numbers(const std::vector<T>& values) {
    for (const T value : values) number(value);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class GgufWriter {
 public:
  using Type = models::GgufValueType;

  // What the header says; the counts are right unless set here.
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::optional<std::uint64_t> n_keys;
  std::optional<std::uint64_t> n_tensors;
  std::uint64_t alignment_bytes = 32;  // of the data this writer places; the key is the caller's

  /// A key with any type id and payload.
  GgufWriter& raw_key(std::string_view key, std::uint32_t type, std::string_view payload) {
    keys_.string(key).number(type).raw(payload);
    ++n_keys_written_;
    return *this;
  }
  template <typename T>
  GgufWriter& number(std::string_view key, Type type, T value) {
    return raw_key(key, static_cast<std::uint32_t>(type), ByteWriter().number(value).bytes());
  }
  GgufWriter& u32(std::string_view key, std::uint32_t value) { return number(key, Type::kU32, value); }
  GgufWriter& f32(std::string_view key, float value) { return number(key, Type::kF32, value); }
  GgufWriter& boolean(std::string_view key, bool value) { return number(key, Type::kBool, std::uint8_t{value}); }
  GgufWriter& string(std::string_view key, std::string_view value) {
    return raw_key(key, static_cast<std::uint32_t>(Type::kString), ByteWriter().string(value).bytes());
  }
  /// An array that says `count` elements of a type and holds `payload`.
  GgufWriter& raw_array(std::string_view key, std::uint32_t element_type, std::uint64_t count,
                        std::string_view payload) {
    return raw_key(key, static_cast<std::uint32_t>(Type::kArray),
                   ByteWriter().number(element_type).number(count).raw(payload).bytes());
  }
  GgufWriter& strings(std::string_view key, const std::vector<std::string>& values) {
    ByteWriter payload;
    for (const std::string& value : values) payload.string(value);
    return raw_array(key, static_cast<std::uint32_t>(Type::kString), values.size(), payload.bytes());
  }
  GgufWriter& f32s(std::string_view key, const std::vector<float>& values) {
    return raw_array(key, static_cast<std::uint32_t>(Type::kF32), values.size(), ByteWriter().numbers(values).bytes());
  }
  GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& values) {
    return raw_array(key, static_cast<std::uint32_t>(Type::kI32), values.size(), ByteWriter().numbers(values).bytes());
  }

  /// A tensor entry as given; `dims` may have any length.
  GgufWriter& raw_tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                         std::uint64_t offset) {
    tensors_.string(name).number(static_cast<std::uint32_t>(dims.size())).numbers(dims).number(type).number(offset);
    ++n_tensors_written_;
    return *this;
  }
  /// A tensor whose data is put behind the data so far.
  GgufWriter& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, models::GgmlType type,
                     std::string_view data) {
    raw_tensor(name, dims, static_cast<std::uint32_t>(type), data_.size());
    data_ += data;
    data_.resize(padded(data_.size()));
    return *this;
  }
  /// Bytes behind the tensor table that belong to no tensor yet.
  GgufWriter& raw_data(std::size_t size) {
    data_.resize(data_.size() + size);
    return *this;
  }

  std::string build() const {
    ByteWriter file;
    file.raw(magic).number(version);
    file.number(n_tensors.value_or(n_tensors_written_)).number(n_keys.value_or(n_keys_written_));
    file.raw(keys_.bytes()).raw(tensors_.bytes());
    std::string bytes = file.bytes();
    if (!data_.empty()) bytes.resize(padded(bytes.size()));
    return bytes + data_;
  }

 private:
  std::size_t padded(std::size_t size) const {
    return (size + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  }

  ByteWriter keys_;
  ByteWriter tensors_;
  std::string data_;
  std::uint64_t n_keys_written_ = 0;
  std::uint64_t n_tensors_written_ = 0;
};

/// `bytes` as a source called "model.gguf"; `bytes` must outlive it.
inline ByteSource source_of(const std::string& bytes, std::string name = "model.gguf") {
  return memory_source(std::as_bytes(std::span(bytes)), std::move(name));
}

}  // namespace rondo::testing
