#include <cstring>

#include "models/formats/safetensors.h"
#include "models/new_file.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", unsigned{byte});
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string make_header(std::span<const SafetensorsTensor> tensors) {
  std::string header = "{";
  std::uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[", header.size() == 1 ? "" : ",",
                          json_string(tensor.name), safetensors_dtype_name(tensor.dtype));
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      header += fmt::format("{}{}", i == 0 ? "" : ",", tensor.shape[i]);
    header += fmt::format("],\"data_offsets\":[{},{}]}}", offset, offset + tensor.data.size());
    offset += tensor.data.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

}  // namespace

std::string safetensors_header(std::span<const SafetensorsTensor> tensors) {
  const std::string header = make_header(tensors);
  const std::uint64_t size_bytes = header.size();
  std::string all(sizeof size_bytes, '\0');
  std::memcpy(all.data(), &size_bytes, sizeof size_bytes);
  return all + header;
}

Status write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors) {
  const std::string header = make_header(tensors);
  std::uint64_t data_bytes = 0;
  for (const SafetensorsTensor& tensor : tensors) data_bytes += tensor.data.size();

  // The reader's checks are the writer's too: names, shapes and sizes.
  SafetensorsFile check;
  check.name_ = path;
  if (const Status status = check.parse_header(header, 0, data_bytes); !status.ok()) {
    return Status(StatusCode::kInvalidArgument, status.message());
  }

  NewFile file(path);
  RONDO_TRY(file.create());
  const std::uint64_t header_bytes = header.size();
  RONDO_TRY(file.write(std::as_bytes(std::span(&header_bytes, 1))));
  RONDO_TRY(file.write(std::as_bytes(std::span(header))));
  for (const SafetensorsTensor& tensor : tensors) RONDO_TRY(file.write(tensor.data));
  return file.commit();
}

}  // namespace rondo::models
