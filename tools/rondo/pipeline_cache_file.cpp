#include "tools/rondo/pipeline_cache_file.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <rondo/byte_source.h>

#include "runtime/fmt.h"
#include "tools/rondo/cache_files.h"

namespace rondo::tools {

namespace {

constexpr std::uint64_t kMostBytes = 256u << 20;

std::string file_in_cache_directory(const Device& device) {
  const std::string directory = cache_directory();
  return directory.empty() ? "" : fmt::format("{}/pipelines-{}.bin", directory, device.pipeline_cache_key());
}

bool is_cache_of_any_format(std::span<const std::byte> bytes) {
  constexpr std::string_view kStart = "RONDOPC";
  return bytes.size() >= kStart.size() && std::equal(kStart.begin(), kStart.end(), bytes.begin(), [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
}

}  // namespace

PipelineCacheFile::PipelineCacheFile(Device& device, const std::string& setting) : device_(device), named_(!setting.empty()) {
  if (setting == "none") return;
  path_ = setting.empty() ? file_in_cache_directory(device) : setting;
}

void PipelineCacheFile::load() {
  std::error_code error;
  if (path_.empty() || !std::filesystem::exists(path_, error)) return;
  const std::string path = std::exchange(path_, "");
  const Result<ByteSource> source = open_file(path);
  if (!source.ok()) return warn(fmt::format("pipeline cache not used: {}", source.status().message()));
  if (source->size_bytes > kMostBytes) return warn(fmt::format("pipeline cache not used: {} has {} bytes, more than {}", path, source->size_bytes, kMostBytes));
  std::vector<std::byte> blob(source->size_bytes);
  const Status read = source->read(0, blob);
  if (!read.ok()) return warn(fmt::format("pipeline cache not used: {}", read.message()));
  if (device_.add_pipeline_cache(blob)) loaded_bytes_ = blob.size();
  else if (named_ && !blob.empty() && !is_cache_of_any_format(blob)) return;
  path_ = path;
}

void PipelineCacheFile::save() {
  if (path_.empty()) return;
  const Result<std::vector<std::byte>> blob = device_.pipeline_cache();
  if (!blob.ok() || blob->size() <= loaded_bytes_) return;
  const std::error_code error = replace_file(path_, *blob);
  if (error) warn(fmt::format("pipeline cache: {} can't be written: {}", path_, error.message()));
  else loaded_bytes_ = blob->size();
}

Executor thread_pool() {
  return [](std::size_t n, const std::function<void(std::size_t)>& job) {
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < n; i = next++) job(i);
    };
    std::vector<std::jthread> threads;
    const std::size_t n_threads = std::min<std::size_t>(std::max(std::thread::hardware_concurrency(), 1u), n);
    for (std::size_t i = 1; i < n_threads; ++i) threads.emplace_back(work);
    work();
  };
}

}  // namespace rondo::tools
