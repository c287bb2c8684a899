#include "tools/rondo/pipeline_cache_file.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <rondo/byte_source.h>

namespace rondo::tools {

namespace {

constexpr std::uint64_t kMostBytes = 256u << 20;

void warn(const std::string& message) { fmt::print(stderr, "rondo: warn: {}\n", message); }

std::string file_in_cache_directory(const Device& device) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string directory;
  if (cache && *cache == '/') directory = cache;
  else if (home && *home) directory = std::string(home) + "/.cache";
  if (directory.empty()) return "";
  return fmt::format("{}/rondo/pipelines-{}.bin", directory, device.pipeline_cache_key());
}

}  // namespace

PipelineCacheFile::PipelineCacheFile(Device& device, const std::string& setting) : device_(device) {
  if (setting == "none") return;
  path_ = setting.empty() ? file_in_cache_directory(device) : setting;
}

void PipelineCacheFile::load() {
  std::error_code error;
  if (path_.empty() || !std::filesystem::exists(path_, error)) return;
  const Result<ByteSource> source = open_file(path_);
  if (!source.ok()) return warn(fmt::format("pipeline cache not used: {}", source.status().message()));
  if (source->size_bytes > kMostBytes) return warn(fmt::format("pipeline cache not used: {} has {} bytes, more than {}", path_, source->size_bytes, kMostBytes));
  std::vector<std::byte> blob(source->size_bytes);
  const Status read = source->read(0, blob);
  if (!read.ok()) return warn(fmt::format("pipeline cache not used: {}", read.message()));
  if (device_.add_pipeline_cache(blob)) loaded_bytes_ = blob.size();
}

void PipelineCacheFile::save() {
  if (path_.empty()) return;
  const Result<std::vector<std::byte>> blob = device_.pipeline_cache();
  if (!blob.ok() || blob->size() <= loaded_bytes_) return;
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::path(path_).parent_path();
  if (!directory.empty()) std::filesystem::create_directories(directory, error);
  const std::string temporary = fmt::format("{}.{}", path_, getpid());
  bool written = false;
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(reinterpret_cast<const char*>(blob->data()), static_cast<std::streamsize>(blob->size()));
    file.close();
    written = file.good();
  }
  if (written) std::filesystem::rename(temporary, path_, error);
  if (written && !error) {
    loaded_bytes_ = blob->size();
    return;
  }
  std::filesystem::remove(temporary, error);
  warn(fmt::format("pipeline cache: {} can't be written", path_));
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
