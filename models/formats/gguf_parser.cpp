#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "models/formats/gguf.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

static_assert(std::endian::native == std::endian::little, "values are copied from the file as they are");

namespace {

constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxNameBytes = 65535;
// Far above any published model; they bound what a file of tiny entries can allocate.
constexpr std::uint64_t kMaxKeys = 65536;
constexpr std::uint64_t kMaxTensors = 65536;
// The least an entry takes in the file: empty name and one-byte value; empty name, one dimension, type and offset.
constexpr std::uint64_t kMinKeyBytes = 8 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;

/// Sequential reads through a window, so that a header costs a handful of reads of the source.
class WindowReader {
 public:
  explicit WindowReader(const ByteSource& source) : source_(source) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return source_.size_bytes - offset_; }
  void seek(std::uint64_t offset) { offset_ = offset; }

  /// Copies `size` bytes and steps over them; the caller has compared `size` with left().
  Status read(void* out, std::uint64_t size) {
    auto* bytes = static_cast<std::byte*>(out);
    while (size > 0) {
      if (offset_ < begin_ || offset_ >= begin_ + window_.size()) {
        if (size >= kWindowBytes) {
          RONDO_TRY(source_.read(offset_, std::span<std::byte>(bytes, size)));
          offset_ += size;
          return Status();
        }
        RONDO_TRY(fill());
      }
      const std::uint64_t n = std::min(size, begin_ + window_.size() - offset_);
      std::memcpy(bytes, window_.data() + (offset_ - begin_), n);
      bytes += n;
      offset_ += n;
      size -= n;
    }
    return Status();
  }

 private:
  Status fill() {
    window_.resize(std::min(kWindowBytes, left()));
    begin_ = offset_;
    Status status = source_.read(offset_, window_);
    if (!status.ok()) window_.clear();
    return status;
  }

  const ByteSource& source_;
  std::uint64_t offset_ = 0;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> window_;
};

bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& out) { return !__builtin_mul_overflow(a, b, &out); }

std::uint64_t scalar_bytes(GgufValueType type) {
  switch (type) {
    case GgufValueType::kU8:
    case GgufValueType::kI8:
    case GgufValueType::kBool:
      return 1;
    case GgufValueType::kU16:
    case GgufValueType::kI16:
      return 2;
    case GgufValueType::kU32:
    case GgufValueType::kI32:
    case GgufValueType::kF32:
      return 4;
    case GgufValueType::kU64:
    case GgufValueType::kI64:
    case GgufValueType::kF64:
      return 8;
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  return 0;
}

/// The position of an item that has the name of another one, or -1; `order` becomes the positions by name.
template <typename Item, typename NameOf>
std::int64_t sort_by_name(const std::vector<Item>& items, NameOf name_of, std::vector<std::uint32_t>& order) {
  order.resize(items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return name_of(items[a]) < name_of(items[b]); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (name_of(items[order[i - 1]]) == name_of(items[order[i]])) return order[i];
  }
  return -1;
}

}  // namespace

/// Reads one file's header into a GgufFile.
class GgufParser {
 public:
  GgufParser(const ByteSource& source, GgufFile& file) : reader_(source), size_bytes_(source.size_bytes), file_(file) {
    file_.name_ = source.name;
  }

  Status run() {
    RONDO_TRY(read_header());
    file_.metadata_offsets_.push_back(reader_.offset());
    for (std::uint64_t i = 0; i < n_keys_; ++i) {
      RONDO_TRY(read_key(i));
      file_.metadata_offsets_.push_back(reader_.offset());
    }
    const std::int64_t twice = sort_by_name(
        file_.metadata_, [](const GgufMetadata& m) -> const std::string& { return m.key; }, file_.metadata_by_key_);
    if (twice >= 0) {
      where_ = key_place(file_.metadata_[static_cast<std::size_t>(twice)].key);
      return corrupt("is there twice");
    }
    RONDO_TRY(read_alignment());
    for (std::uint64_t i = 0; i < n_tensors_; ++i) RONDO_TRY(read_tensor(i));
    return check_tensors();
  }

 private:
  Status fail(StatusCode code, std::string_view message) const {
    return Status(code, fmt::format("{}: {} {}", file_.name_, where_, message));
  }
  Status corrupt(std::string_view message) const { return fail(StatusCode::kCorruptData, message); }

  static std::string key_place(std::string_view key) { return fmt::format("metadata key '{}'", printable(key)); }
  static std::string tensor_place(std::string_view name) { return fmt::format("tensor '{}':", printable(name)); }

  Status need(std::uint64_t size, std::string_view what) const {
    if (size <= reader_.left()) return Status();
    return Status(
        StatusCode::kCorruptData,
        fmt::format("{}: {} {} of {} bytes at offset {} runs past the end of the file ({} bytes): the file is "
                    "truncated or damaged",
                    file_.name_, where_, what, size, reader_.offset(), size_bytes_));
  }

  template <typename T>
  Status take(T& out, std::string_view what) {
    RONDO_TRY(need(sizeof(T), what));
    return reader_.read(&out, sizeof(T));
  }

  Status take_string(std::string& out, std::string_view what, std::uint64_t max_bytes) {
    std::uint64_t size = 0;
    RONDO_TRY(take(size, fmt::format("length of {}", what)));
    RONDO_TRY(need(size, what));
    if (size > max_bytes)
      return corrupt(fmt::format("has a {} of {} bytes, expected at most {}", what, size, max_bytes));
    out.resize(size);
    return reader_.read(out.data(), size);
  }

  Status read_header();
  Status read_key(std::uint64_t index);
  Status read_scalar(GgufValue& value);
  Status read_array(GgufValue& value);
  Status read_strings(GgufValue& value);
  template <typename T>
  Status read_numbers(std::uint64_t count, std::vector<T>& out) {
    out.resize(count);
    return reader_.read(out.data(), count * sizeof(T));
  }
  Status read_alignment();
  Status read_tensor(std::uint64_t index);
  Status measure(GgufTensor& tensor, std::uint32_t type_id) const;
  Status check_tensors();
  Status place_tensors(std::uint64_t data_begin);

  WindowReader reader_;
  std::uint64_t size_bytes_;
  GgufFile& file_;
  std::string where_ = "header:";  // what messages are about
  std::uint64_t n_tensors_ = 0;
  std::uint64_t n_keys_ = 0;
  std::uint64_t alignment_bytes_ = kUsualAlignment;
};

Status GgufParser::read_header() {
  std::array<char, 4> magic = {};
  if (size_bytes_ == 0)
    return Status(StatusCode::kCorruptData,
                  fmt::format("{}: file is empty (truncated?), expected a GGUF file", file_.name_));
  RONDO_TRY(take(magic, "magic"));
  if (std::string_view(magic.data(), magic.size()) != "GGUF") {
    return corrupt(fmt::format("begins with '{}', expected 'GGUF': this is not a GGUF file",
                               printable(std::string_view(magic.data(), magic.size()))));
  }
  RONDO_TRY(take(file_.version_, "version"));
  const std::uint32_t version = file_.version_;
  if ((version & 0xffff) == 0 && version != 0) {
    return fail(StatusCode::kUnsupported,
                "this is a big-endian GGUF file, expected a little-endian one: convert it again");
  }
  if (version == 0) return corrupt("version is 0, expected 2 or 3");
  if (version != 2 && version != 3) {
    return fail(StatusCode::kUnsupported,
                fmt::format("GGUF version {} is not supported, expected 2 or 3: {}", version,
                            version == 1 ? "convert the file again" : "it needs a newer Rondo"));
  }
  RONDO_TRY(take(n_tensors_, "number of tensors"));
  RONDO_TRY(take(n_keys_, "number of metadata keys"));
  if (n_keys_ > reader_.left() / kMinKeyBytes) {
    return corrupt(fmt::format("says {} metadata keys, but only {} bytes follow: the file is truncated or damaged",
                               n_keys_, reader_.left()));
  }
  if (n_tensors_ > (reader_.left() - n_keys_ * kMinKeyBytes) / kMinTensorBytes) {
    return corrupt(fmt::format("says {} tensors, but only {} bytes follow: the file is truncated or damaged",
                               n_tensors_, reader_.left()));
  }
  if (n_keys_ > kMaxKeys) return corrupt(fmt::format("says {} metadata keys, expected at most {}", n_keys_, kMaxKeys));
  if (n_tensors_ > kMaxTensors)
    return corrupt(fmt::format("says {} tensors, expected at most {}", n_tensors_, kMaxTensors));
  file_.metadata_.reserve(n_keys_);
  file_.metadata_offsets_.reserve(n_keys_ + 1);
  file_.tensors_.reserve(n_tensors_);
  return Status();
}

Status GgufParser::read_key(std::uint64_t index) {
  where_ = fmt::format("metadata key {} of {}:", index + 1, n_keys_);
  GgufMetadata entry;
  RONDO_TRY(take_string(entry.key, "name", kMaxNameBytes));
  if (entry.key.empty()) return corrupt("has an empty name");
  where_ = key_place(entry.key);

  std::uint32_t type = 0;
  RONDO_TRY(take(type, "type"));
  if (type > static_cast<std::uint32_t>(GgufValueType::kF64)) {
    return corrupt(fmt::format("has type {}, expected 0 to 12", type));
  }
  entry.value.type = static_cast<GgufValueType>(type);
  if (entry.value.type == GgufValueType::kString) {
    RONDO_TRY(take_string(entry.value.string, "string", std::numeric_limits<std::uint64_t>::max()));
  } else if (entry.value.type == GgufValueType::kArray) {
    RONDO_TRY(read_array(entry.value));
  } else {
    RONDO_TRY(read_scalar(entry.value));
  }
  file_.metadata_.push_back(std::move(entry));
  return Status();
}

Status GgufParser::read_scalar(GgufValue& value) {
  const std::uint64_t size = scalar_bytes(value.type);
  std::uint64_t bits = 0;
  RONDO_TRY(need(size, "value"));
  RONDO_TRY(reader_.read(&bits, size));
  switch (value.type) {
    case GgufValueType::kI8:
      value.signed_value = static_cast<std::int8_t>(bits);
      break;
    case GgufValueType::kI16:
      value.signed_value = static_cast<std::int16_t>(bits);
      break;
    case GgufValueType::kI32:
      value.signed_value = static_cast<std::int32_t>(bits);
      break;
    case GgufValueType::kI64:
      value.signed_value = static_cast<std::int64_t>(bits);
      break;
    case GgufValueType::kF32:
      value.float_value = double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
      break;
    case GgufValueType::kF64:
      value.float_value = std::bit_cast<double>(bits);
      break;
    case GgufValueType::kBool:
      if (bits > 1) return corrupt(fmt::format("is a bool of value {}, expected 0 or 1", bits));
      value.unsigned_value = bits;
      break;
    default:
      value.unsigned_value = bits;
      break;
  }
  return Status();
}

Status GgufParser::read_array(GgufValue& value) {
  std::uint32_t type = 0;
  RONDO_TRY(take(type, "type of elements"));
  if (type > static_cast<std::uint32_t>(GgufValueType::kF64)) {
    return corrupt(fmt::format("is an array of type {}, expected 0 to 12", type));
  }
  value.element_type = static_cast<GgufValueType>(type);
  if (value.element_type == GgufValueType::kArray) return corrupt("is an array of arrays, which is not supported");
  RONDO_TRY(take(value.n_elements, "number of elements"));

  const bool is_string = value.element_type == GgufValueType::kString;
  const std::uint64_t min_bytes = is_string ? 8 : scalar_bytes(value.element_type);
  if (value.n_elements > reader_.left() / min_bytes) {
    return corrupt(fmt::format("is an array of {} {}, but only {} bytes follow: the file is truncated or damaged",
                               value.n_elements, gguf_value_type_name(value.element_type), reader_.left()));
  }
  switch (value.element_type) {
    case GgufValueType::kString:
      return read_strings(value);
    case GgufValueType::kF32:
      return read_numbers(value.n_elements, value.f32s);
    case GgufValueType::kI32:
    case GgufValueType::kU32:
      return read_numbers(value.n_elements, value.i32s);
    case GgufValueType::kBool:
      RONDO_TRY(read_numbers(value.n_elements, value.booleans));
      for (std::uint8_t& element : value.booleans) element = element != 0;
      return Status();
    default:
      reader_.seek(reader_.offset() + value.n_elements * min_bytes);
      return Status();
  }
}

// Twice over the same bytes: the first pass finds the total, so that the text is allocated once and exactly.
Status GgufParser::read_strings(GgufValue& value) {
  const std::uint64_t begin = reader_.offset();
  std::uint64_t total_bytes = 0;
  std::uint64_t size = 0;
  for (std::uint64_t i = 0; i < value.n_elements; ++i) {
    RONDO_TRY(take(size, "length of an element"));
    RONDO_TRY(need(size, "element"));
    reader_.seek(reader_.offset() + size);
    total_bytes += size;
  }
  const std::uint64_t end = reader_.offset();
  reader_.seek(begin);
  GgufStrings& strings = value.strings;
  strings.bytes_.resize(total_bytes);
  strings.ends_.resize(value.n_elements);
  std::uint64_t used_bytes = 0;
  for (std::uint64_t i = 0; i < value.n_elements; ++i) {
    RONDO_TRY(take(size, "length of an element"));
    if (size > total_bytes - used_bytes) return corrupt("has changed while it was read");
    RONDO_TRY(reader_.read(strings.bytes_.data() + used_bytes, size));
    used_bytes += size;
    strings.ends_[i] = used_bytes;
  }
  if (reader_.offset() != end) return corrupt("has changed while it was read");
  return Status();
}

Status GgufParser::read_alignment() {
  if (!file_.has(kAlignment)) return Status();
  RONDO_ASSIGN(alignment_bytes_, file_.u32(kAlignment));
  if (!std::has_single_bit(alignment_bytes_)) {
    return file_.key_error(kAlignment, fmt::format("is {}, expected a power of two", alignment_bytes_));
  }
  return Status();
}

Status GgufParser::read_tensor(std::uint64_t index) {
  where_ = fmt::format("tensor {} of {}:", index + 1, n_tensors_);
  GgufTensor tensor;
  RONDO_TRY(take_string(tensor.name, "name", kMaxNameBytes));
  if (tensor.name.empty()) return corrupt("has an empty name");
  where_ = tensor_place(tensor.name);

  RONDO_TRY(take(tensor.n_dims, "number of dimensions"));
  if (tensor.n_dims < 1 || tensor.n_dims > tensor.dims.size()) {
    return corrupt(fmt::format("has {} dimensions, expected 1 to {}", tensor.n_dims, tensor.dims.size()));
  }
  for (std::uint32_t i = 0; i < tensor.n_dims; ++i) {
    RONDO_TRY(take(tensor.dims[i], "dimension"));
    if (tensor.dims[i] == 0) return corrupt(fmt::format("dimension {} is 0, expected at least 1", i));
  }
  std::uint32_t type = 0;
  RONDO_TRY(take(type, "type"));
  RONDO_TRY(measure(tensor, type));
  RONDO_TRY(take(tensor.offset_bytes, "offset"));
  file_.tensors_.push_back(std::move(tensor));
  return Status();
}

Status GgufParser::measure(GgufTensor& tensor, std::uint32_t type_id) const {
  const GgmlTypeInfo* info = find_ggml_type(type_id);
  if (info == nullptr) {
    return fail(StatusCode::kUnsupported,
                fmt::format("has type {}, which is unknown or was removed from the format", type_id));
  }
  tensor.type = info->type;
  if (tensor.dims[0] % info->block_elements != 0) {
    return corrupt(fmt::format("has rows of {} elements, expected a multiple of {} for type {}", tensor.dims[0],
                               info->block_elements, info->name));
  }
  std::uint64_t n_elements = 1;
  bool fits = true;
  for (const std::uint64_t dim : tensor.dims) fits = fits && multiply(n_elements, dim, n_elements);
  fits = fits && multiply(n_elements / info->block_elements, info->block_bytes, tensor.size_bytes);
  if (!fits) {
    return corrupt(fmt::format("has dimensions {} x {} x {} x {}, whose product is beyond 64 bits", tensor.dims[0],
                               tensor.dims[1], tensor.dims[2], tensor.dims[3]));
  }
  return Status();
}

Status GgufParser::check_tensors() {
  const std::int64_t twice = sort_by_name(
      file_.tensors_, [](const GgufTensor& t) -> const std::string& { return t.name; }, file_.tensors_by_name_);
  if (twice >= 0) {
    where_ = tensor_place(file_.tensors_[static_cast<std::size_t>(twice)].name);
    return corrupt("is there twice");
  }
  if (file_.tensors_.empty()) return Status();

  where_ = "tensor data:";
  const std::uint64_t padding = (alignment_bytes_ - reader_.offset() % alignment_bytes_) % alignment_bytes_;
  RONDO_TRY(need(padding, "padding"));
  return place_tensors(reader_.offset() + padding);
}

Status GgufParser::place_tensors(std::uint64_t data_begin) {
  const std::uint64_t data_bytes = size_bytes_ - data_begin;
  for (GgufTensor& tensor : file_.tensors_) {
    where_ = tensor_place(tensor.name);
    if (tensor.offset_bytes % alignment_bytes_ != 0) {
      return corrupt(fmt::format("has offset {}, expected a multiple of {}", tensor.offset_bytes, alignment_bytes_));
    }
    if (tensor.offset_bytes > data_bytes || tensor.size_bytes > data_bytes - tensor.offset_bytes) {
      return corrupt(
          fmt::format("has {} bytes at offset {} of the tensor data, which ends after {} bytes: the file is "
                      "truncated or damaged",
                      tensor.size_bytes, tensor.offset_bytes, data_bytes));
    }
    tensor.offset_bytes += data_begin;
  }

  std::vector<std::uint32_t> by_offset(file_.tensors_.size());
  std::iota(by_offset.begin(), by_offset.end(), 0U);
  std::sort(by_offset.begin(), by_offset.end(), [&](std::uint32_t a, std::uint32_t b) {
    return file_.tensors_[a].offset_bytes < file_.tensors_[b].offset_bytes;
  });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor& before = file_.tensors_[by_offset[i - 1]];
    const GgufTensor& tensor = file_.tensors_[by_offset[i]];
    if (before.offset_bytes + before.size_bytes <= tensor.offset_bytes) continue;
    where_ = tensor_place(tensor.name);
    return corrupt(fmt::format("overlaps tensor '{}'", printable(before.name)));
  }
  return Status();
}

Result<GgufFile> GgufFile::parse(const ByteSource& source) {
  RONDO_ASSIGN(GgufFile file, parse_part(source));
  // 0 is what merging leaves behind.
  RONDO_ASSIGN(const std::uint32_t n_parts, file.u32_or(kSplitCount, 1));
  if (n_parts <= 1) return file;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: metadata key '{}' is {}: this is one part of a model, expected all of them; open_model finds them "
                            "beside any one that is called NAME-00001-of-{:05}.gguf",
                            source.name, kSplitCount, n_parts, n_parts));
}

Result<GgufFile> GgufFile::parse_part(const ByteSource& source) {
  if (!source.read) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: the byte source has no read function", source.name));
  }
  GgufFile file;
  GgufParser parser(source, file);
  RONDO_TRY(parser.run());
  return file;
}

}  // namespace rondo::models
