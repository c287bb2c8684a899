// Which of an operator's kernels: a table of what there is, what each needs, and what fits a device best.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/lowering.h"
#include "runtime/fmt.h"

namespace rondo::graph {

/// One kernel of an operator. `Call` is what of a node decides: shapes and types.
template <typename Call>
struct KernelEntry {
  const char* name;
  /// What the device or the call lacks, in words that follow "needs", or "".
  std::string (*lacks)(const runtime::DeviceCaps& caps, const Call& call);
  /// Upper bound of the iterations of an invocation's loops: drivers may end them early, and say nothing.
  std::uint64_t (*iterations)(const Call& call);
  /// The more, the better it fits; of equals the first is taken.
  int (*rank)(const runtime::DeviceCaps& caps, const Call& call);
};

/// The place in `table` of the kernel that is forced, or else of the best that the device can run and that `label_of` it is not
/// in quarantine; if all are, of the best. Errors: kUnsupported (the forced one can't run; none can).
template <typename Call, typename LabelOf>
Result<std::size_t> choose_kernel(const Lowering& lowering, std::span<const KernelEntry<Call>> table, const Call& call, std::string_view forced, const LabelOf& label_of) {
  const runtime::DeviceCaps& caps = lowering.caps();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (forced.empty() || forced == table[i].name) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return table[a].rank(caps, call) > table[b].rank(caps, call); });
  std::vector<std::size_t> candidates;
  std::string why;  // the best can't run
  for (const std::size_t i : order) {
    const std::string lacks = table[i].lacks(caps, call);
    const bool ends = caps.max_loop_iterations == 0 || table[i].iterations(call) <= caps.max_loop_iterations;
    if (lacks.empty() && ends) {
      candidates.push_back(i);
    } else if (why.empty()) {
      why = !lacks.empty() ? fmt::format("kernel '{}' needs {}, which device {} or this graph does not have", table[i].name, lacks, caps.name)
                           : fmt::format("kernel '{}' takes {} loop iterations, but driver {} ends a kernel's loops after {}", table[i].name, table[i].iterations(call), caps.driver, caps.max_loop_iterations);
    }
  }
  if (candidates.empty()) return Status(StatusCode::kUnsupported, why);
  for (const std::size_t candidate : candidates) {
    if (!lowering.is_quarantined(label_of(table[candidate].name))) return candidate;
  }
  return candidates.front();
}

}  // namespace rondo::graph
