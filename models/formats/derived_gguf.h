// A GGUF file that is another one with some of its keys left out and with other tensors, or with the same ones stored otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <rondo/byte_source.h>

#include "models/formats/gguf.h"
#include "models/formats/stitched_source.h"

namespace rondo::models {

/// A tensor of the new file. `add` adds exactly `size_bytes`.
struct DerivedTensor {
  const GgufTensor* like = nullptr;  ///< its name and dimensions
  GgmlType type = GgmlType::kF32;
  std::uint64_t size_bytes = 0;
  std::function<void(StitchedSource&)> add;
};

/// The keys of `file`, which lies in `source`, but those that `is_left_out` names, and `tensors` in their order. The result reads
/// keys and tensors where they are. Errors: kCorruptData (larger than any file).
Result<ByteSource> derive_gguf(const ByteSource& source, const GgufFile& file, const std::function<bool(std::string_view key)>& is_left_out,
                               std::span<const DerivedTensor> tensors, std::string name);

}  // namespace rondo::models
