// Reductions over a workgroup of kWidth invocations (a power of two, defined before), in fixed order. All of them call. Before
// another one a kernel has a barrier of its own: the slots may still be read.
shared float reduce_slots[kWidth];

float workgroup_sum(float value) {
  const uint self = gl_LocalInvocationID.x;
  reduce_slots[self] = value;
  barrier();
  for (uint step = kWidth / 2u; step > 0u; step /= 2u) {
    if (self < step) reduce_slots[self] += reduce_slots[self + step];
    barrier();
  }
  return reduce_slots[0];
}

// NaN where there is one.
float larger(float a, float b) { return b > a || isnan(b) ? b : a; }

float workgroup_max(float value) {
  const uint self = gl_LocalInvocationID.x;
  reduce_slots[self] = value;
  barrier();
  for (uint step = kWidth / 2u; step > 0u; step /= 2u) {
    if (self < step) reduce_slots[self] = larger(reduce_slots[self], reduce_slots[self + step]);
    barrier();
  }
  return reduce_slots[0];
}
