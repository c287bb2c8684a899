// The standard shapes of bench --kernels: no kernel is forgotten, and every shape is one that its operator takes.
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "graph/block_format.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "tools/rondo/kernel_cases.h"

namespace rondo::tools::kernel_cases_test {
namespace {

TEST(KernelCasesTest, EveryRegisteredKernelHasAStandardShape) {
  for (const bool large : {false, true}) {
    std::set<std::string> covered;
    for (const KernelCase& one : kernel_cases("", large)) covered.insert(kernel_name(one));
    for (std::size_t i = 0; i < graph::kOpCount; ++i) {
      const graph::Operator& op = graph::operator_of(static_cast<graph::Op>(i));
      for (const char* kernel : op.kernels) EXPECT_TRUE(covered.contains(std::string(op.name) + "/" + kernel)) << op.name << "/" << kernel << " has no line in kernel_cases.cpp";
    }
  }
}

TEST(KernelCasesTest, EveryShapeIsOneThatItsOperatorTakes) {
  for (const KernelCase& one : kernel_cases("", true)) {
    const CaseGraph built = build_case(one);
    EXPECT_TRUE(built.graph.status().ok()) << kernel_name(one) << " at " << built.shape << ": " << built.graph.status().message();
    EXPECT_EQ(built.graph.nodes().size(), 1U) << kernel_name(one);
    EXPECT_GT(built.bytes, 0) << kernel_name(one) << " at " << built.shape;
  }
}

/// The large shapes too, which no CPU driver runs: on a GPU whose buffers have up to 4 GiB, only the kernels for CPUs are refused.
TEST(KernelCasesTest, EveryShapeCanBeLoweredForALargeGpu) {
  runtime::DeviceCaps caps;
  caps.type = runtime::DeviceType::kDiscrete;
  caps.max_storage_range_bytes = 0xffffffffu;
  caps.max_invocations = 1024;
  caps.min_subgroup_size = caps.max_subgroup_size = caps.min_required_subgroup_size = caps.max_required_subgroup_size = 32;
  caps.subgroup_arithmetic = caps.subgroup_shuffle = caps.integer_dot = caps.storage16 = caps.float16 = caps.half_dot = true;
  caps.max_shared_bytes = 32768;
  caps.matrices = {{16, 16, 16}};
  for (const KernelCase& one : kernel_cases("", true)) {
    CaseGraph built = build_case(one);
    graph::LoweringOptions options;
    options.fusion = false;
    options.forced_kernels[graph::operator_of(one.op).name] = one.kernel;
    const Result<graph::Lowered> lowered = graph::lower(built.graph, caps, options);
    const bool for_cpus = std::string(one.kernel).starts_with("wide");
    EXPECT_EQ(lowered.ok(), !for_cpus) << kernel_name(one) << " at " << built.shape << ": " << lowered.status().message();
  }
}

TEST(KernelCasesTest, CountsWhatMustBeMovedAndComputed) {
  for (const KernelCase& one : kernel_cases("linear/vector", false)) {
    if (one.rows != 1 || type_of(one) != "q8_0") continue;
    const CaseGraph built = build_case(one);
    if (built.shape != "135m: 1 row, 1536 to 576") continue;
    EXPECT_EQ(built.bytes, 4 * (1536 + 576) + 576 * 1536 / 32 * 34);
    EXPECT_EQ(built.flops, 2 * 1536 * 576);
    return;
  }
  FAIL() << "the shape is not there";
}

/// Rows i of a prefill see the depth and i + 1 rows of their own.
TEST(KernelCasesTest, AttentionCountsTheKeysThatAreSeen) {
  double flops = 0;
  for (const KernelCase& one : kernel_cases("attention/tiled", false)) {
    if (one.rows == 64 && one.depth == 512) flops = build_case(one).flops;
  }
  double pairs = 0;
  for (int row = 0; row < 64; ++row) pairs += 512 + row + 1;
  EXPECT_EQ(flops, 4 * 9 * 64 * pairs);
}

TEST(KernelCasesTest, LinearIsMeasuredWithEveryWeightType) {
  std::set<std::string> types;
  for (const KernelCase& one : kernel_cases("linear/", false)) types.insert(type_of(one));
  std::set<std::string> all;
  for (const graph::Type type : graph::kWeightTypes) all.insert(graph::type_name(type));
  EXPECT_GE(all.size(), 15u);
  EXPECT_EQ(types, all);
}

std::set<std::string> names_of(std::string_view filter) {
  std::set<std::string> names;
  for (const KernelCase& one : kernel_cases(filter, false)) names.insert(kernel_name(one));
  return names;
}

TEST(KernelCasesTest, FiltersByPartsOfNames) {
  EXPECT_EQ(names_of("fastest"), std::set<std::string>());
  EXPECT_EQ(names_of("argm"), std::set<std::string>{"argmax/baseline"});
  EXPECT_EQ(names_of("max"), (std::set<std::string>{"argmax/baseline", "log_softmax/baseline", "max/baseline", "softmax/baseline"}));
  EXPECT_EQ(names_of("max/"), std::set<std::string>{"max/baseline"}) << "with a slash, the operator is that one";
  EXPECT_EQ(names_of("linear/ti"), std::set<std::string>{"linear/tiled"});
  EXPECT_EQ(names_of("x/bas"), std::set<std::string>());
  EXPECT_TRUE(names_of("/ti").contains("attention/tiled")) << "of any";
  EXPECT_LT(kernel_cases("attention", false).size(), kernel_cases("attention", true).size()) << "large models only where they are wanted";
}

}  // namespace
}  // namespace rondo::tools::kernel_cases_test
