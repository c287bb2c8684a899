#include "models/arch/layers.h"

#include <algorithm>
#include <vector>

#include "runtime/fmt.h"

namespace rondo::models {

using graph::kNone;
using graph::Op;
using graph::TensorId;

Status LayerFinder::norm(const std::string& name, std::int64_t elements, NormWeights& norm, Presence presence) {
  if (presence == Presence::kNever || (presence == Presence::kIfThere && !has(name + ".weight"))) return {};
  RONDO_TRY(find_.vector({prefix_ + name + ".weight", elements, &norm.weight}));
  return norm_ == NormKind::kRms ? Status() : bias(name, elements, norm.bias, biased_norms_);
}

Status LayerFinder::linear(const std::string& name, std::int64_t rows, std::int64_t columns, LinearWeights& linear, bool needs_bias) {
  RONDO_TRY(find_.matrix({prefix_ + name + ".weight", rows, &linear.weight}, columns));
  return bias(name, rows, linear.bias, needs_bias);
}

Status LayerFinder::linears(const char* together, std::initializer_list<Part> parts, std::int64_t columns, bool biased) {
  if (together && has(std::string(together) + ".weight")) return linears_together(together, parts, columns, biased);
  std::vector<WantedWeight> matrices, biases;
  for (const Part& part : parts) {
    matrices.push_back({prefix_ + part.name + ".weight", part.rows, &part.linear->weight});
    biases.push_back({prefix_ + part.name + ".bias", part.rows, &part.linear->bias});
  }
  RONDO_TRY(find_.matrices(matrices, columns));
  biased = biased || std::any_of(biases.begin(), biases.end(), [&](const WantedWeight& bias) { return find_.has(bias.tensor); });
  return biased ? find_.vectors(biases) : Status();
}

Status LayerFinder::linears_together(const std::string& name, std::initializer_list<Part> parts, std::int64_t columns, bool biased) {
  std::int64_t rows = 0;
  for (const Part& part : parts) rows += part.rows;
  LinearWeights whole;
  RONDO_TRY(linear(name, rows, columns, whole, biased));
  std::int64_t first = 0;
  for (const Part& part : parts) {
    part.linear->weight = {whole.weight.block, whole.weight.first + first, part.rows};
    if (whole.bias.is_there()) part.linear->bias = {whole.bias.block, whole.bias.first + first, part.rows};
    first += part.rows;
  }
  return {};
}

Status LayerFinder::bias(const std::string& name, std::int64_t elements, WeightSlice& slice, bool needed) {
  return needed || has(name + ".bias") ? find_.vector({prefix_ + name + ".bias", elements, &slice}) : Status();
}

TensorId LayerBuilder::norm(TensorId input, const NormWeights& weights) { return weights.is_there() ? norm(input, step_.vector(weights.weight), step_.vector(weights.bias)) : input; }

TensorId LayerBuilder::norm(TensorId input, TensorId weight, TensorId bias) {
  if (norm_.kind == NormKind::kLayer) return g_.add(Op::layer_norm, {input, weight, bias}, graph::LayerNormAttributes{norm_.epsilon});
  return g_.add(Op::rms_norm, {input, weight}, graph::RmsNormAttributes{norm_.epsilon, norm_.weight_offset});
}

TensorId LayerBuilder::linear(TensorId input, const LinearWeights& weights, graph::Activation activation) {
  return g_.add(Op::linear, {input, step_.matrix(weights.weight), kNone, step_.vector(weights.bias)}, graph::LinearAttributes{activation});
}

TensorId LayerBuilder::scaled(TensorId input, double factor) {
  if (factor == 1) return input;
  const float value = static_cast<float>(factor);
  TensorId& constant = factors_.try_emplace(value, kNone).first->second;
  if (constant == kNone) constant = g_.add_constant(fmt::format("factor {}", value), {1}, {&value, 1});
  return g_.add(Op::mul, {input, constant});
}

}  // namespace rondo::models
