// The GGUF container, versions 2 and 3, little-endian: metadata and the places of tensors, no tensor data.
// Specification: github.com/ggml-org/ggml, docs/gguf.md.
//
// A GgufFile owns copies of all names and values; it does not keep the ByteSource. Immutable after parse(), so it may
// be read from several threads. Parsing trusts nothing: counts and lengths are compared with the bytes that are left
// before anything is allocated, and memory stays below the file's size plus 64 MB.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

namespace rondo::models {

/// Element types of tensors, by their published ids; ids that are missing here were removed from the format.
enum class GgmlType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
};

/// How a type is stored: `block_elements` values along dims[0] in `block_bytes` bytes.
struct GgmlTypeInfo {
  GgmlType type;
  const char* name;  ///< as ggml prints it: "f32", "q4_K"
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
};

/// The type with this id, or null for ids that were removed or never published.
const GgmlTypeInfo* find_ggml_type(std::uint32_t id);
/// Name and block of `type`; `type` must be one of the enumerators.
const GgmlTypeInfo& ggml_type_info(GgmlType type);

/// What files in parts say of themselves, beside the metadata that the first part alone has.
constexpr std::string_view kSplitNumber = "split.no", kSplitCount = "split.count", kSplitTensors = "split.tensors.count";
constexpr std::string_view kAlignment = "general.alignment";
constexpr std::uint32_t kUsualAlignment = 32;

/// A tensor's name and place.
struct GgufTensor {
  std::string name;
  std::uint32_t n_dims = 0;                          ///< 1 to 4
  std::array<std::uint64_t, 4> dims = {1, 1, 1, 1};  ///< dims[0] varies fastest; those past n_dims are 1; none is 0
  GgmlType type = GgmlType::kF32;
  std::uint64_t offset_bytes = 0;  ///< from the beginning of the source
  std::uint64_t size_bytes = 0;    ///< within the source, shared with no other tensor
};

/// Types of metadata values, by their ids in the file.
enum class GgufValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "u32", "string", "array", ...
const char* gguf_value_type_name(GgufValueType type);

/// An array of strings in one piece of memory: 8 bytes more than its text for each, as in the file.
class GgufStrings {
 public:
  std::size_t size() const { return ends_.size(); }
  /// The string at `index`, which must be below size(); owned by this array.
  std::string_view operator[](std::size_t index) const {
    const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }
  /// Bytes of all strings together.
  std::size_t text_bytes() const { return bytes_.size(); }

 private:
  friend class GgufParser;
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

/// One metadata value. Which members mean something depends on `type` (and `element_type` for arrays).
struct GgufValue {
  GgufValueType type = GgufValueType::kU8;
  std::uint64_t unsigned_value = 0;  ///< U8, U16, U32, U64, Bool (0 or 1)
  std::int64_t signed_value = 0;     ///< I8, I16, I32, I64
  double float_value = 0;            ///< F32, F64
  std::string string;                ///< String

  GgufValueType element_type = GgufValueType::kU8;
  std::uint64_t n_elements = 0;    ///< Array
  GgufStrings strings;             ///< elements of an array of String
  std::vector<float> f32s;         ///< elements of an array of F32
  std::vector<std::int32_t> i32s;  ///< elements of an array of I32, or of U32 by their bits
  std::vector<std::uint8_t> booleans;  ///< elements of an array of Bool, 0 or 1; other arrays keep none

  /// For listings: "32", "0.00001", "true", "llama" or "[f32 x 512]"; strings on one line and cut at 80 bytes.
  std::string text() const;
};

struct GgufMetadata {
  std::string key;
  GgufValue value;
};

/// Metadata and tensor table of one file.
class GgufFile {
 public:
  /// Reads the header of `source`; vocabulary-only files without tensors are fine.
  /// Errors: kCorruptData (the file contradicts itself, or is truncated), kUnsupported (version 1, big-endian, a type
  /// of tensor that isn't known), or the source's own; one line each, naming file and field.
  /// One of several parts of a file is kInvalidArgument: its other tensors would be missing.
  static Result<GgufFile> parse(const ByteSource& source);
  /// The same, for parts as well.
  static Result<GgufFile> parse_part(const ByteSource& source);

  /// The source's name.
  const std::string& name() const { return name_; }
  /// 2 or 3.
  std::uint32_t version() const { return version_; }
  /// All tensors, in the file's order.
  std::span<const GgufTensor> tensors() const { return tensors_; }
  /// The tensor of this name, or null.
  const GgufTensor* find_tensor(std::string_view tensor_name) const;

  /// All metadata, in the file's order.
  std::span<const GgufMetadata> metadata() const { return metadata_; }
  /// Where the metadata's entry at `index` begins in the source; where the last one ends, for metadata().size().
  std::uint64_t metadata_offset(std::size_t index) const { return metadata_offsets_[index]; }
  /// The value of `key`, or null.
  const GgufValue* find(std::string_view key) const;
  /// Whether the file has `key`, whatever its type.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// An integer of any width that fits 32 bits unsigned. Errors of all accessors: kNotFound (no such key), kCorruptData
  /// (another type or out of range).
  Result<std::uint32_t> u32(std::string_view key) const;
  /// A 32-bit or 64-bit float.
  Result<float> f32(std::string_view key) const;
  Result<double> f64(std::string_view key) const;
  /// A boolean.
  Result<bool> boolean(std::string_view key) const;
  /// A string, owned by this object.
  Result<std::string_view> string(std::string_view key) const;

  /// As above, but `fallback` where the key is absent; a wrong type is still an error.
  Result<std::uint32_t> u32_or(std::string_view key, std::uint32_t fallback) const;
  Result<float> f32_or(std::string_view key, float fallback) const;
  Result<double> f64_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;

  /// An array of strings, owned by this object.
  Result<const GgufStrings*> strings(std::string_view key) const;
  /// An array of F32, owned by this object.
  Result<std::span<const float>> f32s(std::string_view key) const;
  /// An array of I32, or of U32 whose values all fit; owned by this object.
  Result<std::span<const std::int32_t>> i32s(std::string_view key) const;

  /// An array of Bool, owned by this object.
  Result<std::span<const std::uint8_t>> booleans(std::string_view key) const;

  /// A kCorruptData Status "<file>: metadata key '<key>' <message>", for those who check values further.
  Status key_error(std::string_view key, std::string_view message) const;

 private:
  friend class GgufParser;
  Result<const GgufValue*> require(std::string_view key) const;
  Result<const GgufValue*> require_array(std::string_view key, std::string_view expected) const;
  Status wrong_type(std::string_view key, const GgufValue& value, std::string_view expected) const;

  std::string name_;
  std::uint32_t version_ = 0;
  std::vector<GgufMetadata> metadata_;
  std::vector<std::uint64_t> metadata_offsets_;
  std::vector<GgufTensor> tensors_;
  // Positions in the order of their names: lookups and the search for duplicates cost n log n for any names.
  std::vector<std::uint32_t> metadata_by_key_;
  std::vector<std::uint32_t> tensors_by_name_;
};

}  // namespace rondo::models
