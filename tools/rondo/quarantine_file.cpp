#include "tools/rondo/quarantine_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <rondo/byte_source.h>

#include "models/json.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "tools/rondo/cache_files.h"

namespace rondo::tools {

namespace {

constexpr std::uint64_t kVersion = 1, kMostBytes = 1u << 20;

nlohmann::json empty_document() { return {{"rondo_quarantine", kVersion}, {"devices", nlohmann::json::object()}}; }

}  // namespace

QuarantineFile::QuarantineFile(const Device& device, const std::string& setting, const std::string& pipeline_cache) : device_(device), named_(!setting.empty()) {
  if (setting == "none") return;
  path_ = named_ ? setting : path_beside_cache(pipeline_cache, "quarantine.json");
}

Result<nlohmann::json> QuarantineFile::read(bool may_be_missing) const {
  std::error_code error;
  if (path_.empty() || (may_be_missing && !std::filesystem::exists(path_, error))) return empty_document();
  if (!std::filesystem::exists(path_, error)) {
    return Status(StatusCode::kNotFound, fmt::format("--quarantine: there is no file {}; generate --self-test makes one where a kernel is wrong", path_));
  }
  RONDO_ASSIGN(const ByteSource source, open_file(path_));
  if (source.size_bytes > kMostBytes) return Status(StatusCode::kCorruptData, fmt::format("{}: is no quarantine file: it has {} bytes", path_, source.size_bytes));
  std::string text(source.size_bytes, '\0');
  RONDO_TRY(source.read(0, std::as_writable_bytes(std::span(text))));
  RONDO_ASSIGN(nlohmann::json document, models::parse_json(text, path_));
  RONDO_ASSIGN(const std::uint64_t version, models::find_u64(document, "rondo_quarantine", path_));
  if (version != kVersion) return Status(StatusCode::kCorruptData, fmt::format("{}: 'rondo_quarantine' is {} but this rondo knows {}", path_, version, kVersion));
  RONDO_TRY(models::find_object(document, "devices", path_).status());
  return document;
}

Result<std::vector<std::string>> QuarantineFile::load(bool may_be_missing) const {
  RONDO_ASSIGN(const nlohmann::json document, read(may_be_missing || !named_));
  RONDO_ASSIGN(const nlohmann::json* devices, models::find_object(document, "devices", path_));
  const std::string key = device_.pipeline_cache_key();
  std::vector<std::string> kernels;
  if (!models::has_field(*devices, key)) return kernels;
  const std::string what = fmt::format("{}: devices", path_);
  RONDO_ASSIGN(const nlohmann::json* device, models::find_object(*devices, key, what));
  RONDO_ASSIGN(const std::string found_with, models::find_string(*device, "rondo", fmt::format("{}: {}", what, key)));
  if (found_with != runtime::embedded_spirv_key()) return kernels;
  RONDO_ASSIGN(const nlohmann::json* list, models::find_array(*device, "kernels", fmt::format("{}: {}", what, key)));
  for (const nlohmann::json& kernel : *list) {
    if (!kernel.is_string()) return Status(StatusCode::kCorruptData, fmt::format("{}: {}: 'kernels' holds something that is no text", what, key));
    kernels.push_back(kernel.get_ref<const std::string&>());
  }
  return kernels;
}

namespace {

/// Holds a folder for itself until it goes: no other process that does so changes files in it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) : folder_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_ >= 0) flock(folder_, LOCK_EX);
  }
  ~FolderLock() {
    if (folder_ >= 0) close(folder_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

}  // namespace

Status QuarantineFile::add_to_file(std::span<const std::string> kernels) const {
  std::error_code error;
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  const FolderLock lock(folder.empty() ? "." : folder);
  RONDO_ASSIGN(nlohmann::json document, read(true));
  nlohmann::json& device = document["devices"][device_.pipeline_cache_key()];
  const bool known = device.is_object() && device.value("rondo", nlohmann::json()) == runtime::embedded_spirv_key() && device.value("kernels", nlohmann::json()).is_array();
  if (!known) device = {{"device", device_.info().name}, {"driver", device_.info().driver}, {"rondo", runtime::embedded_spirv_key()}, {"kernels", nlohmann::json::array()}};
  nlohmann::json& list = device["kernels"];
  for (const std::string& kernel : kernels) {
    if (std::find(list.begin(), list.end(), kernel) == list.end()) list.push_back(kernel);
  }
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  error = replace_file(path_, std::as_bytes(std::span(text)));
  return error ? Status(StatusCode::kIo, fmt::format("{} can't be written: {}", path_, error.message())) : Status();
}

void QuarantineFile::add(std::span<const std::string> kernels) const {
  if (path_.empty()) return;
  if (const Status added = add_to_file(kernels); !added.ok()) warn(fmt::format("quarantine: {}", added.message()));
}

Status QuarantineFile::with_advice(const Status& status) const {
  if (path_.empty() || status.message().find("quarantine") == std::string::npos) return status;
  return Status(status.code(), fmt::format("{}; {} says so: delete it, or go on with --quarantine none", status.message(), path_));
}

}  // namespace rondo::tools
