// Budgets of compiled kernels: how lines are read, which counts for a kernel, and what exceeds it.
#include <string>

#include <gtest/gtest.h>

#include "tools/isa/budget.h"

namespace rondo::isa::isa_budget_test {
namespace {

constexpr const char* kText = R"(# a comment
mesa 26.1.6
navi21  72 14 0 0   4.0 linear vector
navi21  64 16 0 0   3.9 linear vector q8_0 kInputVec4=1
navi21 128  4 0 0   -   *
adreno740 - - 0 -   -   *
)";

Budget budget() { return *Budget::parse(kText, "budget.txt"); }

TEST(IsaBudgetTest, ChipsAreFoundInDeviceNames) {
  EXPECT_TRUE(is_chip("navi21", "AMD Radeon RX 6800 (RADV NAVI21)"));
  EXPECT_TRUE(is_chip("ADRENO740", "Turnip Adreno (TM) 740"));
  EXPECT_TRUE(is_chip("tgl", "Intel(R) Iris(R) Xe Graphics (TGL GT2)"));
  EXPECT_TRUE(is_chip("gb202", "NVIDIA GeForce RTX 5090 (NVK GB202)"));
  EXPECT_FALSE(is_chip("navi31", "AMD Radeon RX 6800 (RADV NAVI21)"));
}

TEST(IsaBudgetTest, TheMostSpecialLineCounts) {
  const Budget all = budget();
  const char* device = "AMD Radeon RX 6800 (RADV NAVI21)";
  const auto line = [&](const char* kernel, const std::vector<std::string>& constants) { return all.find(device, kernel, constants)->number; };
  EXPECT_EQ(line("linear vector q8_0", {"kWidth=128", "kInputVec4=1"}), 4U);
  EXPECT_EQ(line("linear vector q8_0", {"kWidth=128", "kInputVec4=0"}), 3U);
  EXPECT_EQ(line("linear vector q4_0", {"kInputVec4=1"}), 3U);
  EXPECT_EQ(line("softmax", {}), 5U);
  EXPECT_EQ(all.find("Turnip Adreno (TM) 740", "softmax", {})->number, 6U);
  EXPECT_EQ(all.find("another device", "softmax", {}), nullptr);
}

TEST(IsaBudgetTest, OtherVersionsAreNotJudged) {
  EXPECT_TRUE(budget().is_for("radv Mesa 26.1.6-1"));
  EXPECT_TRUE(budget().is_for("NVK Mesa 26.1.6"));
  EXPECT_FALSE(budget().is_for("radv Mesa 26.1.61"));
  EXPECT_FALSE(budget().is_for("radv Mesa 26.2.0-1"));
  EXPECT_FALSE(budget().is_for("SwiftShader 5.0"));
}

TEST(IsaBudgetTest, WhatExceedsIsNamed) {
  const Budget all = budget();
  const Budget::Line& line = *all.find("(RADV NAVI21)", "linear vector q8_0", {"kInputVec4=1"});
  Executable executable;
  EXPECT_EQ(find_excess(line, executable, std::nullopt), "");  // nothing is told
  executable.registers = 64, executable.occupancy = 16, executable.spills = 0, executable.scratch_bytes = 0;
  EXPECT_EQ(find_excess(line, executable, 3.94), "");
  executable.registers = 65, executable.occupancy = 15, executable.spills = 1, executable.scratch_bytes = 128;
  EXPECT_EQ(find_excess(line, executable, 4.0),
            "65 registers, at most 64 allowed; 15 waves, at least 16 allowed; 1 spills, at most 0 allowed; 128 bytes of scratch, at most 0 allowed; 4 instructions per multiply-add, at most 3.9 allowed");
}

TEST(IsaBudgetTest, WrongLinesAreRefusedByNumber) {
  const auto message = [](const std::string& text) { return Budget::parse(text, "b.txt").status().message(); };
  EXPECT_EQ(message(""), "b.txt: it is empty; the first line must be `mesa VERSION`");
  EXPECT_EQ(message("navi21 1 2 3 4 5 x"), "b.txt, line 1: the first line must be `mesa VERSION`");
  EXPECT_EQ(message("mesa"), "b.txt, line 1: the first line must be `mesa VERSION`");
  EXPECT_EQ(message("mesa 1\nnavi21 many 2 3 4 5 x"), "b.txt, line 2: 'many' is neither a number of registers nor -");
  EXPECT_EQ(message("mesa 1\nnavi21 1 2 3 4 -5 x"), "b.txt, line 2: '-5' is neither a number of per_multiply_add nor -");
  EXPECT_EQ(message("mesa 1\nnavi21 1 2 3 4 5"), "b.txt, line 2: a line is chip, registers, waves, spills, scratch, per_multiply_add, kernel; there is no kernel");
  EXPECT_EQ(message("mesa 1\nnavi21 1 2 3 4 nan x"), "b.txt, line 2: 'nan' is neither a number of per_multiply_add nor -");
  EXPECT_EQ(message("mesa 1\nnavi21 1"), "b.txt, line 2: '' is neither a number of waves nor -");
  EXPECT_EQ(message("mesa 1\nnavi21 1 2 3 4 5 x y\nnavi21 1 2 3 4 6 x  y"), "b.txt, line 3: navi21 has a line for this kernel already, line 2");
}

}  // namespace
}  // namespace rondo::isa::isa_budget_test
