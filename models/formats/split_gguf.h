// GGUF files in parts, as llama.cpp's gguf-split writes them, presented as the file that was split.
//
// Parts lie beside each other and are called NAME-00001-of-00003.gguf, from 1 on. Each is a GGUF file of its own that says in
// `split.no` which one it is (from 0 on), in `split.count` how many there are and in `split.tensors.count` how many tensors they
// have together. All other metadata is in the first, which may have no tensors.
#pragma once

#include <string>

#include <rondo/byte_source.h>
#include <rondo/status.h>

namespace rondo::models {

/// The file at `path`; if it is a part, by its name and its metadata, the file that all parts make, without the keys above. Reads
/// nothing where the name is not a part's, else headers only, and keeps all parts open.
/// Errors: those of open_file; kNotFound (a part is missing), kCorruptData (parts that contradict each other or their names).
Result<ByteSource> open_gguf(const std::string& path);

}  // namespace rondo::models
