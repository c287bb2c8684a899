// rondo bench --kernels: rows, filters and refusals. How fast a kernel is depends on the device and is no test's business.
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "graph/operator.h"
#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::kernel_bench_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandResult;
using testing::expect_error;

json measure(const std::string& filter) {
  const CommandResult result = testing::run_device_command({"bench", "--kernels", filter, "-r", "1", "-o", "json"});
  testing::expect_done(result);
  return testing::parse_output(result);
}

std::string name_of(const json& row) { return row.at("op").get<std::string>() + "/" + row.at("kernel").get<std::string>(); }

std::set<std::string> names_of(const json& rows) {
  std::set<std::string> names;
  for (const json& row : rows) names.insert(name_of(row));
  return names;
}

void expect_sound(const json& document) {
  for (const char* field : {"copy_gbps", "fma_gflops", "dispatch_latency_us"}) EXPECT_GT(document.at(field).get<double>(), 0) << field;
  EXPECT_TRUE(document.at("device").at("name").is_string());
  for (const json& row : document.at("kernels")) {
    EXPECT_GT(row.at("us").get<double>(), 0) << row;
    EXPECT_GT(row.at("gbps").get<double>(), 0) << row;
    EXPECT_GE(row.at("dispatches").get<int>(), 1) << row;
    EXPECT_FALSE(row.at("shape").get<std::string>().empty()) << row;
    EXPECT_NEAR(row.at("copy_share").get<double>(), row.at("gbps").get<double>() / document.at("copy_gbps").get<double>(), 1e-9) << row;
    EXPECT_NEAR(row.at("fma_share").get<double>(), row.at("gflops").get<double>() / document.at("fma_gflops").get<double>(), 1e-9) << row;
  }
  for (const json& row : document.at("left_out")) EXPECT_FALSE(row.at("reason").get<std::string>().empty()) << row;
}

class KernelBenchTest : public ::testing::TestWithParam<const char*> {};

/// Each operator by itself, so that a kernel that hangs or breaks is known by its test's name.
TEST_P(KernelBenchTest, MeasuresEveryKernelOfTheOperator) {
  const std::string op = GetParam();
  const json document = measure(op + "/");
  expect_sound(document);
  std::set<std::string> found = names_of(document.at("kernels"));
  found.merge(names_of(document.at("left_out")));
  for (const char* kernel : graph::operator_of(*graph::find_operator(op)).kernels) {
    EXPECT_TRUE(found.contains(op + "/" + kernel)) << op << "/" << kernel << " is neither measured nor left out";
  }
}

std::vector<const char*> operators() {
  std::vector<const char*> names;
  for (std::size_t i = 0; i < graph::kOpCount; ++i) names.push_back(graph::operator_of(static_cast<graph::Op>(i)).name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Operators, KernelBenchTest, ::testing::ValuesIn(operators()), [](const auto& test) { return std::string(test.param); });

TEST(KernelBenchFilterTest, IsAPartOfOperatorAndKernel) {
  EXPECT_EQ(names_of(measure("argmax/base").at("kernels")), std::set<std::string>{"argmax/baseline"});
  EXPECT_EQ(names_of(measure("step").at("kernels")), (std::set<std::string>{"step_begin/baseline", "step_end/baseline"}));
  EXPECT_EQ(names_of(measure("max/").at("kernels")), std::set<std::string>{"max/baseline"}) << "neither softmax nor argmax";
}

TEST(KernelBenchFilterTest, MatchingNothingNamesTheOperators) {
  expect_error(testing::run_command({"bench", "--kernels", "fastest"}), 2, {"--kernels fastest", "step_begin", "linear_glu", "step_end"});
}

TEST(KernelBenchFormTest, MarkdownHoldsTheDeviceAndARowForEachShape) {
  const CommandResult result = testing::run_device_command({"bench", "--kernels", "add/", "-r", "1"});
  testing::expect_done(result);
  for (const char* part : {"copies, GB/s", "multiply-adds, GFLOP/s", "dispatch behind a barrier, us", "| add/baseline ", "135m: 1 row of 576", "135m: 512 rows of 576"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << " in\n" << result.out;
  }
}

TEST(KernelBenchFormTest, WhatADeviceCantRunIsListedWithTheReason) {
  const CommandResult result = testing::run_device_command({"bench", "--kernels", "linear/wide", "-r", "1", "-o", "json", "--as", "baseline-small"});
  testing::expect_done(result);
  const json document = testing::parse_output(result);
  expect_sound(document);
  const std::string all = document.at("left_out").dump();
  EXPECT_NE(all.find("subgroups of one size"), std::string::npos) << all;  // linear/wide
  EXPECT_NE(all.find("49152"), std::string::npos) << all;                  // the vocabulary's matrix in 1 MiB
}

struct Refused {
  const char* name;
  Arguments more;
  const char* part;
};
void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class KernelBenchRefusalTest : public ::testing::TestWithParam<Refused> {};

TEST_P(KernelBenchRefusalTest, IsOneLineThatNamesTheFlag) {
  Arguments arguments = {"bench", "--kernels", "add"};
  arguments.insert(arguments.end(), GetParam().more.begin(), GetParam().more.end());
  expect_error(testing::run_command(arguments), 2, {GetParam().part});
}

INSTANTIATE_TEST_SUITE_P(Flags, KernelBenchRefusalTest,
                         ::testing::Values(Refused{"Model", {"-m", "a.gguf"}, "--model"}, Refused{"Random", {"--random", "15m"}, "--random"}, Refused{"Prompts", {"-p", "8"}, "-p"},
                                           Refused{"Generated", {"-n", "8"}, "-n"}, Refused{"Depths", {"-d", "8"}, "-d"}, Refused{"Burst", {"--burst", "4"}, "--burst"},
                                           Refused{"Timings", {"--timings"}, "--timings"}, Refused{"Kernel", {"--kernel", "add=baseline"}, "--kernel can't"},
                                           Refused{"NoFusion", {"--no-fusion"}, "--no-fusion"}, Refused{"KvType", {"--kv-type", "f32"}, "--kv-type"},
                                           Refused{"Csv", {"-o", "csv"}, "-o csv"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace rondo::kernel_bench_test
