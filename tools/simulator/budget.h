// What kernels may cost in memory: a file of limits, and whether kernels keep to them.
//
//   linear/subgroup | 1 row, 4096 to 4096 | q8_0 | 32 | line_factor <= 2.5, barriers <= 0
//
// A kernel, its shape and weight type ("-" where there is none) as the command takes them, the lanes of a subgroup, and limits on
// the numbers that --json names. A case of several dispatches is judged by the one with most operations. # begins a comment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "tools/simulator/metrics.h"

namespace rondo::simulator {

struct Limit {
  std::string name;     ///< of a metric
  bool at_most = true;  ///< else at least
  double value = 0;
};

struct BudgetLine {
  std::string kernel, shape, type;
  std::uint32_t lanes = 32;
  std::vector<Limit> limits;
};

/// Errors: kCorruptData, naming the line and what is wrong with it.
Result<std::vector<BudgetLine>> parse_budget(const std::string& text, const std::string& name);

/// The value of a metric that --json names; nothing if there is no such one.
std::optional<double> find_metric(const Metrics& metrics, const std::string& name);

/// "line_factor is 3.5 instead of at most 3.3", of what is exceeded; "" if nothing is.
std::string exceeded(const BudgetLine& line, const Metrics& metrics);

}  // namespace rondo::simulator
