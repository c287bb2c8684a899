// What folders of all kinds have: a config.json, safetensors files, and the GGUF file that they become (decision 010).
//
// Headers are read, weights are not. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/formats/gguf_writer.h"
#include "models/formats/json_file.h"
#include "models/formats/safetensors.h"
#include "models/formats/stitched_source.h"

namespace rondo::models {

/// The fields of config.json, with its errors.
class FolderConfig : public JsonDocument {
 public:
  using JsonDocument::boolean_or;
  using JsonDocument::JsonDocument;

  bool has(const char* field) const { return has_field(value(), field); }

  /// The first of these fields that is there, or nothing. Errors: kCorruptData.
  Result<std::optional<std::uint32_t>> count(std::initializer_list<const char*> fields) const;
  Result<std::optional<double>> number(const nlohmann::json& object, std::initializer_list<const char*> fields) const;
  Result<std::optional<double>> number(std::initializer_list<const char*> fields) const { return number(value(), fields); }
  Result<bool> boolean_or(const char* field, bool fallback) const { return JsonDocument::boolean_or(value(), field, fallback); }
  /// A count that must be there.
  Result<std::uint32_t> need(std::initializer_list<const char*> fields) const;
  /// kCorruptData unless a count lies in [1, most].
  Status check_range(const char* field, std::uint32_t value, std::uint32_t most) const;
};

/// A tensor of a folder, in one of its files.
struct FolderTensor {
  const ByteSource* source = nullptr;
  SafetensorsEntry entry;

  /// "FILE: tensor 'NAME' WHAT".
  Status error(StatusCode code, const std::string& what) const;
  /// GGUF's type of its elements: F32, F16 and BF16 have one.
  std::optional<GgmlType> find_type() const;
  /// The same. Errors: kUnsupported (another type).
  Result<GgmlType> need_type() const;
};

/// All tensors of a folder, by name.
class FolderTensors {
 public:
  /// Of model.safetensors, or of the files that its index names.
  static Result<FolderTensors> open(const std::string& folder);

  const std::map<std::string, FolderTensor>& all() const { return tensors_; }

 private:
  /// The tensors of one file; `listed`: those that the index says are in it.
  Status add(const ByteSource& source, const std::set<std::string>* listed);

  std::vector<std::shared_ptr<ByteSource>> sources_;
  std::map<std::string, FolderTensor> tensors_;
};

/// The GGUF file that is made of a folder: keys, and tensors with what adds their data.
class FolderFile {
 public:
  GgufWriter keys;

  /// A tensor of `size_bytes`, which `add` puts into the file when it is put together; dims[0] varies fastest.
  void place(const std::string& name, std::span<const std::uint64_t> dims, GgmlType type, std::uint64_t size_bytes, std::function<void(StitchedSource&)> add);
  /// A vector in f32.
  void place_values(const std::string& name, std::vector<float> values);
  ByteSource finish(const std::string& name) const;

 private:
  struct Placed {
    std::uint64_t offset_bytes = 0;  ///< in the data
    std::function<void(StitchedSource&)> add;
  };
  std::vector<Placed> placed_;
};

}  // namespace rondo::models
