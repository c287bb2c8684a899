// --self-test and --quarantine: kernels that a file puts away are not used, on this device and driver only.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "tests/support/command_runner.h"
#include "tests/support/device_environment.h"
#include "tests/support/test_data.h"
#include "tools/rondo/quarantine_file.h"

namespace rondo::tests::quarantine_file_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;

const std::string kModel = RONDO_DEMO_MODEL;

class QuarantineFileTest : public ::testing::Test {
 protected:
  static std::string hash() { return runtime::embedded_spirv_key(); }
  std::string key() const { return test_device().pipeline_cache_key(); }

  std::string file_with(const std::string& device_key, const json& kernels) const {
    return folder_.write("quarantine.json", json{{"rondo_quarantine", 1}, {"devices", {{device_key, {{"device", "x"}, {"driver", "y"}, {"rondo", hash()}, {"kernels", kernels}}}}}}.dump());
  }

  CommandResult run(const Arguments& arguments) const {
    CommandInput input;
    input.arguments = arguments;
    input.environment = {{"XDG_CACHE_HOME", folder_.path("cache")}};
    return testing::run_command(input);
  }
  CommandResult generate(const Arguments& more) const {
    Arguments all = {"generate", "-m", kModel, "-p", "And", "-n", "4", "--temp", "0", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  /// Without predicted times, for which each process measures the device.
  CommandResult graph(const Arguments& more) const {
    Arguments all = {"graph", "-m", kModel, "--ctx", "64"};
    all.insert(all.end(), more.begin(), more.end());
    CommandResult ran = run(all);
    for (std::size_t at = ran.out.find(" us"); at != std::string::npos; at = ran.out.find(" us", at + 1)) {
      const std::size_t first = ran.out.find_last_not_of("0123456789.", at - 1) + 1;
      ran.out.erase(first, at - first);
      at = first;
    }
    return ran;
  }

  testing::TemporaryFolder folder_;
};

/// The same with commands that tests start.
class QuarantineCommandTest : public QuarantineFileTest {
 protected:
  void SetUp() override {
    const char* launcher = std::getenv("RONDO_TEST_LAUNCHER");
    if (launcher && *launcher) GTEST_SKIP() << "this driver is reached through a launcher, which commands that tests start do not go through";
  }
};

TEST_F(QuarantineCommandTest, KernelsInItAreNotUsed) {
  const std::string file = file_with(key(), {"rope_kv_write f16"});
  const CommandResult without = graph({}), with = graph({"--quarantine", file});
  testing::expect_done(without);
  testing::expect_done(with);
  EXPECT_NE(without.out.find("rope_kv_write"), std::string::npos);
  EXPECT_EQ(with.out.find("rope_kv_write"), std::string::npos) << with.out;
  EXPECT_NE(with.out.find("kv_write"), std::string::npos);
  const CommandResult plain = generate({}), apart = generate({"--quarantine", file});
  testing::expect_done(plain);
  testing::expect_done(apart);
  EXPECT_EQ(json::parse(plain.out)["tokens"], json::parse(apart.out)["tokens"]);
  // The file of the same name in the cache directory counts unless it is told not to.
  const std::string beside = [&] {
    std::filesystem::create_directories(folder_.path("cache/rondo"));
    return folder_.write("cache/rondo/quarantine.json", testing::read_whole_file(file));
  }();
  EXPECT_FALSE(beside.empty());
  EXPECT_EQ(graph({}).out, with.out);
  EXPECT_EQ(graph({"--quarantine", "none"}).out, without.out);
}

TEST_F(QuarantineCommandTest, OfAnotherDeviceOrDriverMeansNothingHere) {
  const CommandResult without = graph({}), with = graph({"--quarantine", file_with("0123456789abcdef", {"rope_kv_write f16"})});
  testing::expect_done(with);
  EXPECT_EQ(with.out, without.out);
}

/// Another version of Rondo may have mended the kernel, or not know it.
TEST_F(QuarantineCommandTest, OfOtherKernelsMeansNothingHere) {
  const std::string file = folder_.write("q.json", json{{"rondo_quarantine", 1}, {"devices", {{key(), {{"rondo", "0"}, {"kernels", {"a kernel of old"}}}}}}}.dump());
  const CommandResult with = graph({"--quarantine", file});
  testing::expect_done(with);
  EXPECT_EQ(with.out, graph({}).out);
  const std::string kernel = "rope_kv_write f16";
  tools::QuarantineFile(test_device(), file, "").add({&kernel, 1});
  EXPECT_EQ(*tools::QuarantineFile(test_device(), file, "").load(false), std::vector<std::string>{kernel});
}

TEST_F(QuarantineFileTest, ProcessesThatAddAtATimeLoseNothing) {
  const auto add_some = [&](const std::string& type) {
    for (int i = 0; i < 20; ++i) {
      const std::string kernel = fmt::format("linear tiled {}{}", type, i);
      tools::QuarantineFile(test_device(), folder_.path("q.json"), "").add({&kernel, 1});
    }
  };
  std::thread first(add_some, "a"), second(add_some, "b");
  first.join();
  second.join();
  EXPECT_EQ(tools::QuarantineFile(test_device(), folder_.path("q.json"), "").load(false)->size(), 40u);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"q.json"});
}

TEST_F(QuarantineFileTest, AFileThatChangedUnderUsIsNotTouched) {
  for (const char* text : {"{", R"({"rondo_quarantine": 2, "devices": {}})", R"({"rondo_quarantine": 1, "devices": 3})"}) {
    const std::string file = folder_.write("q.json", text), kernel = "rms_norm";
    ::testing::internal::CaptureStderr();
    tools::QuarantineFile(test_device(), file, "").add({&kernel, 1});
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("rondo: warn: quarantine: "), std::string::npos);
    EXPECT_EQ(testing::read_whole_file(file), text);
  }
  const std::string strange = R"({"rondo_quarantine": 1, "devices": {")" + key() + R"(": 3}})", kernel = "rms_norm";
  tools::QuarantineFile(test_device(), folder_.write("q.json", strange), "").add({&kernel, 1});
  EXPECT_EQ(tools::QuarantineFile(test_device(), folder_.path("q.json"), "").load(false)->size(), 1u);
}

TEST_F(QuarantineCommandTest, IsMadeWhereAKernelIsWrong) {
  const tools::QuarantineFile file(test_device(), folder_.path("new/q.json"), "");
  EXPECT_FALSE(file.load(false).ok());
  EXPECT_TRUE(file.load(true).ok());
  for (const std::string kernel : {"rope_kv_write f16", "linear wide q8_0", "rope_kv_write f16"}) file.add({&kernel, 1});
  const Result<std::vector<std::string>> kernels = file.load(false);
  ASSERT_TRUE(kernels.ok()) << kernels.status().message();
  EXPECT_EQ(*kernels, (std::vector<std::string>{"rope_kv_write f16", "linear wide q8_0"}));
  const json document = json::parse(testing::read_whole_file(folder_.path("new/q.json")));
  EXPECT_EQ(document["devices"][key()]["device"], test_device().info().name);
  EXPECT_EQ(document["devices"][key()]["driver"], test_device().info().driver);
  testing::expect_done(generate({"--quarantine", folder_.path("new/q.json")}));
}

TEST_F(QuarantineFileTest, StandsBesideTheCacheThatWasNamed) {
  const tools::QuarantineFile file(test_device(), "", folder_.path("mine/pipelines.bin"));
  const std::string kernel = "rope_kv_write f16";
  file.add({&kernel, 1});
  EXPECT_NE(testing::read_whole_file(folder_.path("mine/quarantine.json")).find("rope_kv_write"), std::string::npos);
}

TEST_F(QuarantineCommandTest, ASoundDeviceNeedsNone) {
  const CommandResult tested = generate({"--self-test", "--quarantine", folder_.path("q.json"), "--log-level", "info"});
  testing::expect_done(tested);
  EXPECT_NE(tested.err.find("self-test: "), std::string::npos) << tested.err;
  EXPECT_NE(tested.err.find("kernels are right"), std::string::npos) << tested.err;
  EXPECT_NE(tested.err.find(" 0 in quarantine"), std::string::npos) << tested.err;
  testing::expect_done(generate({"--quarantine", folder_.path("q.json")}));  // made, and empty
  EXPECT_TRUE(json::parse(testing::read_whole_file(folder_.path("q.json")))["devices"][key()]["kernels"].empty());
  testing::expect_done(generate({"--self-test"}));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("cache/rondo/quarantine.json"))) << "nobody named it, and there is nothing to say";
  EXPECT_EQ(json::parse(tested.out)["tokens"], json::parse(generate({}).out)["tokens"]);
}

TEST_F(QuarantineCommandTest, WhatCantBeReadIsAnError) {
  const auto expect = [&](const std::string& text, std::initializer_list<std::string> parts) {
    const std::string file = folder_.write("bad.json", text);
    std::vector<std::string> all = {"bad.json"};
    all.insert(all.end(), parts.begin(), parts.end());
    testing::expect_error(generate({"--quarantine", file}), 1, all);
  };
  expect("", {});
  expect("[1]", {"is array, expected an object"});
  expect("{}", {"rondo_quarantine"});
  expect(R"({"rondo_quarantine": 2, "devices": {}})", {"'rondo_quarantine' is 2"});
  expect(R"({"rondo_quarantine": 1})", {"devices"});
  expect(R"({"rondo_quarantine": 1, "devices": {")" + key() + R"(": 3}})", {key()});
  expect(R"({"rondo_quarantine": 1, "devices": {")" + key() + R"(": {}}})", {key(), "rondo"});
  expect(R"({"rondo_quarantine": 1, "devices": {")" + key() + R"(": {"rondo": ")" + hash() + R"("}}})", {key(), "kernels"});
  expect(R"({"rondo_quarantine": 1, "devices": {")" + key() + R"(": {"rondo": ")" + hash() + R"(", "kernels": [1]}}})", {key(), "kernels"});
  testing::expect_error(generate({"--quarantine", file_with(key(), {"lineal tiled"})}), 1, {"quarantine", "lineal tiled", "quarantine.json", "--quarantine none"});
  testing::expect_error(generate({"--quarantine", file_with(key(), {"step_end"})}), 1, {"'step_end' is in quarantine", "quarantine.json", "--quarantine none"});
  testing::expect_error(generate({"--quarantine", folder_.path("none.json")}), 1, {"--quarantine", "none.json", "--self-test"});
  testing::expect_error(generate({"--quarantine", ""}), 2, {"--quarantine"});
}

}  // namespace
}  // namespace rondo::tests::quarantine_file_test
