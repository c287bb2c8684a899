#include "tests/support/device_environment.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <gtest/gtest.h>

namespace rondo::tests {

namespace {

std::optional<Instance> instance;
std::optional<Device> device;

bool validates() {
  const char* value = std::getenv("RONDO_TEST_VALIDATE");
  return value && std::strcmp(value, "1") == 0;
}

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "no device to test on: %s\n", status.message().c_str());
  std::exit(1);
}

/// Fails the test during which the validation layers spoke.
class ValidationListener : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { before_ = instance ? instance->n_validation_messages() : 0; }
  void OnTestEnd(const ::testing::TestInfo&) override {
    const std::uint64_t now = instance ? instance->n_validation_messages() : 0;
    EXPECT_EQ(now, before_) << "the validation layers printed messages; see above";
    // Older layers keep what was submitted until the device is waited for, of which a timeline semaphore tells them nothing: in a
    // program of two hundred models they got ten times slower.
    if (device) device->internal().vk().vkDeviceWaitIdle(device->internal().handle());
  }
  std::uint64_t before_ = 0;
};

class DeviceEnvironment : public ::testing::Environment {
 public:
  void SetUp() override { ::testing::UnitTest::GetInstance()->listeners().Append(new ValidationListener); }
  void TearDown() override {
    const std::uint64_t before = instance ? instance->n_validation_messages() : 0;
    device.reset();
    EXPECT_EQ(instance ? instance->n_validation_messages() : 0, before) << "validation messages while the device was destroyed";
    instance.reset();
  }
};

[[maybe_unused]] const auto* const environment = ::testing::AddGlobalTestEnvironment(new DeviceEnvironment);

}  // namespace

Instance& test_instance() {
  if (!instance) {
    InstanceOptions options;
    options.validate = validates();
    options.log = [](LogLevel level, std::string_view message) {
      if (level <= LogLevel::kWarn) std::fprintf(stderr, "%.*s\n", static_cast<int>(message.size()), message.data());
    };
    Result<Instance> made = Instance::create(options);
    if (!made.ok()) give_up(made.status());
    instance.emplace(std::move(made).value());
  }
  return *instance;
}

Device& test_device() {
  if (!device) {
    const char* selector = std::getenv("RONDO_DEVICE");
    Result<Device> made = Device::create(test_instance(), selector ? selector : "");
    if (!made.ok()) give_up(made.status());
    device.emplace(std::move(made).value());
  }
  return *device;
}

}  // namespace rondo::tests
