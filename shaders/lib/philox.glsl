// Philox4x32-10, a counter-based random number generator: Salmon, Moraes, Dror and Shaw, SC 2011.
uvec4 philox4x32_10(uvec4 counter, uvec2 key) {
  for (uint i = 0u; i < 10u; ++i) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, counter.x, high0, low0);
    umulExtended(0xCD9E8D57u, counter.z, high1, low1);
    counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}
