// A GGUF file whose matrices are quantised while they are read.
//
// Matrices are tensors of two dimensions in f32, f16 or bf16 whose rows are whole blocks of the type. What stays as it is: matrices
// with other rows, embeddings of positions and of token types, which llama.cpp leaves alone too, and all vectors (norms, biases,
// factors of RoPE). general.file_type, which would be wrong, is left out.
#pragma once

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "graph/tensor.h"

namespace rondo::models {

/// `source` with matrices of `type`, which must have a quantiser (graph/quantize.h). Reads the header; later a MiB at a time.
/// Errors: those of GgufFile::parse; kUnsupported (matrices in blocks of another type).
Result<ByteSource> quantize_gguf(const ByteSource& source, graph::Type type);

}  // namespace rondo::models
