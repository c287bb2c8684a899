#include "tools/rondo/eval_graph.h"

#include <chrono>
#include <memory>
#include <utility>

#include "models/formats/graph_file.h"
#include "models/formats/safetensors.h"
#include "models/graph_program.h"
#include "runtime/device.h"
#include "runtime/fmt.h"
#include "tools/rondo/compile_notice.h"
#include "tools/rondo/quarantine_file.h"

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

Result<std::vector<OutputValues>> run_on(const Device& device, const GlobalFlags& flags, models::GraphFile file, Profile& profile) {
  ProgramOptions options;
  options.fusion = !flags.no_fusion;
  options.kernels = flags.model_options().kernels;
  options.activations = flags.graph_activations();
  RONDO_ASSIGN(options.quarantine, QuarantineFile(device, flags.quarantine, flags.pipeline_cache).load(false));
  options.max_segment_us = flags.session_options().max_segment_us;
  options.profile = profile.wanted();
  // Some drivers compile when pipelines are made, others at their first dispatch.
  CompileNotice notice(flags, fmt::format("compiling and running {} operators on {} (compiled kernels are cached)", file.graph.nodes().size(), device.info().name));
  notice.begin();
  RONDO_ASSIGN(const std::unique_ptr<models::GraphProgram> program, models::GraphProgram::compile(device.shared(), std::move(file), options));
  RONDO_TRY(program->submit());
  RONDO_TRY(program->wait(std::chrono::nanoseconds::max()));
  if (profile.wanted() && program->n_dispatches() > 0) {
    RONDO_ASSIGN(ProfiledStep step, program->take_profile());
    profile.add(std::move(step));
  }
  std::vector<OutputValues> values;
  for (std::size_t i = 0; i < program->output_tensors().size(); ++i) {
    values.push_back({program->run().graph().tensor(program->output_tensors()[i].tensor), program->elements(i)});
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
    RONDO_ASSIGN(values, run_on(device, flags, std::move(file), profile));
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

Result<std::vector<ByteSource>> open_inputs(const std::vector<std::string>& paths) {
  std::vector<ByteSource> sources;
  for (const std::string& path : paths) {
    RONDO_ASSIGN(ByteSource source, open_file(path));
    sources.push_back(std::move(source));
  }
  return sources;
}

Status evaluate_graph(const GlobalFlags& flags, const EvalFlags& own, int& closed) {
  RONDO_ASSIGN(const ByteSource description, open_file(own.graph));
  RONDO_ASSIGN(const std::vector<ByteSource> inputs, open_inputs(own.inputs));
  RONDO_ASSIGN(models::GraphFile file, own.reference ? models::read_graph_file(description, inputs) : models::open_graph_file(description, inputs));
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
