// The only file with all of {fmt}.
#ifndef FMT_HEADER_ONLY
#define FMT_HEADER_ONLY 1
#endif
#include "runtime/fmt.h"

#include <fmt/format.h>

namespace rondo::fmt {

std::string vformat(::fmt::string_view text, ::fmt::format_args arguments) { return ::fmt::vformat(text, arguments); }

void vprint(std::FILE* stream, ::fmt::string_view text, ::fmt::format_args arguments) {
  const std::string bytes = fmt::vformat(text, arguments);
  std::fwrite(bytes.data(), 1, bytes.size(), stream);
}

}  // namespace rondo::fmt
