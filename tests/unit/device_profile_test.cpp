// Device profiles: what is read, what is refused, and what a device that pretends has left.
#include <string>

#include <gtest/gtest.h>

#include <rondo/device.h>

#include "runtime/device_plan.h"
#include "tests/support/test_data.h"

namespace rondo::runtime::device_profile_test {
namespace {

std::string profile_text(const std::string& name) {
  return testing::read_whole_file(testing::tests_data_path("../../tools/rondo/profiles/" + name + ".json"));
}

/// A device better than the baseline in everything.
DeviceCaps generous() {
  DeviceCaps caps;
  caps.name = "generous";
  caps.driver = "driver 1";
  caps.type = DeviceType::kCpu;
  caps.vendor_id = 7;
  caps.max_storage_range_bytes = 1u << 31;
  caps.max_allocation_bytes = std::uint64_t{4} << 30;
  caps.memory_budget_bytes = std::uint64_t{8} << 30;
  caps.storage_offset_alignment = 16;
  caps.non_coherent_atom_bytes = 64;
  caps.max_storage_buffers = 64;
  caps.max_invocations = 1024;
  caps.max_shared_bytes = 65536;
  caps.max_push_bytes = 256;
  caps.max_grid = {1u << 31, 70000, 65535};
  caps.min_subgroup_size = caps.max_subgroup_size = 8;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 8;
  caps.subgroup_shuffle = caps.subgroup_arithmetic = true;
  caps.storage16 = true;
  caps.timestamp_bits = 36;
  caps.bytes_per_s = 3e9;
  return caps;
}

TEST(ClampCapsTest, TheBaselineLeavesTheBaseline) {
  const Result<DeviceProfile> profile = DeviceProfile::parse(profile_text("baseline"), "baseline");
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile->name(), "baseline");
  const DeviceCaps caps = clamp_caps(generous(), profile->internal());
  EXPECT_EQ(caps.name, "generous as baseline");
  EXPECT_EQ(caps.type, DeviceType::kOther);
  EXPECT_EQ(caps.max_storage_range_bytes, 128u << 20);
  EXPECT_EQ(caps.max_allocation_bytes, 1u << 30);
  EXPECT_EQ(caps.storage_offset_alignment, 256u);
  EXPECT_EQ(caps.non_coherent_atom_bytes, 256u);
  EXPECT_EQ(caps.max_storage_buffers, 8u);
  EXPECT_EQ(caps.max_invocations, 128u);
  EXPECT_EQ(caps.max_shared_bytes, 16384u);
  EXPECT_EQ(caps.max_push_bytes, 128u);
  EXPECT_EQ(caps.max_grid, (std::array<std::uint32_t, 3>{65535, 65535, 65535}));
  EXPECT_FALSE(caps.subgroup_shuffle);
  EXPECT_FALSE(caps.storage16);
  EXPECT_EQ(caps.timestamp_bits, 0u);
  EXPECT_LE(caps.min_subgroup_size, 8u);
  EXPECT_GE(caps.max_subgroup_size, 8u);
  EXPECT_EQ(find_low_limit(caps), "");
}

TEST(ClampCapsTest, TheSmallOneDiffersInSizesOnly) {
  const Result<DeviceProfile> small = DeviceProfile::parse(profile_text("baseline-small"), "small");
  ASSERT_TRUE(small.ok()) << small.status().message();
  const DeviceCaps caps = clamp_caps(generous(), small->internal());
  EXPECT_EQ(caps.max_storage_range_bytes, 1u << 20);
  EXPECT_EQ(caps.max_allocation_bytes, 8u << 20);
  EXPECT_EQ(caps.max_invocations, 128u);
  EXPECT_EQ(find_low_limit(caps), "");
}

TEST(ClampCapsTest, NothingIsWonByPretending) {
  DeviceCaps profile = generous();
  profile.name = "better";
  DeviceCaps weak;  // the baseline, by its defaults
  weak.name = "weak";
  weak.memory_budget_bytes = 1u << 30;
  weak.max_loop_iterations = 65535;
  const DeviceCaps caps = clamp_caps(weak, profile);
  EXPECT_EQ(caps.max_storage_range_bytes, weak.max_storage_range_bytes);
  EXPECT_EQ(caps.max_allocation_bytes, weak.max_allocation_bytes);
  EXPECT_EQ(caps.memory_budget_bytes, weak.memory_budget_bytes);
  EXPECT_EQ(caps.storage_offset_alignment, weak.storage_offset_alignment);
  EXPECT_EQ(caps.max_storage_buffers, weak.max_storage_buffers);
  EXPECT_EQ(caps.max_invocations, weak.max_invocations);
  EXPECT_EQ(caps.max_shared_bytes, weak.max_shared_bytes);
  EXPECT_EQ(caps.max_push_bytes, weak.max_push_bytes);
  EXPECT_EQ(caps.max_grid, weak.max_grid);
  EXPECT_EQ(caps.max_loop_iterations, 65535u) << "no limit must not lift one";
  EXPECT_FALSE(caps.subgroup_shuffle);
  EXPECT_FALSE(caps.storage16);
  EXPECT_EQ(caps.type, DeviceType::kCpu) << "but the type is the profile's";
}

TEST(ClampCapsTest, SubgroupsHaveASizeThatTheDeviceHas) {
  DeviceCaps rdna = generous();
  rdna.min_subgroup_size = rdna.min_required_subgroup_size = 32;
  rdna.max_subgroup_size = rdna.max_required_subgroup_size = 64;
  const DeviceCaps eight = clamp_caps(generous(), rdna);
  EXPECT_EQ(eight.min_required_subgroup_size, 8u);
  EXPECT_EQ(eight.max_required_subgroup_size, 8u);
  EXPECT_EQ(eight.max_subgroup_size, 64u);
  DeviceCaps wide = generous();
  wide.min_required_subgroup_size = 16, wide.max_required_subgroup_size = 128;
  EXPECT_EQ(clamp_caps(wide, rdna).min_required_subgroup_size, 32u);
  EXPECT_EQ(clamp_caps(wide, rdna).max_required_subgroup_size, 64u);
  rdna.min_required_subgroup_size = rdna.max_required_subgroup_size = 0;
  EXPECT_EQ(clamp_caps(wide, rdna).max_required_subgroup_size, 0u) << "what the profile can't know stays unknown";
}

TEST(ClampCapsTest, ZeroIsNoNumber) {
  DeviceCaps caps = generous(), profile = generous();
  profile.max_loop_iterations = 1000;
  profile.memory_budget_bytes = 0;
  const DeviceCaps both = clamp_caps(caps, profile);
  EXPECT_EQ(both.max_loop_iterations, 1000u);
  EXPECT_EQ(both.memory_budget_bytes, caps.memory_budget_bytes);
}

TEST(ClampCapsTest, WhoDoesTheWorkIsStillPredicted) {
  DeviceCaps profile = generous();
  profile.bytes_per_s = 1e12;
  profile.driver = "another";
  profile.vendor_id = 8;
  const DeviceCaps caps = clamp_caps(generous(), profile);
  EXPECT_EQ(caps.bytes_per_s, 3e9);
  EXPECT_EQ(caps.driver, "driver 1") << "workarounds are for the driver that is there";
  EXPECT_EQ(caps.vendor_id, 7u);
}

/// They are of f16, so that both must be there.
TEST(DeviceProfileTest, DotProductsOfHalvesAreReadAndClamped) {
  std::string text = profile_text("baseline");
  text.insert(text.find('[', text.find("\"features\"")) + 1, "\"half_dot\"" + std::string(text[text.find('[', text.find("\"features\"")) + 1] == ']' ? "" : ", "));
  const Result<DeviceProfile> profile = DeviceProfile::parse(text, "p");
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_TRUE(profile->internal().half_dot && profile->internal().float16);
  DeviceCaps device = generous();
  device.float16 = true;
  EXPECT_FALSE(clamp_caps(device, profile->internal()).half_dot);
  device.half_dot = true;
  EXPECT_TRUE(clamp_caps(device, profile->internal()).half_dot);
  EXPECT_FALSE(clamp_caps(device, DeviceProfile::parse(profile_text("baseline"), "p")->internal()).half_dot);
  device.float16 = false;
  EXPECT_FALSE(clamp_caps(device, profile->internal()).half_dot);
}

TEST(DeviceProfileTest, MatricesAreReadOrRefusedAndClamped) {
  const auto parse = [](const std::string& matrices) {
    std::string text = profile_text("baseline");
    text.insert(text.rfind('}'), ", \"matrices\": " + matrices);
    text.insert(text.find('[', text.find("\"features\"")) + 1, "\"float16\"" + std::string(text[text.find('[', text.find("\"features\"")) + 1] == ']' ? "" : ", "));
    return DeviceProfile::parse(text, "p");
  };
  const Result<DeviceProfile> profile = parse(R"(["16x16x16", "16x8x32"])");
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile->internal().matrices, (std::vector<MatrixShape>{{16, 16, 16}, {16, 8, 32}}));
  for (const char* wrong : {R"(["16x16"])", R"(["16x16x16x"])", R"(["16x12x16"])", R"(["16x16x512"])", R"(["x16x16"])", R"([""])", "[16]", R"(["-16x16x16"])", "3"}) {
    const Result<DeviceProfile> refused = parse(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_NE(refused.status().message().find("matrices"), std::string_view::npos) << refused.status().message();
  }
  std::string without = profile_text("baseline");
  without.insert(without.rfind('}'), R"(, "matrices": ["16x16x16"])");
  EXPECT_EQ(DeviceProfile::parse(without, "p").status().message(), "p: 'matrices' are there, but not the feature \"float16\"");
  DeviceCaps device = generous();
  device.float16 = true;
  EXPECT_TRUE(clamp_caps(device, profile->internal()).matrices.empty());
  device.matrices = {{16, 16, 16}, {8, 8, 8}};
  EXPECT_EQ(clamp_caps(device, profile->internal()).matrices, (std::vector<MatrixShape>{{16, 16, 16}}));
  device.matrices = {{8, 8, 8}};
  EXPECT_EQ(clamp_caps(device, profile->internal()).matrices, device.matrices) << "its own, as it has none of the profile's";
  EXPECT_TRUE(clamp_caps(device, generous()).matrices.empty());
  device.float16 = false;
  EXPECT_TRUE(clamp_caps(device, profile->internal()).matrices.empty());
}

TEST(DeviceProfileTest, RatesAreReadOrRefusedByName) {
  const auto parse = [](const std::string& rates) {
    std::string text = profile_text("baseline");
    text.insert(text.rfind('}'), ", \"rates\": " + rates);
    return DeviceProfile::parse(text, "p");
  };
  const Result<DeviceProfile> profile = parse(R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "gh100"})");
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  const runtime::DeviceCaps& caps = profile->internal();
  EXPECT_EQ(caps.bytes_per_s, 1000);
  EXPECT_EQ(caps.lanes_per_s, 1600);
  EXPECT_EQ(caps.lines_per_s, 200);
  EXPECT_EQ(caps.cores, 2u);
  EXPECT_EQ(caps.counts, "gh100");
  EXPECT_EQ(caps.matrix_flops_per_s, 0);
  const Result<DeviceProfile> with_matrices = parse(R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "gh100", "matrix_flops_per_s": 5000})");
  ASSERT_TRUE(with_matrices.ok()) << with_matrices.status().message();
  EXPECT_EQ(with_matrices->internal().matrix_flops_per_s, 5000);
  for (const auto& [rates, word] : {std::pair{R"({"memory_bytes_per_s": 1000, "cores": 0, "core_lanes": 8, "clock_hz": 100, "counts": "gh100"})", "'cores' is 0"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "counts": "gh100"})", "clock_hz"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100})", "counts"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "x", "more": 1})", "'rates' has other fields"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "x"}, "measured": 3)", "'measured'"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "x"}, "measured": [3])", "a step is an object"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "x"}, "measured": [{"rows": 1}])", "a step is an object"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "x"}, "measured": [{"weight_bytes": 5, "rows": 1, "us": 1}])", "'ns'"},
                                    {R"({"memory_bytes_per_s": 1000, "cores": 2, "core_lanes": 8, "clock_hz": 100, "counts": "x"}, "measured": [{"weight_bytes": 5, "rows": 0, "ns": 1}])", "must not be 0"},
                                    {"3", "rates"}}) {
    const Result<DeviceProfile> refused = parse(rates);
    ASSERT_FALSE(refused.ok()) << rates;
    EXPECT_NE(refused.status().message().find(word), std::string::npos) << refused.status().message();
  }
}

TEST(DeviceProfileTest, FeaturesAreRead) {
  std::string text = profile_text("baseline");
  text.replace(text.find("[]"), 2, "[\"subgroup_shuffle\", \"subgroup_arithmetic\", \"subgroup_size_control\", \"storage16\", \"timestamps\"]");
  const Result<DeviceProfile> profile = DeviceProfile::parse(text, "p");
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_TRUE(profile->internal().subgroup_shuffle);
  EXPECT_TRUE(profile->internal().storage16);
  EXPECT_TRUE(profile->internal().subgroup_arithmetic);
  EXPECT_EQ(profile->internal().min_required_subgroup_size, profile->internal().min_subgroup_size);
  EXPECT_EQ(profile->internal().max_required_subgroup_size, profile->internal().max_subgroup_size);
  EXPECT_TRUE(clamp_caps(generous(), profile->internal()).storage16);
  EXPECT_EQ(profile->internal().timestamp_bits, 64u);
}

/// One place of the baseline's document changed, and what the message names.
struct Wrong {
  const char* name;
  const char* from;
  const char* to;
  StatusCode code;
  const char* named;
};

class WrongProfileTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongProfileTest, IsRefusedByName) {
  const Wrong& wrong = GetParam();
  std::string text = profile_text("baseline");
  const std::size_t at = text.find(wrong.from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(wrong.from).size(), wrong.to);
  const Result<DeviceProfile> profile = DeviceProfile::parse(text, "p.json");
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.status().code(), wrong.code) << profile.status().message();
  EXPECT_NE(profile.status().message().find("p.json"), std::string::npos) << profile.status().message();
  EXPECT_NE(profile.status().message().find(wrong.named), std::string::npos) << profile.status().message();
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongProfileTest,
    ::testing::Values(Wrong{"Cut", "\"features\": []\n}", "", StatusCode::kCorruptData, ""},
                      Wrong{"NoName", "\"name\": \"baseline\",", "", StatusCode::kNotFound, "name"},
                      Wrong{"Type", "\"other\"", "\"gpu\"", StatusCode::kCorruptData, "type"},
                      Wrong{"Unknown", "\"max_grid\"", "\"max_grind\": 1, \"max_grid\"", StatusCode::kCorruptData, "max_grind"},
                      Wrong{"Missing", "\"max_grid\": 65535,", "", StatusCode::kNotFound, "max_grid"},
                      Wrong{"Negative", "65535", "-1", StatusCode::kCorruptData, "max_grid"},
                      Wrong{"Beyond32Bits", "65535", "4294967296", StatusCode::kCorruptData, "max_grid"},
                      Wrong{"Word", "16384", "\"16384\"", StatusCode::kCorruptData, "max_shared_bytes"},
                      Wrong{"BelowTheBaseline", "16384", "8192", StatusCode::kUnsupported, "maxComputeSharedMemorySize"},
                      Wrong{"Alignment", "\"storage_offset_alignment\": 256", "\"storage_offset_alignment\": 24", StatusCode::kCorruptData, "powers of two"},
                      Wrong{"Subgroups", "\"min_subgroup_size\": 1", "\"min_subgroup_size\": 129", StatusCode::kCorruptData, "129"},
                      Wrong{"Feature", "[]", "[\"wings\"]", StatusCode::kCorruptData, "features"},
                      Wrong{"FeatureOfAnotherType", "[]", "[1]", StatusCode::kCorruptData, "features"},
                      Wrong{"Allocations", "1073741824", "1024", StatusCode::kUnsupported, "max_allocation_bytes"}),
    [](const ::testing::TestParamInfo<Wrong>& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace rondo::runtime::device_profile_test
