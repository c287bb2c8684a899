// The safetensors container: a strict reader and a writer. Specification: github.com/huggingface/safetensors.
//
// A SafetensorsFile owns names, shapes and places; tensor data is read from the ByteSource on request. Immutable after
// parse(), so it may be read from several threads as far as the ByteSource may. Parsing trusts nothing: memory stays
// below the file's size plus 64 MB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

namespace rondo::models {

enum class SafetensorsDtype : std::uint8_t { kF32, kF16, kBF16, kI32, kI64, kU8, kBool, kOther };

/// "F32", "BF16", ... as the format spells it; "another" for kOther.
const char* safetensors_dtype_name(SafetensorsDtype dtype);
/// Bytes of one element; 1 for kOther, of which only the number of bytes is known.
std::uint64_t safetensors_dtype_bytes(SafetensorsDtype dtype);

/// A tensor's name, shape and place.
struct SafetensorsEntry {
  std::string name;
  SafetensorsDtype dtype = SafetensorsDtype::kF32;
  std::string other_dtype;  ///< kOther: how the file spells it
  std::vector<std::uint64_t> shape;  ///< outermost first; empty for a scalar; at most 8 dimensions, 0 allowed
  std::uint64_t offset_bytes = 0;    ///< from the beginning of the source
  std::uint64_t size_bytes = 0;      ///< the product of the shape times the element's size; of kOther what the file says

  std::string spelling() const { return dtype == SafetensorsDtype::kOther ? other_dtype : safetensors_dtype_name(dtype); }
  std::uint64_t n_elements() const { return size_bytes / safetensors_dtype_bytes(dtype); }
};

struct SafetensorsTensor;

/// Tensor table of one file.
class SafetensorsFile {
 public:
  /// Reads the header of `source`.
  /// Tensors of dtypes that Rondo has no use for are listed as kOther. Errors: kCorruptData (not the format, truncated, tensors
  /// that overlap, leave holes or disagree with their shape), or the source's own; one line each, naming file and tensor.
  static Result<SafetensorsFile> parse(const ByteSource& source);

  const std::string& name() const { return name_; }
  /// All tensors, by name.
  std::span<const SafetensorsEntry> entries() const { return entries_; }
  /// The tensor of this name, or null.
  const SafetensorsEntry* find(std::string_view tensor_name) const;

  /// A tensor of F32, F16 or BF16 as floats, from the `source` that was parsed.
  /// Errors: kNotFound, kInvalidArgument (another dtype), or the source's own.
  Result<std::vector<float>> read_f32(const ByteSource& source, std::string_view tensor_name) const;
  /// A tensor of I32, I64 or BOOL (0 and 1) as 64-bit integers. Errors as above.
  Result<std::vector<std::int64_t>> read_i64(const ByteSource& source, std::string_view tensor_name) const;

 private:
  friend Status write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors);
  Status parse_header(std::string_view header, std::uint64_t data_begin, std::uint64_t data_bytes);
  Status check_layout(std::uint64_t data_begin, std::uint64_t data_bytes);
  Result<const SafetensorsEntry*> require(std::string_view tensor_name) const;
  Status wrong_dtype(const SafetensorsEntry& entry, std::string_view expected) const;

  std::string name_;
  std::vector<SafetensorsEntry> entries_;
};

/// A tensor to write; `data` holds its elements in order and is not copied.
struct SafetensorsTensor {
  std::string name;
  SafetensorsDtype dtype = SafetensorsDtype::kF32;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> data;
};

/// What a file of these begins with; their data follow in the given order.
std::string safetensors_header(std::span<const SafetensorsTensor> tensors);

/// Writes `tensors` in the given order to `path`: into a temporary file beside it that then takes its place, so `path`
/// holds the old content or the new one, and nothing is left behind on failure.
/// Errors: kInvalidArgument (a name twice or not UTF-8, data that disagrees with a shape, `path` is no regular file),
/// kIo; the message names the path.
Status write_safetensors(const std::string& path, std::span<const SafetensorsTensor> tensors);

}  // namespace rondo::models
