// Where model files come from: a file, memory, or the caller's own archive.
//
// A ByteSource is a size, a name and a read callback; copying it shares what the callback refers to. Rondo reads from
// one thread at a time per Model and maps nothing into memory, so a file that shrinks while it is read is a Status and
// not a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <rondo/export.h>
#include <rondo/status.h>

namespace rondo {

/// Random access to bytes.
struct ByteSource {
  std::string name;              ///< for messages: usually the path
  std::uint64_t size_bytes = 0;  ///< total size, fixed when the source was made
  /// Fills all of `out` from byte `offset`, or says why not (kIo, kCorruptData for a source that has become shorter). Must
  /// not throw.
  std::function<Status(std::uint64_t offset, std::span<std::byte> out)> read;
};

/// Opens a regular file for reading; it is closed when the last copy of the source goes.
/// Errors: kNotFound (no such file), kInvalidArgument (an empty path, a directory or device), kIo. The message names the path.
RONDO_API Result<ByteSource> open_file(const std::string& path);

/// What a model's head makes of the hidden states of an encoder.
enum class ModelHead : std::uint8_t {
  kNone,
  kMaskedWords,  ///< of each token logits over the vocabulary
  kTokenLabels,  ///< of each token logits over labels
  kAnswers,      ///< of each token two logits: an answer begins here, ends here
  kLabels,       ///< of the text or image logits over labels
};

/// How open_model presents a model.
struct OpenOptions {
  /// A weight type (f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, mxfp4) to which matrices are rounded as they are read, or "". It
  /// is for folders and GGUF files whose matrices are in f32, f16 or bf16, or in that type already. Vectors stay as
  /// they are, and so do embeddings of positions, what chooses experts, and matrices whose rows are no whole blocks of 32.
  std::string quantize;
  /// Of a folder whose checkpoint serves several classes (config.json's architectures): the one with this head, if there is one.
  /// kNone: the first.
  ModelHead head = ModelHead::kNone;
};

/// A model: a GGUF file, as open_file; the file that parts make together, by the path of any of them (NAME-00001-of-00003.gguf,
/// beside each other, as llama.cpp's gguf-split writes them); or a folder as Hugging Face's transformers save them (config.json,
/// model.safetensors or the shards that its index lists, tokenizer.json), presented as the GGUF file that it would be. Of weights
/// only headers are read. A tokenizer of a kind that is not there yet is left out.
/// Errors: those of open_file, for a missing part too; kCorruptData (parts, or files of a folder, that contradict each other),
/// kUnsupported (what is not there yet), naming file and field.
RONDO_API Result<ByteSource> open_model(const std::string& path, const OpenOptions& options = {});

/// Reads from memory that outlives the source. Nothing is copied.
RONDO_API ByteSource memory_source(std::span<const std::byte> bytes, std::string name);

}  // namespace rondo
