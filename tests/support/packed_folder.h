// Folders that are packed in tests/data/encoders.safetensors: their config.json in its metadata, their weights among its tensors.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "models/json.h"
#include "tests/support/test_data.h"

namespace rondo::tests {

/// One of them, unpacked into a folder of its own, which goes with it.
class PackedFolder {
 public:
  explicit PackedFolder(const std::string& name) : name_(name), path_(std::filesystem::temp_directory_path() / ("rondo-" + name + "-" + std::to_string(::getpid()) + "-" + std::to_string(n_made_++))) {
    bytes_ = testing::read_whole_file(packed_path());
    const ByteSource source = memory_source(std::as_bytes(std::span(bytes_)), packed_path());
    file_ = models::SafetensorsFile::parse(source).value();
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes_.data(), 8);
    config_ = models::parse_json(std::string_view(bytes_).substr(8, header_bytes), packed_path()).value()["__metadata__"][name].get_ref<const std::string&>();
    std::filesystem::create_directories(path_);
    write_config(config_);
    write_weights();
  }
  PackedFolder(const PackedFolder&) = delete;
  PackedFolder& operator=(const PackedFolder&) = delete;
  ~PackedFolder() { std::filesystem::remove_all(path_); }

  static std::string packed_path() { return testing::tests_data_path("encoders.safetensors"); }
  const std::string& path() const { return path_; }
  /// config.json as it is packed.
  const std::string& config() const { return config_; }
  void write_config(const std::string& text) const { write_file("config.json", text); }
  void write_file(const std::string& name, const std::string& text) const { std::ofstream(path_ + "/" + name) << text; }
  /// All weights but `without`.
  void write_weights(const std::string& without = "") const {
    const std::string prefix = name_ + "/weights/";
    std::vector<models::SafetensorsTensor> tensors;
    for (const models::SafetensorsEntry& entry : file_->entries()) {
      const bool wanted = entry.name.starts_with(prefix) && entry.name.substr(prefix.size()) != without;
      if (wanted) tensors.push_back({entry.name.substr(prefix.size()), entry.dtype, entry.shape, std::as_bytes(std::span(bytes_)).subspan(entry.offset_bytes, entry.size_bytes)});
    }
    const Status written = models::write_safetensors(path_ + "/model.safetensors", tensors);
    EXPECT_TRUE(written.ok()) << written.message();
  }
  /// The names of its weights.
  std::vector<std::string> weights() const {
    const std::string prefix = name_ + "/weights/";
    std::vector<std::string> names;
    for (const models::SafetensorsEntry& entry : file_->entries()) {
      if (entry.name.starts_with(prefix)) names.push_back(entry.name.substr(prefix.size()));
    }
    return names;
  }

 private:
  inline static int n_made_ = 0;
  std::string name_, path_, bytes_, config_;
  std::optional<models::SafetensorsFile> file_;
};

}  // namespace rondo::tests
