// GGUF files in parts, as tests make them.
#pragma once

#include <string>
#include <vector>

#include "runtime/fmt.h"
#include "tests/support/command_runner.h"
#include "tests/support/gguf_copy.h"

namespace rondo::testing {

inline std::string part_name(std::size_t number, std::size_t count) { return fmt::format("model-{:05}-of-{:05}.gguf", number, count); }

inline void add_split_keys(GgufWriter& writer, std::size_t index, std::size_t count, std::size_t n_tensors) {
  writer.number("split.no", models::GgufValueType::kU16, static_cast<std::uint16_t>(index));
  writer.number("split.count", models::GgufValueType::kU16, static_cast<std::uint16_t>(count));
  writer.number("split.tensors.count", models::GgufValueType::kI32, static_cast<std::int32_t>(n_tensors));
}

/// The paths of three parts of the Llama file at `path`: metadata, half of the tensors, the other half.
inline std::vector<std::string> split_file(const TemporaryFolder& folder, const std::string& path) {
  const std::string bytes = read_whole_file(path);
  const models::GgufFile file = models::GgufFile::parse(source_of(bytes)).value();
  const std::size_t n = file.tensors().size(), ends[] = {0, n / 2, n};
  std::vector<std::string> paths;
  for (std::size_t part = 0; part < 3; ++part) {
    GgufWriter writer;
    if (part == 0) copy_metadata(file, writer);
    add_split_keys(writer, part, 3, n);
    for (std::size_t i = part == 0 ? 0 : ends[part - 1]; i < ends[part]; ++i) {
      const models::GgufTensor& tensor = file.tensors()[i];
      writer.tensor(tensor.name, {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims}, tensor.type, bytes.substr(tensor.offset_bytes, tensor.size_bytes));
    }
    paths.push_back(folder.write(part_name(part + 1, 3), writer.build()));
  }
  return paths;
}

}  // namespace rondo::testing
