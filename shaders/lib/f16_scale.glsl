// Rows whose largest number is beyond f16's don't suit it, and those below 2^-6, of which much may lie below 2^-14, which devices may
// take for 0. Of rows with an infinity or NaN the result is one as well.
bool suits_f16(uint magnitude) { return magnitude == 0u || (magnitude >= 0x3c800000u && magnitude < 0x477fe000u) || magnitude >= 0x7f800000u; }

float power_of_two(int exponent) { return uintBitsToFloat(uint(exponent + 127) << 23); }
int exponent_of(float power) { return int(floatBitsToUint(power) >> 23) - 127; }
// A row's largest number becomes 256 or more where it does not suit f16.
float scale_for(uint magnitude) { return suits_f16(magnitude) ? 1.0 : power_of_two(clamp(135 - int(magnitude >> 23), -126, 126)); }

// A NaN, and with it what came before, may get lost: of such a row the result is one, however it is scaled.
float larger(float largest, vec4 x) { return max(max(largest, max(abs(x.x), abs(x.y))), max(abs(x.z), abs(x.w))); }
