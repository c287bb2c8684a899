#include "tools/rondo/profile.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include <nlohmann/json.hpp>

#include "runtime/fmt.h"

namespace rondo::tools {

struct Profile::Trace {
  std::ofstream file;
};

Profile::Profile(const ProfileFlags& flags) : flags_(flags) {}
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;
Profile::~Profile() = default;

Result<Profile> Profile::open(const ProfileFlags& flags) {
  Profile profile(flags);
  if (flags.trace.empty()) return profile;
  profile.trace_ = std::make_unique<Trace>();
  profile.trace_->file.open(flags.trace, std::ios::binary);
  if (!profile.trace_->file) return Status(StatusCode::kIo, fmt::format("--trace: {} can't be written", flags.trace));
  return profile;
}

void Profile::collect(Session& session) {
  if (!wanted()) return;
  std::vector<ProfiledStep> steps = session.take_profile();
  std::move(steps.begin(), steps.end(), std::back_inserter(steps_));
}

namespace {

void print_timings(const std::vector<ProfiledStep>& steps) {
  struct Sum {
    double us = 0;
    std::size_t n = 0;
  };
  std::map<std::string, Sum> sums;
  double total_us = 0;
  for (const ProfiledStep& step : steps) {
    for (const ProfiledDispatch& dispatch : step.dispatches) {
      Sum& sum = sums[step.name + "\t" + dispatch.label];
      sum.us += dispatch.end_us - dispatch.begin_us;
      total_us += dispatch.end_us - dispatch.begin_us;
      ++sum.n;
    }
  }
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  fmt::print(stderr, "\n{} profiled steps, {:.2f} ms on the device, one dispatch at a time\n", steps.size(), 1e-3 * total_us);
  fmt::print(stderr, "| {:<22} | {:<30} | {:>8} | {:>10} | {:>10} | {:>6} |\n", "step", "kernel", "times", "ms in all", "us each", "share");
  fmt::print(stderr, "|:{:-<22}-|:{:-<30}-|-{:->8}:|-{:->10}:|-{:->10}:|-{:->6}:|\n", "", "", "", "", "", "");
  for (const auto& [name, sum] : rows) {
    const std::size_t tab = name.find('\t');
    fmt::print(stderr, "| {:<22} | {:<30} | {:>8} | {:>10.3f} | {:>10.2f} | {:>4.1f} % |\n", name.substr(0, tab), name.substr(tab + 1), sum.n, 1e-3 * sum.us,
               sum.us / static_cast<double>(sum.n), total_us > 0 ? 100 * sum.us / total_us : 0);
  }
}

void write_trace(const std::vector<ProfiledStep>& steps, std::ostream& file) {
  using nlohmann::json;
  const auto name_of_row = [](int row, const char* name) {
    return json{{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", row}, {"args", {{"name", name}}}};
  };
  const double first_us = steps.empty() || steps[0].dispatches.empty() ? 0 : steps[0].dispatches[0].begin_us;
  const auto event = [first_us](const std::string& name, int row, double begin_us, double end_us) {
    return json{{"name", name}, {"ph", "X"}, {"pid", 1}, {"tid", row}, {"ts", begin_us - first_us}, {"dur", end_us - begin_us}};
  };
  // Event by event: a long run has millions.
  file << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" << name_of_row(1, "steps").dump() << ",\n" << name_of_row(2, "dispatches").dump();
  for (const ProfiledStep& step : steps) {
    if (step.dispatches.empty()) continue;
    file << ",\n" << event(step.name, 1, step.dispatches.front().begin_us, step.dispatches.back().end_us).dump();
    for (const ProfiledDispatch& dispatch : step.dispatches) file << ",\n" << event(dispatch.label, 2, dispatch.begin_us, dispatch.end_us).dump();
  }
  file << "\n]}\n";
}

}  // namespace

Status Profile::finish() {
  if (flags_.timings) print_timings(steps_);
  if (!trace_) return {};
  write_trace(steps_, trace_->file);
  trace_->file.close();
  if (!trace_->file) return Status(StatusCode::kIo, fmt::format("--trace: {} can't be written to its end", flags_.trace));
  return {};
}

}  // namespace rondo::tools
