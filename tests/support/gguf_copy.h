// A GGUF file of the test data, and parts of it in files that tests make.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "models/formats/gguf.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_data.h"

namespace rondo::testing {

/// The kinds of values that Llama files have.
inline void copy_metadata(const models::GgufFile& file, GgufWriter& writer) {
  for (const auto& [key, value] : file.metadata()) {
    switch (value.type) {
      case models::GgufValueType::kU32: writer.u32(key, static_cast<std::uint32_t>(value.unsigned_value)); break;
      case models::GgufValueType::kF32: writer.f32(key, static_cast<float>(value.float_value)); break;
      case models::GgufValueType::kBool: writer.boolean(key, value.unsigned_value != 0); break;
      case models::GgufValueType::kString: writer.string(key, value.string); break;
      case models::GgufValueType::kArray:
        if (value.element_type == models::GgufValueType::kString) {
          std::vector<std::string> strings;
          for (std::size_t i = 0; i < value.strings.size(); ++i) strings.emplace_back(value.strings[i]);
          writer.strings(key, strings);
        } else if (value.element_type == models::GgufValueType::kF32) {
          writer.f32s(key, value.f32s);
        } else {
          writer.i32s(key, value.i32s);
        }
        break;
      default: ADD_FAILURE() << key << " is " << value.text();
    }
  }
}

/// A file of RONDO_TEST_DATA, whole in memory.
struct GgufCopy {
  explicit GgufCopy(const char* name) : bytes(read_whole_file(test_data_path(name))), file(models::GgufFile::parse(source_of(bytes)).value()) {}

  std::string_view data(const models::GgufTensor& tensor) const { return std::string_view(bytes).substr(tensor.offset_bytes, tensor.size_bytes); }

  std::string bytes;
  models::GgufFile file;
};

}  // namespace rondo::testing
