// Every barrier of the library's kernels, taken out in turn: some case of check finds it missing.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "models/graph_run.h"
#include "runtime/kernel.h"
#include "tests/support/rotation_chain.h"
#include "tests/support/rounding_chain.h"
#include "tools/check/check.h"
#include "tools/simulator/case_run.h"
#include "tools/simulator/shader_sources.h"

namespace rondo::simulator_sabotage_test {
namespace {

constexpr std::uint32_t kLanes = 64, kControlBarrier = 224u | 4u << 16, kMemoryBarrier = 225u | 3u << 16, kMemberDecorate = 72u | 4u << 16, kCoherent = 23;

std::vector<std::size_t> barriers_of(const std::vector<std::uint32_t>& words) {
  std::vector<std::size_t> found;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
    if (words[at] == kControlBarrier) found.push_back(at);
  }
  return found;
}

/// The module without the instruction at this word.
std::vector<std::uint32_t> without(std::vector<std::uint32_t> words, std::size_t at) {
  const auto first = words.begin() + static_cast<std::ptrdiff_t>(at);
  words.erase(first, first + static_cast<std::ptrdiff_t>(*first >> 16));
  return words;
}

/// The runs of check that dispatch a module with barriers, by module; of each operator and kernel `most` at most.
std::map<runtime::Shader, std::vector<check::CheckRun>> runs_by_shader(std::size_t most) {
  std::map<runtime::Shader, std::vector<check::CheckRun>> found;
  std::map<std::pair<runtime::Shader, std::string>, std::size_t> taken;
  check::CheckOptions options;
  options.brief = true;
  const auto runs = check::list_runs(options);
  EXPECT_TRUE(runs.ok());
  std::set<std::string> seen;
  for (const check::CheckRun& run : *runs) {
    if (run.values != check::Values::kRandom || !seen.insert(run.op + "/" + run.kernel + run.text).second) continue;
    const auto text = check::parse_case(run.text);
    const auto op = check::build_case(*text, run.values, 1);
    graph::Graph graph = op->graph;
    models::GraphRunOptions lowering;
    lowering.lowering.fusion = false;
    lowering.lowering.forced_kernels[check::table_of(run.op).name] = run.kernel;
    const auto plan = models::plan_graph(graph, simulator::simulated_caps(kLanes), lowering);
    if (!plan.ok()) continue;
    std::set<runtime::Shader> shaders;
    for (const runtime::Kernel& kernel : plan->lowered.program.kernels) shaders.insert(kernel.shader);
    for (const runtime::Shader shader : shaders) {
      if (!barriers_of(simulator::shader_with_lines(shader)).empty() && taken[{shader, run.op + run.kernel}]++ < most) found[shader].push_back(run);
    }
  }
  return found;
}

/// What is found when `run` goes through modules of which one lacks a barrier; "" if nothing is.
std::string find_in(const check::OpCase& op, const check::RunOptions& how, simulator::ModuleCache& modules, const runtime::DeviceCaps& caps = simulator::simulated_caps(kLanes)) {
  std::string found;
  const auto done = simulator::simulate_case(modules, op, how, caps, kLanes, [&](const simulator::SimulatedDispatch& dispatch) {
    for (const simulator::Finding& finding : dispatch.report.findings) found += std::string(name_of(finding.kind)) + ": " + finding.text + "\n";
  });
  return done.ok() ? found : done.status().message();
}

std::string find_in(const check::CheckRun& run, simulator::ModuleCache& modules) {
  const auto op = check::build_case(*check::parse_case(run.text), run.values, 1);
  check::RunOptions how;
  how.kernels[check::table_of(run.op).name] = run.kernel;
  return find_in(*op, how, modules);
}

/// Norms that linears compute, which no single operator has: they take one and make another.
bool is_found_in_norms(simulator::ModuleCache& modules, graph::Type weights, const check::RunOptions& how) {
  tests::norm_chain::Chain with;
  with.again = true;
  return !find_in(tests::norm_chain::chain(weights, {1, 1024, 544, 36}, with), how, modules).empty();
}

/// Outputs that are left in bytes for a linear behind.
bool is_found_in_rounding(simulator::ModuleCache& modules) {
  tests::norm_chain::OpCase linears;
  tests::rounding_chain::linears(linears, 1, 96);
  const check::RunOptions how = tests::norm_chain::by_dots();
  runtime::DeviceCaps apart = simulator::simulated_caps(kLanes);
  apart.device_scope = false;  // attention_combine joins splits
  return !find_in(linears, how, modules).empty() || !find_in(tests::rounding_chain::attention(1, 700, 64), how, modules, apart).empty();
}

/// Queries and keys that a linear turns, by halves.
bool is_found_in_rotation(simulator::ModuleCache& modules, graph::Type weights, const check::RunOptions& how, graph::Type activations = graph::Type::kF32) {
  return !find_in(tests::rotation_chain::step_of({1, 1, 64, 4, 2, 64}, {.weight = weights, .style = graph::RopeStyle::kHalf, .activations = activations}), how, modules).empty();
}

/// What linears of few rows do beside products.
bool is_found_in_chains(simulator::ModuleCache& modules, runtime::Shader shader) {
  namespace chain = tests::norm_chain;
  switch (shader) {
    case runtime::Shader::linear_subgroup: return is_found_in_norms(modules, graph::Type::kF32, chain::by_subgroups()) || is_found_in_rotation(modules, graph::Type::kQ8_0, chain::by_subgroups());
    case runtime::Shader::linear_subgroup_f16: return is_found_in_rotation(modules, graph::Type::kQ8_0, chain::by_subgroups(), graph::Type::kF16);
    case runtime::Shader::linear_halves: return is_found_in_norms(modules, graph::Type::kF16, chain::by_halves()) || is_found_in_rotation(modules, graph::Type::kF16, chain::by_halves());
    case runtime::Shader::linear_halves_f16: return is_found_in_rotation(modules, graph::Type::kF16, chain::by_halves(), graph::Type::kF16);
    case runtime::Shader::linear_dot: return is_found_in_norms(modules, graph::Type::kQ8_0, chain::by_dots()) || is_found_in_rotation(modules, graph::Type::kQ8_0, chain::by_dots());
    default: return false;
  }
}

TEST(SabotageTest, NoBarrierIsSuperfluous) {
  const auto runs = runs_by_shader(1000);
  EXPECT_GT(runs.size(), 10u);
  std::size_t n_barriers = 0;
  for (const auto& [shader, own] : runs) {
    const std::vector<std::size_t> barriers = barriers_of(simulator::shader_with_lines(shader));
    for (std::size_t i = 0; i < barriers.size(); ++i, ++n_barriers) {
      const runtime::Shader spoilt = shader;
      simulator::ModuleCache modules([&](runtime::Shader wanted) {
        return wanted == spoilt ? without(simulator::shader_with_lines(wanted), barriers[i]) : simulator::shader_with_lines(wanted);
      });
      const bool is_found = std::any_of(own.begin(), own.end(), [&](const check::CheckRun& run) { return !find_in(run, modules).empty(); }) ||
                            is_found_in_chains(modules, shader) ||
                            ((shader == runtime::Shader::attention_combine || shader == runtime::Shader::linear_dot) && is_found_in_rounding(modules));
      EXPECT_TRUE(is_found) << runtime::shader_name(shader) << ": nothing misses barrier " << i + 1 << " of " << barriers.size();
    }
  }
  EXPECT_GT(n_barriers, 60u);
  RecordProperty("barriers", static_cast<int>(n_barriers));
}

/// What lets the last workgroup of an attention see what others have left: memory barriers on both sides, and buffers that are coherent.
TEST(SabotageTest, NothingThatOrdersWorkgroupsIsSuperfluous) {
  const std::vector<std::uint32_t> whole = simulator::shader_with_lines(runtime::Shader::attention_subgroup);
  std::size_t n_barriers = 0, n_coherent = 0, n_missed = 0;
  for (std::size_t at = 5; at < whole.size(); at += whole[at] >> 16) {
    const bool is_barrier = whole[at] == kMemoryBarrier, is_coherent = whole[at] == kMemberDecorate && whole[at + 3] == kCoherent;
    if (!is_barrier && !is_coherent) continue;
    simulator::ModuleCache modules([&](runtime::Shader wanted) { return wanted == runtime::Shader::attention_subgroup ? without(whole, at) : simulator::shader_with_lines(wanted); });
    (is_barrier ? n_barriers : n_coherent) += 1;
    n_missed += find_in(tests::rounding_chain::attention(1, 700, 64), tests::norm_chain::by_dots(), modules).find("race") != std::string::npos;
  }
  EXPECT_EQ(n_barriers, 2u);
  EXPECT_EQ(n_coherent, 3u);
  EXPECT_EQ(n_missed, 4u) << "all but the buffer of which nothing but atomics are asked";
  simulator::ModuleCache right(simulator::Loops::kKept);
  EXPECT_EQ(find_in(tests::rounding_chain::attention(1, 700, 64), tests::norm_chain::by_dots(), right), "");
}

}  // namespace
}  // namespace rondo::simulator_sabotage_test
