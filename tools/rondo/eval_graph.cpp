#include "tools/rondo/eval_graph.h"

#include <utility>

#include "models/formats/graph_file.h"
#include "models/formats/safetensors.h"
#include "runtime/device.h"
#include "runtime/timestamps.h"
#include "tools/rondo/graph_run.h"

namespace rondo::tools {

namespace {

/// An output's tensor, as the run left it, and its elements.
struct OutputValues {
  graph::Tensor tensor;
  std::vector<std::byte> elements;
};

Result<std::vector<OutputValues>> run_reference(models::GraphFile file) {
  std::vector<OutputValues> values;
  for (const models::GraphFile::Output& output : file.outputs) values.push_back({file.graph.tensor(output.tensor), {}});
  RONDO_ASSIGN(const models::StorageBytes after, models::interpret_graph_file(std::move(file)));
  for (OutputValues& output : values) output.elements = models::dense_elements(output.tensor, after.at(output.tensor.storage));
  return values;
}

/// Submits segment by segment, waiting for each, so that no call holds the queue for long.
Status submit(runtime::Device& device, const GraphRun& run, double bound_ns, Profile& profile) {
  const runtime::Program& program = run.program();
  if (program.dispatches.empty()) return {};  // views of inputs only
  runtime::TimestampPool timestamps;
  if (profile.wanted()) {
    RONDO_ASSIGN(timestamps, runtime::TimestampPool::create(device, static_cast<std::uint32_t>(program.dispatches.size())));
  }
  RONDO_ASSIGN(const runtime::Recording recording, run.record_cut(bound_ns, profile.wanted() ? &timestamps : nullptr));
  for (const VkCommandBuffer& commands : recording.command_buffers()) {
    const runtime::Batch batch{{&commands, 1}};
    RONDO_ASSIGN(const std::uint64_t value, device.submit({&batch, 1}));
    RONDO_TRY(device.wait(value, ~0ull));
  }
  if (!profile.wanted()) return {};
  RONDO_ASSIGN(const std::vector<double> times, timestamps.read());
  ProfiledStep step{"graph", {}};
  for (std::size_t i = 0; i + 1 < times.size(); ++i) step.dispatches.push_back({program.dispatches[i].label, 1e-3 * times[i], 1e-3 * times[i + 1]});
  profile.add(std::move(step));
  return {};
}

Result<std::vector<OutputValues>> run_on(runtime::Device& device, const GlobalFlags& flags, models::GraphFile file, Profile& profile) {
  graph::LoweringOptions options;
  options.fusion = !flags.no_fusion;
  for (const auto& [op, kernel] : flags.model_options().kernels) options.forced_kernels[op] = kernel;
  StorageContents contents = models::take_kernel_contents(file);
  RONDO_ASSIGN(const GraphRun run, GraphRun::create(device, std::move(file.graph), std::move(options), std::move(contents)));
  RONDO_TRY(submit(device, run, 1e3 * flags.session_options().max_segment_us, profile));
  std::map<graph::StorageId, std::vector<std::byte>> after;
  std::vector<OutputValues> values;
  for (const models::GraphFile::Output& output : file.outputs) {
    const graph::Tensor& tensor = run.graph().tensor(output.tensor);
    if (!after.contains(tensor.storage)) {
      RONDO_ASSIGN(after[tensor.storage], run.read(tensor.storage));
    }
    values.push_back({tensor, models::dense_elements(tensor, after[tensor.storage])});
  }
  return values;
}

Result<std::vector<OutputValues>> run_on_device(const GlobalFlags& flags, const EvalFlags& own, models::GraphFile file, int& closed) {
  RONDO_ASSIGN(Profile profile, Profile::open(own.profile));
  RONDO_ASSIGN(const Instance instance, open_instance(flags));
  std::vector<OutputValues> values;
  {
    RONDO_ASSIGN(Device device, open_device(flags, instance));
    PipelineCacheFile cache_file(device, flags.pipeline_cache);
    cache_file.load();
    RONDO_ASSIGN(values, run_on(device.internal(), flags, std::move(file), profile));
    cache_file.save();
  }
  RONDO_TRY(profile.finish());
  closed = check_validation(instance);
  return values;
}

models::SafetensorsDtype dtype_of(graph::Type type) {
  if (type == graph::Type::kI32) return models::SafetensorsDtype::kI32;
  if (type == graph::Type::kQ8_0) return models::SafetensorsDtype::kU8;  // blocks
  return type == graph::Type::kF16 ? models::SafetensorsDtype::kF16 : models::SafetensorsDtype::kF32;
}

}  // namespace

Status evaluate_graph(const GlobalFlags& flags, const EvalFlags& own, int& closed) {
  RONDO_ASSIGN(const ByteSource description, open_file(own.graph));
  RONDO_ASSIGN(const ByteSource inputs, open_file(own.inputs));
  RONDO_ASSIGN(models::GraphFile file, models::read_graph_file(description, inputs));
  const std::vector<models::GraphFile::Output> outputs = file.outputs;
  std::vector<OutputValues> values;
  if (own.reference) {
    RONDO_ASSIGN(values, run_reference(std::move(file)));
  } else {
    RONDO_ASSIGN(values, run_on_device(flags, own, std::move(file), closed));
  }
  std::vector<models::SafetensorsTensor> tensors;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    tensors.push_back({outputs[i].name, dtype_of(values[i].tensor.type), models::dense_shape(values[i].tensor), values[i].elements});
  }
  keep_results();
  return models::write_safetensors(own.outputs, tensors);
}

}  // namespace rondo::tools
