#include "tools/rondo/graph_info.h"

#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "graph/operator.h"
#include "models/formats/graph_file.h"
#include "models/graph_run.h"
#include "models/printable.h"
#include "runtime/fmt.h"
#include "tools/rondo/eval_graph.h"
#include "tools/rondo/profiles.h"

namespace rondo::tools {

namespace {

using nlohmann::json;

struct TensorRow {
  std::string name, type, shape;
  std::uint64_t bytes = 0;  ///< on the device
};

struct GraphReport {
  std::string path, device;
  std::map<std::string, std::size_t> operators;
  std::vector<TensorRow> inputs, outputs;
  std::uint64_t weight_bytes = 0, other_bytes = 0, activation_bytes = 0, unaliased_activation_bytes = 0, device_bytes = 0;
  std::size_t n_kernels = 0, n_dispatches = 0;
};

Result<GraphReport> make_report(const GlobalFlags& flags, const InfoFlags& own) {
  RONDO_ASSIGN(const ByteSource description, open_file(own.graph));
  RONDO_ASSIGN(const std::vector<ByteSource> inputs, open_inputs(own.inputs));
  RONDO_ASSIGN(models::GraphFile file, models::open_graph_file(description, inputs));
  RONDO_ASSIGN(const std::optional<DeviceProfile> profile, find_profile(flags.as.empty() ? "baseline" : flags.as));
  GraphReport report;
  report.path = own.graph;
  report.device = profile->name();
  for (const graph::Node& node : file.graph.nodes()) ++report.operators[graph::operator_of(node.op).name];
  for (const models::StoredInput& stored : file.inputs) {
    if (!stored.fixed) report.inputs.push_back({models::printable(stored.input.name), stored.input.type.name, to_string(stored.input.shape), file.graph.storage(stored.storage).size_bytes});
  }
  for (const models::GraphFile::Output& output : file.outputs) {
    const graph::Tensor& tensor = file.graph.tensor(output.tensor);
    report.outputs.push_back({models::printable(output.name), graph::type_name(tensor.type), to_string(tensor.shape), file.graph.storage(tensor.storage).size_bytes});
  }
  for (std::size_t i = 0; i < file.graph.n_storages(); ++i) {
    const graph::Storage& storage = file.graph.storage(static_cast<graph::StorageId>(i));
    if (storage.kind == graph::StorageKind::kWeight) report.weight_bytes += storage.size_bytes;
    else if (storage.kind != graph::StorageKind::kActivation) report.other_bytes += storage.size_bytes;
  }
  models::GraphRunOptions options;
  options.lowering.fusion = !flags.no_fusion;
  options.lowering.forced_kernels = flags.model_options().kernels;
  options.lowering.activations = flags.graph_activations();
  RONDO_ASSIGN(const models::GraphPlan plan, models::plan_graph(file.graph, profile->internal(), options));
  report.activation_bytes = plan.lowered.activation_bytes;
  report.unaliased_activation_bytes = plan.lowered.unaliased_activation_bytes;
  for (const std::uint64_t bytes : plan.buffer_bytes) report.device_bytes += runtime::allocated_bytes(bytes);
  report.n_kernels = plan.lowered.program.kernels.size();
  report.n_dispatches = plan.lowered.program.dispatches.size();
  return report;
}

std::string as_json(const GraphReport& report) {
  const auto rows = [](const std::vector<TensorRow>& tensors) {
    json all = json::array();
    for (const TensorRow& row : tensors) all.push_back({{"name", row.name}, {"type", row.type}, {"shape", row.shape}, {"bytes", row.bytes}});
    return all;
  };
  return json{{"file", report.path},
              {"operators", report.operators},
              {"inputs", rows(report.inputs)},
              {"outputs", rows(report.outputs)},
              {"plan",
               {{"device", report.device},
                {"kernels", report.n_kernels},
                {"dispatches", report.n_dispatches},
                {"weight_bytes", report.weight_bytes},
                {"other_bytes", report.other_bytes},
                {"activation_bytes", report.activation_bytes},
                {"unaliased_activation_bytes", report.unaliased_activation_bytes},
                {"device_bytes", report.device_bytes}}}}
      .dump(1, ' ', false, json::error_handler_t::replace);
}

void print_text(const GraphReport& report) {
  std::size_t n = 0;
  for (const auto& [name, count] : report.operators) n += count;
  fmt::print("{}: {} operators\n", report.path, n);
  for (const auto& [name, count] : report.operators) fmt::print("  {:<22} {:>5}\n", name, count);
  const auto print = [](const char* what, const std::vector<TensorRow>& rows) {
    fmt::print("\n{}\n", what);
    for (const TensorRow& row : rows) fmt::print("  {:<32} {:<6} {:<24} {:>12} bytes\n", row.name, row.type, row.shape, row.bytes);
  };
  print("inputs that are read, as they lie on the device", report.inputs);
  print("outputs", report.outputs);
  fmt::print("\nmemory plan: device profile {}, {} dispatches of {} kernels\n", report.device, report.n_dispatches, report.n_kernels);
  const auto line = [](const char* what, std::uint64_t bytes, const std::string& more) { fmt::print("  {:<12} {:>14} bytes{}{}\n", what, bytes, more.empty() ? "" : "  ", more); };
  line("weights", report.weight_bytes, "");
  line("others", report.other_bytes, "inputs, outputs, caches, tables");
  line("activations", report.activation_bytes, fmt::format("{} before aliasing", report.unaliased_activation_bytes));
  line("in all", report.device_bytes, "of device memory, with alignment");
}

}  // namespace

int run_graph_info(const GlobalFlags& flags, const InfoFlags& own) {
  if (own.ctx > 0) return report("--ctx is about models, and --graph is a file of operators", kUsage);
  const Result<GraphReport> made = make_report(flags, own);
  if (!made.ok()) return report(made.status());
  if (own.json) fmt::print("{}\n", as_json(*made));
  else print_text(*made);
  return kDone;
}

}  // namespace rondo::tools
