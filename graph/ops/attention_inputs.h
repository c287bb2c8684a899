// What the parts of attention share: its inputs, and what a kernel needs of the optional ones.
#pragma once

#include "graph/lowering.h"

namespace rondo::graph {

/// Inputs of an attention node, in order. The last is a constant that `infer` adds where there is a relative bias.
enum AttentionInput : std::uint8_t {
  kQuery, kKey, kValue, kOffset, kLengths, kMask, kSlopes, kBias, kRelativeKey, kRelativeValue, kSinks, kAttentionFileInputs,
  kBuckets = kAttentionFileInputs, kAttentionInputs
};

/// Specialisation constants 4 to 6 of attention.comp.
struct AttentionFeatures {
  std::uint32_t bits = 0;     ///< shaders/lib/attention_features.h
  std::uint32_t radii = 0;    ///< R of the relative keys, and of the values in the upper half
  std::uint32_t buckets = 0;  ///< of the bias, and the largest distance in the upper half
};
AttentionFeatures attention_features(const Graph& graph, const Node& node);

/// Checks the optional inputs and attributes against query (B, H, Q, D), key (B, G, S, D) and value (B, G, S, E).
Status check_attention_inputs(const Graph& graph, const Node& node);

/// T5's bucket of a distance >= 0 in one direction: exact up to half of the `n` buckets, then logarithmic up to
/// `max_distance` (Raffel et al. 2020; in f32 as Hugging Face's Transformers computes it).
std::int64_t relative_bucket(std::int64_t distance, std::int64_t n, std::int64_t max_distance);

/// Buckets in one direction, of a table of `n_rows`.
std::int64_t buckets_one_way(const AttentionAttributes& attributes, std::int64_t n_rows);

/// Emits the dispatches that put query offsets, lengths and the small inputs into one scratch storage, which is returned.
StorageId gather_attention_tables(const Node& node, Lowering& lowering);

/// The operator's meaning, in double.
Status attention_reference(const Node& node, class HostTensors& tensors);

}  // namespace rondo::graph
