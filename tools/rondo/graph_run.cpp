#include "tools/rondo/graph_run.h"

#include <algorithm>
#include <utility>

#include "models/random_weights.h"
#include "runtime/fmt.h"
#include "runtime/transfer.h"

namespace rondo::tools {

namespace {

constexpr std::uint32_t kActivations = 0, kFirstStorage = 1;

Status write_zeros(runtime::Device& device, const runtime::Buffer& buffer) {
  runtime::CommandList commands(device);
  RONDO_TRY(commands.begin());
  commands.fill(buffer, 0);
  RONDO_ASSIGN(const VkCommandBuffer recorded, commands.end());
  const runtime::Batch batch{{&recorded, 1}};
  RONDO_ASSIGN(const std::uint64_t value, device.submit({&batch, 1}));
  return device.wait(value, ~0ull);
}

}  // namespace

Result<GraphRun> GraphRun::create(runtime::Device& device, graph::Graph graph, graph::LoweringOptions options, StorageContents contents) {
  RONDO_TRY(Status(graph.status()));
  GraphRun run(device);
  run.graph_ = std::move(graph);
  run.contents_ = std::move(contents);
  for (std::size_t i = 0; i < run.graph_.n_storages(); ++i) {
    graph::Storage& storage = run.graph_.storage(static_cast<graph::StorageId>(i));
    storage.place = {kFirstStorage + static_cast<std::uint32_t>(i), 0, storage.size_bytes};
  }
  options.activation_buffer = kActivations;
  RONDO_TRY(run.place(options));
  RONDO_TRY(run.restore());
  return run;
}

Status GraphRun::place(const graph::LoweringOptions& options) {
  const std::size_t n_storages = graph_.n_storages();  // lowering adds activations
  RONDO_ASSIGN(graph::Lowered lowered, graph::lower(graph_, device_->caps(), options));
  program_ = std::move(lowered.program);
  buffers_.resize(kFirstStorage + n_storages);
  RONDO_ASSIGN(buffers_[kActivations], runtime::Buffer::create(*device_, std::max<std::uint64_t>(lowered.activation_bytes, 4), runtime::MemoryIntent::kDevice, "activations"));
  for (std::size_t i = 0; i < n_storages; ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::Storage& storage = graph_.storage(id);
    if (storage.kind == graph::StorageKind::kActivation) continue;
    runtime::Buffer& buffer = buffers_[kFirstStorage + i];
    RONDO_ASSIGN(buffer, runtime::Buffer::create(*device_, storage.size_bytes, runtime::MemoryIntent::kDevice, storage.name.c_str()));
    if (!contents_.contains(id)) RONDO_TRY(make(id, buffer));
  }
  return {};
}

Status GraphRun::make(graph::StorageId id, const runtime::Buffer& buffer) {
  const graph::Storage& storage = graph_.storage(id);
  const auto seed = static_cast<std::uint32_t>(id + 1);
  if (storage.kind == graph::StorageKind::kConstant) return runtime::upload(*device_, buffer, storage.content);
  if (storage.kind == graph::StorageKind::kWeight) {
    Status made = models::make_random_matrix(*device_, buffer, storage.place, storage.type, storage.matrix, seed);
    return made.code() == StatusCode::kUnsupported ? write_zeros(*device_, buffer) : made;  // no kernel's time depends on them
  }
  if (storage.type == graph::Type::kI32) return write_zeros(*device_, buffer);
  return models::make_random_floats(*device_, buffer, storage.place, storage.type, seed);
}

Result<runtime::Recording> GraphRun::record(std::uint32_t runs) const {
  runtime::Program program;
  program.name = program_.name;
  program.kernels = program_.kernels;
  for (std::uint32_t run = 0; run < runs; ++run) {
    for (const runtime::Dispatch& dispatch : program_.dispatches) {
      const bool first = &dispatch == &program_.dispatches.front();
      program.dispatches.push_back(dispatch);
      if (run > 0 && first) program.dispatches.back().barrier_before = true;
    }
  }
  const runtime::Segment segment{0, static_cast<std::uint32_t>(program.dispatches.size()), 0};
  return runtime::Recording::create(*device_, program, {&segment, 1}, buffers());
}

Result<runtime::Recording> GraphRun::record_cut(double bound_ns, const runtime::TimestampPool* timestamps) const {
  return runtime::Recording::create(*device_, program_, graph::cut_segments(program_, device_->caps(), bound_ns), buffers(), timestamps);
}

std::vector<const runtime::Buffer*> GraphRun::buffers() const {
  std::vector<const runtime::Buffer*> pointers;
  for (const runtime::Buffer& buffer : buffers_) pointers.push_back(&buffer);
  return pointers;
}

Status GraphRun::restore() {
  for (const auto& [id, bytes] : contents_) {
    if (bytes.size() > graph_.storage(id).size_bytes) {
      return Status(StatusCode::kInvalidArgument, fmt::format("{}: {} has {} bytes, not {}", graph_.name, graph_.storage(id).name, graph_.storage(id).size_bytes, bytes.size()));
    }
    RONDO_TRY(runtime::upload(*device_, buffers_[kFirstStorage + static_cast<std::size_t>(id)], bytes));
  }
  return {};
}

Result<std::vector<std::byte>> GraphRun::read(graph::StorageId id) const {
  std::vector<std::byte> bytes(graph_.storage(id).size_bytes);
  RONDO_TRY(runtime::read_back(*device_, buffers_[kFirstStorage + static_cast<std::size_t>(id)], 0, bytes));
  return bytes;
}

}  // namespace rondo::tools
