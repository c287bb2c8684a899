// A graph on the device, ready to run: what measuring one operator's kernel takes, and evaluating a graph file.
//
// Owns a buffer for each storage and one for all activations, and the lowered Program; borrows the device. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include <rondo/status.h>

#include "graph/lowering.h"
#include "runtime/memory.h"
#include "runtime/recording.h"

namespace rondo::tools {

/// Bytes of storages before a run, as kernels read them: weights in planes (graph/block_format.h).
using StorageContents = std::map<graph::StorageId, std::vector<std::byte>>;

class GraphRun {
 public:
  /// Lowers `graph` and puts its storages on the device. Those without content are made there: constants as the graph has
  /// them, other i32 as zeros, other floats and weights as random values, the same each time (zeros for weight types without
  /// random ones). The graph has a step state.
  /// Errors: kUnsupported (a forced kernel, a grid or a storage that the device can't have), kOutOfMemory, kDeviceLost.
  static Result<GraphRun> create(runtime::Device& device, graph::Graph graph, graph::LoweringOptions options, StorageContents contents);

  const graph::Graph& graph() const { return graph_; }
  const runtime::Program& program() const { return program_; }

  /// The Program, `runs` times one after the other, as one command buffer; this outlives it. There must be a dispatch.
  Result<runtime::Recording> record(std::uint32_t runs = 1) const;
  /// The Program once, cut into command buffers of at most `bound_ns` of predicted time each, as a model's steps are. With
  /// `timestamps`, the profiling recording (runtime/recording.h). There must be a dispatch.
  Result<runtime::Recording> record_cut(double bound_ns, const runtime::TimestampPool* timestamps = nullptr) const;
  /// Puts the contents given to create() back, waiting until they are there: for kernels that change what they read.
  Status restore();
  /// What a storage that is no activation holds now.
  Result<std::vector<std::byte>> read(graph::StorageId id) const;

 private:
  std::vector<const runtime::Buffer*> buffers() const;
  explicit GraphRun(runtime::Device& device) : device_(&device) {}
  Status place(const graph::LoweringOptions& options);
  Status make(graph::StorageId id, const runtime::Buffer& buffer);

  runtime::Device* device_;
  graph::Graph graph_;
  runtime::Program program_;
  StorageContents contents_;
  std::vector<runtime::Buffer> buffers_;  ///< the activations', then one for each storage (none for an activation)
};

}  // namespace rondo::tools
