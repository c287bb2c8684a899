#include "tools/isa/kernel_pattern.h"

#include <algorithm>
#include <cctype>

#include "tools/isa/words.h"

namespace rondo::isa {

namespace {

/// Letters and digits, letters small, without what stands for trade marks.
std::string plain(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i, 4) == "(TM)" || name.substr(i, 4) == "(tm)") i += 3;
    else if (std::isalnum(static_cast<unsigned char>(name[i]))) text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

}  // namespace

KernelPattern KernelPattern::parse(std::string_view text) {
  KernelPattern pattern;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    pattern.length += word.size();
    if (word.find('=') != std::string_view::npos) pattern.constants.emplace_back(word);
    else pattern.label.append(pattern.label.empty() ? "" : " ").append(word);
  }
  if (pattern.label == "*" && pattern.constants.empty()) pattern.length = 0;
  return pattern;
}

bool KernelPattern::fits(std::string_view kernel_label, const std::vector<std::string>& kernel_constants) const {
  if (label != "*" && kernel_label.substr(0, label.size()) != label) return false;
  return std::all_of(constants.begin(), constants.end(), [&](const std::string& wanted) { return std::find(kernel_constants.begin(), kernel_constants.end(), wanted) != kernel_constants.end(); });
}

bool is_chip(std::string_view chip, std::string_view device_name) { return plain(device_name).find(plain(chip)) != std::string::npos; }

}  // namespace rondo::isa
