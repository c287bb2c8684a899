#include "models/graph_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/placement.h"
#include "models/random_weights.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::uint32_t kActivations = 0, kFirstStorages = 1;
// Few allocations, and none that a driver finds hard to place.
constexpr std::uint64_t kLargestRunBuffer = std::uint64_t{256} << 20;

Status write_zeros(GraphRun& run, graph::StorageId id) {
  const runtime::BufferRange& place = run.graph().storage(id).place;
  runtime::CommandList commands(run.device());
  RONDO_TRY(commands.begin());
  commands.fill(run.buffer_of(id), 0, place.offset_bytes, place.size_bytes);
  RONDO_ASSIGN(const VkCommandBuffer recorded, commands.end());
  const runtime::Batch batch{{&recorded, 1}};
  RONDO_ASSIGN(const std::uint64_t value, run.device().submit({&batch, 1}));
  return run.device().wait(value, ~0ull);
}

}  // namespace

Result<GraphRun> GraphRun::create(runtime::Device& device, graph::Graph graph, const GraphRunOptions& options) {
  RONDO_TRY(Status(graph.status()));
  GraphRun run(device);
  run.graph_ = std::move(graph);
  run.n_storages_ = run.graph_.n_storages();
  RONDO_ASSIGN(GraphPlan plan, plan_graph(run.graph_, options.caps ? *options.caps : device.caps(), options));
  run.program_ = std::move(plan.lowered.program);
  run.activation_bytes_ = plan.lowered.activation_bytes;
  RONDO_TRY(run.allocate(plan.buffer_bytes));
  StorageContents constants;
  for (std::size_t i = 0; i < run.n_storages_; ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    if (run.graph_.storage(id).kind == graph::StorageKind::kConstant) constants[id] = run.graph_.storage(id).content;
  }
  RONDO_TRY(run.write(constants));
  return run;
}

Result<GraphPlan> plan_graph(graph::Graph& graph, const runtime::DeviceCaps& caps, const GraphRunOptions& options) {
  std::vector<graph::StorageId> ids;
  std::vector<std::uint64_t> sizes;
  std::uint64_t largest = std::min(kLargestRunBuffer, caps.max_allocation_bytes);
  if (options.guard_bytes) sizes.push_back(options.guard_bytes);
  for (std::size_t i = 0; i < graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::Storage& storage = graph.storage(id);
    if (storage.kind == graph::StorageKind::kActivation) continue;
    ids.push_back(id);
    sizes.push_back((storage.size_bytes + 3) / 4 * 4 + options.guard_bytes);
    largest = std::max(largest, sizes.back());
  }
  RONDO_ASSIGN(const Placement placement, place_blocks(sizes, caps.storage_offset_alignment, largest, kFirstStorages));
  for (std::size_t i = 0; i < ids.size(); ++i) graph.storage(ids[i]).place = placement.places[sizes.size() - ids.size() + i];

  graph::LoweringOptions lowering = options.lowering;
  lowering.activation_buffer = kActivations;
  GraphPlan plan;
  RONDO_ASSIGN(plan.lowered, graph::lower(graph, caps, lowering));
  plan.buffer_bytes = {std::max<std::uint64_t>(plan.lowered.activation_bytes + options.guard_bytes, 4)};
  plan.buffer_bytes.insert(plan.buffer_bytes.end(), placement.buffer_bytes.begin(), placement.buffer_bytes.end());
  return plan;
}

Status GraphRun::allocate(std::span<const std::uint64_t> buffer_bytes) {
  for (const std::uint64_t size_bytes : buffer_bytes) {
    const char* what = buffers_.empty() ? "activations" : "weights, inputs and outputs";
    RONDO_ASSIGN(runtime::Buffer buffer, runtime::Buffer::create(*device_, size_bytes, runtime::MemoryIntent::kDevice, what));
    buffers_.push_back(std::move(buffer));
  }
  return {};
}

Status GraphRun::make_others(const StorageContents& contents) {
  for (std::size_t i = 0; i < n_storages_; ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::StorageKind kind = graph_.storage(id).kind;
    if (kind == graph::StorageKind::kActivation || kind == graph::StorageKind::kConstant || contents.contains(id)) continue;
    RONDO_TRY(make(id));
  }
  return {};
}

Status GraphRun::make(graph::StorageId id) {
  const graph::Storage& storage = graph_.storage(id);
  const auto seed = static_cast<std::uint32_t>(id + 1);
  if (storage.kind == graph::StorageKind::kWeight) {
    Status made = make_random_matrix(*device_, buffer_of(id), storage.place, storage.type, storage.matrix, seed);
    return made.code() == StatusCode::kUnsupported ? write_zeros(*this, id) : made;  // no kernel's time depends on them
  }
  if (storage.type != graph::Type::kF32 && storage.type != graph::Type::kF16) return write_zeros(*this, id);
  return make_random_floats(*device_, buffer_of(id), storage.place, storage.type, seed);
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
  return runtime::Recording::create(*device_, program, {&segment, 1}, bound());
}

Result<runtime::Recording> GraphRun::record_cut(double bound_ns, const runtime::TimestampPool* timestamps) const {
  return runtime::Recording::create(*device_, program_, graph::cut_segments(program_, device_->caps(), bound_ns), bound(), timestamps);
}

std::vector<const runtime::Buffer*> GraphRun::bound() const {
  std::vector<const runtime::Buffer*> pointers;
  for (const runtime::Buffer& buffer : buffers_) pointers.push_back(&buffer);
  return pointers;
}

Status GraphRun::write(const StorageContents& contents) {
  runtime::Uploader uploader(*device_);
  for (const auto& [id, bytes] : contents) RONDO_TRY(write(uploader, id, bytes));
  return finish_writes(uploader);
}

Status GraphRun::write(runtime::Uploader& uploader, graph::StorageId id, std::span<const std::byte> bytes) {
  const graph::Storage& storage = graph_.storage(id);
  if (bytes.size() > (storage.size_bytes + 3) / 4 * 4) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: {} has {} bytes, not {}", graph_.name, storage.name, storage.size_bytes, bytes.size()));
  }
  if (bytes.empty()) return {};
  const runtime::Buffer& buffer = buffer_of(id);
  for (std::uint64_t at = 0; at < bytes.size(); at += uploader.max_write_bytes()) {
    const std::uint64_t n = std::min<std::uint64_t>(uploader.max_write_bytes(), bytes.size() - at);
    RONDO_TRY(uploader.reserve(buffer, n));
    std::memcpy(uploader.target(buffer, storage.place.offset_bytes + at, n), bytes.data() + at, n);
  }
  return buffer.flush(storage.place.offset_bytes, bytes.size());
}

Status GraphRun::finish_writes(runtime::Uploader& uploader) {
  RONDO_TRY(uploader.submit());
  return device_->wait(device_->last_submitted(), ~0ull);
}

Result<std::vector<std::byte>> GraphRun::read(graph::StorageId id) const {
  std::vector<std::byte> bytes(graph_.storage(id).size_bytes);
  RONDO_TRY(runtime::read_back(*device_, buffer_of(id), graph_.storage(id).place.offset_bytes, bytes));
  return bytes;
}

}  // namespace rondo::models
