// A network: what an architecture gives, and all that planning, sessions and commands know of it.
//
// A network has facts (for people), weights in blocks, caches, and roles: the kinds of step that it can compute. Only
// models/arch/ knows the names and shapes behind them. Pure data; shared freely between threads once made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/encoder.h>
#include <rondo/status.h>

#include "graph/graph.h"
#include "models/image.h"
#include "models/role.h"
#include "models/weights.h"

namespace rondo::models {

/// For people; what a network does not have is 0.
struct NetworkFacts {
  std::string architecture;
  std::string name;
  std::uint32_t n_layers = 0, width = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, ffn = 0;
  std::uint32_t n_vocab = 0;
  std::uint32_t context = 0;  ///< tokens that it was trained for
  std::uint32_t source_context = 0;  ///< of an encoder-decoder: tokens that a source may have
  std::uint32_t n_token_types = 0;   ///< of a text's tokens, such as those of its first and second part
  ImageShape image = {};             ///< that it takes
  std::uint32_t image_rows = 0;      ///< rows that an image becomes
  ModelHead head = ModelHead::kNone;
  std::uint32_t n_labels = 0;        ///< that its head tells of a text, a token or an image
  std::vector<std::string> labels = {};   ///< their names, all of them or none
};

/// How many positions a cache keeps of a sequence.
enum class CacheExtent : std::uint8_t {
  kContext,  ///< all of the context
  kWindow,   ///< the last `window` and those of a step, as a ring
  kSource,   ///< those of an encoder's text, written once
};

/// Keys and values that survive a step: (B, heads, positions, width) each, of the session's KV type.
struct CacheSpec {
  std::string name;  ///< "layer 3"; its halves are "layer 3 keys" and "layer 3 values"
  std::int64_t n_heads = 0, key_width = 0, value_width = 0;
  CacheExtent extent = CacheExtent::kContext;
  std::int64_t window = 0;  ///< of kWindow
};
/// Rows of the largest step that there is.
constexpr std::int64_t kMostStepRows = 512;

/// Positions that the cache keeps in a context of `n_ctx` tokens, of a source of `n_source`. A ring has room for the window of
/// the first row of a step beside what the step writes.
std::int64_t cache_positions(const CacheSpec& spec, std::int64_t n_ctx, std::int64_t n_source);
/// How many tokens before the last that was written rings still have all that these see; more than any context where there is no
/// ring.
std::uint32_t tokens_to_rewind(std::span<const CacheSpec> caches, std::int64_t n_ctx);
/// Bytes that a token in the context takes in all caches, keys and values.
std::uint64_t kv_bytes_per_token(std::span<const CacheSpec> caches, graph::Type kv_type);

/// Where a cache lies, in pieces of heads.
struct CachePlaces {
  std::int64_t positions = 0;
  std::vector<graph::StoragePiece> keys, values;
};

/// Where everything lies that a step touches and the graph does not make. A role reads what it needs of it.
struct StepPlaces {
  std::int64_t n_sequences = 1;
  std::int64_t n_ctx = 0;
  std::int64_t session_ctx = 0;  ///< the context of the session whose kernels a smaller step stands for; 0: n_ctx
  graph::Type kv_type = graph::Type::kF16;
  runtime::BufferRange state, tokens, mirror;
  /// Of roles that encode: their own step state, (B, rows) ids and types, (B) tokens of each text, (B, C, Y, X) pixels.
  runtime::BufferRange source_state, source_tokens, source_types, source_lengths, pixels;
  std::int64_t n_source = 0;            ///< tokens of the longest source
  bool one_source = false;              ///< all sequences have the same source, whose caches are there once
  Pooling pooling = Pooling::kModel;    ///< of kPool and kPoolImage
  bool normalize = false;               ///< their vectors have length 1
  std::uint32_t attention_layer = 0;    ///< of kAttention and kAttentionImage
  runtime::BufferRange output;          ///< of roles that leave one
  std::vector<CachePlaces> caches;      ///< one for each of Network::caches; none: the step only encodes
  std::vector<std::vector<graph::StoragePiece>> weights;  ///< one for each of Network::blocks, in pieces of rows; none: on the host
};

/// A kind of step that a network can compute.
struct RoleSpec {
  Role role{};
  std::int64_t output_width = 0;  ///< floats of each row that it leaves in the output; 0: it leaves none
  bool of_text = false;           ///< a row of the output is of each text or image, not of each token
  std::int64_t pooled_width = 0;  ///< of kPool and kPoolImage: floats where the pooling is another than kModel; 0: as many
  std::uint32_t n_heads = 0, n_layers = 0;  ///< of kAttention and kAttentionImage, whose output is (n_heads, rows, rows) of each text or image

  bool leaves_output() const { return output_width > 0 || n_heads > 0; }
  std::int64_t width(Pooling pooling) const { return pooling != Pooling::kModel && pooled_width > 0 ? pooled_width : output_width; }
  /// Floats in the output of a text or image, in a step of so many rows.
  std::int64_t n_values(std::int64_t rows, Pooling pooling) const { return n_heads > 0 ? n_heads * rows * rows : (of_text ? 1 : rows) * width(pooling); }
};

/// That of a step that shows the attention of one of `n_layers`.
inline RoleSpec attention_role(Role role, std::uint32_t n_heads, std::uint32_t n_layers) {
  RoleSpec spec{role};
  spec.n_heads = n_heads, spec.n_layers = n_layers;
  return spec;
}

/// A part of a network's parameters: how many it has by its sizes, and that in words.
struct NetworkPart {
  std::string name;     ///< "encoder"
  std::string formula;  ///< "6 x (4 x 384 x 384 + 4 x 384 + ...)"
  std::uint64_t n = 0;
};

struct Network {
  NetworkFacts facts;
  std::vector<WeightBlock> blocks;
  std::vector<CacheSpec> caches;
  std::vector<RoleSpec> roles;
  std::vector<NetworkPart> parts;  ///< of what is no decoder alone: all of its parameters
  std::int64_t widest_row = 0;  ///< floats of the widest row that a step computes, its output aside
  bool has_pooler = false;     ///< Pooling::kPooler is there
  std::uint32_t positions_end = 0;  ///< rows of the table of positions that a decoder has; 0: it has none
  ImagePreprocessing image_preprocessing;
  std::optional<std::int32_t> text_end;  ///< of towers whose vector of a text stands at this token: what follows does not matter
  bool ends_at_largest_id = false;       ///< the same, of the largest id of a text
  std::vector<std::int32_t> start_tokens;  ///< of an encoder-decoder: what its decoder begins with
  double similarity_scale = 1;             ///< of towers of texts and images: multiplies the product of their vectors

  /// The graph of one step of `rows` tokens a sequence, in simple operators, every storage at its place but activations and
  /// constants. `role` is one of `roles`. The graph's status tells of errors.
  std::function<graph::Graph(Role role, std::int64_t rows, const StepPlaces& places)> build;

  /// Null where the network has no such role.
  const RoleSpec* find(Role role) const;
  /// The tokens of a text that its vector is of: up to text_end, or the largest id, where there is such an end. Errors:
  /// kInvalidArgument (a text without its end).
  Result<std::span<const std::int32_t>> until_end(std::span<const std::int32_t> tokens) const;
};

}  // namespace rondo::models
