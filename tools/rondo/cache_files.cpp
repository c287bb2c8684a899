#include "tools/rondo/cache_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/fmt.h"

namespace rondo::tools {

std::string cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache && *cache == '/') return std::string(cache) + "/rondo";
  return home && *home ? std::string(home) + "/.cache/rondo" : "";
}

std::error_code replace_file(const std::string& path, std::span<const std::byte> bytes) {
  std::error_code error, ignored;
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (!directory.empty()) std::filesystem::create_directories(directory, ignored);
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  errno = 0;
  std::ofstream file(temporary, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file.good()) std::filesystem::rename(temporary, path, error);
  else error.assign(errno ? errno : EIO, std::generic_category());
  if (error) std::filesystem::remove(temporary, ignored);
  return error;
}

void warn(const std::string& message) { fmt::print(stderr, "rondo: warn: {}\n", message); }

}  // namespace rondo::tools
