// What the layers of all architectures are made of: norms and linears, where a file has them, and as nodes of a step's graph.
//
// Pure. Used by models/arch/ alone.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include <rondo/status.h>

#include "graph/graph.h"
#include "models/step_builder.h"
#include "models/weights.h"

namespace rondo::models {

enum class NormKind : std::uint8_t {
  kRms,    ///< Zhang and Sennrich 2019
  kLayer,  ///< Ba, Kiros and Hinton 2016
};

/// How a network norms.
struct NormConfig {
  NormKind kind = NormKind::kLayer;
  double epsilon = 1e-5;
  double weight_offset = 0;  ///< added to the weights; of kRms alone
};

enum class Presence : std::uint8_t { kNever, kIfThere, kAlways };

/// A norm's weight, and its bias.
struct NormWeights {
  WeightSlice weight, bias;
  bool each_head = false;  ///< every head is normalised by itself, with weights of its own
  bool is_there() const { return weight.is_there(); }
};
/// A matrix, and its bias.
struct LinearWeights {
  WeightSlice weight, bias;
  bool is_there() const { return weight.is_there(); }
};

/// Finds the weights of one layer, or those around the layers, whose names all begin with `prefix`. Errors: those of WeightFinder.
class LayerFinder {
 public:
  /// Norms of kLayer have biases where `biased_norms`, else where the file has them.
  LayerFinder(WeightFinder& find, std::string prefix, NormKind norm, bool biased_norms) : find_(find), prefix_(std::move(prefix)), norm_(norm), biased_norms_(biased_norms) {}

  bool has(const std::string& name) const { return find_.has(prefix_ + name); }

  /// A norm of `elements`, or none where it may be absent.
  Status norm(const std::string& name, std::int64_t elements, NormWeights& norm, Presence presence = Presence::kIfThere);
  Status linear(const std::string& name, std::int64_t rows, std::int64_t columns, LinearWeights& linear, bool needs_bias = false);

  /// Linears of one input, as one tensor `together` (or null) or each as its own; `biased`: they must have biases.
  struct Part {
    const char* name;
    std::int64_t rows;
    LinearWeights* linear;
  };
  Status linears(const char* together, std::initializer_list<Part> parts, std::int64_t columns, bool biased = false);
  Status vector(const std::string& name, std::int64_t elements, WeightSlice& slice) { return find_.vector({prefix_ + name, elements, &slice}); }
  /// A table of `rows` vectors of `columns`, in f32.
  Status table(const std::string& name, std::int64_t rows, std::int64_t columns, WeightSlice& table) { return find_.vector({prefix_ + name, rows * columns, &table, rows}); }

 protected:
  Status bias(const std::string& name, std::int64_t elements, WeightSlice& slice, bool needed);

  WeightFinder& find_;
  std::string prefix_;

 private:
  Status linears_together(const std::string& name, std::initializer_list<Part> parts, std::int64_t columns, bool biased);

  NormKind norm_;
  bool biased_norms_;
};

/// Adds norms and linears to the graph of one step.
class LayerBuilder {
 protected:
  /// As StepBuilder.
  LayerBuilder(std::span<const WeightBlock> blocks, std::span<const CacheSpec> caches, const StepPlaces& places, Role role, std::int64_t rows, const NormConfig& norm)
      : step_(blocks, caches, places, role, rows), g_(step_.graph()), norm_(norm) {}

  /// `input` itself where there is no such norm.
  graph::TensorId norm(graph::TensorId input, const NormWeights& weights);
  graph::TensorId norm(graph::TensorId input, graph::TensorId weight, graph::TensorId bias);
  graph::TensorId linear(graph::TensorId input, const LinearWeights& weights, graph::Activation activation = graph::Activation::kIdentity);
  graph::TensorId scaled(graph::TensorId input, double factor);
  graph::TensorId add(graph::TensorId a, graph::TensorId b) { return g_.add(graph::Op::add, {a, b}); }

  StepBuilder step_;
  graph::Graph& g_;

 private:
  NormConfig norm_;
  std::map<float, graph::TensorId> factors_;  ///< constants that something is multiplied by
};

}  // namespace rondo::models
