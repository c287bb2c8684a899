#include "tools/check/op_case.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "graph/block_format.h"
#include "graph/compare.h"
#include "graph/float16.h"
#include "graph/interpreter.h"
#include "lib/step_state.h"

namespace rondo::check {

using graph::kPoison, graph::poison_bytes;
using graph::StorageId;
using graph::StorageKind;
using graph::TensorId;
using graph::Type;

std::vector<float> random_values(std::size_t n, std::uint32_t seed, float scale) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& value : values) value = (static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f) * scale;
  return values;
}

std::vector<float> integer_values(std::size_t n, std::uint32_t seed, int limit) {
  std::mt19937 bits(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(static_cast<int>(bits() % static_cast<std::uint32_t>(2 * limit + 1)) - limit);
  return values;
}

namespace {

void put(std::vector<std::byte>& bytes, const void* value, std::size_t size) {
  const auto* at = static_cast<const std::byte*>(value);
  bytes.insert(bytes.end(), at, at + size);
}

std::uint32_t below(std::mt19937& bits, std::uint32_t end) { return static_cast<std::uint32_t>(bits() % end); }

void put_half(std::byte* to, float value) {
  const std::uint16_t half = graph::float_to_half(value);
  std::memcpy(to, &half, 2);
}

/// About 1, or 1e4 for large values, as the magnitude of a block's largest weights.
float magnitude(std::mt19937& bits, WeightValues values) {
  return values == WeightValues::kLarge ? 1e4f : 0.5f + static_cast<float>(below(bits, 1024)) / 1024.0f;
}

/// 256 quants q of 0 to 15, values d scale q - dmin min, with a scale and a min for 32 each.
void put_q4_k_block(std::vector<std::byte>& bytes, std::mt19937& bits, WeightValues values) {
  const bool whole = values == WeightValues::kInteger;
  std::byte block[144] = {};
  put_half(block, whole ? 1.0f : magnitude(bits, values) / (63 * 8));
  put_half(block + 2, whole ? 1.0f : magnitude(bits, values) / 63);
  for (std::uint32_t group = 0; group < 8; ++group) {
    const std::uint32_t scale = whole ? 1 + below(bits, 2) : below(bits, 64), min = whole ? below(bits, 4) : below(bits, 64);
    std::byte *low_scale = block + 4 + group % 4, *low_min = low_scale + 4, *high = low_scale + 8;
    if (group < 4) {
      *low_scale |= static_cast<std::byte>(scale);
      *low_min |= static_cast<std::byte>(min);
    } else {
      *high = static_cast<std::byte>((scale & 15u) | (min & 15u) << 4);
      *low_scale |= static_cast<std::byte>(scale >> 4 << 6);
      *low_min |= static_cast<std::byte>(min >> 4 << 6);
    }
    for (std::uint32_t i = 0; i < 32; ++i) {
      const std::uint32_t q = below(bits, whole ? (3 + min) / scale + 1 : 16);
      block[16 + group / 2 * 32 + i] |= static_cast<std::byte>(q << (4 * (group % 2)));
    }
  }
  put(bytes, block, sizeof block);
}

/// 256 quants q of 0 to 63, values d scale (q - 32), with a signed scale for 16 each.
void put_q6_k_block(std::vector<std::byte>& bytes, std::mt19937& bits, WeightValues values) {
  const bool whole = values == WeightValues::kInteger;
  std::byte block[210] = {};
  put_half(block + 208, whole ? 1.0f : magnitude(bits, values) / (128 * 32));
  for (std::uint32_t part = 0; part < 16; ++part) {
    const int scale = whole ? (below(bits, 2) == 0 ? 1 : -2) : static_cast<int>(below(bits, 256)) - 128;
    block[192 + part] = static_cast<std::byte>(scale);
    for (std::uint32_t i = part * 16; i < part * 16 + 16; ++i) {
      const std::uint32_t q = !whole ? below(bits, 64) : scale == 1 ? 29 + below(bits, 7) : 31 + below(bits, 3);
      const std::uint32_t half = i / 128, quarter = i % 128 / 32;
      block[64 * half + i % 64] |= static_cast<std::byte>((q & 15u) << (quarter / 2 * 4));
      block[128 + 32 * half + i % 32] |= static_cast<std::byte>(q >> 4 << (2 * quarter));
    }
  }
  put(bytes, block, sizeof block);
}

/// A block of which all bits are random but those of its scales: every quant of these types is a whole number of few bits.
void put_bits_block(std::vector<std::byte>& bytes, Type type, std::mt19937& bits, WeightValues values) {
  const bool whole = values == WeightValues::kInteger;
  std::vector<std::byte> block(graph::find_block_format(type)->block_bytes);
  for (std::byte& byte : block) byte = static_cast<std::byte>(below(bits, 256));
  const auto mask = [&](std::size_t first, std::size_t n, std::uint32_t kept) {
    for (std::size_t i = first; whole && i < first + n; ++i) block[i] &= static_cast<std::byte>(kept);
  };
  // Puts an f16 number that makes values of about the wanted magnitude of integers up to `largest`.
  const auto scale = [&](std::size_t at, float largest, float whole_value) { put_half(block.data() + at, whole ? whole_value : magnitude(bits, values) / largest); };
  switch (type) {
    case Type::kQ4_1: scale(0, 8, 0.5f), scale(2, -1, -4); break;
    case Type::kQ5_0: scale(0, 16, 0.125f); break;
    case Type::kQ5_1: scale(0, 16, 0.125f), scale(2, -1, -2); break;
    case Type::kIQ4_NL: scale(0, 127, 0x1p-5f); break;
    case Type::kMXFP4: block[0] = static_cast<std::byte>(whole ? 126 : (values == WeightValues::kLarge ? 138 : 122) + below(bits, 4)); break;
    case Type::kQ2_K: scale(80, 15 * 3, 0.5f), scale(82, 15, 0.5f), mask(0, 16, 0x33); break;
    case Type::kQ3_K:
      scale(108, 32 * 4, 0.25f), mask(96, 8, 0x33);
      if (whole) std::fill_n(block.begin() + 104, 4, std::byte{0xaa});  // scales of 0 to 3 behind 32
      break;
    case Type::kQ5_K: scale(0, 63 * 16, 0x1p-5f), scale(2, 63, 0.5f), mask(4, 8, 0x03), mask(12, 4, 0x33); break;
    default: break;
  }
  bytes.insert(bytes.end(), block.begin(), block.end());
}

/// A block of 32 quants behind its scale.
void put_block(std::vector<std::byte>& bytes, Type type, std::mt19937& bits, WeightValues values) {
  const float largest = type == Type::kQ8_0 ? 127.0f : 8.0f;
  float scale = 1.0f;
  if (values == WeightValues::kRandom) scale = (0.5f + static_cast<float>(bits() % 1024) / 1024.0f) / largest;
  if (values == WeightValues::kLarge) scale = 1e4f / largest;
  const std::uint16_t half = graph::float_to_half(scale);
  put(bytes, &half, 2);
  const auto quant = [&](int limit) { return values == WeightValues::kInteger ? static_cast<int>(bits() % 7) - 3 : static_cast<int>(bits() % static_cast<std::uint32_t>(2 * limit)) - limit; };
  if (type == Type::kQ8_0) {
    for (int i = 0; i < 32; ++i) {
      const auto q = static_cast<std::int8_t>(quant(128));
      put(bytes, &q, 1);
    }
    return;
  }
  for (int i = 0; i < 16; ++i) {
    const int low = quant(8) + 8, high = quant(8) + 8;
    const auto packed = static_cast<std::uint8_t>(low | high << 4);
    put(bytes, &packed, 1);
  }
}

}  // namespace

std::vector<std::byte> weight_rows(Type type, std::int64_t rows, std::int64_t columns, std::uint32_t seed, WeightValues values) {
  std::vector<std::byte> bytes;
  const auto n = static_cast<std::size_t>(rows * columns);
  if (has_blocks(type)) {
    std::mt19937 bits(seed);
    for (std::size_t block = 0; block < n / graph::find_block_format(type)->block_elements; ++block) {
      if (type == Type::kQ4_K) put_q4_k_block(bytes, bits, values);
      else if (type == Type::kQ6_K) put_q6_k_block(bytes, bits, values);
      else if (type == Type::kQ8_0 || type == Type::kQ4_0) put_block(bytes, type, bits, values);
      else put_bits_block(bytes, type, bits, values);
    }
    return bytes;
  }
  const std::vector<float> dense = values == WeightValues::kInteger ? integer_values(n, seed, 3) : random_values(n, seed, values == WeightValues::kLarge ? 1e4f : 1.0f);
  for (float value : dense) {
    const std::uint16_t half = graph::float_to_half(value);
    const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    if (type == Type::kF16) put(bytes, &half, 2);
    else if (type == Type::kBF16) put(bytes, &upper, 2);
    else put(bytes, &value, 4);
  }
  return bytes;
}

std::vector<float> weight_values(Type type, std::int64_t rows, std::int64_t columns, std::span<const std::byte> file_rows) {
  const graph::BlockFormat& format = *graph::find_block_format(type);
  const auto k = static_cast<std::uint32_t>(columns);
  const std::size_t row_bytes = graph::file_row_bytes(format, k);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    format.dequantize_row(file_rows.subspan(row * row_bytes, row_bytes), k, values.data() + row * k);
  }
  return values;
}

bool has_blocks(Type type) { return graph::find_block_format(type)->block_elements > 1; }

std::int64_t whole_blocks(Type type, std::int64_t columns) {
  const std::int64_t block = graph::find_block_format(type)->block_elements;
  return (columns + block - 1) / block * block;
}

OpCase::OpCase(std::int64_t n_sequences) {
  graph.name = "op case";
  graph.n_sequences = n_sequences;
  std::vector<std::int32_t> words(static_cast<std::size_t>(n_sequences * RONDO_STATE_WORDS), 0);
  for (std::size_t b = 0; b < static_cast<std::size_t>(n_sequences); ++b) {
    words[b * RONDO_STATE_WORDS + RONDO_STATE_ACTIVE] = 1;
    words[b * RONDO_STATE_WORDS + RONDO_STATE_COUNT] = 0x7fffffff;
  }
  state = step_i32("state", {n_sequences, RONDO_STATE_WORDS}, words);
  graph.state = graph.tensor(state).storage;
}

TensorId OpCase::dense(const std::string& name, StorageKind kind, Type type, const graph::Shape& shape, std::span<const std::byte> bytes) {
  const TensorId id = graph.add_tensor(name, kind, type, shape);
  if (id != graph::kNone) contents_[graph.tensor(id).storage] = {bytes.begin(), bytes.end()};
  return id;
}

TensorId OpCase::f32(const std::string& name, const graph::Shape& shape, std::span<const float> values) {
  return dense(name, StorageKind::kInput, Type::kF32, shape, std::as_bytes(values));
}

TensorId OpCase::activation(const std::string& name, Type type, const graph::Shape& shape, std::span<const float> values) {
  if (type != Type::kF16) return f32(name, shape, values);
  const TensorId id = graph.add_tensor(name, StorageKind::kInput, type, shape);
  if (id == graph::kNone) return id;
  const graph::Storage& storage = graph.storage_of(id);
  contents_[graph.tensor(id).storage].resize(storage.size_bytes);
  write(id, values);
  return id;
}

TensorId OpCase::i32(const std::string& name, const graph::Shape& shape, std::span<const std::int32_t> values) {
  return dense(name, StorageKind::kInput, Type::kI32, shape, std::as_bytes(values));
}

TensorId OpCase::step_i32(const std::string& name, const graph::Shape& shape, std::span<const std::int32_t> values) {
  return dense(name, StorageKind::kStep, Type::kI32, shape, std::as_bytes(values));
}

TensorId OpCase::weight(const std::string& name, Type type, std::int64_t rows, std::int64_t columns, std::vector<std::byte> file_rows) {
  const TensorId id = graph.add_weight(name, type, {rows, columns});
  if (id != graph::kNone) contents_[graph.tensor(id).storage] = std::move(file_rows);
  return id;
}

TensorId OpCase::cache(const std::string& name, Type type, const graph::Shape& shape, std::span<const float> values, StorageKind kind) {
  const TensorId id = graph.add_cache(name, kind, type, shape);
  if (id == graph::kNone) return id;
  const graph::Tensor& tensor = graph.tensor(id);
  std::vector<std::byte>& bytes = contents_[tensor.storage];
  bytes.resize(graph.storage(tensor.storage).size_bytes);
  graph::HostView view(tensor, type, bytes.data());
  const auto width = static_cast<std::size_t>(shape[3]);
  for (std::size_t row = 0; row < values.size() / width; ++row) {
    const auto index = view.row_index(static_cast<std::int64_t>(row));
    view.set_row(values.subspan(row * width, width), index[0], index[1], index[2]);
  }
  return id;
}

void OpCase::write(TensorId id, std::span<const float> values) {
  if (id == graph::kNone) return;
  const graph::Tensor& view = graph.tensor(id);
  std::vector<std::byte>& bytes = contents_.at(view.storage);
  for (std::size_t flat = 0; flat < values.size(); ++flat) {
    auto rest = static_cast<std::int64_t>(flat);
    std::int64_t element = view.offset_elements;
    for (int axis = view.shape.rank - 1; axis >= 0; --axis) {
      element += rest % view.shape[axis] * view.strides[static_cast<std::size_t>(axis)];
      rest /= view.shape[axis];
    }
    if (view.type == Type::kF16) put_half(bytes.data() + element * 2, values[flat]);
    else std::memcpy(bytes.data() + element * 4, &values[flat], 4);
  }
}

void OpCase::output(TensorId id, int row_axis) {
  if (id == graph::kNone) return;
  graph.storage(graph.tensor(id).storage).kind = StorageKind::kOutput;
  outputs_[id] = row_axis;
}

void OpCase::set_state(std::int64_t sequence, int word, std::int32_t value) {
  std::memcpy(contents_[graph.state].data() + (sequence * RONDO_STATE_WORDS + word) * 4, &value, 4);
}

void OpCase::set_count(std::int64_t sequence, std::int32_t count, bool active) {
  set_state(sequence, RONDO_STATE_COUNT, count);
  set_state(sequence, RONDO_STATE_ACTIVE, active ? 1 : 0);
}

std::int32_t OpCase::state_word(std::int64_t sequence, int word) const {
  std::int32_t value = 0;
  if (sequence >= graph.n_sequences) return value;  // no state of its own: not active
  std::memcpy(&value, contents_.at(graph.state).data() + (sequence * RONDO_STATE_WORDS + word) * 4, 4);
  return value;
}

std::vector<std::byte> OpCase::before(StorageId id) const {
  const graph::Storage& storage = graph.storage(id);
  if (storage.kind == StorageKind::kActivation) return {};
  if (storage.kind == StorageKind::kOutput) return poison_bytes(storage.size_bytes);
  if (storage.kind == StorageKind::kConstant) return storage.content;
  if (storage.kind == StorageKind::kWeight) return planes(id);
  return contents_.at(id);
}

std::vector<std::byte> OpCase::planes(StorageId id) const {
  const graph::Storage& storage = graph.storage(id);
  return graph::pack_planes(*graph::find_block_format(storage.type), storage.matrix[0], storage.matrix[1], contents_.at(id), kPoison);
}

Result<std::vector<std::vector<std::byte>>> OpCase::run_reference() const {
  graph::Graph copy = graph;
  graph::HostTensors host(copy, [this](const graph::Storage& storage, std::vector<float>& values) -> Status {
    for (const auto& [id, rows] : contents_) {
      if (graph.storage(id).name == storage.name) values = weight_values(storage.type, storage.matrix[0], storage.matrix[1], rows);
    }
    return {};
  });
  for (std::size_t i = 0; i < copy.n_storages(); ++i) {
    const auto id = static_cast<StorageId>(i);
    const StorageKind kind = copy.storage(id).kind;
    if (kind != StorageKind::kActivation && kind != StorageKind::kWeight) host.set_bytes(id, before(id));
  }
  RONDO_TRY(graph::interpret(copy, host));
  std::vector<std::vector<std::byte>> after;
  for (std::size_t i = 0; i < graph.n_storages(); ++i) {
    const auto id = static_cast<StorageId>(i);
    const StorageKind kind = graph.storage(id).kind;
    after.push_back(kind == StorageKind::kWeight ? before(id) : host.bytes(id));
  }
  for (const auto& [id, row_axis] : outputs_) {
    const graph::Tensor& tensor = graph.tensor(id);
    const std::int64_t rows = tensor.shape.rank == 0 ? 1 : tensor.shape[0] / graph.n_sequences;
    const auto is_valid = [&, axis = static_cast<std::size_t>(row_axis)](const auto& index) {
      const std::int64_t sequence = axis == 0 ? index[0] / rows : index[0], row = axis == 0 ? index[0] % rows : index[axis];
      return state_word(sequence, RONDO_STATE_ACTIVE) != 0 && row < state_word(sequence, RONDO_STATE_COUNT);
    };
    std::vector<std::byte>& bytes = after[static_cast<std::size_t>(tensor.storage)];
    graph::keep_invalid(tensor, is_valid, poison_bytes(bytes.size()), bytes);
  }
  return after;
}

}  // namespace rondo::check
