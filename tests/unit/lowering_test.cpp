#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "graph/kernel_choice.h"
#include "graph/lowering.h"
#include "runtime/fmt.h"
#include "tools/check/op_case.h"

namespace rondo::graph::lowering_test {
namespace {

using runtime::DeviceCaps;
using check::OpCase;

OpCase linear_case(std::int64_t rows = 3) {
  OpCase c;
  const TensorId input = c.f32("input", {rows, 32}, std::vector<float>(static_cast<std::size_t>(rows) * 32));
  c.output(c.graph.add(Op::linear, {input, c.weight("weight", Type::kF32, 7, 32, {})}));
  return c;
}

std::string refusal(OpCase c, const DeviceCaps& caps, const LoweringOptions& options) {
  const Result<Lowered> lowered = lower(c.graph, caps, options);
  return lowered.ok() ? "" : lowered.status().message();
}

/// A device of this type with subgroups of 8 that shuffle, and do not add up.
DeviceCaps caps_of(runtime::DeviceType type) {
  DeviceCaps caps;
  caps.type = type;
  caps.min_subgroup_size = caps.max_subgroup_size = 8;
  caps.subgroup_shuffle = true;
  return caps;
}

TEST(LoweringTest, ForcedKernelsAreTakenByName) {
  for (const char* kernel : {"vector", "wide", "tiled"}) {
    OpCase c = linear_case();
    LoweringOptions options;
    options.forced_kernels["linear"] = kernel;
    const Result<Lowered> lowered = lower(c.graph, caps_of(runtime::DeviceType::kCpu), options);
    ASSERT_TRUE(lowered.ok()) << lowered.status().message();
    EXPECT_EQ(lowered->program.dispatches.at(0).label, std::string("linear ") + kernel + " f32");
  }
}

TEST(LoweringTest, AForcedKernelThatTheDeviceCantRunIsRefused) {
  LoweringOptions options;
  options.forced_kernels["linear"] = "wide";
  DeviceCaps caps = caps_of(runtime::DeviceType::kCpu);
  caps.subgroup_shuffle = false;
  EXPECT_NE(refusal(linear_case(), caps, options).find("kernel 'wide' needs subgroup shuffles"), std::string::npos) << refusal(linear_case(), caps, options);
  caps = caps_of(runtime::DeviceType::kCpu);
  caps.max_subgroup_size = 16;
  EXPECT_NE(refusal(linear_case(), caps, options).find("subgroups of one size"), std::string::npos);
}

TEST(LoweringTest, ActivationsInF16NeedTheDevice) {
  OpCase c;
  c.output(c.graph.add(Op::linear, {c.activation("input", Type::kF16, {3, 32}, std::vector<float>(96)), c.weight("weight", Type::kF32, 7, 32, {})}));
  DeviceCaps caps = caps_of(runtime::DeviceType::kCpu);
  caps.name = "device";
  EXPECT_EQ(refusal(c, caps, {}), "[linear] activations in f16 (input) need 16-bit storage (storageBuffer16BitAccess), which device device does not have; those in f32 need none");
  caps.storage16 = true;
  LoweringOptions options;
  Graph graph = c.graph;
  const Result<Lowered> lowered = lower(graph, caps, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_EQ(lowered->program.dispatches.at(0).label, "linear vector f32");
  EXPECT_EQ(lowered->program.kernels.at(0).shader, runtime::Shader::linear_vector_f16);
  options.forced_kernels["linear"] = "wide";
  EXPECT_NE(refusal(c, caps, options).find("kernel 'wide' needs activations in f32"), std::string::npos) << refusal(c, caps, options);
}

/// Widening reads words, which any device can.
TEST(LoweringTest, WhatIsWidenedNeedsNothing) {
  OpCase c;
  c.output(c.graph.add(Op::add, {c.activation("a", Type::kF16, {3}, std::vector<float>(3)), c.f32("b", {3}, std::vector<float>(3))}));
  EXPECT_EQ(refusal(c, {}, {}), "");
}

TEST(LoweringTest, UnknownKernelsAndOperatorsAreRefused) {
  LoweringOptions options;
  options.forced_kernels["linear"] = "fastest";
  EXPECT_EQ(refusal(linear_case(), {}, options), "kernel linear=fastest: linear has the kernels subgroup, dot, vector, wide, tiled, matrix, dot_tiled, half_tiled, halves");
  options.forced_kernels = {{"lineal", "wide"}};
  EXPECT_EQ(refusal(linear_case(), {}, options), "kernel lineal=wide: there is no operator lineal");
}

TEST(LoweringTest, KernelsFollowRowsAndDevice) {
  const auto label = [](std::int64_t rows, runtime::DeviceType type) {
    OpCase c = linear_case(rows);
    const Result<Lowered> lowered = lower(c.graph, caps_of(type), {});
    return lowered.ok() ? lowered->program.dispatches.at(0).label : lowered.status().message();
  };
  EXPECT_EQ(label(1, runtime::DeviceType::kCpu), "linear wide f32");
  EXPECT_EQ(label(1, runtime::DeviceType::kDiscrete), "linear vector f32");
  EXPECT_EQ(label(64, runtime::DeviceType::kCpu), "linear wide f32");
  EXPECT_EQ(label(64, runtime::DeviceType::kIntegrated), "linear tiled f32");
}

/// A GPU whose subgroups add up, of a size between these.
DeviceCaps gpu_of(std::uint32_t min_size, std::uint32_t max_size) {
  DeviceCaps caps = caps_of(runtime::DeviceType::kDiscrete);
  caps.name = "gpu";
  caps.subgroup_arithmetic = true;
  caps.min_subgroup_size = caps.min_required_subgroup_size = min_size;
  caps.max_subgroup_size = caps.max_required_subgroup_size = max_size;
  return caps;
}

TEST(LoweringTest, SubgroupsOfASizeMakeFewRows) {
  const auto lowered_for = [](const DeviceCaps& caps, std::int64_t rows) {
    OpCase c = linear_case(rows);
    Result<Lowered> lowered = lower(c.graph, caps, {});
    EXPECT_TRUE(lowered.ok()) << lowered.status().message();
    return std::move(lowered->program);
  };
  for (const std::int64_t rows : {1, 2, 3, 8}) EXPECT_EQ(lowered_for(gpu_of(32, 32), rows).dispatches.at(0).label, "linear subgroup f32") << rows;
  EXPECT_EQ(lowered_for(gpu_of(32, 32), 9).dispatches.at(0).label, "linear tiled f32");
  struct Chosen {
    std::uint32_t min_size, max_size, lanes;
  };
  for (const Chosen& one : {Chosen{32, 32, 32}, {8, 32, 16}, {16, 32, 16}, {32, 64, 64}, {64, 128, 64}, {64, 64, 64}, {16, 16, 16}}) {
    const runtime::Program program = lowered_for(gpu_of(one.min_size, one.max_size), 1);
    EXPECT_EQ(program.kernels.at(0).constants[2], one.lanes);
    EXPECT_EQ(program.kernels.at(0).subgroup_size, one.lanes);
  }
}

TEST(LoweringTest, HalvesAreForRegistersOf16Bits) {
  const auto lowered_for = [](const DeviceCaps& caps, Type weight, std::int64_t rows, const LoweringOptions& options = {}) {
    OpCase c;
    c.output(c.graph.add(Op::linear, {c.f32("input", {rows, 256}, std::vector<float>(static_cast<std::size_t>(256 * rows))), c.weight("weight", weight, 64, 256, {})}));
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    return lowered.ok() ? lowered->program.dispatches.back().label : lowered.status().message();
  };
  DeviceCaps caps = gpu_of(64, 128);
  EXPECT_EQ(lowered_for(caps, Type::kF16, 1), "linear subgroup f16");
  caps.half_registers = caps.storage16 = true;
  for (const std::int64_t rows : {1, 8}) EXPECT_EQ(lowered_for(caps, Type::kF16, rows), "linear halves f16");
  EXPECT_EQ(lowered_for(caps, Type::kF16, 9), "linear tiled f16");
  EXPECT_EQ(lowered_for(caps, Type::kBF16, 1), "linear subgroup bf16");
  caps.storage16 = false;
  EXPECT_EQ(lowered_for(caps, Type::kF16, 1), "linear subgroup f16");
  LoweringOptions forced;
  forced.forced_kernels["linear"] = "halves";
  EXPECT_NE(lowered_for(caps, Type::kF16, 1, forced).find("kernel 'halves' needs 16-bit storage"), std::string::npos);
  EXPECT_NE(lowered_for(caps, Type::kQ8_0, 1, forced).find("kernel 'halves' needs weights of f16"), std::string::npos);
}

TEST(LoweringTest, ActivationsAreRoundedWhereTheyMayBe) {
  const auto label = [](const DeviceCaps& caps, Activations activations, Type type = Type::kQ4_0, std::int64_t rows = 1) {
    OpCase c;
    const auto columns = static_cast<std::size_t>(256 * rows);
    c.output(c.graph.add(Op::linear, {c.f32("input", {rows, 256}, std::vector<float>(columns)), c.weight("weight", type, 8192, 256, {})}));
    LoweringOptions options;
    options.activations = activations;
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    return lowered.ok() ? lowered->program.dispatches.back().label : lowered.status().message();  // what rounds comes before
  };
  DeviceCaps caps = gpu_of(32, 32);
  caps.max_invocations = 1024;
  EXPECT_EQ(label(caps, Activations::kQ8), "linear subgroup q4_0") << "it has none";
  caps.integer_dot = true;
  EXPECT_EQ(label(caps, Activations::kF32), "linear subgroup q4_0");
  EXPECT_EQ(label(caps, Activations::kAuto), "linear subgroup q4_0") << "they are not fast";
  EXPECT_EQ(label(caps, Activations::kQ8), "linear dot q4_0");
  caps.fast_integer_dot = true;
  EXPECT_EQ(label(caps, Activations::kF32), "linear subgroup q4_0");
  EXPECT_EQ(label(caps, Activations::kAuto), "linear dot q4_0");
  EXPECT_EQ(label(caps, Activations::kAuto, Type::kQ4_0, 8), "linear dot q4_0");
  EXPECT_EQ(label(caps, Activations::kQ8, Type::kQ4_0, 9), "linear dot_tiled q4_0");
  EXPECT_EQ(label(caps, Activations::kAuto, Type::kQ4_0, 9), "linear dot_tiled q4_0");
  EXPECT_EQ(label(caps, Activations::kF16, Type::kQ4_0, 9), "linear tiled q4_0");
  EXPECT_EQ(label(caps, Activations::kQ8, Type::kBF16, 9), "linear tiled bf16");
  caps.half_dot = true;
  caps.max_shared_bytes = 32768;
  EXPECT_EQ(label(caps, Activations::kF32, Type::kF16, 9), "linear tiled f16");
  EXPECT_EQ(label(caps, Activations::kAuto, Type::kF16, 8), "linear subgroup f16");
  EXPECT_EQ(label(caps, Activations::kAuto, Type::kF16, 9), "linear half_tiled f16");
  EXPECT_EQ(label(caps, Activations::kF16, Type::kQ4_0, 9), "linear half_tiled q4_0");
  EXPECT_EQ(label(caps, Activations::kAuto, Type::kQ4_0, 9), "linear dot_tiled q4_0") << "fewer instructions";
  caps.max_shared_bytes = 16384;
  EXPECT_EQ(label(caps, Activations::kAuto, Type::kF16, 9), "linear tiled f16") << "26 KB";
  EXPECT_EQ(label(caps, Activations::kAuto, Type::kMXFP4), "linear subgroup mxfp4") << "an eighth fewer instructions";
  EXPECT_EQ(label(caps, Activations::kQ8, Type::kMXFP4), "linear dot mxfp4");
  EXPECT_EQ(label(caps, Activations::kQ8, Type::kF16), "linear subgroup f16");
  caps.type = runtime::DeviceType::kCpu;
  EXPECT_EQ(label(caps, Activations::kAuto), "linear vector q4_0");
}

/// Of the device's matrices, so many side by side that a tile of 64 weight rows and the subgroups of 128 invocations come out even.
TEST(LoweringTest, ManyRowsGoToMatrixUnits) {
  struct Made {
    std::string label;
    std::array<std::uint32_t, 3> matrices_and_subgroups{};  ///< of rows, of outputs, and subgroups below each other
    std::array<std::uint32_t, 3> shape{};
    std::array<std::uint32_t, 3> grid{};
    bool operator==(const Made&) const = default;
  };
  const auto made = [](const DeviceCaps& caps, std::int64_t rows, Type type = Type::kQ4_0, Activations activations = Activations::kAuto) -> Made {
    OpCase c;
    c.output(c.graph.add(Op::linear, {c.f32("input", {rows, 256}, std::vector<float>(static_cast<std::size_t>(256 * rows))), c.weight("weight", type, 8192, 256, {})}));
    LoweringOptions options;
    options.activations = activations;
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    if (!lowered.ok()) return {std::string(lowered.status().message()), {}, {}, {}};
    const bool halves = lowered->program.dispatches.at(0).label == "halve";
    const runtime::Dispatch& dispatch = lowered->program.dispatches.at(halves ? 1 : 0);
    const runtime::Kernel& kernel = lowered->program.kernels.at(dispatch.kernel);
    EXPECT_EQ(kernel.shader == runtime::Shader::linear_matrix, halves);
    if (!halves) return {dispatch.label, {}, {}, {}};
    EXPECT_EQ(kernel.subgroup_size, kernel.constants[2]);
    return {dispatch.label, {kernel.constants[3], kernel.constants[4], kernel.constants[5]}, {kernel.constants[11], kernel.constants[12], kernel.constants[13]}, dispatch.grid};
  };
  DeviceCaps nvidia = gpu_of(32, 32);
  nvidia.max_invocations = 1024;
  nvidia.max_shared_bytes = 49152;
  EXPECT_EQ(made(nvidia, 512).label, "linear tiled q4_0");
  nvidia.matrices = {{16, 16, 16}, {16, 8, 16}};
  EXPECT_EQ(made(nvidia, 512), (Made{"linear matrix q4_0", {4, 4, 2}, {16, 16, 16}, {4, 64, 1}})) << "tiles of 128 x 128, by 128 threads";
  EXPECT_EQ(made(nvidia, 256), (Made{"linear matrix q4_0", {2, 4, 2}, {16, 16, 16}, {4, 64, 1}})) << "of 64 x 128, for those would be for half of the cores";
  EXPECT_EQ(made(nvidia, 384), (Made{"linear matrix q4_0", {4, 4, 2}, {16, 16, 16}, {3, 64, 1}})) << "for three quarters of them";
  nvidia.cores = 192;
  EXPECT_EQ(made(nvidia, 512), (Made{"linear matrix q4_0", {2, 4, 2}, {16, 16, 16}, {8, 64, 1}})) << "no core has more than three, where it would have two that are twice as large";
  nvidia.cores = 128;
  EXPECT_EQ(made(nvidia, 512), (Made{"linear matrix q4_0", {4, 4, 2}, {16, 16, 16}, {4, 64, 1}}));
  nvidia.cores = 0;
  EXPECT_EQ(made(nvidia, 512, Type::kF32), (Made{"linear matrix f32", {2, 4, 4}, {16, 16, 16}, {4, 64, 1}})) << "by 256, whose weights take more registers";
  EXPECT_EQ(made(nvidia, 512, Type::kQ8_0).matrices_and_subgroups, (std::array<std::uint32_t, 3>{4, 4, 2}));
  EXPECT_EQ(made(nvidia, 9).shape, (std::array<std::uint32_t, 3>{16, 16, 16}));
  EXPECT_EQ(made(nvidia, 9).matrices_and_subgroups, (std::array<std::uint32_t, 3>{1, 1, 1}));
  EXPECT_EQ(made(nvidia, 8).label, "linear subgroup q4_0");
  EXPECT_EQ(made(nvidia, 512, Type::kQ4_0, Activations::kF32).label, "linear tiled q4_0");
  EXPECT_EQ(made(nvidia, 512, Type::kQ4_0, Activations::kF16).label, "linear matrix q4_0");
  EXPECT_EQ(made(nvidia, 512, Type::kQ4_0, Activations::kQ8).label, "linear matrix q4_0");
  for (const Type wide : {Type::kF32, Type::kBF16, Type::kMXFP4}) EXPECT_TRUE(made(nvidia, 512, wide).label.starts_with("linear matrix")) << type_name(wide);
  DeviceCaps amd = gpu_of(32, 64);
  amd.max_invocations = 1024;
  amd.max_shared_bytes = 65536;
  amd.matrices = {{16, 16, 16}};
  EXPECT_EQ(made(amd, 512), (Made{"linear matrix q4_0", {2, 4, 4}, {16, 16, 16}, {4, 64, 1}}));
  amd.max_shared_bytes = 32768;
  EXPECT_EQ(made(amd, 512), (Made{"linear matrix q4_0", {2, 2, 2}, {16, 16, 16}, {8, 64, 1}})) << "those need 42 KB";
  amd.max_shared_bytes = 16384;
  EXPECT_EQ(made(amd, 512).grid[0], 16u) << "32 rows";
  DeviceCaps intel = gpu_of(8, 32);
  intel.max_invocations = 1024;
  intel.max_shared_bytes = 65536;
  intel.matrices = {{8, 8, 16}};
  EXPECT_EQ(made(intel, 512), (Made{"linear matrix q4_0", {2, 4, 8}, {8, 8, 16}, {4, 64, 1}}));
  EXPECT_EQ(made(intel, 20), (Made{"linear matrix q4_0", {1, 2, 4}, {8, 8, 16}, {1, 128, 1}})) << "too few for large tiles";
  EXPECT_EQ(made(intel, 512, Type::kQ6_K).grid, (std::array<std::uint32_t, 3>{4, 64, 1}));
  EXPECT_EQ(made(intel, 512, Type::kF32).grid, (std::array<std::uint32_t, 3>{4, 64, 1}));
  EXPECT_EQ(made(intel, 20, Type::kQ6_K).grid, (std::array<std::uint32_t, 3>{1, 128, 1}));
  EXPECT_EQ(made(intel, 3).label, "linear matrix q4_0") << "kernels of few rows would read the weight twice";
  EXPECT_EQ(made(intel, 3, Type::kF16).label, "linear subgroup f16");
  EXPECT_EQ(made(intel, 5, Type::kF16).label, "linear matrix f16");
  DeviceCaps with_dots = intel;
  with_dots.fast_integer_dot = with_dots.integer_dot = with_dots.subgroup_shuffle = true;
  EXPECT_EQ(made(with_dots, 2).label, "quantize") << "for dots";
  EXPECT_EQ(made(with_dots, 3).label, "linear matrix q4_0");
  EXPECT_EQ(made(with_dots, 3, Type::kQ4_0, Activations::kQ8).label, "quantize");
  DeviceCaps xe2 = intel;
  xe2.min_required_subgroup_size = 16;
  xe2.matrices = {{8, 16, 16}};
  EXPECT_EQ(made(xe2, 512, Type::kF16).grid, (std::array<std::uint32_t, 3>{4, 64, 1}));
  EXPECT_EQ(made(xe2, 512, Type::kQ4_0).grid, (std::array<std::uint32_t, 3>{4, 64, 1}));
  EXPECT_EQ(made(xe2, 512, Type::kQ6_K).grid, (std::array<std::uint32_t, 3>{4, 64, 1}));
  intel.matrices = {{64, 64, 64}};
  EXPECT_EQ(made(intel, 512).label, "linear tiled q4_0") << "that is no subgroup's";
}

/// What is rounded for one linear serves all that read the same rows.
TEST(LoweringTest, LinearsOfAnInputHaveItRoundedOnce) {
  DeviceCaps caps = gpu_of(32, 32);
  caps.max_invocations = 1024;
  caps.max_shared_bytes = 49152;
  caps.matrices = {{16, 16, 16}};
  OpCase c;
  const TensorId input = c.f32("input", {64, 256}, std::vector<float>(64 * 256)), other = c.f32("other", {64, 256}, std::vector<float>(64 * 256));
  for (const char* name : {"q", "k"}) c.output(c.graph.add(Op::linear, {input, c.weight(name, Type::kF16, 8192, 256, {})}));
  c.output(c.graph.add(Op::linear, {other, c.weight("v", Type::kF16, 8192, 256, {})}));
  LoweringOptions options;
  options.activations = Activations::kAuto;
  const Result<Lowered> lowered = lower(c.graph, caps, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  std::vector<std::string> labels;
  for (const runtime::Dispatch& dispatch : lowered->program.dispatches) labels.push_back(dispatch.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"halve", "linear matrix f16", "linear matrix f16", "halve", "linear matrix f16"}));
}

/// How its factors lie decides how they are loaded: 0 by vectors along the depth, 1 along it, 2 across it.
TEST(LoweringTest, MatmulIsMadeInTilesOnGpus) {
  struct Made {
    std::string label;
    std::uint32_t a_lies = 0, b_lies = 0, is_whole = 0;
    bool operator==(const Made&) const = default;
  };
  const auto made = [](const DeviceCaps& caps, std::int64_t rows, Activations activations = Activations::kAuto, std::int64_t depth = 64, MatmulAttributes how = {}) -> Made {
    OpCase c;
    const Shape a = how.transpose_a ? Shape{2, depth, rows} : Shape{2, rows, depth}, b = how.transpose_b ? Shape{2, 512, depth} : Shape{2, depth, 512};
    const auto input = [&](const char* name, const Shape& shape) { return c.f32(name, shape, std::vector<float>(static_cast<std::size_t>(shape.n_elements()))); };
    c.output(c.graph.add(Op::matmul, {input("a", a), input("b", b)}, how));
    LoweringOptions options;
    options.activations = activations;
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    if (!lowered.ok()) return {std::string(lowered.status().message())};
    const runtime::Dispatch& dispatch = lowered->program.dispatches.at(0);
    const auto& constants = lowered->program.kernels.at(dispatch.kernel).constants;
    if (dispatch.label == "matmul tiled") return {dispatch.label, constants[5], constants[6], constants[7]};
    if (dispatch.label == "matmul half_tiled") return {dispatch.label, constants[1], constants[3], constants[4]};
    if (dispatch.label == "matmul matrix") return {dispatch.label, constants[1], constants[6], constants[7]};
    return {dispatch.label};
  };
  DeviceCaps caps = gpu_of(32, 32);
  caps.max_invocations = 1024;
  caps.max_shared_bytes = 49152;
  EXPECT_EQ(made(caps, 512), (Made{"matmul tiled", 0, 2, 1}));
  EXPECT_EQ(made(caps, 512, Activations::kAuto, 64, {.transpose_a = true, .transpose_b = true}), (Made{"matmul tiled", 2, 0, 1}));
  EXPECT_EQ(made(caps, 512, Activations::kAuto, 68, {.transpose_b = true}), (Made{"matmul tiled", 1, 1, 0}));
  caps.half_dot = true;
  EXPECT_EQ(made(caps, 512), (Made{"matmul half_tiled", 0, 2, 1}));
  EXPECT_EQ(made(caps, 512, Activations::kF32).label, "matmul tiled");
  EXPECT_EQ(made(caps, 8).label, "matmul tiled");
  caps.matrices = {{16, 16, 16}};
  EXPECT_EQ(made(caps, 512), (Made{"matmul matrix", 0, 2, 1}));
  EXPECT_EQ(made(caps, 512, Activations::kF32).label, "matmul tiled");
  EXPECT_EQ(made(caps, 8).label, "matmul tiled");
  DeviceCaps intel = gpu_of(8, 32);
  intel.max_invocations = 1024;
  intel.max_shared_bytes = 65536;
  intel.matrices = {{8, 8, 16}};
  intel.cores = 16;
  EXPECT_EQ(made(intel, 512, Activations::kAuto, 64, {.transpose_b = true}).label, "matmul matrix");
  EXPECT_EQ(made(intel, 512), (Made{"matmul matrix", 0, 2, 1}));
  caps.type = runtime::DeviceType::kCpu;
  EXPECT_EQ(made(caps, 512).label, "matmul baseline");
}

TEST(LoweringTest, WhereSubgroupsNeedTooManyWorkgroupsOthersDoIt) {
  DeviceCaps caps = gpu_of(64, 128);
  const auto label = [&](std::int64_t outputs) {
    OpCase c;
    c.output(c.graph.add(Op::linear, {c.f32("input", {1, 32}, std::vector<float>(32)), c.weight("weight", Type::kF32, outputs, 32, {})}));
    const Result<Lowered> lowered = lower(c.graph, caps, {});
    return lowered.ok() ? lowered->program.dispatches.at(0).label : lowered.status().message();
  };
  EXPECT_EQ(label(4 * 65535), "linear subgroup f32");
  EXPECT_EQ(label(4 * 65535 + 1), "linear vector f32");
}

TEST(LoweringTest, WithoutASizeToRelyOnSubgroupsAreNotUsed) {
  DeviceCaps unknown = gpu_of(8, 32);
  unknown.min_required_subgroup_size = unknown.max_required_subgroup_size = 0;
  DeviceCaps no_sums = gpu_of(32, 32);
  no_sums.subgroup_arithmetic = false;
  for (const DeviceCaps& caps : {unknown, no_sums}) {
    OpCase c = linear_case();
    const Result<Lowered> lowered = lower(c.graph, caps, {});
    ASSERT_TRUE(lowered.ok()) << lowered.status().message();
    EXPECT_EQ(lowered->program.dispatches.at(0).label, "linear vector f32");
  }
  LoweringOptions options;
  options.forced_kernels["linear"] = "subgroup";
  EXPECT_EQ(refusal(linear_case(), unknown, options), "[linear]: kernel 'subgroup' needs subgroups of a size that can be relied on, which device gpu or this graph does not have");
  EXPECT_EQ(refusal(linear_case(), no_sums, options), "[linear]: kernel 'subgroup' needs subgroup reductions, which device gpu or this graph does not have");
}

OpCase attention_case(std::int64_t queries, std::int64_t keys, std::int64_t width, std::int64_t heads = 32, std::int64_t kv_heads = 8, Type type = Type::kF16) {
  OpCase c;
  const auto zeros = [](std::int64_t n) { return std::vector<float>(static_cast<std::size_t>(n)); };
  const graph::TensorId query = c.f32("query", {1, heads, queries, width}, zeros(heads * queries * width));
  const graph::TensorId key = c.cache("key", type, {1, kv_heads, keys, width}, zeros(kv_heads * keys * width), graph::StorageKind::kCache);
  const graph::TensorId value = c.cache("value", type, {1, kv_heads, keys, width}, zeros(kv_heads * keys * width), graph::StorageKind::kCache);
  c.output(c.graph.add(Op::attention, {query, key, value}, graph::AttentionAttributes{0, true}));
  return c;
}

TEST(LoweringTest, AttentionOfFewRowsIsSubgroupsOnGpus) {
  const auto lowered_for = [](DeviceCaps caps, std::int64_t queries, std::int64_t keys, std::int64_t width, bool shuffle = true) {
    caps.subgroup_shuffle = shuffle;
    OpCase c = attention_case(queries, keys, width);
    Result<Lowered> lowered = lower(c.graph, caps, {});
    EXPECT_TRUE(lowered.ok()) << lowered.status().message();
    return std::move(lowered->program);
  };
  const runtime::Program decode = lowered_for(gpu_of(32, 32), 1, 512, 128);
  ASSERT_EQ(decode.dispatches.size(), 2u);
  EXPECT_EQ(decode.dispatches[0].label, "attention subgroup f16");
  EXPECT_EQ(decode.kernels[decode.dispatches[0].kernel].subgroup_size, 32u);
  EXPECT_GE(decode.dispatches[0].grid[0] * decode.dispatches[0].grid[1] * decode.dispatches[0].grid[2], 128u) << "a device of 64 cores has two workgroups each";
  EXPECT_EQ(decode.dispatches[1].label, "attention combine");
  EXPECT_EQ(lowered_for(gpu_of(8, 32), 1, 512, 128).kernels[0].subgroup_size, 8u);
  EXPECT_EQ(lowered_for(gpu_of(32, 64), 1, 512, 128).kernels[0].subgroup_size, 32u);
  EXPECT_EQ(lowered_for(gpu_of(64, 64), 1, 512, 128).kernels[0].subgroup_size, 64u);

  EXPECT_EQ(lowered_for(gpu_of(32, 32), 1, 16, 128).dispatches.size(), 1u) << "too few keys to split";
  EXPECT_EQ(lowered_for(gpu_of(32, 32), 8, 512, 128).dispatches[0].label, "attention subgroup f16");
  EXPECT_EQ(lowered_for(gpu_of(32, 32), 9, 512, 128).dispatches[0].label, "attention registers f16");
  EXPECT_EQ(lowered_for(gpu_of(64, 128), 1, 512, 128).kernels[0].constants[13], 1u) << "its shuffles are loops, but between lanes at a distance that is known";
  EXPECT_EQ(lowered_for(gpu_of(32, 32), 1, 512, 128).kernels[0].constants[13], 0u);
  EXPECT_EQ(lowered_for(gpu_of(8, 32), 1, 512, 512).dispatches[0].label, "attention split f16") << "more than its registers hold";
  EXPECT_EQ(lowered_for(gpu_of(32, 32), 1, 512, 512).dispatches[0].label, "attention subgroup f16");
  EXPECT_EQ(lowered_for(gpu_of(32, 32), 1, 512, 100).dispatches[0].label, "attention split f16") << "no whole vectors";
  EXPECT_EQ(lowered_for(gpu_of(32, 32), 1, 512, 128, false).dispatches[0].label, "attention split f16");
}

TEST(LoweringTest, AttentionOfManyRowsIsMatricesWhereThereAreAny) {
  struct Made {
    std::string label;
    std::array<std::uint32_t, 4> tile{};  ///< threads, rows, splits, parts
    bool operator==(const Made&) const = default;
  };
  const auto made = [](const DeviceCaps& caps, std::int64_t queries, std::int64_t keys, std::int64_t width, Activations activations = Activations::kAuto, std::int64_t heads = 32) -> Made {
    OpCase c = attention_case(queries, keys, width, heads);
    LoweringOptions options;
    options.activations = activations;
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    if (!lowered.ok()) return {std::string(lowered.status().message()), {}};
    const runtime::Dispatch& dispatch = lowered->program.dispatches.at(0);
    const runtime::Kernel& kernel = lowered->program.kernels.at(dispatch.kernel);
    if (kernel.shader != runtime::Shader::attention_matrix) return {dispatch.label, {}};
    EXPECT_EQ(kernel.subgroup_size, kernel.constants[2]);
    EXPECT_EQ(lowered->program.dispatches.size(), dispatch.grid[2] > 1 ? 2u : 1u);
    const std::uint32_t rows = kernel.constants[3] * kernel.constants[5] * kernel.constants[11], parts = kernel.constants[15];
    EXPECT_EQ(dispatch.grid[0], (queries * heads / 8 + rows - 1) / rows * parts);
    return {dispatch.label, {kernel.constants[0], rows, dispatch.grid[2], parts}};
  };
  const auto gpu = [](std::uint32_t least, std::uint32_t most, std::uint32_t shared, const runtime::MatrixShape& shape) {
    DeviceCaps caps = gpu_of(least, most);
    caps.max_invocations = 1024;
    caps.max_shared_bytes = shared;
    caps.matrices = {shape};
    return caps;
  };
  const DeviceCaps nvidia = gpu(32, 32, 49152, {16, 16, 16}), amd = gpu(32, 64, 65536, {16, 16, 16}), intel = gpu(8, 32, 65536, {8, 8, 16});
  EXPECT_EQ(made(nvidia, 512, 512, 128), (Made{"attention matrix f16", {128, 64, 1, 1}}));
  EXPECT_EQ(made(nvidia, 512, 512, 64), (Made{"attention matrix f16", {128, 64, 1, 1}})) << "128 rows would leave cores idle";
  EXPECT_EQ(made(nvidia, 512, 512, 256), (Made{"attention matrix f16", {128, 32, 1, 1}}));
  EXPECT_EQ(made(nvidia, 512, 512, 512), (Made{"attention matrix f16", {128, 16, 1, 1}}));
  EXPECT_EQ(made(nvidia, 9, 4096, 128), (Made{"attention matrix f16", {128, 32, 16, 1}})) << "keys are split where rows are few";
  EXPECT_EQ(made(nvidia, 8, 512, 128).label, "attention subgroup f16");
  EXPECT_EQ(made(nvidia, 512, 512, 100).label, "attention tiled f16") << "no whole vectors";
  EXPECT_EQ(made(nvidia, 512, 512, 128, Activations::kF32).label, "attention registers f16");
  EXPECT_EQ(made(nvidia, 512, 512, 512, Activations::kF32).label, "attention registers f16") << "two rows of an invocation";
  EXPECT_EQ(made(nvidia, 512, 512, 128, Activations::kQ8).label, "attention matrix f16");
  EXPECT_EQ(made(amd, 512, 512, 128), (Made{"attention matrix f16", {128, 64, 1, 1}}));
  EXPECT_EQ(made(intel, 512, 512, 128), (Made{"attention matrix f16", {256, 32, 1, 1}}));
  EXPECT_EQ(made(gpu(16, 32, 65536, {8, 16, 16}), 512, 512, 128), (Made{"attention matrix f16", {256, 64, 1, 1}}));
  EXPECT_EQ(made(intel, 512, 512, 256), (Made{"attention matrix f16", {256, 32, 1, 2}})) << "more than its registers hold of matrices";
  EXPECT_EQ(made(intel, 9, 4096, 192).label, "attention registers f16") << "few rows, for which parts' keys are not split";
  EXPECT_EQ(made(gpu(16, 32, 65536, {8, 16, 16}), 512, 512, 512), (Made{"attention matrix f16", {256, 32, 1, 2}}));
  EXPECT_EQ(made(gpu(32, 32, 16384, {16, 16, 16}), 512, 512, 128).label, "attention registers f16") << "too little shared memory for matrices";
  EXPECT_EQ(made(gpu(32, 32, 8192, {16, 16, 16}), 512, 512, 128).label, "attention tiled f16") << "for either";
}

TEST(LoweringTest, AttentionInRegistersFillsTheDevice) {
  const auto made = [](DeviceCaps caps, std::int64_t queries, std::uint32_t shared = 32768) {
    caps.max_invocations = 256;
    caps.max_shared_bytes = shared;
    OpCase c = attention_case(queries, 4096, 128);
    const Result<Lowered> lowered = lower(c.graph, caps, {});
    if (!lowered.ok()) return std::string(lowered.status().message());
    const runtime::Dispatch& dispatch = lowered->program.dispatches.at(0);
    const runtime::Kernel& kernel = lowered->program.kernels.at(dispatch.kernel);
    return fmt::format("{}, {} threads, subgroups of {}, {} x {} x {}", dispatch.label, kernel.constants[0], kernel.subgroup_size, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2]);
  };
  EXPECT_EQ(made(gpu_of(32, 32), 512), "attention registers f16, 128 threads, subgroups of 0, 64 x 8 x 1");
  EXPECT_EQ(made(gpu_of(32, 64), 512), "attention registers f16, 128 threads, subgroups of 32, 64 x 8 x 1");
  EXPECT_EQ(made(gpu_of(8, 32), 512), "attention registers f16, 256 threads, subgroups of 8, 64 x 8 x 1");
  EXPECT_EQ(made(gpu_of(64, 128), 512), "attention registers f16, 128 threads, subgroups of 0, 128 x 8 x 1") << "half the rows";
  EXPECT_EQ(made(gpu_of(32, 32), 512, 16384), "attention registers f16, 64 threads, subgroups of 0, 128 x 8 x 1");
  EXPECT_EQ(made(gpu_of(32, 32), 9), "attention registers f16, 128 threads, subgroups of 0, 2 x 8 x 16") << "keys are split where rows are few";
}

TEST(LoweringTest, AttentionSaysWhatSubgroupsNeed) {
  LoweringOptions options;
  options.forced_kernels["attention"] = "subgroup";
  const auto needs = [&](const DeviceCaps& caps, std::int64_t width) { return refusal(attention_case(1, 16, width), caps, options); };
  DeviceCaps caps = gpu_of(32, 32);
  caps.subgroup_shuffle = false;
  EXPECT_NE(needs(caps, 128).find("'subgroup' needs subgroup shuffles"), std::string::npos);
  caps.subgroup_shuffle = true;
  EXPECT_NE(needs(caps, 100).find("'subgroup' needs head widths, strides and offsets that are multiples of 8"), std::string::npos);
  caps.max_shared_bytes = 4096;
  EXPECT_NE(needs(caps, 128).find("'subgroup' needs 4160 bytes of shared memory"), std::string::npos) << needs(caps, 128);
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 0;
  EXPECT_NE(needs(caps, 128).find("'subgroup' needs subgroups of a size that can be relied on"), std::string::npos);
}

TEST(LoweringTest, AttentionOfFewRowsMultipliesHalvesWhereItMayRound) {
  DeviceCaps caps = gpu_of(32, 64);
  LoweringOptions options;
  options.activations = Activations::kAuto;
  const auto label = [&](Type type, std::int64_t queries) {
    OpCase c = attention_case(queries, 64, 64, 32, 8, type);
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    return lowered.ok() ? lowered->program.dispatches.at(0).label : lowered.status().message();
  };
  EXPECT_EQ(label(Type::kF16, 1), "attention subgroup f16");
  caps.half_dot = true;
  EXPECT_EQ(label(Type::kF16, 1), "attention half_subgroup f16");
  EXPECT_EQ(label(Type::kF16, 64), "attention registers f16");
  EXPECT_EQ(label(Type::kQ8_0, 1), "attention subgroup q8_0");
  options.activations = Activations::kF32;
  EXPECT_EQ(label(Type::kF16, 1), "attention subgroup f16");
  options.forced_kernels["attention"] = "half_subgroup";
  EXPECT_NE(label(Type::kF32, 1).find("'half_subgroup' needs keys and values in f16"), std::string::npos) << label(Type::kF32, 1);
  caps.half_dot = false;
  EXPECT_NE(label(Type::kF16, 1).find("'half_subgroup' needs dot products of f16 with sums in f32"), std::string::npos) << label(Type::kF16, 1);
}

TEST(LoweringTest, TheNextBestTakesThePlaceOfWhatIsInQuarantine) {
  const auto label = [](std::int64_t rows, runtime::DeviceType type, const std::vector<std::string>& quarantine) {
    OpCase c = linear_case(rows);
    LoweringOptions options;
    options.quarantine = quarantine;
    DeviceCaps caps = caps_of(type);
    caps.name = "made up";
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    return lowered.ok() ? lowered->program.dispatches.at(0).label : lowered.status().message();
  };
  using runtime::DeviceType;
  EXPECT_EQ(label(1, DeviceType::kCpu, {"linear wide f32"}), "linear vector f32");
  EXPECT_EQ(label(64, DeviceType::kCpu, {"linear wide f32"}), "linear tiled f32");
  EXPECT_EQ(label(64, DeviceType::kCpu, {"linear tiled f32", "linear wide f32"}), "linear vector f32");
  EXPECT_EQ(label(1, DeviceType::kDiscrete, {"linear vector f32"}), "linear tiled f32");
  EXPECT_EQ(label(64, DeviceType::kDiscrete, {"linear tiled q8_0", "linear_glu tiled f32"}), "linear tiled f32") << "of other types and operators";
  EXPECT_EQ(label(64, DeviceType::kDiscrete, {"linear tiled f32", "linear vector f32"}), "linear wide f32") << "which is for CPUs, and right everywhere";
  EXPECT_EQ(label(64, DeviceType::kDiscrete, {"linear tiled f32", "linear vector f32", "linear wide f32"}),
            "[linear] kernel 'linear tiled f32' is in quarantine on device made up, and no other can take its place");
}

TEST(LoweringTest, MeasurementsComeBeforeRanks) {
  const auto lowered_to = [](const LoweringOptions& options, std::int64_t rows = 64) {
    OpCase c = linear_case(rows);
    const Result<Lowered> lowered = lower(c.graph, caps_of(runtime::DeviceType::kDiscrete), options);
    return lowered.ok() ? lowered->program.dispatches.at(0).label : lowered.status().message();
  };
  LoweringOptions options;
  options.tuned["linear f32 f32 64 x 7 x 32"] = "vector";
  EXPECT_EQ(lowered_to({}), "linear tiled f32");
  EXPECT_EQ(lowered_to(options), "linear vector f32");
  EXPECT_EQ(lowered_to(options, 63), "linear tiled f32") << "that is another choice";
  options.measured["linear"] = "tiled";
  EXPECT_EQ(lowered_to(options), "linear vector f32");
  EXPECT_EQ(lowered_to(options, 1), "linear tiled f32");
  options.measured["linear"] = "subgroup";
  EXPECT_EQ(lowered_to(options, 63), "linear tiled f32") << "subgroups can't add up here";
  options.quarantine = {"linear vector f32"};
  EXPECT_EQ(lowered_to(options), "linear tiled f32");
  options.quarantine.clear();
  options.forced_kernels["linear"] = "tiled";
  EXPECT_EQ(lowered_to(options), "linear tiled f32");
  options.forced_kernels.clear();
  options.tuned["linear f32 f32 64 x 7 x 32"] = "nonsense";
  EXPECT_EQ(lowered_to(options), "linear tiled f32");
}

TEST(LoweringTest, ProductsOfActivationsAreChosenByMeasurements) {
  LoweringOptions options;
  options.activations = Activations::kF16;
  DeviceCaps caps = gpu_of(32, 32);
  caps.matrices = {{16, 16, 16}};
  const auto lowered_to = [&] {
    OpCase c;
    const auto factor = [&](const char* name, std::int64_t rows) { return c.f32(name, {2, rows, 64}, std::vector<float>(static_cast<std::size_t>(2 * rows * 64))); };
    c.output(c.graph.add(Op::matmul, {factor("a", 128), factor("b", 96)}, graph::MatmulAttributes{.transpose_b = true}));
    const Result<Lowered> lowered = lower(c.graph, caps, options);
    return lowered.ok() ? lowered->program.dispatches.at(0).choice + ": " + lowered->program.dispatches.at(0).label : lowered.status().message();
  };
  const std::string choice = "matmul f32 2 x 128 x 96 x 64, factors 0 and 0";
  EXPECT_EQ(lowered_to(), choice + ": matmul matrix");
  options.measured["matmul"] = "tiled";
  EXPECT_EQ(lowered_to(), choice + ": matmul tiled");
  options.measured.clear();
  options.tuned[choice] = "baseline";
  EXPECT_EQ(lowered_to(), choice + ": matmul baseline");
}

/// What a choice was made for stands beside its dispatches, and those that have no choice have none.
TEST(LoweringTest, DispatchesKnowWhatTheyWereChosenFor) {
  OpCase c;
  const TensorId product = c.graph.add(Op::linear, {c.f32("input", {64, 32}, std::vector<float>(64 * 32)), c.weight("weight", Type::kF32, 7, 32, {})});
  c.output(c.graph.add(Op::softmax, {product}));
  const Result<Lowered> lowered = lower(c.graph, caps_of(runtime::DeviceType::kDiscrete), {});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  ASSERT_EQ(lowered->program.dispatches.size(), 2u);
  EXPECT_EQ(lowered->program.dispatches[0].choice, "linear f32 f32 64 x 7 x 32");
  EXPECT_EQ(lowered->program.dispatches[1].choice, "");
}

TEST(LoweringTest, StoragesBeyondTheRangeAreRefused) {
  DeviceCaps caps;
  caps.name = "small";
  caps.max_storage_range_bytes = 1000;
  EXPECT_EQ(refusal(linear_case(), caps, {}),
            "op case: linear vector f32 binds weight of 1024 bytes, but a storage buffer on device small can have 1000");
}

TEST(LoweringTest, GridsBeyondTheDeviceAreRefused) {
  DeviceCaps caps;
  caps.name = "small";
  caps.max_grid = {65535, 2, 65535};
  LoweringOptions options;
  options.forced_kernels["linear"] = "vector";
  EXPECT_EQ(refusal(linear_case(), caps, options), "op case: linear vector f32 needs 3 workgroups but device small allows 2");
}

/// The numbers are the kernel's affair; that a small limit refuses and none does not, and that splits reach further, is not.
TEST(LoweringTest, ContextsBeyondTheDriversLoopsAreRefused) {
  const auto refused = [](std::int64_t keys, std::uint32_t limit, const char* kernel) {
    OpCase c;
    const TensorId query = c.f32("query", {1, 8, 1, 64}, std::vector<float>(512));
    c.output(c.graph.add(Op::attention, {query, c.cache("key", Type::kF16, {1, 1, keys, 64}, {}), c.cache("value", Type::kF16, {1, 1, keys, 64}, {})}), 2);
    DeviceCaps caps;
    caps.driver = "made up";
    caps.max_loop_iterations = limit;
    LoweringOptions options;
    options.forced_kernels["attention"] = kernel;
    return refusal(c, caps, options);
  };
  EXPECT_EQ(refused(1 << 16, 0, "tiled"), "");
  EXPECT_EQ(refused(64, 65535, "tiled"), "");
  EXPECT_NE(refused(1 << 16, 65535, "tiled").find("but driver made up ends a kernel's loops after 65535"), std::string::npos) << refused(1 << 16, 65535, "tiled");
  EXPECT_EQ(refused(1 << 14, 65535, "split"), "");
  EXPECT_NE(refused(1 << 20, 65535, "split"), "");
}

/// Equal kernels are one pipeline, and binding 0 is the step state everywhere.
TEST(LoweringTest, ProgramsAreCompleteAndShareKernels) {
  OpCase c;
  const TensorId x = c.f32("x", {5, 64}, std::vector<float>(320));
  const TensorId sum = c.graph.add(Op::add, {x, x});
  c.output(c.graph.add(Op::rms_norm, {c.graph.add(Op::add, {sum, x})}));
  c.graph.storage(c.graph.state).place = {9, 0, 256};
  const Result<Lowered> lowered = lower(c.graph, {}, {});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const runtime::Program& program = lowered->program;
  EXPECT_EQ(program.name, "op case");
  ASSERT_EQ(program.dispatches.size(), 3u);
  EXPECT_EQ(program.kernels.size(), 2u);
  for (const runtime::Dispatch& dispatch : program.dispatches) {
    const runtime::Kernel& kernel = program.kernels.at(dispatch.kernel);
    EXPECT_EQ(dispatch.bindings.size(), kernel.n_bindings);
    EXPECT_LE(dispatch.bindings.size(), runtime::kMaxBindings);
    EXPECT_EQ(dispatch.push.size(), kernel.push_bytes);
    EXPECT_LE(dispatch.push.size(), runtime::kMaxPushBytes);
    EXPECT_EQ(dispatch.bindings[0].range.buffer, 9u);
    EXPECT_GT(dispatch.cost.bytes, 0);
  }
}

/// What kernels need beside gives no name to a choice, nor to what goes into quarantine.
TEST(KernelInLabelTest, IsOneThatTheOperatorHas) {
  const auto kernel = [](Op op, std::string_view label) { return graph::kernel_in_label(graph::operator_of(op), label); };
  EXPECT_EQ(kernel(Op::linear, "linear tiled q4_0"), "tiled");
  EXPECT_EQ(kernel(Op::matmul, "matmul baseline"), "baseline");
  EXPECT_EQ(kernel(Op::expert_linear, "expert_linear half_tiled f16"), "half_tiled");
  for (const auto& [op, label] : {std::pair{Op::expert_linear, "expert tiles"}, {Op::attention, "attention tables"}, {Op::attention, "attention combine"}, {Op::linear, "linear combine"},
                                  {Op::linear, "linear_glu tiled q4_0"}, {Op::linear, "linear"}, {Op::linear, ""}, {Op::linear, "linear "}}) {
    EXPECT_EQ(kernel(op, label), "") << label;
  }
}

/// More than a kernel takes is a bug of an operator, found before it is copied beyond its place.
TEST(LoweringTest, WhatDoesNotFitAKernelIsRefused) {
  OpCase c = linear_case();
  const LoweringOptions options;
  const DeviceCaps caps;
  const std::array<std::byte, 4> push{};
  const auto refused = [&](std::size_t n_constants, std::size_t n_arguments) {
    Lowering lowering(c.graph, caps, options);
    const std::vector<std::uint32_t> constants(n_constants, 7);
    const std::vector<Lowering::Argument> arguments(n_arguments, {kNone, runtime::Access::kRead});
    lowering.emit("made up", runtime::Shader{}, constants, arguments, push, {1, 1, 1}, {}, runtime::Access::kRead);
    const Result<Lowered> lowered = lowering.finish();
    EXPECT_TRUE(lowered.ok() || lowered.status().code() == StatusCode::kInternal);
    return lowered.ok() ? "" : lowered.status().message();
  };
  EXPECT_EQ(refused(12, 7), "");
  EXPECT_EQ(refused(19, 7), "made up: 19 specialization constants but a kernel takes 18");
  EXPECT_EQ(refused(12, 8), "made up: 9 bindings but a kernel takes 8");
}

TEST(LoweringTest, AGraphWithAnErrorIsNotLowered) {
  OpCase c = linear_case();
  c.graph.add(Op::argmax, {kNone});
  EXPECT_EQ(refusal(c, {}, {}), "[argmax] input is missing");
}

}  // namespace
}  // namespace rondo::graph::lowering_test
