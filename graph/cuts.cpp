#include <algorithm>

#include "graph/lowering.h"

namespace rondo::graph {

double predict_ns(const runtime::Cost& cost, const runtime::DeviceCaps& caps) {
  return std::max(cost.bytes / caps.bytes_per_s, cost.flops / caps.flops_per_s) * 1e9 + caps.dispatch_ns;
}

std::vector<runtime::Segment> cut_segments(const runtime::Program& program, const runtime::DeviceCaps& caps, double bound_ns) {
  std::vector<runtime::Segment> segments;
  runtime::Segment current;
  for (std::uint32_t i = 0; i < program.dispatches.size(); ++i) {
    const double cost = predict_ns(program.dispatches[i].cost, caps);
    if (current.last > current.first && current.cost_ns + cost > bound_ns) {
      segments.push_back(current);
      current = {i, i, 0};
    }
    current.last = i + 1;
    current.cost_ns += cost;
  }
  if (current.last > current.first) segments.push_back(current);
  return segments;
}

}  // namespace rondo::graph
