// rondo devices, and choosing a device: by index, by name, by environment, and what is said when there is none.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::devices_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;
using testing::run_command;

/// Far below what a driver needs, so that an error with less came before any was opened.
constexpr std::uint64_t kSmallMemory = std::uint64_t{64} << 20;

using Environment = decltype(CommandInput::environment);

/// The environment in which the Vulkan loader finds these driver manifests, separated by ':', and no others.
Environment with_drivers(const std::string& manifests) {
  return {{"VK_ICD_FILENAMES", manifests}, {"VK_DRIVER_FILES", manifests}, {"RONDO_DEVICE", {}}};
}

CommandResult run_with(const Environment& environment, const Arguments& arguments) {
  CommandInput input;
  input.arguments = arguments;
  input.environment = environment;
  return run_command(input);
}

Arguments generate(const Arguments& more) {
  Arguments all = {"generate", "-m", RONDO_DEMO_MODEL, "-p", "x", "-n", "1"};
  all.insert(all.end(), more.begin(), more.end());
  return testing::device_arguments(all);
}

/// Manifests whose names begin so, in the folders that the loader searches. The loader passes over what is made for
/// another processor.
std::vector<std::string> find_manifests(const std::string& start) {
  std::vector<std::string> manifests;
  for (const char* folder : {"/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.rfind(start, 0) == 0 && entry.path().extension() == ".json") manifests.push_back(entry.path().string());
    }
  }
  return manifests;
}

std::string joined(const std::vector<std::string>& manifests) {
  std::string list;
  for (const std::string& manifest : manifests) list += (list.empty() ? "" : ":") + manifest;
  return list;
}

/// The device list of the test's own environment.
json listed_devices(const Environment& environment = {}) {
  const CommandResult result = run_with(environment, {"devices", "--json"});
  testing::expect_done(result);
  EXPECT_EQ(result.err, "");
  const json document = testing::parse_output(result);
  return document.is_object() && document.contains("devices") ? document["devices"] : json::array();
}

TEST(DevicesTest, JsonHasEveryField) {
  const json devices = listed_devices();
  ASSERT_FALSE(devices.empty());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const json& device = devices[i];
    EXPECT_EQ(device.at("index"), i);
    EXPECT_NE(device.at("name"), "");
    EXPECT_TRUE(device.at("driver").is_string());
    EXPECT_TRUE(device.at("type").is_string());
    EXPECT_TRUE(device.at("api_version").is_string());
    EXPECT_TRUE(device.at("memory_bytes").is_number_unsigned());
    ASSERT_EQ(device.at("subgroup_sizes").size(), 2U);
    EXPECT_LE(device.at("subgroup_sizes")[0].get<int>(), device.at("subgroup_sizes")[1].get<int>());
    EXPECT_TRUE(device.at("features").is_array());
    const json& products = device.at("matrix_products");
    for (const std::string shape : device.at("matrices")) EXPECT_EQ(std::count(products.begin(), products.end(), shape + " f16 x f16 + f32, subgroup"), 1) << products.dump();
    EXPECT_EQ(device.at("usable").get<bool>(), device.at("reason") == "");
  }
}

TEST(DevicesTest, TextSaysTheSame) {
  const CommandResult text = run_command({"devices", "--pipeline-cache", "none"});
  testing::expect_done(text);
  EXPECT_EQ(text.err, "");
  for (const json& device : listed_devices()) {
    EXPECT_NE(text.out.find(device.at("index").dump() + ": " + device.at("name").get<std::string>()), std::string::npos)
        << text.out;
    EXPECT_NE(text.out.find(device.at("driver").get<std::string>()), std::string::npos) << text.out;
    EXPECT_NE(
        text.out.find(device.at("usable") ? "can be used" : "can't be used: " + device.at("reason").get<std::string>()),
        std::string::npos)
        << text.out;
  }
}

TEST(DevicesTest, OutputThatCannotBeWrittenIsAnError) {
  CommandInput input;
  input.arguments = {"devices", "--json"};
  input.stdout_path = "/dev/full";
  expect_error(run_command(input), 1, {"stdout"});
}

TEST(DeviceChoiceTest, ByIndexNameAndEnvironment) {
  const json devices = listed_devices();
  ASSERT_FALSE(devices.empty());
  const json* usable = nullptr;
  for (const json& device : devices) {
    if (!usable && device.at("usable")) usable = &device;
  }
  ASSERT_NE(usable, nullptr);
  const std::string index = usable->at("index").dump(), name = usable->at("name");
  const std::string printed = "[" + name + ":";
  for (const CommandResult& result :
       {run_command(generate({"--device", index})), run_with({{"RONDO_DEVICE", index}}, generate({})),
        // A flag wins over the environment.
        run_with({{"RONDO_DEVICE", "no such device"}}, generate({"--device", index}))}) {
    testing::expect_done(result);
    EXPECT_NE(result.err.find(printed), std::string::npos) << result.err;
  }
  if (devices.size() > 1) return;  // the name may be ambiguous
  std::string upper = name.substr(0, 5);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  testing::expect_done(run_command(generate({"--device", upper})));
  const CommandResult planned = run_command({"info", "-m", RONDO_DEMO_MODEL, "--device", index});
  testing::expect_done(planned);
  EXPECT_NE(planned.out.find(", device " + name + "\n"), std::string::npos) << planned.out;
}

TEST(DeviceChoiceTest, NoMatchNamesTheSelector) {
  expect_error(run_command(generate({"--device", "no such device"})), 1, {"'no such device'", "rondo devices"});
  expect_error(run_command(generate({"--device", "99"})), 1, {"'99'", "index"});
  expect_error(run_with({{"RONDO_DEVICE", "no such device"}}, generate({})), 1, {"'no such device'"});
}

TEST(DeviceChoiceTest, TwoMatchesNameBoth) {
  std::vector<std::string> manifests = find_manifests("lvp_icd");
  if (manifests.empty()) GTEST_SKIP() << "lavapipe's ICD manifest (lvp_icd*.json) is not installed";
  // The loader takes the same driver twice, under two manifests.
  const testing::TemporaryFolder folder;
  for (std::size_t i = 0, n = manifests.size(); i < n; ++i) {
    manifests.push_back(folder.write(std::to_string(i) + ".json", testing::read_whole_file(manifests[i])));
  }
  const Environment twice = with_drivers(joined(manifests));
  const json devices = listed_devices(twice);
  ASSERT_EQ(devices.size(), 2U);
  expect_error(run_with(twice, generate({"--device", "llvmpipe"})), 1,
               {"'llvmpipe'", "0 (llvmpipe", "1 (llvmpipe", "use the index"});
  testing::expect_done(run_with(twice, generate({"--device", "1"})));
}

TEST(DeviceChoiceTest, TwoDriversAreToldApart) {
  std::vector<std::string> manifests = find_manifests("lvp_icd");
  if (manifests.empty()) GTEST_SKIP() << "lavapipe's ICD manifest (lvp_icd*.json) is not installed";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::string swiftshader = (cache && *cache ? std::string(cache) : std::string(home ? home : "") + "/.cache") +
                                  "/rondo/swiftshader/vk_swiftshader_icd.json";
  if (!std::filesystem::exists(swiftshader))
    GTEST_SKIP() << "SwiftShader is not cached; tools/fetch_swiftshader.sh fetches it";
  const Environment both = with_drivers(joined(manifests) + ":" + swiftshader);
  ASSERT_EQ(listed_devices(both).size(), 2U);
  for (const char* name : {"swiftshader", "LLVMPIPE"}) {
    const CommandResult result = run_with(both, generate({"--device", name}));
    testing::expect_done(result);
    EXPECT_NE(result.err.find(name[0] == 's' ? "[SwiftShader" : "[llvmpipe"), std::string::npos) << result.err;
  }
  expect_error(run_with(both, generate({"--device", "e"})), 1, {"'e'", "(SwiftShader", "(llvmpipe"});
}

/// Commands that need Vulkan, for the environments in which it is missing.
const std::vector<Arguments>& commands_with_vulkan() {
  static const std::vector<Arguments> commands = {{"devices"}, generate({}), {"bench", "-m", RONDO_DEMO_MODEL}};
  return commands;
}

TEST(NoVulkanTest, NoLoader) {
  // A file that is no library hides the one behind it.
  const testing::TemporaryFolder folder;
  for (const char* name : {"libvulkan.so", "libvulkan.so.1"}) folder.write(name, "no library");
  for (const Arguments& arguments : commands_with_vulkan()) {
    const CommandResult result = run_with({{"LD_LIBRARY_PATH", folder.path("")}}, arguments);
    expect_error(result, 1, {"libvulkan.so.1", "install"});
    EXPECT_LT(result.peak_bytes, kSmallMemory);
  }
}

TEST(NoVulkanTest, NoDriver) {
  const testing::TemporaryFolder folder;
  for (const Arguments& arguments : commands_with_vulkan()) {
    const CommandResult result = run_with(with_drivers(folder.path("absent.json")), arguments);
    expect_error(result, 1, {"Vulkan", "install", "VK_ICD_FILENAMES"});
    EXPECT_LT(result.peak_bytes, kSmallMemory);
  }
  const CommandResult broken = run_with(with_drivers(folder.write("broken.json", "{")), {"devices"});
  expect_error(broken, 1, {"Vulkan"});
}

TEST(NoVulkanTest, JsonIsStillADocument) {
  const testing::TemporaryFolder folder;
  const CommandResult result = run_with(with_drivers(folder.path("absent.json")), {"devices", "--json"});
  EXPECT_EQ(result.exit_status, 1) << result.description();
  EXPECT_TRUE(result.out.empty() || testing::parse_output(result).at("devices").empty()) << result.out;
}

TEST(NoVulkanTest, NoSuitableDevice) {
  const std::vector<std::string> manifests = find_manifests("radeon_icd");
  if (manifests.empty())
    GTEST_SKIP() << "RADV's ICD manifest (radeon_icd*.json) is not installed; its null device is the unsuitable one";
  Environment null_device = with_drivers(joined(manifests));
  null_device.push_back({"RADV_FORCE_FAMILY", "navi21"});
  const json devices = listed_devices(null_device);
  if (devices.empty() || devices[0].at("usable")) GTEST_SKIP() << "this RADV has no null device";
  const std::string name = devices[0].at("name"), reason = devices[0].at("reason");
  EXPECT_NE(reason.find("memory"), std::string::npos) << reason;
  for (const Arguments& more : {Arguments{}, Arguments{"--device", "0"}}) {
    expect_error(run_with(null_device, generate(more)), 1, {name, reason});
  }
}

/// A device that pretends to be less says so.
TEST(ProfileTest, TheDevicePretends) {
  for (const std::string profile : {"baseline", "baseline-small"}) {
    const CommandResult result = run_command(generate({"--as", profile}));
    testing::expect_done(result);
    EXPECT_NE(result.err.find(" as " + profile + ":"), std::string::npos) << result.err;
  }
}

TEST(ProfileTest, WhatDoesNotFitIsRefusedByName) {
  const CommandResult result =
      run_command({"bench", "-m", RONDO_DEMO_MODEL, "-p", "0", "-n", "1", "-d", "65536", "--as", "baseline-small"});
  expect_error(result, 1, {"context of 65539 tokens", "as baseline-small", "1048576", "the keys of one head"});
}

TEST(ValidationTest, NothingIsFound) {
  CommandInput input;
  input.arguments = {"generate", "-m", RONDO_DEMO_MODEL, "-p", "And it came to pass", "-n", "24", "--validate"};
  input.environment = {{"VK_LAYER_ENABLES", "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT"}};
  const CommandResult result = run_command(input);
  if (result.err.find("VK_LAYER_KHRONOS_validation is not installed") != std::string::npos)
    GTEST_SKIP() << "the validation layers are not installed";
  testing::expect_done(result);
  EXPECT_EQ(result.err.find("validation"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace rondo::devices_test
