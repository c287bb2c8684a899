#include <rondo/byte_source.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "graph/quantize.h"
#include "models/formats/hugging_face.h"
#include "models/formats/quantized_gguf.h"
#include "models/formats/split_gguf.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo {

namespace {

// One pread call of more than about 2 GiB is cut short by Linux.
constexpr std::size_t kMaxReadBytes = std::size_t{1} << 30;

std::string error_text(int error) { return std::generic_category().message(error); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int value() const { return fd_; }

 private:
  int fd_;
};

Status read_at(int fd, const std::string& path, std::uint64_t offset, std::span<std::byte> out) {
  constexpr auto kMaxOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (offset > kMaxOffset || out.size() > kMaxOffset - offset) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: offset {} is beyond any file", path, offset));
  }
  while (!out.empty()) {
    const ssize_t n = ::pread(fd, out.data(), std::min(out.size(), kMaxReadBytes), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return Status(StatusCode::kIo, fmt::format("{}: reading {} bytes at offset {} failed: {}", path, out.size(),
                                                 offset, error_text(errno)));
    }
    if (n == 0) {
      return Status(StatusCode::kCorruptData,
                    fmt::format("{}: file has become shorter: it ends before offset {}, where {} more bytes are needed",
                                path, offset, out.size()));
    }
    out = out.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return Status();
}

}  // namespace

Result<ByteSource> open_file(const std::string& path) {
  if (path.empty()) return Status(StatusCode::kInvalidArgument, "open_file: the path is empty");
  int fd = -1;
  do {
    // O_NONBLOCK: opening a FIFO must not wait for its writer; it means nothing for regular files.
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    const bool absent = errno == ENOENT || errno == ENOTDIR;
    return Status(absent ? StatusCode::kNotFound : StatusCode::kIo,
                  fmt::format("{}: can't be opened: {}", path, error_text(errno)));
  }
  auto file = std::make_shared<const FileDescriptor>(fd);

  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    return Status(StatusCode::kIo, fmt::format("{}: its size can't be read: {}", path, error_text(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: is {}, expected a regular file", path,
                              S_ISDIR(info.st_mode) ? "a directory" : "a device, pipe or socket"));
  }

  ByteSource source;
  source.name = path;
  source.size_bytes = static_cast<std::uint64_t>(info.st_size);
  source.read = [file = std::move(file), path](std::uint64_t offset, std::span<std::byte> out) {
    return read_at(file->value(), path, offset, out);
  };
  return source;
}

Result<ByteSource> open_model(const std::string& path, const OpenOptions& options) {
  std::optional<graph::Type> type;
  if (!options.quantize.empty()) {
    type = graph::find_quantized_type(options.quantize);
    if (!type) {
      return Status(StatusCode::kUnsupported, fmt::format("open_model: quantising to '{}' is not there ({} are)", models::printable(options.quantize), graph::quantized_type_names()));
    }
  }
  struct stat info = {};
  const bool is_folder = ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  Result<ByteSource> source = is_folder ? models::open_hugging_face_folder(path, options.head) : models::open_gguf(path);
  return source.ok() && type ? models::quantize_gguf(*source, *type) : source;
}

ByteSource memory_source(std::span<const std::byte> bytes, std::string name) {
  ByteSource source;
  source.size_bytes = bytes.size();
  source.read = [bytes, name](std::uint64_t offset, std::span<std::byte> out) {
    if (offset > bytes.size() || out.size() > bytes.size() - offset) {
      return Status(StatusCode::kInvalidArgument, fmt::format("{}: {} bytes at offset {} are beyond its end at {}",
                                                              name, out.size(), offset, bytes.size()));
    }
    if (!out.empty()) std::memcpy(out.data(), bytes.data() + offset, out.size());
    return Status();
  };
  source.name = std::move(name);
  return source;
}

}  // namespace rondo
