// Files of budgets: what they say, and what is wrong with them.
#include <string>

#include <gtest/gtest.h>

#include "tools/simulator/budget.h"

namespace rondo::budget_test {
namespace {

using simulator::BudgetLine;
using simulator::Metrics;

Metrics some_metrics() {
  static const runtime::Dispatch kDispatch;
  static const simulator::Module kModule;
  static const simulator::Report kReport;
  Metrics metrics({kDispatch, kModule, kReport, {}});
  metrics.line_factor = 1.5;
  metrics.useful_weight_bytes_per_line = 32;
  metrics.barriers = 3;
  return metrics;
}

BudgetLine line_of(const std::string& limits) {
  const auto lines = simulator::parse_budget("# a comment\n\n linear/vector | 1 row, 64 to 64 | q8_0 | 32 | " + limits + "\n", "b.txt");
  EXPECT_TRUE(lines.ok()) << lines.status().message();
  EXPECT_EQ(lines->size(), 1u);
  return lines->front();
}

TEST(SimulatorBudgetTest, LimitsAreKeptOrExceeded) {
  const BudgetLine kept = line_of("line_factor <= 1.5, useful_weight_bytes_per_line >= 32, barriers <= 3");
  EXPECT_EQ(kept.kernel, "linear/vector");
  EXPECT_EQ(kept.shape, "1 row, 64 to 64");
  EXPECT_EQ(kept.lanes, 32u);
  EXPECT_EQ(simulator::exceeded(kept, some_metrics()), "");
  EXPECT_EQ(simulator::exceeded(line_of("line_factor <= 1.4, barriers <= 3"), some_metrics()), "line_factor is 1.5 instead of at most 1.4");
  EXPECT_EQ(simulator::exceeded(line_of("useful_weight_bytes_per_line >= 64"), some_metrics()), "useful_weight_bytes_per_line is 32 instead of at least 64");
}

TEST(SimulatorBudgetTest, WhatIsWrongIsNamed) {
  const auto refuse = [](const std::string& text, const std::string& words) {
    const auto lines = simulator::parse_budget(text, "b.txt");
    ASSERT_FALSE(lines.ok()) << text;
    EXPECT_EQ(lines.status().code(), StatusCode::kCorruptData);
    EXPECT_NE(lines.status().message().find(words), std::string::npos) << lines.status().message();
  };
  refuse("linear | 1 row | q8_0 | 32\n", "b.txt: line 1: has 4 fields");
  refuse("\nlinear | a | - | 32 | barriers < 3\n", "b.txt: line 2: 'barriers < 3' is no limit");
  refuse("linear | a | - | 32 | barriers <= 3 4\n", "is no limit");
  refuse("linear | a | - | 32 | bariers <= 3\n", "there is no 'bariers'");
}

}  // namespace
}  // namespace rondo::budget_test
