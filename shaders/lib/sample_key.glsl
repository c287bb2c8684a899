// Logits as unsigned keys in the same order, equal for zeros of both signs; 0, below all, for NaN.
uint sample_key(float value) {
  if (isnan(value)) return 0u;
  if (value == 0.0) return 0x80000000u;
  const uint bits = floatBitsToUint(value);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

float sample_value(uint key) { return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key); }

// What logits are divided by in chunks' masses: 1 where top-p keeps a share of all, the temperature where all can be drawn; 0: no masses are used.
float sample_mass_divisor(float temperature, uint top_k, float top_p, float min_p, uint vocabulary) {
  if (temperature == 0.0 || (top_k > 0u && top_k < vocabulary)) return 0.0;
  return top_p < 1.0 ? 1.0 : min_p > 0.0 ? 0.0 : temperature;
}
