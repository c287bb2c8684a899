#include "tools/simulator/machine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/fmt.h"
#include "tools/simulator/arithmetic.h"

namespace rondo::simulator {

const char* name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kRace: return "race";
    case FindingKind::kBarrier: return "barrier";
    case FindingKind::kUndefined: return "undefined value";
    case FindingKind::kOutOfBounds: return "out of bounds";
    case FindingKind::kSubgroup: return "subgroup";
    case FindingKind::kAlignment: return "alignment";
    default: return "endless";
  }
}

Machine::Machine(const Module& module, std::span<Buffer> buffers, const Launch& launch)
    : module_(module), buffers_(buffers), launch_(launch), width_(launch.subgroup_size), buffer_races_(buffers.size()),
      shared_races_(module.smallest_access_bytes, module.n_invocations(), launch.subgroup_size, false), shared_(module.shared_bytes), shared_written_(module.shared_bytes),
      push_(launch.push.begin(), launch.push.end()), counts_(module.accesses.size(), kUncounted), block_runs_(module.blocks.size()) {
  report_.subgroup_size = width_;
  std::vector<bool> is_written(buffers.size());
  for (const Variable& variable : module.variables) {
    if (variable.space == Space::kBuffer && !variable.read_only) is_written[launch.bindings[variable.binding].buffer] = true;
  }
  for (const Variable& variable : module.variables) {
    SpaceView view;
    if (variable.space == Space::kBuffer) {
      const BoundRange& range = launch.bindings[variable.binding];
      Buffer& buffer = buffers[range.buffer];
      if (is_written[range.buffer] && !buffer_races_[range.buffer]) buffer_races_[range.buffer] = std::make_unique<RaceDetector>(module.smallest_access_bytes, module.n_invocations(), width_, true);
      view = {buffer.bytes.data() + range.offset_bytes, range.size_bytes, range.buffer, range.offset_bytes, buffer.written.empty() ? nullptr : buffer.written.data() + range.offset_bytes, buffer_races_[range.buffer].get()};
    } else if (variable.space == Space::kShared) {
      view = {shared_.data() + variable.first_byte, variable.size_bytes, kNone, variable.first_byte, shared_written_.data() + variable.first_byte, &shared_races_};
    } else if (variable.space == Space::kPush) {
      view = {push_.data(), push_.size(), kNone, 0, nullptr, nullptr};
    }
    views_.push_back(view);
  }
}

void Machine::find(FindingKind kind, std::uint32_t place, std::uint32_t other_place, std::string text) {
  const auto [found, is_new] = found_.try_emplace({kind, place, other_place}, report_.findings.size());
  if (!is_new) {
    if (found->second < report_.findings.size()) ++report_.findings[found->second].count;
  } else if (report_.findings.size() < launch_.most_findings) {
    report_.findings.push_back({kind, std::move(text)});
  } else {
    found->second = ~std::size_t{0};
  }
}

std::string Machine::invocation(std::uint32_t number) const {
  return fmt::format("invocation {} of workgroup {}", number % module_.n_invocations(), number / module_.n_invocations());
}
std::string Machine::invocation(const Subgroup& subgroup, std::uint32_t lane) const { return invocation(in_dispatch(subgroup, lane)); }

Report Machine::run() {
  const std::array<std::uint32_t, 3>& grid = launch_.grid;
  for (std::uint32_t z = 0; z < grid[2] && !stopped_; ++z) {
    for (std::uint32_t y = 0; y < grid[1] && !stopped_; ++y) {
      for (std::uint32_t x = 0; x < grid[0] && !stopped_; ++x) {
        run_workgroup({x, y, z});
        ++workgroup_number_;
      }
    }
  }
  // Loads in flight: of the block through which most loads from buffers went.
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < module_.blocks.size(); ++i) {
    std::map<Slot, std::uint32_t> levels;
    std::map<std::uint32_t, std::uint32_t> loads_at;
    std::uint64_t loads = 0;
    for (std::uint32_t at = module_.blocks[i].first; at < module_.blocks[i].last; ++at) {
      const Operation& op = module_.operations[at];
      std::uint32_t level = 0;
      for (const Slot slot : {op.a, op.b, op.c}) {
        if (const auto found = levels.find(slot); slot != kNone && found != levels.end()) level = std::max(level, found->second);
      }
      if (op.code == Code::kMatrixLoad) {
        const MatrixAccess& access = module_.matrix_accesses[op.extra];
        if (const auto found = levels.find(access.offset); access.offset != kNone && found != levels.end()) level = found->second;
        if (module_.variables[access.variable].space != Space::kBuffer) continue;
        ++loads, ++loads_at[level];
        for (const Slot slot : access.slots) levels[slot] = level + 1;
        continue;
      }
      if (op.code != Code::kLoad) {
        if (op.to != kNone && level > 0) levels[op.to] = level;
        continue;
      }
      const Access& access = module_.accesses[op.extra];
      if (module_.variables[access.variable].space != Space::kBuffer) continue;
      ++loads;
      ++loads_at[level];
      for (const Access::Scalar& scalar : access.scalars) levels[scalar.slot] = level + 1;
    }
    if (loads * block_runs_[i] <= most) continue;
    most = loads * block_runs_[i];
    report_.loads_in_flight = 0;
    for (const auto& [level, n] : loads_at) report_.loads_in_flight = std::max(report_.loads_in_flight, n);
  }
  return std::move(report_);
}

void Machine::start(Subgroup& subgroup, std::array<std::uint32_t, 3> workgroup) {
  const std::size_t n = std::size_t{module_.n_slots} * width_;
  subgroup.lanes = Mask::first(std::min(width_, module_.n_invocations() - subgroup.number * width_));
  subgroup.values.assign(n, 0);
  subgroup.undefined.assign(module_.n_slots, {});
  subgroup.depths.assign(module_.n_slots, 0);
  subgroup.own.assign(std::size_t{module_.private_bytes} * width_, std::byte{0});
  subgroup.own_written.assign(module_.private_bytes / 4, {});
  subgroup.waiting.assign(module_.blocks.size(), {});
  subgroup.waiting[0] = subgroup.lanes;
  for (const Constant& constant : module_.constants) {
    std::fill_n(values_of(subgroup, constant.slot), width_, constant.value);
    if (constant.undefined) subgroup.undefined[constant.slot] = Mask::first(width_);
  }
  const std::array<std::uint32_t, 3>& size = module_.local_size;
  for (const BuiltInInput& input : module_.inputs) {
    for (std::uint32_t lane = 0; lane < width_; ++lane) {
      const std::uint32_t index = subgroup.number * width_ + lane;
      const std::array<std::uint32_t, 3> local = {index % size[0], index / size[0] % size[1], index / (size[0] * size[1])};
      for (std::uint32_t i = 0; i < input.slots.size(); ++i) {
        const auto mask_word = [&](Mask mask) { return mask.word(i); };
        const Mask all = Mask::first(width_), below = Mask::first(lane), upto = Mask::first(lane + 1);
        std::uint32_t value = 0;
        switch (input.what) {
          case BuiltIn::kGlobalInvocationId: value = workgroup[i] * size[i] + local[i]; break;
          case BuiltIn::kLocalInvocationId: value = local[i]; break;
          case BuiltIn::kLocalInvocationIndex: value = index; break;
          case BuiltIn::kWorkgroupId: value = workgroup[i]; break;
          case BuiltIn::kNumWorkgroups: value = launch_.grid[i]; break;
          case BuiltIn::kSubgroupSize: value = width_; break;
          case BuiltIn::kSubgroupInvocationId: value = lane; break;
          case BuiltIn::kSubgroupId: value = subgroup.number; break;
          case BuiltIn::kNumSubgroups: value = (module_.n_invocations() + width_ - 1) / width_; break;
          case BuiltIn::kSubgroupEqMask: value = mask_word(upto.without(below)); break;
          case BuiltIn::kSubgroupGeMask: value = mask_word(all.without(below)); break;
          case BuiltIn::kSubgroupGtMask: value = mask_word(all.without(upto)); break;
          case BuiltIn::kSubgroupLeMask: value = mask_word(upto); break;
          case BuiltIn::kSubgroupLtMask: value = mask_word(below); break;
        }
        values_of(subgroup, input.slots[i])[lane] = value;
      }
    }
  }
}

void Machine::run_workgroup(std::array<std::uint32_t, 3> workgroup) {
  workgroup_ = workgroup;
  ++shared_epoch_, ++buffer_epoch_;
  std::fill(shared_written_.begin(), shared_written_.end(), std::uint8_t{0});
  shared_depth_ = 0;
  workgroup_barriers_ = 0;
  released_epoch_ = deepest_load_ = 0;
  met_.clear();
  std::vector<Subgroup> subgroups((module_.n_invocations() + width_ - 1) / width_);
  for (std::uint32_t i = 0; i < subgroups.size(); ++i) {
    subgroups[i].number = i;
    start(subgroups[i], workgroup);
  }
  const auto has_ended = [](const Subgroup& subgroup) { return subgroup.ended == subgroup.lanes; };
  while (!stopped_ && !std::all_of(subgroups.begin(), subgroups.end(), has_ended)) {
    for (Subgroup& subgroup : subgroups) {
      if (!has_ended(subgroup)) run(subgroup);
    }
    if (!stopped_) meet(subgroups);
  }
  report_.barriers = std::max(report_.barriers, workgroup_barriers_);
  report_.dependent_loads = std::max(report_.dependent_loads, deepest_load_);
}

void Machine::meet(std::vector<Subgroup>& subgroups) {
  const Subgroup* first = nullptr;
  for (const Subgroup& subgroup : subgroups) {
    if (subgroup.stands && !first) first = &subgroup;
  }
  if (!first) return;
  const Operation& barrier = module_.operations[first->operation - 1];
  const bool orders_buffers = (barrier.extra & 4u) != 0;
  bool all_released = true, released_to_others = true;
  for (const Subgroup& subgroup : subgroups) {
    all_released = all_released && subgroup.released;
    released_to_others = released_to_others && subgroup.released_to_others;
    if (!subgroup.stands) {
      find(FindingKind::kBarrier, barrier.place, kNone, fmt::format("{}: {} ends without coming to it", describe(module_, barrier.place), invocation(subgroup, 0)));
    } else if (subgroup.operation != first->operation) {
      const std::uint32_t other = module_.operations[subgroup.operation - 1].place;
      find(FindingKind::kBarrier, barrier.place, other, fmt::format("{}: {} stands at another barrier, {}", describe(module_, barrier.place), invocation(subgroup, 0), describe(module_, other)));
    }
  }
  if ((barrier.extra & 2u) != 0) ++shared_epoch_;
  if (orders_buffers || all_released) ++buffer_epoch_;
  if (released_to_others || (barrier.extra & 8u) != 0) {
    released_epoch_ = buffer_epoch_;
    // What others are to see is made of what was loaded.
    for (Subgroup& subgroup : subgroups) subgroup.control_depth = std::max(subgroup.control_depth, deepest_load_);
  }
  ++workgroup_barriers_;
  for (const Subgroup& subgroup : subgroups) shared_depth_ = std::max(shared_depth_, subgroup.shared_depth);
  for (Subgroup& subgroup : subgroups) subgroup.stands = subgroup.released = subgroup.released_to_others = false;
}

bool Machine::next_block(Subgroup& subgroup) {
  for (std::uint32_t i = 0; i < subgroup.waiting.size(); ++i) {
    if (subgroup.waiting[i].none()) continue;
    subgroup.block = i;
    subgroup.operation = module_.blocks[i].first;
    subgroup.active = subgroup.waiting[i];
    subgroup.waiting[i] = {};
    ++block_runs_[i];
    return true;
  }
  return false;
}

void Machine::run(Subgroup& subgroup) {
  if (subgroup.active.none() && !next_block(subgroup)) return;
  for (;;) {
    const Block& block = module_.blocks[subgroup.block];
    const std::uint32_t n_active = subgroup.active.count();
    const bool divergent = !(subgroup.active == subgroup.lanes);
    std::uint64_t done = 0;
    while (subgroup.operation < block.last && !subgroup.stands) {
      execute(subgroup, module_.operations[subgroup.operation++]);
      ++done;
    }
    if (!subgroup.stands) ++done;  // the branch at the end, so that loops of nothing end too
    report_.operations += done;
    report_.lane_operations += done * n_active;
    if (divergent) report_.divergent_operations += done;
    if (report_.lane_operations > launch_.most_operations) {
      const std::string where = block.first == block.last ? "" : "; it is at " + describe(module_, module_.operations[std::min(subgroup.operation, block.last - 1)].place);
      find(FindingKind::kEndless, kNone, kNone, fmt::format("the dispatch takes more than {} operations of lanes{}", launch_.most_operations, where));
      stopped_ = true;
      return;
    }
    if (subgroup.stands) return;
    end_block(subgroup);
    if (!next_block(subgroup)) {
      subgroup.active = {};
      return;
    }
  }
}

void Machine::follow(Subgroup& subgroup, const Edge& edge, Mask lanes) {
  if (lanes.none()) return;
  const bool whole = lanes == subgroup.lanes;
  for (const auto& [to, from] : edge.copies) {
    std::uint32_t* const target = values_of(subgroup, to);
    const std::uint32_t* const source = values_of(subgroup, from);
    if (whole) std::memcpy(target, source, width_ * 4);
    else lanes.for_each([&](std::uint32_t lane) { target[lane] = source[lane]; });
    subgroup.undefined[to] = subgroup.undefined[to].without(lanes) | (subgroup.undefined[from] & lanes);
    subgroup.depths[to] = whole ? subgroup.depths[from] : std::max(subgroup.depths[to], subgroup.depths[from]);
  }
  subgroup.waiting[edge.block] = subgroup.waiting[edge.block] | lanes;
}

void Machine::end_block(Subgroup& subgroup) {
  const Block& block = module_.blocks[subgroup.block];
  const Mask active = subgroup.active;
  if (block.selector != kNone) {
    const Mask undefined = subgroup.undefined[block.selector] & active;
    if (!undefined.none()) find(FindingKind::kUndefined, block.place, kNone, fmt::format("{}: {} branches on a value that is not defined", describe(module_, block.place), invocation(subgroup, undefined.lowest())));
    subgroup.control_depth = std::max(subgroup.control_depth, subgroup.depths[block.selector]);
  }
  switch (block.ending) {
    case Ending::kBranch: follow(subgroup, block.edges[0], active); break;
    case Ending::kBranchConditional: {
      const std::uint32_t* const condition = values_of(subgroup, block.selector);
      Mask taken;
      active.for_each([&](std::uint32_t lane) {
        if (condition[lane]) taken.add(lane);
      });
      follow(subgroup, block.edges[0], taken);
      follow(subgroup, block.edges[1], active.without(taken));
      break;
    }
    case Ending::kSwitch: {
      const std::uint32_t* const selector = values_of(subgroup, block.selector);
      std::vector<Mask> taken(block.edges.size());
      active.for_each([&](std::uint32_t lane) {
        const auto found = std::find(block.values.begin(), block.values.end(), selector[lane]);
        taken[found == block.values.end() ? 0 : static_cast<std::size_t>(found - block.values.begin()) + 1].add(lane);
      });
      for (std::size_t i = 0; i < taken.size(); ++i) follow(subgroup, block.edges[i], taken[i]);
      break;
    }
    case Ending::kUnreachable:
      find(FindingKind::kUndefined, block.place, kNone, fmt::format("{}: {} comes to what is said to be out of reach", describe(module_, block.place), invocation(subgroup, active.lowest())));
      [[fallthrough]];
    case Ending::kReturn: subgroup.ended = subgroup.ended | active; break;
  }
}

void Machine::write(Subgroup& subgroup, Slot slot, const std::uint32_t* values, Mask undefined, std::uint32_t depth) {
  std::uint32_t* const to = values_of(subgroup, slot);
  if (subgroup.active == subgroup.lanes) {
    std::memcpy(to, values, width_ * 4);
    subgroup.undefined[slot] = undefined;
  } else {
    subgroup.active.for_each([&](std::uint32_t lane) { to[lane] = values[lane]; });
    subgroup.undefined[slot] = subgroup.undefined[slot].without(subgroup.active) | (undefined & subgroup.active);
  }
  subgroup.depths[slot] = depth;
}

void Machine::execute(Subgroup& subgroup, const Operation& op) {
  if (is_arithmetic(op.code)) return compute_op(subgroup, op);
  switch (op.code) {
    case Code::kArrayLength: return array_length(subgroup, op);
    case Code::kBarrier:
      if (!(subgroup.active == subgroup.lanes)) {
        const Mask missing = subgroup.lanes.without(subgroup.active);
        find(FindingKind::kBarrier, op.place, kNone, fmt::format("{}: {} comes to it, and {} does not", describe(module_, op.place), invocation(subgroup, subgroup.active.lowest()), invocation(subgroup, missing.lowest())));
      }
      if ((op.extra & 1u) != 0) {
        subgroup.stands = true;
        return;
      }
      if ((op.extra & 2u) != 0) ++subgroup.shared_epoch;
      if ((op.extra & 4u) != 0) ++subgroup.buffer_epoch;
      return;
    case Code::kMemoryBarrier:
      if (!(subgroup.active == subgroup.lanes)) return;
      if ((op.extra & 4u) != 0) subgroup.released = true;
      if ((op.extra & 8u) != 0) subgroup.released_to_others = true, subgroup.seen = met_;
      return;
    case Code::kBound: return check_bound(subgroup, op);
    case Code::kMatrixLoad:
    case Code::kMatrixStore: return matrix_access(subgroup, op);
    case Code::kMatrixProduct: return matrix_product(subgroup, op);
    default: break;
  }
  if (op.code >= Code::kElect) between_lanes(subgroup, op);
  else access(subgroup, op);
}

void Machine::compute_op(Subgroup& subgroup, const Operation& op) {
  alignas(64) std::uint32_t out[kMostLanes];
  const Slot fourth = op.code == Code::kInsert ? op.extra : kNone;
  const std::uint32_t* const a = values_of(std::as_const(subgroup), op.a);
  Mask undefined = compute(op, a, values_of(std::as_const(subgroup), op.b), values_of(std::as_const(subgroup), op.c), values_of(std::as_const(subgroup), fourth), out, width_, subgroup.active);
  if (launch_.expects_nan && (op.code == Code::kFloatMin || op.code == Code::kFloatMax)) undefined = {};
  std::uint32_t depth = 0;
  if (op.code == Code::kSelect) {
    // What is not chosen does not count.
    const Mask b = subgroup.undefined[op.b], c = subgroup.undefined[op.c];
    undefined = undefined | subgroup.undefined[op.a];
    if (!(b | c).none()) (b | c).for_each([&](std::uint32_t lane) {
      if (a[lane] ? b.has(lane) : c.has(lane)) undefined.add(lane);
    });
    depth = std::max({depth_of(subgroup, op.a), depth_of(subgroup, op.b), depth_of(subgroup, op.c)});
  } else {
    for (const Slot slot : {op.a, op.b, op.c, fourth}) {
      if (slot == kNone) continue;
      undefined = undefined | subgroup.undefined[slot];
      depth = std::max(depth, subgroup.depths[slot]);
    }
    if (!undefined.none()) undefined = undefined.without(decided(subgroup, op));
  }
  write(subgroup, op.to, out, undefined, depth);
}

Mask Machine::decided(const Subgroup& subgroup, const Operation& op) const {
  const bool is_or = op.code == Code::kLogicalOr;
  if (!is_or && op.code != Code::kLogicalAnd && op.code != Code::kAnd) return {};
  Mask decided;
  for (const Slot slot : {op.a, op.b}) {
    const std::uint32_t* const values = values_of(subgroup, slot);
    subgroup.active.without(subgroup.undefined[slot]).for_each([&](std::uint32_t lane) {
      if ((values[lane] != 0) == is_or) decided.add(lane);
    });
  }
  return decided;
}

void Machine::check_bound(const Subgroup& subgroup, const Operation& op) {
  const std::uint32_t* const index = values_of(subgroup, op.a);
  subgroup.active.without(subgroup.undefined[op.a]).for_each([&](std::uint32_t lane) {
    if (index[lane] >= op.extra) find(FindingKind::kOutOfBounds, op.place, kNone, fmt::format("{}: {} takes part {} of {}", describe(module_, op.place), invocation(subgroup, lane), index[lane], op.extra));
  });
}

void Machine::array_length(Subgroup& subgroup, const Operation& op) {
  std::uint32_t out[kMostLanes];
  const std::uint64_t bytes = views_[op.extra].size_bytes;
  std::fill_n(out, width_, op.a > bytes || op.b == 0 ? 0 : static_cast<std::uint32_t>((bytes - op.a) / op.b));
  write(subgroup, op.to, out, {}, 0);
}

}  // namespace rondo::simulator
