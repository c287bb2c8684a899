// What `rondo check` runs: all cases, in the words of case_text.h, in one table (cases.cpp). Pure.
#pragma once

#include <string>
#include <vector>

namespace rondo::check {

/// The cases of the default set, then those of `thorough`, with what stands for many written out.
std::vector<std::string> all_cases(bool thorough);

}  // namespace rondo::check
