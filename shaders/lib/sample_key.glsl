// Logits as unsigned keys in the same order, equal for zeros of both signs; 0, below all, for NaN.
uint sample_key(float value) {
  if (isnan(value)) return 0u;
  if (value == 0.0) return 0x80000000u;
  const uint bits = floatBitsToUint(value);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

float sample_value(uint key) { return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7fffffffu : ~key); }

// Whether chunks' masses decide what is drawn, or kept by top-p: without top-k.
bool sample_uses_masses(float temperature, uint top_k, uint vocabulary) { return temperature != 0.0 ? top_k == 0u || top_k >= vocabulary : false; }
