// The sizes of kernels' tiles for each class of device: data, in tiles.cpp, with what each is chosen by.
#pragma once

#include <cstdint>

#include "graph/tensor.h"
#include "runtime/device_caps.h"
#include "runtime/program.h"

namespace rondo::graph {

/// How linear's "subgroup" kernel shares out rows and columns (shaders/linear_subgroup.comp).
struct SubgroupTile {
  std::uint32_t lanes = 0;      ///< of a subgroup; 0: the device has none that can be relied on
  std::uint32_t subgroups = 0;  ///< of a workgroup
  std::uint32_t rows = 0;       ///< of the weight that a subgroup makes; with GLU as many pairs
  std::uint32_t tokens = 0;     ///< rows of the input that it makes them of
  std::uint32_t split = 1;      ///< subgroups that share these rows
  std::uint32_t loads = 1;      ///< chunks of a row that a lane asks for at a time
  std::uint32_t row_lanes = 1;  ///< lanes side by side that have the same columns of different rows

  std::uint32_t outputs_of_workgroup() const { return subgroups / split * rows; }
};

/// Outputs of a workgroup whose linear turns them (shaders/lib/linear_rotation.glsl): two that lie side by side of either half of a head.
constexpr std::uint32_t kTurnedTogether = 4;

/// For `n_rows` rows of input of this type, so many outputs, and chunks of a row of the weight, of so many columns. A workgroup makes `least` outputs or more, unless the device can't have as many subgroups.
SubgroupTile subgroup_tile(const runtime::DeviceCaps& caps, Type activations, std::uint32_t n_rows, bool glu, std::uint32_t n_outputs = 1u << 30, std::uint32_t n_chunks = 0, std::uint32_t chunk_columns = 4, std::uint32_t least = 0);

/// Outputs that are rounded to bytes together (shaders/lib/rounding.glsl).
constexpr std::uint32_t kRoundedTogether = 16;

/// How linear's "dot" kernel does (shaders/linear_dot.comp), the same way.
SubgroupTile dot_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, bool glu, std::uint32_t least, std::uint32_t n_outputs = 1u << 30, std::uint32_t n_chunks = 0);

/// Whether that saves 15 % of the instructions of "subgroup".
bool dot_pays(const runtime::DeviceCaps& caps, Type weight);

/// How linear's "tiled" kernel makes a tile of outputs (shaders/linear_tiled.comp).
struct FloatTile {
  std::uint32_t lanes = 0;    ///< of a subgroup; 0: of any size
  std::uint32_t threads = 0;  ///< of a workgroup
  std::uint32_t columns = 0;  ///< threads that share rows
  std::uint32_t rows_of_invocation = 0, outputs_of_invocation = 0;
  std::uint32_t steps = 0;    ///< quarters of the columns of K at a time
  std::uint32_t splits = 1;   ///< workgroups that share a tile's columns ("split K"), of linears

  std::uint32_t rows() const { return threads / columns * rows_of_invocation; }
  std::uint32_t outputs() const { return columns * outputs_of_invocation; }  ///< with GLU gates and ups
};

/// For `n_rows` rows of input in so many groups of 32 columns, and so many outputs; with experts for so many rows of each, whose columns are not split.
FloatTile float_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts = 0);

/// The same for matmul (shaders/matmul_tiled.comp), in each of so many batches.
FloatTile matmul_float_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_outputs, std::uint32_t n_batches);

/// How linear's "dot_tiled" kernel makes a tile of outputs (shaders/linear_dot_tiled.comp).
struct DotTile {
  static constexpr std::uint32_t kThreads = 256;  ///< of a workgroup
  static constexpr std::uint32_t kOutputs = 128;  ///< of its tile, with GLU gates and ups

  std::uint32_t lanes = 0;               ///< of a subgroup; 0: the device has none that can be relied on, or not so many threads
  std::uint32_t rows_of_invocation = 0;  ///< of the input
  bool pays = false;                     ///< saves 15 % of the instructions of "tiled"
  bool fused_fma = false;                    ///< DeviceCaps::fused_fma, by which a conversion is saved
  std::uint32_t splits = 1;              ///< as FloatTile's

  std::uint32_t rows() const { return 16 * rows_of_invocation; }
};

/// For the same.
DotTile many_dots_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts = 0);

/// How linear's "half_tiled" kernel does (shaders/linear_half_tiled.comp), for the same; lanes 0: a subgroup of any size. rows_of_invocation is 0 where the
/// device can't.
DotTile half_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts = 0);

/// The same for matmul (shaders/matmul_half_tiled.comp), in each of so many batches.
DotTile matmul_half_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_outputs, std::uint32_t n_batches);

/// Up to so many rows of input "subgroup" or "dot" is chosen rather than tiles, with experts up to so many of each.
constexpr std::uint32_t kMostSubgroupRows = 8, kMostRowsOfExpert = 2;

/// How linear's "matrix" kernel makes a tile of outputs (shaders/linear_matrix.comp).
struct MatrixTile {
  std::uint32_t lanes = 0;            ///< of a subgroup; 0: the device has no matrices that fit
  std::uint32_t threads = 0;          ///< of a workgroup
  std::uint32_t outputs = 0;          ///< of its tile, with GLU gates and ups; of attention keys
  std::uint32_t row_subgroups = 0;    ///< that lie one below the other; the others side by side
  std::uint32_t row_matrices = 0;     ///< of a subgroup
  std::uint32_t output_matrices = 0;  ///< of a subgroup; with GLU half of them of gates
  runtime::MatrixShape shape;
  std::uint32_t ahead = 1;            ///< groups of 32 columns that are on their way while one is multiplied
  bool columns_in_lanes = false;      ///< lanes load their elements by vectors (DeviceCaps::columns_in_lanes)
  bool pairs = false;                 ///< of a linear: values of a weight that has quants are made two at a time, in f16 (shaders/lib/weight_halves.glsl)
  std::uint32_t splits = 1;           ///< as FloatTile's
  std::uint32_t parts = 1;            ///< of attention: workgroups that share the columns of a tile's values, and score its keys each (shaders/lib/attention_rows.glsl)

  std::uint32_t rows() const { return row_subgroups * row_matrices * shape.rows; }
  /// Of linear's kernel and matmul's, which multiply 32 columns at a time.
  runtime::InnerLoop loop() const {
    const std::uint32_t multiply_adds = rows() * outputs * 32 / threads;
    return {multiply_adds * shape.depth / 32, multiply_adds * ahead, 32 / shape.depth * ahead};
  }
  /// Bytes that lanes load from shared memory and store there for a multiply-add: halves of both factors, which each subgroup loads, and which are stored once for the tile.
  double shared_traffic() const { return loaded_bytes() + 2.0 / rows() + 2.0 / outputs; }
  /// The same of attention, where scores are stored and loaded as well, weights stored, and with each 64 columns of values is loaded what scales the rows' sums.
  double attention_shared_traffic(double key_width, double value_width) const {
    return loaded_bytes() + 2.0 / rows() + (10 + value_width / (16 * output_matrices)) / (key_width + value_width);
  }

 private:
  double loaded_bytes() const { return 2.0 / (row_matrices * shape.rows) + 2.0 / (output_matrices * shape.columns); }
};

/// For the same as float_tile, and a weight of this type.
MatrixTile matrix_tile(const runtime::DeviceCaps& caps, Type weight, std::uint32_t n_rows, std::uint32_t n_groups, std::uint32_t n_outputs, bool glu, std::uint32_t n_experts = 0);

/// Rows of input from which on a linear of one weight of this type takes less time so than by kernels of few rows.
std::uint32_t least_matrix_rows(const runtime::DeviceCaps& caps, Type weight);

/// The same for matmul (shaders/matmul_matrix.comp), in each of so many batches.
MatrixTile matmul_matrix_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_outputs, std::uint32_t n_batches);

/// Keys that attention's "matrix" and "registers" multiply rows with at a time.
constexpr std::uint32_t kBlockKeys = 64;
/// Columns of these keys' values that are multiplied at a time, and by "matrix" of keys.
constexpr std::uint32_t kBlockColumns = 64;

/// How attention's "matrix" kernel makes a tile of rows (queries of the heads that share keys), and of kBlockKeys keys, or of as many of
/// their values' columns, in place of outputs (shaders/attention_matrix.comp).
MatrixTile attention_matrix_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t n_heads, std::uint32_t key_width, std::uint32_t value_width);

/// How attention's "registers" kernel makes a tile of rows (shaders/attention_registers.comp).
struct RegisterTile {
  std::uint32_t lanes = 0;    ///< of a subgroup; 0: of any size
  std::uint32_t threads = 0;  ///< of a workgroup; 0: the device can't
  std::uint32_t rows_of_invocation = 0;
  std::uint32_t unrolled = 0;  ///< of 8 steps of its loops
  std::uint32_t parts = 1;     ///< as MatrixTile's

  std::uint32_t rows() const { return threads / 16 * rows_of_invocation; }
};

/// For heads of values so wide, in caches of q8_0 or others, with relative keys or without.
RegisterTile attention_register_tile(const runtime::DeviceCaps& caps, std::uint32_t value_width, bool q8_0, bool relative_keys);

/// How attention's "subgroup" and "half_subgroup" kernels share out rows and keys (shaders/lib/attention_subgroup.glsl).
struct AttentionTile {
  std::uint32_t lanes = 0;      ///< of a subgroup; 0: the device has none that can be relied on
  std::uint32_t subgroups = 0;  ///< of a workgroup
  std::uint32_t cluster = 0;    ///< lanes that share a key
  std::uint32_t rows = 0;       ///< of a subgroup
  std::uint32_t keys = 0;       ///< that a cluster has at a time
  bool fits = false;            ///< it is better than tiles: no register is spilled
  bool shuffles = false;        ///< from any lane, by an instruction
};

/// For so many rows (queries of the heads that share keys) and elements of a key's and a value's head.
AttentionTile attention_tile(const runtime::DeviceCaps& caps, std::uint32_t n_rows, std::uint32_t key_width, std::uint32_t value_width);

/// Shared memory of a workgroup.
std::uint32_t attention_shared_bytes(const AttentionTile& tile, std::uint32_t value_width);

/// Up to so many queries they are chosen rather than tiles.
constexpr std::uint32_t kMostSubgroupQueries = 8;

/// How a workgroup has a row in its registers (shaders/norm_subgroup.comp).
struct RowTile {
  std::uint32_t lanes = 0;    ///< of a subgroup; 0: the device has none that can be relied on
  std::uint32_t threads = 0;  ///< of a workgroup
  std::uint32_t quads = 0;    ///< groups of four elements of an invocation
};

/// For rows of so many elements, a multiple of 4.
RowTile row_tile(const runtime::DeviceCaps& caps, std::uint32_t columns);

/// Beyond, registers are spilled: of 1,024 invocations with more than 2 on adreno660.
constexpr std::uint32_t kMostRowQuads = 4, kMostRowElements = 8192;

/// Workgroups of a dispatch with which the device is busy: two a core or more, where work can be split as one likes.
std::uint32_t workgroups_to_fill(const runtime::DeviceCaps& caps);

}  // namespace rondo::graph
