// What was planned is what is allocated: buffers counted by their intent, before and after.
#include <gtest/gtest.h>

#include "models/memory_plan.h"
#include "runtime/memory.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::memory_plan_test {
namespace {

using runtime::MemoryIntent;

struct PlanCase {
  std::string name;
  std::uint32_t n_ctx;
  KvType kv_type;
  bool fusion;
};

class MemoryPlanTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(MemoryPlanTest, IsWhatASessionAllocates) {
  const PlanCase& planned = GetParam();
  const runtime::Device& device = test_runtime_device();
  Result<ByteSource> source = open_file(tiny_path());
  ASSERT_TRUE(source.ok());
  const Result<std::unique_ptr<const models::Checkpoint>> checkpoint = models::open_checkpoint(*source);
  ASSERT_TRUE(checkpoint.ok()) << describe(checkpoint.status());
  ModelOptions options;
  options.kv_type = planned.kv_type;
  options.fusion = planned.fusion;
  const Result<models::MemoryPlan> plan = models::plan_memory_of(**checkpoint, device.caps(), options, planned.n_ctx);
  ASSERT_TRUE(plan.ok()) << describe(plan.status());

  const std::uint64_t device_before = device.buffer_bytes(MemoryIntent::kDevice), host_before = device.buffer_bytes(MemoryIntent::kReadback);
  const std::uint64_t staging_before = device.buffer_bytes(MemoryIntent::kUpload);
  Result<Model> model = Model::create(test_device(), std::move(source).value(), options);
  ASSERT_TRUE(model.ok()) << describe(model.status());
  std::uint64_t most_staging = 0;
  for (bool finished = false; !finished;) {
    const Result<LoadProgress> progress = model->load_some(std::chrono::microseconds(1));
    ASSERT_TRUE(progress.ok()) << describe(progress.status());
    finished = progress->finished;
    most_staging = std::max(most_staging, device.buffer_bytes(MemoryIntent::kUpload) - staging_before);
  }
  EXPECT_LE(most_staging, plan->staging_bytes);
  EXPECT_EQ(device.buffer_bytes(MemoryIntent::kUpload), staging_before) << "staging goes with the end of loading";
  EXPECT_EQ(model->info().weight_bytes, plan->weight_bytes);
  std::uint64_t weight_buffers = 0;
  for (const models::Slot& buffer : plan->slots) weight_buffers += buffer.name.rfind("weights", 0) == 0 ? buffer.size_bytes : 0;
  EXPECT_EQ(device.buffer_bytes(MemoryIntent::kDevice) - device_before, weight_buffers);
  {
    SessionOptions session_options;
    session_options.n_ctx = planned.n_ctx;
    const Result<Session> session = Session::create(*model, session_options);
    ASSERT_TRUE(session.ok()) << describe(session.status());
    EXPECT_EQ(device.buffer_bytes(MemoryIntent::kDevice) - device_before, plan->total_bytes(MemoryIntent::kDevice));
    EXPECT_EQ(device.buffer_bytes(MemoryIntent::kReadback) - host_before, plan->total_bytes(MemoryIntent::kReadback));
    EXPECT_EQ(device.buffer_bytes(MemoryIntent::kUpload), staging_before);
    EXPECT_EQ(session->statistics().kv_bytes, plan->kv_bytes);
    EXPECT_EQ(session->statistics().activation_bytes, plan->activation_bytes);
    EXPECT_LT(plan->activation_bytes, plan->unaliased_activation_bytes);
  }
  EXPECT_EQ(device.buffer_bytes(MemoryIntent::kDevice) - device_before, weight_buffers) << "a session leaves nothing";
}

INSTANTIATE_TEST_SUITE_P(All, MemoryPlanTest,
                         ::testing::Values(PlanCase{"OneToken", 1, KvType::kF16, true}, PlanCase{"Prime", 113, KvType::kF16, true},
                                           PlanCase{"Wide", 113, KvType::kF32, true}, PlanCase{"Quantised", 113, KvType::kQ8_0, true}, PlanCase{"WithoutFusion", 89, KvType::kF16, false}),
                         [](const ::testing::TestParamInfo<PlanCase>& tested) { return tested.param.name; });

TEST(BufferBytesTest, CountsEachBufferOnce) {
  runtime::Device& device = test_runtime_device();
  const std::uint64_t before = device.buffer_bytes(MemoryIntent::kReadback);
  {
    Result<runtime::Buffer> made = runtime::Buffer::create(device, 257, MemoryIntent::kReadback, "test");
    ASSERT_TRUE(made.ok());
    const runtime::Buffer moved = std::move(made).value();
    EXPECT_EQ(device.buffer_bytes(MemoryIntent::kReadback) - before, 512u);
    EXPECT_EQ(moved.size_bytes(), runtime::allocated_bytes(257));
    EXPECT_FALSE(runtime::Buffer::create(device, ~0ull, MemoryIntent::kReadback, "test").ok());
    EXPECT_EQ(device.buffer_bytes(MemoryIntent::kReadback) - before, 512u);
  }
  EXPECT_EQ(device.buffer_bytes(MemoryIntent::kReadback), before);
}

}  // namespace
}  // namespace rondo::tests::memory_plan_test
