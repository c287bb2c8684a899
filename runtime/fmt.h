// {fmt}, compiled once: in every file that formats, its templates would take four seconds to compile.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/core.h>

/// Within namespace rondo these are what `fmt::` names. Format strings are checked when they are compiled, as {fmt} does;
/// arguments are numbers, texts and pointers. Nothing here throws, whoever calls: the library has no exceptions.
namespace rondo::fmt {

std::string vformat(::fmt::string_view text, ::fmt::format_args arguments);

template <class... T>
std::string format(::fmt::format_string<T...> text, T&&... arguments) {
  return fmt::vformat(text, ::fmt::make_format_args(arguments...));
}

/// Writes the text to a stream, which remembers if that fails (std::ferror).
void vprint(std::FILE* stream, ::fmt::string_view text, ::fmt::format_args arguments);

template <class... T>
void print(std::FILE* stream, ::fmt::format_string<T...> text, T&&... arguments) {
  fmt::vprint(stream, text, ::fmt::make_format_args(arguments...));
}
template <class... T>
void print(::fmt::format_string<T...> text, T&&... arguments) {
  fmt::vprint(stdout, text, ::fmt::make_format_args(arguments...));
}

/// The items, formatted, with `separator` between them.
template <class Range>
std::string join(const Range& items, std::string_view separator) {
  std::string joined;
  std::string_view before;
  for (const auto& item : items) {
    joined += fmt::format("{}{}", before, item);
    before = separator;
  }
  return joined;
}

}  // namespace rondo::fmt
