// The command's file of what `rondo tune` measured, by device and driver (ModelOptions::tuning).
//
// It only saves time: whatever is wrong with it is one line on stderr, and kernels are chosen without it.
#pragma once

#include <string>

#include <rondo/device.h>

#include "tools/rondo/command.h"

namespace rondo::tools {

class TuningFile {
 public:
  /// That of --tuning, or tuning-KEY.json beside the pipeline cache, where KEY is Device::pipeline_cache_key(). None with --as.
  TuningFile(const Device& device, const GlobalFlags& flags);

  /// Whether there is one for any device: without one, none needs to be opened.
  static bool is_any_there(const GlobalFlags& flags);

  /// What is in it; "" where there is none. Errors: kNotFound (it was named and is not there), kInvalidArgument (named with --as).
  Result<std::string> load() const;
  /// The same before a save, of a file that need not be there. Errors, naming it: kIo (it can't be written), kInvalidArgument (it was
  /// named and holds something else).
  Result<std::string> load_to_replace() const;
  /// Errors: kIo, naming the file.
  Status save(const std::string& text) const;
  const std::string& path() const { return path_; }  ///< "": none

 private:
  std::string read() const;

  std::string path_;
  bool named_ = false, pretends_ = false;
};

}  // namespace rondo::tools
