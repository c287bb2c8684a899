// f32 to f16 bits by integer arithmetic, to nearest, ties to even: a driver's packHalf2x16 may round towards zero.
#ifndef RONDO_FLOAT16_GLSL
#define RONDO_FLOAT16_GLSL
uint half_bits(float value) {
  const uint bits = floatBitsToUint(value);
  const uint sign = (bits >> 16) & 0x8000u;
  const uint magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;
  if (magnitude < 0x33000000u) return sign;
  const uint exponent = magnitude >> 23;
  const bool normal = exponent >= 113u;
  const uint mantissa = normal ? magnitude - (112u << 23) : ((magnitude & 0x7fffffu) | 0x800000u);
  const uint shift = normal ? 13u : 126u - exponent;
  const uint kept = mantissa >> shift;
  const uint rest = mantissa & ((1u << shift) - 1u);
  const uint tie = 1u << (shift - 1u);
  return sign | (kept + ((rest > tie || (rest == tie && (kept & 1u) != 0u)) ? 1u : 0u));
}

uint pack_halves(float low, float high) { return half_bits(low) | (half_bits(high) << 16); }

// A finite half that is not negative, exactly: by integers, as a driver's unpackHalf2x16 may flush subnormals.
float half_value(uint bits) { return bits < 0x400u ? float(bits) * 5.9604644775390625e-8 : uintBitsToFloat((bits << 13) + (112u << 23)); }

// Any half, exactly.
float half_float(uint bits) {
  const uint magnitude = bits & 0x7fffu;
  const float value = magnitude >= 0x7c00u ? uintBitsToFloat((magnitude << 13) + (224u << 23)) : half_value(magnitude);
  return uintBitsToFloat(floatBitsToUint(value) | (bits & 0x8000u) << 16);
}
#endif
