// Decoders: one builder for all families of them, from a plain table of hyper-parameters and flags.
//
// Vaswani et al. 2017, decoder only. A layer is: norm, attention, a norm behind it, residual; norm, feed-forward network, a norm
// behind it, residual; or both branches side by side (Wang and Komatsuzaki 2021). Each part may be absent or of another kind;
// what is there is what the file has weights for, and what the family's row of models/arch/families.cpp says.
#pragma once

#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "graph/graph.h"
#include "models/arch/layers.h"
#include "models/formats/gguf.h"
#include "models/network.h"

namespace rondo::models {

/// Where the feed-forward network of a layer takes its input and puts its output.
enum class Residuals : std::uint8_t {
  kSerial,         ///< x + attention(norm(x)), then the same with the network
  kBehind,         ///< norm(x + attention(x)), then the same with the network, as Vaswani et al. 2017 have it
  kParallel,       ///< x + attention(norm(x)) + ffn(norm'(x)); without a second norm, of the first one's output
};

/// How positions are told.
enum class Positions : std::uint8_t {
  kRope,     ///< Su et al. 2021
  kLearned,  ///< a table that is added to the embeddings
  kAlibi,    ///< Press et al. 2022: biases on the scores
  kShaw,     ///< Shaw et al. 2018: vectors of each distance that are added to keys and to values
};

/// Which biases must be there.
enum class Biases : std::uint8_t {
  kIfThere,        ///< none; those that are there are used
  kQueryKeyValue,
  kNorms,
  kAll,            ///< of norms and linears
};

/// A family's row in the table: what no key of its files says.
struct Family {
  const char* name;  ///< general.architecture
  NormKind norm = NormKind::kRms;
  Positions positions = Positions::kRope;
  graph::RopeStyle rope_style = graph::RopeStyle::kHalf;
  bool gated = true;  ///< activation(gate) * up, with gates behind or before ups; else activation(up)
  graph::Activation activation = graph::Activation::kSilu;
  Residuals residuals = Residuals::kSerial;
  bool scales_embedding = false;       ///< by sqrt(width), as Gemma does
  bool divides_logits = false;         ///< logit_scale divides, as Granite's does; else it multiplies
  Biases biases = Biases::kIfThere;
  bool norms_before = true, norms_behind = false;  ///< of the branches
  Presence ffn_norm = Presence::kAlways;  ///< the second norm before a branch
  Presence output_norm = Presence::kAlways;  ///< before the head
  bool head_norms = false;             ///< of queries and keys
  bool embedding_norm = false;
  bool may_be_serial = false;          ///< use_parallel_residual says
  const char* needed_key = nullptr;    ///< that has no default
  std::uint32_t window_period = 0;     ///< every so many layers one sees all of the context; 0: none does, where there is a window
  std::uint32_t no_rope_period = 0;    ///< every so many layers one has no positions; 0: none
  bool rope_in_windows_only = false;   ///< layers that see all of the context have none
  bool scales_full_layers_only = false;  ///< RoPE scaling is not for the layers with a window
  double window_theta = 0;             ///< of the layers with a window, where no key says it; 0: as the others
  std::uint32_t default_window = 0;    ///< these where no key says it
  double default_attention_softcap = 0, default_final_softcap = 0;
  bool has_experts = false;            ///< always; else where expert_count says it
  bool normalizes_experts = true;      ///< the weights of those chosen add up to 1, where no key says it
  const char* ffn_norm_name = "ffn_norm";  ///< of its tensor
  bool has_sinks = false;              ///< always; else where the file has them
  double glu_limit = 0, glu_up_bias = 0;  ///< of graph::GluAttributes
  std::uint32_t layers_of_wide_scale = 0;  ///< the member of so many layers scales scores by width / heads instead of head_dim
};

/// One layer's attention.
struct LayerConfig {
  std::int64_t window = 0;  ///< tokens that a query sees, itself included; 0: all
  bool rope = true;
  double theta = 10000;
  bool scaled = true;  ///< frequency factors and attention_factor are its
};

/// A mixture of experts (Shazeer et al. 2017) in the place of each layer's feed-forward network.
struct ExpertsConfig {
  std::uint32_t n = 0;     ///< 0: there is none
  std::uint32_t used = 0;  ///< of them, by each token
  std::uint32_t ffn = 0, shared_ffn = 0;  ///< width of each, and of one that all tokens use as well, where there is one
  bool normalize = true;
};

/// Hyper-parameters and flags of a decoder.
struct DecoderConfig {
  Family family;
  NetworkFacts facts;
  double epsilon = 1e-5;               ///< of the norms
  double norm_weight_offset = 0;       ///< added to their weights
  graph::RopeAttributes rope;          ///< max_position follows the context; theta is the layer's
  std::vector<float> rope_factors;     ///< rope.dimensions / 2, or none
  std::vector<float> long_rope_factors;  ///< in the place of those, in contexts longer than original_context
  std::uint32_t original_context = 0;
  std::vector<LayerConfig> layers;
  ExpertsConfig experts;
  double attention_scale = 0;  ///< 0: 1 / sqrt(head_dim)
  double attention_softcap = 0, final_softcap = 0;
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  double max_alibi_bias = 0;
  std::int64_t farthest = 0;  ///< of kShaw: distances beyond it are that one
};

/// Reads and checks the keys of a family's file, and its RoPE factors.
/// Errors: kUnsupported (a feature that isn't there yet), kCorruptData (missing, wrongly typed or contradictory), kIo, naming
/// file and key.
Result<DecoderConfig> read_decoder_config(const GgufFile& file, const ByteSource& source, const Family& family);

/// Finds the weights by GGUF's names and makes the network. Errors: those of WeightFinder, kUnsupported (weights that the
/// builder does not know what to do with).
Result<Network> open_decoder(const GgufFile& file, DecoderConfig config);

/// Where a decoder's weights are among its blocks.
struct DecoderWeights {
  struct Layer {
    NormWeights attention_norm, second_norm, attention_post_norm, ffn_norm, ffn_post_norm;
    NormWeights query_norm, key_norm;  ///< of head_dim elements, one for all heads, or of all heads' elements
    LinearWeights query, key, value, output, gate, up, down;
    LinearWeights router, expert_gate, expert_up, expert_down;  ///< all experts' rows, one after the other
    LinearWeights shared_router;  ///< a number between 0 and 1 for what the shared expert (gate, up, down) adds
    WeightSlice sinks;            ///< of n_heads
    WeightSlice key_distances, value_distances;  ///< (2 farthest + 1, head_dim)
  };
  WeightSlice embedding, positions;
  NormWeights embedding_norm, output_norm;
  LinearWeights output;
  std::vector<Layer> layers;
};

/// The network of a decoder whose weights are known, wherever they are from. Roles: prefill, prefill and sample, decode, logits, attention.
Network make_decoder(DecoderConfig config, DecoderWeights weights, std::vector<WeightBlock> blocks);

}  // namespace rondo::models
