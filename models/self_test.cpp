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

/// What is wrong with a case's kernels, or "", and whether it cost the device, of which `lost` tells then.
struct Verdict {
  std::string complaint;
  Status lost;
};

/// One case: what its storages hold before, by the reference afterwards, and on the device.
class CaseRun {
 public:
  CaseRun(runtime::Device& device, const SelfTestCase& test) : device_(device), test_(test) {}

  /// Errors: the source's and the operators' own.
  Status prepare(const Checkpoint& checkpoint) {
    std::map<std::string, std::vector<float>> values;
    for (const SelfTestCase::WeightRows& rows : test_.weights) {
      RONDO_ASSIGN(const std::vector<std::byte> file_rows, read_weight(checkpoint, rows));
      add_weight(rows.storage, file_rows, values);
    }
    for (graph::StorageId id = 0; id < n_storages(); ++id) {
      const graph::Storage& storage = test_.graph.storage(id);
      const auto content = test_.contents.find(id);
      if (storage.kind == graph::StorageKind::kWeight) {
        if (content != test_.contents.end()) add_weight(id, content->second, values);
        continue;
      }
      before_[id] = content != test_.contents.end() ? content->second : storage.kind == graph::StorageKind::kConstant ? storage.content : graph::poison_bytes(storage.size_bytes);
    }
    graph::Graph copy = test_.graph;
    graph::HostTensors host(copy, [&](const graph::Storage& storage, std::vector<float>& read) {
      read = values[storage.name];
      return Status();
    });
    for (graph::StorageId id = 0; id < n_storages(); ++id) {
      if (test_.graph.storage(id).kind != graph::StorageKind::kWeight) host.set_bytes(id, before_[id]);
    }
    RONDO_TRY(graph::interpret(copy, host));
    for (graph::StorageId id = 0; id < n_storages(); ++id) {
      expected_[id] = test_.graph.storage(id).kind == graph::StorageKind::kWeight ? before_[id] : host.bytes(id);
    }
    for (const graph::Node& node : test_.graph.nodes()) keep_invalid_rows(node);
    return {};
  }

  void add_weight(graph::StorageId id, const std::vector<std::byte>& file_rows, std::map<std::string, std::vector<float>>& values) {
    const graph::Storage& storage = test_.graph.storage(id);
    values[storage.name] = values_of(storage, file_rows);
    before_[id] = graph::pack_planes(*graph::find_block_format(storage.type), storage.matrix[0], storage.matrix[1], file_rows);
  }

  /// What is expected of rows that are not valid: nothing is written there.
  void keep_invalid_rows(const graph::Node& node) {
    const graph::StepRows rows = graph::operator_of(node.op).rows;
    for (const graph::TensorId id : node.outputs) {
      const graph::Tensor& output = test_.graph.tensor(id);
      const graph::Shape& shape = output.shape;
      // Rows of a sequence, and of a token: norms of heads have several.
      const std::int64_t per_sequence = std::max<std::int64_t>(shape.n_rows() / test_.graph.n_sequences, 1), per_token = std::max<std::int64_t>(per_sequence / test_.rows, 1);
      const auto is_valid = [&](const std::array<std::int64_t, graph::kMaxRank>& index) {
        if (rows == graph::StepRows::kSequences || graph::operator_of(node.op).all_rows) return true;
        if (rows == graph::StepRows::kHeads) return index[2] < test_.count;
        std::int64_t row = 0;
        for (int axis = 0; axis + 1 < shape.rank; ++axis) row = row * shape[axis] + index[static_cast<std::size_t>(axis)];
        return row % per_sequence / per_token < test_.count;
      };
      graph::keep_invalid(output, is_valid, before_[output.storage], expected_[output.storage]);
    }
  }

  /// Errors: those of the device that are not the kernels'.
  Result<Verdict> run(const GraphRunOptions& options) {
    RONDO_TRY(device_.check_lost());
    RONDO_ASSIGN(const GraphRun run, GraphRun::create(device_, test_.graph, options));
    for (const runtime::Kernel& kernel : run.program().kernels) {
      const Status made = device_.kernels().find_or_create(kernel).status();
      if (made.code() == StatusCode::kDeviceLost || made.code() == StatusCode::kOutOfMemory) return made;
      if (!made.ok()) return Verdict{made.message(), {}};
    }
    // Poison all around, so that what is read or written where it must not be shows.
    std::vector<std::vector<std::byte>> images;
    for (const runtime::Buffer& buffer : run.buffers()) images.push_back(graph::poison_bytes(buffer.size_bytes()));
    for (const auto& [id, bytes] : before_) {
      if (test_.graph.storage(id).kind == graph::StorageKind::kActivation) continue;
      const runtime::BufferRange& place = run.graph().storage(id).place;
      std::copy(bytes.begin(), bytes.end(), images[place.buffer].begin() + static_cast<std::ptrdiff_t>(place.offset_bytes));
    }
    for (std::size_t i = 0; i < images.size(); ++i) RONDO_TRY(runtime::upload(device_, run.buffers()[i], images[i]));
    RONDO_ASSIGN(const runtime::Recording recording, run.record());
    const runtime::Batch batch{recording.command_buffers()};
    const Result<std::uint64_t> value = device_.submit({&batch, 1});
    if (!value.ok()) return value.status().code() == StatusCode::kOutOfMemory ? Result<Verdict>(value.status()) : Verdict{value.status().message(), value.status()};
    if (Status done = device_.wait_for_results(*value, runtime::Device::kMostStillNs); !done.ok()) {
      if (done.code() == StatusCode::kTimeout) done = Status(StatusCode::kInternal, "it does not end");
      return Verdict{done.message(), done};
    }
    return judge(run, images);
  }

 private:
  graph::StorageId n_storages() const { return static_cast<graph::StorageId>(test_.graph.n_storages()); }

  /// Compares what the storages hold now, and what lies around them.
  Result<Verdict> judge(const GraphRun& run, std::vector<std::vector<std::byte>>& images) const {
    for (std::size_t i = 0; i < images.size(); ++i) RONDO_TRY(runtime::read_back(device_, run.buffers()[i], 0, images[i]));
    for (graph::StorageId id = 0; id < n_storages(); ++id) {
      if (test_.graph.storage(id).kind == graph::StorageKind::kActivation) continue;
      const runtime::BufferRange& place = run.graph().storage(id).place;
      const std::span<std::byte> found = std::span(images[place.buffer]).subspan(place.offset_bytes, before_.at(id).size());
      if (const std::string difference = compare(id, found); !difference.empty()) return Verdict{fmt::format("{}: {}", test_.graph.storage(id).name, difference), {}};
      const std::vector<std::byte> poison = graph::poison_bytes((found.size() + 3) / 4 * 4);
      std::copy_n(poison.begin(), found.size(), found.begin());
    }
    const std::span<const std::byte> scratch = images.front();
    if (const std::string touched = graph::find_touched(scratch.subspan(run.activation_bytes())); !touched.empty()) return Verdict{"behind scratch memory: " + touched, {}};
    for (std::size_t i = 1; i < images.size(); ++i) {
      if (const std::string touched = graph::find_touched(images[i]); !touched.empty()) return Verdict{touched, {}};
    }
    return Verdict{};
  }

  std::string compare(graph::StorageId id, std::span<const std::byte> found) const {
    const graph::Storage& storage = test_.graph.storage(id);
    const auto bound = test_.bounds.find(id);
    const bool exact = bound == test_.bounds.end() || bound->second == 0;
    const bool is_float = storage.kind != graph::StorageKind::kWeight && (storage.type == graph::Type::kF32 || storage.type == graph::Type::kF16);
    const graph::Judged judged{is_float || !exact ? storage.type : graph::Type::kI32, before_.at(id), found, expected_.at(id)};
    std::vector<std::byte> values[3];
    return graph::find_difference(exact ? judged : graph::decoded(test_.graph, id, judged, values), {exact ? 0 : bound->second});
  }

  runtime::Device& device_;
  const SelfTestCase& test_;
  std::map<graph::StorageId, std::vector<std::byte>> before_, expected_;
};

/// A submission without a kernel ends: otherwise the first kernel would be blamed for the device.
Status check_device(runtime::Device& device) {
  RONDO_ASSIGN(const runtime::Buffer buffer, runtime::Buffer::create(device, 256, runtime::MemoryIntent::kDevice, "self-test"));
  runtime::CommandList list(device);
  RONDO_TRY(list.begin());
  list.fill(buffer, 0);
  RONDO_ASSIGN(const VkCommandBuffer commands, list.end());
  const runtime::Batch batch{{&commands, 1}};
  RONDO_ASSIGN(const std::uint64_t value, device.submit({&batch, 1}));
  return device.wait_for_results(value, runtime::Device::kMostStillNs);
}

/// The kernels that the case runs now that others are in quarantine, or "".
std::string find_replacement(const SelfTestCase& test, const runtime::DeviceCaps& caps, const PlanOptions& options) {
  graph::Graph graph = test.graph;
  const Result<GraphPlan> plan = plan_graph(graph, caps, case_options(options, test));
  if (!plan.ok()) return "";
  std::vector<std::string> labels;
  for (const runtime::Dispatch& dispatch : plan->lowered.program.dispatches) {
    if (std::find(labels.begin(), labels.end(), dispatch.label) == labels.end()) labels.push_back(dispatch.label);
  }
  return fmt::format("{}", fmt::join(labels, "' and '"));
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
  for (const Role head : {Role::kHead, Role::kHeadImage}) {
    if (model.network().find(head)) kinds.push_back({head, takes_images(head) ? model.network().facts.image_rows : 40, 1});
  }
  RONDO_ASSIGN(const std::vector<SelfTestCase> cases, self_test_cases(model.network(), caps, *model.plan, kinds, model.options));
  bool found = false;
  for (const SelfTestCase& test : cases) {
    const std::vector<std::string>& quarantine = model.options.quarantine;
    if (passed.contains(test.key) || std::find(quarantine.begin(), quarantine.end(), test.label) != quarantine.end()) continue;
    CaseRun run(model.device, test);
    RONDO_TRY(run.prepare(*model.checkpoint));
    RONDO_ASSIGN(const Verdict verdict, run.run(case_options(model.options, test)));
    if (verdict.complaint.empty()) {
      passed.insert(test.key);
      continue;
    }
    found = true;
    put_into_quarantine(model, test, verdict.complaint);
    if (!verdict.lost.ok()) return verdict.lost.with_prefix(fmt::format("self-test of kernel '{}'", test.label));
  }
  return found;
}

}  // namespace

Status run_self_test(LoadedModel& model) {
  if (Status working = check_device(model.device); !working.ok()) return working.with_prefix("self-test");
  if (model.options.executor) {
    const Status made = model.device.kernels().create_all(model.plan->kernels(), model.options.executor);
    if (made.code() == StatusCode::kDeviceLost || made.code() == StatusCode::kOutOfMemory) return made;  // what else can't be made is found below
  }
  std::set<std::string> passed;
  for (;;) {
    RONDO_ASSIGN(const bool found, run_round(model, passed));
    if (!found) break;
    const std::uint32_t n_ctx = model.plan->memory.n_ctx;
    Result<std::shared_ptr<const SessionPlan>> plan = plan_default_session(model);
    if (!plan.ok()) return plan.status().with_prefix("self-test");
    model.plan = std::move(plan).value();
    if (model.plan->memory.n_ctx < n_ctx) model.device.log(LogLevel::kWarn, fmt::format("self-test: with the kernels that are left, a session holds {} tokens", model.plan->memory.n_ctx));
  }
  const std::size_t n = model.plan->kernels().size();
  model.device.log(LogLevel::kInfo, fmt::format("self-test: all {} kernels are right, in {} cases; {} in quarantine", n, passed.size(), model.options.quarantine.size()));
  model.options.on_quarantine = nullptr;
  return {};
}

}  // namespace rondo::models
