// Handles go in any order, also while the device works; empty ones say so; what dropped objects leave is freed in time.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/instance.h"
#include "runtime/memory.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::handles_test {
namespace {

/// An instance of the test's own, validated as the shared one is.
Result<Instance> make_instance() {
  InstanceOptions options;
  const char* validate = std::getenv("RONDO_TEST_VALIDATE");
  options.validate = validate && std::strcmp(validate, "1") == 0;
  return Instance::create(options);
}

std::string device_selector() { return std::to_string(test_device().info().index); }

TEST(HandlesTest, ASessionGoesOnWithoutInstanceDeviceAndModel) {
  Tokens expected;
  {
    const Model model = load_model(tiny_path());
    Session session = make_session(model, without_model_stops(4));
    expected = continue_with(session, made_up_tokens(10, 512), 40);
  }
  Result<Instance> made = make_instance();
  RONDO_ASSERT_OK(made.status());
  std::optional<Instance> instance(std::move(made).value());
  Result<Device> created = Device::create(*instance, device_selector());
  RONDO_ASSERT_OK(created.status());
  std::optional<Device> device(std::move(created).value());
  std::optional<Model> model(load_model(tiny_path(), {}, *device));
  Session session = make_session(*model, without_model_stops(4));
  const std::weak_ptr<runtime::Instance> watched = instance->shared();
  const std::weak_ptr<runtime::Device> watched_device = device->shared();
  {
    const Gate gate(device->internal());
    RONDO_ASSERT_OK(session.append(made_up_tokens(10, 512), 40));
    RONDO_ASSERT_OK(session.advance());
    instance.reset();  // none of them waits for the gate
    device.reset();
    model.reset();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_EQ(take_all(session), expected);
  EXPECT_EQ(watched.lock()->n_validation_messages(), 0u);
  {
    const Session last = std::move(session);
    EXPECT_FALSE(watched_device.expired());
  }
  EXPECT_TRUE(watched_device.expired());
  EXPECT_TRUE(watched.expired());
}

/// The last owner waits: the driver destroys nothing that is in use.
TEST(HandlesTest, ABusySessionIsTheLastToGo) {
  std::optional<Session> session;
  std::weak_ptr<runtime::Device> watched;
  {
    Device device(make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {}));
    const Model model = load_model(tiny_path(), {}, device);
    watched = device.shared();
    session.emplace(make_session(model, without_model_stops(4)));
  }
  RONDO_ASSERT_OK(session->append(made_up_tokens(200, 512), 40));
  RONDO_ASSERT_OK(session->advance());
  const std::uint64_t submitted = watched.lock()->last_submitted();
  EXPECT_GT(submitted, 0u);
  session.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(HandlesTest, EmptyOnesSaySo) {
  Result<Instance> made = make_instance();
  RONDO_ASSERT_OK(made.status());
  Instance instance = std::move(made).value();
  const Instance taken = std::move(instance);
  EXPECT_TRUE(instance.devices().empty());
  EXPECT_EQ(instance.n_validation_messages(), 0u);
  expect_failure(instance.find_device("").status(), StatusCode::kFailedPrecondition, {"Instance", "empty"});
  expect_failure(Device::create(instance).status(), StatusCode::kFailedPrecondition, {"Instance", "empty"});

  Result<Device> created = Device::create(taken, device_selector());
  RONDO_ASSERT_OK(created.status());
  Device device = std::move(created).value();
  const Device owner = std::move(device);
  EXPECT_EQ(device.info().name, "");
  EXPECT_FALSE(owner.info().name.empty());
  EXPECT_TRUE(device.collect());
  EXPECT_FALSE(device.add_pipeline_cache({}));
  EXPECT_EQ(device.pipeline_cache_key(), "");
  expect_failure(device.pipeline_cache().status(), StatusCode::kFailedPrecondition, {"Device", "empty"});
  expect_failure(Model::create(device, open_file(tiny_path()).value()).status(), StatusCode::kFailedPrecondition, {"Device", "empty"});
  device = Device(owner.shared());
  EXPECT_EQ(device.info().name, owner.info().name);
}

/// Calls of the Vulkan instance that a test has replaced.
struct InstanceCalls {
  static inline int n_created = 0, n_destroyed = 0;
  static inline PFN_vkCreateDevice real_create = nullptr;
  static inline PFN_vkDestroyDevice real_destroy = nullptr;
  static inline PFN_vkGetDeviceProcAddr real_find = nullptr;

  static VkResult VKAPI_PTR create(VkPhysicalDevice physical, const VkDeviceCreateInfo* info, const VkAllocationCallbacks* callbacks, VkDevice* device) {
    ++n_created;
    return real_create(physical, info, callbacks, device);
  }
  static void VKAPI_PTR destroy(VkDevice device, const VkAllocationCallbacks* callbacks) {
    ++n_destroyed;
    real_destroy(device, callbacks);
  }
  static PFN_vkVoidFunction VKAPI_PTR find(VkDevice device, const char* name) { return std::strcmp(name, "vkWaitSemaphores") == 0 ? nullptr : real_find(device, name); }
};

TEST(DeviceCreateTest, ADriverWithoutAnEntryPointIsRefusedAndNothingIsLeft) {
  const Result<Instance> instance = make_instance();
  RONDO_ASSERT_OK(instance.status());
  runtime::InstanceTable& table = instance->internal().table_for_tests();
  InstanceCalls::n_created = InstanceCalls::n_destroyed = 0;
  InstanceCalls::real_create = std::exchange(table.create_device, InstanceCalls::create);
  InstanceCalls::real_destroy = std::exchange(table.destroy_device, InstanceCalls::destroy);
  InstanceCalls::real_find = std::exchange(table.get_device_proc_addr, InstanceCalls::find);
  expect_failure(Device::create(*instance, device_selector()).status(), StatusCode::kUnsupported, {test_device().info().name, "has no vkWaitSemaphores"});
  EXPECT_EQ(InstanceCalls::n_created, 1);
  EXPECT_EQ(InstanceCalls::n_destroyed, 1);
  table.get_device_proc_addr = InstanceCalls::real_find;
  RONDO_EXPECT_OK(Device::create(*instance, device_selector()).status());
}

/// A driver that refuses what it lists.
struct RefusingDriver {
  static inline std::vector<const char*> refused;  ///< extensions
  static inline bool refuses_all = false;
  static inline int n_calls = 0;
  static inline PFN_vkCreateDevice real = nullptr;

  static VkResult VKAPI_PTR create(VkPhysicalDevice physical, const VkDeviceCreateInfo* info, const VkAllocationCallbacks* callbacks, VkDevice* device) {
    ++n_calls;
    if (refuses_all) return VK_ERROR_FEATURE_NOT_PRESENT;
    for (std::uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
      for (const char* name : refused) {
        if (std::strcmp(info->ppEnabledExtensionNames[i], name) == 0) return VK_ERROR_FEATURE_NOT_PRESENT;
      }
    }
    return real(physical, info, callbacks, device);
  }
};

TEST(DeviceCreateTest, WhatADriverListsAndRefusesIsDoneWithout) {
  std::vector<std::string> lines;
  InstanceOptions options;
  options.log = [&](LogLevel, std::string_view message) { lines.emplace_back(message); };
  const Result<Instance> instance = Instance::create(options);
  RONDO_ASSERT_OK(instance.status());
  runtime::InstanceTable& table = instance->internal().table_for_tests();
  RefusingDriver::real = std::exchange(table.create_device, RefusingDriver::create);
  const std::string name = test_device().info().name;
  const runtime::DeviceCaps& whole = test_device().internal().caps();
  struct Case {
    std::vector<const char*> refused;
    const char* line;
  };
  for (const Case& one : {Case{{"VK_KHR_shader_integer_dot_product"}, "integer dot products"}, Case{{"VK_EXT_subgroup_size_control"}, "subgroups of a required size"},
                          Case{{"VK_KHR_shader_integer_dot_product", "VK_EXT_subgroup_size_control"}, "integer dot products, subgroups of a required size"}}) {
    RefusingDriver::refused = one.refused;
    lines.clear();
    Result<Device> device = Device::create(*instance, device_selector());
    RONDO_ASSERT_OK(device.status());
    const bool refuses_dots = std::string_view(one.line).find("dot") != std::string_view::npos;
    EXPECT_EQ(device->internal().caps().integer_dot, whole.integer_dot && !refuses_dots);
    if (!whole.integer_dot && refuses_dots) continue;
    const auto is_told = [&](const std::string& line) { return line.find(name) != std::string::npos && line.find(one.line) != std::string::npos && line.find("refuses") != std::string::npos; };
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), is_told), 1) << one.line;
    RONDO_EXPECT_OK(Model::create(*device, open_file(tiny_path()).value()).status());
  }
  RefusingDriver::refuses_all = true;
  RefusingDriver::n_calls = 0;
  expect_failure(Device::create(*instance, device_selector()).status(), StatusCode::kUnsupported, {name, "can't be created"});
  EXPECT_GT(RefusingDriver::n_calls, 2);
  EXPECT_LT(RefusingDriver::n_calls, 10);
  RefusingDriver::refuses_all = false;
}

TEST(CollectTest, FreesWhatAModelAndASessionLeaveInTheMiddleOfTheirWork) {
  Device device(make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {}));
  std::optional<Model> model(load_model(tiny_path(), {}, device));
  std::optional<Session> session(make_session(*model, without_model_stops(4)));
  drain(device.internal());
  const LeakHooks hooks(device.internal());
  {
    const Gate gate(device.internal());
    RONDO_ASSERT_OK(session->append(made_up_tokens(10, 512), 40));
    RONDO_ASSERT_OK(session->advance());
    session.reset();
    model.reset();
    EXPECT_FALSE(device.collect());
    EXPECT_EQ(FreeMemory::n_calls, 0u);
  }  // opened, and waited for
  EXPECT_EQ(FreeMemory::n_calls, 0u) << "nobody has called Rondo";
  EXPECT_TRUE(device.collect());
  EXPECT_GE(FreeMemory::n_calls, 6u);
}

Result<std::uint64_t> submit_nothing(runtime::Device& device) {
  const runtime::Batch batch;
  return device.submit({&batch, 1});
}

/// A buffer that was dropped while the device worked is freed by `call`, once that is done, and not before.
void expect_freed_by(const std::function<void(runtime::Device&)>& call) {
  const auto device = make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {});
  std::optional<runtime::Buffer> buffer;
  {
    Result<runtime::Buffer> made = runtime::Buffer::create(*device, 4096, runtime::MemoryIntent::kDevice, "test");
    RONDO_ASSERT_OK(made.status());
    buffer.emplace(std::move(made).value());
  }
  drain(*device);
  const LeakHooks hooks(*device);
  {
    const Gate gate(*device);
    RONDO_ASSERT_OK(submit_nothing(*device).status());
    buffer.reset();
    call(*device);
    EXPECT_EQ(FreeMemory::n_calls, 0u) << "the device may still use it";
  }
  EXPECT_EQ(FreeMemory::n_calls, 0u);
  call(*device);
  EXPECT_EQ(FreeMemory::n_calls, 1u);
}

TEST(CollectTest, EveryCallThatReachesTheDriverFreesByTheWay) {
  expect_freed_by([](runtime::Device& device) { RONDO_EXPECT_OK(device.completed_value().status()); });
  expect_freed_by([](runtime::Device& device) { (void)device.wait(device.last_submitted(), 0); });
  expect_freed_by([](runtime::Device& device) { expect_failure(device.wait(device.last_submitted() + 1, 0), StatusCode::kTimeout, {}); });
  expect_freed_by([](runtime::Device& device) { RONDO_EXPECT_OK(submit_nothing(device).status()); });
  expect_freed_by([](runtime::Device& device) {
    expect_failure(runtime::Buffer::create(device, ~0ull / 2, runtime::MemoryIntent::kDevice, "test").status(), StatusCode::kUnsupported, {});
  });
}

}  // namespace
}  // namespace rondo::tests::handles_test
