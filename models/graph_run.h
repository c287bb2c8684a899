// A graph on a device, ready to run: what programs of people's own, graph files, checks and measurements of kernels share.
//
// Owns the device memory of all storages, in few buffers, and the lowered Program; borrows the device. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include <rondo/status.h>

#include "graph/lowering.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::models {

/// Bytes of storages, as kernels read them: weights in planes (graph/block_format.h).
using StorageContents = std::map<graph::StorageId, std::vector<std::byte>>;

struct GraphRunOptions {
  graph::LoweringOptions lowering;            ///< but for the activations' buffer, which is chosen here
  const runtime::DeviceCaps* caps = nullptr;  ///< choices are made for these; null: the device's own
  /// Unused bytes before, between and behind storages and behind the activations. Those behind a storage are bound with it, so
  /// that writes beyond its end are seen rather than dropped.
  std::uint64_t guard_bytes = 0;
};

/// A graph lowered, and where everything lies: pure.
struct GraphPlan {
  graph::Lowered lowered;
  std::vector<std::uint64_t> buffer_bytes;  ///< by buffer index of the places; the activations' is the first
};

/// Gives each storage of `graph`, which has a step state, a place, and lowers it. Errors: the graph's, kUnsupported (a forced
/// kernel, a grid or a storage that the device can't have).
Result<GraphPlan> plan_graph(graph::Graph& graph, const runtime::DeviceCaps& caps, const GraphRunOptions& options = {});

class GraphRun {
 public:
  /// Lowers `graph`, which has a step state, and allocates its storages; constants are filled, of the others nobody knows what
  /// they hold. Errors: the graph's, kUnsupported (a forced kernel, a grid or a storage that the device can't have),
  /// kOutOfMemory, kDeviceLost.
  static Result<GraphRun> create(runtime::Device& device, graph::Graph graph, const GraphRunOptions& options = {});

  runtime::Device& device() const { return *device_; }
  /// As it was lowered: fused, and with a place for each storage, whose buffer indices are those of buffers().
  const graph::Graph& graph() const { return graph_; }
  const runtime::Program& program() const { return program_; }
  std::uint64_t activation_bytes() const { return activation_bytes_; }
  /// The activations' is the first.
  std::span<const runtime::Buffer> buffers() const { return buffers_; }
  const runtime::Buffer& buffer_of(graph::StorageId id) const { return buffers_[graph_.storage(id).place.buffer]; }

  /// The Program, `runs` times one after the other, as one command buffer; this outlives it. There must be a dispatch.
  Result<runtime::Recording> record(std::uint32_t runs = 1) const;
  /// The Program once, cut into command buffers of at most `bound_ns` of predicted time each, as a model's steps are. With
  /// `timestamps`, the profiling recording (runtime/recording.h). There must be a dispatch.
  Result<runtime::Recording> record_cut(double bound_ns, const runtime::TimestampPool* timestamps = nullptr) const;

  /// Writes into storages, waiting until the bytes are there. Errors: kInvalidArgument (more than a storage holds), the device's.
  Status write(const StorageContents& contents);
  /// A part of that: writes `bytes` through `uploader`; they are there once `finish_writes` has been called.
  Status write(runtime::Uploader& uploader, graph::StorageId id, std::span<const std::byte> bytes);
  Status finish_writes(runtime::Uploader& uploader);
  /// Fills storages that `contents` and constants leave: i32 with zeros, other floats and weights with random values, the same
  /// each time (zeros for weight types without random ones). Waits.
  Status make_others(const StorageContents& contents);
  /// What a storage that is no activation holds now.
  Result<std::vector<std::byte>> read(graph::StorageId id) const;

 private:
  explicit GraphRun(runtime::Device& device) : device_(&device) {}
  std::vector<const runtime::Buffer*> bound() const;
  Status allocate(std::span<const std::uint64_t> buffer_bytes);
  Status make(graph::StorageId id);

  runtime::Device* device_;
  graph::Graph graph_;
  runtime::Program program_;
  std::uint64_t activation_bytes_ = 0;
  std::size_t n_storages_ = 0;  ///< before lowering, which adds activations
  std::vector<runtime::Buffer> buffers_;
};

}  // namespace rondo::models
