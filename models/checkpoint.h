// A checkpoint as read from its file: header, hyper-parameters and the places of its weights. No device.
#pragma once

#include <memory>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "graph/block_format.h"
#include "models/arch/llama.h"
#include "models/formats/gguf.h"

namespace rondo::models {

struct Checkpoint {
  ByteSource source;
  GgufFile file;
  LlamaConfig config;
  std::vector<WeightBlock> blocks;  ///< places unset; parts point into `file`, so a Checkpoint is not moved once made
  LlamaWeights weights;
  std::uint64_t n_parameters = 0;
};

/// Reads and checks the header and the small tensors that graphs need (RoPE factors).
/// Errors name the file and the field.
Result<std::unique_ptr<Checkpoint>> open_checkpoint(ByteSource source);

/// Reads rows [first, first + n) of a part of a block in file order into `bytes`, which is resized.
Status read_rows(const Checkpoint& checkpoint, const WeightBlock::Part& part, std::int64_t first, std::int64_t n, std::vector<std::byte>& bytes);

/// The weight format of the file's tensor; vectors may be stored otherwise than their block is kept.
const graph::BlockFormat& file_format(const WeightBlock::Part& part);

/// All values of a block, dequantised: (N, K).
Result<std::vector<float>> read_block_values(const Checkpoint& checkpoint, const WeightBlock& block);

}  // namespace rondo::models
