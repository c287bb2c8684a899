// The weights of a model, apart from any architecture: which tensors of a file make up which block of device memory, and
// which rows or elements of a block a graph reads.
//
// Pure but for the readers at the end, which read through a ByteSource. A block is one weight, or several of equal type and
// width that share an input and lie row after row, so that one linear can compute them all; vectors (norm weights, biases) lie
// element after element, always in f32.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "graph/block_format.h"
#include "graph/graph.h"
#include "models/formats/gguf.h"

namespace rondo::models {

/// One tensor of the file, as a part of a block.
struct WeightPart {
  std::string tensor;                           ///< its name in the file
  const graph::BlockFormat* stored = nullptr;   ///< how the file has it; vectors may be kept otherwise
  std::uint64_t offset_bytes = 0, size_bytes = 0;  ///< in the file
  std::int64_t first = 0, count = 0;            ///< rows of a matrix, elements of a vector, of the block
};

/// One run of planes in device memory.
struct WeightBlock {
  std::string name;
  graph::Type type{};
  graph::Shape matrix;      ///< (N, K); (1, K) for vectors
  bool is_vector = false;
  std::vector<WeightPart> parts;

  std::uint64_t file_bytes() const;
};

/// Rows of a matrix, or elements of a vector, in one block.
struct WeightSlice {
  std::int32_t block = -1;  ///< -1: there is none
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool is_there() const { return block >= 0; }
};

/// The type in which matrices of a file's type are kept; none for types that are not there yet.
std::optional<graph::Type> find_weight_type(GgmlType type);

/// A weight that a network wants: the tensor's name, how many rows (elements of a vector) it must have, and where it went.
struct WantedWeight {
  std::string tensor;
  std::int64_t count = 0;
  WeightSlice* slice = nullptr;
  std::int64_t stacked = 1;  ///< the last dimension of a tensor of so many matrices, or vectors, which share `count`
};

/// Finds tensors in a file, checks their shapes and types, and groups them into blocks.
/// Errors of all: kCorruptData (missing, of another shape), kUnsupported (a type that is not there), naming file and tensor.
class WeightFinder {
 public:
  explicit WeightFinder(const GgufFile& file) : file_(file) {}

  bool has(std::string_view tensor) const { return file_.find_tensor(tensor) != nullptr; }
  /// It is in a block.
  bool was_found(std::string_view tensor) const { return found_.contains(tensor); }

  /// A matrix of `wanted.count` rows and `columns` columns, as a block of its own.
  Status matrix(const WantedWeight& wanted, std::int64_t columns);
  /// Matrices that share their input: neighbours of equal type become one block.
  Status matrices(std::span<const WantedWeight> wanted, std::int64_t columns);
  /// A vector, kept in f32.
  Status vector(const WantedWeight& wanted) { return vectors({&wanted, 1}); }
  /// Vectors that go together, such as the biases of matrices(), as one block.
  Status vectors(std::span<const WantedWeight> wanted);

  std::vector<WeightBlock> take_blocks() { return std::move(blocks_); }

 private:
  Result<WeightPart> find_matrix(const WantedWeight& wanted, std::int64_t columns) const;
  Result<WeightPart> find_vector(const WantedWeight& wanted) const;
  WeightBlock& add_block(const std::string& name, graph::Type type, std::int64_t columns);

  const GgufFile& file_;
  std::vector<WeightBlock> blocks_;
  std::set<std::string, std::less<>> found_;
};

/// Values of all blocks together.
std::uint64_t count_parameters(std::span<const WeightBlock> blocks);
/// Bytes of all blocks as a device without limits keeps them.
std::uint64_t weight_bytes(std::span<const WeightBlock> blocks);

/// Reads `n` rows of a matrix's part from row `first` on, in file order, into `bytes`, which is resized.
/// Errors: the source's, naming the tensor.
Status read_rows(const ByteSource& source, const WeightBlock& block, const WeightPart& part, std::int64_t first, std::int64_t n, std::vector<std::byte>& bytes);
/// All values of a block, dequantised: (N, K). Errors: as read_rows.
Result<std::vector<float>> read_values(const ByteSource& source, const WeightBlock& block);

}  // namespace rondo::models
