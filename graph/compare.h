// How the bytes that a run left behind are judged. Pure: no device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/operator.h"

namespace rondo::graph {

/// Fills memory that a kernel has yet to write or must leave alone: a NaN, and an id outside every vocabulary.
constexpr std::uint32_t kPoison = 0xffc0deadu;

/// Element `index` of f32 or f16.
float float_element(Type type, std::span<const std::byte> bytes, std::size_t index);

/// It is poison, all of it if it is f32 and one half if it is f16.
bool is_poison(Type type, std::span<const std::byte> bytes, std::size_t index);

/// `size_bytes` (a multiple of 4) of poison.
std::vector<std::byte> poison_bytes(std::size_t size_bytes);

/// Bound of linears of activations that are rounded to bytes, 32 or 16 with a scale of largest magnitude / 127: each is off by half a
/// step of 1 / 127 at most.
constexpr double kRoundedActivations = 1e-4;
/// Bound of products of matrix units, both of whose factors are rounded to f16, to nearest or towards zero.
constexpr double kRoundedFactors = 1e-6;

/// How far a result may be off: the normalised mean squared error, or 0 for equal values.
struct Tolerance {
  double nmse = 0;
};

/// Bound of an operator's results in f32 from inputs in f32 (docs/correctness.md says why); 0: equal.
double bound_in_f32(ErrorClass error, Activation activation);
/// Bound of what is computed and then rounded to a cache's type: it may lie so near to the middle of two of its values that it
/// becomes the other one. 0 for f32.
double bound_of_rounding(Type cache);

/// Elements of `tensor` that are not valid, by their indices, hold in `bytes` what they hold in `before`, both of its whole storage.
void keep_invalid(const Tensor& tensor, const std::function<bool(const std::array<std::int64_t, kMaxRank>& index)>& is_valid, std::span<const std::byte> before,
                  std::span<std::byte> bytes);

/// A storage before and after. All spans have the size of the storage.
struct Judged {
  Type type = Type::kF32;  ///< f32, f16, or words that must be equal
  std::span<const std::byte> before;
  std::span<const std::byte> found;
  std::span<const std::byte> expected;  ///< elements equal to `before` must be left untouched, bit for bit
};

/// What is wrong with the found elements, or "". NaN is expected where `expected` is NaN, infinities must agree, and the
/// error of the other elements that change stays within the tolerance. Integers must be equal. The error goes to `nmse`, if it
/// is given: infinity where something must be equal and isn't.
std::string find_difference(const Judged& judged, Tolerance tolerance, double* nmse = nullptr);

/// What the planes of q8_0 rows mean, as f32 with the padding. `bytes` is a whole cache of `n_rows` rows of `width` elements.
std::vector<std::byte> decoded_cache(std::span<const std::byte> bytes, std::int64_t n_rows, std::int64_t width);

/// The same for a storage of `graph`, as Judged takes it with a tolerance; other storages' bytes as they are.
Judged decoded(const Graph& graph, StorageId id, const Judged& judged, std::vector<std::byte> (&kept)[3]);

/// sum((found - expected)^2) / sum(expected^2); 0 / 0 is 0.
double normalised_error(std::span<const float> found, std::span<const float> expected);

/// The first word of `guard` that is not poison, in words, or "".
std::string find_touched(std::span<const std::byte> guard);

}  // namespace rondo::graph
