// How long a Program takes on a device that nobody has here: from what compilers and the simulator counted of its kernels
// (tools/isa/budget.txt, tools/simulator/budget.txt) and the rates of the device's profile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

#include "runtime/device_caps.h"
#include "runtime/program.h"

namespace rondo::tools {

/// One dispatch, in nanoseconds: it waits for the one before it (`launch`, where there is a barrier), and takes the longest of the
/// others.
struct Prediction {
  double launch = 0;
  double memory = 0;      ///< its bytes, at kUsableBandwidth of the device's, or at what a loop that waits has in flight
  double arithmetic = 0;  ///< instructions of its multiply-adds, by the core that has the most workgroups; 0 where no compiler's count is in the table
  double lines = 0;       ///< cache lines that it asks for, one a clock and core; 0 where the simulator has no count
  double shared = 0;      ///< what goes through shared memory, kSharedBytes a clock and core, by the core that has the most workgroups; 0 where the kernel doesn't tell
  double waits = 0;       ///< loads that depend on each other, but for the first, which is in `launch`; rounds of loops that load tiles
  bool counted = false;   ///< a compiler's count is in the table, or it has no multiply-adds

  double total() const;
  /// "memory", "arithmetic", "lines", "shared" or "waits"; "launch" where that is longer than all.
  const char* bound() const;
};

constexpr double kUsableBandwidth = 0.9;  ///< of what the data sheet says
constexpr double kSharedBytes = 128;      ///< 32 banks of 4 bytes
constexpr double kLoadNs = 600;           ///< from asking for a word of memory to having it
constexpr double kResident = 1024;        ///< invocations of a core that are under way, at most

/// Of each dispatch. Errors: kInvalidArgument (the device's profile has no rates).
Result<std::vector<Prediction>> predict(const runtime::Program& program, const runtime::DeviceCaps& caps);

/// What a device took for steps of one kind, dispatch by dispatch.
struct MeasuredSteps {
  std::size_t n = 0;
  std::map<std::string, double, std::less<>> ns_by_kernel;  ///< by label, of one step on average
  double total() const;
};

/// The steps of this name, a Program's ("decode 1", "prefill and sample 512"), of a trace that `rondo bench --trace` wrote. Errors: kNotFound, kIo, kCorruptData (no trace),
/// kInvalidArgument (it has no such step), naming the file.
Result<MeasuredSteps> read_measured_steps(const std::string& path, std::string_view step);

/// What a step of so many rows took on a card of the profile, in nanoseconds; nothing if none of a model with as many bytes of weights, or one in a hundred more or less, was measured.
std::optional<double> find_measured(const runtime::DeviceCaps& caps, std::uint64_t weight_bytes, std::int64_t rows);

/// What all bytes of the program take at kUsableBandwidth, and nothing else, in nanoseconds.
double bandwidth_bound_ns(const runtime::Program& program, const runtime::DeviceCaps& caps);

}  // namespace rondo::tools
