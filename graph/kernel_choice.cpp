#include "graph/kernel_choice.h"

#include <algorithm>
#include <optional>

#include "runtime/fmt.h"

namespace rondo::graph {

std::string_view kernel_in_label(const Operator& op, std::string_view label) {
  const std::size_t end = label.find(' ');
  if (label.substr(0, end) != op.name || end == label.npos) return "";
  const std::string_view kernel = label.substr(end + 1, label.find(' ', end + 1) - end - 1);
  return std::find(op.kernels.begin(), op.kernels.end(), kernel) != op.kernels.end() ? kernel : "";
}

std::string_view chosen_kernel(const runtime::Dispatch& dispatch) {
  const std::optional<Op> op = find_operator(std::string_view(dispatch.choice).substr(0, dispatch.choice.find(' ')));
  return op ? kernel_in_label(operator_of(*op), dispatch.label) : "";
}

bool KernelChoice::allows(std::string_view kernel) const {
  return (kernels.empty() || std::find(kernels.begin(), kernels.end(), kernel) != kernels.end()) && (forced.empty() || forced == kernel);
}

Result<std::size_t> choose_candidate(const Lowering& lowering, std::vector<KernelCandidate> candidates, const KernelChoice& choice, std::string_view advice) {
  const runtime::DeviceCaps& caps = lowering.caps();
  std::stable_sort(candidates.begin(), candidates.end(), [](const KernelCandidate& a, const KernelCandidate& b) { return a.rank > b.rank; });
  std::string why;  // the best can't run
  std::erase_if(candidates, [&](const KernelCandidate& one) {
    if (one.lacks.empty() && (caps.max_loop_iterations == 0 || one.iterations <= caps.max_loop_iterations)) return false;
    if (why.empty()) {
      why = !one.lacks.empty() ? fmt::format("kernel '{}' needs {}, which device {} or this graph does not have", one.name, one.lacks, caps.name)
                               : fmt::format("kernel '{}' takes {} loop iterations, but driver {} ends a kernel's loops after {}{}", one.name, one.iterations, caps.driver, caps.max_loop_iterations, advice);
    }
    return true;
  });
  if (candidates.empty()) return Status(StatusCode::kUnsupported, why);
  if (const std::string_view tuned = lowering.tuned_kernel(choice.key), measured = lowering.measured_kernel(choice.op); !tuned.empty() || !measured.empty()) {
    std::stable_partition(candidates.begin(), candidates.end(), [&](const KernelCandidate& one) {
      if (!tuned.empty()) return one.name == tuned;
      return one.name == measured && one.rank != 0 && one.rank != 1;  // those are there for when others can't run
    });
  }
  const auto sound = std::find_if(candidates.begin(), candidates.end(), [](const KernelCandidate& one) { return !one.is_quarantined; });
  return (sound == candidates.end() ? candidates.front() : *sound).place;
}

}  // namespace rondo::graph
