// A stack of layers as encoders and encoder-decoders have them, and the graph of it: attention to itself, to an encoder's output
// where there is one, and a feed-forward network.
//
// Vaswani et al. 2017. Norms stand behind the branches, as there, or before them (Xiong et al. 2020). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "models/arch/keys.h"
#include "models/arch/layers.h"
#include "models/network.h"

namespace rondo::models {

/// What attention adds to scores or values by the distance of a key.
enum class Relative : std::uint8_t {
  kNone,
  kBuckets,      ///< a bias of each bucket of distances and head, one table for all layers; Raffel et al. 2020
  kKeys,         ///< query times a vector of each distance, a table a layer; Shaw et al. 2018
  kKeysQueries,  ///< and key times the same vector; Huang et al. 2020
};

struct StackConfig {
  std::uint32_t n_layers = 0, width = 0, n_heads = 0, head_dim = 0, ffn = 0;
  bool norms_behind = false;  ///< x = norm(x + branch(x)); else x = x + branch(norm(x))
  bool gated = false;         ///< activation(gate) * up in the place of activation(up)
  graph::Activation activation = graph::Activation::kGelu;
  bool decodes = false;       ///< queries see no later keys, which lie in caches, and attend to a source as well
  bool causal = false;        ///< the first of these alone, without caches
  double attention_scale = 0;  ///< 0: 1 / sqrt(head_dim)
  std::optional<graph::RopeAttributes> rope;
  Relative relative = Relative::kNone;
  std::int64_t buckets = 0, max_distance = 128;  ///< of kBuckets
  std::int64_t farthest = 0;  ///< of kKeys and kKeysQueries: distances from -farthest to farthest have a vector
  bool biased = false;        ///< linears must have biases
  NormKind norm = NormKind::kLayer;
  Presence final_norm = Presence::kNever;
};

struct StackWeights {
  struct Layer {
    NormWeights attention_norm, cross_norm, ffn_norm;
    LinearWeights query, key, value, output;
    LinearWeights cross_query, cross_key, cross_value, cross_output;
    LinearWeights gate, up, down;
    WeightSlice distances;       ///< (2 farthest + 1, head_dim), of a key behind the query last; of kKeys and kKeysQueries
    WeightSlice distances_back;  ///< the same rows the other way round, of kKeysQueries
  };
  std::vector<Layer> layers;
  NormWeights final_norm;
  WeightSlice buckets;  ///< (buckets, n_heads), of kBuckets
};

/// The sizes of a stack. Errors: kCorruptData, naming file and key.
Status read_stack(const ArchitectureKeys& keys, StackConfig& stack);
/// Buckets of distances, and that scores have no other scale than the weights'.
Status read_buckets(const ArchitectureKeys& keys, StackConfig& stack);

/// GGUF's names of a stack's tensors.
struct StackNames {
  std::string layers;      ///< before a layer's number: "blk." or "enc.blk."
  std::string final_norm;  ///< "enc.output_norm"
  const char* attention_norm = "attn_norm";
  const char* attention_output = "attn_output";
  const char* ffn_norm = "ffn_norm";
};

/// Errors: those of WeightFinder.
Status find_stack(WeightFinder& find, const StackConfig& config, const StackNames& names, StackWeights& weights);

/// Adds up a part's parameters, term by term.
class PartCounter {
 public:
  explicit PartCounter(std::string name) { part_.name = std::move(name); }
  /// The product of these, unless one is 0.
  PartCounter& add(std::initializer_list<std::int64_t> factors);
  /// A norm of `width` elements, and a linear, with their biases, where they are there.
  PartCounter& add(const NormWeights& norm, std::int64_t width) { return norm.is_there() ? add({norm.bias.is_there() ? 2 : 1, width}) : *this; }
  PartCounter& add(const LinearWeights& linear, std::int64_t rows, std::int64_t columns) { return linear.is_there() ? add({rows, columns}).add({linear.bias.is_there() ? rows : 0}) : *this; }
  /// `times` all that `other` has.
  PartCounter& add(std::int64_t times, const PartCounter& other);
  const NetworkPart& part() const { return part_; }

 private:
  NetworkPart part_;
};
/// The parameters of a stack, by its sizes.
NetworkPart stack_part(const std::string& name, const StackConfig& config, const StackWeights& weights);

/// Two caches for each layer of a stack that decodes: its own, and that of the source.
std::vector<CacheSpec> stack_caches(const StackConfig& config);

/// Floats of the widest row of a step of `rows` tokens.
std::int64_t widest_row(const StackConfig& config, std::int64_t rows);

/// Adds stacks to the graph of one step.
class StackBuilder : public LayerBuilder {
 protected:
  using LayerBuilder::LayerBuilder;

  /// What the layers make of `hidden` (B, T, width), before the final norm. `tokens`: those of the step; where it takes images they are
  /// none, and all rows count. A stack that decodes has its caches from the first on, a layer's own and its source's in turn.
  graph::TensorId stack(const StackConfig& config, const StackWeights& weights, const StepBuilder::Tokens& tokens, graph::TensorId hidden);
  /// What a stack that encodes makes of `hidden`, after its final norm; or, where the step is for one layer's attention, what that weighs
  /// (B, heads, T, T), and nothing that comes after it.
  graph::TensorId encoded(const StackConfig& config, const StackWeights& weights, const StepBuilder::Tokens& tokens, graph::TensorId hidden);
  /// Puts the keys and values that each layer of a decoding stack makes of an encoder's output into its caches of the source.
  void write_source(const StackConfig& config, const StackWeights& weights, const StepBuilder::Tokens& tokens, graph::TensorId encoded);

 private:
  graph::TensorId layer(const StackConfig& config, const StackWeights& weights, std::size_t index, const StepBuilder::Tokens& tokens, graph::TensorId hidden);
  /// What attention adds to the hidden state, or what it weighs, where the step is for that of this layer.
  graph::TensorId self_attention(const StackConfig& config, const StackWeights& weights, std::size_t index, const StepBuilder::Tokens& tokens, graph::TensorId input);
  graph::TensorId cross_attention(const StackConfig& config, const StackWeights::Layer& weights, std::size_t index, graph::TensorId input);
  graph::TensorId network(const StackConfig& config, const StackWeights::Layer& weights, graph::TensorId input);
  graph::TensorId table(const WeightSlice& slice, std::int64_t columns);
  graph::TensorId key_biases(const StackConfig& config, const StackWeights::Layer& weights, graph::TensorId key);

  graph::TensorId source_lengths_ = graph::kNone;
};

}  // namespace rondo::models
