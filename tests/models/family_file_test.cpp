// Files of every family with something missing or wrong: refused by name, or it shows in what the network computes.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "models/checkpoint.h"
#include "models/memory_plan.h"
#include "models/reference.h"
#include "models/self_test_cases.h"
#include "runtime/fmt.h"
#include "tests/support/family_gguf.h"
#include "tests/support/gguf_writer.h"

namespace rondo::models::family_file_test {
namespace {

using tests::build_family_file;
using tests::family_files;
using tests::FamilyFault;
using tests::FamilyFile;

class FamilyFileTest : public ::testing::TestWithParam<FamilyFile> {
 protected:
  /// Logits of a text longer than the windows, or why there are none.
  static Result<std::vector<float>> logits_of(const FamilyFault& fault) {
    const std::string file = build_family_file(GetParam(), 1, fault);
    RONDO_ASSIGN(const std::unique_ptr<const Checkpoint> checkpoint, open_checkpoint(testing::source_of(file, "family.gguf")));
    const std::vector<std::int32_t> ids = {5, 300, 17, 40, 99, 201, 3, 250, 77, 123, 64, 9, 10, 11, 280, 33, 71, 150, 6, 90};
    return reference_logits(*checkpoint, ids, graph::Type::kF32);
  }
  static double largest_change(const std::vector<float>& a, const std::vector<float>& b) {
    double change = 0, low = a[0], high = a[0];
    for (std::size_t i = 0; i < a.size(); ++i) {
      change = std::max(change, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
      low = std::min(low, static_cast<double>(a[i])), high = std::max(high, static_cast<double>(a[i]));
    }
    return change / (high - low);
  }
  /// Tensors and keys of the file.
  static std::set<std::string> names() {
    std::vector<std::string> all;
    (void)build_family_file(GetParam(), 1, {}, &all);
    return {all.begin(), all.end()};
  }
};

/// What some members of the family have and others have not: keys with a usual value, a head of its own, factors, biases.
bool is_optional(const FamilyFile& family, const std::string& name) {
  const std::string_view architecture = family.architecture;
  if (name.starts_with(family.architecture)) return name.ends_with("rope.dimension_count") || (!name.ends_with("_count") && !name.ends_with("_length") && !name.ends_with("epsilon"));
  if (name == "output.weight" || name.starts_with("rope_f")) return true;
  if (name.ends_with(".ffn_norm.weight")) return architecture == "stablelm";
  if (name.ends_with("attn_norm_2.weight")) return true;
  // Norms of queries and keys are Qwen 3's and the like's; a linear's biases are there or not, but for families that have all.
  const bool of_norm = name.find("norm") != std::string::npos;
  return name.ends_with(".bias") && !of_norm && (architecture == "llama" || architecture == "gptj" || architecture == "starcoder2" || architecture == "stablelm" || name == "output.bias");
}

/// Keys that say what is so without them, and factors for longer contexts than the test's.
bool says_nothing(const FamilyFile& file, const std::string& name) {
  const std::string family = file.name;
  const bool all_heads = name.ends_with("head_count_kv") && file.n_kv_heads == file.n_heads, experts_alone = file.expert_ffn > 0 && name.ends_with(".feed_forward_length");
  return all_heads || experts_alone || name.ends_with("value_length") || (name.ends_with("scaling.type") && family != "llama-yarn") || (name.ends_with("use_parallel_residual") && family == "gptneox") ||
         (name == "rope_factors_long.weight" && family == "phi3-long") || name.ends_with("original_context_length") || (name == "rope_factors_short.weight" && family == "phi3-longer") || (name.ends_with("use_parallel_residual") && family == "stablelm-stale-key");
}

TEST_P(FamilyFileTest, WhatIsLeftOutIsNamedOrShows) {
  const Result<std::vector<float>> whole = logits_of({});
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  for (const std::string& name : names()) {
    if (says_nothing(GetParam(), name)) continue;
    const Result<std::vector<float>> found = logits_of({.without = name, .changed_key = ""});
    if (!found.ok()) {
      EXPECT_NE(found.status().message().find("family.gguf"), std::string::npos) << found.status().message();
      EXPECT_EQ(found.status().message().find('\n'), std::string::npos) << found.status().message();
      continue;
    }
    EXPECT_TRUE(is_optional(GetParam(), name)) << name << " is left out, and nobody minds";
    EXPECT_GT(largest_change(*whole, *found), 1e-3) << name << " is left out, and nobody sees it";
  }
}

TEST_P(FamilyFileTest, KeysOfAnotherTypeAreNamed) {
  for (const std::string& name : names()) {
    if (name.find(std::string(GetParam().architecture) + ".") != 0 || name == "stablelm.use_parallel_residual") continue;  // the last is not read
    const Result<std::vector<float>> found = logits_of({.without = "", .changed_key = name, .value = FamilyFault::Value::kText});
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.status().code(), StatusCode::kCorruptData) << found.status().message();
    for (const std::string& part : {std::string("family.gguf"), name}) EXPECT_NE(found.status().message().find(part), std::string::npos) << found.status().message();
  }
}

/// Numbers that no network has: refused with a line that names the file, or, where a number means that there is none, computed.
TEST_P(FamilyFileTest, NumbersThatMakeNoSenseAreRefusedOrMeanNone) {
  using Value = FamilyFault::Value;
  for (const std::string& name : names()) {
    if (name.find(std::string(GetParam().architecture) + ".") != 0 || name.ends_with("scaling.type") || name.ends_with("use_parallel_residual")) continue;
    for (const Value value : {Value::kZero, Value::kHuge, Value::kNegative, Value::kNan}) {
      const Result<std::vector<float>> found = logits_of({.without = "", .changed_key = name, .value = value});
      const std::string what = fmt::format("{} value {}: {}", name, static_cast<int>(value), found.status().message());
      if (!found.ok()) {
        EXPECT_NE(found.status().message().find("family.gguf"), std::string::npos) << what;
        EXPECT_EQ(found.status().message().find('\n'), std::string::npos) << what;
        continue;
      }
      const bool no_number = value == Value::kNegative || value == Value::kNan;
      const bool is_float = name.find("epsilon") != std::string::npos || name.find("freq_base") != std::string::npos || name.find("factor") != std::string::npos ||
                            name.find("softcapping") != std::string::npos || name.find("scale") != std::string::npos || name.find("bias") != std::string::npos;
      EXPECT_FALSE(is_float && no_number) << what;
    }
  }
}

/// A large GPU with matrix units, or with dot products of halves instead.
runtime::DeviceCaps large_gpu(bool matrices) {
  runtime::DeviceCaps caps;
  caps.type = runtime::DeviceType::kDiscrete;
  caps.cores = 132;
  caps.subgroup_arithmetic = caps.subgroup_shuffle = true;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 32;
  caps.max_invocations = 1024, caps.max_workgroup_subgroups = 64, caps.max_shared_bytes = 49152;
  caps.integer_dot = caps.fast_integer_dot = true;
  caps.half_dot = !matrices;
  if (matrices) caps.matrices = {{16, 16, 16}};
  return caps;
}

Status self_test_status(const FamilyFile& family, std::uint32_t n_ctx, bool fusion, const runtime::DeviceCaps& caps = {}) {
  const std::string file = build_family_file(family, 1);
  const auto checkpoint = open_checkpoint(testing::source_of(file)).value();
  ModelOptions options;
  options.fusion = fusion;
  const std::vector<StepKind> kinds = step_kinds(checkpoint->network, caps, n_ctx);
  RONDO_ASSIGN(const SessionPlan plan, plan_session(checkpoint->network, plan_weights(*checkpoint, caps).value(), caps, options, n_ctx, kinds));
  return self_test_cases(checkpoint->network, caps, plan, kinds, options).status();
}

/// Every kernel of the family's steps can be tested by itself, with fusion and without; in contexts of which rings keep a part too.
TEST_P(FamilyFileTest, SelfTestsHaveAllKernels) {
  for (const bool fusion : {true, false}) {
    for (const std::uint32_t n_ctx : {96u, 1024u}) {
      const Status status = self_test_status(GetParam(), n_ctx, fusion);
      EXPECT_TRUE(status.ok()) << n_ctx << ": " << status.message();
    }
    for (const bool matrices : {true, false}) {
      const Status status = self_test_status(GetParam(), 96, fusion, large_gpu(matrices));
      EXPECT_TRUE(status.ok()) << "a large GPU: " << status.message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FamilyFileTest, ::testing::ValuesIn(family_files().begin(), family_files().end()), [](const ::testing::TestParamInfo<FamilyFile>& one) {
  std::string name = one.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

/// Dispatches that one more layer adds to a decode step.
std::size_t dispatches_of_a_layer(const char* name) {
  const auto found = std::find_if(family_files().begin(), family_files().end(), [&](const FamilyFile& each) { return std::string(each.name) == name; });
  std::vector<std::size_t> counts;
  for (const std::uint32_t n_layers : {2u, 3u}) {
    FamilyFile family = *found;
    family.n_layers = n_layers;
    const std::string file = build_family_file(family, 1);
    const auto checkpoint = open_checkpoint(testing::source_of(file)).value();
    const runtime::DeviceCaps caps;
    const StepKind kind{Role::kDecode, 1};
    const Result<SessionPlan> plan = plan_session(checkpoint->network, plan_weights(*checkpoint, caps).value(), caps, {}, 64, {&kind, 1});
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    counts.push_back(plan->steps.front().lowered.program.dispatches.size());
  }
  return counts[1] - counts[0];
}

TEST(FamilyDispatchTest, FusionHoldsForAll) {
  const std::size_t llama = dispatches_of_a_layer("llama");
  EXPECT_EQ(llama, 9u);
  for (const char* name : {"qwen2", "qwen3", "llama-biases", "llama-yarn", "phi3", "smollm3"}) EXPECT_EQ(dispatches_of_a_layer(name), llama) << name;
  for (const char* name : {"mixtral", "qwen3moe", "gpt-oss"}) EXPECT_EQ(dispatches_of_a_layer(name), llama + 3) << name;
  EXPECT_EQ(dispatches_of_a_layer("qwen2moe"), llama + 3 + 4);  // the shared expert's three linears and their share
  EXPECT_EQ(dispatches_of_a_layer("bloom"), dispatches_of_a_layer("gpt2"));  // slopes and sinks come by themselves
  for (const char* name : {"gemma", "gemma2", "gemma3"}) EXPECT_LE(dispatches_of_a_layer(name), llama + 2) << name;
}

class WindowLayersTest : public ::testing::Test {
 protected:
  static Result<std::vector<float>> logits_of(std::string_view window_layers, const FamilyFault& fault = {}) {
    FamilyFile family = *std::find_if(family_files().begin(), family_files().end(), [](const FamilyFile& each) { return std::string(each.name) == "olmo2-windows"; });
    family.window_layers = window_layers;
    const std::string file = build_family_file(family, 1, fault);
    RONDO_ASSIGN(const std::unique_ptr<const Checkpoint> checkpoint, open_checkpoint(testing::source_of(file, "family.gguf")));
    const std::vector<std::int32_t> ids = {5, 300, 17, 40, 99, 201, 3, 250, 77, 123, 64, 9, 10, 11, 280, 33};
    return reference_logits(*checkpoint, ids, graph::Type::kF32);
  }
};

TEST_F(WindowLayersTest, AreThoseOfTheArray) {
  const std::vector<float> usual = logits_of("").value();
  EXPECT_EQ(logits_of("11101").value(), usual);
  EXPECT_NE(logits_of("11111").value(), usual);
  EXPECT_NE(logits_of("11110").value(), usual);
}

TEST_F(WindowLayersTest, OtherArraysAreRefused) {
  const auto expect_refusal = [](const Status& status, const char* part) {
    EXPECT_EQ(status.code(), StatusCode::kCorruptData);
    for (const char* each : {"family.gguf", "olmo2.attention.sliding_window_pattern", part}) EXPECT_NE(status.message().find(each), std::string::npos) << status.message();
  };
  expect_refusal(logits_of("1110").status(), "4 entries but there are 5 layers");
  expect_refusal(logits_of("11101", {.without = "", .changed_key = "olmo2.attention.sliding_window_pattern"}).status(), "array of booleans");
}

TEST(ArchitectureTest, OneThatIsNotThereIsNamedWithThoseThatAre) {
  testing::GgufWriter writer;
  writer.string("general.architecture", "mamba");
  const std::string file = writer.build();
  const auto checkpoint = open_checkpoint(testing::source_of(file, "family.gguf"));
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_EQ(checkpoint.status().code(), StatusCode::kUnsupported);
  for (const char* part : {"family.gguf", "'mamba'", "llama", "gemma3", "smollm3"}) EXPECT_NE(checkpoint.status().message().find(part), std::string::npos) << checkpoint.status().message();
}

}  // namespace
}  // namespace rondo::models::family_file_test
