// Kernels with one fault each, and sound ones beside them: every fault is found, and named by its kind, at 8, 32 and 64 lanes.
#include <optional>
#include <string>

#include "tests/simulator/glsl.h"

namespace rondo::faults_test {
namespace {

using simulator::FindingKind;

constexpr char kBefore[] = R"(#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_clustered : require
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Data { uint data[]; };
layout(std430, set = 0, binding = 1) buffer Result { uint result[]; };
layout(push_constant) uniform Push { uint n; uint zero; };
shared uint tile[64];
shared uint other[64];
uint self = gl_LocalInvocationID.x, global = gl_GlobalInvocationID.x, group = gl_WorkGroupID.x;
void main() {
)";

struct Fault {
  const char* name;
  const char* body;
  std::optional<FindingKind> kind = std::nullopt;  ///< none: it is sound
  std::uint32_t most_lanes = 64;
};

constexpr FindingKind kRace = FindingKind::kRace, kBarrier = FindingKind::kBarrier, kUndefined = FindingKind::kUndefined, kOutOfBounds = FindingKind::kOutOfBounds, kSubgroup = FindingKind::kSubgroup;

// Two workgroups; 128 words of data, 0, 1, 2 and so on, and 128 of result, which nothing has written. n is 128, zero is 0.
const Fault kFaults[] = {
    {"Copy", "result[global] = data[global];"},
    {"WriteBeyond", "result[global + 1] = 1;", kOutOfBounds},
    {"WriteBeyondByMuch", "result[global * 1000] = 1;", kOutOfBounds},
    {"WriteBeyond32Bits", "if (global < 4) result[global * 0x40000000u] = 1;", kOutOfBounds},
    {"PartBeyond", "uint own[2][4]; for (uint i = 0; i < 8; ++i) own[i / 4][i % 4] = data[i]; result[global] = own[zero + self % 2][self % 5];", kOutOfBounds},
    {"InnerPartOfTheSameIndex", "uint own[8][4]; for (uint i = 0; i < 32; ++i) own[i / 4][i % 4] = data[i]; const uint k = zero + self % 5; result[global] = own[k][k];", kOutOfBounds},
    {"ConstantPartThatIsNotReached", "uint own[4]; for (uint i = 0; i < 4; ++i) own[i] = data[i]; uint sum = 0; uint five = 5; if (n == 128) sum += own[3]; else sum += own[five]; result[global] = sum;"},
    {"PartWithin", "uint own[2][4]; for (uint i = 0; i < 8; ++i) own[i / 4][i % 4] = data[i]; result[global] = own[zero + self % 2][self % 4];"},
    {"ComponentBeyond", "uvec4 v = uvec4(data[self]); result[global] = v[self % 5];", kOutOfBounds},
    {"ReadBeyond", "result[global] = data[global + 64];", kOutOfBounds},
    {"ReadBeforeTheFirst", "result[global] = data[global - 1];", kOutOfBounds},
    {"BoundsCheckThatHolds", "if (global + 1 < n) result[global + 1] = 1;"},
    {"BoundsCheckOffByOne", "if (global < n) result[global + 1] = 1;", kOutOfBounds},
    {"SharedBeyond", "tile[self + 1] = 1; barrier(); result[global] = tile[1 + self % 63];", kOutOfBounds},
    {"OwnArrayBeyond", "uint own[4]; for (uint i = 0; i < 4; ++i) own[i] = data[i]; result[global] = own[data[self] % 5];", kOutOfBounds},
    {"OwnArray", "uint own[4]; for (uint i = 0; i < 4; ++i) own[i] = data[i]; result[global] = own[data[self] % 4];"},

    {"SameWordOfAllGroups", "result[self] = 1;", kRace},
    {"SameWordOfAllInvocations", "result[group] = self;", kRace},
    {"SameWordSameValue", "result[group] = 7;", kRace},
    {"OneInvocationWrites", "if (self == 0) result[group] = 7;"},
    {"OverlappingStrips", "result[group * 63 + self] = 1;", kRace},
    {"ReadsWhatAnotherGroupWrites", "result[global] = 1; data[global] = result[(global + 64) % n];", kRace},
    {"ReadsWhatANeighbourWrites", "data[global] = data[group * 64 + (self + 1) % 64];", kRace},
    {"InPlace", "data[global] = data[global] * 2;"},
    {"NoBarrierBeforeReading", "tile[self] = data[global]; result[global] = tile[63 - self];", kRace},
    {"BarrierBeforeReading", "tile[self] = data[global]; barrier(); result[global] = tile[63 - self];"},
    {"NoBarrierBetweenRounds", "uint sum = 0; for (uint i = 0; i < 2; ++i) { tile[self] = data[(global + i) % n]; barrier(); sum += tile[63 - self]; } result[global] = sum;", kRace},
    {"BarriersBetweenRounds", "uint sum = 0; for (uint i = 0; i < 2; ++i) { tile[self] = data[(global + i) % n]; barrier(); sum += tile[63 - self]; barrier(); } result[global] = sum;"},
    {"WrongTile", "tile[self] = 1; other[self] = 2; barrier(); tile[self] = other[63 - self]; result[global] = tile[63 - self];", kRace},
    {"ReductionWithoutBarrier", "tile[self] = data[global]; barrier(); for (uint half_ = 32; half_ > 0; half_ /= 2) { if (self < half_) tile[self] += tile[self + half_]; } if (self == 0) result[group] = tile[0];", kRace},
    {"Reduction", "tile[self] = data[global]; barrier(); for (uint half_ = 32; half_ > 0; half_ /= 2) { if (self < half_) tile[self] += tile[self + half_]; barrier(); } if (self == 0) result[group] = tile[0];"},
    {"ExecutionBarrierOnly", "tile[self] = data[global]; subgroupBarrier(); result[global] = tile[63 - self];", kRace, 32},
    {"SubgroupBarrierWithin", "tile[self] = data[global]; subgroupBarrier(); result[global] = tile[self ^ 1];"},
    {"BufferWithoutMemoryBarrier", "result[global] = 1; barrier(); data[global] = result[group * 64 + 63 - self];", kRace},
    {"BufferWithASubgroupsMemoryBarrier", "result[global] = 1; subgroupMemoryBarrierBuffer(); barrier(); data[global] = result[group * 64 + 63 - self];", kRace},
    {"BufferWithMemoryBarrier", "result[global] = 1; memoryBarrierBuffer(); barrier(); data[global] = result[group * 64 + 63 - self];"},
    {"MemoryBarrierBeforeTheStore", "memoryBarrierBuffer(); result[global] = 1; barrier(); data[global] = result[group * 64 + 63 - self];", kRace},
    {"MemoryBarrierOfHalf", "result[global] = 1; if (self < 32) memoryBarrierBuffer(); barrier(); data[global] = result[group * 64 + 63 - self];", kRace},
    {"AnotherSubgroupReadsIt", "tile[self] = data[global]; barrier(); uint x = tile[5]; subgroupBarrier(); if (self == 63) tile[5] = x; result[global] = x;", kRace, 32},
    {"OwnSubgroupReadsIt", "tile[self] = data[global]; barrier(); uint x = tile[self & ~7u]; subgroupBarrier(); if (self % 8 == 7) tile[self - 7] = x; result[global] = x;"},
    {"Atomics", "atomicAdd(data[0], 1); result[global] = 0;"},
    {"AtomicBesideAStore", "atomicAdd(data[0], 1); if (global == 5) data[0] = 3; result[global] = 0;", kRace},
    {"AtomicBesideALoad", "atomicAdd(data[0], 1); result[global] = data[0];", kRace},
    {"SharedAtomics", "if (self == 0) tile[0] = 0; barrier(); atomicMax(tile[0], data[global]); barrier(); result[global] = tile[0];"},
    {"AtomicOnTheUnwritten", "atomicAdd(result[0], 1);", kUndefined},
    {"SharedAtomicOnTheUnwritten", "atomicAdd(tile[0], 1); barrier(); result[global] = 0;", kUndefined},
    {"AtomicExchangeOfTheUnwritten", "atomicExchange(result[0], 1);"},
    {"ComparesWithTheUndefined", "uint x; if (data[global] > 500) x = 1; atomicCompSwap(data[0], x, 1); result[global] = 0;", kUndefined},
    {"SharedAtomicsTooEarly", "if (self == 0) tile[0] = 0; atomicMax(tile[0], data[global]); barrier(); result[global] = tile[0];", kRace},

    {"BarrierUnderABranch", "if (self < 32) { tile[self] = 1; barrier(); } result[global] = 0;", kBarrier},
    {"BarrierUnderAUniformBranch", "if (n == 128) { tile[self] = 1; barrier(); } result[global] = tile[63 - self];"},
    {"ReturnBeforeBarrier", "if (self == 63) { result[global] = 0; return; } tile[self] = 1; barrier(); result[global] = tile[self];", kBarrier},
    {"BarrierInALoopOfDifferentLength", "uint i = 0; while (i <= self / 32) { barrier(); ++i; } result[global] = i;", kBarrier},
    {"TwoBarriersInTwoBranches", "if (self < 32) { barrier(); tile[self] = 1; } else { barrier(); tile[self] = 2; } result[global] = 0;", kBarrier},

    {"SharedNeverWritten", "result[global] = tile[self];", kUndefined},
    {"SharedWrittenInPart", "if (self < 63) tile[self] = 1; barrier(); result[global] = tile[self];", kUndefined},
    {"VariableNeverWritten", "uint x; if (data[global] > 5) x = 1; result[global] = x;", kUndefined},
    {"VariableChosenAway", "uint x; if (data[global] > 5) x = 1; result[global] = data[global] > 5 ? x : 3;"},
    {"FalseAndTheUndefined", "uint x; if (data[global] > 5) x = 1; result[global] = all(bvec2(data[global] > 5, x == 1)) ? 1 : 0;"},
    {"TrueOrTheUndefined", "uint x; if (data[global] > 5) x = 1; result[global] = any(bvec2(data[global] <= 5, x == 1)) ? 1 : 0;"},
    {"TrueAndTheUndefined", "uint x; if (data[global] > 5) x = 1; result[global] = all(bvec2(data[global] < 500, x == 1)) ? 1 : 0;", kUndefined},
    {"BranchesOnTheUnwritten", "if (result[global] == 0) data[global] = 1;", kUndefined},
    {"AddressFromTheUnwritten", "data[result[global] % n] = 1;", kUndefined},
    {"LoopsOnTheUnwritten", "uint m; if (data[0] == 5) m = 2; for (uint i = 0; i < m; ++i) data[global] += i;", kUndefined},
    {"ShiftByTheWidth", "result[global] = data[global] << (32 + zero);", kUndefined},
    {"ShiftByLess", "result[global] = data[global] << (31 + zero);"},
    {"DivisionByZero", "result[global] = data[global] / zero;", kUndefined},
    {"RemainderOfZero", "result[global] = data[global] % zero;", kUndefined},
    {"ConversionOutOfRange", "result[global] = uint(float(data[global]) - 3.0);", kUndefined},
    {"ConversionInRange", "result[global] = uint(float(data[global]) + 3.0);"},
    {"MinimumWithANan", "result[global] = floatBitsToUint(min(uintBitsToFloat(0x7fc00000u + zero), 1.0));", kUndefined},
    {"RootOfLessThanZero", "result[global] = floatBitsToUint(sqrt(-1.0 - float(data[global])));", kUndefined},
    {"ClampUpsideDown", "result[global] = clamp(data[global], 5 + zero, 3 + zero);", kUndefined},
    {"Clamp", "result[global] = clamp(data[global], 3 + zero, 5 + zero);"},
    {"StepsUpsideDown", "result[global] = floatBitsToUint(smoothstep(2.0, 1.0 + float(zero), float(self)));", kUndefined},
    {"BitsBeyondTheWord", "result[global] = bitfieldExtract(data[global], int(30 + zero), 4);", kUndefined},

    {"ShuffleFromALaneThatIsNone", "result[global] = subgroupShuffle(data[global], gl_SubgroupSize + zero);", kSubgroup},
    {"BroadcastFromDifferentLanes", "result[global] = subgroupBroadcast(data[global], self % 4);", kSubgroup},
    {"Broadcast", "result[global] = subgroupBroadcast(data[global], 3 + zero);"},
    {"BitOfALaneThatIsNone", "result[global] = subgroupBallotBitExtract(uvec4(5), gl_SubgroupSize + zero) ? 1 : 0;", kUndefined},
    {"ShuffleXor", "result[global] = subgroupShuffleXor(data[global], 1u);"},
    {"ShuffleUnderABranch", "result[global] = 0; if (self % 2 == 0) result[global] = subgroupShuffle(data[global], gl_SubgroupInvocationID ^ 1u);", kSubgroup},
    {"SumUnderABranch", "result[global] = 0; if (data[global] > 3) result[global] = subgroupAdd(1u);", kSubgroup},
    {"Sum", "result[global] = subgroupAdd(data[global]);"},
    {"VoteAfterAReturn", "result[global] = 0; if (self % 8 == 1) return; if (subgroupAll(data[global] > 3)) result[global] = 1;", kSubgroup},
    {"ElectsOne", "if (subgroupElect()) result[group * 64 + gl_SubgroupID] = 1;"},
    {"SharedBetweenLanesWithoutBarrier", "tile[self] = data[global]; result[global] = tile[self ^ 1];", kRace},
};

class FaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FaultTest, IsFound) {
  const auto& [name, body, kind, most_lanes] = GetParam();
  const auto module = simulator::read_module(simulator_test::compile(std::string(kBefore) + body + "\n}\n"), {}, name);
  ASSERT_TRUE(module.ok()) << module.status().message();
  for (const std::uint32_t lanes : {8u, 32u, 64u}) {
    if (lanes > most_lanes) continue;
    std::vector<simulator::Buffer> buffers = {simulator_test::buffer_of_words(128, true), simulator_test::buffer_of_words(128, false)};
    const std::uint32_t push[] = {128, 0};
    const auto report = simulator::simulate(*module, buffers, simulator_test::launch_of(buffers, lanes, {2, 1, 1}, std::as_bytes(std::span(push))));
    ASSERT_TRUE(report.ok()) << report.status().message();
    const std::string found = simulator_test::all_findings(*report);
    if (!kind) {
      EXPECT_EQ(found, "") << lanes << " lanes";
      continue;
    }
    bool is_found = false;
    for (const simulator::Finding& finding : report->findings) {
      is_found = is_found || finding.kind == *kind;
      EXPECT_EQ(finding.text.find('\n'), std::string::npos);
    }
    EXPECT_TRUE(is_found) << lanes << " lanes: no " << name_of(*kind) << " in\n" << found;
    EXPECT_NE(found.find("kernel.comp:"), std::string::npos) << found;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest, testing::ValuesIn(kFaults), [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace rondo::faults_test
