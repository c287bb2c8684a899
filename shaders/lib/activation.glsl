// Functions of one element; which one is the specialization constant kActivation, to be defined before. The error stays near
// the rounding of the result even where that is tiny: no difference of nearly equal numbers.
#include "lib/activation.h"

// e^x with the argument reduced first: Vulkan allows exp an error that grows with |x|. Cody and Waite's two-part ln 2.
float reduced_exp(float x) {
  const float bounded = clamp(x, -104.0, 89.0);
  const float n = floor(bounded * 1.44269504 + 0.5);
  const float r = (bounded - n * 0.693359375) + n * 2.12194440e-4;
  const int half_n = int(n) >> 1;  // two factors: 2^n alone may be beyond the normal numbers
  const float first = uintBitsToFloat(uint(half_n + 127) << 23), second = uintBitsToFloat(uint(int(n) - half_n + 127) << 23);
  return isnan(x) ? x : exp(r) * first * second;
}

// erfc(z) for z >= 0, relative error 1.2e-7: Press et al., Numerical Recipes, 6.2.
float upper_erfc(float z) {
  const float t = 1.0 / (1.0 + 0.5 * z);
  const float series =
      t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277))))))));
  return t * reduced_exp(-z * z) * reduced_exp(series - 1.26551223);
}

// x times the normal distribution's integral up to x. Hendrycks and Gimpel 2016.
float gelu(float x) {
  const float tail = 0.5 * upper_erfc(min(abs(x), 20.0) * 0.70710678);
  return x * (x < 0.0 ? tail : 1.0 - tail);
}

float stable_tanh(float x) {
  const float t = exp(-2.0 * abs(x));
  const float square = x * x;
  const float series = x * (1.0 + square * (-0.333333333 + square * (0.133333333 + square * (-0.0539682540 + square * (0.0218694885 - square * 0.00886323553)))));
  return abs(x) < 0.25 ? series : sign(x) * (1.0 - t) / (1.0 + t);
}

float activate(float x) {
  switch (kActivation) {
    case RONDO_ACTIVATION_RELU: return x < 0.0 ? 0.0 : x;  // NaN stays
    case RONDO_ACTIVATION_GELU: return gelu(x);
    case RONDO_ACTIVATION_GELU_TANH: return x / (1.0 + exp(-2.0 * 0.797884561 * (x + 0.044715 * x * x * x)));
    case RONDO_ACTIVATION_QUICK_GELU: return x / (1.0 + exp(-1.702 * x));
    case RONDO_ACTIVATION_SILU: return x / (1.0 + exp(-x));
    case RONDO_ACTIVATION_TANH: return stable_tanh(x);
    case RONDO_ACTIVATION_SIGMOID: return isnan(x) ? x : 1.0 / (1.0 + exp(-x));  // exp may lose NaN, as SwiftShader's does
    case RONDO_ACTIVATION_EXP: return reduced_exp(x);
    case RONDO_ACTIVATION_NEG: return -x;
    default: return x;
  }
}
