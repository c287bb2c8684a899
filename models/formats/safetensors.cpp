#include "models/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

#include "models/json.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

static_assert(std::endian::native == std::endian::little, "tensor data is copied from the file as it is");

namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr std::size_t kMaxDims = 8;
// Far above any published file; they bound what a header of tiny entries can allocate.
constexpr std::size_t kMaxTensors = 131'072;
constexpr std::size_t kMaxMetadata = 65'536;
constexpr std::size_t kChunkElements = std::size_t{1} << 18;

struct DtypeInfo {
  SafetensorsDtype dtype;
  const char* name;
  std::uint64_t size_bytes;
};

constexpr std::array kDtypes = {
    DtypeInfo{SafetensorsDtype::kF32, "F32", 4},   DtypeInfo{SafetensorsDtype::kF16, "F16", 2},
    DtypeInfo{SafetensorsDtype::kBF16, "BF16", 2}, DtypeInfo{SafetensorsDtype::kI32, "I32", 4},
    DtypeInfo{SafetensorsDtype::kI64, "I64", 8},   DtypeInfo{SafetensorsDtype::kU8, "U8", 1},
    DtypeInfo{SafetensorsDtype::kBool, "BOOL", 1}, DtypeInfo{SafetensorsDtype::kOther, "another", 1},
};

const DtypeInfo& info_of(SafetensorsDtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }

float f32_from_f16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t exponent = (half >> 10) & 31U;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide_exponent = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | wide_exponent << 23 | mantissa << 13);
}

float f32_from_bf16(std::uint16_t upper) { return std::bit_cast<float>(std::uint32_t{upper} << 16); }

/// Reads `out.size()` elements of type Stored at `offset_bytes`, a chunk at a time.
template <typename Stored, typename T, typename Convert>
Status read_converted(const ByteSource& source, std::uint64_t offset_bytes, std::vector<T>& out, Convert convert) {
  std::vector<Stored> chunk(std::min(out.size(), kChunkElements));
  for (std::size_t done = 0; done < out.size(); done += chunk.size()) {
    chunk.resize(std::min(chunk.size(), out.size() - done));
    RONDO_TRY(source.read(offset_bytes + done * sizeof(Stored), std::as_writable_bytes(std::span(chunk))));
    std::transform(chunk.begin(), chunk.end(), out.begin() + static_cast<std::ptrdiff_t>(done), convert);
  }
  return Status();
}

/// Turns the header's JSON into entries with offsets relative to the data.
class HeaderEvents final : public JsonEvents {
 public:
  HeaderEvents(std::string_view file, std::vector<SafetensorsEntry>& entries) : file_(file), entries_(entries) {}

  Status on_null() override { return unexpected("null"); }
  Status on_bool(bool) override { return unexpected("a boolean"); }
  Status on_i64(std::int64_t) override { return unexpected("a negative number"); }
  Status on_f64(double) override { return unexpected("a fraction"); }
  Status on_u64(std::uint64_t value) override;
  Status on_string(std::string&& value) override;
  Status on_key(std::string&& key) override;
  Status on_object_begin() override;
  Status on_object_end() override;
  Status on_array_begin() override;
  Status on_array_end() override;

 private:
  enum class Place : std::uint8_t { kOutside, kTop, kTensor, kMetadata, kShape, kOffsets };
  enum class Field : std::uint8_t { kNone, kDtype, kShape, kOffsets };

  Status fail(StatusCode code, std::string_view message) const {
    const bool in_tensor = place_ == Place::kTensor || place_ == Place::kShape || place_ == Place::kOffsets;
    return Status(code, in_tensor ? fmt::format("{}: tensor '{}': {}", file_, printable(entry_.name), message)
                                  : fmt::format("{}: header: {}", file_, message));
  }
  Status corrupt(std::string_view message) const { return fail(StatusCode::kCorruptData, message); }
  Status unexpected(const char* found) const {
    return corrupt(fmt::format("has {} where the format has something else", found));
  }

  std::string_view file_;
  std::vector<SafetensorsEntry>& entries_;
  Place place_ = Place::kOutside;
  std::string key_;  // of the top level
  SafetensorsEntry entry_;
  Field field_ = Field::kNone;
  std::array<bool, 4> seen_ = {};  // by Field
  std::vector<std::uint64_t> offsets_;
  std::set<std::string, std::less<>> metadata_keys_;
};

Status HeaderEvents::on_u64(std::uint64_t value) {
  if (place_ == Place::kShape) {
    if (entry_.shape.size() == kMaxDims) return corrupt(fmt::format("shape has more than {} dimensions", kMaxDims));
    entry_.shape.push_back(value);
    return Status();
  }
  if (place_ == Place::kOffsets) {
    if (offsets_.size() == 2) return corrupt("data_offsets has more than 2 numbers");
    offsets_.push_back(value);
    return Status();
  }
  return unexpected("a number");
}

Status HeaderEvents::on_string(std::string&& value) {
  if (place_ == Place::kMetadata) return Status();
  if (place_ != Place::kTensor || field_ != Field::kDtype) return unexpected("a string");
  for (const DtypeInfo& info : kDtypes) {
    if (value != info.name || info.dtype == SafetensorsDtype::kOther) continue;
    entry_.dtype = info.dtype;
    return Status();
  }
  entry_.dtype = SafetensorsDtype::kOther;
  entry_.other_dtype = printable(value);
  return Status();
}

Status HeaderEvents::on_key(std::string&& key) {
  if (place_ == Place::kTop) {
    key_ = std::move(key);
    return Status();
  }
  if (place_ == Place::kMetadata) {
    if (metadata_keys_.size() == kMaxMetadata)
      return corrupt(fmt::format("__metadata__ has over {} keys", kMaxMetadata));
    if (!metadata_keys_.insert(std::move(key)).second) return corrupt("__metadata__ has one key twice");
    return Status();
  }
  field_ = key == "dtype"          ? Field::kDtype
           : key == "shape"        ? Field::kShape
           : key == "data_offsets" ? Field::kOffsets
                                   : Field::kNone;
  if (field_ == Field::kNone) {
    return corrupt(fmt::format("field '{}' is unknown, expected dtype, shape and data_offsets", printable(key)));
  }
  bool& seen = seen_[static_cast<std::size_t>(field_)];
  if (seen) return corrupt(fmt::format("has the field '{}' twice", key));
  seen = true;
  return Status();
}

Status HeaderEvents::on_object_begin() {
  if (place_ == Place::kOutside) {
    place_ = Place::kTop;
    return Status();
  }
  if (place_ != Place::kTop) return unexpected("an object");
  if (key_ == "__metadata__") {
    if (seen_[0]) return corrupt("has '__metadata__' twice");
    seen_[0] = true;
    place_ = Place::kMetadata;
    return Status();
  }
  if (entries_.size() == kMaxTensors) return corrupt(fmt::format("has more than {} tensors", kMaxTensors));
  place_ = Place::kTensor;
  entry_ = SafetensorsEntry();
  entry_.name = std::move(key_);
  seen_ = {seen_[0], false, false, false};
  field_ = Field::kNone;
  return Status();
}

Status HeaderEvents::on_object_end() {
  if (place_ == Place::kTop) {
    place_ = Place::kOutside;
    return Status();
  }
  if (place_ == Place::kTensor) {
    if (!seen_[1] || !seen_[2] || !seen_[3]) return corrupt("lacks one of dtype, shape and data_offsets");
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1]) return corrupt("data_offsets is not [begin, end]");
    std::uint64_t size_bytes = info_of(entry_.dtype).size_bytes;
    for (const std::uint64_t dim : entry_.shape) {
      if (__builtin_mul_overflow(size_bytes, dim, &size_bytes))
        return corrupt("the product of its shape is beyond 64 bits");
    }
    entry_.offset_bytes = offsets_[0];
    entry_.size_bytes = offsets_[1] - offsets_[0];
    if (entry_.dtype != SafetensorsDtype::kOther && entry_.size_bytes != size_bytes) {
      return corrupt(fmt::format("data_offsets hold {} bytes, expected {} for its shape and dtype", entry_.size_bytes,
                                 size_bytes));
    }
    entries_.push_back(std::move(entry_));
  }
  place_ = Place::kTop;
  return Status();
}

Status HeaderEvents::on_array_begin() {
  if (place_ == Place::kTensor && field_ == Field::kShape) {
    place_ = Place::kShape;
  } else if (place_ == Place::kTensor && field_ == Field::kOffsets) {
    place_ = Place::kOffsets;
    offsets_.clear();
  } else {
    return unexpected("an array");
  }
  return Status();
}

Status HeaderEvents::on_array_end() {
  place_ = Place::kTensor;
  return Status();
}

}  // namespace

const char* safetensors_dtype_name(SafetensorsDtype dtype) { return info_of(dtype).name; }

std::uint64_t safetensors_dtype_bytes(SafetensorsDtype dtype) { return info_of(dtype).size_bytes; }

Result<SafetensorsFile> SafetensorsFile::parse(const ByteSource& source) {
  const auto corrupt = [&](std::string_view message) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: {}", source.name, message));
  };
  if (!source.read) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: the byte source has no read function", source.name));
  }
  std::uint64_t header_bytes = 0;
  if (source.size_bytes < sizeof(header_bytes)) {
    return corrupt(fmt::format("file of {} bytes is truncated, expected at least 8", source.size_bytes));
  }
  RONDO_TRY(source.read(0, std::as_writable_bytes(std::span(&header_bytes, 1))));
  const std::uint64_t left_bytes = source.size_bytes - sizeof(header_bytes);
  if (header_bytes > kMaxHeaderBytes) {
    return corrupt(
        fmt::format("header of {} bytes, expected at most {}: not a safetensors file", header_bytes, kMaxHeaderBytes));
  }
  if (header_bytes > left_bytes) {
    return corrupt(fmt::format("header of {} bytes, but only {} bytes follow: the file is truncated or damaged",
                               header_bytes, left_bytes));
  }
  std::string header(header_bytes, '\0');
  RONDO_TRY(source.read(sizeof(header_bytes), std::as_writable_bytes(std::span(header))));
  SafetensorsFile file;
  file.name_ = source.name;
  RONDO_TRY(file.parse_header(header, sizeof(header_bytes) + header_bytes, left_bytes - header_bytes));
  return file;
}

Status SafetensorsFile::parse_header(std::string_view header, std::uint64_t data_begin, std::uint64_t data_bytes) {
  if (!header.starts_with('{')) {
    return Status(StatusCode::kCorruptData,
                  fmt::format("{}: header does not begin with '{{': not a safetensors file", name_));
  }
  // Writers pad the header with spaces, some by a lot.
  header = header.substr(0, header.find_last_not_of(' ') + 1);
  JsonLimits limits;
  limits.max_text_bytes = kMaxHeaderBytes;
  limits.max_token_bytes = std::size_t{4} << 20;  // trainers keep whole reports in one string of __metadata__
  limits.max_values = kMaxTensors * (kMaxDims + 6);
  HeaderEvents events(name_, entries_);
  RONDO_TRY(read_json(header, fmt::format("{}: header", name_), limits, events));
  return check_layout(data_begin, data_bytes);
}

Status SafetensorsFile::check_layout(std::uint64_t data_begin, std::uint64_t data_bytes) {
  const auto corrupt = [&](const SafetensorsEntry& entry, std::string_view message) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}': {}", name_, printable(entry.name), message));
  };
  std::sort(entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.offset_bytes != b.offset_bytes ? a.offset_bytes < b.offset_bytes : a.size_bytes < b.size_bytes;
  });
  std::uint64_t end = 0;
  for (SafetensorsEntry& entry : entries_) {
    if (entry.offset_bytes != end) {
      return corrupt(entry, fmt::format("data begins at {}, expected {}: tensors overlap or leave a hole",
                                        entry.offset_bytes, end));
    }
    end += entry.size_bytes;
    if (end > data_bytes || end < entry.offset_bytes) {
      return corrupt(entry,
                     fmt::format("data ends at {}, but the file has {} bytes of data: it is truncated or damaged", end,
                                 data_bytes));
    }
    entry.offset_bytes += data_begin;
  }
  if (end != data_bytes) {
    return Status(StatusCode::kCorruptData,
                  fmt::format("{}: tensors end at {}, but the file has {} bytes of data", name_, end, data_bytes));
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i - 1].name == entries_[i].name) return corrupt(entries_[i], "is there twice");
  }
  return Status();
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view tensor_name) const {
  const auto it =
      std::lower_bound(entries_.begin(), entries_.end(), tensor_name,
                       [](const SafetensorsEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  return it == entries_.end() || it->name != tensor_name ? nullptr : &*it;
}

Result<const SafetensorsEntry*> SafetensorsFile::require(std::string_view tensor_name) const {
  const SafetensorsEntry* entry = find(tensor_name);
  if (entry == nullptr) {
    return Status(StatusCode::kNotFound, fmt::format("{}: tensor '{}' is missing", name_, printable(tensor_name)));
  }
  return entry;
}

Status SafetensorsFile::wrong_dtype(const SafetensorsEntry& entry, std::string_view expected) const {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: tensor '{}': dtype is {}, expected {}", name_, printable(entry.name),
                            entry.spelling(), expected));
}

Result<std::vector<float>> SafetensorsFile::read_f32(const ByteSource& source, std::string_view tensor_name) const {
  RONDO_ASSIGN(const SafetensorsEntry* entry, require(tensor_name));
  std::vector<float> values;
  switch (entry->dtype) {
    case SafetensorsDtype::kF32:
      values.resize(entry->n_elements());
      RONDO_TRY(source.read(entry->offset_bytes, std::as_writable_bytes(std::span(values))));
      return values;
    case SafetensorsDtype::kF16:
      values.resize(entry->n_elements());
      RONDO_TRY(read_converted<std::uint16_t>(source, entry->offset_bytes, values, f32_from_f16));
      return values;
    case SafetensorsDtype::kBF16:
      values.resize(entry->n_elements());
      RONDO_TRY(read_converted<std::uint16_t>(source, entry->offset_bytes, values, f32_from_bf16));
      return values;
    default:
      return wrong_dtype(*entry, "F32, F16 or BF16");
  }
}

Result<std::vector<std::int64_t>> SafetensorsFile::read_i64(const ByteSource& source,
                                                            std::string_view tensor_name) const {
  RONDO_ASSIGN(const SafetensorsEntry* entry, require(tensor_name));
  std::vector<std::int64_t> values;
  switch (entry->dtype) {
    case SafetensorsDtype::kI64:
      values.resize(entry->n_elements());
      RONDO_TRY(source.read(entry->offset_bytes, std::as_writable_bytes(std::span(values))));
      return values;
    case SafetensorsDtype::kI32:
      values.resize(entry->n_elements());
      RONDO_TRY(read_converted<std::int32_t>(source, entry->offset_bytes, values,
                                             [](std::int32_t value) { return std::int64_t{value}; }));
      return values;
    case SafetensorsDtype::kBool:
      values.resize(entry->n_elements());
      RONDO_TRY(read_converted<std::uint8_t>(source, entry->offset_bytes, values,
                                             [](std::uint8_t value) { return std::int64_t{value != 0}; }));
      return values;
    default:
      return wrong_dtype(*entry, "I32, I64 or BOOL");
  }
}

}  // namespace rondo::models
