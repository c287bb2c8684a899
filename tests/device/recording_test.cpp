// Pipelines, recordings made by hand, the timeline, and destruction that waits for the device.
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "binary.params.h"
#include "lib/step_state.h"
#include "runtime/kernel.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::recording_test {
namespace {

using runtime::Access;
using runtime::Buffer;
using runtime::Kernel;
using runtime::Recording;
using runtime::Segment;

constexpr std::uint32_t kWidth = 64, kElements = 257;
constexpr std::uint64_t kRangeBytes = 2048;  // of one array; a multiple of every offset alignment

Kernel add_kernel(std::uint32_t width = kWidth) {
  Kernel kernel;
  kernel.shader = runtime::Shader::binary;
  kernel.constants[0] = width;
  kernel.constants[1] = RONDO_BINARY_ADD;
  kernel.n_constants = 2;
  kernel.n_bindings = 4;
  kernel.push_bytes = sizeof(shaders::BinaryParams);
  return kernel;
}

/// Three arrays in one buffer, after a buffer with the step state.
enum Array : std::uint32_t { kX, kY, kOne };

runtime::BufferRange range_of(Array array) { return {1, array * kRangeBytes, kRangeBytes}; }

runtime::Dispatch add_dispatch(Array a, Array b, Array to, bool barrier) {
  shaders::BinaryParams push{};
  push.rows_per_sequence = 1;
  push.dim1 = push.dim2 = 1;
  push.dim3 = kElements;
  push.a_stride3 = push.b_stride3 = 1;
  runtime::Dispatch dispatch;
  dispatch.bindings = {{{0, 0, 256}, Access::kRead}, {range_of(a), Access::kRead}, {range_of(b), Access::kRead}, {range_of(to), Access::kWrite}};
  dispatch.push.resize(sizeof(push));
  std::memcpy(dispatch.push.data(), &push, sizeof(push));
  dispatch.grid = {(kElements + kWidth - 1) / kWidth, 1, 1};
  dispatch.label = "add";
  dispatch.barrier_before = barrier;
  return dispatch;
}

/// y = x + 1, then x = y + 1: each run adds 2, if every dispatch waits for the one before it, also across submissions.
runtime::Program counting_program() {
  runtime::Program program;
  program.name = "counting";
  program.kernels = {add_kernel()};
  program.dispatches = {add_dispatch(kX, kOne, kY, false), add_dispatch(kY, kOne, kX, true)};
  return program;
}

/// The buffers of the counting program: x = 0, 1, 2, ...
struct Arrays {
  Buffer state, values;
  explicit Arrays(runtime::Device& device, std::int32_t active = 1) {
    state = std::move(Buffer::create(device, 256, runtime::MemoryIntent::kDevice, "state")).value();
    values = std::move(Buffer::create(device, 3 * kRangeBytes, runtime::MemoryIntent::kDevice, "values")).value();
    std::array<std::int32_t, 64> words{};
    words[RONDO_STATE_COUNT] = 1;
    words[RONDO_STATE_ACTIVE] = active;
    std::vector<float> floats(3 * kRangeBytes / 4);
    for (std::size_t i = 0; i < kElements; ++i) floats[i] = static_cast<float>(i);
    std::fill(floats.begin() + kOne * kRangeBytes / 4, floats.end(), 1.0f);
    runtime::CommandList commands(device);
    RONDO_EXPECT_OK(commands.begin());
    commands.update(state, 0, std::as_bytes(std::span(words)));
    commands.update(values, 0, std::as_bytes(std::span(floats)));
    const Result<VkCommandBuffer> recorded = commands.end();
    RONDO_EXPECT_OK(recorded.status());
    const runtime::Batch batch{{&*recorded, 1}};
    RONDO_EXPECT_OK(device.submit({&batch, 1}).status());
  }
  std::array<const Buffer*, 2> table() const { return {&state, &values}; }
  /// What has been added to every x, or NaN if that differs.
  float added(runtime::Device& device) const {
    std::vector<float> x(kElements);
    RONDO_EXPECT_OK(runtime::read_back(device, values, 0, std::as_writable_bytes(std::span(x))));
    for (std::size_t i = 0; i < kElements; ++i) {
      if (x[i] - static_cast<float>(i) != x[0]) return std::numeric_limits<float>::quiet_NaN();
    }
    return x[0];
  }
};

Recording record(runtime::Device& device, const runtime::Program& program, const Arrays& arrays, std::span<const Segment> segments) {
  Result<Recording> recording = Recording::create(device, program, segments, arrays.table());
  EXPECT_TRUE(recording.ok()) << describe(recording.status());
  return std::move(recording).value();
}

constexpr Segment kWhole[] = {{0, 2, 0}};
constexpr Segment kCut[] = {{0, 1, 0}, {1, 2, 0}};

/// Submits the recording `n` times in one call.
std::uint64_t submit_times(runtime::Device& device, const Recording& recording, std::size_t n) {
  std::array<runtime::Batch, runtime::Device::kMaxBatches> batches;
  batches.fill({recording.command_buffers()});
  const Result<std::uint64_t> value = device.submit(std::span(batches).first(n));
  EXPECT_TRUE(value.ok()) << describe(value.status());
  return *value;
}

TEST(RecordingTest, MayBeSubmittedManyTimesWhileEarlierSubmissionsRun) {
  runtime::Device& device = test_runtime_device();
  for (const std::span<const Segment> segments : {std::span<const Segment>(kWhole), std::span<const Segment>(kCut)}) {
    const Arrays arrays(device);
    const Recording recording = record(device, counting_program(), arrays, segments);
    EXPECT_EQ(recording.command_buffers().size(), segments.size());
    EXPECT_EQ(recording.n_dispatches(), 2u);
    const std::uint64_t before = device.last_submitted();
    std::uint64_t value = 0;
    for (int i = 0; i < 5; ++i) value = submit_times(device, recording, 64);
    value = submit_times(device, recording, 1);
    EXPECT_EQ(value, before + 321);  // one timeline value for each batch
    RONDO_EXPECT_OK(device.wait(value, ~0ull));
    EXPECT_EQ(arrays.added(device), 642.0f);
  }
}

TEST(RecordingTest, ChangesNothingWhileTheStateIsInactive) {
  runtime::Device& device = test_runtime_device();
  const Arrays arrays(device, 0);
  const Recording recording = record(device, counting_program(), arrays, kWhole);
  submit_times(device, recording, 3);
  EXPECT_EQ(arrays.added(device), 0.0f);
}

TEST(RecordingTest, FailuresNameTheProgramAndLeakNothing) {
  runtime::Device& device = test_runtime_device();
  const Arrays arrays(device);
  const runtime::Program program = counting_program();
  (void)record(device, program, arrays, kWhole);  // the pipeline is there now
  drain(device);
  const Hooks<CreateCommandPool, DestroyCommandPool, CreateDescriptorPool, DestroyDescriptorPool, AllocateDescriptorSets, AllocateCommandBuffers,
              BeginCommandBuffer, EndCommandBuffer>
      hooks(device);
  using Fail = void (*)(VkResult, std::uint64_t, std::uint64_t);
  for (const Fail fail : {&CreateCommandPool::fail, &CreateDescriptorPool::fail, &AllocateDescriptorSets::fail, &AllocateCommandBuffers::fail,
                          &BeginCommandBuffer::fail, &EndCommandBuffer::fail}) {
    fail(VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    const Result<Recording> recording = Recording::create(device, program, kWhole, arrays.table());
    ASSERT_FALSE(recording.ok());
    expect_failure(recording.status(), StatusCode::kOutOfMemory, {"recording counting"});
  }
  drain(device);
  EXPECT_EQ(CreateCommandPool::n_succeeded(), DestroyCommandPool::n_calls);
  EXPECT_EQ(CreateDescriptorPool::n_succeeded(), DestroyDescriptorPool::n_calls);
}

TEST(KernelCacheTest, MakesOnePipelineForEachKernel) {
  const auto device = make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {});
  const Hooks<CreateComputePipelines, CreatePipelineLayout, CreateShaderModule> hooks(*device);
  runtime::KernelCache& kernels = device->kernels();
  const Result<const runtime::Pipeline*> first = kernels.find_or_create(add_kernel(64));
  const Result<const runtime::Pipeline*> narrow = kernels.find_or_create(add_kernel(32));
  const Result<const runtime::Pipeline*> again = kernels.find_or_create(add_kernel(64));
  RONDO_ASSERT_OK(first.status());
  RONDO_ASSERT_OK(narrow.status());
  RONDO_ASSERT_OK(again.status());
  EXPECT_EQ(*first, *again);
  EXPECT_NE((*first)->handle, (*narrow)->handle);
  EXPECT_EQ((*first)->layout, (*narrow)->layout);
  EXPECT_EQ(kernels.n_pipelines(), 2u);
  EXPECT_EQ(CreateComputePipelines::n_calls, 2u);
  EXPECT_EQ(CreatePipelineLayout::n_calls, 1u);
  EXPECT_EQ(CreateShaderModule::n_calls, 1u);
}

TEST(KernelCacheTest, MayBeUsedFromManyThreads) {
  const auto device = make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {});
  std::array<std::array<const runtime::Pipeline*, 8>, 4> found{};
  std::vector<std::thread> threads;
  for (auto& mine : found) {
    threads.emplace_back([&device, &mine] {
      for (std::uint32_t i = 0; i < mine.size(); ++i) {
        const Result<const runtime::Pipeline*> pipeline = device->kernels().find_or_create(add_kernel(8 * (i % 4 + 1)));
        mine[i] = pipeline.ok() ? *pipeline : nullptr;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device->kernels().n_pipelines(), 4u);
  for (const auto& mine : found) EXPECT_EQ(mine, found[0]);
  for (const runtime::Pipeline* pipeline : found[0]) EXPECT_NE(pipeline, nullptr);
}

TEST(KernelCacheTest, FailuresNameTheShaderAndCanBeTriedAgain) {
  const auto device = make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {});
  const Hooks<CreateDescriptorSetLayout, DestroyDescriptorSetLayout, CreatePipelineLayout, DestroyPipelineLayout, CreateShaderModule,
              CreateComputePipelines>
      hooks(*device);
  runtime::KernelCache& kernels = device->kernels();
  CreateDescriptorSetLayout::fail(VK_ERROR_OUT_OF_HOST_MEMORY);
  expect_failure(kernels.find_or_create(add_kernel()).status(), StatusCode::kOutOfMemory, {"kernel binary"});
  CreatePipelineLayout::fail(VK_ERROR_OUT_OF_HOST_MEMORY);
  expect_failure(kernels.find_or_create(add_kernel()).status(), StatusCode::kOutOfMemory, {"kernel binary"});
  CreateShaderModule::fail(VK_ERROR_OUT_OF_HOST_MEMORY);
  expect_failure(kernels.find_or_create(add_kernel()).status(), StatusCode::kOutOfMemory, {"kernel binary"});
  CreateComputePipelines::fail(VK_ERROR_OUT_OF_DEVICE_MEMORY);
  expect_failure(kernels.find_or_create(add_kernel()).status(), StatusCode::kOutOfMemory, {"kernel binary"});
  EXPECT_EQ(kernels.n_pipelines(), 0u);

  const Result<const runtime::Pipeline*> pipeline = kernels.find_or_create(add_kernel());
  RONDO_ASSERT_OK(pipeline.status());
  EXPECT_NE((*pipeline)->layout, VK_NULL_HANDLE);
  EXPECT_NE((*pipeline)->handle, VK_NULL_HANDLE);
  EXPECT_EQ(CreateDescriptorSetLayout::n_succeeded() - DestroyDescriptorSetLayout::n_calls, 1u);
  EXPECT_EQ(CreatePipelineLayout::n_succeeded() - DestroyPipelineLayout::n_calls, 1u);
}

TEST(TimelineTest, WaitsEndByTimeoutOrCompletion) {
  runtime::Device& device = test_runtime_device();
  const Arrays arrays(device);
  const Recording recording = record(device, counting_program(), arrays, kWhole);
  std::optional<Gate> gate(std::in_place, device);
  const std::uint64_t value = submit_times(device, recording, 2);
  EXPECT_EQ(device.last_submitted(), value);
  EXPECT_EQ(device.wait(value, 0).code(), StatusCode::kTimeout);
  EXPECT_EQ(device.wait(value - 1, 1'000'000).code(), StatusCode::kTimeout);
  RONDO_EXPECT_OK(device.wait(0, 0));
  EXPECT_LT(device.completed_value().value(), value - 1);
  gate->open();
  RONDO_EXPECT_OK(device.wait(value - 1, ~0ull));
  RONDO_EXPECT_OK(device.wait(value, ~0ull));
  RONDO_EXPECT_OK(device.wait(value, 0));
  EXPECT_EQ(device.completed_value().value(), value);
  EXPECT_EQ(arrays.added(device), 4.0f);
}

/// The clock is the driver's: two minutes pass at once.
TEST(TimelineTest, WaitsWithoutEndGiveUpOnADeviceThatStandsStill) {
  runtime::Device& device = test_runtime_device();
  const Arrays arrays(device);
  const Recording recording = record(device, counting_program(), arrays, kWhole);
  std::optional<Gate> gate(std::in_place, device);
  const std::uint64_t value = submit_times(device, recording, 1);
  {
    const Hooks<WaitSemaphores> hooks(device);
    WaitSemaphores::fail(VK_TIMEOUT, 0, WaitSemaphores::kForever);
    expect_failure(device.wait(value, ~0ull), StatusCode::kInternal, {"device ", "has finished nothing for 120 s"});
    EXPECT_EQ(WaitSemaphores::n_calls, 1u);
    EXPECT_EQ(device.wait(value, runtime::Device::kMostStillNs).code(), StatusCode::kTimeout);
  }
  gate->open();
  RONDO_EXPECT_OK(device.wait(value, ~0ull));
}

TEST(DestructionTest, WaitsForWhatIsInFlightWithoutBlocking) {
  runtime::Device& device = test_runtime_device();
  std::optional<Arrays> arrays(std::in_place, device);
  std::optional<Recording> recording(record(device, counting_program(), *arrays, kCut));
  drain(device);
  const Hooks<DestroyBuffer, FreeMemory, DestroyCommandPool, DestroyDescriptorPool, WaitSemaphores> hooks(device);
  Gate gate(device);
  const std::uint64_t value = submit_times(device, *recording, 64);
  recording.reset();
  arrays.reset();
  EXPECT_EQ(DestroyBuffer::n_calls + FreeMemory::n_calls + DestroyCommandPool::n_calls + DestroyDescriptorPool::n_calls, 0u);
  EXPECT_EQ(WaitSemaphores::n_calls, 0u);
  gate.open();
  RONDO_EXPECT_OK(device.wait(value, ~0ull));
  device.retire({});  // as the next dropped object will
  EXPECT_EQ(DestroyBuffer::n_calls, 2u);
  EXPECT_EQ(FreeMemory::n_calls, 2u);
  EXPECT_EQ(DestroyCommandPool::n_calls, 1u);
  EXPECT_EQ(DestroyDescriptorPool::n_calls, 1u);
}

}  // namespace
}  // namespace rondo::tests::recording_test
