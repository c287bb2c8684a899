#include "tools/rondo/quarantine_file.h"

#include <algorithm>
#include <filesystem>

#include <rondo/byte_source.h>

#include "models/json.h"
#include "runtime/fmt.h"
#include "tools/rondo/cache_files.h"

namespace rondo::tools {

namespace {

constexpr std::uint64_t kVersion = 1, kMostBytes = 1u << 20;

nlohmann::json empty_document() { return {{"rondo_quarantine", kVersion}, {"devices", nlohmann::json::object()}}; }

}  // namespace

QuarantineFile::QuarantineFile(const Device& device, const std::string& setting, const std::string& pipeline_cache) : device_(device), named_(!setting.empty()) {
  if (setting == "none") return;
  const bool beside_cache = !pipeline_cache.empty() && pipeline_cache != "none";
  const std::string directory = beside_cache ? std::filesystem::path(pipeline_cache).parent_path().string() : cache_directory();
  path_ = named_ ? setting : beside_cache && directory.empty() ? "quarantine.json" : directory.empty() ? "" : directory + "/quarantine.json";
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
  RONDO_ASSIGN(const nlohmann::json* list, models::find_array(*device, "kernels", fmt::format("{}: {}", what, key)));
  for (const nlohmann::json& kernel : *list) {
    if (!kernel.is_string()) return Status(StatusCode::kCorruptData, fmt::format("{}: {}: 'kernels' holds something that is no text", what, key));
    kernels.push_back(kernel.get_ref<const std::string&>());
  }
  return kernels;
}

void QuarantineFile::add(const std::string& kernel) const {
  if (path_.empty()) return;
  Result<nlohmann::json> document = read(true);
  if (!document.ok()) return warn(fmt::format("quarantine: {}", document.status().message()));
  nlohmann::json& device = (*document)["devices"][device_.pipeline_cache_key()];
  device["device"] = device_.info().name;
  device["driver"] = device_.info().driver;
  nlohmann::json& kernels = device["kernels"];
  if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
  const std::string text = document->dump(2) + "\n";
  if (const std::error_code error = replace_file(path_, std::as_bytes(std::span(text)))) warn(fmt::format("quarantine: {} can't be written: {}", path_, error.message()));
}

}  // namespace rondo::tools
