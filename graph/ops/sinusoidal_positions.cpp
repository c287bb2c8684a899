// sinusoidal_positions: positions i32 (T) -> (T, width). Vaswani et al. 2017.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "sinusoidal_positions.params.h"

namespace rondo::graph {

namespace {

constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMostFirst = 1 << 24;

double frequency(const SinusoidAttributes& attributes, std::int64_t i) {
  const double half = static_cast<double>(attributes.width) / 2;
  return std::pow(attributes.theta, -static_cast<double>(i) / (attributes.end_at_theta ? std::max(half - 1, 1.0) : half));
}

/// The constant (width / 2, 2): each frequency as a fraction of a turn in 64 bits, high word first.
TensorId add_turns(Graph& graph, const SinusoidAttributes& attributes) {
  std::vector<std::uint32_t> words;
  for (std::int64_t i = 0; i < attributes.width / 2; ++i) {
    const double turns = frequency(attributes, i) / (2 * std::numbers::pi);
    const double high = std::floor(std::ldexp(turns, 32));
    words.push_back(static_cast<std::uint32_t>(high));
    words.push_back(static_cast<std::uint32_t>(std::floor(std::ldexp(std::ldexp(turns, 32) - high, 32))));
  }
  const TensorId id = graph.add_tensor(fmt::format("turns of {} to {}{}", attributes.width, attributes.theta, attributes.end_at_theta ? " at its end" : ""), StorageKind::kConstant, Type::kI32, {attributes.width / 2, 2});
  if (id == kNone) return id;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(words));
  graph.storage(graph.tensor(id).storage).content.assign(bytes.begin(), bytes.end());
  return id;
}

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_tensor(graph, node.inputs[0], "positions", Type::kI32, 1, 1));
  const auto attributes = attributes_of<SinusoidAttributes>(node);
  if (attributes.width < 2 || attributes.width % 2 != 0 || attributes.width > kMaxWidth) {
    return refuse(fmt::format("width is {} but must be even and from 2 to {}", attributes.width, kMaxWidth));
  }
  if (!(attributes.theta >= 1) || !std::isfinite(attributes.theta)) return refuse(fmt::format("theta is {} but must be finite and at least 1", attributes.theta));
  if (std::abs(attributes.first) > kMostFirst) return refuse(fmt::format("first is {} but must be from {} to {}", attributes.first, -kMostFirst, kMostFirst));
  const Shape shape = {graph.tensor(node.inputs[0]).shape[0], attributes.width};
  node.inputs.push_back(add_turns(graph, attributes));
  node.outputs.push_back(graph.add_tensor("sinusoidal_positions", StorageKind::kActivation, attributes.type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const auto attributes = attributes_of<SinusoidAttributes>(node);
  const Tensor& positions = lowering.tensor(node.inputs[0]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  shaders::SinusoidalPositionsParams push{};
  const std::uint32_t rows = u32(positions.shape[0]);
  push.rows_per_sequence = lowering.rows_per_sequence(rows);
  push.frequencies = u32(attributes.width / 2);
  push.split = attributes.layout == SinusoidLayout::kSplit;
  push.positions_offset = u32(positions.offset_elements);
  push.positions_stride = stride_of(positions, 0);
  push.first = static_cast<std::int32_t>(attributes.first);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("sinusoidal_positions", lowering.module_for(runtime::Shader::sinusoidal_positions, output.type), {kWidth},
                    {{positions.storage, runtime::Access::kRead}, {lowering.read_only(node.inputs[1]), runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}},
                    push, {ceil_div(push.frequencies, kWidth), rows, 1}, {tensor_bytes(output), 80 * tensor_elements(output)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const auto attributes = attributes_of<SinusoidAttributes>(node);
  const HostView positions = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t half = attributes.width / 2;
  const bool split = attributes.layout == SinusoidLayout::kSplit;
  for (std::int64_t row = 0; row < output.dim(0); ++row) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(positions.int_at(row) + attributes.first) * frequency(attributes, i);
      output.set(static_cast<float>(std::sin(angle)), row, split ? i : 2 * i);
      output.set(static_cast<float>(std::cos(angle)), row, split ? half + i : 2 * i + 1);
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  SinusoidAttributes sinusoid;
  reader.require("width");
  reader.read("width", sinusoid.width);
  reader.read("theta", sinusoid.theta);
  reader.read_choice("layout", sinusoid.layout, "interleaved", "split");
  reader.read_choice("type", sinusoid.type, "f32", "f16");
  reader.read("end_at_theta", sinusoid.end_at_theta);
  reader.read("first", sinusoid.first);
  return sinusoid;
}

constexpr NamedInput kNamedInputs[] = {{"positions", InputRole::kIntegers}};

}  // namespace

extern const Operator sinusoidal_positions_operator = {
    .name = "sinusoidal_positions",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .all_rows = true,
    .accuracy = {ErrorClass::kSums},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
