// What the graphs of all architectures' steps begin, read and end with: weights, caches and step tensors at their places,
// the step's tokens, its head.
//
// Used by models/arch/ within one build of one graph; errors are kept in the graph's status. Not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "models/network.h"

namespace rondo::models {

class StepBuilder {
 public:
  /// `blocks`, `caches` and `places` outlive the builder.
  StepBuilder(std::span<const WeightBlock> blocks, std::span<const CacheSpec> caches, const StepPlaces& places, Role role, std::int64_t rows);

  graph::Graph& graph() { return graph_; }
  /// The layer whose attention weights are the step's output, where the role is such.
  std::optional<std::size_t> shown_layer() const { return role_ == Role::kAttention || role_ == Role::kAttentionImage ? std::optional<std::size_t>(places_.attention_layer) : std::nullopt; }

  /// A matrix (rows, columns); kNone of a slice that is not there.
  graph::TensorId matrix(const WeightSlice& slice);
  /// A vector (elements); kNone of a slice that is not there.
  graph::TensorId vector(const WeightSlice& slice);
  /// Keys (B, heads, positions, width) of cache `index` of Network::caches.
  graph::TensorId keys(std::size_t index);
  graph::TensorId values(std::size_t index);
  /// (B, T, n_heads * D) seen as (B, n_heads, T, D), and back.
  graph::TensorId split_heads(graph::TensorId input, std::int64_t n_heads);
  graph::TensorId merge_heads(graph::TensorId input);

  /// What a step knows of its tokens, see step_begin in the operator table: (B, T) ids and positions, (B) each of the others.
  struct Tokens {
    graph::TensorId ids = graph::kNone, positions = graph::kNone, start = graph::kNone, count = graph::kNone, lengths = graph::kNone, last = graph::kNone;
  };
  /// Begins a step that takes tokens from the token array, or, where the role encodes texts, whole ones. kNone all after an error.
  Tokens begin();
  /// (B, T) types of the tokens of texts that are encoded.
  graph::TensorId types();
  /// Begins a step that takes images: (B, C, Y, X).
  graph::TensorId begin_images(const ImageShape& image);
  /// (B) tokens of each source, or (1) of the one source of all, which a step that encoded has left in caches.
  graph::TensorId source_lengths() { return step_tensor("source lengths", places_.source_lengths, {n_sources()}); }
  /// The pooled rows (B, width) of `hidden` (B, T, width), as the session wants them: their mean, or one of them.
  graph::TensorId pooled(const Tokens& tokens, graph::TensorId hidden, Pooling pooling);
  /// Rows of length 1, where the session wants that.
  graph::TensorId normalized(graph::TensorId vectors);
  /// The rows whose logits the role needs: (B, width) the last valid ones where it samples, else `hidden` (B, T, width).
  graph::TensorId rows_for_head(const Tokens& tokens, graph::TensorId hidden);
  /// Ends the step: samples from `result`, the logits, where the role does, else leaves it in the output, if there is one (kNone);
  /// a view of something larger as a copy.
  graph::Graph finish(graph::TensorId result);

 private:
  std::int64_t n_sources() const { return places_.one_source ? 1 : graph_.n_sequences; }
  graph::TensorId block(std::int32_t index);
  graph::TensorId step_tensor(const char* name, const runtime::BufferRange& place, const graph::Shape& shape, graph::Type type = graph::Type::kI32);
  graph::TensorId cache(std::size_t index, const char* half, std::int64_t width, const std::vector<graph::StoragePiece>& pieces);
  void place_pieces(graph::TensorId id, const std::vector<graph::StoragePiece>& pieces);

  std::span<const WeightBlock> blocks_;
  std::span<const CacheSpec> caches_;
  const StepPlaces& places_;
  Role role_;
  std::int64_t rows_;
  graph::Graph graph_;
  std::vector<graph::TensorId> made_;  ///< the whole of each block
  graph::TensorId state_ = graph::kNone, tokens_ = graph::kNone, mirror_ = graph::kNone;
};

}  // namespace rondo::models
