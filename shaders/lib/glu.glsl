// activate(min(gate, limit)) * (clamp(up, -limit, limit) + up_bias); a limit of 0 is none. NaN stays. Needs kActivation.
#include "lib/activation.glsl"

float glu(float gate, float up, float limit, float up_bias) {
  if (limit > 0.0) {
    gate = gate > limit ? limit : gate;
    up = up > limit ? limit : up < -limit ? -limit : up;
  }
  return activate(gate) * (up + up_bias);
}
