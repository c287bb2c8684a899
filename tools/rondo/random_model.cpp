#include "tools/rondo/random_model.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include "models/formats/gguf.h"
#include "runtime/fmt.h"

namespace rondo::tools {

namespace {

struct RandomShape {
  const char* name;
  std::uint32_t layers, width, heads, kv_heads, ffn, vocabulary, context;
  float rope_base;
};

/// Stories 15M and 110M, SmolLM2 135M and 360M, Llama 3.2 1B, Llama 3 8B.
constexpr RandomShape kShapes[] = {
    {"15m", 6, 288, 6, 6, 768, 32000, 1024, 10000},     {"110m", 12, 768, 12, 12, 2048, 32000, 1024, 10000},     {"135m", 30, 576, 9, 3, 1536, 49152, 2048, 10000},
    {"360m", 32, 960, 15, 5, 2560, 49152, 2048, 10000}, {"1b", 16, 2048, 32, 8, 8192, 128256, 8192, 500000}, {"8b", 32, 4096, 32, 8, 14336, 128256, 8192, 500000},
};

struct RandomType {
  const char* name;
  models::GgmlType type;
  std::uint32_t block_elements, block_bytes;
};
constexpr RandomType kTypes[] = {
    {"f32", models::GgmlType::kF32, 1, 4},    {"f16", models::GgmlType::kF16, 1, 2},       {"q8_0", models::GgmlType::kQ8_0, 32, 34},
    {"q4_0", models::GgmlType::kQ4_0, 32, 18}, {"q4_k", models::GgmlType::kQ4_K, 256, 144}, {"q6_k", models::GgmlType::kQ6_K, 256, 210},
};
constexpr std::uint32_t kLargestBlock = 256;

/// The first number of columns that is no multiple of `block_elements`, or 0. Files of such shapes keep other types for the
/// matrices that don't fit, so their speed says little of this one.
std::uint32_t columns_beyond(const RandomShape& shape, std::uint32_t block_elements) {
  for (const std::uint32_t columns : {shape.width, shape.ffn}) {
    if (columns % block_elements != 0) return columns;
  }
  return 0;
}

template <typename All>
std::string names_of(const All& all) {
  std::string names;
  for (const auto& one : all) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

template <typename Named, std::size_t kN>
const Named* find_named(const Named (&all)[kN], const std::string& name) {
  const auto found = std::find_if(std::begin(all), std::end(all), [&](const Named& one) { return name == one.name; });
  return found == std::end(all) ? nullptr : found;
}

/// Little-endian bytes of a GGUF header.
class Header {
 public:
  template <typename T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void string(std::string_view text) {
    number(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
  }
  void key(std::string_view name, models::GgufValueType type) {
    string(name);
    number(static_cast<std::uint32_t>(type));
    ++n_keys_;
  }
  void text_key(std::string_view name, std::string_view value) {
    key(name, models::GgufValueType::kString);
    string(value);
  }
  void u32_key(std::string_view name, std::uint32_t value) {
    key(name, models::GgufValueType::kU32);
    number(value);
  }
  void f32_key(std::string_view name, float value) {
    key(name, models::GgufValueType::kF32);
    number(value);
  }
  void array_key(std::string_view name, models::GgufValueType type, std::uint64_t n) {
    key(name, models::GgufValueType::kArray);
    number(static_cast<std::uint32_t>(type));
    number(n);
  }
  std::uint64_t n_keys() const { return n_keys_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t n_keys_ = 0;
};

/// Tensor entries, placed one after the other.
class Tensors {
 public:
  void vector(const std::string& name, std::uint64_t n) { add(name, kTypes[0], {n, 0}); }
  void matrix(const std::string& name, const RandomType& type, std::uint64_t rows, std::uint64_t columns) { add(name, type, {columns, rows}); }
  std::uint64_t n() const { return n_; }
  std::uint64_t data_bytes() const { return data_bytes_; }
  const std::string& bytes() const { return entries_.bytes(); }

 private:
  void add(const std::string& name, const RandomType& type, std::array<std::uint64_t, 2> dims) {
    entries_.string(name);
    entries_.number(dims[1] ? 2u : 1u);
    entries_.number(dims[0]);
    if (dims[1]) entries_.number(dims[1]);
    entries_.number(static_cast<std::uint32_t>(type.type));
    entries_.number(data_bytes_);
    data_bytes_ += (dims[0] / type.block_elements * type.block_bytes * std::max<std::uint64_t>(dims[1], 1) + 31) / 32 * 32;
    ++n_;
  }
  Header entries_;
  std::uint64_t n_ = 0, data_bytes_ = 0;
};

Tensors tensors_of(const RandomShape& shape, const RandomType& type) {
  Tensors tensors;
  const std::uint64_t width = shape.width, kv_width = width / shape.heads * shape.kv_heads;
  tensors.matrix("token_embd.weight", type, shape.vocabulary, width);
  for (std::uint32_t i = 0; i < shape.layers; ++i) {
    const auto name = [i](const char* part) { return fmt::format("blk.{}.{}.weight", i, part); };
    tensors.vector(name("attn_norm"), width);
    tensors.matrix(name("attn_q"), type, width, width);
    tensors.matrix(name("attn_k"), type, kv_width, width);
    tensors.matrix(name("attn_v"), type, kv_width, width);
    tensors.matrix(name("attn_output"), type, width, width);
    tensors.vector(name("ffn_norm"), width);
    tensors.matrix(name("ffn_gate"), type, shape.ffn, width);
    tensors.matrix(name("ffn_up"), type, shape.ffn, width);
    tensors.matrix(name("ffn_down"), type, width, shape.ffn);
  }
  tensors.vector("output_norm.weight", width);
  return tensors;
}

}  // namespace

std::string random_shapes() { return names_of(kShapes); }
std::string random_types() { return names_of(kTypes); }
std::string random_shapes_of_k_types() {
  std::vector<RandomShape> fitting;
  std::copy_if(std::begin(kShapes), std::end(kShapes), std::back_inserter(fitting), [](const RandomShape& shape) { return columns_beyond(shape, kLargestBlock) == 0; });
  return names_of(fitting);
}
std::string check_random_shape(const std::string& name) { return find_named(kShapes, name) ? "" : fmt::format("'{}' is not one of {}", name, random_shapes()); }
std::string check_random_type(const std::string& name) { return find_named(kTypes, name) ? "" : fmt::format("'{}' is not one of {}", name, random_types()); }
std::string check_random_model(const std::string& shape_name, const std::string& type_name) {
  const RandomType& type = *find_named(kTypes, type_name);
  const std::uint32_t columns = columns_beyond(*find_named(kShapes, shape_name), type.block_elements);
  if (columns == 0) return "";
  return fmt::format("--random {} has matrices of {} columns but --type {} needs multiples of {}; it fits {}", shape_name, columns, type_name, type.block_elements, random_shapes_of_k_types());
}

ByteSource random_model(const std::string& shape_name, const std::string& type_name) {
  const RandomShape& shape = *find_named(kShapes, shape_name);
  const RandomType& type = *find_named(kTypes, type_name);
  using Type = models::GgufValueType;
  Header keys;
  keys.text_key("general.architecture", "llama");
  keys.text_key("general.name", fmt::format("random {} {}", shape_name, type_name));
  keys.u32_key("llama.block_count", shape.layers);
  keys.u32_key("llama.context_length", shape.context);
  keys.u32_key("llama.embedding_length", shape.width);
  keys.u32_key("llama.feed_forward_length", shape.ffn);
  keys.u32_key("llama.attention.head_count", shape.heads);
  keys.u32_key("llama.attention.head_count_kv", shape.kv_heads);
  keys.f32_key("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  keys.f32_key("llama.rope.freq_base", shape.rope_base);
  keys.text_key("tokenizer.ggml.model", "llama");
  keys.array_key("tokenizer.ggml.tokens", Type::kString, shape.vocabulary);
  for (std::uint32_t i = 0; i < shape.vocabulary; ++i) keys.string(fmt::format("t{}", i));
  keys.array_key("tokenizer.ggml.scores", Type::kF32, shape.vocabulary);
  for (std::uint32_t i = 0; i < shape.vocabulary; ++i) keys.number(0.0f);
  const Tensors tensors = tensors_of(shape, type);

  Header file;
  for (const char c : {'G', 'G', 'U', 'F'}) file.number(c);
  file.number(3u);
  file.number(tensors.n());
  file.number(keys.n_keys());
  auto bytes = std::make_shared<std::string>(file.bytes() + keys.bytes() + tensors.bytes());
  bytes->resize((bytes->size() + 31) / 32 * 32);
  ByteSource source;
  source.name = fmt::format("random {} {}", shape_name, type_name);
  source.size_bytes = bytes->size() + tensors.data_bytes();
  source.read = [bytes](std::uint64_t offset, std::span<std::byte> out) -> Status {
    const std::size_t n = std::min<std::uint64_t>(out.size(), bytes->size() - std::min<std::uint64_t>(offset, bytes->size()));
    if (n > 0) std::memcpy(out.data(), bytes->data() + offset, n);
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), std::byte{0});
    return {};
  };
  return source;
}

}  // namespace rondo::tools
