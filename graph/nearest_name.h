// Which of several names was meant by one that there is not. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rondo::graph {

/// The name that differs least from `wanted`, or "" where none is like it: more than a third of its characters, and more than
/// one, would have to change, be added or left out, or swapped with the next. Costs the lengths' product for each of similar length.
std::string_view find_nearest(std::string_view wanted, std::span<const std::string_view> names);

/// "; did you mean 'gelu'?" for the nearest of names that need no escapes, or "".
std::string did_you_mean(std::string_view wanted, std::span<const char* const> names);

}  // namespace rondo::graph
