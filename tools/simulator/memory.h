// The memory of a simulated dispatch: buffers and shared memory, what is known of each byte, and who touched it last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tools/simulator/module.h"

namespace rondo::simulator {

/// Bytes that outlive dispatches.
struct Buffer {
  std::vector<std::byte> bytes;
  std::vector<std::uint8_t> written;  ///< by byte, 0 or 1; empty: all are
};

/// What one binding of a dispatch stands for.
struct BoundRange {
  std::uint32_t buffer = kNone;  ///< kNone: nothing is bound
  std::uint64_t offset_bytes = 0, size_bytes = 0;
};

/// Who touches memory: an invocation, in which interval between barriers.
struct Toucher {
  std::uint32_t invocation = kNone;   ///< in the dispatch, workgroup after workgroup
  std::uint32_t epoch = 0;            ///< intervals of all workgroups are counted through
  std::uint32_t subgroup_epoch = 0;   ///< those between barriers of the subgroup
  std::uint32_t place = 0;
  bool atomic = false;
  bool coherent = false;
  std::uint32_t matrix = 0;           ///< the type of the matrix that it loads or stores: which lane does is known among those of one type only

  bool is_same(const Toucher& other) const { return invocation == other.invocation && matrix == other.matrix; }
};

/// A vector clock (Mattern 1989) of workgroups: what each of them did in intervals before this one is in sight. By an atomic made after theirs, with memory barriers between what they
/// did and theirs, and behind the later one.
using SeenWorkgroups = std::unordered_map<std::uint32_t, std::uint32_t>;

/// Finds accesses that nothing orders. Of each granule it keeps the last writer, the last atomic and, of the readers since, the last of
/// two invocations, one of another subgroup and one of another workgroup: enough to see every race of a granule that is written at most once between
/// barriers, and with others some.
class RaceDetector {
 public:
  RaceDetector(std::uint32_t granule_bytes, std::uint32_t workgroup_size, std::uint32_t subgroup_size, bool across_workgroups)
      : granule_(granule_bytes), workgroup_size_(workgroup_size), subgroup_size_(subgroup_size), across_(across_workgroups) {}

  /// The earlier access that races with this one, or null. The access is noted. `seen`: by whoever makes it.
  const Toucher* touch(std::uint64_t first_byte, std::uint32_t n_bytes, const Toucher& now, bool writes, const SeenWorkgroups& seen);

 private:
  struct Cell {
    Toucher writer, atomic, reader, other_reader, other_subgroup, other_workgroup;
  };
  static constexpr std::size_t kPageCells = 1024;
  struct Page {
    Cell cells[kPageCells];
  };
  bool ordered(const Toucher& before, const Toucher& now, const SeenWorkgroups& seen) const;
  std::uint32_t subgroup_of(const Toucher& toucher) const { return toucher.invocation % workgroup_size_ / subgroup_size_; }
  Cell& cell(std::uint64_t granule);

  std::uint32_t granule_, workgroup_size_, subgroup_size_;
  bool across_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_page_ = ~std::uint64_t{0};
  Page* last_ = nullptr;
  Toucher found_;
};

}  // namespace rondo::simulator
