// Cooperative matrices of a Machine. How elements lie in lanes is the implementation's choice in Vulkan; kernels may not rely on
// what is chosen here.
#include <algorithm>
#include <bit>
#include <cstring>

#include "graph/float16.h"
#include "runtime/fmt.h"
#include "tools/simulator/access_counts.h"
#include "tools/simulator/machine.h"

namespace rondo::simulator {

namespace {

/// Runs of memory as lanes would fetch them: up to 16 bytes, which begin at a multiple of 16.
struct Pieces {
  std::vector<std::uint64_t> addresses;
  std::uint32_t bytes = 0;
};

Pieces pieces_of(std::vector<std::uint64_t> addresses, std::uint32_t element_bytes) {
  constexpr std::uint32_t kMostBytes = 16;
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  for (std::uint32_t bytes = kMostBytes; bytes > element_bytes; bytes /= 2) {
    const std::size_t n = bytes / element_bytes;
    Pieces whole{{}, bytes};
    for (std::size_t i = 0; i + n <= addresses.size() && addresses[i] % bytes == 0 && addresses[i + n - 1] == addresses[i] + bytes - element_bytes; i += n) whole.addresses.push_back(addresses[i]);
    if (whole.addresses.size() * n == addresses.size()) return whole;
  }
  return {std::move(addresses), element_bytes};
}

}  // namespace

void Machine::matrix_access(Subgroup& subgroup, const Operation& op) {
  check_together(subgroup, op);
  const MatrixAccess& access = module_.matrix_accesses[op.extra];
  const Variable& variable = module_.variables[access.variable];
  const SpaceView& view = views_[access.variable];
  const bool loads = op.code == Code::kMatrixLoad;
  const std::uint32_t first = subgroup.active.lowest(), n_bytes = access.bits / 8;
  std::uint64_t offset = access.first_byte, stride = 0;
  Mask undefined_address;
  for (const Slot slot : {access.offset, access.stride}) {
    if (slot == kNone) continue;
    const std::uint32_t* const values = values_of(std::as_const(subgroup), slot);
    undefined_address = undefined_address | (subgroup.undefined[slot] & subgroup.active);
    subgroup.active.for_each([&](std::uint32_t lane) {
      if (values[lane] != values[first]) find(FindingKind::kSubgroup, op.place, kNone, fmt::format("{}: {} has another address or stride of the matrix in {} than {}", describe(module_, op.place), invocation(subgroup, lane), variable.name, invocation(subgroup, first)));
    });
    if (slot == access.offset) offset += values[first];
    else stride = std::uint64_t{values[first]} * access.stride_bytes;
  }
  if (loads) {
    const std::uint32_t address_depth = std::max({depth_of(subgroup, access.offset), depth_of(subgroup, access.stride), subgroup.control_depth});
    const std::uint32_t depth = variable.space == Space::kBuffer ? address_depth + 1 : std::max({address_depth, shared_depth_, subgroup.shared_depth});
    if (variable.space == Space::kBuffer) deepest_load_ = std::max(deepest_load_, depth);
    for (const Slot slot : access.slots) subgroup.undefined[slot] = {}, subgroup.depths[slot] = depth;
  } else if (variable.space == Space::kShared) {
    for (const Slot slot : access.slots) subgroup.shared_depth = std::max(subgroup.shared_depth, subgroup.depths[slot]);
  } else {
    subgroup.released = subgroup.released_to_others = false;
  }
  if (!undefined_address.none()) {
    find(FindingKind::kUndefined, op.place, kNone, fmt::format("{}: {} uses a value that is not defined as an address or stride in {}", describe(module_, op.place), invocation(subgroup, undefined_address.lowest()), variable.name));
    if (loads) {
      for (const Slot slot : access.slots) subgroup.undefined[slot] = subgroup.active;
    }
    return;
  }
  const std::uint64_t alignment = std::min<std::uint64_t>(16, std::uint64_t{access.by_column ? access.rows : access.columns} * n_bytes);
  if ((view.base + offset) % alignment != 0 || stride % alignment != 0) {
    find(FindingKind::kAlignment, op.place, kNone, fmt::format("{}: {}'s matrix is at byte {} of {} with {} bytes from one line to the next; both must be multiples of {}", describe(module_, op.place), invocation(subgroup, first), offset, variable.name, stride, alignment));
  }
  Toucher toucher;
  toucher.epoch = variable.space == Space::kShared ? shared_epoch_ : buffer_epoch_;
  toucher.subgroup_epoch = variable.space == Space::kShared ? subgroup.shared_epoch : subgroup.buffer_epoch;
  toucher.place = op.place;
  toucher.matrix = access.type;
  toucher.coherent = variable.coherent;
  std::vector<std::uint64_t> addresses;
  for (std::uint32_t i = 0; i < access.slots.size() * width_; ++i) {
    const MatrixPlace place(i, access.together, width_);
    const std::uint32_t lane = place.lane, row = i / access.columns, column = i % access.columns;
    const Slot slot = access.slots[place.slot];
    const std::uint64_t at = offset + (access.by_column ? column * stride + std::uint64_t{row} * n_bytes : row * stride + std::uint64_t{column} * n_bytes);
    if (at + n_bytes > view.size_bytes) {
      find(FindingKind::kOutOfBounds, op.place, kNone, fmt::format("{}: row {}, column {} of {}'s matrix is at byte {} of {}, which has {}", describe(module_, op.place), row, column, invocation(subgroup, first), at, variable.name, view.size_bytes));
      subgroup.undefined[slot].add(lane);
      continue;
    }
    addresses.push_back(view.base + at);
    if (view.races) {
      toucher.invocation = in_dispatch(subgroup, lane);
      if (const Toucher* const other = view.races->touch(view.base + at, n_bytes, toucher, !loads, subgroup.seen)) {
        find(FindingKind::kRace, op.place, other->place, fmt::format("{}: {} {} byte {} of {} and {} does at {}, with nothing between that orders them", describe(module_, op.place), invocation(subgroup, lane), loads ? "reads" : "writes", at, variable.name, invocation(other->invocation), describe(module_, other->place)));
      }
    }
    std::uint32_t& value = values_of(subgroup, slot)[lane];
    if (loads) {
      value = 0;
      std::memcpy(&value, view.bytes + at, n_bytes);
      if (!is_written(view, at, n_bytes)) subgroup.undefined[slot].add(lane);
      continue;
    }
    if (subgroup.undefined[slot].has(lane)) find(FindingKind::kUndefined, op.place, kNone, fmt::format("{}: {} stores a value that is not defined in {}", describe(module_, op.place), invocation(subgroup, lane), variable.name));
    std::memcpy(view.bytes + at, &value, n_bytes);
    if (view.written) std::fill_n(view.written + at, n_bytes, std::uint8_t{1});
  }
  bool is_new = false;
  AccessCount& count = report_.accesses[find_count(op, access.variable, is_new)];
  Pieces pieces = pieces_of(std::move(addresses), n_bytes);
  if (variable.space == Space::kBuffer) {
    count_lines(count, pieces.addresses, pieces.bytes);
  } else {
    std::vector<std::uint32_t> lanes(pieces.addresses.size());
    for (std::uint32_t i = 0; i < lanes.size(); ++i) lanes[i] = i;
    count_banks(count, pieces.addresses, lanes, pieces.bytes);
  }
}

void Machine::matrix_product(Subgroup& subgroup, const Operation& op) {
  check_together(subgroup, op);
  const MatrixProduct& product = module_.matrix_products[op.extra];
  const auto word = [&](const MatrixProduct::Operand& operand, std::uint32_t i) {
    const MatrixPlace place(i, operand.together, width_);
    return values_of(std::as_const(subgroup), operand.slots[place.slot])[place.lane];
  };
  const auto is_undefined = [&](const MatrixProduct::Operand& operand, std::uint32_t i) {
    const MatrixPlace place(i, operand.together, width_);
    return subgroup.undefined[operand.slots[place.slot]].has(place.lane);
  };
  const auto number = [&](const MatrixProduct::Operand& operand, std::uint32_t i) {
    const std::uint32_t bits = word(operand, i);
    return operand.bits == 16 ? graph::half_to_float(static_cast<std::uint16_t>(bits)) : std::bit_cast<float>(bits);
  };
  const auto integer = [&](const MatrixProduct::Operand& operand, std::uint32_t i) -> std::int64_t {
    const std::uint32_t bits = word(operand, i);
    return operand.is_signed ? static_cast<std::int32_t>(bits << (32 - operand.bits)) >> (32 - operand.bits) : std::int64_t{bits};
  };
  std::uint32_t depth = 0;
  for (const MatrixProduct::Operand* operand : {&product.a, &product.b, &product.c}) {
    for (const Slot slot : operand->slots) depth = std::max(depth, subgroup.depths[slot]);
  }
  std::vector<std::uint32_t> results(product.to.slots.size() * width_);
  std::vector<Mask> undefined(product.to.slots.size());
  const MatrixProduct::Operand& to = product.to;
  for (std::uint32_t i = 0; i < results.size(); ++i) {
    const std::uint32_t row = i / product.columns, column = i % product.columns;
    bool unknown = is_undefined(product.c, i);
    float sum = to.is_float ? number(product.c, i) : 0.0f;
    std::int64_t total = to.is_float ? 0 : integer(product.c, i);
    for (std::uint32_t k = 0; k < product.depth; ++k) {
      const std::uint32_t left = row * product.depth + k, right = k * product.columns + column;
      unknown = unknown || is_undefined(product.a, left) || is_undefined(product.b, right);
      if (to.is_float) sum += number(product.a, left) * number(product.b, right);
      else total += integer(product.a, left) * integer(product.b, right);
    }
    if (unknown) undefined[i / width_].add(i % width_);
    if (to.is_float) {
      results[i] = to.bits == 16 ? graph::float_to_half(sum) : std::bit_cast<std::uint32_t>(sum);
      continue;
    }
    const std::int64_t most = static_cast<std::int64_t>(low_ones(to.is_signed ? to.bits - 1u : to.bits)), least = to.is_signed ? -most - 1 : 0;
    results[i] = static_cast<std::uint32_t>(product.saturates ? std::clamp(total, least, most) : total) & low_ones(to.bits);
  }
  for (std::size_t k = 0; k < to.slots.size(); ++k) write(subgroup, to.slots[k], results.data() + k * width_, undefined[k], depth);
}

}  // namespace rondo::simulator
