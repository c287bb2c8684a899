// rondo graph: the Program that a step of a model is lowered to. With --as it needs no Vulkan.
#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "graph/lowering.h"
#include "models/formats/graph_file.h"
#include "models/graph_run.h"
#include "models/memory_plan.h"
#include "models/printable.h"
#include "models/tuning.h"
#include "runtime/device.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "tools/rondo/eval_graph.h"
#include "tools/rondo/predict.h"
#include "tools/rondo/profiles.h"
#include "tools/rondo/quarantine_file.h"
#include "tools/rondo/subcommands.h"
#include "tools/rondo/tuning_file.h"

namespace rondo::tools {

namespace {

using nlohmann::json;

/// A lowered step with all that is printed of it.
struct StepReport {
  std::string step;
  std::int64_t rows = 0;  ///< 0: of a graph file, which has neither rows nor a context
  std::uint32_t n_ctx = 0;
  graph::Type kv_type = graph::Type::kF16;
  runtime::DeviceCaps caps;
  models::MemoryPlan memory;
  runtime::BufferRange state;  ///< the step state's
  graph::Lowered lowered;
  std::vector<runtime::Segment> segments;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> tensors;  ///< names of what lies at (buffer, offset)

  const runtime::Program& program() const { return lowered.program; }
  const std::string& buffer(const runtime::BufferRange& range) const { return memory.slots[range.buffer].name; }
  /// The weight, cache or table that the range is, or "".
  std::string tensor(const runtime::BufferRange& range) const {
    const auto found = tensors.find({range.buffer, range.offset_bytes});
    return found == tensors.end() ? "" : found->second;
  }
  double predict_ns(const runtime::Dispatch& dispatch) const { return graph::predict_ns(dispatch.cost, caps); }
};

/// Sums over all dispatches.
struct Totals {
  std::size_t n_barriers = 0;
  double bytes = 0, flops = 0, predicted_ns = 0;

  explicit Totals(const StepReport& report) {
    for (const runtime::Dispatch& dispatch : report.program().dispatches) {
      n_barriers += dispatch.barrier_before ? 1 : 0;
      bytes += dispatch.cost.bytes;
      flops += dispatch.cost.flops;
      predicted_ns += report.predict_ns(dispatch);
    }
  }
};

const char* access_name(runtime::Access access) {
  switch (access) {
    case runtime::Access::kRead: return "read";
    case runtime::Access::kWrite: return "write";
    default: return "read and write";
  }
}

/// What a step is lowered for.
struct Target {
  runtime::DeviceCaps caps;
  models::PlanOptions options;
};

/// The profile's caps, which need no device, or those of the device that the flags choose, and its quarantine.
Result<Target> find_target(const GlobalFlags& flags) {
  RONDO_ASSIGN(const std::optional<DeviceProfile> profile, find_profile(flags.as));
  Target target;
  target.options = flags.model_options();
  if (profile) {
    for (const auto& [flag, setting] : {std::pair("--quarantine", &flags.quarantine), std::pair("--tuning", &flags.tuning)}) {
      if (!setting->empty() && *setting != "none") return Status(StatusCode::kInvalidArgument, fmt::format("{} is about a device, and graph --as uses none", flag));
    }
    target.caps = profile->internal();
    return target;
  }
  const auto with_advice = [](const Status& status) {
    return Status(status.code(), fmt::format("{}; --as baseline needs no device", status.message()));
  };
  const Result<Instance> instance = open_instance(flags);
  if (!instance.ok()) return with_advice(instance.status());
  const Result<Device> device = open_device(flags, *instance);
  if (!device.ok()) return with_advice(device.status());
  target.caps = device->internal().caps();
  RONDO_ASSIGN(target.options.quarantine, QuarantineFile(*device, flags.quarantine, flags.pipeline_cache).load(false));
  RONDO_ASSIGN(const std::string tuning, TuningFile(*device, flags).load());
  target.options.tuned = models::tuned_kernels(device->internal(), tuning);
  return target;
}

Result<StepReport> lower_step(const GlobalFlags& flags, const GraphFlags& own) {
  RONDO_ASSIGN(ByteSource source, open_model(own.model, own.open));
  RONDO_ASSIGN(const std::unique_ptr<const models::Checkpoint> checkpoint, models::open_checkpoint(std::move(source)));
  const models::Network& network = checkpoint->network;
  const std::uint32_t most = network.facts.context ? network.facts.context : network.facts.image_rows;
  if (own.ctx > most || (own.ctx > 0 && network.facts.context == 0)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("--ctx is {} but {} was made for {}", own.ctx, own.model, most));
  }
  const bool decodes = network.find(models::Role::kDecode), images = !decodes && !network.find(models::Role::kEncode);
  if (own.step == "encode" && decodes && network.facts.source_context == 0) return Status(StatusCode::kUnsupported, fmt::format("--step encode is of networks that encode, which a {} does not", network.facts.architecture));
  StepReport report;
  RONDO_ASSIGN(const Target target, find_target(flags));
  report.caps = target.caps;
  const models::PlanOptions& options = target.options;
  report.step = decodes ? own.step : "encode";  // the only one that an encoder has
  report.n_ctx = own.ctx ? own.ctx : decodes ? models::default_context(network) : images ? network.facts.image_rows : models::default_text(network);
  report.kv_type = models::kv_type_of(options);
  report.rows = 1;
  if (own.step == "prefill") {
    report.rows = own.rows;
    if (own.rows == 0) {  // the largest that a session records
      for (const models::StepKind& kind : models::step_kinds(network, report.caps, report.n_ctx)) report.rows = std::max(report.rows, kind.rows);
    }
  }
  models::StepKind kind{report.rows == 1 ? models::Role::kDecode : models::Role::kPrefillAndSample, report.rows};
  if (report.step == "encode") {
    const std::uint32_t longest = decodes ? models::default_source(network) : report.n_ctx;
    report.rows = images ? longest : std::min(own.rows ? own.rows : longest, longest);
    kind = {decodes ? models::Role::kEncode : images ? models::Role::kPoolImage : models::Role::kPool, report.rows};
  }
  RONDO_ASSIGN(const models::WeightPlan weights, models::plan_weights(*checkpoint, report.caps));
  RONDO_ASSIGN(models::SessionPlan plan, decodes ? models::plan_session(network, weights, report.caps, options, report.n_ctx, {&kind, 1}, 1, models::default_source(network))
                                                 : models::plan_encoder(network, weights, report.caps, options, {1, report.n_ctx, Pooling::kModel, false}, {&kind, 1}));
  const auto name = [&](std::span<const graph::StoragePiece> pieces, const std::string& what) {
    for (const graph::StoragePiece& piece : pieces) {
      const std::string which = pieces.size() == 1 ? "" : fmt::format(" [{}, {})", piece.first, piece.first + piece.count);
      report.tensors[{piece.place.buffer, piece.place.offset_bytes}] = what + which;
    }
  };
  for (std::size_t i = 0; i < network.blocks.size(); ++i) {
    std::string parts;
    for (const models::WeightPart& part : network.blocks[i].parts) parts += (parts.empty() ? "" : " + ") + part.tensor;
    name(weights.pieces[i], parts);
  }
  for (std::size_t i = 0; i < plan.places.caches.size(); ++i) {
    name(plan.places.caches[i].keys, network.caches[i].name + " keys");
    name(plan.places.caches[i].values, network.caches[i].name + " values");
  }
  for (const models::SessionPlan::Constant& constant : plan.constants) report.tensors[{constant.place.buffer, constant.place.offset_bytes}] = constant.name;
  report.state = report.step == "encode" ? plan.places.source_state : plan.places.state;
  report.memory = std::move(plan.memory);
  report.lowered = std::move(plan.steps[0].lowered);
  report.segments = graph::cut_segments(report.program(), report.caps, flags.session_options().max_segment_us * 1000);
  return report;
}

/// A graph file: `slots` are the buffers that a run has.
Result<StepReport> lower_file(const GlobalFlags& flags, const GraphFlags& own) {
  RONDO_ASSIGN(const ByteSource description, open_file(own.graph));
  RONDO_ASSIGN(const std::vector<ByteSource> inputs, open_inputs(own.inputs));
  RONDO_ASSIGN(models::GraphFile file, models::open_graph_file(description, inputs));
  StepReport report;
  RONDO_ASSIGN(const Target target, find_target(flags));
  report.caps = target.caps;
  report.step = "graph";
  models::GraphRunOptions options;
  options.lowering = models::lowering_options(target.options, 0);
  RONDO_ASSIGN(models::GraphPlan plan, models::plan_graph(file.graph, report.caps, options));
  for (const std::uint64_t size_bytes : plan.buffer_bytes) {
    const std::size_t n = report.memory.slots.size();
    report.memory.add(n == 0 ? std::string("activations") : fmt::format("tensors {}", n), size_bytes);
  }
  for (std::size_t i = 0; i < file.graph.n_storages(); ++i) {
    const graph::Storage& storage = file.graph.storage(static_cast<graph::StorageId>(i));
    if (storage.kind != graph::StorageKind::kActivation) report.tensors[{storage.place.buffer, storage.place.offset_bytes}] = models::printable(storage.name);
  }
  report.state = file.graph.storage(file.graph.state).place;
  report.lowered = std::move(plan.lowered);
  report.segments = graph::cut_segments(report.program(), report.caps, flags.session_options().max_segment_us * 1000);
  return report;
}

json dispatch_json(const StepReport& report, std::size_t index) {
  const runtime::Dispatch& dispatch = report.program().dispatches[index];
  json bindings = json::array();
  for (const runtime::Binding& binding : dispatch.bindings) {
    const std::string tensor = report.tensor(binding.range);
    bindings.push_back({{"buffer", report.buffer(binding.range)},
                        {"tensor", tensor.empty() ? json() : json(tensor)},
                        {"offset_bytes", binding.range.offset_bytes},
                        {"size_bytes", binding.range.size_bytes},
                        {"access", access_name(binding.access)}});
  }
  return {{"index", index},
          {"label", dispatch.label},
          {"kernel", dispatch.kernel},
          {"grid", dispatch.grid},
          {"bindings", bindings},
          {"push_bytes", dispatch.push.size()},
          {"barrier_before", dispatch.barrier_before},
          {"bytes", dispatch.cost.bytes},
          {"flops", dispatch.cost.flops},
          {"predicted_ns", report.predict_ns(dispatch)}};
}

std::string as_json(const StepReport& report) {
  const runtime::Program& program = report.program();
  json kernels = json::array(), dispatches = json::array(), segments = json::array(), buffers = json::array();
  for (const runtime::Kernel& kernel : program.kernels) {
    const std::vector<std::uint32_t> constants(kernel.constants.begin(), kernel.constants.begin() + kernel.n_constants);
    kernels.push_back({{"shader", runtime::shader_name(kernel.shader)}, {"constants", constants}, {"subgroup_size", kernel.subgroup_size}, {"n_bindings", kernel.n_bindings}, {"push_bytes", kernel.push_bytes}});
  }
  for (std::size_t i = 0; i < program.dispatches.size(); ++i) dispatches.push_back(dispatch_json(report, i));
  for (const runtime::Segment& segment : report.segments) segments.push_back({{"first", segment.first}, {"last", segment.last}, {"predicted_ns", segment.cost_ns}});
  for (const models::Slot& buffer : report.memory.slots) {
    if (buffer.size_bytes) buffers.push_back({{"name", buffer.name}, {"size_bytes", buffer.size_bytes}});
  }
  const Totals totals(report);
  const bool of_model = report.rows != 0;
  return json{{"device", report.caps.name},
              {"step", report.step},
              {"rows", of_model ? json(report.rows) : json()},
              {"n_ctx", of_model ? json(report.n_ctx) : json()},
              {"kv_type", of_model ? json(graph::type_name(report.kv_type)) : json()},
              {"kernels", kernels},
              {"dispatches", dispatches},
              {"segments", segments},
              {"buffers", buffers},
              {"totals",
               {{"kernels", program.kernels.size()},
                {"dispatches", program.dispatches.size()},
                {"barriers", totals.n_barriers},
                {"segments", report.segments.size()},
                {"bytes", totals.bytes},
                {"flops", totals.flops},
                {"predicted_ns", totals.predicted_ns},
                {"activation_bytes", report.lowered.activation_bytes},
                {"unaliased_activation_bytes", report.lowered.unaliased_activation_bytes}}}}
      .dump(1, ' ', false, json::error_handler_t::replace);
}

void print_text(const StepReport& report) {
  const runtime::Program& program = report.program();
  if (report.rows == 0) fmt::print("a graph file for {}\n\nkernels\n", report.caps.name);
  else fmt::print("{} of {} rows, context of {} tokens, KV cache {}, for {}\n\nkernels\n", report.step, report.rows, report.n_ctx, graph::type_name(report.kv_type), report.caps.name);
  for (std::size_t i = 0; i < program.kernels.size(); ++i) {
    const runtime::Kernel& kernel = program.kernels[i];
    fmt::print("{:>4} {}  constants ({})  {} bindings  {} bytes of push constants\n", i, runtime::shader_name(kernel.shader),
               fmt::join(std::span(kernel.constants).first(kernel.n_constants), ", "), kernel.n_bindings, kernel.push_bytes);
  }
  fmt::print("\ndispatches\n");
  for (std::size_t i = 0; i < program.dispatches.size(); ++i) {
    const runtime::Dispatch& dispatch = program.dispatches[i];
    if (dispatch.barrier_before) fmt::print("     barrier\n");
    fmt::print("{:>4} {}  kernel {}  grid {} x {} x {}  push {}  {:.1f} us\n", i, dispatch.label, dispatch.kernel, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2],
               dispatch.push.size(), report.predict_ns(dispatch) / 1e3);
    for (const runtime::Binding& binding : dispatch.bindings) {
      const std::string tensor = report.tensor(binding.range);
      fmt::print("       {:<14} {} + {}, {} bytes{}\n", access_name(binding.access), report.buffer(binding.range), binding.range.offset_bytes, binding.range.size_bytes,
                 tensor.empty() ? "" : fmt::format("  ({})", tensor));
    }
  }
  fmt::print("\nsegments\n");
  for (std::size_t i = 0; i < report.segments.size(); ++i) {
    const runtime::Segment& segment = report.segments[i];
    fmt::print("{:>4} dispatches {} to {}  {:.1f} us\n", i, segment.first, segment.last - 1, segment.cost_ns / 1e3);
  }
  fmt::print("\nbuffers\n");
  for (const models::Slot& buffer : report.memory.slots) {
    if (buffer.size_bytes) fmt::print("     {:<14} {:>14} bytes\n", buffer.name, buffer.size_bytes);
  }
  const Totals totals(report);
  fmt::print("\ntotals\n     {} kernels, {} dispatches, {} barriers, {} segments\n", program.kernels.size(), program.dispatches.size(), totals.n_barriers, report.segments.size());
  fmt::print("     {:.0f} bytes moved, {:.0f} operations, {:.1f} us predicted\n", totals.bytes, totals.flops, totals.predicted_ns / 1e3);
  fmt::print("     activations {} bytes, {} before aliasing\n", report.lowered.activation_bytes, report.lowered.unaliased_activation_bytes);
}

/// `text` as a string of the DOT language.
std::string dot_string(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += (c >= 0 && c < ' ') ? ' ' : c;
  }
  return quoted + '"';
}

bool overlap(const runtime::BufferRange& a, const runtime::BufferRange& b) {
  return a.buffer == b.buffer && a.offset_bytes < b.offset_bytes + b.size_bytes && b.offset_bytes < a.offset_bytes + a.size_bytes;
}

/// Edges from the last dispatch that wrote some of what another reads. The step state is left out: nearly all read it.
void print_dot_edges(const std::vector<runtime::Dispatch>& dispatches, const StepReport& report) {
  for (std::size_t to = 0; to < dispatches.size(); ++to) {
    std::map<std::size_t, std::string> buffers_by_writer;
    for (const runtime::Binding& read : dispatches[to].bindings) {
      if (read.access == runtime::Access::kWrite || read.range == report.state) continue;
      for (std::size_t from = to; from-- > 0;) {
        const auto& bindings = dispatches[from].bindings;
        const bool writes = std::any_of(bindings.begin(), bindings.end(), [&](const runtime::Binding& b) { return b.access != runtime::Access::kRead && overlap(b.range, read.range); });
        if (!writes) continue;
        const std::string tensor = report.tensor(read.range);
        buffers_by_writer[from] = tensor.empty() ? report.buffer(read.range) : tensor;
        break;
      }
    }
    for (const auto& [from, name] : buffers_by_writer) fmt::print("  d{} -> d{} [label={}];\n", from, to, dot_string(name));
  }
}

void print_dot(const StepReport& report) {
  const std::vector<runtime::Dispatch>& dispatches = report.program().dispatches;
  fmt::print("digraph {} {{\n  label={};\n  node [shape=box];\n", dot_string(report.step),
             dot_string(fmt::format("{}{} for {}; bold: after a barrier", report.step, report.rows ? fmt::format(" of {} rows", report.rows) : "", report.caps.name)));
  for (std::size_t s = 0; s < report.segments.size(); ++s) {
    fmt::print("  subgraph cluster_{} {{\n    label=\"segment {}\";\n", s, s);
    for (std::uint32_t i = report.segments[s].first; i < report.segments[s].last; ++i) {
      const runtime::Dispatch& dispatch = dispatches[i];
      fmt::print("    d{} [label={}{}];\n", i,
                 dot_string(fmt::format("{} {} ({} x {} x {}) {:.1f} us", i, dispatch.label, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2], report.predict_ns(dispatch) / 1e3)),
                 dispatch.barrier_before ? ", style=bold" : "");
    }
    fmt::print("  }}\n");
  }
  print_dot_edges(dispatches, report);
  fmt::print("}}\n");
}

/// Dispatches of the same kernel.
struct PredictedKernel {
  std::string label;
  std::size_t n = 0;
  double launch = 0, memory = 0, arithmetic = 0, lines = 0, shared = 0, waits = 0, total = 0;  ///< nanoseconds
  std::map<std::string, std::size_t> bounds;
  bool counted = true;
};

/// In the order of their first dispatches.
std::vector<PredictedKernel> by_kernel(const StepReport& report, std::span<const Prediction> predictions) {
  std::vector<PredictedKernel> kernels;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const std::string& label = report.program().dispatches[i].label;
    auto found = std::find_if(kernels.begin(), kernels.end(), [&](const PredictedKernel& kernel) { return kernel.label == label; });
    if (found == kernels.end()) {
      found = kernels.emplace(found);
      found->label = label;
    }
    const Prediction& one = predictions[i];
    found->n += 1, found->launch += one.launch, found->memory += one.memory, found->arithmetic += one.arithmetic, found->lines += one.lines, found->shared += one.shared, found->waits += one.waits, found->total += one.total();
    found->bounds[one.bound()] += 1;
    found->counted = found->counted && one.counted;
  }
  return kernels;
}

/// What a measured kernel is off by: the prediction without what it waits for the one before, which a trace shows between dispatches, by the measured time.
double off_by(const PredictedKernel& kernel, double measured_ns) { return measured_ns > 0 ? (kernel.total - kernel.launch) / measured_ns : 0; }

void print_prediction(const StepReport& report, std::span<const Prediction> predictions, const std::optional<MeasuredSteps>& measured, bool as_json) {
  const double bound_ns = bandwidth_bound_ns(report.program(), report.caps);
  double total_ns = 0;
  for (const Prediction& one : predictions) total_ns += one.total();
  const std::optional<double> card_ns = find_measured(report.caps, report.memory.weight_bytes, report.rows);
  const std::vector<PredictedKernel> kernels = by_kernel(report, predictions);
  double busy_ns = 0;
  for (const PredictedKernel& kernel : kernels) busy_ns += kernel.total - kernel.launch;
  const auto measured_ns = [&](const PredictedKernel& kernel) {
    if (!measured) return 0.0;
    const auto found = measured->ns_by_kernel.find(kernel.label);
    return found == measured->ns_by_kernel.end() ? 0.0 : found->second;
  };
  if (as_json) {
    json rows = json::array();
    for (const PredictedKernel& kernel : kernels) {
      rows.push_back({{"label", kernel.label}, {"dispatches", kernel.n}, {"ns", kernel.total}, {"launch_ns", kernel.launch}, {"memory_ns", kernel.memory}, {"arithmetic_ns", kernel.arithmetic},
                      {"lines_ns", kernel.lines}, {"shared_ns", kernel.shared}, {"waits_ns", kernel.waits}, {"bounds", kernel.bounds}, {"counted", kernel.counted}});
      if (measured_ns(kernel) > 0) rows.back()["measured_ns"] = measured_ns(kernel), rows.back()["off_by"] = off_by(kernel, measured_ns(kernel));
    }
    const json assumptions = {{"usable_bandwidth", kUsableBandwidth}, {"load_ns", kLoadNs}, {"dispatch_ns", report.caps.dispatch_ns}, {"resident_invocations", kResident}, {"shared_bytes_per_clock", kSharedBytes},
                              {"bytes_per_s", report.caps.bytes_per_s}, {"lanes_per_s", report.caps.lanes_per_s}, {"cores", report.caps.cores}, {"counts", report.caps.counts}};
    json all{{"device", report.caps.name}, {"step", report.step}, {"rows", report.rows}, {"n_ctx", report.n_ctx}, {"ns", total_ns}, {"bandwidth_bound_ns", bound_ns}, {"kernels", rows}, {"assumptions", assumptions}};
    if (card_ns) all["card"] = {{"ns", *card_ns}, {"off_by", total_ns / *card_ns}};
    if (measured) all["measured"] = {{"steps", measured->n}, {"ns", measured->total()}, {"off_by", busy_ns / measured->total()}};
    fmt::print("{}\n", all.dump(1, ' ', false, json::error_handler_t::replace));
    return;
  }
  if (kernels.empty()) return fmt::print("The step has no dispatches.\n");
  fmt::print("| kernel | n | us | launch | memory | arithmetic | lines | shared | waits | bound by |{}\n|:---|---:|---:|---:|---:|---:|---:|---:|---:|:---|{}\n", measured ? " measured | off by |" : "", measured ? "---:|---:|" : "");
  for (const PredictedKernel& kernel : kernels) {
    const auto most = std::max_element(kernel.bounds.begin(), kernel.bounds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string arithmetic = kernel.counted ? fmt::format("{:.1f}", kernel.arithmetic / 1e3) : "not counted";
    const double own_ns = measured_ns(kernel);
    const std::string beside = !measured ? "" : own_ns == 0 ? " - | - |" : fmt::format(" {:.1f} | {:.2f} |", own_ns / 1e3, off_by(kernel, own_ns));
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {} | {:.1f} | {:.1f} | {:.1f} | {} |{}\n", kernel.label, kernel.n, kernel.total / 1e3, kernel.launch / 1e3, kernel.memory / 1e3, arithmetic, kernel.lines / 1e3, kernel.shared / 1e3, kernel.waits / 1e3,
               most->first, beside);
  }
  fmt::print("\n{:.1f} us predicted for {}: {:.2f} times the {:.1f} us that its bytes take at {:.0f} % of the bandwidth\n", total_ns / 1e3, report.caps.name, total_ns / bound_ns, bound_ns / 1e3, 100 * kUsableBandwidth);
  fmt::print("Assumed: {:.0f} GB/s; {} cores, {:.1f} T lanes a second, a cache line and {:.0f} bytes of shared memory a clock and core; {:.1f} us for a dispatch that waits for another; {:.0f} ns for a load, and for each round of a loop\n"
             "that loads tiles; {:.0f} invocations of a core under way at most; {}compilers' counts of {}; the most likely token is drawn.{}\n",
             report.caps.bytes_per_s / 1e9, report.caps.cores, report.caps.lanes_per_s / 1e12, kSharedBytes, report.caps.dispatch_ns / 1e3, kLoadNs, kResident,
             report.caps.matrix_flops_per_s > 0 ? fmt::format("matrix units of {:.0f} Tflop/s, while which nothing else is computed; ", report.caps.matrix_flops_per_s / 1e12) : "", report.caps.counts, card_ns ? fmt::format(" Such a card took {:.1f} us, with kernels of then: predicted are {:.2f} times that.", *card_ns / 1e3, total_ns / *card_ns) : measured ? "" : " No such card has been measured at this.");
  if (!measured) return;
  std::vector<std::string> others;
  for (const auto& [label, ns] : measured->ns_by_kernel) {
    if (std::none_of(kernels.begin(), kernels.end(), [&](const PredictedKernel& kernel) { return kernel.label == label; })) others.push_back(label);
  }
  fmt::print("Measured, {} steps dispatch by dispatch: {:.1f} us; predicted without launches {:.1f} us, {:.2f} times that.{}\n", measured->n, measured->total() / 1e3, busy_ns / 1e3, busy_ns / measured->total(),
             others.empty() ? "" : fmt::format(" Not among those predicted: {}.", fmt::join(others, ", ")));
}

}  // namespace

int run_graph(const GlobalFlags& flags, const GraphFlags& own) {
  if (own.predict && own.format == "dot") return report("--predict prints text or json, not dot", kUsage);
  if (own.step == "decode" && own.rows > 1) return report("--rows is for --step prefill; a decode step takes one", kUsage);
  if (own.model.empty() == own.graph.empty()) return report("graph takes a model or a graph file: one of --model and --graph is required; see rondo graph --help", kUsage);
  if (!own.graph.empty() && !own.model_flag.empty()) return report(fmt::format("{} is about models, and --graph is a file of operators", own.model_flag), kUsage);
  const Result<StepReport> lowered = own.graph.empty() ? lower_step(flags, own) : lower_file(flags, own);
  if (!lowered.ok()) return report(lowered.status());
  if (own.predict) {
    const Result<std::vector<Prediction>> predictions = predict(lowered->program(), lowered->caps);
    if (!predictions.ok()) return report(predictions.status().message(), kUsage);
    std::optional<MeasuredSteps> measured;
    if (!own.measured.empty()) {
      Result<MeasuredSteps> steps = read_measured_steps(own.measured, lowered->program().name);
      if (!steps.ok()) return report(steps.status().with_prefix("--measured"));
      measured = std::move(steps).value();
    }
    print_prediction(*lowered, *predictions, measured, own.format == "json");
    return kDone;
  }
  if (own.format == "json") fmt::print("{}\n", as_json(*lowered));
  else if (own.format == "dot") print_dot(*lowered);
  else print_text(*lowered);
  return kDone;
}

}  // namespace rondo::tools
