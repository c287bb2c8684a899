#include "models/new_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;

}  // namespace

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (exists_) ::unlink(temporary_path_.c_str());
}

Status NewFile::create() {
  struct stat info = {};
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: is not a regular file, so it can't be replaced by one", path_));
  }
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_path_ = fmt::format("{}.{}.{}.part", path_, ::getpid(), attempt);
    fd_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ >= 0) {
      exists_ = true;
      return {};
    }
    if (errno != EEXIST && errno != EINTR) break;
  }
  return failed("can't be written");
}

Status NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxWriteBytes));
    if (n < 0) {
      if (errno == EINTR) continue;
      return failed("writing failed");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status NewFile::commit() {
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) return failed("writing failed");
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) return failed("can't be replaced");
  exists_ = false;
  return {};
}

Status NewFile::failed(std::string_view message) const {
  return Status(StatusCode::kIo, fmt::format("{}: {}: {}", path_, message, std::generic_category().message(errno)));
}

}  // namespace rondo::models
