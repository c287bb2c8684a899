// What --timings and --trace make of a session's profile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rondo/session.h>

namespace rondo::tools {

/// The flags, as they are given.
struct ProfileFlags {
  bool timings = false;
  std::string trace;  ///< file, or ""
  bool wanted() const { return timings || !trace.empty(); }
};

/// Collects profiled steps, and reports them at the end.
class Profile {
 public:
  /// Opens the trace file, so that one that can't be written is known before any work. Errors: kIo, naming it.
  static Result<Profile> open(const ProfileFlags& flags);
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;
  ~Profile();

  /// Turns the profiling recording on where it is wanted.
  void configure(SessionOptions& options) const { options.profile = flags_.wanted(); }
  bool wanted() const { return flags_.wanted(); }
  /// Takes what the session has profiled since. Cheap when profiling is off.
  void collect(Session& session);
  /// Takes one that was profiled without a session.
  void add(ProfiledStep step) { steps_.push_back(std::move(step)); }
  /// Prints GPU time by kernel on stderr, and writes the trace: Chrome's JSON, which Perfetto reads too. Errors: kIo.
  Status finish();

 private:
  struct Trace;
  explicit Profile(const ProfileFlags& flags);
  ProfileFlags flags_;
  std::unique_ptr<Trace> trace_;
  std::vector<ProfiledStep> steps_;
};

}  // namespace rondo::tools
