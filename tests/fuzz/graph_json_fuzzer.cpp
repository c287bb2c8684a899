// Any text as a graph file, with inputs made up as it declares them: read, run by the references where that is cheap, packed
// for kernels, fused and lowered for the least device there is but for its 16-bit storage, and proven free of hazards.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/block_format.h"
#include "graph/hazards.h"
#include "graph/lowering.h"
#include "models/formats/cache_blocks.h"
#include "models/formats/graph_description.h"
#include "models/formats/graph_file.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_bytes.h"

namespace {

using namespace rondo;
using models::DescribedInput;
using Kind = models::GraphInputType::Kind;

// What is declared and what the references multiply, so that an input takes milliseconds.
constexpr std::uint64_t kMostInputBytes = 1 << 18;
constexpr double kMostWork = 1e6;

std::uint64_t row_bytes(const DescribedInput& input) {
  const std::int64_t width = input.shape.rank == 0 ? 1 : input.shape.last();
  if (input.type.kind != Kind::kBlocks) return static_cast<std::uint64_t>(width) * models::safetensors_dtype_bytes(input.type.dtype);
  if (input.type.type == graph::Type::kQ8_0) return models::cache_row_file_bytes(width);
  return graph::file_row_bytes(*graph::find_block_format(input.type.type), static_cast<std::uint64_t>(width));
}

/// Numbers around zero, and integers of the digit that ends the input's name.
std::string made_up_bytes(const DescribedInput& input, std::size_t size) {
  std::string bytes(size, '\0');
  const char last = input.name.empty() ? '0' : input.name.back();
  const std::int64_t integer = last >= '0' && last <= '9' ? last - '0' : 0;
  const std::size_t element = models::safetensors_dtype_bytes(input.type.dtype);
  for (std::size_t i = 0; i < size / element; ++i) {
    const float real = static_cast<float>(i % 11) - 5;
    const auto upper = static_cast<std::uint16_t>(real < 0 ? 0xbf80 : 0x3f00);  // as bf16 -1 and 0.5, as f16 about the same
    char* to = bytes.data() + i * element;
    if (input.type.kind == Kind::kInteger) std::memcpy(to, &integer, element);
    else if (input.type.kind == Kind::kFloat && element == 4) std::memcpy(to, &real, 4);
    else if (input.type.kind == Kind::kFloat) std::memcpy(to, &upper, 2);
    else *to = static_cast<char>(i * 29);
  }
  return bytes;
}

/// A safetensors file that has what is declared, or "" where that is too much.
std::string made_up_inputs(const models::GraphDescription& description) {
  std::vector<testing::FileTensor> tensors;
  std::uint64_t total = 0;
  for (const DescribedInput& input : description.inputs) {
    const std::uint64_t size = static_cast<std::uint64_t>(input.shape.rank == 0 ? 1 : input.shape.n_rows()) * row_bytes(input);
    total += size;
    // A name within JSON, as it is: the reader's own tests have others.
    if (total > kMostInputBytes || input.name.find_first_of("\"\\") != std::string::npos) return "";
    if (std::any_of(input.name.begin(), input.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; })) return "";
    testing::FileTensor tensor{input.name, models::safetensors_dtype_name(input.type.dtype), {}, made_up_bytes(input, size)};
    for (int axis = 0; axis < input.shape.rank; ++axis) tensor.shape.push_back(static_cast<std::uint64_t>(input.shape[axis]));
    if (input.type.kind == Kind::kBlocks) tensor.shape.back() = row_bytes(input);
    tensors.push_back(std::move(tensor));
  }
  return testing::safetensors_bytes(tensors);
}

/// At least as many products as the references compute: no node multiplies more than its largest tensor by its largest extent.
double work_of(const graph::Graph& graph) {
  double work = 0;
  for (const graph::Node& node : graph.nodes()) {
    double elements = 1, extent = 1;
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const graph::TensorId id : *ids) {
        // Tables are looked up, not multiplied.
        if (id == graph::kNone || graph.storage_of(id).kind == graph::StorageKind::kConstant) continue;
        const graph::Shape& shape = graph.tensor(id).shape;
        elements = std::max(elements, static_cast<double>(shape.n_elements()));
        for (int axis = 0; axis < shape.rank; ++axis) extent = std::max(extent, static_cast<double>(shape[axis]));
      }
    }
    work += elements * extent;
  }
  return work;
}

void lower(graph::Graph graph, bool fusion) {
  graph::LoweringOptions options;
  options.fusion = fusion;
  runtime::DeviceCaps caps;
  caps.storage16 = true;
  const auto lowered = graph::lower(graph, caps, options);
  if (!lowered.ok()) return;
  const runtime::Program* program = &lowered->program;
  const std::vector<graph::Hazard> hazards = graph::find_hazards_in_all_orders({&program, 1});
  if (hazards.empty()) return;
  std::fprintf(stderr, "hazard: %s, then %s\n", hazards[0].earlier.c_str(), hazards[0].later.c_str());
  std::abort();
}

void run(const models::GraphFile& file) {
  if (work_of(file.graph) > kMostWork) return;
  const auto after = models::interpret_graph_file(file);
  if (!after.ok()) std::abort();
  for (const models::GraphFile::Output& output : file.outputs) {
    const graph::Tensor& tensor = file.graph.tensor(output.tensor);
    (void)models::dense_elements(tensor, after->at(tensor.storage));
    (void)models::dense_shape(tensor);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  auto description = models::parse_graph_description(text, "g.json");
  if (!description.ok()) return 0;
  for (DescribedInput& input : description->inputs) {  // what the file says, where the graph says nothing
    if (!input.has_type) input.type = *models::find_input_type("f32");
    if (!input.has_shape) input.shape = {3, 4};
  }
  const std::string inputs = made_up_inputs(*description);
  if (inputs.empty()) return 0;
  auto file = models::read_graph_file(testing::source_of(text, "g.json"), testing::source_of(inputs, "in.safetensors"));
  if (!file.ok()) return 0;
  if (!graph::validate(file->graph).ok()) std::abort();
  run(*file);
  (void)models::take_kernel_contents(*file);
  for (const bool fusion : {true, false}) lower(file->graph, fusion);
  return 0;
}
