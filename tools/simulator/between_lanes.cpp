// What lanes of a subgroup do together, and what Vulkan does not promise about it.
#include <algorithm>
#include <bit>
#include <limits>

#include "graph/float16.h"
#include "runtime/fmt.h"
#include "tools/simulator/machine.h"

namespace rondo::simulator {

namespace {

using Word = std::uint32_t;

/// Of integers with fewer than 32 bits the upper ones are zeros.
Word combine(const Operation& op, Word a, Word b) {
  const auto as_int = [&](Word word) { return static_cast<std::int32_t>(word << (32 - op.bits)) >> (32 - op.bits); };
  const auto floats = [&](const auto& f) -> Word {
    if (op.bits == 16) return graph::float_to_half(f(graph::half_to_float(static_cast<std::uint16_t>(a)), graph::half_to_float(static_cast<std::uint16_t>(b))));
    return std::bit_cast<Word>(f(std::bit_cast<float>(a), std::bit_cast<float>(b)));
  };
  switch (op.code) {
    case Code::kReduceAdd: return (a + b) & low_ones(op.bits);
    case Code::kReduceMul: return (a * b) & low_ones(op.bits);
    case Code::kReduceMinU: return std::min(a, b);
    case Code::kReduceMaxU: return std::max(a, b);
    case Code::kReduceMinS: return as_int(a) < as_int(b) ? a : b;
    case Code::kReduceMaxS: return as_int(a) > as_int(b) ? a : b;
    case Code::kReduceAnd: return a & b;
    case Code::kReduceOr: return a | b;
    case Code::kReduceXor: return a ^ b;
    case Code::kReduceFloatAdd: return floats([](float x, float y) { return x + y; });
    case Code::kReduceFloatMul: return floats([](float x, float y) { return x * y; });
    case Code::kReduceFloatMin: return floats([](float x, float y) { return y < x ? y : x; });
    default: return floats([](float x, float y) { return x < y ? y : x; });
  }
}

/// What leaves every other operand as it is.
Word neutral(const Operation& op) {
  const auto number = [&](float value) { return op.bits == 16 ? graph::float_to_half(value) : std::bit_cast<Word>(value); };
  switch (op.code) {
    case Code::kReduceMul: return 1;
    case Code::kReduceMinU:
    case Code::kReduceAnd: return low_ones(op.bits);
    case Code::kReduceMinS: return low_ones(op.bits - 1);
    case Code::kReduceMaxS: return 1u << (op.bits - 1);
    case Code::kReduceFloatMul: return number(1.0f);
    case Code::kReduceFloatMin: return number(std::numeric_limits<float>::infinity());
    case Code::kReduceFloatMax: return number(-std::numeric_limits<float>::infinity());
    default: return 0;
  }
}

}  // namespace

void Machine::check_together(const Subgroup& subgroup, const Operation& op) {
  const Mask active = subgroup.active;
  if (!(active == subgroup.lanes)) {
    find(FindingKind::kSubgroup, op.place, kNone, fmt::format("{}: {} of {} lanes come to it; Vulkan does not say which ones do once control has diverged", describe(module_, op.place), active.count(), subgroup.lanes.count()));
  } else if (subgroup.lanes.count() != width_) {
    find(FindingKind::kSubgroup, op.place, kNone, fmt::format("{}: the workgroup's last subgroup has {} lanes of {}", describe(module_, op.place), active.count(), width_));
  }
}

void Machine::between_lanes(Subgroup& subgroup, const Operation& op) {
  check_together(subgroup, op);
  const Mask active = subgroup.active;
  if (op.code >= Code::kReduceAdd) return reduce(subgroup, op);
  const Word* const a = values_of(std::as_const(subgroup), op.a);
  const Word* const b = values_of(std::as_const(subgroup), op.b);
  Word out[kMostLanes] = {};
  Mask undefined;
  const std::uint32_t depth = std::max(depth_of(subgroup, op.a), depth_of(subgroup, op.b));
  const Mask from = op.a == kNone ? Mask() : subgroup.undefined[op.a];
  const auto every = [&](const auto& test) {
    bool all = true;
    active.for_each([&](Word lane) { all = all && test(lane); });
    return all;
  };
  const auto give = [&](Word value) {
    std::fill_n(out, width_, value);
    if (!(from & active).none()) undefined = active;
  };
  switch (op.code) {
    case Code::kElect: active.for_each([&](Word lane) { out[lane] = lane == active.lowest() ? 1 : 0; }); break;
    case Code::kVoteAll: give(every([&](Word lane) { return a[lane] != 0; }) ? 1 : 0); break;
    case Code::kVoteAny: give(every([&](Word lane) { return a[lane] == 0; }) ? 0 : 1); break;
    case Code::kVoteEqual: {
      const auto number = [&](Word lane) { return op.bits == 16 ? graph::half_to_float(static_cast<std::uint16_t>(a[lane])) : std::bit_cast<float>(a[lane]); };
      const bool floats = op.extra != 0;
      give(every([&](Word lane) { return floats ? number(lane) == number(active.lowest()) : a[lane] == a[active.lowest()]; }) ? 1 : 0);
      break;
    }
    case Code::kBallot: {
      Mask mask;
      active.for_each([&](Word lane) {
        if (a[lane]) mask.add(lane);
      });
      give(mask.word(op.extra));
      break;
    }
    case Code::kBroadcastFirst:
      give(a[active.lowest()]);
      undefined = from.has(active.lowest()) ? active : Mask();
      break;
    default:
      if (op.extra == kSameLane && !every([&](Word lane) { return b[lane] == b[active.lowest()]; })) {
        find(FindingKind::kSubgroup, op.place, kNone, fmt::format("{}: lanes of a subgroup ask for different lanes, such as {} and others", describe(module_, op.place), b[active.lowest()]));
      }
      active.for_each([&](Word lane) {
        const Word source = op.code == Code::kShuffle ? b[lane] : op.code == Code::kShuffleQuad ? (lane & ~3u) + (b[lane] & 3u) : op.code == Code::kShuffleXor ? lane ^ b[lane] : op.code == Code::kShuffleUp ? lane - b[lane] : lane + b[lane];
        if (source < width_ && active.has(source)) {
          out[lane] = a[source];
          if (from.has(source)) undefined.add(lane);
          return;
        }
        undefined.add(lane);
        if (op.code != Code::kShuffleUp && op.code != Code::kShuffleDown) {
          find(FindingKind::kSubgroup, op.place, kNone, fmt::format("{}: {} takes the value of lane {}, which is {}", describe(module_, op.place), invocation(subgroup, lane), source, source < width_ ? "off" : fmt::format("none of {}", width_)));
        }
      });
      if (op.b != kNone) undefined = undefined | (subgroup.undefined[op.b] & active);
      break;
  }
  write(subgroup, op.to, out, undefined, depth);
}

void Machine::scan(Subgroup& subgroup, const Operation& op) {
  const Word* const a = values_of(std::as_const(subgroup), op.a);
  const bool inclusive = op.extra == kInclusiveScan;
  Word out[kMostLanes] = {};
  Word sum = neutral(op);
  Mask undefined;
  bool sum_undefined = false;
  subgroup.active.for_each([&](Word lane) {
    if (inclusive) sum = combine(op, sum, a[lane]), sum_undefined = sum_undefined || subgroup.undefined[op.a].has(lane);
    out[lane] = sum;
    if (sum_undefined) undefined.add(lane);
    if (!inclusive) sum = combine(op, sum, a[lane]), sum_undefined = sum_undefined || subgroup.undefined[op.a].has(lane);
  });
  write(subgroup, op.to, out, undefined, depth_of(subgroup, op.a));
}

void Machine::reduce(Subgroup& subgroup, const Operation& op) {
  if (op.extra == kInclusiveScan || op.extra == kExclusiveScan) return scan(subgroup, op);
  const Word* const a = values_of(std::as_const(subgroup), op.a);
  const Word cluster = op.extra == 0 ? width_ : op.extra;
  if (cluster > width_) find(FindingKind::kSubgroup, op.place, kNone, fmt::format("{}: clusters of {} lanes in a subgroup of {}", describe(module_, op.place), cluster, width_));
  Word out[kMostLanes] = {};
  Mask undefined;
  for (Word first = 0; first < width_; first += cluster) {
    const Mask own = subgroup.active & Mask::first(std::min(first + cluster, width_)).without(Mask::first(first));
    if (own.none()) continue;
    // By halves, as devices do: for 16 lanes, lanes 8 apart first.
    Word values[kMostLanes];
    Mask there = own;
    std::copy_n(a, width_, values);
    for (Word apart = std::bit_ceil(std::min(cluster, width_)) / 2; apart > 0; apart /= 2) {
      for (Word lane = first; lane < first + apart; ++lane) {
        const Word other = lane + apart;
        if (other >= width_ || !there.has(other)) continue;
        values[lane] = there.has(lane) ? combine(op, values[lane], values[other]) : values[other];
        there.add(lane);
      }
    }
    own.for_each([&](Word lane) { out[lane] = values[first]; });
    if (!(subgroup.undefined[op.a] & own).none()) undefined = undefined | own;
  }
  write(subgroup, op.to, out, undefined, depth_of(subgroup, op.a));
}

}  // namespace rondo::simulator
