// A file that takes its place once it is whole: until then, and if anything fails, what was there stays.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <rondo/status.h>

namespace rondo::models {

/// Written under another name beside `path`, and removed again unless commit() succeeds. Not thread-safe.
/// Errors of all calls name the path: kIo.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// First of all. Errors: also kInvalidArgument (`path` is a folder, a device or the like, which a rename would replace).
  Status create();
  Status write(std::span<const std::byte> bytes);
  /// Last of all: `path` is this file from then on.
  Status commit();

 private:
  Status failed(std::string_view message) const;

  std::string path_, temporary_path_;
  int fd_ = -1;
  bool exists_ = false;
};

}  // namespace rondo::models
