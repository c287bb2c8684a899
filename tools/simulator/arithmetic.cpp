#include "tools/simulator/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "graph/float16.h"

namespace rondo::simulator {

namespace {

using Word = std::uint32_t;
using Int = std::int32_t;

float as_float(Word word) { return std::bit_cast<float>(word); }
Word as_word(float value) { return std::bit_cast<Word>(value); }
Int as_int(Word word) { return static_cast<Int>(word); }
Word as_word(Int value) { return static_cast<Word>(value); }
Word as_word(bool value) { return value ? 1u : 0u; }

struct Lanes {
  const Word *a, *b, *c, *d;
  Word* out;
  Word width;
  Mask active;
};

// One loop for each operation: simple ones over all lanes, which compilers make vectors of, others over those that are active.
template <typename F>
void all(const Lanes& lanes, const F& f) {
  for (Word i = 0; i < lanes.width; ++i) lanes.out[i] = f(i);
}
template <typename F>
void active(const Lanes& lanes, const F& f) {
  lanes.active.for_each([&](Word i) { lanes.out[i] = f(i); });
}
template <typename F>
Mask where(const Lanes& lanes, const F& f) {
  Mask found;
  lanes.active.for_each([&](Word i) {
    if (f(i)) found.add(i);
  });
  return found;
}
template <typename F>
void floats1(const Lanes& l, const F& f) {
  all(l, [&](Word i) { return as_word(f(as_float(l.a[i]))); });
}
template <typename F>
void slow1(const Lanes& l, const F& f) {
  active(l, [&](Word i) { return as_word(static_cast<float>(f(as_float(l.a[i])))); });
}
template <typename F>
void floats2(const Lanes& l, const F& f) {
  all(l, [&](Word i) { return as_word(f(as_float(l.a[i]), as_float(l.b[i]))); });
}
template <typename F>
void words2(const Lanes& l, const F& f) {
  all(l, [&](Word i) { return f(l.a[i], l.b[i]); });
}

Word sign_extended(Word word, Word bits) { return bits >= 32 ? word : static_cast<Word>(static_cast<Int>(word << (32 - bits)) >> (32 - bits)); }

Mask shift(const Operation& op, const Lanes& l) {
  const Word bits = op.bits;
  switch (op.code) {
    case Code::kShiftLeft: words2(l, [](Word a, Word b) { return b >= 32 ? 0 : a << b; }); break;
    case Code::kShiftRightU: words2(l, [](Word a, Word b) { return b >= 32 ? 0 : a >> b; }); break;
    default: words2(l, [](Word a, Word b) { return as_word(as_int(a) >> (b >= 32 ? 31 : b)); }); break;
  }
  bool any = false;
  for (Word i = 0; i < l.width; ++i) any |= l.b[i] >= bits;
  return any ? where(l, [&](Word i) { return l.b[i] >= bits; }) : Mask();
}

Mask divide(const Operation& op, const Lanes& l) {
  constexpr Word kLowest = 0x80000000u;
  const auto undefined = [&](Word i) { return l.b[i] == 0 || ((op.code == Code::kDivS || op.code == Code::kRemS || op.code == Code::kModS) && l.a[i] == kLowest && l.b[i] == ~0u); };
  active(l, [&](Word i) -> Word {
    if (undefined(i)) return 0;
    const Int a = as_int(l.a[i]), b = as_int(l.b[i]);
    switch (op.code) {
      case Code::kDivU: return l.a[i] / l.b[i];
      case Code::kModU: return l.a[i] % l.b[i];
      case Code::kDivS: return as_word(a / b);
      case Code::kRemS: return as_word(a % b);
      default: return as_word(a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b);
    }
  });
  return where(l, undefined);
}

Mask bits(const Operation& op, const Lanes& l) {
  switch (op.code) {
    case Code::kExtractU: active(l, [&](Word i) { return l.c[i] == 0 || l.b[i] >= 32 ? 0 : l.a[i] >> l.b[i] & low_ones(l.c[i]); }); break;
    case Code::kExtractS: active(l, [&](Word i) { return l.c[i] == 0 || l.b[i] >= 32 ? 0 : sign_extended(l.a[i] >> l.b[i], l.c[i]); }); break;
    case Code::kInsert:
      active(l, [&](Word i) {
        const Word mask = l.c[i] >= 32 ? 0 : low_ones(l.d[i]) << l.c[i];
        return (l.a[i] & ~mask) | (l.c[i] >= 32 ? 0 : l.b[i] << l.c[i] & mask);
      });
      return where(l, [&](Word i) { return l.c[i] > 32 || l.d[i] > 32 - l.c[i]; });
    case Code::kBitReverse:
      active(l, [&](Word i) {
        Word reversed = 0;
        for (Word bit = 0; bit < 32; ++bit) reversed |= (l.a[i] >> bit & 1u) << (31 - bit);
        return reversed;
      });
      return {};
    case Code::kBitCount: active(l, [&](Word i) { return static_cast<Word>(std::popcount(l.a[i])); }); return {};
    case Code::kFindLsb: active(l, [&](Word i) { return l.a[i] == 0 ? ~0u : static_cast<Word>(std::countr_zero(l.a[i])); }); return {};
    case Code::kFindMsbU: active(l, [&](Word i) { return l.a[i] == 0 ? ~0u : static_cast<Word>(31 - std::countl_zero(l.a[i])); }); return {};
    default:
      active(l, [&](Word i) {
        const Word word = as_int(l.a[i]) < 0 ? ~l.a[i] : l.a[i];
        return word == 0 ? ~0u : static_cast<Word>(31 - std::countl_zero(word));
      });
      return {};
  }
  return where(l, [&](Word i) { return l.b[i] > 32 || l.c[i] > 32 - l.b[i]; });
}

Mask integers(const Operation& op, const Lanes& l) {
  switch (op.code) {
    case Code::kCopy: all(l, [&](Word i) { return l.a[i]; }); break;
    case Code::kAddress:
      // What is beyond 32 bits is beyond every buffer.
      all(l, [&](Word i) { return saturated(std::uint64_t{l.a[i]} * op.extra + (l.b ? l.b[i] : 0)); });
      break;
    case Code::kAdd: words2(l, [](Word a, Word b) { return a + b; }); break;
    case Code::kSub: words2(l, [](Word a, Word b) { return a - b; }); break;
    case Code::kMul: words2(l, [](Word a, Word b) { return a * b; }); break;
    case Code::kMulHighU: words2(l, [](Word a, Word b) { return static_cast<Word>(std::uint64_t{a} * b >> 32); }); break;
    case Code::kMulHighS: words2(l, [](Word a, Word b) { return static_cast<Word>(static_cast<std::uint64_t>(std::int64_t{as_int(a)} * as_int(b)) >> 32); }); break;
    case Code::kCarry: words2(l, [](Word a, Word b) { return as_word(a + b < a); }); break;
    case Code::kBorrow: words2(l, [](Word a, Word b) { return as_word(a < b); }); break;
    case Code::kNegate: all(l, [&](Word i) { return 0u - l.a[i]; }); break;
    case Code::kAnd:
    case Code::kLogicalAnd: words2(l, [](Word a, Word b) { return a & b; }); break;
    case Code::kOr:
    case Code::kLogicalOr: words2(l, [](Word a, Word b) { return a | b; }); break;
    case Code::kXor: words2(l, [](Word a, Word b) { return a ^ b; }); break;
    case Code::kNot: all(l, [&](Word i) { return ~l.a[i]; }); break;
    case Code::kLogicalNot: all(l, [&](Word i) { return l.a[i] ^ 1u; }); break;
    case Code::kMinU: words2(l, [](Word a, Word b) { return std::min(a, b); }); break;
    case Code::kMaxU: words2(l, [](Word a, Word b) { return std::max(a, b); }); break;
    case Code::kMinS: words2(l, [](Word a, Word b) { return as_word(std::min(as_int(a), as_int(b))); }); break;
    case Code::kMaxS: words2(l, [](Word a, Word b) { return as_word(std::max(as_int(a), as_int(b))); }); break;
    case Code::kAbsS: all(l, [&](Word i) { return as_int(l.a[i]) < 0 ? 0u - l.a[i] : l.a[i]; }); break;
    case Code::kSignS: all(l, [&](Word i) { return as_word(Int{as_int(l.a[i]) > 0} - Int{as_int(l.a[i]) < 0}); }); break;
    case Code::kEqual: words2(l, [](Word a, Word b) { return as_word(a == b); }); break;
    case Code::kNotEqual: words2(l, [](Word a, Word b) { return as_word(a != b); }); break;
    case Code::kLessU: words2(l, [](Word a, Word b) { return as_word(a < b); }); break;
    case Code::kLessEqualU: words2(l, [](Word a, Word b) { return as_word(a <= b); }); break;
    case Code::kLessS: words2(l, [](Word a, Word b) { return as_word(as_int(a) < as_int(b)); }); break;
    case Code::kLessEqualS: words2(l, [](Word a, Word b) { return as_word(as_int(a) <= as_int(b)); }); break;
    case Code::kUndefined: all(l, [](Word) { return Word{0}; }); return l.active;
    case Code::kSelect: all(l, [&](Word i) { return l.a[i] ? l.b[i] : l.c[i]; }); break;
    default: break;
  }
  return {};
}

Word dot4(Word a, Word b, Word c, Word how) {
  std::int64_t sum = 0;
  for (Word byte = 0; byte < 32; byte += 8) {
    const Word x = a >> byte & 0xffu, y = b >> byte & 0xffu;
    sum += std::int64_t{as_int((how & 1u) != 0 ? sign_extended(x, 8) : x)} * as_int((how & 2u) != 0 ? sign_extended(y, 8) : y);
  }
  if ((how & 8u) != 0) sum += (how & 3u) != 0 ? std::int64_t{as_int(c)} : std::int64_t{c};
  if ((how & 4u) != 0) sum = (how & 3u) != 0 ? std::clamp<std::int64_t>(sum, std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()) : std::min<std::int64_t>(sum, 0xffffffff);
  return static_cast<Word>(sum);
}

Mask conversions(const Operation& op, const Lanes& l) {
  switch (op.code) {
    case Code::kNarrow: all(l, [&](Word i) { return l.a[i] & low_ones(op.extra); }); return {};
    case Code::kWidenS: all(l, [&](Word i) { return sign_extended(l.a[i], op.bits) & low_ones(op.extra); }); return {};
    case Code::kToFloatU: all(l, [&](Word i) { return as_word(static_cast<float>(l.a[i])); }); return {};
    case Code::kToFloatS: all(l, [&](Word i) { return as_word(static_cast<float>(as_int(sign_extended(l.a[i], op.bits)))); }); return {};
    case Code::kFloatWiden: active(l, [&](Word i) { return as_word(graph::half_to_float(static_cast<std::uint16_t>(l.a[i]))); }); return {};
    case Code::kFloatNarrow: active(l, [&](Word i) { return Word{graph::float_to_half(as_float(l.a[i]))}; }); return {};
    default: break;
  }
  const bool is_signed = op.code == Code::kFromFloatS;
  const double most = std::ldexp(1.0, static_cast<int>(op.extra) - (is_signed ? 1 : 0)), least = is_signed ? -most - 1 : -1;
  const auto fits = [&](Word i) { return static_cast<double>(as_float(l.a[i])) < most && static_cast<double>(as_float(l.a[i])) > least; };
  active(l, [&](Word i) { return fits(i) ? static_cast<Word>(static_cast<std::int64_t>(as_float(l.a[i]))) & low_ones(op.extra) : 0; });
  return where(l, [&](Word i) { return !fits(i); });
}

/// Whether any lane of a or b is a NaN, quickly.
bool any_nan(const Lanes& l) {
  bool any = false;
  for (Word i = 0; i < l.width; ++i) any |= ((l.a[i] & 0x7fffffffu) > 0x7f800000u) | ((l.b[i] & 0x7fffffffu) > 0x7f800000u);
  return any;
}

Mask floats(const Operation& op, const Lanes& l) {
  const auto nan = [&](Word i) { return std::isnan(as_float(l.a[i])) || std::isnan(as_float(l.b[i])); };
  switch (op.code) {
    case Code::kFloatAdd: floats2(l, [](float a, float b) { return a + b; }); break;
    case Code::kFloatSub: floats2(l, [](float a, float b) { return a - b; }); break;
    case Code::kFloatMul: floats2(l, [](float a, float b) { return a * b; }); break;
    case Code::kFloatDiv: floats2(l, [](float a, float b) { return a / b; }); break;
    case Code::kFloatRem: active(l, [&](Word i) { return as_word(std::fmod(as_float(l.a[i]), as_float(l.b[i]))); }); return where(l, [&](Word i) { return as_float(l.b[i]) == 0; });
    case Code::kFloatMod:
      active(l, [&](Word i) { return as_word(as_float(l.a[i]) - as_float(l.b[i]) * std::floor(as_float(l.a[i]) / as_float(l.b[i]))); });
      return where(l, [&](Word i) { return as_float(l.b[i]) == 0; });
    case Code::kFloatNegate: all(l, [&](Word i) { return l.a[i] ^ 0x80000000u; }); break;
    case Code::kFloatAbs: all(l, [&](Word i) { return l.a[i] & 0x7fffffffu; }); break;
    case Code::kFloatFma: active(l, [&](Word i) { return as_word(std::fma(as_float(l.a[i]), as_float(l.b[i]), as_float(l.c[i]))); }); break;
    case Code::kFloatMin: floats2(l, [](float a, float b) { return b < a ? b : a; }); return any_nan(l) ? where(l, nan) : Mask();
    case Code::kFloatMax: floats2(l, [](float a, float b) { return a < b ? b : a; }); return any_nan(l) ? where(l, nan) : Mask();
    case Code::kFloatMinNumber: active(l, [&](Word i) { return as_word(std::fmin(as_float(l.a[i]), as_float(l.b[i]))); }); break;
    case Code::kFloatMaxNumber: active(l, [&](Word i) { return as_word(std::fmax(as_float(l.a[i]), as_float(l.b[i]))); }); break;
    case Code::kFloatSign: floats1(l, [](float a) { return a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f; }); break;
    case Code::kFloatFloor: slow1(l, [](float a) { return std::floor(a); }); break;
    case Code::kFloatCeil: slow1(l, [](float a) { return std::ceil(a); }); break;
    case Code::kFloatTrunc: slow1(l, [](float a) { return std::trunc(a); }); break;
    case Code::kFloatRoundEven: slow1(l, [](float a) { return std::nearbyint(a); }); break;
    case Code::kFloatFract: slow1(l, [](float a) { return a - std::floor(a); }); break;
    case Code::kFloatSqrt: slow1(l, [](float a) { return std::sqrt(a); }); return where(l, [&](Word i) { return as_float(l.a[i]) < 0; });
    case Code::kFloatInverseSqrt: slow1(l, [](float a) { return 1.0 / std::sqrt(static_cast<double>(a)); }); return where(l, [&](Word i) { return as_float(l.a[i]) <= 0; });
    case Code::kFloatExp: slow1(l, [](float a) { return std::exp(a); }); break;
    case Code::kFloatExp2: slow1(l, [](float a) { return std::exp2(a); }); break;
    case Code::kFloatLog: slow1(l, [](float a) { return std::log(a); }); return where(l, [&](Word i) { return as_float(l.a[i]) < 0; });
    case Code::kFloatLog2: slow1(l, [](float a) { return std::log2(a); }); return where(l, [&](Word i) { return as_float(l.a[i]) < 0; });
    case Code::kFloatPow: active(l, [&](Word i) { return as_word(std::pow(as_float(l.a[i]), as_float(l.b[i]))); }); return where(l, [&](Word i) { return as_float(l.a[i]) < 0 || (as_float(l.a[i]) == 0 && as_float(l.b[i]) <= 0); });
    case Code::kFloatSin: slow1(l, [](float a) { return std::sin(a); }); break;
    case Code::kFloatCos: slow1(l, [](float a) { return std::cos(a); }); break;
    case Code::kFloatTan: slow1(l, [](float a) { return std::tan(a); }); break;
    case Code::kFloatAsin: slow1(l, [](float a) { return std::asin(a); }); return where(l, [&](Word i) { return std::fabs(as_float(l.a[i])) > 1; });
    case Code::kFloatAcos: slow1(l, [](float a) { return std::acos(a); }); return where(l, [&](Word i) { return std::fabs(as_float(l.a[i])) > 1; });
    case Code::kFloatAtan: slow1(l, [](float a) { return std::atan(a); }); break;
    case Code::kFloatAtan2: active(l, [&](Word i) { return as_word(std::atan2(as_float(l.a[i]), as_float(l.b[i]))); }); return where(l, [&](Word i) { return as_float(l.a[i]) == 0 && as_float(l.b[i]) == 0; });
    case Code::kFloatSinh: slow1(l, [](float a) { return std::sinh(a); }); break;
    case Code::kFloatCosh: slow1(l, [](float a) { return std::cosh(a); }); break;
    case Code::kFloatTanh: slow1(l, [](float a) { return std::tanh(a); }); break;
    default: break;
  }
  return {};
}

void compare(const Operation& op, const Lanes& l) {
  const auto test = [&](const auto& f) { all(l, [&](Word i) { return as_word(f(as_float(l.a[i]), as_float(l.b[i]))); }); };
  switch (op.code) {
    case Code::kFloatIsNan: all(l, [&](Word i) { return as_word((l.a[i] & 0x7fffffffu) > 0x7f800000u); }); break;
    case Code::kFloatIsInf: all(l, [&](Word i) { return as_word((l.a[i] & 0x7fffffffu) == 0x7f800000u); }); break;
    case Code::kFloatEqual: test([](float a, float b) { return a == b; }); break;
    case Code::kFloatNotEqual: test([](float a, float b) { return a < b || a > b; }); break;
    case Code::kFloatLess: test([](float a, float b) { return a < b; }); break;
    case Code::kFloatLessEqual: test([](float a, float b) { return a <= b; }); break;
    case Code::kFloatUnorderedEqual: test([](float a, float b) { return !(a < b || a > b); }); break;
    case Code::kFloatUnorderedNotEqual: test([](float a, float b) { return !(a == b); }); break;
    case Code::kFloatUnorderedLess: test([](float a, float b) { return !(a >= b); }); break;
    default: test([](float a, float b) { return !(a > b); }); break;
  }
}

Mask compute32(const Operation& op, const Lanes& lanes) {
  if (op.code <= Code::kMul) return integers(op, lanes);
  if (op.code >= Code::kDivU && op.code <= Code::kModS) return divide(op, lanes);
  if (op.code >= Code::kShiftLeft && op.code <= Code::kShiftRightS) return shift(op, lanes);
  if (op.code >= Code::kExtractU && op.code <= Code::kFindMsbS) return bits(op, lanes);
  if (op.code == Code::kNarrow || op.code == Code::kWidenS || op.code >= Code::kToFloatU) return conversions(op, lanes);
  if (op.code == Code::kDot4) {
    active(lanes, [&](Word i) { return dot4(lanes.a[i], lanes.b[i], lanes.c ? lanes.c[i] : 0, op.extra); });
    return {};
  }
  if (op.code < Code::kFloatAdd) return integers(op, lanes);
  if (op.code < Code::kFloatIsNan) return floats(op, lanes);
  compare(op, lanes);
  return {};
}

/// 16-bit floats as 32-bit ones, and back.
Mask compute_f16(const Operation& op, const Lanes& lanes) {
  Word wide[3][kMostLanes];
  const Word* const from[] = {lanes.a, lanes.b, lanes.c};
  Lanes wider = lanes;
  const Word** const to[] = {&wider.a, &wider.b, &wider.c};
  for (std::size_t k = 0; k < 3; ++k) {
    if (!from[k]) continue;
    for (Word i = 0; i < lanes.width; ++i) wide[k][i] = as_word(graph::half_to_float(static_cast<std::uint16_t>(from[k][i])));
    *to[k] = wide[k];
  }
  const Mask undefined = compute32(op, wider);
  const bool gives_float = op.code >= Code::kFloatAdd && op.code < Code::kFloatIsNan;
  if (gives_float) all(lanes, [&](Word i) { return Word{graph::float_to_half(as_float(lanes.out[i]))}; });
  return undefined;
}

bool takes_signs(Code code) {
  switch (code) {
    case Code::kDivS: case Code::kRemS: case Code::kModS: case Code::kShiftRightS: case Code::kMinS: case Code::kMaxS: case Code::kAbsS: case Code::kSignS: case Code::kLessS: case Code::kLessEqualS: case Code::kFindMsbS: return true;
    default: return false;
  }
}

/// Integers of 8 and 16 bits, which have zeros above.
Mask compute_narrow(const Operation& op, const Lanes& lanes) {
  Word wide[2][kMostLanes];
  Lanes wider = lanes;
  if (takes_signs(op.code)) {
    for (Word i = 0; i < lanes.width; ++i) {
      wide[0][i] = sign_extended(lanes.a[i], op.bits);
      if (lanes.b) wide[1][i] = op.code == Code::kShiftRightS ? lanes.b[i] : sign_extended(lanes.b[i], op.bits);
    }
    wider.a = wide[0];
    if (lanes.b) wider.b = wide[1];
  }
  const Mask undefined = compute32(op, wider);
  if (op.code != Code::kFindMsbS && op.code != Code::kFindMsbU && op.code != Code::kFindLsb) all(lanes, [&](Word i) { return lanes.out[i] & low_ones(op.bits); });
  return undefined;
}

}  // namespace

Mask compute(const Operation& op, const Word* a, const Word* b, const Word* c, const Word* d, Word* out, Word width, Mask active_lanes) {
  const Lanes lanes{a, b, c, d, out, width, active_lanes};
  if (op.bits == 32) {
    const Mask undefined = compute32(op, lanes);
    if (op.extra == 16 && (op.code == Code::kToFloatU || op.code == Code::kToFloatS)) all(lanes, [&](Word i) { return Word{graph::float_to_half(as_float(out[i]))}; });
    return undefined;
  }
  if (op.code == Code::kNarrow || op.code == Code::kWidenS || op.code == Code::kToFloatU || op.code == Code::kToFloatS || op.code == Code::kFloatWiden) {
    const Mask undefined = compute32(op, lanes);
    if (op.extra == 16 && op.code != Code::kNarrow && op.code != Code::kWidenS) all(lanes, [&](Word i) { return Word{graph::float_to_half(as_float(out[i]))}; });
    return undefined;
  }
  const bool is_float = (op.code >= Code::kFloatAdd && op.code < Code::kToFloatU) || op.code == Code::kFromFloatU || op.code == Code::kFromFloatS;
  return is_float ? compute_f16(op, lanes) : compute_narrow(op, lanes);
}

}  // namespace rondo::simulator
