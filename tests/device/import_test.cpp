// A device of the host's own: made with the system's loader, used by Rondo, and still the host's afterwards.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/vulkan.h>

#include "runtime/cooperative_matrix.h"
#include "runtime/instance.h"
#include "runtime/transfer.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::import_test {
namespace {

/// What a host has before it knows of Rondo: loader, instance, device and queue, with a validation messenger of its own.
class Host {
 public:
  Host() {
    library_ = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) return;
    find_ = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library_, "vkGetInstanceProcAddr"));
    make_instance();
    if (instance_) choose_device();
    if (physical_device_) make_device();
  }
  ~Host() {
    if (device_) {
      of_device<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(device_);
      of_device<PFN_vkDestroyDevice>("vkDestroyDevice")(device_, nullptr);
    }
    if (messenger_) entry<PFN_vkDestroyDebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT")(instance_, messenger_, nullptr);
    if (instance_) entry<PFN_vkDestroyInstance>("vkDestroyInstance")(instance_, nullptr);
    EXPECT_EQ(n_messages_, 0) << "the validation layers complained about the host's device";
    if (library_) dlclose(library_);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  bool ready() const { return queue_ != VK_NULL_HANDLE; }
  std::uint32_t n_queue_families() const { return n_families_; }

  /// All that Rondo is told. The host counts its lock.
  ImportedDevice imported() {
    ImportedDevice imported;
    imported.instance = instance_;
    imported.physical_device = physical_device_;
    imported.device = device_;
    imported.queue_family = queue_family_;
    imported.queue = queue_;
    imported.api_version = VK_API_VERSION_1_2;
    imported.enabled_features = &features_;
    imported.enabled_extensions = extensions_;
    imported.lock_queue = [this] {
      ++n_locks;
      most_held = std::max(most_held, ++n_held);
    };
    imported.unlock_queue = [this] { --n_held; };
    return imported;
  }
  PFN_vkGetInstanceProcAddr get_instance_proc_addr() const { return find_; }

  /// The host's own work on its queue: fills a buffer's worth of nothing and waits for it.
  bool submit_own_work() {
    const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, nullptr, 0};
    VkFence fence = VK_NULL_HANDLE;
    if (of_device<PFN_vkCreateFence>("vkCreateFence")(device_, &info, nullptr, &fence) != VK_SUCCESS) return false;
    const VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, queue_family_};
    VkCommandPool pool = VK_NULL_HANDLE;
    VkResult result = of_device<PFN_vkCreateCommandPool>("vkCreateCommandPool")(device_, &pool_info, nullptr, &pool);
    const VkCommandBufferAllocateInfo allocation{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    if (result == VK_SUCCESS) result = of_device<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers")(device_, &allocation, &commands);
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0, nullptr};
    if (result == VK_SUCCESS) result = of_device<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer")(commands, &begin);
    if (result == VK_SUCCESS) result = of_device<PFN_vkEndCommandBuffer>("vkEndCommandBuffer")(commands);
    const VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO, nullptr, 0, nullptr, nullptr, 1, &commands, 0, nullptr};
    if (result == VK_SUCCESS) result = of_device<PFN_vkQueueSubmit>("vkQueueSubmit")(queue_, 1, &submit, fence);
    if (result == VK_SUCCESS) result = of_device<PFN_vkWaitForFences>("vkWaitForFences")(device_, 1, &fence, VK_TRUE, ~0ull);
    of_device<PFN_vkDestroyCommandPool>("vkDestroyCommandPool")(device_, pool, nullptr);
    of_device<PFN_vkDestroyFence>("vkDestroyFence")(device_, fence, nullptr);
    return result == VK_SUCCESS;
  }

  int n_locks = 0, n_held = 0, most_held = 0;

 private:
  template <typename Function>
  Function entry(const char* name) const {
    return reinterpret_cast<Function>(find_(instance_, name));
  }
  template <typename Function>
  Function of_device(const char* name) const {
    return reinterpret_cast<Function>(entry<PFN_vkGetDeviceProcAddr>("vkGetDeviceProcAddr")(device_, name));
  }

  static VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
    std::fprintf(stderr, "host: %s\n", data->pMessage);
    ++static_cast<Host*>(user)->n_messages_;
    return VK_FALSE;
  }

  void make_instance() {
    const char* value = std::getenv("RONDO_TEST_VALIDATE");
    const bool validate = value && std::strcmp(value, "1") == 0;
    const char* layer = "VK_LAYER_KHRONOS_validation";
    const char* debug_utils = "VK_EXT_debug_utils";
    const VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "host", 1, "host", 1, VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, nullptr, 0, &application, validate ? 1u : 0u, &layer, validate ? 1u : 0u, &debug_utils};
    if (entry<PFN_vkCreateInstance>("vkCreateInstance")(&info, nullptr, &instance_) != VK_SUCCESS || !validate) return;
    VkDebugUtilsMessengerCreateInfoEXT messenger{};
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = this;
    entry<PFN_vkCreateDebugUtilsMessengerEXT>("vkCreateDebugUtilsMessengerEXT")(instance_, &messenger, nullptr, &messenger_);
  }

  /// The device that the other tests run on.
  void choose_device() {
    std::uint32_t n = 0;
    entry<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance_, &n, nullptr);
    std::vector<VkPhysicalDevice> devices(n);
    entry<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices")(instance_, &n, devices.data());
    const std::uint32_t index = test_device().info().index;
    if (index >= n) return;
    physical_device_ = devices[index];
    const auto list_families = entry<PFN_vkGetPhysicalDeviceQueueFamilyProperties>("vkGetPhysicalDeviceQueueFamilyProperties");
    list_families(physical_device_, &n_families_, nullptr);
    queue_family_ = test_runtime_device().queue_family();
  }

  void make_device() {
    features_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    features_.timelineSemaphore = VK_TRUE;
    for (const std::string& name : test_instance().internal().plans()[test_device().info().index].extensions) extensions_.push_back(name.c_str());
    const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, queue_family_, 1, &priority};
    const VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features_, 0, 1, &queue, 0, nullptr, static_cast<std::uint32_t>(extensions_.size()), extensions_.data(), nullptr};
    if (entry<PFN_vkCreateDevice>("vkCreateDevice")(physical_device_, &info, nullptr, &device_) != VK_SUCCESS) return;
    of_device<PFN_vkGetDeviceQueue>("vkGetDeviceQueue")(device_, queue_family_, 0, &queue_);
  }

  void* library_ = nullptr;
  PFN_vkGetInstanceProcAddr find_ = nullptr;
  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t queue_family_ = 0, n_families_ = 0;
  VkPhysicalDeviceTimelineSemaphoreFeatures features_{};
  std::vector<const char*> extensions_;
  std::atomic<int> n_messages_{0};
};

class ImportTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(host_.ready()); }
  Host host_;
};

/// What the host says is enabled decides; nothing is made of it here. On drivers without matrices there are none either way.
TEST_F(ImportTest, MatricesTakeAllThatTheyNeed) {
  for (int left_out = 0; left_out <= 5; ++left_out) {
    runtime::CooperativeMatrixFeatures matrices;
    matrices.cooperativeMatrix = left_out != 1;
    VkPhysicalDeviceVulkan12Features features12{};
    features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features12.pNext = &matrices;
    features12.timelineSemaphore = VK_TRUE;
    features12.shaderFloat16 = left_out != 2;
    features12.vulkanMemoryModel = left_out != 3;
    features12.vulkanMemoryModelDeviceScope = left_out != 4;
    if (left_out == 5) features12.pNext = nullptr;
    ImportedDevice imported = host_.imported();
    imported.enabled_features = &features12;
    const Result<Device> device = import_device(imported);
    RONDO_ASSERT_OK(device.status());
    EXPECT_EQ(device->info().matrices, left_out == 0 ? test_device().info().matrices : std::vector<std::string>()) << left_out;
  }
}

TEST_F(ImportTest, GeneratesWhatRondosOwnDeviceGenerates) {
  const char* const text = "And God said unto Moses,";
  Result<Generation> expected = Status(StatusCode::kInternal, "unset");
  {
    const Model model = load_model(demo_path());
    Session session = make_session(model);
    expected = session.generate(text, 24);
    RONDO_ASSERT_OK(expected.status());
    ASSERT_EQ(expected->tokens.size(), 24u);
  }
  for (const PFN_vkGetInstanceProcAddr find : {PFN_vkGetInstanceProcAddr{}, host_.get_instance_proc_addr()}) {
    {
      ImportedDevice imported = host_.imported();
      imported.get_instance_proc_addr = find;
      Result<Device> device = import_device(imported);
      RONDO_ASSERT_OK(device.status());
      EXPECT_EQ(device->info().name, test_device().info().name);
      const Model model = load_model(demo_path(), {}, *device);
      Session session = make_session(model);
      const int before = host_.n_locks;
      const Result<Generation> generation = session.generate(text, 24);
      RONDO_ASSERT_OK(generation.status());
      EXPECT_EQ(generation->tokens, expected->tokens);
      EXPECT_EQ(generation->text, expected->text);
      // Every use of the queue, and nothing else, lies between lock and unlock.
      EXPECT_EQ(host_.n_locks - before, static_cast<int>(session.statistics().n_submissions));
      EXPECT_TRUE(host_.submit_own_work());
    }
    EXPECT_EQ(host_.n_held, 0);
    EXPECT_EQ(host_.most_held, 1);
    EXPECT_TRUE(host_.submit_own_work());  // the device is the host's, and as it was
  }
}

/// Ticks as of a slow device: 40 ms between one query and the next.
struct SlowClock {
  static inline double period_ns = 1;
  static VkResult VKAPI_PTR read(VkDevice, VkQueryPool, std::uint32_t first, std::uint32_t n, std::size_t, void* data, VkDeviceSize stride, VkQueryResultFlags) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto tick = static_cast<std::uint64_t>(40e6 / period_ns * (first + i));
      std::memcpy(static_cast<std::byte*>(data) + i * stride, &tick, sizeof tick);
    }
    return VK_SUCCESS;
  }
};

/// The queue may be busy for seconds with frames of the host's, so nothing is submitted before there is work.
TEST_F(ImportTest, MeasuresWithItsFirstWork) {
  Result<Device> device = import_device(host_.imported());
  RONDO_ASSERT_OK(device.status());
  runtime::Device& runtime = device->internal();
  EXPECT_EQ(host_.n_locks, 0);
  EXPECT_EQ(runtime.last_submitted(), 0u);
  const runtime::DeviceCaps& before = runtime.caps();
  runtime::DeviceCaps of_type = before;
  runtime::set_predictions(of_type);
  EXPECT_EQ(before.bytes_per_s, of_type.bytes_per_s);
  if (before.timestamp_bits == 0) GTEST_SKIP() << "the queue has no timestamps";
  SlowClock::period_ns = before.timestamp_period_ns;
  runtime.table_for_tests().vkGetQueryPoolResults = SlowClock::read;
  const Model model = load_model(tiny_path(), {}, *device);
  EXPECT_EQ(runtime.caps().bytes_per_s, of_type.bytes_per_s / 4);  // the most that a measurement slows predictions down
  EXPECT_EQ(runtime.caps().flops_per_s, of_type.flops_per_s / 4);
  EXPECT_EQ(before.bytes_per_s, of_type.bytes_per_s) << "who holds the old ones keeps them";
  EXPECT_EQ(runtime.caps().name, before.name);
  const runtime::DeviceCaps* measured = &runtime.caps();
  Session session = make_session(model, without_model_stops());
  (void)continue_with(session, made_up_tokens(10, 512), 5);
  EXPECT_EQ(&runtime.caps(), measured) << "measured once";
}

TEST_F(ImportTest, WithoutTimestampsItKeepsThePredictionsOfItsType) {
  const auto device = make_second_device(test_runtime_device(), [](runtime::Device::Parts& changed) {
    changed.measure_later = true;
    changed.plan.caps.timestamp_bits = 0;
    runtime::set_predictions(changed.plan.caps);
  });
  EXPECT_EQ(device->last_submitted(), 0u);
  const runtime::DeviceCaps* before = &device->caps();
  RONDO_ASSERT_OK(device->wait(0, 0));
  runtime::CommandList commands(*device);
  RONDO_ASSERT_OK(commands.begin());
  const Result<VkCommandBuffer> recorded = commands.end();
  RONDO_ASSERT_OK(recorded.status());
  const runtime::Batch batch{{&*recorded, 1}};
  const Result<std::uint64_t> value = device->submit({&batch, 1});
  RONDO_ASSERT_OK(value.status());
  RONDO_EXPECT_OK(device->wait(*value, ~0ull));
  EXPECT_EQ(&device->caps(), before);
}

/// Callbacks must not throw. If one does, the call is lost, and nothing else: no lock of Rondo's stays held.
TEST_F(ImportTest, AThrowingLockLosesOneCall) {
  ImportedDevice imported = host_.imported();
  bool throws_before = false, throws_after = false;
  imported.lock_queue = [&] {
    if (throws_before) throw 7;
  };
  imported.unlock_queue = [&] {
    if (throws_after) throw 8;
  };
  const Result<Device> device = import_device(imported);
  RONDO_ASSERT_OK(device.status());
  const runtime::Batch batch;  // of no commands
  const auto submit = [&] { return device->internal().submit({&batch, 1}).status(); };
  throws_before = true;
  EXPECT_THROW((void)submit(), int);
  throws_before = false;
  RONDO_EXPECT_OK(submit());
  RONDO_EXPECT_OK(device->internal().wait(device->internal().last_submitted(), ~0ull));
  throws_after = true;
  EXPECT_THROW((void)submit(), int);
  throws_after = false;
  RONDO_EXPECT_OK(device->internal().wait(device->internal().last_submitted(), ~0ull));
  RONDO_EXPECT_OK(submit());
}

TEST_F(ImportTest, AFunctionThatFindsNothingIsRefusedAsSuch) {
  ImportedDevice imported = host_.imported();
  imported.get_instance_proc_addr = [](VkInstance, const char*) -> PFN_vkVoidFunction { return nullptr; };
  expect_failure(import_device(imported).status(), StatusCode::kInvalidArgument, {"get_instance_proc_addr", "finds no entry points"});
  RONDO_EXPECT_OK(import_device(host_.imported()).status());
}

TEST_F(ImportTest, LocksAreOptional) {
  ImportedDevice imported = host_.imported();
  imported.lock_queue = nullptr;
  imported.unlock_queue = nullptr;
  RONDO_EXPECT_OK(import_device(imported).status());
  EXPECT_EQ(host_.n_locks, 0);
}

TEST_F(ImportTest, NullHandlesAreRefused) {
  const auto refused = [&](auto ImportedDevice::*handle) {
    ImportedDevice imported = host_.imported();
    imported.*handle = VK_NULL_HANDLE;
    expect_failure(import_device(imported).status(), StatusCode::kInvalidArgument, {"import_device", "null"});
  };
  refused(&ImportedDevice::instance);
  refused(&ImportedDevice::physical_device);
  refused(&ImportedDevice::device);
  refused(&ImportedDevice::queue);
}

TEST_F(ImportTest, ALockNeedsItsUnlock) {
  ImportedDevice imported = host_.imported();
  imported.unlock_queue = nullptr;
  expect_failure(import_device(imported).status(), StatusCode::kInvalidArgument, {"lock_queue and unlock_queue"});
  imported = host_.imported();
  imported.lock_queue = nullptr;
  expect_failure(import_device(imported).status(), StatusCode::kInvalidArgument, {"lock_queue and unlock_queue"});
  EXPECT_EQ(host_.n_locks, 0);
}

TEST_F(ImportTest, TheTimelineFeatureMustBeEnabled) {
  ImportedDevice imported = host_.imported();
  imported.enabled_features = nullptr;
  expect_failure(import_device(imported).status(), StatusCode::kUnsupported, {"timelineSemaphore", "not enabled"});

  // It is found in either structure, and behind others.
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  imported.enabled_features = &features;
  expect_failure(import_device(imported).status(), StatusCode::kUnsupported, {"timelineSemaphore", "not enabled"});
  features12.timelineSemaphore = VK_TRUE;
  RONDO_EXPECT_OK(import_device(imported).status());
}

/// Whatever the device could do: what its owner has not enabled is not used.
TEST_F(ImportTest, SixteenBitStorageCountsWhereItIsEnabled) {
  Result<Device> device = import_device(host_.imported());
  RONDO_ASSERT_OK(device.status());
  EXPECT_FALSE(device->internal().caps().storage16);
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  VkPhysicalDevice16BitStorageFeatures features16{};
  features16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  ImportedDevice imported = host_.imported();
  features11.pNext = &features16;
  features16.pNext = const_cast<void*>(imported.enabled_features);
  imported.enabled_features = &features11;
  const auto enabled = [&] {
    const Result<Device> again = import_device(imported);
    RONDO_EXPECT_OK(again.status());
    return again.ok() && again->internal().caps().storage16;
  };
  EXPECT_FALSE(enabled());
  features11.storageBuffer16BitAccess = VK_TRUE;
  EXPECT_TRUE(enabled());
  features11.storageBuffer16BitAccess = VK_FALSE;
  features16.storageBuffer16BitAccess = VK_TRUE;
  EXPECT_TRUE(enabled());
}

TEST_F(ImportTest, QueueFamiliesAreChecked) {
  for (const std::uint32_t family : {host_.n_queue_families(), 0xffffffffu}) {
    ImportedDevice imported = host_.imported();
    imported.queue_family = family;
    expect_failure(import_device(imported).status(), StatusCode::kInvalidArgument, {"queue family " + std::to_string(family)});
  }
}

TEST_F(ImportTest, AnInstanceBelow12IsRefused) {
  ImportedDevice imported = host_.imported();
  imported.api_version = VK_API_VERSION_1_1;
  expect_failure(import_device(imported).status(), StatusCode::kUnsupported, {"1.2"});
}

}  // namespace
}  // namespace rondo::tests::import_test
