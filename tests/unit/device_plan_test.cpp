// Made-up devices: what is refused and why, and what is chosen.
#include <gtest/gtest.h>

#include <tuple>

#include "runtime/device_plan.h"

namespace rondo::runtime::device_plan_test {
namespace {

constexpr std::uint32_t kLocal = kMemoryDeviceLocal, kVisible = kMemoryHostVisible, kCoherent = kMemoryHostCoherent, kCached = kMemoryHostCached;
constexpr std::uint32_t kVulkan11 = (1u << 22) | (1u << 12), kVulkan12 = (1u << 22) | (2u << 12);

/// Exactly the baseline profile.
DeviceSnapshot baseline() {
  DeviceSnapshot snapshot;
  snapshot.reported.name = "made up";
  snapshot.reported.type = DeviceType::kDiscrete;
  snapshot.reported.max_storage_range_bytes = 1u << 27;
  snapshot.api_version = kVulkan12;
  snapshot.timeline_semaphore = true;
  snapshot.queues = {{kQueueGraphics | kQueueCompute, 1, 64}};
  snapshot.heaps = {{8ull << 30, true}, {16ull << 30, false}};
  snapshot.memory_types = {{kLocal, 0}, {kVisible | kCoherent, 1}};
  return snapshot;
}

TEST(DevicePlanTest, TheBaselineIsUsable) {
  const DevicePlan plan = plan_device(baseline());
  EXPECT_TRUE(plan.usable) << plan.reason;
  EXPECT_EQ(plan.reason, "");
  EXPECT_EQ(plan.caps.memory_budget_bytes, 8ull << 30) << "the largest device-local heap";
  EXPECT_GT(plan.caps.timestamp_bits, 0u);
  EXPECT_TRUE(plan.extensions.empty());
}

TEST(DevicePlanTest, SubgroupSizesCanBeReliedOnWhereTheyCanBeRequired) {
  DeviceSnapshot snapshot = baseline();
  snapshot.reported.min_subgroup_size = 8, snapshot.reported.max_subgroup_size = 32;
  snapshot.subgroup_sizes_known = true;
  EXPECT_EQ(plan_device(snapshot).caps.max_required_subgroup_size, 0u);
  EXPECT_TRUE(plan_device(snapshot).optional_extensions.empty());
  snapshot.subgroup_size_control = true;
  EXPECT_EQ(plan_device(snapshot).caps.min_required_subgroup_size, 8u);
  EXPECT_EQ(plan_device(snapshot).caps.max_required_subgroup_size, 32u);
  EXPECT_EQ(plan_device(snapshot).optional_extensions, std::vector<std::string>{kSubgroupSizeControl});
  snapshot.subgroup_size_control = false;
  snapshot.reported.min_subgroup_size = 32;
  EXPECT_EQ(plan_device(snapshot).caps.min_required_subgroup_size, 32u) << "what has one size has it without being asked";
  snapshot.subgroup_sizes_known = false;
  EXPECT_EQ(plan_device(snapshot).caps.min_required_subgroup_size, 0u) << "it may be one of several";
}

TEST(DevicePlanTest, DotProductsOfHalvesTakeHalves) {
  DeviceSnapshot snapshot = baseline();
  snapshot.half_dot = true;
  EXPECT_FALSE(plan_device(snapshot).caps.half_dot);
  EXPECT_TRUE(plan_device(snapshot).optional_extensions.empty());
  snapshot.float16 = true;
  EXPECT_TRUE(plan_device(snapshot).caps.half_dot);
  EXPECT_EQ(plan_device(snapshot).optional_extensions, std::vector<std::string>{kMixedFloatDotProduct});
}

struct Refusal {
  const char* named;
  void (*spoil)(DeviceSnapshot&);
};

class RefusalTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, NamesTheLimit) {
  DeviceSnapshot snapshot = baseline();
  GetParam().spoil(snapshot);
  const DevicePlan plan = plan_device(snapshot);
  EXPECT_FALSE(plan.usable);
  EXPECT_NE(plan.reason.find(GetParam().named), std::string::npos) << plan.reason;
}

INSTANTIATE_TEST_SUITE_P(
    Limits, RefusalTest,
    ::testing::Values(Refusal{"Vulkan 1.1 but 1.2 is needed", [](DeviceSnapshot& s) { s.api_version = kVulkan11; }},
                      Refusal{"timelineSemaphore", [](DeviceSnapshot& s) { s.timeline_semaphore = false; }},
                      Refusal{"maxPerStageDescriptorStorageBuffers is 7 but 8", [](DeviceSnapshot& s) { s.reported.max_storage_buffers = 7; }},
                      Refusal{"maxComputeWorkGroupInvocations is 127 but 128", [](DeviceSnapshot& s) { s.reported.max_invocations = 127; }},
                      Refusal{"maxComputeSharedMemorySize is 16383 but 16384", [](DeviceSnapshot& s) { s.reported.max_shared_bytes = 16383; }},
                      Refusal{"maxPushConstantsSize is 64 but 128", [](DeviceSnapshot& s) { s.reported.max_push_bytes = 64; }},
                      Refusal{"maxComputeWorkGroupCount[0] is 65534 but 65535", [](DeviceSnapshot& s) { s.reported.max_grid[0] = 65534; }},
                      Refusal{"maxComputeWorkGroupCount[1]", [](DeviceSnapshot& s) { s.reported.max_grid[1] = 1; }},
                      Refusal{"maxComputeWorkGroupCount[2]", [](DeviceSnapshot& s) { s.reported.max_grid[2] = 1; }},
                      Refusal{"maxStorageBufferRange", [](DeviceSnapshot& s) { s.reported.max_storage_range_bytes = (1u << 16) - 1; }},
                      Refusal{"minStorageBufferOffsetAlignment is 512 but at most 256", [](DeviceSnapshot& s) { s.reported.storage_offset_alignment = 512; }},
                      Refusal{"no compute queue", [](DeviceSnapshot& s) { s.queues = {{kQueueGraphics, 4, 64}}; }},
                      Refusal{"no compute queue", [](DeviceSnapshot& s) { s.queues = {{kQueueCompute, 0, 64}}; }},
                      Refusal{"no compute queue", [](DeviceSnapshot& s) { s.queues.clear(); }},
                      Refusal{"no memory", [](DeviceSnapshot& s) { s.memory_types.clear(); }}));

TEST(DevicePlanTest, KernelsReadSixteenBytesAtATime) {
  DeviceSnapshot snapshot = baseline();
  snapshot.reported.storage_offset_alignment = 4;
  EXPECT_EQ(plan_device(snapshot).caps.storage_offset_alignment, 16u);
  snapshot.reported.storage_offset_alignment = 64;
  EXPECT_EQ(plan_device(snapshot).caps.storage_offset_alignment, 64u);
}

TEST(DevicePlanTest, PortabilityMustBeEnabledWhereItExists) {
  DeviceSnapshot snapshot = baseline();
  snapshot.extensions = {"VK_KHR_swapchain", "VK_KHR_portability_subset"};
  EXPECT_EQ(plan_device(snapshot).extensions, (std::vector<std::string>{"VK_KHR_portability_subset"}));
}

TEST(DevicePlanTest, ADriverThatOverstatesSharedMemoryIsClamped) {
  DeviceSnapshot snapshot = baseline();
  snapshot.reported.driver = "turnip Mesa driver";
  snapshot.reported.max_shared_bytes = 65536;
  EXPECT_EQ(plan_device(snapshot).caps.max_shared_bytes, 32768u);
  snapshot.reported.driver = "radv";
  EXPECT_EQ(plan_device(snapshot).caps.max_shared_bytes, 65536u);
}

TEST(DevicePlanTest, ADriverThatEndsLoopsHasALimit) {
  DeviceSnapshot snapshot = baseline();
  EXPECT_EQ(plan_device(snapshot).caps.max_loop_iterations, 0u);
  snapshot.reported.driver = "llvmpipe Mesa 22.3.6";
  EXPECT_EQ(plan_device(snapshot).caps.max_loop_iterations, 65535u);
}

TEST(DevicePlanTest, VendorsWhoseCompilersSinkLoads) {
  DeviceSnapshot snapshot = baseline();
  for (const auto& [vendor, sinks] : {std::pair{0x1002u, true}, {0x8086u, true}, {0x10deu, false}, {0x5143u, false}, {0x10005u, false}}) {
    snapshot.reported.vendor_id = vendor;
    EXPECT_EQ(plan_device(snapshot).caps.sinks_loads, sinks) << vendor;
  }
}

TEST(DevicePlanTest, OneDriversLanesHaveColumnsOfMatrices) {
  DeviceSnapshot snapshot = baseline();
  for (const auto& [vendor, driver, has] : {std::tuple{0x8086u, "Intel open-source Mesa driver Mesa 26.1.6", true}, {0x8086u, "Intel Corporation 101.6319", false}, {0x1002u, "radv Mesa 26.1.6", false}}) {
    snapshot.reported.vendor_id = vendor;
    snapshot.reported.driver = driver;
    EXPECT_EQ(plan_device(snapshot).caps.columns_in_lanes, has) << driver;
  }
}

TEST(DevicePlanTest, PredictionsFollowTheType) {
  DeviceSnapshot snapshot = baseline();
  const double discrete = plan_device(snapshot).caps.bytes_per_s;
  snapshot.reported.type = DeviceType::kIntegrated;
  const double integrated = plan_device(snapshot).caps.bytes_per_s;
  snapshot.reported.type = DeviceType::kCpu;
  const double cpu = plan_device(snapshot).caps.bytes_per_s;
  EXPECT_GT(discrete, integrated);
  EXPECT_GT(integrated, cpu);
}

TEST(DevicePlanTest, MeasurementsScalePredictionsWithinBounds) {
  const auto scaled = [](DeviceType type, double measured_bytes_per_s) {
    DeviceCaps caps;
    caps.type = type;
    set_predictions(caps);
    const DeviceCaps before = caps;
    scale_predictions(caps, measured_bytes_per_s * before.bytes_per_s);
    EXPECT_DOUBLE_EQ(caps.flops_per_s / before.flops_per_s, caps.bytes_per_s / before.bytes_per_s);
    EXPECT_EQ(caps.dispatch_ns, before.dispatch_ns);
    return caps.bytes_per_s / before.bytes_per_s;
  };
  EXPECT_DOUBLE_EQ(scaled(DeviceType::kDiscrete, 0.01), 0.25);
  EXPECT_DOUBLE_EQ(scaled(DeviceType::kDiscrete, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(scaled(DeviceType::kDiscrete, 3), 3);
  EXPECT_DOUBLE_EQ(scaled(DeviceType::kDiscrete, 100), 4);
  EXPECT_DOUBLE_EQ(scaled(DeviceType::kCpu, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(scaled(DeviceType::kCpu, 3), 1);
}

TEST(QueueChoiceTest, AFamilyWithoutGraphicsComesFirst) {
  const auto chosen = [](std::vector<QueueFamily> queues) {
    DeviceSnapshot snapshot = baseline();
    snapshot.queues = std::move(queues);
    return plan_device(snapshot).queue_family;
  };
  const QueueFamily both{kQueueGraphics | kQueueCompute, 1, 64}, compute{kQueueCompute, 2, 64}, transfer{4, 1, 64}, graphics{kQueueGraphics, 1, 64};
  EXPECT_EQ(chosen({both}), 0u);
  EXPECT_EQ(chosen({both, transfer, compute}), 2u);
  EXPECT_EQ(chosen({transfer, compute, both}), 1u);
  EXPECT_EQ(chosen({compute, compute}), 0u);
  EXPECT_EQ(chosen({both, both}), 0u);
  EXPECT_EQ(chosen({graphics, both}), 1u);
  EXPECT_EQ(chosen({both, {kQueueCompute, 0, 64}}), 0u) << "a family without queues";
}

TEST(QueueChoiceTest, TimestampsAreTheChosenFamilys) {
  DeviceSnapshot snapshot = baseline();
  snapshot.queues = {{kQueueGraphics | kQueueCompute, 1, 64}, {kQueueCompute, 1, 0}};
  EXPECT_EQ(plan_device(snapshot).caps.timestamp_bits, 0u);
}

TEST(DeviceChoiceTest, DiscreteIntegratedVirtualCpu) {
  const auto plan = [](DeviceType type, bool usable = true) {
    DevicePlan result;
    result.caps.type = type;
    result.usable = usable;
    return result;
  };
  using enum DeviceType;
  EXPECT_EQ(choose_device({plan(kCpu), plan(kIntegrated), plan(kDiscrete), plan(kVirtual)}), 2);
  EXPECT_EQ(choose_device({plan(kCpu), plan(kVirtual), plan(kIntegrated)}), 2);
  EXPECT_EQ(choose_device({plan(kOther), plan(kCpu), plan(kVirtual)}), 2);
  EXPECT_EQ(choose_device({plan(kOther), plan(kCpu)}), 1);
  EXPECT_EQ(choose_device({plan(kDiscrete), plan(kDiscrete)}), 0) << "the loader's order among equals";
  EXPECT_EQ(choose_device({plan(kDiscrete, false), plan(kCpu)}), 1) << "an unusable one is no choice";
  EXPECT_EQ(choose_device({plan(kDiscrete, false)}), -1);
  EXPECT_EQ(choose_device({}), -1);
}

struct MemoryCase {
  const char* name;
  DeviceType type;
  std::vector<MemoryType> types;
  int device, upload, readback;
};

class MemoryChoiceTest : public ::testing::TestWithParam<MemoryCase> {};

TEST_P(MemoryChoiceTest, FollowsTheIntent) {
  const MemoryCase& m = GetParam();
  EXPECT_EQ(choose_memory_type(m.types, ~0u, MemoryIntent::kDevice, m.type), m.device);
  EXPECT_EQ(choose_memory_type(m.types, ~0u, MemoryIntent::kUpload, m.type), m.upload);
  EXPECT_EQ(choose_memory_type(m.types, ~0u, MemoryIntent::kReadback, m.type), m.readback);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, MemoryChoiceTest,
    ::testing::Values(
        MemoryCase{"discrete", DeviceType::kDiscrete, {{0, 1}, {kLocal, 0}, {kVisible | kCoherent, 1}, {kVisible | kCoherent | kCached, 1}, {kLocal | kVisible | kCoherent, 2}}, 1, 2, 3},
        MemoryCase{"resizable_bar", DeviceType::kDiscrete, {{kLocal, 0}, {kVisible | kCoherent, 1}, {kLocal | kVisible | kCoherent, 0}, {kVisible | kCoherent | kCached, 1}}, 0, 1, 3},
        // As anv (Mesa 22.3) lists DG2: host memory is of one type, cached.
        MemoryCase{"dg2", DeviceType::kDiscrete, {{kLocal, 0}, {kVisible | kCoherent | kCached, 1}, {kLocal | kVisible | kCoherent, 0}}, 0, 1, 1},
        MemoryCase{"all_local_memory_visible", DeviceType::kDiscrete, {{kVisible | kCoherent, 1}, {kLocal | kVisible | kCoherent, 0}}, 1, 0, 0},
        MemoryCase{"integrated", DeviceType::kIntegrated, {{kLocal, 0}, {kLocal | kVisible | kCoherent, 0}, {kLocal | kVisible | kCoherent | kCached, 0}}, 1, 1, 2},
        MemoryCase{"integrated_incoherent", DeviceType::kIntegrated, {{kLocal | kVisible | kCached, 0}, {kLocal | kVisible | kCoherent, 0}}, 1, 1, 0},
        MemoryCase{"lavapipe", DeviceType::kCpu, {{kLocal | kVisible | kCoherent | kCached, 0}}, 0, 0, 0}),
    [](const ::testing::TestParamInfo<MemoryCase>& tested) { return std::string(tested.param.name); });

TEST(MemoryChoiceTest, OnlyAllowedTypes) {
  const std::vector<MemoryType> types = {{kLocal, 0}, {kVisible | kCoherent, 1}, {kVisible | kCoherent | kCached, 1}};
  EXPECT_EQ(choose_memory_type(types, 0b110, MemoryIntent::kDevice, DeviceType::kDiscrete), 1);
  EXPECT_EQ(choose_memory_type(types, 0b011, MemoryIntent::kReadback, DeviceType::kDiscrete), 1);
  EXPECT_EQ(choose_memory_type(types, 0b001, MemoryIntent::kUpload, DeviceType::kDiscrete), -1) << "what the host can't see can't be written";
  EXPECT_EQ(choose_memory_type(types, 0, MemoryIntent::kDevice, DeviceType::kDiscrete), -1);
}

TEST(DeviceTypeTest, Names) {
  EXPECT_STREQ(device_type_name(DeviceType::kDiscrete), "discrete");
  EXPECT_STREQ(device_type_name(DeviceType::kCpu), "cpu");
  EXPECT_STREQ(device_type_name(DeviceType::kOther), "other");
}

}  // namespace
}  // namespace rondo::runtime::device_plan_test
