// The name in a file that somebody may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rondo::models {

/// "; did you mean 'weight'?" for the name in a file that is nearest (graph/nearest_name.h), printable, or "".
std::string suggest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace rondo::models
