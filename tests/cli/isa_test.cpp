// rondo isa: on RADV's null device, which compiles for a Navi 21 without one, and on drivers that tell nothing.
#include <string>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::isa_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;

CommandResult isa(const Arguments& more) {
  CommandInput input;
  input.arguments = {"isa"};
  input.arguments.insert(input.arguments.end(), more.begin(), more.end());
  input.environment = {{"VK_DRIVER_FILES", testing::radv_manifest()}, {"VK_ICD_FILENAMES", testing::radv_manifest()}, {"RADV_FORCE_FAMILY", "NAVI21"}, {"MESA_SHADER_CACHE_DISABLE", "true"}};
  return testing::run_command(input);
}

class IsaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::radv_manifest().empty()) GTEST_SKIP() << "RADV's ICD manifest (radeon_icd*.json) is not installed";
    if (isa({"--device-list"}).out.find("NAVI21") == std::string::npos) GTEST_SKIP() << "this RADV has no null device";
  }
};

TEST_F(IsaTest, EveryFieldOfEveryKernel) {
  const CommandResult result = isa({"linear_glu", "--json"});
  testing::expect_done(result);
  const json document = testing::parse_output(result);
  EXPECT_NE(document.at("device").at("name").get<std::string>().find("NAVI21"), std::string::npos);
  bool subgroup_q8 = false, tiled_glu = false;
  for (const json& row : document.at("kernels")) {
    const std::string label = row.at("label");
    EXPECT_NE(label.find("linear_glu"), std::string::npos);
    EXPECT_EQ(label.find("wide"), std::string::npos) << "a GPU does not choose the kernels for CPUs";
    for (const char* field : {"registers", "occupancy", "instructions", "cost", "subgroup_size"}) EXPECT_GT(row.at(field).get<double>(), 0) << field << " of " << row;
    for (const char* field : {"spills", "scratch_bytes"}) EXPECT_EQ(row.at(field), 0) << field << " of " << row;
    EXPECT_GT(row.at("per_multiply_add").get<double>(), label.find(" dot") == label.npos ? 1 : 0.25) << row;
    EXPECT_LT(row.at("per_multiply_add").get<double>(), 20) << row;
    subgroup_q8 = subgroup_q8 || (label == "linear_glu subgroup q8_0" && row.at("specialization").at("kWeightType") == 2 && row.at("kernel") == "linear_subgroup" && row.at("subgroup_size") == row.at("specialization").at("kLanes"));
    tiled_glu = tiled_glu || (label == "linear_glu tiled q4_0" && row.at("specialization").at("kGlu") == 1);
  }
  EXPECT_TRUE(subgroup_q8);
  EXPECT_TRUE(tiled_glu);
}

TEST_F(IsaTest, ATableAndItsLastLine) {
  const CommandResult result = isa({"softmax"});
  testing::expect_done(result);
  EXPECT_NE(result.out.find("| softmax "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("kWidth=128"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" 0 failed\n"), std::string::npos) << result.out;
}

TEST_F(IsaTest, ABudgetIsHeldAndNamesTheLine) {
  const std::string version = [] {
    const std::string driver = testing::parse_output(isa({"softmax", "--json"})).at("device").at("driver");
    const std::size_t at = driver.find("Mesa ") + 5;
    return driver.substr(at, driver.find_first_not_of("0123456789.", at) - at);
  }();
  const testing::TemporaryFolder folder;
  const std::string kept = folder.write("kept.txt", "mesa " + version + "\nnavi21 256 1 0 0 - *\n");
  const std::string exceeded = folder.write("exceeded.txt", "mesa " + version + "\nnavi21 256 1 0 0 - *\nnavi21 2 1 0 0 - softmax\n");
  const std::string other = folder.write("other.txt", "mesa 1.2.3\nnavi21 2 1 0 0 - softmax\n");
  const std::string another_chip = folder.write("chip.txt", "mesa " + version + "\nnavi31 2 1 0 0 - softmax\n");
  testing::expect_done(isa({"softmax", "--budget", kept}));
  const CommandResult result = isa({"softmax", "--budget", exceeded});
  EXPECT_EQ(result.exit_status, 1) << result.description();
  EXPECT_NE(result.out.find("registers, at most 2 allowed (" + exceeded + ", line 3)"), std::string::npos) << result.out;
  const CommandResult not_judged = isa({"softmax", "--budget", other});
  EXPECT_EQ(not_judged.exit_status, 0) << not_judged.description();
  EXPECT_NE(not_judged.err.find("nothing is judged"), std::string::npos) << not_judged.err;
  const CommandResult no_line = isa({"softmax", "--budget", another_chip});
  EXPECT_EQ(no_line.exit_status, 1) << no_line.description();
  EXPECT_NE(no_line.out.find("no line of the budget is for it"), std::string::npos) << no_line.out;
}

TEST_F(IsaTest, AKernelThatTakesTooLongIsNamedAndTheRestGoesOn) {
  const CommandResult late = isa({"linear_glu tiled", "--limit", "0.001"});
  EXPECT_EQ(late.exit_status, 1) << late.description();
  EXPECT_NE(late.out.find("FAILED linear_glu tiled q8_0 ("), std::string::npos) << late.out;
  EXPECT_NE(late.out.find("FAILED linear_glu tiled q4_0 ("), std::string::npos) << late.out;
  EXPECT_NE(late.out.find("): took longer than 0.001 s"), std::string::npos) << late.out;
}

TEST_F(IsaTest, WrongInput) {
  const testing::TemporaryFolder folder;
  expect_error(isa({"no such kernel"}), 2, {"no such kernel"});
  expect_error(isa({"--budget", folder.path("absent.txt")}), 1, {"absent.txt"});
  expect_error(isa({"--budget", folder.write("wrong.txt", "mesa 1\nnavi21 x\n")}), 1, {"wrong.txt, line 2", "'x'"});
  expect_error(isa({"--limit", "0"}), 2, {"--limit"});
}

TEST(IsaWithoutStatisticsTest, ADeviceThatTellsNothingIsRefused) {
  expect_error(testing::run_device_command({"isa"}), 1, {"VK_KHR_pipeline_executable_properties"});
  const CommandResult list = testing::run_device_command({"isa", "--device-list"});
  testing::expect_done(list);
  EXPECT_NE(list.out.find("does not tell what it compiles"), std::string::npos) << list.out;
}

}  // namespace
}  // namespace rondo::isa_test
