// A GGUF file, version 3, put together: keys and tensors first, then the places of their data.
//
// Pure; the caller writes the data. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/formats/gguf.h"

namespace rondo::models {

class GgufWriter {
 public:
  explicit GgufWriter(std::uint64_t alignment_bytes = kUsualAlignment) : alignment_bytes_(alignment_bytes) {}

  void u32(std::string_view key, std::uint32_t value);
  void f32(std::string_view key, float value);
  void f64(std::string_view key, double value);
  void boolean(std::string_view key, bool value);
  void string(std::string_view key, std::string_view value);
  void strings(std::string_view key, std::span<const std::string> values);
  void i32s(std::string_view key, std::span<const std::int32_t> values);
  /// 0 or 1 each.
  void booleans(std::string_view key, std::span<const std::uint8_t> values);

  /// A tensor of `size_bytes`; dims[0] varies fastest. Returns where its data belongs behind header(), aligned.
  std::uint64_t tensor(std::string_view name, std::span<const std::uint64_t> dims, GgmlType type, std::uint64_t size_bytes);

  /// Magic, counts, keys and the table of tensors, padded to where the data begins.
  std::vector<std::byte> header() const;
  /// header() in two pieces, without its padding, for a caller who puts `n_more_keys` that lie elsewhere between them.
  std::vector<std::byte> counts(std::uint64_t n_more_keys = 0) const;
  const std::vector<std::byte>& table() const { return tensors_; }
  std::uint64_t padded(std::uint64_t size_bytes) const { return (size_bytes + alignment_bytes_ - 1) / alignment_bytes_ * alignment_bytes_; }

  /// Bytes of the data, padding between tensors included.
  std::uint64_t data_bytes() const { return data_bytes_; }

 private:
  void key(std::string_view name, GgufValueType type);
  void array_key(std::string_view name, GgufValueType element_type, std::size_t n);

  std::uint64_t alignment_bytes_;
  std::vector<std::byte> keys_, tensors_;
  std::uint64_t n_keys_ = 0, n_tensors_ = 0, data_bytes_ = 0;
};

}  // namespace rondo::models
