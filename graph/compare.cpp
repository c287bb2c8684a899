#include "graph/compare.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "graph/cache_layout.h"
#include "graph/float16.h"
#include "runtime/fmt.h"

namespace rondo::graph {

namespace {

template <typename T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

bool same_value(float found, float expected) { return found == expected || (std::isnan(found) && std::isnan(expected)); }

/// The error of what changes, and the first element that no tolerance allows.
std::string find_float_difference(const Judged& judged, std::size_t element_bytes, Tolerance tolerance, double& error) {
  std::vector<float> found, expected;
  for (std::size_t i = 0; i < judged.found.size() / element_bytes; ++i) {
    const auto bits = [&](std::span<const std::byte> bytes) { return bytes.subspan(i * element_bytes, element_bytes); };
    const auto equal = [](std::span<const std::byte> a, std::span<const std::byte> b) { return std::memcmp(a.data(), b.data(), a.size()) == 0; };
    const float f = float_element(judged.type, judged.found, i), e = float_element(judged.type, judged.expected, i);
    if (equal(bits(judged.expected), bits(judged.before))) {
      if (equal(bits(judged.found), bits(judged.before))) continue;
      return fmt::format("element {} is {} but must be left as it was, {}", i, f, float_element(judged.type, judged.before, i));
    }
    if (equal(bits(judged.found), bits(judged.before)) && (!same_value(f, e) || is_poison(judged.type, judged.found, i))) return fmt::format("element {} was not written (expected {})", i, e);
    if (tolerance.nmse == 0 || !std::isfinite(e) || !std::isfinite(f)) {
      if (!same_value(f, e)) return fmt::format("element {} is {} but must be {}", i, f, e);
      continue;
    }
    found.push_back(f);
    expected.push_back(e);
  }
  error = normalised_error(found, expected);
  if (error <= tolerance.nmse) return "";
  std::size_t worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::abs(found[i] - expected[i]) > std::abs(found[worst] - expected[worst])) worst = i;
  }
  return fmt::format("error {:.3g} exceeds {:.3g}; the worst is {} instead of {}", error, tolerance.nmse, found[worst], expected[worst]);
}

}  // namespace

double bound_in_f32(ErrorClass error, Activation activation) {
  if (error == ErrorClass::kExact) return 0;
  const bool plain = activation == Activation::kIdentity || activation == Activation::kRelu;
  return error == ErrorClass::kFunctions || !plain ? 1e-10 : 1e-11;
}

double bound_of_rounding(Type cache) { return cache == Type::kF16 ? 1e-6 : cache == Type::kQ8_0 ? 2e-4 : 0; }

void keep_invalid(const Tensor& tensor, const std::function<bool(const std::array<std::int64_t, kMaxRank>&)>& is_valid, std::span<const std::byte> before,
                  std::span<std::byte> bytes) {
  const auto bytes_each = static_cast<std::size_t>(element_bytes(tensor.type));
  for (std::int64_t flat = 0; flat < tensor.shape.n_elements(); ++flat) {
    std::array<std::int64_t, kMaxRank> index{};
    std::int64_t rest = flat, element = tensor.offset_elements;
    for (int axis = tensor.shape.rank - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % tensor.shape[axis];
      rest /= tensor.shape[axis];
      element += index[static_cast<std::size_t>(axis)] * tensor.strides[static_cast<std::size_t>(axis)];
    }
    const std::size_t at = static_cast<std::size_t>(element) * bytes_each;
    if (!is_valid(index)) std::memcpy(bytes.data() + at, before.data() + at, bytes_each);
  }
}

float float_element(Type type, std::span<const std::byte> bytes, std::size_t index) {
  return type == Type::kF16 ? half_to_float(element<std::uint16_t>(bytes, index)) : element<float>(bytes, index);
}

bool is_poison(Type type, std::span<const std::byte> bytes, std::size_t index) {
  if (type != Type::kF16) return element<std::uint32_t>(bytes, index) == kPoison;
  return element<std::uint16_t>(bytes, index) == static_cast<std::uint16_t>(kPoison >> 16 * (index % 2));
}

std::vector<std::byte> poison_bytes(std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t at = 0; at + 4 <= size_bytes; at += 4) std::memcpy(bytes.data() + at, &kPoison, 4);
  return bytes;
}

double normalised_error(std::span<const float> found, std::span<const float> expected) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double e = expected[i], d = static_cast<double>(found[i]) - e;
    error += d * d;
    norm += e * e;
  }
  return error == 0 ? 0 : error / norm;
}

std::vector<std::byte> decoded_cache(std::span<const std::byte> bytes, std::int64_t n_rows, std::int64_t width) {
  const CacheLayout layout = cache_layout(Type::kQ8_0, n_rows, width);
  std::vector<std::byte> values(static_cast<std::size_t>(n_rows * layout.row_elements) * 4);
  for (std::size_t i = 0; i < values.size() / 4; ++i) {
    const std::size_t row = i / static_cast<std::size_t>(layout.row_elements), column = i % static_cast<std::size_t>(layout.row_elements);
    const std::size_t scale = 2 * (layout.scales_offset_words + row * layout.scale_row_words) + column / kCacheGroup;
    const float value = static_cast<float>(element<std::int8_t>(bytes, i)) * half_to_float(element<std::uint16_t>(bytes, scale));
    std::memcpy(values.data() + 4 * i, &value, 4);
  }
  return values;
}

Judged decoded(const Graph& graph, StorageId id, const Judged& judged, std::vector<std::byte> (&kept)[3]) {
  if (judged.type != Type::kQ8_0) return judged;
  for (std::size_t i = 0; i < graph.n_tensors(); ++i) {
    const Tensor& tensor = graph.tensor(static_cast<TensorId>(i));
    if (tensor.storage != id) continue;
    const std::span<const std::byte> planes[] = {judged.before, judged.found, judged.expected};
    for (std::size_t k = 0; k < 3; ++k) kept[k] = decoded_cache(planes[k], tensor.shape.n_rows(), tensor.shape.last());
    return {Type::kF32, kept[0], kept[1], kept[2]};
  }
  return judged;
}

std::string find_difference(const Judged& judged, Tolerance tolerance, double* nmse) {
  double unused = 0;
  double& error = nmse ? *nmse : unused;
  error = std::numeric_limits<double>::infinity();
  if (judged.before.size() != judged.found.size() || judged.expected.size() != judged.found.size()) {
    return fmt::format("sizes differ: {} before, {} found, {} expected", judged.before.size(), judged.found.size(), judged.expected.size());
  }
  if (judged.type == Type::kF32) return find_float_difference(judged, 4, tolerance, error);
  if (judged.type == Type::kF16) return find_float_difference(judged, 2, tolerance, error);
  for (std::size_t i = 0; i < judged.found.size() / 4; ++i) {
    const auto f = element<std::int32_t>(judged.found, i), e = element<std::int32_t>(judged.expected, i);
    if (f != e) return fmt::format("element {} is {} but must be {}", i, f, e);
  }
  error = 0;
  return "";
}

std::string find_touched(std::span<const std::byte> guard) {
  for (std::size_t i = 0; i < guard.size() / 4; ++i) {
    const auto word = element<std::uint32_t>(guard, i);
    if (word != kPoison) return fmt::format("word {} outside is {:#x}", i, word);
  }
  return "";
}

}  // namespace rondo::graph
