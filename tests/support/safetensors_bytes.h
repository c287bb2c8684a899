// Builds safetensors files in memory, as any other program would write them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/fmt.h"

namespace rondo::testing {

struct FileTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

/// The values' bytes, one after the other.
template <typename T>
std::string bytes_of_values(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// The file of these tensors, in this order; nothing is checked.
inline std::string safetensors_bytes(const std::vector<FileTensor>& tensors) {
  std::string header = "{", data;
  for (const FileTensor& tensor : tensors) {
    header += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", header.size() == 1 ? "" : ",", tensor.name, tensor.dtype,
                          fmt::join(tensor.shape, ","), data.size(), data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  header += "}";
  return bytes_of_values(std::vector<std::uint64_t>{header.size()}) + header + data;
}

}  // namespace rondo::testing
