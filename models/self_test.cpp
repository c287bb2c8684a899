#include "models/self_test.h"

#include <algorithm>
#include <set>

#include "graph/compare.h"
#include "graph/interpreter.h"
#include "models/self_test_cases.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"

namespace rondo::models {

namespace {

/// A kernel of so little work that runs longer hangs.
constexpr std::uint64_t kLongestWaitNs = 20'000'000'000;

/// Rows of a weight in file order; of a vector its values.
Result<std::vector<std::byte>> read_weight(const Checkpoint& checkpoint, const SelfTestCase::WeightRows& rows) {
  const WeightBlock& block = checkpoint.network.blocks[rows.block];
  std::vector<std::byte> all, some;
  if (block.is_vector) {
    RONDO_ASSIGN(const std::vector<float> values, read_values(checkpoint.source, block));
    const auto bytes = std::as_bytes(std::span(values));
    all.assign(bytes.begin(), bytes.end());
    return all;
  }
  for (const WeightSlice& run : rows.runs) {
    for (const WeightPart& part : block.parts) {
      const std::int64_t first = std::max(run.first, part.first), end = std::min(run.first + run.count, part.first + part.count);
      if (first >= end) continue;
      RONDO_TRY(read_rows(checkpoint.source, block, part, first - part.first, end - first, some));
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  return all;
}

std::vector<float> values_of(const graph::Storage& storage, std::span<const std::byte> file_rows) {
  const graph::BlockFormat& format = *graph::find_block_format(storage.type);
  const auto columns = static_cast<std::uint32_t>(storage.matrix[1]);
  const std::size_t row_bytes = graph::file_row_bytes(format, columns);
  std::vector<float> values(static_cast<std::size_t>(storage.matrix.n_elements()));
  for (std::size_t row = 0; row < values.size() / columns; ++row) format.dequantize_row(file_rows.subspan(row * row_bytes, row_bytes), columns, values.data() + row * columns);
  return values;
}

/// One case: what its storages hold before, and after by the reference and on the device.
class CaseRun {
 public:
  CaseRun(runtime::Device& device, const SelfTestCase& test, const ModelOptions& options) : device_(device), test_(test) {
    run_.lowering = lowering_options(options, 0);
    run_.lowering.fusion = false;
  }

  Status prepare(const Checkpoint& checkpoint) {
    for (const SelfTestCase::WeightRows& rows : test_.weights) {
      RONDO_ASSIGN(weights_[rows.storage], read_weight(checkpoint, rows));
    }
    graph::Graph copy = test_.graph;
    graph::HostTensors host(copy, [&](const graph::Storage& storage, std::vector<float>& values) {
      for (const auto& [id, rows] : weights_) {
        if (test_.graph.storage(id).name == storage.name) values = values_of(storage, rows);
      }
      return Status();
    });
    for (graph::StorageId id = 0; id < static_cast<graph::StorageId>(test_.graph.n_storages()); ++id) {
      if (is_compared(id) || test_.contents.contains(id)) host.set_bytes(id, before(id));
    }
    RONDO_TRY(graph::interpret(copy, host));
    for (graph::StorageId id = 0; id < static_cast<graph::StorageId>(test_.graph.n_storages()); ++id) {
      if (is_compared(id)) expected_[id] = host.bytes(id);
    }
    return {};
  }

  /// What is wrong with the kernels, or "". Errors: the device's; kDeviceLost and kInternal are theirs as well.
  Result<std::string> run() {
    RONDO_ASSIGN(GraphRun run, GraphRun::create(device_, test_.graph, run_));
    StorageContents contents;
    for (const auto& [id, rows] : weights_) {
      const graph::Storage& storage = test_.graph.storage(id);
      contents[id] = graph::pack_planes(*graph::find_block_format(storage.type), storage.matrix[0], storage.matrix[1], rows);
    }
    for (graph::StorageId id = 0; id < static_cast<graph::StorageId>(test_.graph.n_storages()); ++id) {
      if (is_compared(id) || test_.contents.contains(id)) contents[id] = before(id);
    }
    RONDO_TRY(run.write(contents));
    const Result<runtime::Recording> recording = run.record();
    if (!recording.ok()) {
      const StatusCode code = recording.status().code();
      if (code == StatusCode::kDeviceLost || code == StatusCode::kOutOfMemory) return recording.status();
      return recording.status().message();
    }
    const runtime::Batch batch{recording->command_buffers()};
    RONDO_ASSIGN(const std::uint64_t value, device_.submit({&batch, 1}));
    RONDO_TRY(device_.wait_for_results(value, kLongestWaitNs));
    for (const auto& [id, expected] : expected_) {
      RONDO_ASSIGN(const std::vector<std::byte> found, run.read(id));
      if (const std::string difference = compare(id, found, expected); !difference.empty()) return difference;
    }
    return std::string();
  }

 private:
  bool is_compared(graph::StorageId id) const {
    const graph::StorageKind kind = test_.graph.storage(id).kind;
    return kind == graph::StorageKind::kOutput || kind == graph::StorageKind::kCache || kind == graph::StorageKind::kStep;
  }

  std::vector<std::byte> before(graph::StorageId id) const {
    const auto found = test_.contents.find(id);
    return found != test_.contents.end() ? found->second : graph::poison_bytes(test_.graph.storage(id).size_bytes);
  }

  std::string compare(graph::StorageId id, std::span<const std::byte> found, std::span<const std::byte> expected) const {
    const graph::Storage& storage = test_.graph.storage(id);
    const std::vector<std::byte> old = before(id);
    const double bound = bound_of(test_, storage);
    const graph::Judged judged{storage.type, old, found, expected};
    std::vector<std::byte> values[3];
    return graph::find_difference(bound == 0 ? judged : graph::decoded(test_.graph, id, judged, values), {bound});
  }

  runtime::Device& device_;
  const SelfTestCase& test_;
  GraphRunOptions run_;
  std::map<graph::StorageId, std::vector<std::byte>> weights_;  ///< rows in file order
  std::map<graph::StorageId, std::vector<std::byte>> expected_;
};

/// The kernel that the case runs now that others are in quarantine, or "".
std::string find_replacement(const SelfTestCase& test, const runtime::DeviceCaps& caps, const ModelOptions& options) {
  GraphRunOptions run;
  run.lowering = lowering_options(options, 0);
  run.lowering.fusion = false;
  graph::Graph graph = test.graph;
  const Result<GraphPlan> plan = plan_graph(graph, caps, run);
  return plan.ok() ? plan->lowered.program.dispatches.front().label : "";
}

void put_into_quarantine(LoadedModel& model, const SelfTestCase& test, const std::string& complaint) {
  model.options.quarantine.push_back(test.label);
  const runtime::DeviceCaps& caps = model.device.caps();
  const std::string replacement = find_replacement(test, caps, model.options);
  model.device.log(LogLevel::kWarn, fmt::format("self-test: kernel '{}' fails on device {} ({}): {}; {}", test.label, caps.name, caps.driver, complaint,
                                                replacement.empty() ? "nothing can take its place" : fmt::format("'{}' takes its place", replacement)));
  if (model.options.on_quarantine) model.options.on_quarantine(test.label);
}

/// Tests what has not passed yet. Whether a kernel is wrong that was not known to be.
Result<bool> run_round(LoadedModel& model, std::set<std::string>& passed) {
  std::vector<StepKind> kinds;
  for (const PlannedStep& step : model.plan->steps) kinds.push_back(step.kind);
  const runtime::DeviceCaps& caps = model.device.caps();
  if (model.network().find(Role::kLogits)) kinds.push_back(output_step_kind(model.network(), Role::kLogits, caps));
  RONDO_ASSIGN(const std::vector<SelfTestCase> cases, self_test_cases(model.network(), caps, *model.plan, kinds, model.options));
  bool found = false;
  for (const SelfTestCase& test : cases) {
    const std::vector<std::string>& quarantine = model.options.quarantine;
    if (passed.contains(test.key) || std::find(quarantine.begin(), quarantine.end(), test.label) != quarantine.end()) continue;
    CaseRun run(model.device, test, model.options);
    RONDO_TRY(run.prepare(*model.checkpoint));
    const Result<std::string> complaint = run.run();
    if (complaint.ok() && complaint->empty()) {
      passed.insert(test.key);
      continue;
    }
    found = true;
    const StatusCode code = complaint.status().code();
    if (!complaint.ok() && code != StatusCode::kDeviceLost && code != StatusCode::kInternal) return complaint.status();
    put_into_quarantine(model, test, complaint.ok() ? *complaint : complaint.status().message());
    if (!complaint.ok()) return complaint.status().with_prefix(fmt::format("self-test of kernel '{}'", test.label));
  }
  return found;
}

}  // namespace

Status run_self_test(LoadedModel& model) {
  if (model.options.executor) {
    const Status made = model.device.kernels().create_all(model.plan->kernels(), model.options.executor);
    if (made.code() == StatusCode::kDeviceLost || made.code() == StatusCode::kOutOfMemory) return made;  // what else can't be made is found below
  }
  std::set<std::string> passed;
  for (;;) {
    RONDO_ASSIGN(const bool found, run_round(model, passed));
    if (!found) {
      const std::size_t n = model.plan->kernels().size();
      model.device.log(LogLevel::kInfo, fmt::format("self-test: all {} kernels are right, in {} cases; {} in quarantine", n, passed.size(), model.options.quarantine.size()));
      return {};
    }
    Result<std::shared_ptr<const SessionPlan>> plan = plan_default_session(model);
    if (!plan.ok()) return plan.status().with_prefix("self-test");
    model.plan = std::move(plan).value();
  }
}

}  // namespace rondo::models
