// Patterns of kernels' names and constants, and folders of other people's modules.
#include <cstdio>
#include <fstream>
#include <string>

#include <stdlib.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tools/isa/foreign.h"

namespace rondo::isa::isa_kernel_pattern_test {
namespace {

TEST(IsaKernelPatternTest, TheBeginningOfTheNameAndAllConstants) {
  const KernelPattern pattern = KernelPattern::parse(" linear  vector kGlu=0 kRows=2 ");
  EXPECT_EQ(pattern.label, "linear vector");
  EXPECT_EQ(pattern.constants, (std::vector<std::string>{"kGlu=0", "kRows=2"}));
  EXPECT_TRUE(pattern.fits("linear vector q8_0", {"kRows=2", "kWidth=128", "kGlu=0"}));
  EXPECT_FALSE(pattern.fits("linear vector q8_0", {"kRows=21", "kGlu=0"}));
  EXPECT_FALSE(pattern.fits("f16 linear vector", {"kRows=2", "kGlu=0"}));
  EXPECT_EQ(KernelPattern::parse("*").length, 0U);
  EXPECT_TRUE(KernelPattern::parse("*").fits("softmax", {}));
  EXPECT_TRUE(KernelPattern::parse("* kGlu=1").fits("softmax", {"kGlu=1"}));
  EXPECT_FALSE(KernelPattern::parse("* kGlu=1").fits("softmax", {}));
}

class ForeignModulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rondo_foreign.XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    for (const char* name : {"/modules.json", "/a.spv"}) std::remove((folder_ + name).c_str());
    rmdir(folder_.c_str());
  }
  void write(const std::string& name, const std::string& bytes) const { std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes; }
  Result<std::vector<ForeignModule>> read(const std::string& manifest, const std::string& device = "RADV NAVI21") const {
    write("modules.json", manifest);
    return read_foreign_modules(folder_, device);
  }
  std::string message(const std::string& module) const { return read("{\"modules\": [" + module + "]}").status().message(); }

  std::string folder_;
};

TEST_F(ForeignModulesTest, ThoseForTheDeviceAreRead) {
  write("a.spv", std::string("\x03\x02\x23\x07", 4) + std::string(16, 'x'));
  const auto found = read(R"({"n_bindings": 5, "push_bytes": 64, "modules": [
    {"name": "a", "file": "a.spv", "beside": "linear vector", "chips": ["tgl", "navi21"], "constants": [64, 4294967295], "subgroup_size": 32, "full_subgroups": true, "products": 48},
    {"name": "b", "file": "absent.spv", "beside": "x", "chips": ["tgl"], "constants": []},
    {"name": "c", "file": "a.spv", "beside": "x", "constants": []}]})");
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 2U);
  const ForeignModule& a = (*found)[0];
  EXPECT_EQ(a.module.code.size(), 5U);
  EXPECT_EQ(a.module.constants, (std::vector<std::uint32_t>{64, 4294967295u}));
  EXPECT_EQ(a.module.n_bindings, 5U);
  EXPECT_EQ(a.module.push_bytes, 64U);
  EXPECT_EQ(a.module.subgroup_size, 32U);
  EXPECT_TRUE(a.module.full_subgroups);
  EXPECT_EQ(a.products, 48U);
  EXPECT_EQ((*found)[1].products, 0U);
  EXPECT_EQ((*found)[1].module.subgroup_size, 0U);
  EXPECT_FALSE((*found)[1].module.full_subgroups);
}

TEST_F(ForeignModulesTest, WhatIsWrongIsNamed) {
  EXPECT_NE(read_foreign_modules(folder_, "").status().message().find("modules.json"), std::string::npos);
  EXPECT_NE(read("{").status().message().find("modules.json"), std::string::npos);
  EXPECT_NE(read("{}").status().message().find("'modules'"), std::string::npos);
  EXPECT_NE(message("7").find("module 0 is no object"), std::string::npos);
  EXPECT_NE(message("{}").find("'name'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x"})").find("'constants'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [-1]})").find("'constants'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [4294967296]})").find("'constants'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [], "chips": [1]})").find("'chips'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [], "chips": "tgl"})").find("'chips'"), std::string::npos);
  EXPECT_NE(read(R"({"n_bindings": 4000000000, "modules": []})").status().message().find("'n_bindings' is 4000000000, at most 64"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [], "full_subgroups": 1})").find("'full_subgroups'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [], "products": -3})").find("'products'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [], "subgroup_size": 4294967296})").find("'subgroup_size'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": []})").find("'file'"), std::string::npos);
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [], "file": "absent.spv"})").find("absent.spv"), std::string::npos);
  write("a.spv", "not a module, for sure");
  EXPECT_NE(message(R"({"name": "a", "beside": "x", "constants": [], "file": "a.spv"})").find("no SPIR-V module"), std::string::npos);
}

}  // namespace
}  // namespace rondo::isa::isa_kernel_pattern_test
