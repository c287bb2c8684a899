// Memory plans of the bundled model, computed without a device.
#include <gtest/gtest.h>

#include "models/memory_plan.h"
#include "tests/support/test_data.h"

namespace rondo::models::memory_plan_test {
namespace {

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<ByteSource> source = open_file(testing::tests_data_path("tiny-Q4_0.gguf"));
    ASSERT_TRUE(source.ok()) << source.status().message();
    Result<std::unique_ptr<const Checkpoint>> opened = open_checkpoint(std::move(source).value());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    checkpoint = std::move(opened).value();
    caps.name = "made up";
    caps.type = runtime::DeviceType::kOther;
  }

  /// The plan is refused with this code and these words.
  void expect_refusal(std::uint32_t n_ctx, StatusCode code, std::initializer_list<const char*> words) const {
    const Result<MemoryPlan> plan = plan_memory_of(*checkpoint, caps, {}, n_ctx);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.status().code(), code) << plan.status().message();
    for (const char* word : words) EXPECT_NE(plan.status().message().find(word), std::string::npos) << word << " is not in: " << plan.status().message();
  }

  std::unique_ptr<const Checkpoint> checkpoint;
  runtime::DeviceCaps caps;
};

TEST_F(PlanTest, PartsAddUp) {
  const Result<MemoryPlan> plan = plan_memory_of(*checkpoint, caps, {}, 100);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  // Two layers of two heads of 64, in f16.
  EXPECT_EQ(plan->kv_bytes, 2u * 2 * 2 * 64 * 100 * 2);
  EXPECT_EQ(plan->kv_bytes, 100 * kv_bytes_per_token(checkpoint->network.caches, graph::Type::kF16));
  EXPECT_EQ(plan->weight_bytes, weight_bytes(checkpoint->network.blocks));
  const auto slot = [&](const char* name) -> const Slot& { return plan->find(name) ? *plan->find(name) : *plan->find("weights 0"); };
  EXPECT_EQ(plan->find("weights 1"), nullptr);
  EXPECT_EQ(plan->find("KV cache 1"), nullptr);
  EXPECT_EQ(slot("output").size_bytes, 0u) << "logits are made when they are asked for";
  EXPECT_EQ(slot("token mirror").intent, runtime::MemoryIntent::kReadback);
  EXPECT_EQ(slot("token mirror").size_bytes, 512u);
  EXPECT_EQ(slot("activations").size_bytes, runtime::allocated_bytes(plan->activation_bytes));
  EXPECT_EQ(slot("weights 0").size_bytes, plan->weight_bytes);
  EXPECT_EQ(slot("KV cache 0").size_bytes, plan->kv_bytes);
  std::uint64_t total = 0;
  for (const Slot& buffer : plan->slots) total += buffer.size_bytes;
  EXPECT_EQ(plan->total_bytes(runtime::MemoryIntent::kDevice) + plan->total_bytes(runtime::MemoryIntent::kReadback), total);
  EXPECT_GT(plan->unaliased_activation_bytes, plan->activation_bytes);
}

TEST_F(PlanTest, TheCacheFollowsContextAndType) {
  ModelOptions wide;
  wide.kv_type = KvType::kF32;
  const Result<MemoryPlan> narrow = plan_memory_of(*checkpoint, caps, {}, 64), doubled = plan_memory_of(*checkpoint, caps, wide, 64), longer = plan_memory_of(*checkpoint, caps, {}, 128);
  ASSERT_TRUE(narrow.ok() && doubled.ok() && longer.ok());
  EXPECT_EQ(doubled->kv_bytes, 2 * narrow->kv_bytes);
  EXPECT_EQ(longer->kv_bytes, 2 * narrow->kv_bytes);
  ModelOptions bytes;
  bytes.kv_type = KvType::kQ8_0;
  const Result<MemoryPlan> quantised = plan_memory_of(*checkpoint, caps, bytes, 64);
  ASSERT_TRUE(quantised.ok());
  // Two layers of two heads of 64 quants and two scales.
  EXPECT_EQ(quantised->kv_bytes, 2u * 2 * 2 * 64 * (64 + 4));
  EXPECT_EQ(quantised->kv_bytes, 64 * kv_bytes_per_token(checkpoint->network.caches, graph::Type::kQ8_0));
  EXPECT_EQ(longer->weight_bytes, narrow->weight_bytes);
}

TEST_F(PlanTest, SmallAllocationsMakeMoreBuffers) {
  const Result<MemoryPlan> one = plan_memory_of(*checkpoint, caps, {}, 64);
  ASSERT_TRUE(one.ok());
  caps.max_allocation_bytes = one->activation_bytes + 255;
  caps.max_storage_range_bytes = caps.max_allocation_bytes;
  const Result<MemoryPlan> same = plan_memory_of(*checkpoint, caps, {}, 64);
  ASSERT_TRUE(same.ok()) << same.status().message();
  for (const Slot& buffer : same->slots) EXPECT_LE(buffer.size_bytes, caps.max_allocation_bytes) << buffer.name;
}

TEST_F(PlanTest, WhatDoesNotFitIsRefused) {
  caps.memory_budget_bytes = weight_bytes(checkpoint->network.blocks) - 1;
  expect_refusal(64, StatusCode::kOutOfMemory, {"weights", "made up"});
  caps.memory_budget_bytes = weight_bytes(checkpoint->network.blocks) + 1000;
  expect_refusal(64, StatusCode::kOutOfMemory, {"context of 64 tokens", "KV cache", "smaller context"});
  caps.memory_budget_bytes = 0;
  caps.max_storage_range_bytes = 100;
  expect_refusal(64, StatusCode::kUnsupported, {"tensor '", "rows of 256 bytes", "100"});
  caps.max_storage_range_bytes = 1024;
  expect_refusal(64, StatusCode::kUnsupported, {"the keys of one head", "smaller context"});
  caps.max_storage_range_bytes = 1u << 27;
  caps.max_allocation_bytes = 1u << 20;
  expect_refusal(100, StatusCode::kUnsupported, {"activations", "one allocation", "made up"});
}

TEST_F(PlanTest, OneStepIsPlannedAlone) {
  const Result<WeightPlan> weights = plan_weights(*checkpoint, caps);
  ASSERT_TRUE(weights.ok());
  const StepKind kinds[] = {{Role::kDecode, 1}};
  const Result<SessionPlan> decode = plan_session(checkpoint->network, *weights, caps, {}, 64, kinds);
  ASSERT_TRUE(decode.ok()) << decode.status().message();
  ASSERT_EQ(decode->steps.size(), 1u);
  const Result<MemoryPlan> all = plan_memory_of(*checkpoint, caps, {}, 64);
  ASSERT_TRUE(all.ok());
  EXPECT_LT(decode->memory.activation_bytes, all->activation_bytes);
  EXPECT_EQ(decode->memory.constant_bytes, all->constant_bytes) << "tables are equal in all steps";
  for (const runtime::Dispatch& dispatch : decode->steps[0].lowered.program.dispatches) {
    for (const runtime::Binding& binding : dispatch.bindings) {
      ASSERT_LT(binding.range.buffer, decode->memory.slots.size());
      EXPECT_LE(binding.range.offset_bytes + binding.range.size_bytes, decode->memory.slots[binding.range.buffer].size_bytes) << dispatch.label;
    }
  }
}

/// Nothing makes such sessions yet, but planning must not be in their way.
TEST_F(PlanTest, SeveralSequencesTakeAsMuchEach) {
  const Result<WeightPlan> weights = plan_weights(*checkpoint, caps);
  ASSERT_TRUE(weights.ok());
  const StepKind kinds[] = {{Role::kPrefillAndSample, 8}, {Role::kDecode, 1}};
  const Result<SessionPlan> one = plan_session(checkpoint->network, *weights, caps, {}, 64, kinds), three = plan_session(checkpoint->network, *weights, caps, {}, 64, kinds, 3);
  ASSERT_TRUE(one.ok() && three.ok()) << three.status().message();
  EXPECT_EQ(three->memory.kv_bytes, 3 * one->memory.kv_bytes);
  EXPECT_EQ(three->memory.weight_bytes, one->memory.weight_bytes);
  EXPECT_GT(three->memory.activation_bytes, one->memory.activation_bytes);
  for (const PlannedStep& step : three->steps) {
    for (const runtime::Dispatch& dispatch : step.lowered.program.dispatches) {
      for (const runtime::Binding& binding : dispatch.bindings) {
        ASSERT_LT(binding.range.buffer, three->memory.slots.size());
        EXPECT_LE(binding.range.offset_bytes + binding.range.size_bytes, three->memory.slots[binding.range.buffer].size_bytes) << dispatch.label;
      }
    }
  }
  std::uint64_t output_bytes[2] = {};
  const StepKind logits = output_step_kind(checkpoint->network, Role::kLogits, caps);
  EXPECT_TRUE(plan_output_step(checkpoint->network, caps, {}, *one, logits, output_bytes[0]).ok());
  EXPECT_TRUE(plan_output_step(checkpoint->network, caps, {}, *three, logits, output_bytes[1]).ok());
  EXPECT_EQ(output_bytes[1], 3 * output_bytes[0]);
  EXPECT_EQ(plan_output_step(checkpoint->network, caps, {}, *one, {Role::kPool, 8}, output_bytes[0]).status().code(), StatusCode::kUnsupported);
}

// What they leave is the square of their rows.
TEST(EncoderKindsTest, LongTextsWhoseAttentionIsShownGoAlone) {
  Network network;
  network.widest_row = 64;
  network.roles = {attention_role(Role::kAttention, 64, 2)};
  runtime::DeviceCaps caps;
  caps.max_storage_range_bytes = 1u << 30;
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const StepKind& kind : encoder_kinds(network, caps, Role::kAttention, 8, 512)) found.emplace_back(kind.rows, kind.n_texts);
  EXPECT_EQ(found, (std::vector<std::pair<std::int64_t, std::int64_t>>{{32, 1}, {32, 8}, {128, 1}, {128, 8}, {512, 1}}));
}

}  // namespace
}  // namespace rondo::models::memory_plan_test
