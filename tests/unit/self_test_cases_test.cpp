// The cases of a self-test: small, and each kernel of a model's steps in one of them, whatever the device.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/self_test_cases.h"
#include "shaders/lib/step_state.h"
#include "tests/device/small_llama.h"
#include "tests/support/test_data.h"

namespace rondo::models::self_test_cases_test {
namespace {

/// The caps of every profile that the command has, by file name.
const std::map<std::string, runtime::DeviceCaps>& profiles() {
  static const std::map<std::string, runtime::DeviceCaps> kAll = [] {
    std::map<std::string, runtime::DeviceCaps> all;
    for (const auto& entry : std::filesystem::directory_iterator(testing::tests_data_path("../../tools/rondo/profiles"))) {
      const Result<DeviceProfile> profile = DeviceProfile::parse(testing::read_whole_file(entry.path().string()), entry.path().filename().string());
      EXPECT_TRUE(profile.ok()) << profile.status().message();
      if (profile.ok()) all[entry.path().stem().string()] = profile->internal();
    }
    runtime::DeviceCaps cpu;
    cpu.name = "a CPU driver";
    cpu.type = runtime::DeviceType::kCpu;
    cpu.min_subgroup_size = cpu.max_subgroup_size = 8;
    cpu.subgroup_shuffle = true;
    all["cpu"] = cpu;
    return all;
  }();
  return kAll;
}

struct Planned {
  std::unique_ptr<const Checkpoint> checkpoint;
  SessionPlan plan;
  std::vector<StepKind> kinds;
};

Planned plan_for(ByteSource source, const runtime::DeviceCaps& caps, const ModelOptions& options) {
  Planned planned;
  Result<std::unique_ptr<const Checkpoint>> opened = open_checkpoint(std::move(source));
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  planned.checkpoint = std::move(opened).value();
  const Network& network = planned.checkpoint->network;
  const std::uint32_t n_ctx = default_context(network);
  planned.kinds = step_kinds(network, caps, n_ctx);
  const Result<WeightPlan> weights = plan_weights(*planned.checkpoint, caps);
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  Result<SessionPlan> plan = plan_session(network, *weights, caps, options, n_ctx, planned.kinds);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  planned.plan = std::move(plan).value();
  return planned;
}

/// The plan of a small Llama for a device; fails the test unless each of its kernels is in a case.
Planned plan_with_cases(const std::string& file, const runtime::DeviceCaps& caps, const PlanOptions& options = {}) {
  Planned planned = plan_for(memory_source(std::as_bytes(std::span(file)), "small.gguf"), caps, options);
  const Result<std::vector<SelfTestCase>> cases = self_test_cases(planned.checkpoint->network, caps, planned.plan, planned.kinds, options);
  EXPECT_TRUE(cases.ok()) << caps.name << ": " << cases.status().message();
  return planned;
}
Planned plan_with_cases(const std::string& file, const char* device) { return plan_with_cases(file, profiles().at(device)); }

constexpr const char* kCards[] = {"h200", "navi31", "dg2", "adreno740"};

ByteSource open(const std::string& path) { return open_file(path).value(); }

TEST(SelfTestCasesTest, EveryKernelIsInACase) {
  for (const auto& [name, caps] : profiles()) {
    for (const KvType kv_type : {KvType::kF16, KvType::kF32, KvType::kQ8_0}) {
      ModelOptions options;
      options.kv_type = kv_type;
      options.fusion = kv_type != KvType::kF32;
      const Planned planned = plan_for(open(RONDO_DEMO_MODEL), caps, options);
      const Result<std::vector<SelfTestCase>> cases = self_test_cases(planned.checkpoint->network, caps, planned.plan, planned.kinds, options);
      ASSERT_TRUE(cases.ok()) << name << ": " << cases.status().message();
      std::set<std::string> keys;
      std::size_t n_missing = 0;
      for (const runtime::Kernel& kernel : planned.plan.kernels()) {
        const auto has = [&](const SelfTestCase& test) { return std::find(test.kernels.begin(), test.kernels.end(), kernel) != test.kernels.end(); };
        n_missing += std::none_of(cases->begin(), cases->end(), has);
      }
      EXPECT_EQ(n_missing, 0u) << name;
      for (const SelfTestCase& test : *cases) {
        EXPECT_TRUE(keys.insert(test.key).second) << name << ": " << test.label << " twice";
        EXPECT_TRUE(test.fused || test.graph.nodes().size() == 1u);
      }
      EXPECT_LT(cases->size(), 120u) << name;
    }
  }
}

/// Layers that are alike are tested once.
TEST(SelfTestCasesTest, DoNotGrowWithTheModel) {
  std::vector<std::size_t> n_cases;
  ModelOptions options;
  options.kernels["rms_norm"] = "subgroup";  // else the second layer has a norm that the first one's linears compute
  for (const std::uint32_t n_layers : {1u, 2u}) {
    tests::SmallLlama small;
    small.n_layers = n_layers;
    const std::string file = small.build();
    const runtime::DeviceCaps caps = profiles().at("navi31");
    const Planned planned = plan_for(memory_source(std::as_bytes(std::span(file)), "small.gguf"), caps, options);
    const Result<std::vector<SelfTestCase>> cases = self_test_cases(planned.checkpoint->network, caps, planned.plan, planned.kinds, options);
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    n_cases.push_back(cases->size());
  }
  EXPECT_EQ(n_cases[0], n_cases[1]);
}

/// Contexts shorter than what a case would like.
TEST(SelfTestCasesTest, ShortContextsHaveTheirKernelsTested) {
  for (const std::uint32_t context : {1u, 2u, 7u, 8u, 9u, 16u, 17u, 63u, 64u, 200u}) {
    for (const char* device : {"cpu", "navi31"}) {
      tests::SmallLlama small;
      small.context = context;
      const std::string file = small.build();
      const runtime::DeviceCaps caps = profiles().at(device);
      const Planned planned = plan_for(memory_source(std::as_bytes(std::span(file)), "small.gguf"), caps, {});
      const Result<std::vector<SelfTestCase>> cases = self_test_cases(planned.checkpoint->network, caps, planned.plan, planned.kinds, {});
      EXPECT_TRUE(cases.ok()) << context << " on " << device << ": " << cases.status().message();
    }
  }
}

/// Windows that the cases' own contexts do not reach.
TEST(SelfTestCasesTest, LongWindowsHaveTheirKernelsTested) {
  for (const char* device : {"cpu", "navi31"}) {
    tests::SmallLlama small;
    small.context = 8192;
    small.add_keys = [](testing::GgufWriter& writer) { writer.u32("llama.attention.sliding_window", 3000); };
    const std::string file = small.build();
    plan_with_cases(file, device);
  }
}

/// Linears of many outputs whose rows would be shared by subgroups if there were as few as in a case.
TEST(SelfTestCasesTest, LargeMatricesHaveTheirKernelsTested) {
  tests::SmallLlama small;
  small.width = 512;
  small.ffn = 8192;
  small.n_vocab = small.n_tokens = 20'000;
  const std::string file = small.build();
  for (const char* device : kCards) plan_with_cases(file, device);
}

/// Of few rows in f32, whose subgroups share rows on a small device, and whose lanes have different ones.
TEST(SelfTestCasesTest, RowsOfLanesHaveTheirKernelsTested) {
  tests::SmallLlama small;
  small.width = 2048;
  small.ffn = 512;
  small.n_layers = 1;
  small.changed = "blk.0.attn_output.weight";
  small.changed_type = GgmlType::kQ8_0;
  const std::string file = small.build();
  PlanOptions options;
  options.activations = Activations::kF32;
  for (const char* device : kCards) {
    runtime::DeviceCaps caps = profiles().at(device);
    bool is_there = false;
    for (const std::uint32_t cores : {1u, 2u, 4u, 8u, 132u}) {
      caps.cores = cores;
      for (const runtime::Kernel& kernel : plan_with_cases(file, caps, options).plan.kernels()) is_there |= kernel.shader == runtime::Shader::linear_subgroup && kernel.constants[15] == 4;
    }
    EXPECT_EQ(is_there, device != std::string_view("navi31")) << device;
  }
}

/// Values of another type than queries and keys are another linear's, which puts them into the cache.
TEST(SelfTestCasesTest, MixturesHaveTheirKernelsTested) {
  tests::SmallLlama small;
  small.width = 512;
  small.changed = "blk.0.attn_v.weight";
  small.changed_type = GgmlType::kF16;
  const std::string file = small.build();
  for (const char* device : kCards) {
    const Planned planned = plan_with_cases(file, device);
    const auto decode = std::find_if(planned.plan.steps.begin(), planned.plan.steps.end(), [](const PlannedStep& step) { return step.kind.role == Role::kDecode; });
    ASSERT_NE(decode, planned.plan.steps.end()) << device;
    for (const runtime::Dispatch& dispatch : decode->lowered.program.dispatches) EXPECT_FALSE(dispatch.label.starts_with("rope")) << device;
  }
}

/// More heads than can have their splits joined by whoever ends last, and as many as just can.
TEST(SelfTestCasesTest, ManyHeadsHaveTheirKernelsTested) {
  constexpr std::uint32_t kMost = RONDO_STATE_MAX_ARRIVED;
  for (const std::uint32_t n_heads : {kMost, 2 * kMost}) {
    tests::SmallLlama small;
    small.n_heads = small.n_kv_heads = n_heads;
    small.width = 32 * n_heads;
    small.n_layers = 1;
    const std::string file = small.build();
    for (const char* device : kCards) {
      SCOPED_TRACE(n_heads);
      const Planned planned = plan_with_cases(file, device);
      const std::vector<runtime::Kernel> kernels = planned.plan.kernels();
      const bool joins = std::any_of(kernels.begin(), kernels.end(), [](const runtime::Kernel& kernel) { return (kernel.shader == runtime::Shader::attention_subgroup || kernel.shader == runtime::Shader::attention_half_subgroup) && kernel.constants[14] == 1; });
      EXPECT_TRUE(profiles().at(device).cores < 96 || joins == (n_heads <= kMost)) << device;  // fewer are filled without splits
    }
  }
}

/// Rows of weights and of tokens are cut; columns are not.
TEST(SelfTestCasesTest, AreSmall) {
  tests::SmallLlama small;
  small.n_vocab = small.n_tokens = 50'000;
  small.ffn = 2048;
  const std::string file = small.build();
  const runtime::DeviceCaps caps = profiles().at("navi31");
  const Planned planned = plan_for(memory_source(std::as_bytes(std::span(file)), "small.gguf"), caps, {});
  const Result<std::vector<SelfTestCase>> cases = self_test_cases(planned.checkpoint->network, caps, planned.plan, planned.kinds, {});
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  std::set<std::int64_t> columns;
  for (const SelfTestCase& test : *cases) {
    for (const SelfTestCase::WeightRows& rows : test.weights) {
      const graph::Shape& matrix = test.graph.storage(rows.storage).matrix;
      columns.insert(matrix[1]);
      EXPECT_LE(matrix[0], test.label == "embedding" ? 251 : 2 * 256 + 3) << test.label;
      std::int64_t n_rows = 0;
      for (const WeightSlice& run : rows.runs) n_rows += run.count;
      EXPECT_EQ(matrix[0], n_rows) << test.label;
    }
  }
  EXPECT_EQ(columns, (std::set<std::int64_t>{32, 2048}));
}

/// What is in quarantine is in no case; what takes its place is.
TEST(SelfTestCasesTest, FollowTheQuarantine) {
  const runtime::DeviceCaps& caps = profiles().at("cpu");
  ModelOptions options;
  options.quarantine = {"linear wide q8_0", "linear_glu wide q8_0", "linear_glu tiled q8_0", "linear_glu vector q8_0", "rope_kv_write f16", "attention wide f16", "attention wide_split f16", "attention split f16"};
  const Planned planned = plan_for(open(RONDO_DEMO_MODEL), caps, options);
  const Result<std::vector<SelfTestCase>> cases = self_test_cases(planned.checkpoint->network, caps, planned.plan, planned.kinds, options);
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  std::set<std::string> labels;
  for (const SelfTestCase& test : *cases) labels.insert(test.label);
  for (const std::string& label : options.quarantine) EXPECT_FALSE(labels.contains(label)) << label;
  for (const char* label : {"linear tiled q8_0", "linear vector q8_0", "glu", "rope", "kv_write f16", "attention tiled f16"}) EXPECT_TRUE(labels.contains(label)) << label;
}

}  // namespace
}  // namespace rondo::models::self_test_cases_test
