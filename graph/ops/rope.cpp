// rope: input (B, H, T, D), positions (B, T) or (T), frequency_factors? (n/2) -> like input, contiguous. Su et al. 2021.
// A position's angle is the sum of a coarse one (position / 64 * 64) and a fine one (position mod 64), both from a table.
#include <cmath>
#include <cstring>

#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "graph/ops/rope_tables.h"
#include "rope.params.h"

namespace rondo::graph {

namespace {

enum Input { kInput, kPositions, kFactors, kTable, kInputs };

std::int64_t rotated_dims(const RopeAttributes& attributes, std::int64_t head_dim) {
  return attributes.dimensions == 0 ? head_dim : attributes.dimensions;
}

}  // namespace

RopeTable rope_table_of(const RopeAttributes& attributes, std::int64_t head_dim) {
  return {u32(rotated_dims(attributes, head_dim) / 2), u32((attributes.max_position + 63) / 64)};
}

double rope_frequency(const RopeAttributes& attributes, std::int64_t head_dim, std::int64_t i, double factor) {
  const double n = static_cast<double>(rotated_dims(attributes, head_dim));
  return std::pow(attributes.theta, -2.0 * static_cast<double>(i) / n) / factor;
}

Status check_rope(const Graph& graph, const RopeAttributes& attributes, std::int64_t head_dim, TensorId factors) {
  const std::int64_t n = rotated_dims(attributes, head_dim);
  if (n < 2 || n > head_dim || n % 2 != 0) return refuse(fmt::format("dimensions is {} but must be even and in [2, {}]", n, head_dim));
  if (!(attributes.theta > 0)) return refuse(fmt::format("theta is {} but must be positive", attributes.theta));
  if (attributes.max_position < 1 || attributes.max_position > (1 << 24)) {
    return refuse(fmt::format("max_position is {} but must be in [1, 2^24]", attributes.max_position));
  }
  if (factors == kNone) return {};
  if (graph.storage_of(factors).kind != StorageKind::kConstant) return refuse("frequency_factors must be a constant");
  RONDO_TRY(check_tensor(graph, factors, "frequency_factors", Type::kF32, 1, 1));
  return check_shape(graph, factors, "frequency_factors", {n / 2});
}

Status check_positions(const Graph& graph, TensorId positions, std::int64_t sequences, std::int64_t rows) {
  RONDO_TRY(check_tensor(graph, positions, "positions", Type::kI32, 1, 2));
  RONDO_TRY(check_whole(graph, positions, "positions"));
  if (graph.tensor(positions).shape.rank == 1) return check_shape(graph, positions, "positions", {rows});
  return check_shape(graph, positions, "positions", {sequences, rows});
}

Attributes read_rope_attributes(AttributeReader& reader) {
  RopeAttributes rope;
  reader.read_choice("style", rope.style, "half", "interleaved");
  reader.read("dimensions", rope.dimensions);
  reader.read("theta", rope.theta);
  reader.read("attention_factor", rope.attention_factor);
  reader.read("max_position", rope.max_position);
  return rope;
}

TensorId find_or_add_rope_table(Graph& graph, const RopeAttributes& attributes, std::int64_t head_dim, TensorId factors) {
  const RopeTable table = rope_table_of(attributes, head_dim);
  const std::string name = fmt::format("rope table n={} theta={} factors={} positions={}", 2 * table.frequencies, attributes.theta, factors,
                                       64 * table.high_lines);
  const Shape shape = {table.high_lines + 64, table.frequencies, 2};
  for (std::size_t i = 0; i < graph.n_tensors(); ++i) {
    const auto id = static_cast<TensorId>(i);
    // Files name their inputs as they like, so a name alone proves nothing; their constants have one dimension.
    if (graph.tensor(id).name == name && graph.tensor(id).shape == shape && graph.storage_of(id).kind == StorageKind::kConstant) return id;
  }
  std::vector<float> values;
  values.reserve(std::size_t{2} * table.frequencies * (table.high_lines + 64));
  const auto add_line = [&](double position) {
    for (std::uint32_t i = 0; i < table.frequencies; ++i) {
      float factor = 1;
      if (factors != kNone) std::memcpy(&factor, graph.storage_of(factors).content.data() + std::size_t{i} * 4, 4);
      const double angle = position * rope_frequency(attributes, head_dim, i, static_cast<double>(factor));
      values.push_back(static_cast<float>(std::cos(angle)));
      values.push_back(static_cast<float>(std::sin(angle)));
    }
  };
  for (std::uint32_t line = 0; line < table.high_lines; ++line) add_line(64.0 * line);
  for (std::uint32_t line = 0; line < 64; ++line) add_line(line);
  return graph.add_constant(name, shape, values);
}

namespace {

Status infer(Graph& graph, Node& node) {
  const auto attributes = attributes_of<RopeAttributes>(node);
  if (node.inputs.size() == 2) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, 3));
  RONDO_TRY(check_activation(graph, node.inputs[kInput], "input", 4, 4));
  make_columns_dense(graph, node.inputs[kInput]);
  const Tensor input = graph.tensor(node.inputs[kInput]);
  RONDO_TRY(check_rope(graph, attributes, input.shape[3], node.inputs[kFactors]));
  RONDO_TRY(check_positions(graph, node.inputs[kPositions], input.shape[0], input.shape[2]));
  node.inputs.push_back(find_or_add_rope_table(graph, attributes, input.shape[3], node.inputs[kFactors]));
  node.outputs.push_back(graph.add_tensor("rope", StorageKind::kActivation, input.type, input.shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const auto attributes = attributes_of<RopeAttributes>(node);
  const Tensor& input = lowering.tensor(node.inputs[kInput]);
  const Tensor& positions = lowering.tensor(node.inputs[kPositions]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  const RopeTable table = rope_table_of(attributes, input.shape[3]);
  shaders::RopeParams push{};
  push.rows_per_sequence = u32(input.shape[2]);
  push.heads = u32(input.shape[1]);
  push.head_dim = u32(input.shape[3]);
  push.input_offset = u32(input.offset_elements);
  push.stride_sequence = stride_of(input, 0);
  push.stride_head = stride_of(input, 1);
  push.stride_row = stride_of(input, 2);
  push.positions_stride = positions.shape.rank == 2 ? push.rows_per_sequence : 0;
  push.frequencies = table.frequencies;
  push.high_lines = table.high_lines;
  push.interleaved = attributes.style == RopeStyle::kInterleaved;
  push.attention_factor = static_cast<float>(attributes.attention_factor);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("rope", lowering.module_for(runtime::Shader::rope, input.type), {kWidth},
                    {{input.storage, runtime::Access::kRead},
                     {positions.storage, runtime::Access::kRead},
                     {lowering.tensor(node.inputs[kTable]).storage, runtime::Access::kRead},
                     {output.storage, runtime::Access::kWrite}},
                    push, {ceil_div(push.head_dim, kWidth), push.rows_per_sequence, u32(input.shape[0]) * push.heads},
                    {2 * tensor_bytes(input), 32 * tensor_elements(input)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const auto attributes = attributes_of<RopeAttributes>(node);
  const HostView input = tensors.view(node.inputs[kInput]), positions = tensors.view(node.inputs[kPositions]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t head_dim = input.dim(3), half = rotated_dims(attributes, head_dim) / 2;
  const bool interleaved = attributes.style == RopeStyle::kInterleaved;
  for (std::int64_t b = 0; b < input.dim(0); ++b) {
    for (std::int64_t h = 0; h < input.dim(1); ++h) {
      for (std::int64_t t = 0; t < input.dim(2); ++t) {
        const double position = positions.shape().rank == 2 ? positions.int_at(b, t) : positions.int_at(t);
        for (std::int64_t i = 0; i < half; ++i) {
          const double factor = node.inputs[kFactors] == kNone ? 1.0 : static_cast<double>(tensors.view(node.inputs[kFactors]).at(i));
          const double angle = position * rope_frequency(attributes, head_dim, i, factor);
          const double c = std::cos(angle) * attributes.attention_factor, s = std::sin(angle) * attributes.attention_factor;
          const std::int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
          const double x = input.at(b, h, t, first), y = input.at(b, h, t, second);
          output.set(static_cast<float>(x * c - y * s), b, h, t, first);
          output.set(static_cast<float>(x * s + y * c), b, h, t, second);
        }
        for (std::int64_t i = 2 * half; i < head_dim; ++i) output.set(input.at(b, h, t, i), b, h, t, i);
      }
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {{"input"}, {"positions", InputRole::kIntegers}, {"frequency_factors", InputRole::kConstant, kOptional}};

}  // namespace

extern const Operator rope_operator = {
    .name = "rope",
    .inputs = kNamedInputs,
    .read_attributes = read_rope_attributes,
    .rows = StepRows::kHeads,
    .accuracy = {ErrorClass::kSums},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
