#include "tools/rondo/kernels_in_use.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "graph/operator.h"
#include "lib/step_state.h"
#include "models/graph_run.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "tools/check/case_text.h"
#include "tools/check/cases.h"
#include "tools/rondo/kernel_cases.h"

namespace rondo::tools {

namespace {

struct NamedConstant {
  std::string_view shader;
  std::uint32_t index;
  std::string_view name;
};

constexpr NamedConstant kConstants[] = {
#include "constant_names.inc"
};

/// The name of a module without what says that it is for activations in f16.
std::string_view plain_name(runtime::Shader shader) {
  constexpr std::string_view kF16 = "_f16";
  std::string_view name = runtime::shader_name(shader);
  if (name.size() > kF16.size() && name.substr(name.size() - kF16.size()) == kF16) name.remove_suffix(kF16.size());
  return name;
}
bool is_f16_module(runtime::Shader shader) { return plain_name(shader) != runtime::shader_name(shader); }

class Collector {
 public:
  Collector(const runtime::DeviceCaps& caps, const std::map<std::string, std::string, std::less<>>& forced) : caps_(caps) { options_.lowering.forced_kernels = forced; }

  /// Adds the pipelines of a graph of one operator, whether activations may be rounded or not. What the device can't hold, or a forced
  /// kernel can't do, it does not run.
  void add(const graph::Graph& graph, bool fusion) {
    for (const Activations activations : {Activations::kF32, Activations::kAuto}) {
      options_.lowering.activations = activations;
      add_one(graph, fusion);
    }
  }

  /// From now on the device has so many cores, which tiles are chosen by.
  void set_cores(std::uint32_t cores) { options_.lowering.cores = cores; }

  std::vector<KernelInUse> take() { return std::move(found_); }

 private:
  void add_one(graph::Graph graph, bool fusion) {
    options_.lowering.fusion = fusion;
    const Result<models::GraphPlan> plan = models::plan_graph(graph, caps_, options_);
    if (!plan.ok()) return;
    const runtime::Program& program = plan->lowered.program;
    for (const runtime::Dispatch& dispatch : program.dispatches) {
      const runtime::Kernel& kernel = program.kernels[dispatch.kernel];
      if (std::any_of(found_.begin(), found_.end(), [&](const KernelInUse& one) { return one.kernel == kernel; })) continue;
      found_.push_back({(is_f16_module(kernel.shader) ? "f16 " : "") + dispatch.label, kernel, dispatch.cost.loops});
    }
  }

  const runtime::DeviceCaps& caps_;
  models::GraphRunOptions options_;
  std::vector<KernelInUse> found_;
};

/// An RMS norm that the linears around it may compute: no operator of its own, but other pipelines of theirs.
graph::Graph norm_between_linears(graph::Type type, std::int64_t rows) {
  constexpr std::int64_t kWidth = 2048;
  graph::Graph graph;
  graph.state = graph.tensor(graph.add_tensor("state", graph::StorageKind::kStep, graph::Type::kI32, {1, RONDO_STATE_WORDS})).storage;
  const auto f32 = [&](const char* name, const graph::Shape& shape) { return graph.add_tensor(name, graph::StorageKind::kInput, graph::Type::kF32, shape); };
  const auto weight = [&](const char* name, std::int64_t outputs) { return graph.add_weight(name, type, {outputs, kWidth}); };
  const graph::TensorId residual = graph.add(graph::Op::linear, {f32("input", {rows, kWidth}), weight("first", kWidth), f32("residual", {rows, kWidth})});
  const graph::TensorId norm = graph.add(graph::Op::rms_norm, {residual, f32("gains", {kWidth})});
  graph.add(graph::Op::linear, {norm, weight("second", kWidth)});
  const graph::TensorId ups = graph.add(graph::Op::linear_glu, {norm, weight("third", 2 * kWidth)}, graph::GluAttributes{});
  graph.add(graph::Op::linear, {ups, weight("fourth", kWidth), residual});
  return graph;
}

/// A linear that turns the queries and keys that it makes of a norm, as heads of 64.
graph::Graph rotation_behind_linear(graph::Type type, graph::RopeStyle style, std::int64_t rows) {
  constexpr std::int64_t kHeads = 32, kKvHeads = 8, kHeadDim = 64, kWidth = kHeads * kHeadDim, kContext = 4096;
  graph::Graph graph;
  const graph::TensorId state = graph.add_tensor("state", graph::StorageKind::kStep, graph::Type::kI32, {1, RONDO_STATE_WORDS});
  graph.state = graph.tensor(state).storage;
  graph::StepBeginAttributes step;
  step.rows = rows;
  graph.add(graph::Op::step_begin, {graph.add_tensor("tokens", graph::StorageKind::kStep, graph::Type::kI32, {1, kContext}), state}, step);
  const std::vector<graph::TensorId> begun = graph.last_outputs();
  const graph::TensorId positions = begun[1], start = begun[2], count = begun[3];
  const auto f32 = [&](const char* name, const graph::Shape& shape) { return graph.add_tensor(name, graph::StorageKind::kInput, graph::Type::kF32, shape); };
  const auto linear = [&](const char* name, graph::TensorId input, std::int64_t outputs) { return graph.add(graph::Op::linear, {input, graph.add_weight(name, type, {outputs, kWidth})}); };
  const graph::TensorId norm = graph.add(graph::Op::rms_norm, {linear("first", f32("input", {1, rows, kWidth}), kWidth), f32("gains", {kWidth})});
  const graph::TensorId made = linear("second", norm, (kHeads + 2 * kKvHeads) * kHeadDim);
  const auto heads = [&](std::int64_t first, std::int64_t n) {
    return graph.transpose(graph.reshape(graph.slice(made, 2, first * kHeadDim, (first + n) * kHeadDim), {1, rows, n, kHeadDim}), {0, 2, 1, 3});
  };
  const auto cache = [&](const char* name) { return graph.add_cache(name, graph::StorageKind::kCache, graph::Type::kF16, {1, kKvHeads, kContext, kHeadDim}); };
  graph::RopeAttributes rope;
  rope.style = style;
  rope.max_position = kContext;
  graph.add(graph::Op::rope, {heads(0, kHeads), positions}, rope);
  const graph::TensorId key = graph.add(graph::Op::rope, {heads(kHeads, kKvHeads), positions}, rope);
  graph.add(graph::Op::kv_write, {cache("keys"), key, start, count}, graph::KvWriteAttributes{});
  graph.add(graph::Op::kv_write, {cache("values"), heads(kHeads + kKvHeads, kKvHeads), start, count}, graph::KvWriteAttributes{});
  return graph;
}

}  // namespace

Result<std::vector<KernelInUse>> kernels_in_use(const runtime::DeviceCaps& caps, const std::map<std::string, std::string, std::less<>>& forced) {
  Collector collector(caps, forced);
  for (const KernelCase& one : kernel_cases("", true)) {
    if (one.kernel == graph::operator_of(one.op).kernels[0]) collector.add(build_case(one).graph, false);  // which kernel is the device's choice
  }
  const auto add_case = [&](const std::string& text) -> Status {
    RONDO_ASSIGN(const check::CaseText parsed, check::parse_case(text));
    if (!caps.storage16 && check::has_f16_activations(parsed)) return {};
    RONDO_ASSIGN(check::OpCase built, check::build_case(parsed, check::Values::kRandom, 1));
    collector.add(std::move(built.graph), false);
    return {};
  };
  for (const std::string& text : check::all_cases(false)) RONDO_TRY(add_case(text));
  for (const graph::Type type : {graph::Type::kF16, graph::Type::kQ8_0, graph::Type::kQ4_0, graph::Type::kQ4_K, graph::Type::kQ6_K, graph::Type::kIQ4_NL}) collector.add(norm_between_linears(type, 1), true);
  collector.add(norm_between_linears(graph::Type::kQ8_0, 8), true);
  for (const graph::Type type : {graph::Type::kF16, graph::Type::kQ8_0, graph::Type::kQ4_0, graph::Type::kQ4_K}) collector.add(rotation_behind_linear(type, graph::RopeStyle::kHalf, 1), true);
  collector.add(rotation_behind_linear(graph::Type::kQ8_0, graph::RopeStyle::kHalf, 8), true);
  collector.add(rotation_behind_linear(graph::Type::kQ8_0, graph::RopeStyle::kInterleaved, 1), true);
  // The largest tiles, which devices of this kind with other numbers of cores have; of the types that models have most.
  collector.set_cores(1);
  constexpr graph::Type kUsual[] = {graph::Type::kF32, graph::Type::kF16, graph::Type::kQ8_0, graph::Type::kQ4_0, graph::Type::kQ4_K, graph::Type::kQ6_K};
  for (const KernelCase& one : kernel_cases("linear", true)) {
    if ((one.op != graph::Op::linear && one.op != graph::Op::linear_glu) || one.kernel != graph::operator_of(one.op).kernels[0] || one.rows != 512 || !one.model->large) continue;
    if (std::find(std::begin(kUsual), std::end(kUsual), one.type) != std::end(kUsual)) collector.add(build_case(one).graph, false);
  }
  for (const char* text : {"matmul a (512, 128), b (512, 128), transpose_b", "matmul a (512, 512), b (512, 128)", "matmul a (512, 127), b (512, 127), transpose_b", "attention query (1, 8, 512, 256), key f16 (1, 2, 512, 256), value f16 (1, 2, 512, 256), causal"}) RONDO_TRY(add_case(text));
  return collector.take();
}

std::string constant_name(runtime::Shader shader, std::uint32_t index) {
  for (const NamedConstant& constant : kConstants) {
    if (constant.shader == plain_name(shader) && constant.index == index) return std::string(constant.name);
  }
  return index == 0 ? "workgroup_width" : fmt::format("constant_{}", index);
}

}  // namespace rondo::tools
