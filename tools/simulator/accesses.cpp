// Loads, stores and atomics of a Machine.
#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/fmt.h"
#include "tools/simulator/access_counts.h"
#include "tools/simulator/machine.h"

namespace rondo::simulator {

namespace {

bool reads(Code code) { return code != Code::kStore && code != Code::kAtomicStore; }
bool writes(Code code) { return code != Code::kLoad && code != Code::kAtomicLoad; }
bool is_atomic(Code code) { return code >= Code::kAtomicAdd && code <= Code::kAtomicStore; }

std::uint32_t after(Code code, std::uint32_t old, std::uint32_t a, std::uint32_t b) {
  const auto as_int = [](std::uint32_t word) { return static_cast<std::int32_t>(word); };
  switch (code) {
    case Code::kAtomicAdd: return old + a;
    case Code::kAtomicAnd: return old & a;
    case Code::kAtomicOr: return old | a;
    case Code::kAtomicXor: return old ^ a;
    case Code::kAtomicMinU: return std::min(old, a);
    case Code::kAtomicMaxU: return std::max(old, a);
    case Code::kAtomicMinS: return as_int(old) < as_int(a) ? old : a;
    case Code::kAtomicMaxS: return as_int(old) > as_int(a) ? old : a;
    case Code::kAtomicCompare: return old == b ? a : old;
    case Code::kAtomicLoad: return old;
    default: return a;
  }
}

/// Bytes from the first to behind the last scalar.
std::uint32_t extent(const Access& access) {
  std::uint32_t end = 0;
  for (const Access::Scalar& scalar : access.scalars) end = std::max(end, saturated(std::uint64_t{scalar.offset_bytes} + access.bits / 8));
  return end;
}

}  // namespace

Mask Machine::check_address(Subgroup& subgroup, const Operation& op, const Access& access) {
  if (access.offset == kNone) return subgroup.active;
  const Mask undefined = subgroup.undefined[access.offset] & subgroup.active;
  if (undefined.none()) return subgroup.active;
  find(FindingKind::kUndefined, op.place, kNone, fmt::format("{}: {} uses a value that is not defined as an address in {}", describe(module_, op.place), invocation(subgroup, undefined.lowest()), module_.variables[access.variable].name));
  return subgroup.active.without(undefined);
}

void Machine::access(Subgroup& subgroup, const Operation& op) {
  const Access& access = module_.accesses[op.extra];
  // What is stored: an undefined value may lie in an invocation's own memory, and comes to light when it is used.
  const Space space = module_.variables[access.variable].space;
  if (writes(op.code) && space != Space::kPrivate) {
    Mask undefined;
    if (op.code == Code::kStore) {
      for (const Access::Scalar& scalar : access.scalars) undefined = undefined | subgroup.undefined[scalar.slot];
    } else {
      for (const Slot slot : {op.a, op.b}) {
        if (slot != kNone) undefined = undefined | subgroup.undefined[slot];
      }
    }
    undefined = undefined & subgroup.active;
    if (!undefined.none()) find(FindingKind::kUndefined, op.place, kNone, fmt::format("{}: {} stores a value that is not defined in {}", describe(module_, op.place), invocation(subgroup, undefined.lowest()), module_.variables[access.variable].name));
  }
  if (space == Space::kPrivate) access_private(subgroup, op, access);
  else access_shared_or_buffer(subgroup, op, access);
}

void Machine::access_private(Subgroup& subgroup, const Operation& op, const Access& access) {
  const Variable& variable = module_.variables[access.variable];
  const Mask lanes = check_address(subgroup, op, access);
  const std::uint32_t* const offset = values_of(std::as_const(subgroup), access.offset);
  auto* const words = reinterpret_cast<std::uint32_t*>(subgroup.own.data());
  const std::uint32_t depth = depth_of(subgroup, access.offset);
  for (const Access::Scalar& scalar : access.scalars) {
    std::uint32_t* const values = values_of(subgroup, scalar.slot);
    Mask undefined = subgroup.active.without(lanes);
    lanes.for_each([&](std::uint32_t lane) {
      const std::uint64_t at = std::uint64_t{access.first_byte} + scalar.offset_bytes + (offset ? offset[lane] : 0);
      if (at + 4 > variable.size_bytes) {
        find(FindingKind::kOutOfBounds, op.place, kNone, fmt::format("{}: {} is at byte {} of {}, which has {}", describe(module_, op.place), invocation(subgroup, lane), at, variable.name.empty() ? "an array of its own" : variable.name, variable.size_bytes));
        undefined.add(lane);
        return;
      }
      const std::size_t word = (variable.first_byte + at) / 4;
      if (op.code == Code::kStore) {
        words[word * width_ + lane] = values[lane];
        if (subgroup.undefined[scalar.slot].has(lane)) {
          Mask own;
          own.add(lane);
          subgroup.own_written[word] = subgroup.own_written[word].without(own);
        } else {
          subgroup.own_written[word].add(lane);
        }
      } else {
        values[lane] = words[word * width_ + lane];
        if (!subgroup.own_written[word].has(lane)) undefined.add(lane);
      }
    });
    if (op.code != Code::kStore) {
      subgroup.undefined[scalar.slot] = subgroup.undefined[scalar.slot].without(subgroup.active) | undefined;
      subgroup.depths[scalar.slot] = depth;
    }
  }
}

void Machine::access_push(Subgroup& subgroup, const Operation& op, const Access& access) {
  const Mask lanes = check_address(subgroup, op, access);
  const std::uint32_t* const offset = values_of(std::as_const(subgroup), access.offset);
  const SpaceView& view = views_[access.variable];
  for (const Access::Scalar& scalar : access.scalars) {
    subgroup.depths[scalar.slot] = depth_of(subgroup, access.offset);
    lanes.for_each([&](std::uint32_t lane) {
      const std::uint64_t at = std::uint64_t{access.first_byte} + scalar.offset_bytes + (offset ? offset[lane] : 0);
      std::uint32_t word = 0;
      if (at + access.bits / 8 <= view.size_bytes) std::memcpy(&word, view.bytes + at, access.bits / 8);
      else find(FindingKind::kOutOfBounds, op.place, kNone, fmt::format("{}: {} is at byte {} of {} bytes of push constants", describe(module_, op.place), invocation(subgroup, lane), at, view.size_bytes));
      values_of(subgroup, scalar.slot)[lane] = word;
    });
  }
}

bool Machine::is_written(const SpaceView& view, std::uint64_t at, std::uint32_t n_bytes) const {
  return !view.written || std::all_of(view.written + at, view.written + at + n_bytes, [](std::uint8_t byte) { return byte != 0; });
}

void Machine::access_lane(Subgroup& subgroup, const Operation& op, const Access& access, const SpaceView& view, std::uint32_t lane, std::uint64_t address) {
  const std::uint32_t n_bytes = access.bits / 8;
  for (const Access::Scalar& scalar : access.scalars) {
    const std::uint64_t at = address + scalar.offset_bytes;
    std::uint32_t word = 0;
    std::memcpy(&word, view.bytes + at, n_bytes);
    if (op.code == Code::kLoad) {
      values_of(subgroup, scalar.slot)[lane] = word;
      if (!is_written(view, at, n_bytes)) subgroup.undefined[scalar.slot].add(lane);
      continue;
    }
    std::uint32_t next = 0;
    if (op.code == Code::kStore) {
      next = values_of(subgroup, scalar.slot)[lane];
    } else {
      next = after(op.code, word, op.a == kNone ? 0 : values_of(subgroup, op.a)[lane], op.b == kNone ? 0 : values_of(subgroup, op.b)[lane]);
      if (op.to != kNone) {
        values_of(subgroup, op.to)[lane] = word;
        if (reads(op.code) && !is_written(view, at, n_bytes)) {
          subgroup.undefined[op.to].add(lane);
          if (writes(op.code) && op.code != Code::kAtomicExchange) find(FindingKind::kUndefined, op.place, kNone, fmt::format("{}: {} changes what nothing has written in {}", describe(module_, op.place), invocation(subgroup, lane), module_.variables[access.variable].name));
        }
      }
    }
    if (!writes(op.code)) continue;
    std::memcpy(view.bytes + at, &next, n_bytes);
    if (view.written) std::fill_n(view.written + at, n_bytes, std::uint8_t{1});
  }
}

std::size_t Machine::find_count(const Operation& op, std::uint32_t variable, bool& is_new) {
  const AccessCount::Kind kind = is_atomic(op.code) ? AccessCount::Kind::kAtomic : op.code == Code::kLoad || op.code == Code::kMatrixLoad ? AccessCount::Kind::kLoad : AccessCount::Kind::kStore;
  const auto same = [&](const AccessCount& count) { return count.variable == variable && count.place == op.place && count.kind == kind; };
  const auto found = std::find_if(report_.accesses.begin(), report_.accesses.end(), same);
  is_new = found == report_.accesses.end();
  if (!is_new) return static_cast<std::size_t>(found - report_.accesses.begin());
  AccessCount fresh;
  fresh.variable = variable, fresh.place = op.place, fresh.kind = kind;
  report_.accesses.push_back(fresh);
  return report_.accesses.size() - 1;
}

void Machine::access_shared_or_buffer(Subgroup& subgroup, const Operation& op, const Access& access) {
  const Variable& variable = module_.variables[access.variable];
  const SpaceView& view = views_[access.variable];
  const Mask lanes = check_address(subgroup, op, access);
  const std::uint32_t* const offset = values_of(std::as_const(subgroup), access.offset);
  const std::uint32_t n_bytes = extent(access);
  std::uint64_t addresses[kMostLanes];
  std::uint32_t own_lanes[kMostLanes];
  std::size_t n = 0;
  std::vector<std::int64_t>* sample = nullptr;
  if (reads(op.code)) {
    for (const Access::Scalar& scalar : access.scalars) subgroup.undefined[scalar.slot] = subgroup.undefined[scalar.slot].without(subgroup.active);
  }
  if (variable.space == Space::kPush) return access_push(subgroup, op, access);
  // Which access of the source this is, with what has been counted of it.
  std::size_t& index = counts_[op.extra];
  if (index == kUncounted) {
    bool is_new = false;
    index = find_count(op, access.variable, is_new);
    if (is_new && variable.space == Space::kBuffer) {
      report_.samples.push_back({static_cast<std::uint32_t>(index), n_bytes, std::vector<std::int64_t>(width_, -1)});
      sample = &report_.samples.back().addresses;
    }
  }
  if (writes(op.code) && variable.space == Space::kBuffer) subgroup.released = subgroup.released_to_others = false;
  Toucher toucher;
  toucher.epoch = variable.space == Space::kShared ? shared_epoch_ : buffer_epoch_;
  toucher.subgroup_epoch = variable.space == Space::kShared ? subgroup.shared_epoch : subgroup.buffer_epoch;
  toucher.place = op.place;
  toucher.atomic = is_atomic(op.code);
  toucher.coherent = variable.coherent;
  Mask outside = subgroup.active.without(lanes);
  lanes.for_each([&](std::uint32_t lane) {
    const std::uint64_t at = std::uint64_t{access.first_byte} + (offset ? offset[lane] : 0);
    if (at + n_bytes > view.size_bytes) {
      find(FindingKind::kOutOfBounds, op.place, kNone, fmt::format("{}: {} is at byte {} of {}, which has {}", describe(module_, op.place), invocation(subgroup, lane), at, variable.name, view.size_bytes));
      outside.add(lane);
      return;
    }
    own_lanes[n] = lane;
    addresses[n++] = view.base + at;
    if (sample) (*sample)[lane] = static_cast<std::int64_t>(at);
    if (view.races) {
      toucher.invocation = in_dispatch(subgroup, lane);
      if (const Toucher* const other = view.races->touch(view.base + at, n_bytes, toucher, writes(op.code), subgroup.seen)) {
        find(FindingKind::kRace, op.place, other->place, fmt::format("{}: {} {} byte {} of {} and {} does at {}, with nothing between that orders them", describe(module_, op.place), invocation(subgroup, lane),
             writes(op.code) ? "writes" : "reads", at, variable.name, invocation(other->invocation), describe(module_, other->place)));
      }
    }
    if (toucher.atomic && variable.space == Space::kBuffer) {
      SeenWorkgroups& others = atomics_[{view.buffer, view.base + at}];
      met_.insert(others.begin(), others.end());
      if (released_epoch_ != 0) others[workgroup_number_] = released_epoch_;
    }
    access_lane(subgroup, op, access, view, lane, at);
  });
  if (reads(op.code)) {
    const bool from_buffer = variable.space == Space::kBuffer;
    const std::uint32_t address_depth = std::max(depth_of(subgroup, access.offset), subgroup.control_depth);
    const std::uint32_t depth = from_buffer ? address_depth + 1 : variable.space == Space::kShared ? std::max({address_depth, shared_depth_, subgroup.shared_depth}) : address_depth;
    if (from_buffer) deepest_load_ = std::max(deepest_load_, depth);
    for (const Access::Scalar& scalar : access.scalars) {
      subgroup.depths[scalar.slot] = depth;
      subgroup.undefined[scalar.slot] = subgroup.undefined[scalar.slot] | outside;
    }
  } else if (variable.space == Space::kShared) {
    for (const Access::Scalar& scalar : access.scalars) subgroup.shared_depth = std::max(subgroup.shared_depth, subgroup.depths[scalar.slot]);
  }
  AccessCount& count = report_.accesses[index];
  if (variable.space == Space::kShared) count_banks(count, {addresses, n}, {own_lanes, n}, n_bytes);
  else if (variable.space == Space::kBuffer) count_lines(count, {addresses, n}, n_bytes);
}

}  // namespace rondo::simulator
