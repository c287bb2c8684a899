// What the parts of attention share: its inputs, and what a kernel needs of the optional ones.
#pragma once

#include "attention.params.h"
#include "graph/lowering.h"

namespace rondo::graph {

class AttributeReader;
class HostTensors;

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

/// Checks all inputs of an attention node that has its kAttentionFileInputs, of which the value may be kNone, makes of them what the
/// kernels read, and adds kBuckets.
Status take_attention_inputs(Graph& graph, Node& node);

/// The attributes of attention.
Attributes read_attention_attributes(AttributeReader& reader);

/// T5's bucket of a distance >= 0 in one direction: exact up to half of the `n` buckets, then logarithmic up to
/// `max_distance` (Raffel et al. 2020; in f32 as Hugging Face's Transformers computes it).
std::int64_t relative_bucket(std::int64_t distance, std::int64_t n, std::int64_t max_distance);

/// Buckets in one direction, of a table of `n_rows`.
std::int64_t buckets_one_way(const AttentionAttributes& attributes, std::int64_t n_rows);

/// Emits the dispatches that put query offsets, lengths and the small inputs into one scratch storage, which is returned.
StorageId gather_attention_tables(const Node& node, Lowering& lowering);

/// What the kernels are told of a node but its values, splits and the piece of the heads that a dispatch computes.
shaders::AttentionParams attention_params(const Node& node, const Lowering& lowering);
/// One sequence of keys is for all: they have no distance.
std::uint32_t sequence_stride(const Tensor& keys);

/// Refuses what a driver with a limit on loops would end early.
Status check_key_loops(const runtime::DeviceCaps& caps, std::uint32_t keys, std::uint64_t iterations);

/// A node of attention_weights as one of attention whose values are kNone, and the inputs of such a node in the other's order.
Node without_values(const Node& weights);
std::vector<TensorId> inputs_of_weights(const Node& attention);

/// The operators' meanings, in double.
Status attention_reference(const Node& node, HostTensors& tensors);
Status attention_weights_reference(const Node& node, HostTensors& tensors);

}  // namespace rondo::graph
