// A lost device: every later call says so, and everything can still be destroyed.
#include <chrono>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/memory.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::device_lost_test {
namespace {

void expect_lost(const Status& status) { expect_failure(status, StatusCode::kDeviceLost, {"device "}); }

/// A session in the middle of a generation, on a device of its own that is about to be lost.
class DeviceLostTest : public ::testing::Test {
 protected:
  DeviceLostTest()
      : device_(make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {})),
        model_(load_model(tiny_path(), {}, device_)),
        session_(make_session(model_, without_model_stops(4))) {
    (void)continue_with(session_, made_up_tokens(10, 512), 5);
    RONDO_EXPECT_OK(session_.append({}, 100));
  }
  /// As on a device that is really lost, nothing runs any more when objects are destroyed.
  ~DeviceLostTest() override { (void)runtime().vk().vkDeviceWaitIdle(runtime().handle()); }

  runtime::Device& runtime() { return device_.internal(); }

  /// Every call that needs the device, though the driver itself would answer again.
  void expect_everything_lost() {
    expect_lost(runtime().check_lost());
    expect_lost(runtime().completed_value().status());
    expect_lost(runtime().wait(0, 0));
    expect_lost(runtime::Buffer::create(runtime(), 256, runtime::MemoryIntent::kDevice, "test").status());
    expect_lost(session_.advance());
    std::int32_t taken[200];
    (void)session_.take_tokens(taken);  // tokens that had arrived
    expect_lost(session_.take_tokens(taken).status());
    expect_lost(session_.rewind(0));
    Session second = make_session_of_before();
    expect_lost(second.advance());
    expect_lost(second.wait_logits(Tokens{1}).status());
    const std::vector<std::int32_t> input = {1, 2};
    expect_lost(second.generate(std::span<const std::int32_t>(input), 3).status());
    expect_lost(Session::create(model_).status());
    Result<ByteSource> source = open_file(tiny_path());
    RONDO_ASSERT_OK(source.status());
    expect_lost(Model::create(device_, *source).status());
    expect_lost(half_loaded_.wait_loaded());
  }

 private:
  Session make_session_of_before() { return std::move(before_); }
  Model start_model() {
    Result<ByteSource> source = open_file(tiny_path());
    Result<Model> model = Model::create(device_, *source);
    EXPECT_TRUE(model.ok()) << describe(model.status());
    RONDO_EXPECT_OK(model->load_some(std::chrono::microseconds(0)).status());
    return std::move(model).value();
  }

 protected:
  Device device_;
  Model model_;
  Session session_;
  Session before_ = make_session(model_, without_model_stops(4));
  Model half_loaded_ = start_model();
};

TEST_F(DeviceLostTest, FoundBySubmitting) {
  {
    const Hooks<QueueSubmit> hooks(runtime());
    QueueSubmit::fail(VK_ERROR_DEVICE_LOST);
    expect_lost(session_.advance());
  }
  expect_everything_lost();
}

TEST_F(DeviceLostTest, FoundByWaiting) {
  {
    const Gate gate(runtime());  // tokens that are there already are not waited for
    const Hooks<WaitSemaphores> hooks(runtime());
    RONDO_ASSERT_OK(session_.advance());
    WaitSemaphores::fail(VK_ERROR_DEVICE_LOST);
    expect_lost(session_.wait(std::chrono::seconds(1)));
  }
  expect_everything_lost();
}

TEST_F(DeviceLostTest, FoundByReadingTheTimeline) {
  {
    const Hooks<GetSemaphoreCounterValue> hooks(runtime());
    RONDO_ASSERT_OK(session_.advance());
    GetSemaphoreCounterValue::fail(VK_ERROR_DEVICE_LOST);
    expect_lost(session_.advance());
  }
  expect_everything_lost();
}

TEST_F(DeviceLostTest, FoundByLoading) {
  {
    const Hooks<QueueSubmit> hooks(runtime());
    QueueSubmit::fail(VK_ERROR_DEVICE_LOST);
    expect_lost(half_loaded_.wait_loaded());
  }
  expect_everything_lost();
}

TEST_F(DeviceLostTest, OtherDevicesGoOn) {
  {
    const Hooks<QueueSubmit> hooks(runtime());
    QueueSubmit::fail(VK_ERROR_DEVICE_LOST);
    expect_lost(session_.advance());
  }
  const Model model = load_model(tiny_path());
  Session session = make_session(model, without_model_stops());
  EXPECT_EQ(continue_with(session, made_up_tokens(10, 512), 5).size(), 5u);
}

/// What a host does after a loss: a new device, and the tokens it has logged, in the chunks it had fed them in.
TEST_F(DeviceLostTest, ANewDeviceTakesUpTheText) {
  const std::vector<Tokens> fed = {made_up_tokens(10, 512), {7, 201, 44}};
  const auto feed = [&](Session& session) {
    Tokens made = continue_with(session, fed[0], 5);
    return joined(made, continue_with(session, fed[1], 6));
  };
  const Model elsewhere = load_model(tiny_path());
  Session undisturbed = make_session(elsewhere, without_model_stops(4));
  const Tokens before = feed(undisturbed), after = continue_with(undisturbed, {}, 20);
  {
    RONDO_EXPECT_OK(before_.rewind(0));
    EXPECT_EQ(feed(before_), before);
    const Hooks<QueueSubmit> hooks(runtime());
    RONDO_EXPECT_OK(before_.append({}, 20));
    QueueSubmit::fail(VK_ERROR_DEVICE_LOST);
    expect_lost(before_.advance());
  }
  Device device(make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {}));
  const Model model = load_model(tiny_path(), {}, device);
  Session session = make_session(model, without_model_stops(4));
  EXPECT_EQ(feed(session), before);
  EXPECT_EQ(continue_with(session, {}, 20), after);
}

}  // namespace
}  // namespace rondo::tests::device_lost_test
