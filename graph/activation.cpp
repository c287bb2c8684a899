#include "graph/activation.h"

#include <array>
#include <cmath>

#include "lib/activation.h"

namespace rondo::graph {

static_assert(static_cast<int>(Activation::kRelu) == RONDO_ACTIVATION_RELU && static_cast<int>(Activation::kNeg) == RONDO_ACTIVATION_NEG);

namespace {

constexpr std::array<const char*, 10> kNames = {"none", "relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "exp", "neg"};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

double activate(Activation activation, double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440, kSqrtTwoOverPi = 0.79788456080286535588;
  switch (activation) {
    case Activation::kIdentity: return x;
    case Activation::kRelu: return x < 0 ? 0 : x;
    case Activation::kGelu: return x * 0.5 * std::erfc(-x * kSqrtHalf);
    case Activation::kGeluTanh: return 0.5 * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
    case Activation::kQuickGelu: return x * sigmoid(1.702 * x);
    case Activation::kSilu: return x * sigmoid(x);
    case Activation::kTanh: return std::tanh(x);
    case Activation::kSigmoid: return sigmoid(x);
    case Activation::kExp: return std::exp(x);
    case Activation::kNeg: return -x;
  }
  return x;
}

double gated(const GluAttributes& attributes, double gate, double up) {
  if (attributes.limit > 0) {
    if (gate > attributes.limit) gate = attributes.limit;
    if (std::abs(up) > attributes.limit) up = std::copysign(attributes.limit, up);
  }
  return activate(attributes.activation, gate) * (up + attributes.up_bias);
}

const char* activation_name(Activation activation) { return kNames[static_cast<std::size_t>(activation)]; }

std::span<const char* const> activation_names() { return kNames; }

std::optional<Activation> find_activation(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Activation>(i);
  }
  return std::nullopt;
}

}  // namespace rondo::graph
