// What compiled kernels may cost on which chip: a table in a file, for CI to hold.
//
//   mesa 26.1.6
//   # chip   registers  waves  spills  scratch  per_multiply_add  kernel
//   navi21   72         14     0       0        4.0               linear vector q8_0 kInputVec4=1
//   navi21   128        4      0       0        -                 *
//
// The kernel is the beginning of what `rondo isa` calls it, with the values that specialization constants must have, if any; of
// those that fit the longest counts, and `*` is for all others. `waves` is a least number, the others are most; `-` is none. The
// first line names the version of Mesa whose compilers were measured: others are not judged by it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

#include "tools/isa/executable.h"
#include "tools/isa/kernel_pattern.h"

namespace rondo::isa {

class Budget {
 public:
  struct Line {
    std::size_t number = 0;  ///< in the file, from 1
    std::string chip;
    KernelPattern kernel;
    std::optional<double> registers, waves, spills, scratch_bytes, per_multiply_add;
  };

  /// `what` names the file in messages. Errors: kCorruptData, naming the line.
  static Result<Budget> parse(std::string_view text, std::string_view what);

  const std::string& mesa() const { return mesa_; }
  /// Whether a device's driver, as DeviceInfo has it, is of that version.
  bool is_for(std::string_view driver) const;
  /// The line for a kernel on the device, with all of its constants; null where there is none.
  const Line* find(std::string_view device_name, std::string_view kernel, const std::vector<std::string>& constants) const;

 private:
  std::string mesa_;
  std::vector<Line> lines_;
};

/// What a kernel has more of than its line allows (waves: less), as "72 registers, 64 allowed", or "". What the driver does
/// not tell exceeds nothing.
std::string find_excess(const Budget::Line& line, const Executable& executable, std::optional<double> per_multiply_add);

}  // namespace rondo::isa
