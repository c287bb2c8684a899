// What stands behind the public Program (include/rondo/graph.h): a graph on a device that is run many times.
//
// Owns the run, its recording and the host memory through which inputs and outputs pass; shares the device. A run is: copies of
// the inputs that were set, the recording's segments, copies of all outputs to host memory. One run is in flight at a time.
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/graph.h>

#include "models/formats/graph_file.h"
#include "models/graph_run.h"
#include "runtime/timestamps.h"
#include "runtime/transfer.h"

namespace rondo::models {

class GraphProgram {
 public:
  /// As Program::compile; `file` has been checked. Contents that it has are used, other inputs are read from their sources.
  static Result<std::unique_ptr<GraphProgram>> compile(std::shared_ptr<runtime::Device> device, GraphFile file, const ProgramOptions& options);

  std::span<const ProgramTensor> inputs() const { return input_infos_; }
  std::span<const ProgramTensor> outputs() const { return output_infos_; }
  std::uint64_t device_bytes() const;
  std::uint32_t n_dispatches() const { return static_cast<std::uint32_t>(run_.program().dispatches.size()); }
  const GraphRun& run() const { return run_; }
  const std::vector<GraphFile::Output>& output_tensors() const { return outputs_; }

  /// `type`: what the caller's elements are; nothing: bytes.
  Status set_input(std::string_view name, std::optional<Type> type, std::span<const std::byte> bytes);
  Status reset_caches();
  Status submit();
  Status advance();
  bool running() const { return running_; }
  Status wait(std::chrono::nanoseconds timeout);
  Status read(std::string_view name, std::optional<Type> type, std::span<std::byte> out) const;
  /// The elements of output `index` as files have them. There was a run.
  std::vector<std::byte> elements(std::size_t index) const;
  Result<ProfiledStep> take_profile();

 private:
  /// An input's host memory, on its way to the device.
  struct Staged {
    StoredInput stored;
    runtime::Buffer buffer;  ///< made when the input is first set
    bool set = false;        ///< it was, or its file says what it holds
    bool dirty = false;      ///< `buffer` is to be copied before the next run
    bool zero = false;       ///< the storage is to be made zeros instead
  };
  /// Where a storage's bytes are in host memory after a run.
  struct Readback {
    graph::StorageId storage = graph::kNone;
    std::uint64_t offset_bytes = 0;
  };

  GraphProgram(std::shared_ptr<runtime::Device> device, GraphRun run) : device_(std::move(device)), run_(std::move(run)), before_(*device_), after_(*device_) {}
  Status fill(GraphFile& file);
  Status prepare(const ProgramOptions& options);
  void describe(const GraphFile& file);
  Status idle(const char* what) const;
  Status stage(Staged& staged, const InputElements& elements);
  Result<VkCommandBuffer> record_before();
  Result<VkCommandBuffer> record_after();
  Status submit_next();
  const std::byte* bytes_after(graph::StorageId storage) const;

  std::shared_ptr<runtime::Device> device_;  ///< goes last
  GraphRun run_;
  std::vector<GraphFile::Output> outputs_;
  std::vector<IntegerCheck> checks_;
  StorageBytes integers_;  ///< what i32 storages that the host fills hold
  bool integers_changed_ = false;
  std::vector<ProgramTensor> input_infos_, output_infos_;
  std::vector<Staged> staged_;
  std::vector<Readback> readbacks_;
  runtime::Buffer readback_;
  runtime::TimestampPool timestamps_;
  runtime::Recording recording_;
  runtime::CommandList before_, after_;
  bool profile_ = false, ran_ = false, running_ = false;
  VkCommandBuffer before_commands_ = VK_NULL_HANDLE, after_commands_ = VK_NULL_HANDLE;
  std::size_t next_segment_ = 0, n_segments_ = 1;
  std::vector<std::uint64_t> values_;  ///< of the segments submitted
  std::vector<VkCommandBuffer> batch_;
};

}  // namespace rondo::models
