#include "tools/simulator/case_run.h"

#include <algorithm>
#include <cstring>

#include "models/graph_run.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "tools/simulator/shader_sources.h"

namespace rondo::simulator {

namespace {

/// Whether a NaN or infinity goes in.
bool has_special_numbers(const check::OpCase& op) {
  for (std::size_t i = 0; i < op.graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::Storage& storage = op.graph.storage(id);
    const bool f32 = storage.type == graph::Type::kF32, f16 = storage.type == graph::Type::kF16;
    if ((storage.kind != graph::StorageKind::kInput && storage.kind != graph::StorageKind::kCache) || (!f32 && !f16)) continue;
    const std::vector<std::byte> bytes = op.before(id);
    const std::size_t size = f32 ? 4 : 2;
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes.data() + at, size);
      const std::uint32_t exponent = f32 ? 0x7f800000u : 0x7c00u;
      if ((word & exponent) == exponent) return true;
    }
  }
  return false;
}

}  // namespace

ModuleCache::ModuleCache(Loops loops, std::string spirv_tools) : source_(shader_with_lines), loops_(loops), spirv_tools_(std::move(spirv_tools)) {}

Result<const Module*> ModuleCache::find_or_read(const runtime::Kernel& kernel, std::uint32_t subgroup_size) {
  const std::vector<std::uint32_t> constants(kernel.constants.begin(), kernel.constants.begin() + kernel.n_constants);
  std::unique_ptr<Module>& found = modules_[{kernel.shader, constants, subgroup_size}];
  if (!found) {
    RONDO_ASSIGN(Module module, read_module(source_(kernel.shader), {constants, subgroup_size, spirv_tools_, loops_}, runtime::shader_name(kernel.shader)));
    found = std::make_unique<Module>(std::move(module));
  }
  return found.get();
}

Status simulate_program(ModuleCache& modules, const runtime::Program& program, std::span<Buffer> buffers, std::uint32_t subgroup_size, bool expects_nan, const OnDispatch& on_dispatch) {
  for (const runtime::Dispatch& dispatch : program.dispatches) {
    const runtime::Kernel& kernel = program.kernels[dispatch.kernel];
    const std::uint32_t lanes = kernel.subgroup_size ? kernel.subgroup_size : subgroup_size;
    RONDO_ASSIGN(const Module* module, modules.find_or_read(kernel, lanes));
    Launch launch;
    launch.subgroup_size = lanes;
    launch.grid = dispatch.grid;
    launch.push = dispatch.push;
    launch.expects_nan = expects_nan;
    for (const runtime::Binding& binding : dispatch.bindings) launch.bindings.push_back({binding.range.buffer, binding.range.offset_bytes, binding.range.size_bytes});
    const Result<Report> report = simulate(*module, buffers, launch);
    if (!report.ok()) return report.status().with_prefix(dispatch.label);
    if (on_dispatch) on_dispatch({dispatch, *module, *report, {}});
  }
  return {};
}

Result<check::DeviceRun> simulate_case(ModuleCache& modules, const check::OpCase& op, const check::RunOptions& options, const runtime::DeviceCaps& caps, std::uint32_t subgroup_size, const OnDispatch& on_dispatch) {
  RONDO_TRY(Status(op.graph.status()));
  models::GraphRunOptions lowering;
  lowering.lowering.fusion = options.fusion;
  lowering.lowering.forced_kernels = options.kernels;
  lowering.lowering.measured = options.preferred;
  lowering.lowering.activations = options.activations;
  graph::Graph graph = op.graph;
  RONDO_ASSIGN(models::GraphPlan plan, models::plan_graph(graph, caps, lowering));

  std::vector<Buffer> buffers;
  for (const std::uint64_t bytes : plan.buffer_bytes) buffers.push_back({graph::poison_bytes(bytes), std::vector<std::uint8_t>(bytes)});
  for (std::size_t i = 0; i < op.graph.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    const graph::Storage& storage = graph.storage(id);
    if (storage.kind == graph::StorageKind::kActivation) continue;
    Buffer& buffer = buffers[storage.place.buffer];
    const std::vector<std::byte> content = op.before(id);
    std::memcpy(buffer.bytes.data() + storage.place.offset_bytes, content.data(), content.size());
    if (storage.kind != graph::StorageKind::kOutput) std::fill_n(buffer.written.begin() + static_cast<std::ptrdiff_t>(storage.place.offset_bytes), content.size(), std::uint8_t{1});
  }
  const auto kind_of = [&](const runtime::BufferRange& range) {
    for (std::size_t i = 0; i < graph.n_storages(); ++i) {
      const graph::Storage& storage = graph.storage(static_cast<graph::StorageId>(i));
      if (storage.place.buffer == range.buffer && storage.place.offset_bytes <= range.offset_bytes && range.offset_bytes < storage.place.offset_bytes + std::max<std::uint64_t>(storage.size_bytes, 1) && storage.kind != graph::StorageKind::kActivation) return storage.kind;
    }
    return graph::StorageKind::kActivation;
  };
  RONDO_TRY(simulate_program(modules, plan.lowered.program, buffers, subgroup_size, has_special_numbers(op), [&](SimulatedDispatch done) {
    for (const runtime::Binding& binding : done.dispatch.bindings) done.kinds.push_back(kind_of(binding.range));
    if (on_dispatch) on_dispatch(done);
  }));

  check::DeviceRun run;
  run.after.resize(op.graph.n_storages());
  for (std::size_t i = 0; i < op.graph.n_storages(); ++i) {
    const graph::Storage& storage = graph.storage(static_cast<graph::StorageId>(i));
    if (storage.kind == graph::StorageKind::kActivation) continue;
    const std::byte* const first = buffers[storage.place.buffer].bytes.data() + storage.place.offset_bytes;
    run.after[i].assign(first, first + (storage.size_bytes + 3) / 4 * 4);
  }
  run.program = std::move(plan.lowered.program);
  return run;
}

runtime::DeviceCaps simulated_caps(std::uint32_t subgroup_size, bool cpu, bool matrices) {
  runtime::DeviceCaps caps;
  caps.name = fmt::format("simulator of {} lanes", subgroup_size);
  caps.driver = "simulator";
  caps.type = cpu ? runtime::DeviceType::kCpu : runtime::DeviceType::kDiscrete;
  caps.max_storage_range_bytes = caps.max_allocation_bytes = std::uint64_t{1} << 31;
  caps.memory_budget_bytes = std::uint64_t{1} << 33;
  caps.storage_offset_alignment = 16;
  caps.max_invocations = 1024;
  caps.max_shared_bytes = 32768;
  caps.min_subgroup_size = caps.max_subgroup_size = subgroup_size;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = subgroup_size;
  caps.subgroup_shuffle = caps.subgroup_arithmetic = caps.storage16 = caps.device_scope = caps.integer_dot = caps.float16 = true;
  caps.half_dot = matrices;
  caps.fused_fma = !cpu;
  if (matrices && subgroup_size >= 8) caps.matrices = {subgroup_size < 32 ? runtime::MatrixShape{8, subgroup_size, 16} : runtime::MatrixShape{16, 16, 16}};  // as Intel's and others'
  caps.columns_in_lanes = subgroup_size < 32;  // where elements lie here (MatrixPlace)
  return caps;
}

}  // namespace rondo::simulator
