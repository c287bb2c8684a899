#include "tools/rondo/cache_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runtime/fmt.h"

namespace rondo::tools {

std::string cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/rondo";
  return home && *home ? std::string(home) + "/.cache/rondo" : "";
}

std::string path_beside_cache(const std::string& pipeline_cache, const std::string& name) {
  const bool named = !pipeline_cache.empty() && pipeline_cache != "none";
  const std::string directory = named ? std::filesystem::path(pipeline_cache).parent_path().string() : cache_directory();
  return named && directory.empty() ? name : directory.empty() ? "" : directory + "/" + name;
}

std::error_code replace_file(const std::string& path, std::span<const std::byte> bytes) {
  std::error_code ignored;
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (!directory.empty()) std::filesystem::create_directories(directory, ignored);
  const auto last_error = [] { return std::error_code(errno ? errno : EIO, std::generic_category()); };
  std::string temporary = path + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return last_error();
  std::error_code error;
  for (std::size_t at = 0; at < bytes.size() && !error;) {
    errno = 0;
    const ssize_t n = write(file, bytes.data() + at, bytes.size() - at);
    if (n > 0) at += static_cast<std::size_t>(n);
    else if (errno != EINTR) error = last_error();
  }
  // The machine may go down with what is measured here: the name is taken once the bytes are on the disk.
  if (!error && (fchmod(file, 0644) != 0 || fsync(file) != 0)) error = last_error();
  if (close(file) != 0 && !error) error = last_error();
  if (!error) std::filesystem::rename(temporary, path, error);
  if (error) std::filesystem::remove(temporary, ignored);
  return error;
}

void warn(const std::string& message) { fmt::print(stderr, "rondo: warn: {}\n", message); }

}  // namespace rondo::tools
