// The command's file of kernels that are wrong, by device and driver (ModelOptions::quarantine).
//
// A JSON document: {"rondo_quarantine": 1, "devices": {KEY: {"device": NAME, "driver": NAME, "rondo": HASH, "kernels": [LABEL, ...]}}},
// where KEY is Device::pipeline_cache_key() and HASH that of the kernels it was found with: others mean nothing to it. Unlike the
// pipeline cache it is about right results: a file that can't be read is an error.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <rondo/device.h>

namespace rondo::tools {

class QuarantineFile {
 public:
  /// `setting` is a file, "none", or "" for quarantine.json beside the pipeline cache, whose setting is `pipeline_cache`.
  QuarantineFile(const Device& device, const std::string& setting, const std::string& pipeline_cache);

  /// The kernels of this device and driver. A file that was named and is not there is an error, unless it `may_be_missing`.
  /// Errors: kNotFound, kIo, kCorruptData, naming file and field.
  Result<std::vector<std::string>> load(bool may_be_missing) const;
  /// Adds kernels of this device and driver, if only an entry without any. What fails is one line on stderr. Several processes
  /// may add at a time.
  void add(std::span<const std::string> kernels) const;
  /// What a failure says, and what to do where it is the quarantine's.
  Status with_advice(const Status& status) const;
  bool is_named() const { return named_ && !path_.empty(); }

 private:
  Result<nlohmann::json> read(bool may_be_missing) const;
  Status add_to_file(std::span<const std::string> kernels) const;

  const Device& device_;
  std::string path_;  ///< "": none
  bool named_ = false;
};

}  // namespace rondo::tools
