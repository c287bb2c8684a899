// Barriers as placed, against the hazard checker, which shares no code with the pass.
#include <random>

#include <gtest/gtest.h>

#include "graph/hazards.h"
#include "graph/lowering.h"
#include "runtime/fmt.h"
#include "tests/support/made_up_llama.h"

namespace rondo::graph::barriers_test {
namespace {

using models::Role;
using runtime::Access;
using runtime::Dispatch;
using runtime::Program;
using tests::MadeUpLlama;
using tests::MadeUpOptions;

bool has_hazard(const Program& program) {
  const SequencedProgram alone[] = {{&program, true}};
  return !find_hazards(alone).empty();
}

/// Names of the barriers whose removal nothing notices.
std::string find_idle_barriers(const Program& program) {
  std::string idle;
  for (std::size_t i = 0; i < program.dispatches.size(); ++i) {
    if (!program.dispatches[i].barrier_before) continue;
    Program without = program;
    without.dispatches[i].barrier_before = false;
    if (!has_hazard(without)) idle += fmt::format("{}: before dispatch {} {}\n", program.name, i, program.dispatches[i].label);
  }
  return idle;
}

class StepBarriersTest : public ::testing::TestWithParam<std::tuple<Type, bool>> {
 protected:
  /// Every step that a session records.
  std::vector<Program> programs() const {
    MadeUpOptions options;
    options.kv_type = std::get<0>(GetParam());
    const MadeUpLlama llama(options);
    LoweringOptions lowering;
    lowering.fusion = std::get<1>(GetParam());
    lowering.activation_buffer = 4;
    std::vector<Program> all;
    for (const auto& [role, rows] : {std::pair{Role::kDecode, 1}, std::pair{Role::kPrefill, 8}, std::pair{Role::kPrefillAndSample, 8}, std::pair{Role::kPrefill, 64},
                                     std::pair{Role::kPrefillAndSample, 64}, std::pair{Role::kLogits, 64}}) {
      Graph step = llama.build(role, rows);
      Result<Lowered> lowered = lower(step, runtime::DeviceCaps{}, lowering);
      EXPECT_TRUE(lowered.ok()) << lowered.status().message();
      if (lowered.ok()) all.push_back(std::move(lowered->program));
    }
    return all;
  }
};

TEST_P(StepBarriersTest, NoHazardAloneOrInAnyOrder) {
  const std::vector<Program> all = programs();
  std::vector<const Program*> pointers;
  for (const Program& program : all) pointers.push_back(&program);
  for (const Hazard& hazard : find_hazards_in_all_orders(pointers)) ADD_FAILURE() << hazard.earlier << " and " << hazard.later;
}

/// Each barrier deleted in turn must be missed, so none is redundant either.
TEST_P(StepBarriersTest, EveryBarrierIsNeeded) {
  for (const Program& program : programs()) {
    std::size_t n_barriers = 0;
    for (const Dispatch& dispatch : program.dispatches) n_barriers += dispatch.barrier_before ? 1u : 0u;
    EXPECT_GE(n_barriers, program.dispatches.size() / 2) << program.name;
    EXPECT_EQ(find_idle_barriers(program), "");
  }
}

/// Without the barrier that begins a recording, a program after itself or another is caught.
TEST_P(StepBarriersTest, TheEntryBarrierIsNeeded) {
  const std::vector<Program> all = programs();
  for (const Program& first : all) {
    for (const Program& second : all) {
      const SequencedProgram pair[] = {{&first, true}, {&second, false}};
      EXPECT_FALSE(find_hazards(pair).empty()) << first.name << ", then " << second.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CachesAndFusion, StepBarriersTest, ::testing::Combine(::testing::Values(Type::kF32, Type::kF16, Type::kQ8_0), ::testing::Bool()),
                         [](const ::testing::TestParamInfo<std::tuple<Type, bool>>& tested) {
                           return fmt::format("{}_{}", type_name(std::get<0>(tested.param)), std::get<1>(tested.param) ? "fused" : "simple");
                         });

Dispatch dispatch_of(std::vector<runtime::Binding> bindings) {
  Dispatch dispatch;
  dispatch.bindings = std::move(bindings);
  return dispatch;
}

Program program_of(const runtime::Binding& first, const runtime::Binding& second) { return {"p", {}, {dispatch_of({first}), dispatch_of({second})}}; }

struct Pair {
  const char* name;
  runtime::Binding first, second;
  bool conflict;
};

class ConflictTest : public ::testing::TestWithParam<Pair> {};

TEST_P(ConflictTest, IsSeenByBoth) {
  const Pair& pair = GetParam();
  Program program = program_of(pair.first, pair.second);
  EXPECT_EQ(has_hazard(program), pair.conflict);
  place_barriers(program);
  EXPECT_EQ(program.dispatches[1].barrier_before, pair.conflict);
  EXPECT_FALSE(program.dispatches[0].barrier_before);
  EXPECT_FALSE(has_hazard(program));
}

INSTANTIATE_TEST_SUITE_P(Accesses, ConflictTest,
                         ::testing::Values(Pair{"read_read", {{0, 0, 64}, Access::kRead}, {{0, 0, 64}, Access::kRead}, false},
                                           Pair{"write_read", {{0, 0, 64}, Access::kWrite}, {{0, 0, 64}, Access::kRead}, true},
                                           Pair{"read_write", {{0, 0, 64}, Access::kRead}, {{0, 0, 64}, Access::kWrite}, true},
                                           Pair{"write_write", {{0, 0, 64}, Access::kWrite}, {{0, 0, 64}, Access::kWrite}, true},
                                           Pair{"both_then_read", {{0, 0, 64}, Access::kReadWrite}, {{0, 0, 64}, Access::kRead}, true},
                                           Pair{"read_then_both", {{0, 0, 64}, Access::kRead}, {{0, 0, 64}, Access::kReadWrite}, true},
                                           Pair{"another_buffer", {{0, 0, 64}, Access::kWrite}, {{1, 0, 64}, Access::kRead}, false},
                                           Pair{"side_by_side", {{0, 0, 64}, Access::kWrite}, {{0, 64, 64}, Access::kRead}, false},
                                           Pair{"one_byte_shared", {{0, 0, 65}, Access::kWrite}, {{0, 64, 64}, Access::kRead}, true},
                                           Pair{"inside", {{0, 0, 1000}, Access::kWrite}, {{0, 500, 4}, Access::kRead}, true},
                                           Pair{"around", {{0, 500, 4}, Access::kRead}, {{0, 0, 1000}, Access::kWrite}, true}),
                         [](const ::testing::TestParamInfo<Pair>& tested) { return std::string(tested.param.name); });

/// A read long after a write is still a hazard if no barrier came between; the conflict need not be with a neighbour.
TEST(HazardTest, DistantConflictsCount) {
  Program program{"p", {}, {}};
  program.dispatches.push_back(dispatch_of({{{0, 0, 64}, Access::kWrite}}));
  for (std::uint32_t i = 1; i < 10; ++i) program.dispatches.push_back(dispatch_of({{{i, 0, 64}, Access::kWrite}}));
  program.dispatches.push_back(dispatch_of({{{0, 32, 4}, Access::kRead}}));
  EXPECT_TRUE(has_hazard(program));
  program.dispatches[4].barrier_before = true;
  EXPECT_FALSE(has_hazard(program));
}

/// Two readers, then one of them writes: the other's read is the hazard.
TEST(HazardTest, AReaderThatWritesConflictsWithTheOtherReader) {
  Program program{"p", {}, {dispatch_of({{{0, 0, 64}, Access::kRead}}), dispatch_of({{{0, 0, 64}, Access::kReadWrite}})}};
  EXPECT_TRUE(has_hazard(program));
  std::swap(program.dispatches[0], program.dispatches[1]);
  EXPECT_TRUE(has_hazard(program));
}

TEST(HazardTest, OneDispatchIsItsOwnAffair) {
  const Program program{"p", {}, {dispatch_of({{{0, 0, 64}, Access::kRead}, {{0, 0, 64}, Access::kWrite}})}};
  EXPECT_FALSE(has_hazard(program));
}

TEST(HazardTest, SaysWhoAndWhere) {
  Program program = program_of({{3, 128, 64}, Access::kWrite}, {{3, 160, 64}, Access::kRead});
  program.dispatches[1].label = "reader";
  const SequencedProgram alone[] = {{&program, true}};
  const std::vector<Hazard> hazards = find_hazards(alone);
  ASSERT_EQ(hazards.size(), 1u);
  EXPECT_EQ(hazards[0].earlier, "p: dispatch 0 ");
  EXPECT_EQ(hazards[0].later, "p: dispatch 1 reader");
  EXPECT_EQ(hazards[0].buffer, 3u);
  EXPECT_EQ(hazards[0].offset_bytes, 160u);
}

TEST(HazardTest, TheListIsBounded) {
  Program program{"p", {}, {}};
  for (int i = 0; i < 100; ++i) program.dispatches.push_back(dispatch_of({{{0, 0, 64}, Access::kWrite}}));
  const SequencedProgram alone[] = {{&program, true}};
  EXPECT_EQ(find_hazards(alone, 5).size(), 5u);
}

/// Programs at random: the pass leaves no hazard and places no barrier that could go.
TEST(BarriersTest, RandomProgramsAreSafeAndMinimal) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Program program{"random", {}, {}};
    for (std::size_t i = 0; i < 2 + random() % 20; ++i) {
      std::vector<runtime::Binding> bindings;
      for (std::size_t k = 0; k < 1 + random() % 4; ++k) {
        const std::uint64_t offset = random() % 8 * 32, size = (1 + random() % 4) * 32;
        bindings.push_back({{static_cast<std::uint32_t>(random() % 3), offset, size}, static_cast<Access>(random() % 3)});
      }
      program.dispatches.push_back(dispatch_of(std::move(bindings)));
    }
    place_barriers(program);
    EXPECT_FALSE(has_hazard(program)) << round;
    EXPECT_EQ(find_idle_barriers(program), "") << round;
  }
}

}  // namespace
}  // namespace rondo::graph::barriers_test
