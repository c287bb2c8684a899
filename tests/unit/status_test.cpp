#include <rondo/status.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace rondo::status_test {
namespace {

TEST(StatusTest, SuccessIsSilent) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.line(), 0);
  EXPECT_TRUE(status.with_prefix("x").ok());
  EXPECT_EQ(status.with_prefix("x").message(), "");
}

TEST(StatusTest, FailureKnowsWhatAndWhere) {
  const Status status(StatusCode::kCorruptData, "a.gguf: no magic");
  const int line = __LINE__ - 1;
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "a.gguf: no magic");
  EXPECT_EQ(status.line(), line);
  EXPECT_NE(std::string(status.file()).find("status_test.cpp"), std::string::npos);
  const Status longer = status.with_prefix("model");
  EXPECT_EQ(longer.message(), "model: a.gguf: no magic");
  EXPECT_EQ(longer.code(), StatusCode::kCorruptData);
  EXPECT_EQ(longer.line(), line);
}

TEST(StatusTest, VulkanResultsGetCodesAndNames) {
  struct Expected {
    std::int32_t result;
    StatusCode code;
    const char* name;
  };
  for (const Expected& e : {Expected{-1, StatusCode::kOutOfMemory, "VK_ERROR_OUT_OF_HOST_MEMORY"}, Expected{-2, StatusCode::kOutOfMemory, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
                            Expected{-4, StatusCode::kDeviceLost, "VK_ERROR_DEVICE_LOST"}, Expected{2, StatusCode::kTimeout, "VK_TIMEOUT"},
                            Expected{-3, StatusCode::kInternal, "VK_ERROR_INITIALIZATION_FAILED"}, Expected{-77, StatusCode::kInternal, "VkResult -77"}}) {
    const Status status = Status::from_vulkan(e.result, "device X: submit failed");
    EXPECT_EQ(status.code(), e.code) << e.name;
    EXPECT_EQ(status.message(), std::string("device X: submit failed (") + e.name + ")");
    EXPECT_EQ(status.vk_result(), e.result);
  }
}

TEST(StatusTest, EveryCodeHasItsOwnName) {
  std::vector<std::string> names;
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    const std::string name = status_code_name(static_cast<StatusCode>(code));
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 0) << name;
    EXPECT_NE(name, "unknown") << code;
    names.push_back(name);
  }
}

Result<std::unique_ptr<int>> half_of(int n) {
  if (n % 2 != 0) return Status(StatusCode::kInvalidArgument, "n is odd");
  return std::make_unique<int>(n / 2);
}

Status quarter(int n, int& out) {
  RONDO_ASSIGN(const std::unique_ptr<int> half, half_of(n));
  RONDO_ASSIGN(const std::unique_ptr<int> fourth, half_of(*half));
  out = *fourth;
  return {};
}

Status twice(int n, int& out) {
  RONDO_TRY(quarter(n, out));
  out *= 2;
  return {};
}

TEST(ResultTest, ValuesAndFailuresTravel) {
  int out = 0;
  EXPECT_TRUE(twice(12, out).ok());
  EXPECT_EQ(out, 6);
  EXPECT_EQ(twice(6, out).message(), "n is odd");
  EXPECT_EQ(out, 6);
  Result<std::unique_ptr<int>> held = half_of(8);
  const std::unique_ptr<int> taken = std::move(held).value();
  EXPECT_EQ(*taken, 4);
  const std::unique_ptr<int> at_once = *half_of(10);  // a temporary gives its value away
  EXPECT_EQ(*at_once, 5);
}

}  // namespace
}  // namespace rondo::status_test
