// The inputs of a graph file: how each is stored for the nodes that read it, and what the file holds for it.
//
// Used while a graph file is read; borrows the graph, the description and the source. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/formats/graph_description.h"
#include "models/formats/graph_file.h"

namespace rondo::models {

class GraphInputs {
 public:
  /// All outlive this. `graph_file` names the description in messages.
  GraphInputs(const GraphDescription& description, std::string graph_file, const ByteSource& source, graph::Graph& graph)
      : description_(description), graph_file_(std::move(graph_file)), source_(source), graph_(graph) {}

  /// Reads the header of the safetensors file: each input is there with its shape and dtype. Errors: kNotFound,
  /// kInvalidArgument, those of SafetensorsFile::parse.
  Status check_file();

  /// The input's tensor for a node of operator `op` that reads it as `input`; made when first asked for. `changed`: some
  /// node changes it in place. Errors (beginning with the node's name for it): kInvalidArgument (a type that the role does
  /// not take, a shape that a weight or a cache can't have, an input that is changed and read in another form).
  Result<graph::TensorId> find_or_make(std::string_view op, const graph::NamedInput& input, const std::string& name, bool changed);

  /// The tensor that kv_write changes, kNone if no node has asked for one.
  graph::TensorId find_changed(const std::string& name) const;

  /// Reads i32 and i64, which are to be checked before anything else is read. Errors: kInvalidArgument (beyond 31 bits).
  Status load_integers(StorageBytes& contents) const { return load(contents, true); }
  /// Reads all the others but constants, which have been. Errors: the source's.
  Status load_rest(StorageBytes& contents) const { return load(contents, false); }

 private:
  /// How an input is stored.
  enum class Form : std::uint8_t {
    kDense,     ///< f32
    kHalves,    ///< f16, dense
    kCacheRows, ///< f16 or q8_0 (B, G, S, D), as graph/cache_layout.h says
    kIntegers,  ///< i32
    kWeight,    ///< a matrix of a weight type
    kConstant,  ///< f32 in the graph itself
  };
  struct Stored {
    const DescribedInput* input = nullptr;
    Form form = Form::kDense;
  };

  Result<Form> form_of(std::string_view op, const graph::NamedInput& role, const DescribedInput& input) const;
  Result<graph::TensorId> make(std::string_view op, const DescribedInput& input, Form form, bool changed);
  graph::TensorId add_weight(const DescribedInput& input);
  Result<graph::TensorId> add_constant(const DescribedInput& input);
  Status load(StorageBytes& contents, bool integers) const;
  Result<std::vector<std::byte>> read_integers(const DescribedInput& input) const;
  Result<std::vector<std::byte>> read_floats(const DescribedInput& input) const;
  Result<std::vector<std::byte>> read_halves(const DescribedInput& input) const;
  Result<std::vector<std::byte>> read_cache_rows(const DescribedInput& input) const;
  Result<std::vector<std::byte>> read_bytes(const DescribedInput& input) const;

  const DescribedInput& described(const std::string& name) const;

  const GraphDescription& description_;
  std::string graph_file_;
  const ByteSource& source_;
  graph::Graph& graph_;
  SafetensorsFile file_;
  std::map<std::pair<std::string, Form>, graph::TensorId> made_;
  std::map<graph::StorageId, Stored> stored_;
};

}  // namespace rondo::models
