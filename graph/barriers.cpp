#include "graph/lowering.h"

namespace rondo::graph {

namespace {

bool overlaps(const runtime::BufferRange& a, const runtime::BufferRange& b) {
  return a.buffer == b.buffer && a.offset_bytes < b.offset_bytes + b.size_bytes && b.offset_bytes < a.offset_bytes + a.size_bytes;
}

bool conflicts(const runtime::Binding& a, const runtime::Binding& b) {
  const bool both_read = a.access == runtime::Access::kRead && b.access == runtime::Access::kRead;
  return !both_read && overlaps(a.range, b.range);
}

bool any_conflict(const std::vector<runtime::Binding>& pending, const std::vector<runtime::Binding>& next) {
  for (const runtime::Binding& a : pending) {
    for (const runtime::Binding& b : next) {
      if (conflicts(a, b)) return true;
    }
  }
  return false;
}

}  // namespace

void place_barriers(runtime::Program& program) {
  std::vector<runtime::Binding> pending;
  for (runtime::Dispatch& dispatch : program.dispatches) {
    dispatch.barrier_before = any_conflict(pending, dispatch.bindings);
    if (dispatch.barrier_before) pending.clear();
    pending.insert(pending.end(), dispatch.bindings.begin(), dispatch.bindings.end());
  }
}

}  // namespace rondo::graph
