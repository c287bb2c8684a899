#include "tools/check/device_run.h"

#include <algorithm>
#include <cstring>

#include "graph/hazards.h"
#include "runtime/fmt.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::check {

namespace {

constexpr std::uint64_t kGuardBytes = 256;
constexpr std::uint32_t kStorages = 0, kActivations = 1;
constexpr std::uint64_t kLongestWaitNs = 120'000'000'000;

std::uint64_t own_bytes(const graph::Storage& storage) { return (storage.size_bytes + 3) / 4 * 4; }

/// Places every storage but activations and returns what the buffer holds before the run.
std::vector<std::byte> place_storages(const OpCase& op, graph::Graph& graph) {
  std::vector<std::byte> image;
  for (std::size_t i = 0; i < graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    graph::Storage& storage = graph.storage(id);
    if (storage.kind == graph::StorageKind::kActivation) continue;
    const std::vector<std::byte> content = op.before(id);
    const std::uint64_t begin = image.size() + kGuardBytes;
    const std::uint64_t end = (begin + content.size() + kGuardBytes + 255) / 256 * 256;
    const std::vector<std::byte> filler = poison_bytes(end - image.size());
    image.insert(image.end(), filler.begin(), filler.end());
    std::memcpy(image.data() + begin, content.data(), content.size());
    // Bound with the guard behind it: drivers drop what goes beyond a binding, and nobody would see it.
    storage.place = {kStorages, begin, own_bytes(storage) + kGuardBytes};
  }
  return image;
}

/// The buffers of a run, and the results of its repetitions one after the other.
struct Buffers {
  runtime::Buffer before, storages, activations, results;
};

Result<Buffers> make_buffers(runtime::Device& device, std::span<const std::byte> image, std::uint64_t activation_bytes, int repeats) {
  Buffers buffers;
  RONDO_ASSIGN(buffers.before, runtime::Buffer::create(device, image.size(), runtime::MemoryIntent::kDevice, "storages before"));
  RONDO_TRY(runtime::upload(device, buffers.before, image));
  RONDO_ASSIGN(buffers.storages, runtime::Buffer::create(device, image.size(), runtime::MemoryIntent::kDevice, "storages"));
  RONDO_ASSIGN(buffers.activations, runtime::Buffer::create(device, activation_bytes + kGuardBytes, runtime::MemoryIntent::kDevice, "activations"));
  RONDO_ASSIGN(buffers.results, runtime::Buffer::create(device, image.size() * static_cast<std::uint64_t>(repeats), runtime::MemoryIntent::kReadback, "results"));
  return buffers;
}

/// All repetitions, each a batch of its own, with all storages copied out behind it and put back before the next.
Status submit_all(runtime::Device& device, const runtime::Recording& recording, const Buffers& buffers, const RunOptions& options) {
  const std::uint64_t n = buffers.storages.size_bytes();
  std::vector<runtime::CommandList> lists;
  std::vector<std::vector<VkCommandBuffer>> commands;
  const auto restore = [&](runtime::CommandList& list) {
    list.copy(buffers.before, 0, buffers.storages, 0, n);
    list.fill(buffers.activations, kPoison);
  };
  for (int run = -1; run < options.repeats; ++run) {  // -1: what comes before the first
    runtime::CommandList& list = lists.emplace_back(device);
    RONDO_TRY(list.begin());
    if (run >= 0) {
      list.copy(buffers.storages, 0, buffers.results, static_cast<std::uint64_t>(run) * n, n);
      list.wait_for_copies();
    }
    if (run < 0 || (options.restore && run + 1 < options.repeats)) restore(list);
    RONDO_ASSIGN(const VkCommandBuffer recorded, list.end());
    std::vector<VkCommandBuffer>& batch = commands.emplace_back();
    if (run >= 0) batch.assign(recording.command_buffers().begin(), recording.command_buffers().end());
    batch.push_back(recorded);
  }
  std::vector<runtime::Batch> batches;
  for (const std::vector<VkCommandBuffer>& list : commands) batches.push_back({list});
  std::uint64_t value = 0;
  for (std::size_t first = 0; first < batches.size(); first += runtime::Device::kMaxBatches) {
    const std::size_t n_batches = std::min(batches.size() - first, runtime::Device::kMaxBatches);
    RONDO_ASSIGN(value, device.submit(std::span<const runtime::Batch>(batches).subspan(first, n_batches)));
  }
  return device.wait(value, kLongestWaitNs);
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
  graph::Graph graph = op.graph;
  DeviceRun run;
  const std::size_t n_storages = graph.n_storages();  // lowering adds activations
  run.after.resize(n_storages);
  std::vector<std::byte> image = place_storages(op, graph);
  runtime::DeviceCaps caps = device.caps();
  if (options.pretend) caps.type = *options.pretend;
  graph::LoweringOptions lowering;
  lowering.fusion = options.fusion;
  lowering.forced_kernels = options.kernels;
  lowering.activation_buffer = kActivations;
  RONDO_ASSIGN(graph::Lowered lowered, graph::lower(graph, caps, lowering));

  const graph::SequencedProgram twice[] = {{&lowered.program, true}, {&lowered.program, true}};
  for (const graph::Hazard& hazard : graph::find_hazards(twice)) {
    return Status(StatusCode::kInternal, fmt::format("hazard: {} and {}", hazard.earlier, hazard.later));
  }
  RONDO_ASSIGN(const Buffers buffers, make_buffers(device, image, lowered.activation_bytes, options.repeats));
  const runtime::Buffer* const bound[] = {&buffers.storages, &buffers.activations};
  const std::vector<runtime::Segment> segments = graph::cut_segments(lowered.program, caps, options.segment_ns);
  RONDO_ASSIGN(const runtime::Recording recording, runtime::Recording::create(device, lowered.program, segments, bound));
  RONDO_TRY(submit_all(device, recording, buffers, options));
  if (options.restore) {
    RONDO_ASSIGN(run.unequal, compare_repetitions(buffers.results, image.size(), options.repeats));
  }

  std::vector<std::byte> activations(lowered.activation_bytes + kGuardBytes);
  RONDO_TRY(runtime::read_back(device, buffers.storages, 0, image));
  RONDO_TRY(runtime::read_back(device, buffers.activations, 0, activations));
  // Synchronization validation keeps every batch until the device idles, and walks them all at each submission.
  device.vk().vkDeviceWaitIdle(device.handle());
  run.program = std::move(lowered.program);
  read_image(graph, n_storages, image, run);
  const std::string beyond = find_touched(std::span<const std::byte>(activations).subspan(lowered.activation_bytes));
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
    const Judged judged{words ? graph::Type::kI32 : storage.type, before, run.after[i], expected[i]};
    std::vector<std::byte> values[3];
    const std::string difference = find_difference(tolerance.nmse == 0 ? judged : decoded(op.graph, id, judged, values), tolerance, &error);
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
