// Memory that runs out, and other calls that fail, at every place: a Status each, nothing leaked, and the next try works.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::out_of_memory_test {
namespace {

/// A model, a session on it and a few tokens, up to the first failure.
Status make_everything() {
  RONDO_ASSIGN(ByteSource source, open_file(tiny_path()));
  RONDO_ASSIGN(Model model, Model::create(test_device(), std::move(source)));
  RONDO_TRY(model.wait_loaded());
  SessionOptions options = without_model_stops(2);
  options.n_ctx = 40;
  RONDO_ASSIGN(Session session, Session::create(model, options));
  RONDO_TRY(session.wait_logits(Tokens{1, 2, 3}).status());
  RONDO_TRY(session.append(Tokens{4, 5}, 4));
  while (!session.idle()) {
    RONDO_TRY(session.advance());
    RONDO_TRY(session.wait(std::chrono::seconds(10)));
    std::int32_t taken[8];
    RONDO_TRY(session.take_tokens(taken).status());
  }
  return {};
}

/// Lets call 0, 1, 2, ... of one entry point fail until a run needs fewer; how many failed.
template <typename Entry>
std::uint64_t fail_each_call(VkResult with, StatusCode code) {
  std::uint64_t n = 0;
  for (;; ++n) {
    Entry::fail(with, n);
    const std::uint64_t before = Entry::n_failed;
    const Status status = make_everything();
    const bool failed = Entry::n_failed > before;
    if (!failed) {
      RONDO_EXPECT_OK(status);
      Entry::succeed();
      return n;
    }
    EXPECT_EQ(status_code_name(status.code()), std::string(status_code_name(code))) << "call " << n << ": " << describe(status);
    EXPECT_FALSE(status.message().empty());
    expect_no_leaks(test_runtime_device());
    if (::testing::Test::HasFailure()) return n;
  }
}

class OutOfMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RONDO_ASSERT_OK(make_everything());  // the pipelines are there from now on
    drain(test_runtime_device());
  }
};

TEST_F(OutOfMemoryTest, EachAllocationOfDeviceMemory) {
  const Leaks hooks(test_runtime_device());
  // Weights, an inactive state for each kernel, a session's buffers, logits and their read-back.
  EXPECT_GT(fail_each_call<AllocateMemory>(VK_ERROR_OUT_OF_DEVICE_MEMORY, StatusCode::kOutOfMemory), 15u);
}

TEST_F(OutOfMemoryTest, EachBuffer) {
  const Leaks hooks(test_runtime_device());
  EXPECT_GT(fail_each_call<CreateBuffer>(VK_ERROR_OUT_OF_HOST_MEMORY, StatusCode::kOutOfMemory), 15u);
}

TEST_F(OutOfMemoryTest, EachBindingAndMapping) {
  const Leaks hooks(test_runtime_device());
  const Hooks<BindBufferMemory, MapMemory> more(test_runtime_device());
  EXPECT_GT(fail_each_call<BindBufferMemory>(VK_ERROR_OUT_OF_DEVICE_MEMORY, StatusCode::kOutOfMemory), 15u);
  (void)fail_each_call<MapMemory>(VK_ERROR_OUT_OF_HOST_MEMORY, StatusCode::kOutOfMemory);
}

TEST_F(OutOfMemoryTest, EachPoolAndCommandBuffer) {
  const Leaks hooks(test_runtime_device());
  const Hooks<AllocateDescriptorSets, AllocateCommandBuffers, EndCommandBuffer> more(test_runtime_device());
  EXPECT_GT(fail_each_call<CreateDescriptorPool>(VK_ERROR_OUT_OF_HOST_MEMORY, StatusCode::kOutOfMemory), 5u);
  EXPECT_GT(fail_each_call<CreateCommandPool>(VK_ERROR_OUT_OF_HOST_MEMORY, StatusCode::kOutOfMemory), 10u);
  EXPECT_GT(fail_each_call<AllocateDescriptorSets>(VK_ERROR_OUT_OF_DEVICE_MEMORY, StatusCode::kOutOfMemory), 5u);
  EXPECT_GT(fail_each_call<AllocateCommandBuffers>(VK_ERROR_OUT_OF_DEVICE_MEMORY, StatusCode::kOutOfMemory), 10u);
  EXPECT_GT(fail_each_call<EndCommandBuffer>(VK_ERROR_OUT_OF_DEVICE_MEMORY, StatusCode::kOutOfMemory), 10u);
}

TEST_F(OutOfMemoryTest, EachSubmission) {
  const Leaks hooks(test_runtime_device());
  const Hooks<QueueSubmit> more(test_runtime_device());
  EXPECT_GT(fail_each_call<QueueSubmit>(VK_ERROR_OUT_OF_HOST_MEMORY, StatusCode::kOutOfMemory), 10u);
}

/// The message tells what the memory was for, and how much was asked for.
TEST_F(OutOfMemoryTest, MessagesNameWhatItWasFor) {
  const Leaks hooks(test_runtime_device());
  AllocateMemory::fail(VK_ERROR_OUT_OF_DEVICE_MEMORY);
  expect_failure(make_everything(), StatusCode::kOutOfMemory, {"weights", "bytes"});
  const Model model = load_model(tiny_path());
  AllocateMemory::fail(VK_ERROR_OUT_OF_DEVICE_MEMORY, 3);
  SessionOptions options;
  options.n_ctx = 100;
  expect_failure(Session::create(model, options).status(), StatusCode::kOutOfMemory, {"context of 100 tokens", "KV cache", "weights"});
}

class FailedStepTest : public SmallModelTest {};

/// A submission that failed has not run: after a rewind, the session makes the text it would have made.
TEST_F(FailedStepTest, TheSessionGoesOnAfterARewind) {
  const Tokens input = prompt(20);
  const Tokens expected = text_of(input, 12);
  const Hooks<QueueSubmit> hooks(test_runtime_device());
  for (std::uint64_t n = 0; n < 4; ++n) {
    Session shaken = session(2);
    RONDO_ASSERT_OK(shaken.append(input, 12));
    QueueSubmit::fail(VK_ERROR_OUT_OF_DEVICE_MEMORY, n);
    Status status;
    for (int round = 0; round < 100 && status.ok(); ++round) {
      status = shaken.advance();
      RONDO_EXPECT_OK(shaken.wait(std::chrono::seconds(10)));
      std::int32_t taken[8];
      RONDO_EXPECT_OK(shaken.take_tokens(taken).status());
    }
    expect_failure(status, StatusCode::kOutOfMemory, {"submission"});
    RONDO_ASSERT_OK(shaken.rewind(0));
    EXPECT_EQ(continue_with(shaken, input, 12), expected) << "submission " << n;
  }
}

}  // namespace
}  // namespace rondo::tests::out_of_memory_test
