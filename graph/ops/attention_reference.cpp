#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "graph/host_tensors.h"
#include "graph/operator.h"
#include "graph/ops/attention_inputs.h"

namespace rondo::graph {

namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

/// Attention, one output row at a time.
class Attention {
 public:
  Attention(const Node& node, HostTensors& tensors) : node_(node), tensors_(tensors), attributes_(attributes_of<AttentionAttributes>(node)), query_(view(kQuery)), key_(view(kKey)) {
    scale_ = attributes_.scale != 0 ? attributes_.scale : 1 / std::sqrt(static_cast<double>(query_.dim(3)));
  }

  /// Output row of query i of head h in sequence b.
  void attend(HostView& output, std::int64_t b, std::int64_t h, std::int64_t i) {
    const HostView value = view(kValue);
    const std::vector<double> weights = weigh(b, h, i);
    for (std::int64_t e = 0; e < value.dim(3); ++e) {
      double sum = 0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        if (weights[j] == 0) continue;  // a value that is not allowed never leaks
        const auto key = static_cast<std::int64_t>(j);
        double element = value.at(own(value, b), kv_head(h), key % value.dim(2), e);
        if (has(kRelativeValue)) element += view(kRelativeValue).at(relative_row(kRelativeValue, key - position_of(b, i)), e);
        sum += weights[j] * element;
      }
      output.set(static_cast<float>(sum), b, h, i, e);
    }
  }

  /// The weights themselves, each where its key is stored.
  void show(HostView& output, std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::vector<double> weights = weigh(b, h, i);
    const auto n = static_cast<std::int64_t>(weights.size());
    for (std::int64_t c = 0; c < key_.dim(2); ++c) output.set(0, b, h, i, c);
    for (std::int64_t j = std::max<std::int64_t>(0, n - key_.dim(2)); j < n; ++j) output.set(static_cast<float>(weights[static_cast<std::size_t>(j)]), b, h, i, j % key_.dim(2));
  }

 private:
  /// What each key up to the last that counts weighs; 0 of those that are not allowed.
  std::vector<double> weigh(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t position = position_of(b, i);
    const std::int64_t counted = has(kLengths) ? view(kLengths).int_at(own(view(kLengths), b)) : key_.dim(2);
    const std::int64_t length = attributes_.ring ? counted : std::min(counted, key_.dim(2));
    std::vector<double> weights;
    std::vector<bool> seen;
    double highest = has(kSinks) ? view(kSinks).at(h) : -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < length; ++j) {
      seen.push_back(allowed(j, position) && j >= length - key_.dim(2) && !hidden(b, h, i, j));
      weights.push_back(seen.back() ? score(b, h, kv_head(h), i, j, position) : 0);
      if (seen.back()) highest = std::max(highest, weights.back());
    }
    double total = has(kSinks) ? std::exp(static_cast<double>(view(kSinks).at(h)) - highest) : 0;
    for (std::size_t j = 0; j < weights.size(); ++j) total += weights[j] = seen[j] ? std::exp(weights[j] - highest) : 0;
    for (std::size_t j = 0; j < weights.size(); ++j) weights[j] = seen[j] ? weights[j] / total : 0;
    return weights;
  }

  std::int64_t kv_head(std::int64_t h) const { return h / (query_.dim(1) / key_.dim(1)); }
  std::int64_t position_of(std::int64_t b, std::int64_t i) { return (has(kOffset) ? view(kOffset).int_at(own(view(kOffset), b)) : key_.dim(2) - query_.dim(2)) + i; }

  bool has(AttentionInput input) const { return node_.inputs[input] != kNone; }
  HostView view(AttentionInput input) { return tensors_.view(node_.inputs[input]); }

  /// The sequence that stands for sequence b.
  static std::int64_t own(const HostView& view, std::int64_t b) { return view.dim(0) == 1 ? 0 : b; }

  bool allowed(std::int64_t j, std::int64_t position) const {
    if (j < attributes_.prefix) return true;
    if (attributes_.causal && j > position) return false;
    if (attributes_.window_back >= 0 && j < position - attributes_.window_back) return false;
    if (attributes_.window_ahead >= 0 && j > position + attributes_.window_ahead) return false;
    if (attributes_.chunk == 0) return true;
    const std::int64_t behind = floor_div(position, attributes_.chunk) - floor_div(j, attributes_.chunk);
    return behind >= 0 && behind <= attributes_.chunks_back;
  }

  std::int64_t relative_row(AttentionInput input, std::int64_t distance) {
    const std::int64_t radius = view(input).dim(0) / 2;
    return std::clamp(distance, -radius, radius) + radius;
  }

  double score(std::int64_t b, std::int64_t h, std::int64_t g, std::int64_t i, std::int64_t j, std::int64_t position) {
    double product = 0;
    for (std::int64_t d = 0; d < query_.dim(3); ++d) {
      double element = key_.at(own(key_, b), g, j % key_.dim(2), d);
      if (has(kRelativeKey)) element += view(kRelativeKey).at(relative_row(kRelativeKey, j - position), d);
      product += static_cast<double>(query_.at(b, h, i, d)) * element;
    }
    double s = product * scale_;
    if (attributes_.softcap > 0) s = attributes_.softcap * std::tanh(s / attributes_.softcap);
    if (has(kBias)) {
      const std::int64_t n = buckets_one_way(attributes_, view(kBias).dim(0)), distance = j - position;
      const std::int64_t steps = attributes_.bidirectional_buckets ? std::abs(distance) : std::max<std::int64_t>(-distance, 0);
      const bool ahead = attributes_.bidirectional_buckets && distance > 0;
      s += view(kBias).at(relative_bucket(steps, n, attributes_.max_distance) + (ahead ? n : 0), h);
    }
    if (has(kSlopes)) s += static_cast<double>(view(kSlopes).at(h)) * static_cast<double>(j - position);
    return has(kMask) && !mask_is_boolean() ? s + mask_at(b, h, i, j) : s;
  }

  bool mask_is_boolean() const { return tensors_.graph().tensor(node_.inputs[kMask]).type == Type::kI32; }

  /// By a false, or by minus infinity.
  bool hidden(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    if (!has(kMask)) return false;
    return mask_at(b, h, i, j) == (mask_is_boolean() ? 0 : -std::numeric_limits<double>::infinity());
  }

  double mask_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const HostView mask = view(kMask);
    const std::array<std::int64_t, 4> at = {b, h, i, j};
    std::array<std::int64_t, 4> index{};
    const int rank = mask.shape().rank;
    for (int axis = 0; axis < rank; ++axis) index[static_cast<std::size_t>(axis)] = mask.dim(axis) == 1 ? 0 : at[static_cast<std::size_t>(4 - rank + axis)];
    return mask.at(index[0], index[1], index[2], index[3]);
  }

  const Node& node_;
  HostTensors& tensors_;
  AttentionAttributes attributes_;
  HostView query_, key_;
  double scale_;
};

/// Every row of every head of the output, by one of the two.
Status compute(const Node& node, HostTensors& tensors, void (Attention::*row)(HostView&, std::int64_t, std::int64_t, std::int64_t)) {
  Attention attention(node, tensors);
  HostView output = tensors.view(node.outputs[0]);
  for (std::int64_t b = 0; b < output.dim(0); ++b) {
    for (std::int64_t h = 0; h < output.dim(1); ++h) {
      for (std::int64_t i = 0; i < output.dim(2); ++i) (attention.*row)(output, b, h, i);
    }
  }
  return {};
}

}  // namespace

Status attention_reference(const Node& node, HostTensors& tensors) { return compute(node, tensors, &Attention::attend); }
Status attention_weights_reference(const Node& node, HostTensors& tensors) { return compute(without_values(node), tensors, &Attention::show); }

}  // namespace rondo::graph
