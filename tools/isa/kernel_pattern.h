// Kernels by the names and specialization constants that `rondo isa` gives them: "linear vector q8_0 kInputVec4=1". Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::isa {

struct KernelPattern {
  std::string label;                   ///< the beginning of a kernel's; "*": any
  std::vector<std::string> constants;  ///< that it must have, as "kInputVec4=1"
  std::size_t length = 0;              ///< of both, by which patterns are compared; 0: fits all

  /// Words with = in them are constants.
  static KernelPattern parse(std::string_view text);
  bool fits(std::string_view kernel_label, const std::vector<std::string>& kernel_constants) const;
  bool operator==(const KernelPattern&) const = default;
};

/// Whether this chip, in capitals or not, is in a device's name: "navi21" in "AMD Radeon RX 6800 (RADV NAVI21)", "adreno740" in
/// "Turnip Adreno (TM) 740".
bool is_chip(std::string_view chip, std::string_view device_name);

}  // namespace rondo::isa
