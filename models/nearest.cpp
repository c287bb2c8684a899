#include "models/nearest.h"

#include "graph/nearest_name.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

std::string suggest(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view nearest = graph::find_nearest(name, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", printable(nearest));
}

}  // namespace rondo::models
