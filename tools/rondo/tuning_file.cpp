#include "tools/rondo/tuning_file.h"

#include <filesystem>

#include <rondo/byte_source.h>

#include "runtime/fmt.h"
#include "tools/rondo/cache_files.h"

namespace rondo::tools {

namespace {

constexpr const char* kPrefix = "tuning-";

}  // namespace

TuningFile::TuningFile(const Device& device, const GlobalFlags& flags) : named_(!flags.tuning.empty() && flags.tuning != "none"), pretends_(!flags.as.empty()) {
  if (named_) path_ = flags.tuning;
  else if (flags.tuning.empty() && !pretends_) path_ = path_beside_cache(flags.pipeline_cache, fmt::format("{}{}.json", kPrefix, device.pipeline_cache_key()));
}

bool TuningFile::is_any_there(const GlobalFlags& flags) {
  if (!flags.tuning.empty() || !flags.as.empty()) return flags.tuning != "none" && !flags.tuning.empty();
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
  return load_if_there();
}

std::string TuningFile::load_if_there() const {
  constexpr std::uint64_t kMostBytes = 1u << 20;
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

Status TuningFile::save(const std::string& text) const {
  if (path_.empty()) return {};
  const std::error_code error = replace_file(path_, std::as_bytes(std::span(text)));
  return error ? Status(StatusCode::kIo, fmt::format("tuning: {} can't be written: {}", path_, error.message())) : Status();
}

}  // namespace rondo::tools
