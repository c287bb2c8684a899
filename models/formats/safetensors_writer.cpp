#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/formats/safetensors.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", unsigned{byte});
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string make_header(std::span<const SafetensorsTensor> tensors) {
  std::string header = "{";
  std::uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[", header.size() == 1 ? "" : ",",
                          json_string(tensor.name), safetensors_dtype_name(tensor.dtype));
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      header += fmt::format("{}{}", i == 0 ? "" : ",", tensor.shape[i]);
    header += fmt::format("],\"data_offsets\":[{},{}]}}", offset, offset + tensor.data.size());
    offset += tensor.data.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

/// A file under another name beside `path`, removed again unless commit() succeeds.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path) {}
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (exists_) ::unlink(temporary_path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Status create() {
    for (int attempt = 0; attempt < 100; ++attempt) {
      temporary_path_ = fmt::format("{}.{}.{}.part", path_, ::getpid(), attempt);
      fd_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd_ >= 0) {
        exists_ = true;
        return Status();
      }
      if (errno != EEXIST && errno != EINTR) break;
    }
    return failed("can't be written");
  }

  Status write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxWriteBytes));
      if (n < 0) {
        if (errno == EINTR) continue;
        return failed("writing failed");
      }
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return Status();
  }

  Status commit() {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) return failed("writing failed");
    if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) return failed("can't be replaced");
    exists_ = false;
    return Status();
  }

 private:
  Status failed(std::string_view message) const {
    return Status(StatusCode::kIo, fmt::format("{}: {}: {}", path_, message, std::generic_category().message(errno)));
  }

  const std::string& path_;
  std::string temporary_path_;
  int fd_ = -1;
  bool exists_ = false;
};

}  // namespace

Status write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors) {
  // A rename would replace a device by a file.
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: is not a regular file, so it can't be replaced by one", path));
  }
  const std::string header = make_header(tensors);
  std::uint64_t data_bytes = 0;
  for (const SafetensorsTensor& tensor : tensors) data_bytes += tensor.data.size();

  // The reader's checks are the writer's too: names, shapes and sizes.
  SafetensorsFile check;
  check.name_ = path;
  if (const Status status = check.parse_header(header, 0, data_bytes); !status.ok()) {
    return Status(StatusCode::kInvalidArgument, status.message());
  }

  TemporaryFile file(path);
  RONDO_TRY(file.create());
  const std::uint64_t header_bytes = header.size();
  RONDO_TRY(file.write(std::as_bytes(std::span(&header_bytes, 1))));
  RONDO_TRY(file.write(std::as_bytes(std::span(header))));
  for (const SafetensorsTensor& tensor : tensors) RONDO_TRY(file.write(tensor.data));
  return file.commit();
}

}  // namespace rondo::models
