// Predicted times of dispatches: each bound by its own arithmetic, and what can't be said is said.
#include <gtest/gtest.h>

#include "graph/lowering.h"
#include "models/graph_run.h"
#include "tools/rondo/predict.h"

namespace rondo::tools::predict_test {
namespace {

runtime::DeviceCaps card() {
  runtime::DeviceCaps caps;
  caps.type = runtime::DeviceType::kDiscrete;
  caps.max_invocations = 1024;
  caps.max_storage_range_bytes = 0xffffffffu;
  caps.min_subgroup_size = caps.max_subgroup_size = caps.min_required_subgroup_size = caps.max_required_subgroup_size = 32;
  caps.subgroup_arithmetic = caps.subgroup_shuffle = true;
  caps.bytes_per_s = 1e12, caps.dispatch_ns = 2000, caps.cores = 100, caps.lanes_per_s = 100 * 128 * 1e9, caps.lines_per_s = 100 * 1e9;
  caps.counts = "gh100";
  return caps;
}

/// A linear, alone.
runtime::Program linear(const runtime::DeviceCaps& caps, graph::Type type, std::int64_t outputs, std::int64_t columns, std::int64_t rows = 1) {
  graph::Graph graph;
  graph.state = graph.tensor(graph.add_tensor("state", graph::StorageKind::kStep, graph::Type::kI32, {1, 64})).storage;
  graph.add(graph::Op::linear, {graph.add_tensor("input", graph::StorageKind::kInput, graph::Type::kF32, {rows, columns}), graph.add_weight("weight", type, {outputs, columns})});
  models::GraphRunOptions options;
  options.lowering.activations = Activations::kAuto;
  Result<models::GraphPlan> plan = models::plan_graph(graph, caps, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan->lowered.program);
}

Prediction predict_one(const runtime::Program& program, const runtime::DeviceCaps& caps) {
  const Result<std::vector<Prediction>> found = predict(program, caps);
  EXPECT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->size(), program.dispatches.size());
  return found->back();  // matrix units have their input rounded before
}

TEST(PredictTest, ALargeMatrixIsBoundByMemory) {
  const runtime::DeviceCaps caps = card();
  const runtime::Program program = linear(caps, graph::Type::kF16, 65536, 4096);
  const Prediction one = predict_one(program, caps);
  EXPECT_STREQ(one.bound(), "memory");
  const double bytes = 2.0 * 65536 * 4096 + 4 * (65536 + 4096);
  EXPECT_NEAR(one.memory, bytes / (0.9 * 1e12) * 1e9, 1);
  EXPECT_NEAR(bandwidth_bound_ns(program, caps), one.memory, 1);
  EXPECT_TRUE(one.counted);
  EXPECT_EQ(one.launch, 0) << "nothing is before it";
}

TEST(PredictTest, FewerInstructionsASecondMakeItBoundByArithmetic) {
  runtime::DeviceCaps caps = card();
  caps.lanes_per_s /= 100;
  const Prediction one = predict_one(linear(caps, graph::Type::kF16, 65536, 4096), caps);
  EXPECT_STREQ(one.bound(), "arithmetic");
  EXPECT_GT(one.arithmetic, 65536.0 * 4096 / caps.lanes_per_s * 1e9) << "an instruction of each multiply-add is the least";
}

TEST(PredictTest, OtherTypesHaveOtherCounts) {
  const runtime::DeviceCaps caps = card();
  const Prediction f16 = predict_one(linear(caps, graph::Type::kF16, 4096, 4096), caps), q6 = predict_one(linear(caps, graph::Type::kQ6_K, 4096, 4096), caps);
  EXPECT_GT(q6.arithmetic, f16.arithmetic);
  runtime::DeviceCaps unknown = caps;
  unknown.counts = "no chip";
  EXPECT_FALSE(predict_one(linear(unknown, graph::Type::kF16, 4096, 4096), unknown).counted);
}

TEST(PredictTest, FewWorkgroupsDoNotFillTheMemory) {
  const runtime::DeviceCaps caps = card();
  const runtime::Program program = linear(caps, graph::Type::kQ8_0, 64, 1024);
  EXPECT_GT(predict_one(program, caps).memory, 2 * bandwidth_bound_ns(program, caps));
}

TEST(PredictTest, CoresWithoutAWorkgroupWait) {
  runtime::DeviceCaps caps = card();
  const runtime::Program program = linear(caps, graph::Type::kF16, 65536, 4096);
  caps.cores = program.dispatches[0].grid[0];
  const double busy = predict_one(program, caps).arithmetic;
  for (const std::uint32_t factor : {2u, 3u}) {
    runtime::DeviceCaps more = caps;  // as fast in all
    more.cores = factor * caps.cores;
    EXPECT_NEAR(predict_one(program, more).arithmetic, factor * busy, 1e-6 * busy);
  }
  --caps.cores;
  EXPECT_NEAR(predict_one(program, caps).arithmetic, 2 * busy * caps.cores / (caps.cores + 1), 1e-6 * busy) << "one has two";
}

/// However fast the device is otherwise.
TEST(PredictTest, EachRoundOfATileWaitsForALoad) {
  runtime::DeviceCaps caps = card();
  caps.max_shared_bytes = 49152;
  caps.cores = 1;  // columns are not split
  caps.bytes_per_s *= 1e6, caps.lanes_per_s *= 1e6;
  const runtime::Program program = linear(caps, graph::Type::kF16, 128, 4096, 64);
  ASSERT_EQ(program.dispatches[0].label, "linear tiled f16");
  const double one = predict_one(program, caps).waits, workgroups = program.dispatches[0].grid[0] * program.dispatches[0].grid[1];
  EXPECT_NEAR(one, kLoadNs * 4096 / 32, 1) << "a core has room for all of " << workgroups;
  EXPECT_STREQ(predict_one(program, caps).bound(), "waits");
  EXPECT_NEAR(predict_one(linear(caps, graph::Type::kF16, 128, 8192, 64), caps).waits, 2 * one, 1);
  EXPECT_GE(predict_one(linear(caps, graph::Type::kF16, 128, 4096, 64 * 64), caps).waits, 8 * one);
  caps.matrices = {{16, 16, 16}};
  const runtime::Program matrices = linear(caps, graph::Type::kF16, 256, 4096, 64);  // two tiles, side by side
  ASSERT_EQ(matrices.dispatches.back().label, "linear matrix f16");
  EXPECT_NEAR(predict_one(matrices, caps).waits, one / 2, kLoadNs) << "two groups of columns are on their way";
}

/// By matrix units a tile of 128 x 128 is loaded by four subgroups, each two factors of 64 rows, and stored once.
TEST(PredictTest, FactorsOfMatrixUnitsGoThroughSharedMemory) {
  runtime::DeviceCaps caps = card();
  caps.max_shared_bytes = 49152;
  caps.cores = 1;
  caps.matrices = {{16, 16, 16}};
  caps.matrix_flops_per_s = 1e15;
  const runtime::Program program = linear(caps, graph::Type::kF16, 256, 4096, 128);  // two tiles
  ASSERT_EQ(program.dispatches.back().label, "linear matrix f16");
  const double expected = 1e9 * 128 * 256 * 4096 * (2.0 / 64 + 2.0 / 64 + 2.0 / 128 + 2.0 / 128) / (128 * caps.lines_per_s);
  EXPECT_NEAR(predict_one(program, caps).shared, expected, 1e-6 * expected);
  EXPECT_EQ(predict_one(linear(caps, graph::Type::kF16, 256, 4096), caps).shared, 0) << "of one row nothing does";
  caps.lines_per_s /= 1e4;
  EXPECT_STREQ(predict_one(program, caps).bound(), "shared");
}

TEST(PredictTest, WhatWasMeasuredIsOfTheSameModelAndRows) {
  runtime::DeviceCaps caps = card();
  EXPECT_EQ(find_measured(caps, 1000, 1), std::nullopt);
  caps.measured = {{1000, 1, 5e6}, {1000, 512, 7e6}};
  EXPECT_EQ(find_measured(caps, 1000, 1), 5e6);
  EXPECT_EQ(find_measured(caps, 1009, 512), 7e6);
  EXPECT_EQ(find_measured(caps, 1011, 512), std::nullopt);
  EXPECT_EQ(find_measured(caps, 1000, 2), std::nullopt);
}

TEST(PredictTest, AProfileWithoutRatesIsRefused) {
  runtime::DeviceCaps caps = card();
  caps.name = "plain";
  const runtime::Program program = linear(caps, graph::Type::kF16, 64, 64);
  caps.lanes_per_s = 0;
  const Result<std::vector<Prediction>> found = predict(program, caps);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(found.status().message().find("'plain'"), std::string::npos);
}

}  // namespace
}  // namespace rondo::tools::predict_test
