// Buffers by intent, the staging ring, read-back, and memory that is not coherent or not visible to the host.
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "models/model_loader.h"
#include "runtime/memory.h"
#include "runtime/transfer.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::memory_test {
namespace {

using runtime::Buffer;
using runtime::CommandList;
using runtime::MemoryIntent;
using runtime::Uploader;

std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return bytes;
}

Buffer make_buffer(runtime::Device& device, std::uint64_t size, MemoryIntent intent) {
  Result<Buffer> buffer = Buffer::create(device, size, intent, "test");
  EXPECT_TRUE(buffer.ok()) << describe(buffer.status());
  return std::move(buffer).value();
}

std::vector<std::byte> read_all(runtime::Device& device, const Buffer& from, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  RONDO_EXPECT_OK(runtime::read_back(device, from, offset, bytes));
  return bytes;
}

void submit_and_wait(runtime::Device& device, CommandList& commands) {
  const Result<VkCommandBuffer> recorded = commands.end();
  RONDO_ASSERT_OK(recorded.status());
  const runtime::Batch batch{{&*recorded, 1}};
  const Result<std::uint64_t> value = device.submit({&batch, 1});
  RONDO_ASSERT_OK(value.status());
  RONDO_EXPECT_OK(device.wait(*value, ~0ull));
}

/// Device memory that the host does not see beside host memory that kernels should not use, as on discrete cards: a
/// memory type is made up, and translated where memory is allocated.
struct DiscreteMemory {
  static inline std::uint32_t made_up_type = 0, real_type = 0;
  static inline PFN_vkGetBufferMemoryRequirements real_requirements = nullptr;
  static inline PFN_vkAllocateMemory real_allocate = nullptr;

  static void VKAPI_PTR requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* needs) {
    real_requirements(device, buffer, needs);
    real_type = static_cast<std::uint32_t>(std::countr_zero(needs->memoryTypeBits));
    needs->memoryTypeBits |= 1u << made_up_type;
  }
  static VkResult VKAPI_PTR allocate(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks,
                                     VkDeviceMemory* memory) {
    VkMemoryAllocateInfo real = *info;
    if (real.memoryTypeIndex == made_up_type) real.memoryTypeIndex = real_type;
    return real_allocate(device, &real, callbacks, memory);
  }
  static void pretend(runtime::Device::Parts& parts) {
    for (runtime::MemoryType& type : parts.memory_types) type.flags &= ~runtime::kMemoryDeviceLocal;
    made_up_type = static_cast<std::uint32_t>(parts.memory_types.size());
    parts.memory_types.push_back({runtime::kMemoryDeviceLocal, 0});
    real_requirements = parts.vk.vkGetBufferMemoryRequirements;
    real_allocate = parts.vk.vkAllocateMemory;
    parts.vk.vkGetBufferMemoryRequirements = requirements;
    parts.vk.vkAllocateMemory = allocate;
  }
};

TEST(BufferTest, WhatIsWrittenIsReadBackForEveryIntent) {
  runtime::Device& device = test_runtime_device();
  for (const MemoryIntent intent : {MemoryIntent::kDevice, MemoryIntent::kUpload, MemoryIntent::kReadback}) {
    for (const std::size_t size : {1u, 255u, 256u, 257u, 100'003u}) {
      const Buffer from = make_buffer(device, size, MemoryIntent::kUpload), to = make_buffer(device, size, intent);
      EXPECT_EQ(to.size_bytes(), (size + 255) / 256 * 256);
      EXPECT_TRUE(to.mapped() || intent == MemoryIntent::kDevice);
      ASSERT_NE(from.mapped(), nullptr);
      const std::vector<std::byte> written = pattern(size, static_cast<std::uint32_t>(size));
      std::memcpy(from.mapped(), written.data(), size);
      RONDO_EXPECT_OK(from.flush(0, size));
      CommandList commands(device);
      RONDO_ASSERT_OK(commands.begin());
      commands.copy(from, 0, to, 0, size);
      submit_and_wait(device, commands);
      EXPECT_EQ(read_all(device, to, 0, size), written);
      if (to.mapped()) {
        RONDO_EXPECT_OK(to.invalidate(0, size));
        EXPECT_EQ(std::memcmp(to.mapped(), written.data(), size), 0);
      }
      std::vector<std::byte> other = written;
      other[size / 2] ^= std::byte{1};
      EXPECT_NE(read_all(device, to, 0, size), other);
    }
  }
}

TEST(BufferTest, BeyondTheLargestAllocationIsRefusedWithNumbers) {
  runtime::Device& device = test_runtime_device();
  const std::uint64_t most = device.caps().max_allocation_bytes;
  const Hooks<AllocateMemory, CreateBuffer> hooks(device);
  for (const std::uint64_t size : {most + 1, most + 257, ~std::uint64_t{0} - 255, ~std::uint64_t{0}}) {
    const Result<Buffer> buffer = Buffer::create(device, size, MemoryIntent::kDevice, "weights");
    ASSERT_FALSE(buffer.ok()) << size;
    expect_failure(buffer.status(), StatusCode::kUnsupported, {"weights", std::to_string(most)});
  }
  EXPECT_EQ(CreateBuffer::n_calls + AllocateMemory::n_calls, 0u);
}

TEST(CommandListTest, UpdatesLongerThanOneCommandAndFills) {
  runtime::Device& device = test_runtime_device();
  const std::size_t size = 200'000;
  const Buffer to = make_buffer(device, size, MemoryIntent::kDevice);
  const std::vector<std::byte> written = pattern(size, 7);
  CommandList commands(device);
  for (int i = 0; i < 2; ++i) {  // a list is recorded anew after each use
    RONDO_ASSERT_OK(commands.begin());
    commands.update(to, 0, written);
    submit_and_wait(device, commands);
    EXPECT_EQ(read_all(device, to, 0, size), written);
    EXPECT_EQ(read_all(device, to, 65'536 - 4, 12), std::vector<std::byte>(written.begin() + 65'532, written.begin() + 65'544));
    RONDO_ASSERT_OK(commands.begin());
    commands.fill(to, 0);
    submit_and_wait(device, commands);
    EXPECT_EQ(read_all(device, to, 0, size), std::vector<std::byte>(size));
  }
}

/// Also after a failure between its pool and its command buffer.
TEST(CommandListTest, CanBeBegunAgainAfterAFailure) {
  runtime::Device& device = test_runtime_device();
  const Buffer to = make_buffer(device, 256, MemoryIntent::kDevice);
  CommandList commands(device);
  {
    const Hooks<AllocateCommandBuffers, BeginCommandBuffer> hooks(device);
    AllocateCommandBuffers::fail(VK_ERROR_OUT_OF_HOST_MEMORY);
    expect_failure(commands.begin(), StatusCode::kOutOfMemory, {"transfer"});
    BeginCommandBuffer::fail(VK_ERROR_OUT_OF_DEVICE_MEMORY);
    expect_failure(commands.begin(), StatusCode::kOutOfMemory, {"transfer"});
    RONDO_ASSERT_OK(commands.begin());
  }
  const std::vector<std::byte> written = pattern(256, 3);
  commands.update(to, 0, written);
  submit_and_wait(device, commands);
  EXPECT_EQ(read_all(device, to, 0, 256), written);
}

TEST(ReadBackTest, GoesBeyondItsStaging) {
  runtime::Device& device = test_runtime_device();
  const std::size_t size = (5u << 19) + 12;  // two and a half of its slots
  const Buffer from = make_buffer(device, size, MemoryIntent::kUpload);
  const std::vector<std::byte> written = pattern(size, 11);
  std::memcpy(from.mapped(), written.data(), size);
  RONDO_EXPECT_OK(from.flush(0, size));
  EXPECT_EQ(read_all(device, from, 0, size), written);
  EXPECT_EQ(read_all(device, from, 1'048'572, 1'048'584), std::vector<std::byte>(written.begin() + 1'048'572, written.begin() + 2'097'156));
}

/// Ranges given to vkFlushMappedMemoryRanges and vkInvalidateMappedMemoryRanges.
struct Ranges {
  static inline std::vector<VkMappedMemoryRange> flushed, invalidated;
  static inline PFN_vkFlushMappedMemoryRanges real_flush = nullptr;
  static inline PFN_vkInvalidateMappedMemoryRanges real_invalidate = nullptr;

  static VkResult VKAPI_PTR flush(VkDevice device, std::uint32_t n, const VkMappedMemoryRange* ranges) {
    flushed.insert(flushed.end(), ranges, ranges + n);
    return real_flush(device, n, ranges);
  }
  static VkResult VKAPI_PTR invalidate(VkDevice device, std::uint32_t n, const VkMappedMemoryRange* ranges) {
    invalidated.insert(invalidated.end(), ranges, ranges + n);
    return real_invalidate(device, n, ranges);
  }
  static void record(runtime::Device::Parts& parts) {
    flushed.clear();
    invalidated.clear();
    real_flush = parts.vk.vkFlushMappedMemoryRanges;
    real_invalidate = parts.vk.vkInvalidateMappedMemoryRanges;
    parts.vk.vkFlushMappedMemoryRanges = flush;
    parts.vk.vkInvalidateMappedMemoryRanges = invalidate;
  }
};

TEST(NonCoherentMemoryTest, RangesAreWidenedToWholeAtoms) {
  const auto device = make_second_device(test_runtime_device(), [](runtime::Device::Parts& parts) {
    for (runtime::MemoryType& type : parts.memory_types) type.flags &= ~runtime::kMemoryHostCoherent;
    parts.plan.caps.non_coherent_atom_bytes = 256;  // the largest there is; a multiple of every device's
    Ranges::record(parts);
  });
  const Buffer buffer = make_buffer(*device, 1024, MemoryIntent::kReadback);
  struct Wanted {
    std::uint64_t offset, size, atoms_offset, atoms_size;
  };
  for (const Wanted& wanted : {Wanted{0, 4, 0, 256}, Wanted{300, 4, 256, 256}, Wanted{255, 2, 0, 512}, Wanted{512, 256, 512, 256},
                               Wanted{1020, 4, 768, VK_WHOLE_SIZE}, Wanted{0, 1024, 0, VK_WHOLE_SIZE}}) {
    Ranges::flushed.clear();
    Ranges::invalidated.clear();
    RONDO_EXPECT_OK(buffer.flush(wanted.offset, wanted.size));
    RONDO_EXPECT_OK(buffer.invalidate(wanted.offset, wanted.size));
    for (const std::vector<VkMappedMemoryRange>* ranges : {&Ranges::flushed, &Ranges::invalidated}) {
      ASSERT_EQ(ranges->size(), 1u);
      EXPECT_EQ(ranges->front().offset, wanted.atoms_offset) << wanted.offset;
      EXPECT_EQ(ranges->front().size, wanted.atoms_size) << wanted.offset;
    }
  }
}

TEST(NonCoherentMemoryTest, EveryTokenIsInvalidatedBeforeItIsRead) {
  Device device(make_second_device(test_runtime_device(), [](runtime::Device::Parts& parts) {
    for (runtime::MemoryType& type : parts.memory_types) type.flags &= ~runtime::kMemoryHostCoherent;
    Ranges::record(parts);
  }));
  const Expected wanted = read_expected(testing::tests_data_path("tiny-Q4_0.expected.safetensors"));
  const Model model = load_model(tiny_path(), {}, device);
  EXPECT_FALSE(Ranges::flushed.empty());  // the weights, written through their mapping
  SessionOptions options;
  options.use_model_stop_ids = false;
  Session session = make_session(model, options);
  Ranges::invalidated.clear();
  EXPECT_EQ(continue_with(session, wanted.input, 12), wanted.greedy);
  ASSERT_EQ(Ranges::invalidated.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    const VkMappedMemoryRange& range = Ranges::invalidated[i];
    const std::uint64_t at = 4 * (wanted.input.size() + i);
    EXPECT_LE(range.offset, at);
    EXPECT_TRUE(range.size == VK_WHOLE_SIZE || range.offset + range.size >= at + 4);
  }
}

TEST(CoherentMemoryTest, NothingIsFlushed) {
  bool coherent = false;
  const auto device = make_second_device(test_runtime_device(), [&](runtime::Device::Parts& parts) {
    for (const runtime::MemoryType& type : parts.memory_types) coherent |= (type.flags & runtime::kMemoryHostCoherent) != 0;
    Ranges::record(parts);
  });
  ASSERT_TRUE(coherent);  // Vulkan demands one such type
  const Buffer buffer = make_buffer(*device, 1024, MemoryIntent::kUpload);
  RONDO_EXPECT_OK(buffer.flush(0, 1024));
  EXPECT_TRUE(Ranges::flushed.empty());
}

/// Writes of many sizes, in pieces that end at, before and beyond the ends of the ring's slots.
void upload_and_compare(runtime::Device& device, Uploader& uploader, const Buffer& to, std::uint32_t seed) {
  const std::vector<std::byte> written = pattern(to.size_bytes(), seed);
  const std::uint64_t sizes[] = {4, 4092, 4096, 1000, 3096, 8, 4088, 2000, 2000, 96, 2048, 2048, 2052, 4000};
  std::uint64_t at = 0;
  for (std::size_t i = 0; at < written.size(); ++i) {
    const std::uint64_t n = std::min<std::uint64_t>(sizes[i % std::size(sizes)], written.size() - at);
    RONDO_ASSERT_OK(uploader.reserve(to, n));
    const std::uint64_t first = (n + 4) / 8 * 4;  // two targets for one reservation
    std::memcpy(uploader.target(to, at, first), written.data() + at, first);
    if (n > first) std::memcpy(uploader.target(to, at + first, n - first), written.data() + at + first, n - first);
    at += n;
  }
  RONDO_ASSERT_OK(to.flush(0, to.size_bytes()));
  RONDO_ASSERT_OK(uploader.submit());
  EXPECT_EQ(read_all(device, to, 0, written.size()), written);
}

TEST(UploaderTest, WritesThroughTheMappingWhereThereIsOne) {
  runtime::Device& device = test_runtime_device();
  Uploader uploader(device, 4096);
  const Buffer to = make_buffer(device, 50'000, MemoryIntent::kUpload);
  const Hooks<AllocateMemory, QueueSubmit> hooks(device);
  RONDO_ASSERT_OK(uploader.reserve(to, 1 << 20));
  EXPECT_EQ(uploader.target(to, 100, 4), to.mapped() + 100);
  RONDO_ASSERT_OK(uploader.submit());
  EXPECT_EQ(AllocateMemory::n_calls + QueueSubmit::n_calls, 0u);  // no staging
  upload_and_compare(device, uploader, to, 5);
}

TEST(UploaderTest, StagesWhatTheHostCannotSee) {
  const auto device = make_second_device(test_runtime_device(), DiscreteMemory::pretend);
  Uploader uploader(*device, 4096);
  const Buffer to = make_buffer(*device, 50'000, MemoryIntent::kDevice);
  ASSERT_EQ(to.mapped(), nullptr);
  {
    const Hooks<AllocateMemory, QueueSubmit> hooks(*device);
    for (std::uint32_t seed = 0; seed < 3; ++seed) upload_and_compare(*device, uploader, to, seed);
    EXPECT_EQ(AllocateMemory::n_calls, 2u + 3u);  // the ring never grows; one buffer for each read-back
    EXPECT_GE(QueueSubmit::n_calls, 3u * 50'000 / 4096);
    uploader.release();
    upload_and_compare(*device, uploader, to, 9);
    EXPECT_EQ(AllocateMemory::n_calls, 2u + 3u + 2u + 1u);
  }
}

TEST(UploadTest, PutsAllBytesThereAndNoMore) {
  const auto discrete = make_second_device(test_runtime_device(), DiscreteMemory::pretend);
  const std::vector<std::byte> bytes = pattern(9'000'004, 11);
  for (runtime::Device* device : {&test_runtime_device(), &*discrete}) {
    const std::vector<std::byte> before = pattern(bytes.size() + 64, 12);
    const Buffer to = make_buffer(*device, before.size(), MemoryIntent::kDevice);
    RONDO_ASSERT_OK(runtime::upload(*device, to, before));
    RONDO_ASSERT_OK(runtime::upload(*device, to, bytes));
    RONDO_ASSERT_OK(runtime::upload(*device, to, {}));
    std::vector<std::byte> expected = before;
    std::copy(bytes.begin(), bytes.end(), expected.begin());
    EXPECT_TRUE(read_all(*device, to, 0, expected.size()) == expected);
  }
}

/// The ring's slots are not written while a copy from them is in flight: the device is held up, so the third slot has to wait.
TEST(UploaderTest, WaitsForTheOldestCopy) {
  const auto device = make_second_device(test_runtime_device(), DiscreteMemory::pretend);
  Uploader uploader(*device, 256);
  const Buffer to = make_buffer(*device, 1024, MemoryIntent::kDevice);
  const Hooks<WaitSemaphores> hooks(*device);
  Gate gate(*device);
  for (std::uint64_t at = 0; at < 512; at += 256) {
    RONDO_ASSERT_OK(uploader.reserve(to, 256));
    std::memset(uploader.target(to, at, 256), static_cast<int>(1 + at / 256), 256);
    RONDO_ASSERT_OK(uploader.submit());
  }
  EXPECT_EQ(WaitSemaphores::n_calls, 0u);
  WaitSemaphores::fail(VK_TIMEOUT);  // in the place of a sleep that would not end
  expect_failure(uploader.reserve(to, 256), StatusCode::kInternal, {"has finished nothing"});
  EXPECT_EQ(WaitSemaphores::n_calls, 1u);
  gate.open();
  RONDO_ASSERT_OK(uploader.reserve(to, 256));
  std::memset(uploader.target(to, 512, 256), 3, 256);
  RONDO_ASSERT_OK(uploader.submit());
  const std::vector<std::byte> all = read_all(*device, to, 0, 768);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::byte>(1 + i / 256)) << i;
}

TEST(UploaderTest, AModelIsTheSameThroughStaging) {
  Device device(make_second_device(test_runtime_device(), DiscreteMemory::pretend));
  const Expected wanted = read_expected(testing::tests_data_path("tiny-Q4_0.expected.safetensors"));
  const Model model = load_model(tiny_path(), {}, device);
  for (const runtime::Buffer& weights : model.internal()->model().weight_buffers) EXPECT_EQ(weights.mapped(), nullptr);
  SessionOptions options;
  options.use_model_stop_ids = false;
  Session session = make_session(model, options);
  EXPECT_EQ(continue_with(session, wanted.input, 12), wanted.greedy);
  RONDO_ASSERT_OK(session.rewind(0));
  const Result<std::vector<float>> logits = session.wait_logits(wanted.input);
  RONDO_ASSERT_OK(logits.status());
  EXPECT_LE(relative_to_range(*logits, wanted.logits), 1e-3);
}

}  // namespace
}  // namespace rondo::tests::memory_test
