// activate(gate) * up, and with kLimited of min(gate, limit) and of clamp(up, -limit, limit) + up_bias, where a limit of 0 is
// none. NaN stays. Needs the specialization constants kActivation and kLimited.
#include "lib/activation.glsl"

float glu(float gate, float up, float limit, float up_bias) {
  if (kLimited == 0u) return activate(gate) * up;
  const float bounded_gate = limit > 0.0 && gate > limit ? limit : gate;
  const float bounded_up = limit > 0.0 && abs(up) > limit ? sign(up) * limit : up;
  return activate(bounded_gate) * (bounded_up + up_bias);
}
