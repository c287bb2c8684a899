#include "tools/check/device_run.h"

#include <algorithm>
#include <cstring>

#include "graph/hazards.h"
#include "models/graph_run.h"
#include "runtime/fmt.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::check {

using graph::find_touched, graph::kPoison, graph::poison_bytes;

namespace {

constexpr std::uint64_t kGuardBytes = 256;
constexpr std::size_t kActivations = 0, kStorages = 1, kBuffers = 2;
constexpr std::uint64_t kLongestWaitNs = 120'000'000'000;

std::uint64_t own_bytes(const graph::Storage& storage) { return (storage.size_bytes + 3) / 4 * 4; }

/// What the storages' buffer holds before the run: their contents, and poison around them.
std::vector<std::byte> image_before(const OpCase& op, const models::GraphRun& run) {
  std::vector<std::byte> image = poison_bytes(run.buffers()[kStorages].size_bytes());
  for (std::size_t i = 0; i < op.graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::Storage& storage = run.graph().storage(id);
    if (op.graph.storage(id).kind == graph::StorageKind::kActivation) continue;
    const std::vector<std::byte> content = op.before(id);
    std::memcpy(image.data() + storage.place.offset_bytes, content.data(), content.size());
  }
  return image;
}

/// The storages as they were before, and the results of the repetitions one after the other.
struct Buffers {
  runtime::Buffer before, results;
};

Result<Buffers> make_buffers(runtime::Device& device, std::span<const std::byte> image, int repeats) {
  Buffers buffers;
  RONDO_ASSIGN(buffers.before, runtime::Buffer::create(device, image.size(), runtime::MemoryIntent::kDevice, "storages before"));
  RONDO_TRY(runtime::upload(device, buffers.before, image));
  RONDO_ASSIGN(buffers.results, runtime::Buffer::create(device, image.size() * static_cast<std::uint64_t>(repeats), runtime::MemoryIntent::kReadback, "results"));
  return buffers;
}

/// All repetitions, each a batch of its own, with all storages copied out behind it and put back before the next.
Status submit_all(const models::GraphRun& run, const runtime::Recording& recording, const Buffers& buffers, const RunOptions& options) {
  runtime::Device& device = run.device();
  const runtime::Buffer &storages = run.buffers()[kStorages], &activations = run.buffers()[kActivations];
  const std::uint64_t n = buffers.before.size_bytes();
  std::vector<runtime::CommandList> lists;
  std::vector<std::vector<VkCommandBuffer>> commands;
  const auto restore = [&](runtime::CommandList& list) {
    list.copy(buffers.before, 0, storages, 0, n);
    list.fill(activations, kPoison);
  };
  for (int turn = -1; turn < options.repeats; ++turn) {  // -1: what comes before the first
    runtime::CommandList& list = lists.emplace_back(device);
    RONDO_TRY(list.begin());
    if (turn >= 0) {
      list.copy(storages, 0, buffers.results, static_cast<std::uint64_t>(turn) * n, n);
      list.wait_for_copies();
    }
    if (turn < 0 || (options.restore && turn + 1 < options.repeats)) restore(list);
    RONDO_ASSIGN(const VkCommandBuffer recorded, list.end());
    std::vector<VkCommandBuffer>& batch = commands.emplace_back();
    if (turn >= 0) batch.assign(recording.command_buffers().begin(), recording.command_buffers().end());
    batch.push_back(recorded);
  }
  std::vector<runtime::Batch> batches;
  for (const std::vector<VkCommandBuffer>& list : commands) batches.push_back({list});
  std::uint64_t value = 0;
  for (std::size_t first = 0; first < batches.size(); first += runtime::Device::kMaxBatches) {
    const std::size_t n_batches = std::min(batches.size() - first, runtime::Device::kMaxBatches);
    RONDO_ASSIGN(value, device.submit(std::span<const runtime::Batch>(batches).subspan(first, n_batches)));
  }
  return device.wait_for_results(value, kLongestWaitNs);
}

/// Takes the storages out of the image and looks at what lies between them.
void read_image(const graph::Graph& graph, std::size_t n_storages, std::span<const std::byte> found, DeviceRun& run) {
  std::uint64_t at = 0;
  const auto check_guard = [&](std::uint64_t end, const std::string& where) {
    const std::string touched = find_touched(found.subspan(at, end - at));
    if (!touched.empty() && run.touched.empty()) run.touched = fmt::format("{} {}", where, touched);
  };
  for (std::size_t i = 0; i < n_storages; ++i) {
    const graph::Storage& storage = graph.storage(static_cast<graph::StorageId>(i));
    if (storage.kind == graph::StorageKind::kActivation) continue;
    check_guard(storage.place.offset_bytes, "before " + storage.name + ":");
    const std::span<const std::byte> own = found.subspan(storage.place.offset_bytes, own_bytes(storage));
    run.after[i].assign(own.begin(), own.end());
    at = storage.place.offset_bytes + own_bytes(storage);
  }
  check_guard(found.size(), "after all storages:");
}

/// How the results of a later repetition differ from the first's, or "".
Result<std::string> compare_repetitions(const runtime::Buffer& results, std::uint64_t n, int repeats) {
  RONDO_TRY(results.invalidate(0, n * static_cast<std::uint64_t>(repeats)));
  for (int run = 1; run < repeats; ++run) {
    const std::byte* const first = results.mapped();
    const std::byte* const own = first + static_cast<std::uint64_t>(run) * n;
    if (std::memcmp(first, own, n) == 0) continue;
    std::uint64_t word = 0;
    while (std::memcmp(first + 4 * word, own + 4 * word, 4) == 0) ++word;
    return fmt::format("run {} of {} differs from the first, in word {} of all buffers", run + 1, repeats, word);
  }
  return std::string();
}

}  // namespace

Result<DeviceRun> run_on_device(runtime::Device& device, const OpCase& op, const RunOptions& options) {
  RONDO_TRY(Status(op.graph.status()));
  runtime::DeviceCaps caps = device.caps();
  if (options.pretend) caps.type = *options.pretend;
  models::GraphRunOptions lowering;
  lowering.lowering.fusion = options.fusion;
  lowering.lowering.forced_kernels = options.kernels;
  lowering.lowering.measured = options.preferred;
  lowering.lowering.activations = options.activations;
  lowering.caps = &caps;
  lowering.guard_bytes = kGuardBytes;
  RONDO_ASSIGN(const models::GraphRun graph_run, models::GraphRun::create(device, op.graph, lowering));
  if (graph_run.buffers().size() != kBuffers) return Status(StatusCode::kInternal, fmt::format("{}: a case's storages are to fit one buffer", op.graph.name));

  const runtime::Program& program = graph_run.program();
  const graph::SequencedProgram twice[] = {{&program, true}, {&program, true}};
  for (const graph::Hazard& hazard : graph::find_hazards(twice)) {
    return Status(StatusCode::kInternal, fmt::format("hazard: {} and {}", hazard.earlier, hazard.later));
  }
  std::vector<std::byte> image = image_before(op, graph_run);
  RONDO_ASSIGN(const Buffers buffers, make_buffers(device, image, options.repeats));
  RONDO_ASSIGN(const runtime::Recording recording, graph_run.record_cut(options.segment_ns));
  RONDO_TRY(submit_all(graph_run, recording, buffers, options));
  DeviceRun run;
  run.after.resize(op.graph.n_storages());
  if (options.restore) {
    RONDO_ASSIGN(run.unequal, compare_repetitions(buffers.results, image.size(), options.repeats));
  }

  std::vector<std::byte> activations(graph_run.activation_bytes() + kGuardBytes);
  RONDO_TRY(runtime::read_back(device, graph_run.buffers()[kStorages], 0, image));
  RONDO_TRY(runtime::read_back(device, graph_run.buffers()[kActivations], 0, activations));
  // Synchronization validation keeps every batch until the device idles, and walks them all at each submission.
  device.vk().vkDeviceWaitIdle(device.handle());
  run.program = program;
  read_image(graph_run.graph(), op.graph.n_storages(), image, run);
  const std::string beyond = find_touched(std::span<const std::byte>(activations).subspan(graph_run.activation_bytes()));
  if (!beyond.empty() && run.touched.empty()) run.touched = "behind the activations: " + beyond;
  return run;
}

std::string judge(const OpCase& op, const DeviceRun& run, const std::vector<std::vector<std::byte>>& expected, const ToleranceOf& tolerance_of, double* nmse) {
  std::string complaints = run.touched.empty() ? "" : "written outside " + run.touched + "\n";
  if (!run.unequal.empty()) complaints += run.unequal + "\n";
  for (std::size_t i = 0; i < op.graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::Storage& storage = op.graph.storage(id);
    if (storage.kind == graph::StorageKind::kActivation) continue;
    const std::vector<std::byte> before = op.before(id);
    const bool words = storage.kind == graph::StorageKind::kWeight;
    double error = 0;
    const Tolerance tolerance = tolerance_of(storage);
    const graph::Judged judged{words ? graph::Type::kI32 : storage.type, before, run.after[i], expected[i]};
    std::vector<std::byte> values[3];
    const std::string difference = graph::find_difference(tolerance.nmse == 0 ? judged : graph::decoded(op.graph, id, judged, values), tolerance, &error);
    if (nmse) *nmse = std::max(*nmse, error);
    if (!difference.empty()) complaints += fmt::format("{}: {}\n", storage.name, difference);
  }
  if (!complaints.empty()) complaints.pop_back();
  return complaints;
}

std::string labels_of(const runtime::Program& program) {
  std::string labels;
  for (const runtime::Dispatch& dispatch : program.dispatches) labels += fmt::format("{}{}", labels.empty() ? "" : ", ", dispatch.label);
  return labels;
}

}  // namespace rondo::check
