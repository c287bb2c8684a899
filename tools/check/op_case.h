// A graph of one or a few operators with everything it reads, and its run through the interpreter: the oracle of a test.
// No Vulkan. Every function that adds a tensor places nothing: op_runner.h does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "graph/graph.h"

namespace rondo::check {

/// Reproducible numbers, the same with every standard library.
std::vector<float> random_values(std::size_t n, std::uint32_t seed, float scale = 1.0f);  ///< uniform in [-scale, scale)
std::vector<float> integer_values(std::size_t n, std::uint32_t seed, int limit);          ///< whole numbers in [-limit, limit]

enum class WeightValues : std::uint8_t {
  kInteger,  ///< whole numbers or multiples of 1/32, at most 5: numbers of so few bits that all sums are exact
  kRandom,   ///< uniform in about [-1, 1], block scales of their own
  kLarge,    ///< magnitudes about 1e4, as far as the type has them
};

using graph::kWeightTypes;

/// Rows of a weight in file order, as BlockFormat takes them.
std::vector<std::byte> weight_rows(graph::Type type, std::int64_t rows, std::int64_t columns, std::uint32_t seed, WeightValues values);
/// What they mean.
std::vector<float> weight_values(graph::Type type, std::int64_t rows, std::int64_t columns, std::span<const std::byte> file_rows);
/// The type's elements come in blocks with scales of their own.
bool has_blocks(graph::Type type);
/// `columns` made up to whole blocks of the type.
std::int64_t whole_blocks(graph::Type type, std::int64_t columns);

class OpCase {
 public:
  /// A graph with a step state of `n_sequences` in which every row is valid.
  explicit OpCase(std::int64_t n_sequences = 1);

  /// A graph that is whole, with what its storages hold: weights as rows in file order, and a step state.
  OpCase(graph::Graph whole, std::map<graph::StorageId, std::vector<std::byte>> contents) : graph(std::move(whole)), contents_(std::move(contents)) {}

  graph::Graph graph;
  graph::TensorId state = graph::kNone;  ///< i32 (sequences, RONDO_STATE_WORDS)

  graph::TensorId f32(const std::string& name, const graph::Shape& shape, std::span<const float> values);
  /// An input of f32, or of f16 with the values rounded.
  graph::TensorId activation(const std::string& name, graph::Type type, const graph::Shape& shape, std::span<const float> values);
  graph::TensorId i32(const std::string& name, const graph::Shape& shape, std::span<const std::int32_t> values);
  graph::TensorId weight(const std::string& name, graph::Type type, std::int64_t rows, std::int64_t columns, std::vector<std::byte> file_rows);
  /// A cache (B, G, S, D), or keys or values of another kind, laid out as graph/cache_layout.h says; `values` in the order of
  /// its elements, converted. The padding is zero.
  graph::TensorId cache(const std::string& name, graph::Type type, const graph::Shape& shape, std::span<const float> values,
                        graph::StorageKind kind = graph::StorageKind::kCache);
  /// An i32 tensor of kind kStep: tokens and the like, changed in place.
  graph::TensorId step_i32(const std::string& name, const graph::Shape& shape, std::span<const std::int32_t> values);

  /// Replaces the elements of a view of f32 or f16, in row-major order.
  void write(graph::TensorId id, std::span<const float> values);

  /// Makes `id` an output. `row_axis` counts the rows of the step: those from the sequence's count on stay untouched.
  /// Axis 0 holds all sequences' rows one after the other; any other axis the rows of sequence index 0.
  void output(graph::TensorId id, int row_axis = 0);
  void set_state(std::int64_t sequence, int word, std::int32_t value);
  /// Rows valid in the step of `sequence`.
  void set_count(std::int64_t sequence, std::int32_t count, bool active = true);

  /// Bytes of a storage before a run: as added, poison for outputs, empty for activations.
  std::vector<std::byte> before(graph::StorageId id) const;
  /// A weight's planes as kernels read them.
  std::vector<std::byte> planes(graph::StorageId id) const;

  /// Bytes of every storage after the interpreter has run; rows of outputs that are not valid keep their poison.
  Result<std::vector<std::vector<std::byte>>> run_reference() const;

 private:
  graph::TensorId dense(const std::string& name, graph::StorageKind kind, graph::Type type, const graph::Shape& shape, std::span<const std::byte> bytes);
  std::int32_t state_word(std::int64_t sequence, int word) const;

  std::map<graph::StorageId, std::vector<std::byte>> contents_;
  std::map<graph::TensorId, int> outputs_;
};

}  // namespace rondo::check
