// The command's file of compiled pipelines, and threads to compile them on.
//
// The cache only saves time: whatever is wrong with its file is one line on stderr, and the work goes on without it.
#pragma once

#include <string>

#include <rondo/device.h>
#include <rondo/executor.h>

namespace rondo::tools {

class PipelineCacheFile {
 public:
  /// `setting` is a file, "none", or "" for one per device and driver in $XDG_CACHE_HOME/rondo (~/.cache/rondo).
  PipelineCacheFile(Device& device, const std::string& setting);
  /// Hands what the file holds to the device. What can't be read, or was named by the user and is no cache, is left alone:
  /// save() does nothing then.
  void load();
  /// Writes what the device has now, if it is more than load() found; through a new file that then takes the name. Where that
  /// fails, the old file stays as it is and nothing of the new one is left.
  void save();

 private:
  Device& device_;
  std::string path_;  // "": no file
  bool named_ = false;  // by the user: it may be any file
  std::size_t loaded_bytes_ = 0;
};

/// A pool of as many threads as the machine has, which live as long as the jobs.
Executor thread_pool();

}  // namespace rondo::tools
