#include "graph/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/fmt.h"

namespace rondo::graph {

namespace {

/// Characters to change, add, leave out, or swap with the next one (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view find_nearest(std::string_view wanted, std::span<const std::string_view> names) {
  constexpr std::size_t kLongestName = 200;  // beyond it is no name that somebody mistyped
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t longer = std::max(name.size(), wanted.size()), shorter = std::min(name.size(), wanted.size());
    if (longer > kLongestName || shorter == 0 || longer - shorter >= least) continue;
    const std::size_t distance = edit_distance(wanted, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string did_you_mean(std::string_view wanted, std::span<const char* const> names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view nearest = find_nearest(wanted, views);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace rondo::graph
