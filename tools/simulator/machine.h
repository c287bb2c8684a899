// One dispatch while it is simulated: what simulate.h does, in parts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tools/simulator/mask.h"
#include "tools/simulator/simulate.h"

namespace rondo::simulator {

/// The lanes of a subgroup, between two barriers of which it stands still.
struct Subgroup {
  std::uint32_t number = 0;
  Mask lanes;                        ///< that there are: fewer in a workgroup's last
  Mask ended;
  std::vector<std::uint32_t> values;  ///< by slot, then lane
  std::vector<Mask> undefined;        ///< by slot
  std::vector<std::uint32_t> depths;  ///< by slot: loads from buffers one after the other, to get it
  std::vector<std::byte> own;         ///< private memory: by word, then lane
  std::vector<Mask> own_written;      ///< by word
  std::vector<Mask> waiting;          ///< by block: lanes that come to it
  std::uint32_t control_depth = 0;
  std::uint32_t shared_depth = 0;     ///< of what it has left in shared memory
  std::uint32_t shared_epoch = 0, buffer_epoch = 0;
  // Where it is.
  std::uint32_t block = 0, operation = 0;
  Mask active;
  bool stands = false;                ///< at the barrier before `operation`
  bool released = false;              ///< a memory barrier of buffers came after its last write to one
  bool released_to_others = false;    ///< one in sight of other workgroups
  SeenWorkgroups seen;
};

class Machine {
 public:
  Machine(const Module& module, std::span<Buffer> buffers, const Launch& launch);

  Report run();

 private:
  struct SpaceView {
    std::byte* bytes = nullptr;
    std::uint64_t size_bytes = 0;
    std::uint32_t buffer = kNone;
    std::uint64_t base = 0;               ///< in its buffer, or in shared memory
    std::uint8_t* written = nullptr;      ///< null: all are
    RaceDetector* races = nullptr;        ///< null: nobody writes
  };

  void start(Subgroup& subgroup, std::array<std::uint32_t, 3> workgroup);
  void run_workgroup(std::array<std::uint32_t, 3> workgroup);
  /// Runs until the next barrier of the workgroup, or the end.
  void run(Subgroup& subgroup);
  bool next_block(Subgroup& subgroup);
  void end_block(Subgroup& subgroup);
  void follow(Subgroup& subgroup, const Edge& edge, Mask lanes);
  /// All stand at one barrier, or some have ended: lets them go on.
  void meet(std::vector<Subgroup>& subgroups);

  void execute(Subgroup& subgroup, const Operation& op);
  void compute_op(Subgroup& subgroup, const Operation& op);
  /// Lanes in which one operand decides what `and` and `or` give, whatever the other is.
  Mask decided(const Subgroup& subgroup, const Operation& op) const;
  void write(Subgroup& subgroup, Slot slot, const std::uint32_t* values, Mask undefined, std::uint32_t depth);
  void array_length(Subgroup& subgroup, const Operation& op);
  void check_bound(const Subgroup& subgroup, const Operation& op);
  void between_lanes(Subgroup& subgroup, const Operation& op);
  /// Says where not all lanes come to what they must do together.
  void check_together(const Subgroup& subgroup, const Operation& op);
  void reduce(Subgroup& subgroup, const Operation& op);
  void scan(Subgroup& subgroup, const Operation& op);

  // accesses.cpp
  void access(Subgroup& subgroup, const Operation& op);
  void access_private(Subgroup& subgroup, const Operation& op, const Access& access);
  void access_shared_or_buffer(Subgroup& subgroup, const Operation& op, const Access& access);
  void access_push(Subgroup& subgroup, const Operation& op, const Access& access);
  void access_lane(Subgroup& subgroup, const Operation& op, const Access& access, const SpaceView& view, std::uint32_t lane, std::uint64_t address);
  /// The count of what an access is in the source, in report_.accesses.
  std::size_t find_count(const Operation& op, std::uint32_t variable, bool& is_new);
  bool is_written(const SpaceView& view, std::uint64_t at, std::uint32_t n_bytes) const;
  void matrix_access(Subgroup& subgroup, const Operation& op);
  void matrix_product(Subgroup& subgroup, const Operation& op);
  Mask check_address(Subgroup& subgroup, const Operation& op, const Access& access);

  void find(FindingKind kind, std::uint32_t place, std::uint32_t other_place, std::string text);
  std::string invocation(const Subgroup& subgroup, std::uint32_t lane) const;
  std::string invocation(std::uint32_t in_dispatch) const;
  std::uint32_t in_dispatch(const Subgroup& subgroup, std::uint32_t lane) const { return workgroup_number_ * module_.n_invocations() + subgroup.number * width_ + lane; }
  const std::uint32_t* values_of(const Subgroup& subgroup, Slot slot) const { return slot == kNone ? nullptr : subgroup.values.data() + std::size_t{slot} * width_; }
  std::uint32_t* values_of(Subgroup& subgroup, Slot slot) const { return subgroup.values.data() + std::size_t{slot} * width_; }
  std::uint32_t depth_of(const Subgroup& subgroup, Slot slot) const { return slot == kNone ? 0 : subgroup.depths[slot]; }

  const Module& module_;
  std::span<Buffer> buffers_;
  const Launch& launch_;
  std::uint32_t width_;
  std::vector<SpaceView> views_;               ///< by variable; private ones have none
  std::vector<std::unique_ptr<RaceDetector>> buffer_races_;  ///< by buffer
  RaceDetector shared_races_;
  std::vector<std::byte> shared_;
  std::vector<std::uint8_t> shared_written_;
  std::uint32_t shared_depth_ = 0;             ///< of what all had left there before the last barrier
  std::vector<std::byte> push_;
  std::uint32_t workgroup_number_ = 0;
  std::array<std::uint32_t, 3> workgroup_{};
  std::uint32_t shared_epoch_ = 0, buffer_epoch_ = 0;
  std::uint32_t deepest_load_ = 0;             ///< of the workgroup: loads from buffers one after the other
  std::uint32_t released_epoch_ = 0;           ///< what the workgroup did in intervals before is in sight of others
  SeenWorkgroups met_;                         ///< by its atomics; its subgroups see it behind a memory barrier
  std::map<std::pair<std::uint32_t, std::uint64_t>, SeenWorkgroups> atomics_;  ///< of buffers, by buffer and byte: who made one
  std::uint64_t workgroup_barriers_ = 0;
  std::map<std::tuple<FindingKind, std::uint32_t, std::uint32_t>, std::size_t> found_;
  static constexpr std::size_t kUncounted = ~std::size_t{0};
  std::vector<std::size_t> counts_;            ///< by access: index into report_.accesses
  std::vector<std::uint64_t> block_runs_;
  Report report_;
  bool stopped_ = false;
};

}  // namespace rondo::simulator
