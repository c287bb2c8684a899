#include "tests/support/op_runner.h"

#include <cstring>

#include <fmt/format.h>

#include "graph/hazards.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"
#include "tests/support/device_environment.h"

namespace rondo::tests {

namespace {

constexpr std::uint64_t kGuardBytes = 256;
constexpr std::uint32_t kStorages = 0, kActivations = 1;

/// Places every storage but activations and returns what the buffer holds before the run.
std::vector<std::byte> place_storages(const OpCase& op, graph::Graph& graph) {
  std::vector<std::byte> image;
  for (std::size_t i = 0; i < graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const std::vector<std::byte> content = op.before(id);
    if (graph.storage(id).kind == graph::StorageKind::kActivation) continue;
    const std::uint64_t begin = image.size() + kGuardBytes;
    const std::uint64_t end = (begin + content.size() + kGuardBytes + 255) / 256 * 256;
    const std::vector<std::byte> filler = poison_bytes(end - image.size());
    image.insert(image.end(), filler.begin(), filler.end());
    std::memcpy(image.data() + begin, content.data(), content.size());
    graph.storage(id).place = {kStorages, begin, (content.size() + 3) / 4 * 4};
  }
  return image;
}

Result<runtime::Buffer> upload(runtime::Device& device, std::span<const std::byte> bytes, const char* what) {
  RONDO_ASSIGN(runtime::Buffer buffer, runtime::Buffer::create(device, bytes.size(), runtime::MemoryIntent::kDevice, what));
  runtime::Uploader uploader(device);
  for (std::uint64_t at = 0; at < bytes.size(); at += uploader.max_write_bytes()) {
    const std::uint64_t n = std::min<std::uint64_t>(uploader.max_write_bytes(), bytes.size() - at);
    RONDO_TRY(uploader.reserve(buffer, n));
    std::memcpy(uploader.target(buffer, at, n), bytes.data() + at, n);
  }
  RONDO_TRY(buffer.flush(0, bytes.size()));
  RONDO_TRY(uploader.submit());
  return buffer;
}

Status submit_and_wait(runtime::Device& device, const runtime::Recording& recording, int repeats) {
  std::uint64_t last = 0;
  for (int i = 0; i < repeats; ++i) {
    const runtime::Batch batch{recording.command_buffers()};
    RONDO_ASSIGN(last, device.submit({&batch, 1}));
  }
  return device.wait(last, 120'000'000'000ull);
}

/// Takes the storages out of the image and looks at what lies between them.
void read_image(const graph::Graph& graph, std::size_t n_storages, std::span<const std::byte> image, DeviceRun& run) {
  run.after.resize(n_storages);
  std::uint64_t at = 0;
  const auto check_guard = [&](std::uint64_t end, const std::string& where) {
    const std::string touched = find_touched(image.subspan(at, end - at));
    if (!touched.empty() && run.touched.empty()) run.touched = fmt::format("{} {}", where, touched);
  };
  for (std::size_t i = 0; i < n_storages; ++i) {
    const graph::Storage& storage = graph.storage(static_cast<graph::StorageId>(i));
    if (storage.kind == graph::StorageKind::kActivation) continue;
    check_guard(storage.place.offset_bytes, "before " + storage.name + ":");
    const std::span<const std::byte> found = image.subspan(storage.place.offset_bytes, storage.place.size_bytes);
    run.after[i].assign(found.begin(), found.end());
    at = storage.place.offset_bytes + storage.place.size_bytes;
  }
  check_guard(image.size(), "after all storages:");
}

}  // namespace

Result<DeviceRun> run_on_device(const OpCase& op, const RunOptions& options) {
  runtime::Device& device = test_runtime_device();
  graph::Graph graph = op.graph;
  const std::size_t n_storages = graph.n_storages();
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
  std::vector<std::byte> activation_image = poison_bytes(lowered.activation_bytes + kGuardBytes);
  RONDO_ASSIGN(const runtime::Buffer storages, upload(device, image, "storages"));
  RONDO_ASSIGN(const runtime::Buffer activations, upload(device, activation_image, "activations"));
  const runtime::Buffer* const buffers[] = {&storages, &activations};
  const std::vector<runtime::Segment> segments = graph::cut_segments(lowered.program, caps, options.segment_ns);
  RONDO_ASSIGN(const runtime::Recording recording, runtime::Recording::create(device, lowered.program, segments, buffers));
  RONDO_TRY(submit_and_wait(device, recording, options.repeats));

  RONDO_TRY(runtime::read_back(device, storages, 0, image));
  RONDO_TRY(runtime::read_back(device, activations, 0, activation_image));
  // Synchronization validation keeps every batch until the device idles, and walks them all at each submission.
  device.vk().vkDeviceWaitIdle(device.handle());
  DeviceRun run;
  run.program = std::move(lowered.program);
  read_image(graph, n_storages, image, run);
  const std::string beyond = find_touched(std::span<const std::byte>(activation_image).subspan(lowered.activation_bytes));
  if (!beyond.empty() && run.touched.empty()) run.touched = "behind the activations: " + beyond;
  return run;
}

::testing::AssertionResult agrees(const OpCase& op, Tolerance tolerance, const RunOptions& options) { return agrees_with(op, op, tolerance, options); }

::testing::AssertionResult agrees_with(const OpCase& op, const OpCase& oracle, Tolerance tolerance, const RunOptions& options) {
  if (!op.graph.status().ok()) return ::testing::AssertionFailure() << "the graph: " << op.graph.status().message();
  const Result<std::vector<std::vector<std::byte>>> reference = oracle.run_reference();
  if (!reference.ok()) return ::testing::AssertionFailure() << "the reference: " << reference.status().message();
  const Result<DeviceRun> run = run_on_device(op, options);
  if (!run.ok()) return ::testing::AssertionFailure() << "the device: " << run.status().message();
  std::string complaints = run->touched.empty() ? "" : "written outside " + run->touched + "\n";
  for (std::size_t i = 0; i < op.graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::Storage& storage = op.graph.storage(id);
    if (storage.kind == graph::StorageKind::kActivation) continue;
    const std::vector<std::byte> before = op.before(id);
    const bool words = storage.kind == graph::StorageKind::kWeight;
    const Judged judged{words ? graph::Type::kI32 : storage.type, before, run->after[i], (*reference)[i]};
    std::vector<std::byte> values[3];
    const std::string difference = find_difference(tolerance.nmse == 0 ? judged : decoded(op.graph, id, judged, values), tolerance);
    if (!difference.empty()) complaints += fmt::format("{}: {}\n", storage.name, difference);
  }
  if (complaints.empty()) return ::testing::AssertionSuccess();
  std::string labels;
  for (const runtime::Dispatch& dispatch : run->program.dispatches) labels += fmt::format("{}{}", labels.empty() ? "" : ", ", dispatch.label);
  return ::testing::AssertionFailure() << complaints << "dispatches: " << labels;
}

}  // namespace rondo::tests
