#include "tools/rondo/device_rates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "measure_copy.params.h"
#include "measure_fma.params.h"
#include "runtime/fmt.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::tools {

namespace {

constexpr std::uint32_t kWidth = 64;

/// `n` dispatches of a program of their own, each behind a barrier, whose bindings are whole `buffers`, the first of which they write.
template <typename Params>
Result<runtime::Recording> record_alone(runtime::Device& device, runtime::Shader shader, std::span<const runtime::Buffer* const> buffers, const Params& push, std::uint32_t n_groups, std::uint32_t n = 1) {
  runtime::Program program;
  program.name = "measurement";
  program.kernels.push_back({shader, {kWidth}, 1, static_cast<std::uint32_t>(buffers.size()), sizeof push});
  runtime::Dispatch dispatch;
  dispatch.label = program.name;
  for (std::uint32_t i = 0; i < buffers.size(); ++i) dispatch.bindings.push_back({{i, 0, buffers[i]->size_bytes()}, i == 0 ? runtime::Access::kWrite : runtime::Access::kRead});
  dispatch.push.resize(sizeof push);
  std::memcpy(dispatch.push.data(), &push, sizeof push);
  dispatch.grid = {n_groups, 1, 1};
  for (std::uint32_t i = 0; i < n; ++i) {
    dispatch.barrier_before = i > 0;
    program.dispatches.push_back(dispatch);
  }
  const runtime::Segment segment{0, n, 0};
  return runtime::Recording::create(device, program, {&segment, 1}, buffers);
}

/// What both buffers of copies hold before.
constexpr std::uint32_t kFromWord = 0x3f9e0419, kToWord = 0x40490fdb;

/// The last words of the copy are those of the source.
Status check_copy(runtime::Device& device, const runtime::Buffer& to) {
  std::uint32_t found[64];
  RONDO_TRY(runtime::read_back(device, to, to.size_bytes() - sizeof found, std::as_writable_bytes(std::span(found))));
  if (std::all_of(std::begin(found), std::end(found), [](std::uint32_t word) { return word == kFromWord; })) return {};
  return Status(StatusCode::kInternal, fmt::format("device {}: measure_copy left {:#x} where {:#x} should be", device.caps().name, found[0], kFromWord));
}

/// By the device's own copies, which may be those of an engine beside the shaders, and by a kernel's: the better of the two.
Result<double> measure_copy(Stopwatch& stopwatch, std::uint32_t n_measurements) {
  runtime::Device& device = stopwatch.device();
  const runtime::DeviceCaps& caps = device.caps();
  // Several times what the caches of large GPUs hold.
  std::uint64_t size_bytes = std::min<std::uint64_t>({caps.type == runtime::DeviceType::kCpu ? 64u << 20 : 256u << 20, caps.max_allocation_bytes, caps.max_storage_range_bytes});
  if (caps.memory_budget_bytes) size_bytes = std::min(size_bytes, caps.memory_budget_bytes / 4);
  size_bytes = size_bytes / 256 * 256;
  RONDO_ASSIGN(const runtime::Buffer from, runtime::Buffer::create(device, size_bytes, runtime::MemoryIntent::kDevice, "source of copies"));
  RONDO_ASSIGN(const runtime::Buffer to, runtime::Buffer::create(device, size_bytes, runtime::MemoryIntent::kDevice, "target of copies"));
  runtime::CommandList fill(device);
  RONDO_TRY(fill.begin());
  fill.fill(from, kFromWord);  // memory that was never written may be nowhere, and read faster than it is
  fill.fill(to, kToWord);
  RONDO_ASSIGN(const VkCommandBuffer filling, fill.end());
  const runtime::Batch batch{{&filling, 1}};
  RONDO_ASSIGN(const std::uint64_t value, device.submit({&batch, 1}));
  RONDO_TRY(device.wait(value, ~0ull));

  const shaders::MeasureCopyParams push{static_cast<std::uint32_t>(size_bytes / 16)};
  const runtime::Buffer* const buffers[] = {&to, &from};
  RONDO_ASSIGN(const runtime::Recording by_kernel, record_alone(device, runtime::Shader::measure_copy, buffers, push, (push.n_quads - 1) / (kWidth * RONDO_MEASURE_COPY_QUADS) + 1));
  RONDO_TRY(stopwatch.time_s(by_kernel.command_buffers(), 1).status());
  RONDO_TRY(check_copy(device, to));
  RONDO_ASSIGN(const double kernel_s, measure_run_s(stopwatch, {by_kernel.command_buffers(), 1}, n_measurements));

  RONDO_ASSIGN(const ReusableCommands copy, ReusableCommands::create(device, [&](VkCommandBuffer commands) {
                 const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
                 device.vk().vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
                 const VkBufferCopy region{0, 0, size_bytes};
                 device.vk().vkCmdCopyBuffer(commands, from.handle(), to.handle(), 1, &region);
               }));
  const VkCommandBuffer commands = copy.handle();
  RONDO_TRY(stopwatch.time_s({&commands, 1}, 1).status());
  RONDO_ASSIGN(const double copy_s, measure_run_s(stopwatch, {{&commands, 1}, 1}, n_measurements));
  return 2e-9 * static_cast<double>(size_bytes) / std::min(kernel_s, copy_s);
}

/// `n` dispatches of measure_fma, each behind a barrier, on `values`.
Result<runtime::Recording> record_fma(runtime::Device& device, const runtime::Buffer& values, std::uint32_t n_groups, std::uint32_t iterations, std::uint32_t n) {
  const runtime::Buffer* const buffers[] = {&values};
  return record_alone(device, runtime::Shader::measure_fma, buffers, shaders::MeasureFmaParams{n_groups * kWidth, iterations, 1.0f, 1.0f}, n_groups, n);
}

/// Every invocation made every step: drivers that end long loops early would look fast.
Status check_fma(runtime::Device& device, const runtime::Buffer& values, std::uint32_t n_groups, std::uint32_t iterations) {
  std::vector<float> found(std::size_t{n_groups} * kWidth);
  RONDO_TRY(runtime::read_back(device, values, 0, std::as_writable_bytes(std::span(found))));
  constexpr std::uint32_t kChains = RONDO_MEASURE_FMA_CHAINS;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::uint32_t expected = kChains * (iterations * RONDO_MEASURE_FMA_STEPS + static_cast<std::uint32_t>(i & 15)) + kChains * (kChains - 1) / 2;
    if (found[i] == static_cast<float>(expected)) continue;
    return Status(StatusCode::kInternal, fmt::format("device {}: invocation {} of measure_fma gave {}, not {}", device.caps().name, i, found[i], expected));
  }
  return {};
}

Result<double> measure_fma(Stopwatch& stopwatch, std::uint32_t n_measurements) {
  constexpr std::uint32_t kGroups = 4096;
  constexpr std::uint32_t kMostIterations = 4096;  // sums of chains stay whole numbers below 2^24
  constexpr double kLongEnoughS = 0.002;
  runtime::Device& device = stopwatch.device();
  RONDO_ASSIGN(const runtime::Buffer values, runtime::Buffer::create(device, std::uint64_t{4} * kGroups * kWidth, runtime::MemoryIntent::kDevice, "sums"));
  std::uint32_t iterations = 4;
  runtime::Recording recording;
  for (double taken_s = 0; taken_s < kLongEnoughS && iterations < kMostIterations;) {
    iterations *= 4;
    RONDO_ASSIGN(recording, record_fma(device, values, kGroups, iterations, 1));
    RONDO_TRY(stopwatch.time_s(recording.command_buffers(), 1).status());
    RONDO_ASSIGN(taken_s, stopwatch.time_s(recording.command_buffers(), 1));
  }
  RONDO_ASSIGN(const double run_s, measure_run_s(stopwatch, {recording.command_buffers(), 1}, n_measurements));
  RONDO_TRY(check_fma(device, values, kGroups, iterations));
  return 2e-9 * RONDO_MEASURE_FMA_CHAINS * RONDO_MEASURE_FMA_STEPS * iterations * kGroups * kWidth / run_s;
}

Result<double> measure_dispatch_latency(Stopwatch& stopwatch, std::uint32_t n_measurements) {
  constexpr std::uint32_t kDispatches = 256;
  runtime::Device& device = stopwatch.device();
  RONDO_ASSIGN(const runtime::Buffer values, runtime::Buffer::create(device, 4 * kWidth, runtime::MemoryIntent::kDevice, "sums"));
  RONDO_ASSIGN(const runtime::Recording recording, record_fma(device, values, 1, 1, kDispatches));
  RONDO_TRY(stopwatch.time_s(recording.command_buffers(), 1).status());
  RONDO_ASSIGN(const double run_s, measure_run_s(stopwatch, {recording.command_buffers(), kDispatches}, n_measurements));
  return 1e6 * run_s;
}

}  // namespace

Result<DeviceRates> measure_device_rates(Stopwatch& stopwatch, std::uint32_t n_measurements) {
  DeviceRates rates;
  RONDO_ASSIGN(rates.copy_gbps, measure_copy(stopwatch, n_measurements));
  RONDO_ASSIGN(rates.fma_gflops, measure_fma(stopwatch, n_measurements));
  RONDO_ASSIGN(rates.dispatch_latency_us, measure_dispatch_latency(stopwatch, n_measurements));
  return rates;
}

}  // namespace rondo::tools
