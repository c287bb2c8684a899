// Lines of text in words. Pure.
#pragma once

#include <string_view>

namespace rondo::isa {

/// Without blanks at either end.
std::string_view trimmed(std::string_view text);

/// The text up to the next blank, taken off the front of `rest`, which is trimmed; "" at its end.
std::string_view take_word(std::string_view& rest);

}  // namespace rondo::isa
