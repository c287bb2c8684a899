#include "tools/simulator/memory.h"

namespace rondo::simulator {

bool RaceDetector::ordered(const Toucher& before, const Toucher& now, const SeenWorkgroups& seen) const {
  if (before.invocation == kNone || before.is_same(now) || (before.atomic && now.atomic)) return true;
  if (before.invocation / workgroup_size_ != now.invocation / workgroup_size_) {
    const auto found = seen.find(before.invocation / workgroup_size_);
    return !across_ || (before.coherent && now.coherent && found != seen.end() && before.epoch < found->second);
  }
  if (before.epoch != now.epoch) return true;
  return subgroup_of(before) == subgroup_of(now) && before.subgroup_epoch != now.subgroup_epoch;
}

RaceDetector::Cell& RaceDetector::cell(std::uint64_t granule) {
  const std::uint64_t page = granule / kPageCells;
  if (page != last_page_) {
    std::unique_ptr<Page>& found = pages_[page];
    if (!found) found = std::make_unique<Page>();
    last_page_ = page, last_ = found.get();
  }
  return last_->cells[granule % kPageCells];
}

const Toucher* RaceDetector::touch(std::uint64_t first_byte, std::uint32_t n_bytes, const Toucher& now, bool writes, const SeenWorkgroups& seen) {
  const Toucher* race = nullptr;
  const auto check = [&](const Toucher& before) {
    if (race || ordered(before, now, seen)) return;
    found_ = before;
    race = &found_;
  };
  for (std::uint64_t granule = first_byte / granule_; granule * granule_ < first_byte + n_bytes; ++granule) {
    Cell& own = cell(granule);
    check(own.writer);
    check(own.atomic);
    if (writes) {
      check(own.reader);
      check(own.other_reader);
      check(own.other_subgroup);
      check(own.other_workgroup);
      if (now.atomic) own.atomic = now;  // it is no rival of other atomics, so what came before stays one of theirs
      else own = Cell{now, {}, {}, {}, {}, {}};
      continue;
    }
    if (own.reader.invocation != kNone && !own.reader.is_same(now)) {
      if (own.reader.invocation / workgroup_size_ != now.invocation / workgroup_size_) own.other_workgroup = own.reader;
      else if (subgroup_of(own.reader) != subgroup_of(now)) own.other_subgroup = own.reader;
      own.other_reader = own.reader;
    }
    own.reader = now;
  }
  return race;
}

}  // namespace rondo::simulator
