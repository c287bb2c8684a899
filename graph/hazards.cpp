#include "graph/hazards.h"

#include <algorithm>
#include <map>

#include "runtime/fmt.h"

namespace rondo::graph {

namespace {

/// What is known of one elementary interval: epoch and place of the last write and the last read (-1: none yet).
struct Cell {
  std::int64_t write_epoch = -1, read_epoch = -1;
  std::uint32_t writer = 0, reader = 0;
};

/// The elementary intervals of one buffer: `edges[i] .. edges[i + 1]` is cell i.
struct Intervals {
  std::vector<std::uint64_t> edges;
  std::vector<Cell> cells;
};

struct Event {
  const runtime::Program* program;
  std::uint32_t index;
  bool barrier;
  std::string describe() const {
    return fmt::format("{}: dispatch {} {}", program->name, index, program->dispatches[index].label);
  }
};

std::vector<Event> flatten(std::span<const SequencedProgram> sequence) {
  std::vector<Event> events;
  for (const SequencedProgram& item : sequence) {
    for (std::uint32_t i = 0; i < item.program->dispatches.size(); ++i) {
      const bool entry = i == 0 && item.entry_barrier;
      events.push_back({item.program, i, entry || item.program->dispatches[i].barrier_before});
    }
  }
  return events;
}

std::map<std::uint32_t, Intervals> split_buffers(const std::vector<Event>& events) {
  std::map<std::uint32_t, Intervals> buffers;
  for (const Event& event : events) {
    for (const runtime::Binding& binding : event.program->dispatches[event.index].bindings) {
      std::vector<std::uint64_t>& edges = buffers[binding.range.buffer].edges;
      edges.push_back(binding.range.offset_bytes);
      edges.push_back(binding.range.offset_bytes + binding.range.size_bytes);
    }
  }
  for (auto& [buffer, intervals] : buffers) {
    std::sort(intervals.edges.begin(), intervals.edges.end());
    intervals.edges.erase(std::unique(intervals.edges.begin(), intervals.edges.end()), intervals.edges.end());
    intervals.cells.resize(intervals.edges.size());
  }
  return buffers;
}

}  // namespace

std::vector<Hazard> find_hazards(std::span<const SequencedProgram> sequence, std::size_t limit) {
  const std::vector<Event> events = flatten(sequence);
  std::map<std::uint32_t, Intervals> buffers = split_buffers(events);
  std::vector<Hazard> hazards;
  std::int64_t epoch = 0;
  for (std::uint32_t now = 0; now < events.size(); ++now) {
    const Event& event = events[now];
    if (event.barrier) ++epoch;
    for (const runtime::Binding& binding : event.program->dispatches[event.index].bindings) {
      Intervals& intervals = buffers[binding.range.buffer];
      const std::uint64_t end = binding.range.offset_bytes + binding.range.size_bytes;
      const auto first = std::lower_bound(intervals.edges.begin(), intervals.edges.end(), binding.range.offset_bytes);
      for (std::size_t i = static_cast<std::size_t>(first - intervals.edges.begin()); intervals.edges[i] < end; ++i) {
        Cell& cell = intervals.cells[i];
        const bool writes = binding.access != runtime::Access::kRead;
        const bool after_write = cell.write_epoch == epoch && cell.writer != now;
        const bool after_read = writes && cell.read_epoch == epoch && cell.reader != now;
        if ((after_write || after_read) && hazards.size() < limit) {
          const Event& other = events[after_write ? cell.writer : cell.reader];
          hazards.push_back({other.describe(), event.describe(), binding.range.buffer, intervals.edges[i]});
        }
        if (writes) {
          cell.write_epoch = epoch;
          cell.writer = now;
        }
        // The first reader of an epoch is kept unless it is this dispatch: any of them makes a later write a hazard.
        if (binding.access != runtime::Access::kWrite && (cell.read_epoch != epoch || cell.reader == now)) {
          cell.read_epoch = epoch;
          cell.reader = now;
        }
      }
    }
  }
  return hazards;
}

std::vector<Hazard> find_hazards_in_all_orders(std::span<const runtime::Program* const> programs) {
  std::vector<Hazard> all;
  for (const runtime::Program* first : programs) {
    for (const runtime::Program* second : programs) {
      const SequencedProgram pair[] = {{first, true}, {second, true}};
      const std::vector<Hazard> found = find_hazards(pair);
      all.insert(all.end(), found.begin(), found.end());
    }
  }
  return all;
}

}  // namespace rondo::graph
