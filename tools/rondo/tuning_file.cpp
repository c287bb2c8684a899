#include "tools/rondo/tuning_file.h"

#include <filesystem>

#include <rondo/byte_source.h>

#include "models/tuning.h"
#include "runtime/fmt.h"
#include "tools/rondo/cache_files.h"

namespace rondo::tools {

namespace {

constexpr const char* kPrefix = "tuning-";
constexpr std::uint64_t kMostBytes = 1u << 20;

}  // namespace

TuningFile::TuningFile(const Device& device, const GlobalFlags& flags) : named_(!flags.tuning.empty() && flags.tuning != "none"), pretends_(!flags.as.empty()) {
  if (named_) path_ = flags.tuning;
  else if (flags.tuning.empty() && !pretends_) path_ = path_beside_cache(flags.pipeline_cache, fmt::format("{}{}.json", kPrefix, device.pipeline_cache_key()));
}

bool TuningFile::is_any_there(const GlobalFlags& flags) {
  if (!flags.tuning.empty()) return flags.tuning != "none";
  if (!flags.as.empty()) return false;
  const std::filesystem::path beside = path_beside_cache(flags.pipeline_cache, kPrefix);
  std::error_code error;
  for (std::filesystem::directory_iterator file(beside.has_parent_path() ? beside.parent_path() : ".", error), end; !error && file != end; file.increment(error)) {
    if (file->path().filename().string().starts_with(kPrefix)) return true;
  }
  return false;
}

Result<std::string> TuningFile::load() const {
  if (named_ && pretends_) return Status(StatusCode::kInvalidArgument, "--tuning is of a device as it is, and --as makes it another");
  std::error_code error;
  if (named_ && !std::filesystem::exists(path_, error)) return Status(StatusCode::kNotFound, fmt::format("--tuning: there is no file {}; rondo tune makes one", path_));
  return read();
}

std::string TuningFile::read() const {
  std::error_code error;
  if (path_.empty() || !std::filesystem::exists(path_, error)) return "";
  const Result<ByteSource> source = open_file(path_);
  Status read = source.status();
  std::string text;
  if (source.ok() && source->size_bytes > kMostBytes) read = Status(StatusCode::kCorruptData, fmt::format("{} has {} bytes, more than {}", path_, source->size_bytes, kMostBytes));
  if (read.ok()) {
    text.resize(source->size_bytes);
    read = source->read(0, std::as_writable_bytes(std::span(text)));
  }
  if (read.ok()) return text;
  warn(fmt::format("tuning not used: {}", read.message()));
  return "";
}

Result<std::string> TuningFile::load_to_replace() const {
  std::error_code error;
  const bool is_there = !path_.empty() && std::filesystem::exists(path_, error);
  const std::string text = is_there && std::filesystem::is_regular_file(path_, error) && std::filesystem::file_size(path_, error) <= kMostBytes ? read() : "";
  if (named_ && is_there && !std::filesystem::is_empty(path_, error) && !models::is_tuning(text)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("--tuning: {} is there and is no file of rondo tune's; it stays as it is", path_));
  }
  RONDO_TRY(save(text));
  return text;
}

Status TuningFile::save(const std::string& text) const {
  if (path_.empty()) return {};
  const std::error_code error = replace_file(path_, std::as_bytes(std::span(text)));
  return error ? Status(StatusCode::kIo, fmt::format("tuning: {} can't be written: {}", path_, error.message())) : Status();
}

}  // namespace rondo::tools
