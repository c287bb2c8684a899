// Every device profile of the command: that its file is one, and that what is chosen for the device keeps to its limits, for
// models of sizes that no test machine has to hold.
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "models/json.h"
#include "models/memory_plan.h"
#include "tests/support/test_data.h"
#include "tools/rondo/random_model.h"

namespace rondo::profiles_test {
namespace {

std::filesystem::path folder() { return std::filesystem::path(RONDO_TESTS_DATA_DIR) / "../../tools/rondo/profiles"; }

std::vector<std::string> profile_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

class ProfilesTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    text_ = testing::read_whole_file(folder() / (GetParam() + ".json"));
    Result<DeviceProfile> profile = DeviceProfile::parse(text_, GetParam());
    ASSERT_TRUE(profile.ok()) << profile.status().message();
    caps_ = profile->internal();
  }
  std::string text_;
  runtime::DeviceCaps caps_;
};

TEST_P(ProfilesTest, HasASourceForEveryFigure) {
  EXPECT_EQ(caps_.name, GetParam());
  const Result<nlohmann::json> document = models::parse_json(text_, GetParam());
  ASSERT_TRUE(document.ok());
  if (GetParam().starts_with("baseline")) return;  // the least that kernels are written for, and a smaller one for tests
  ASSERT_TRUE(document->contains("sources"));
  const nlohmann::json& sources = document->at("sources");
  for (auto field = document->begin(); field != document->end(); ++field) {
    if (field.key() == "name" || field.key() == "sources") continue;
    EXPECT_TRUE(sources.contains(field.key()) || sources.contains("*")) << field.key();
  }
}

void expect_within_limits(const runtime::Program& program, const runtime::DeviceCaps& caps) {
  for (const runtime::Dispatch& dispatch : program.dispatches) {
    const runtime::Kernel& kernel = program.kernels[dispatch.kernel];
    SCOPED_TRACE(dispatch.label);
    EXPECT_LE(kernel.constants[0], caps.max_invocations);
    EXPECT_LE(dispatch.bindings.size(), caps.max_storage_buffers);
    EXPECT_LE(dispatch.push.size(), caps.max_push_bytes);
    for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_LE(dispatch.grid[axis], caps.max_grid[axis]);
    for (const runtime::Binding& binding : dispatch.bindings) {
      EXPECT_LE(binding.range.size_bytes, caps.max_storage_range_bytes);
      EXPECT_EQ(binding.range.offset_bytes % caps.storage_offset_alignment, 0U);
    }
    const bool for_cpus = dispatch.label.find("wide") != std::string::npos;
    EXPECT_TRUE(!for_cpus || caps.type == runtime::DeviceType::kCpu);
  }
}

/// A Llama of 8 billion parameters, whose vocabulary alone has 558 MB.
TEST_P(ProfilesTest, ALargeModelKeepsToItsLimits) {
  runtime::DeviceCaps caps = caps_;
  caps.memory_budget_bytes = 0;
  const auto checkpoint = models::open_checkpoint(tools::random_model(GetParam() == "baseline-small" ? "15m" : "8b", "q8_0"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const models::Network& network = (*checkpoint)->network;
  const Result<models::WeightPlan> weights = models::plan_weights(**checkpoint, caps);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  for (const std::vector<graph::StoragePiece>& pieces : weights->pieces) {
    std::uint64_t total_bytes = 0;
    for (const graph::StoragePiece& piece : pieces) {
      EXPECT_LE(piece.place.size_bytes, caps.max_storage_range_bytes);
      total_bytes += piece.place.size_bytes;
    }
    EXPECT_EQ(pieces.size() > 1, total_bytes > caps.max_storage_range_bytes) << total_bytes;
  }
  constexpr std::uint32_t kContext = 4096;
  const std::uint32_t n_ctx = std::min(kContext, models::default_context(network));
  const std::vector<models::StepKind> kinds = models::step_kinds(network, caps, n_ctx);
  const Result<models::SessionPlan> plan = models::plan_session(network, *weights, caps, {}, n_ctx, kinds);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->steps.size(), kinds.size());
  for (const models::PlannedStep& step : plan->steps) expect_within_limits(step.lowered.program, caps);
}

INSTANTIATE_TEST_SUITE_P(All, ProfilesTest, ::testing::ValuesIn(profile_names()), [](const auto& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(ProfileSourcesTest, WhatIsWrongIsNamed) {
  const std::string baseline = testing::read_whole_file(folder() / "baseline.json");
  const auto message = [&](const std::string& sources) {
    std::string text = baseline;
    return std::string(DeviceProfile::parse(text.insert(text.find('{') + 1, "\"sources\": " + sources + ","), "p.json").status().message());
  };
  EXPECT_EQ(message("{\"*\": \"somewhere\", \"max_grid\": \"elsewhere\"}"), "");
  EXPECT_EQ(message("7"), "p.json: 'sources' must be an object of texts");
  EXPECT_EQ(message("{\"max_grid\": 7}"), "p.json: 'sources' has no text for 'max_grid'");
  EXPECT_EQ(message("{\"max_gird\": \"x\"}"), "p.json: 'sources' has a text for 'max_gird', which the profile does not have");
}

}  // namespace
}  // namespace rondo::profiles_test
