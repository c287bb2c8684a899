// Work in child processes, so that what crashes or hangs takes only itself along: drivers abort, panic and loop on kernels.
//
// The child is a fork of a process that has not touched Vulkan and has no threads; it works through the jobs until one brings it
// down, and the next child goes on behind that one. A job that falls when others ran before it in its process is run once
// more by itself, so that what it is blamed for is its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <rondo/status.h>

namespace rondo::isa {

/// What a child does, the same in each.
struct Jobs {
  std::size_t n = 0;
  std::string about;                                 ///< told once, before the first job
  std::function<std::string(std::size_t)> name;
  std::function<std::string(std::size_t)> run;       ///< returns the output
  std::function<std::size_t()> n_complaints;         ///< so far; may be empty
};

struct JobResult {
  std::size_t index = 0, total = 0;
  std::string name;
  std::string output;
  std::string failure;  ///< "crashed (Aborted)", "took longer than 60 s", what was thrown, or ""
};

struct JobsDone {
  std::size_t total = 0, failed = 0, complaints = 0;
};

/// Runs all jobs of `open`, which is called in each child, and passes on what they give, in order; a false from `on_result`
/// ends it. `limit` is for one job; opening may take as long, and a minute at least. Errors: those of `open`, kInternal (a child
/// can't be made, or fell before its first job, the first one at once and a later one twice).
Result<JobsDone> run_isolated(const std::function<Result<Jobs>()>& open, std::chrono::milliseconds limit, const std::function<void(const std::string&)>& on_about,
                              const std::function<bool(const JobResult&)>& on_result);

}  // namespace rondo::isa
