// Operator graphs from files: graph.json says what is computed, a safetensors file holds the inputs.
//
// Owns the graph and what its storages hold before a run, on the host; knows no device. Reading trusts nothing: a file is
// refused before more than the size of both files plus 64 MB is allocated. Pure but for the ByteSources; not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "graph/graph.h"
#include "models/formats/graph_checks.h"
#include "models/formats/graph_inputs.h"

namespace rondo::models {

/// A graph from a file, ready to be lowered or interpreted.
struct GraphFile {
  /// A tensor that the file asks for: what a node makes, a view, or an input that is changed in place.
  struct Output {
    std::string name;
    graph::TensorId tensor = graph::kNone;
  };
  /// Storages of outputs are kOutput, unless they are inputs'. Its step state has active = 1 and all rows valid.
  graph::Graph graph;
  StorageBytes contents;  ///< of the step state and of inputs, as far as they have been read; weights as rows in file order
  std::vector<StoredInput> inputs;
  std::vector<Output> outputs;
  std::vector<IntegerCheck> checks;
};

/// Reads `description` (JSON) and of its inputs, which lie in `inputs` (safetensors), the headers and all integers. An input is
/// stored as the nodes that read it take it, twice where they differ: activations in f16 as they are, other floats as f32,
/// weights as they are, f16 and q8_0 keys, values and caches as graph/cache_layout.h says, i64 and bool as i32. Without any file
/// of inputs the graph says all types and shapes, and its inputs have no contents.
/// Errors, in one line that names file, node and field: those of parse_graph_description, what `infer` refuses, kNotFound
/// (a tensor is missing), kInvalidArgument (another shape or dtype than the graph says, a tensor in two files, ids, positions,
/// lengths and rows outside of what they count), kCorruptData (a safetensors file), or the sources' own.
Result<GraphFile> open_graph_file(const ByteSource& description, std::span<const ByteSource> inputs);

/// The same with all contents.
Result<GraphFile> read_graph_file(const ByteSource& description, std::span<const ByteSource> inputs);
Result<GraphFile> read_graph_file(const ByteSource& description, const ByteSource& inputs);

/// An input's bytes as kernels read them, weights in planes. Errors: those of read_elements.
Result<std::vector<std::byte>> kernel_bytes(const graph::Graph& graph, const StoredInput& stored);

/// The contents with weights packed into planes (graph/block_format.h), which leaves `file` without any.
StorageBytes take_kernel_contents(GraphFile& file);

/// Runs the graph on the CPU with the operators' references and returns what the outputs' storages hold then. Errors:
/// those of graph::interpret.
Result<StorageBytes> interpret_graph_file(GraphFile file);

/// The elements of `tensor` as a file has them: in row-major order without gaps, of a q8_0 cache as blocks (cache_blocks.h);
/// out of the bytes of its storage. Not for weights.
std::vector<std::byte> dense_elements(const graph::Tensor& tensor, std::span<const std::byte> storage);

/// The shape of those elements in a file: the tensor's, of a q8_0 cache with bytes for the last dimension.
std::vector<std::uint64_t> dense_shape(const graph::Tensor& tensor);

}  // namespace rondo::models
