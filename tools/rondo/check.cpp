// rondo check: every kernel of every operator against the reference, on this device.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "runtime/fmt.h"
#include "tools/check/check.h"
#include "tools/rondo/compile_notice.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

using check::CheckReport;
using check::CheckResult;
using check::CheckRun;
using check::Outcome;

/// A normalised mean squared error, or "differs" where there is none.
std::string error_text(double nmse) { return std::isfinite(nmse) ? fmt::format("{:.2g}", nmse) : "differs"; }
std::string bound_text(double bound) { return bound == 0 ? "equal" : fmt::format("{:.0e}", bound); }

std::string numbers_of(const CheckRun& run) {
  const bool special = run.values == check::Values::kNan || run.values == check::Values::kInfinity;
  return special ? fmt::format("{} in input {}", check::values_name(run.values), run.special) : fmt::format("{} numbers", check::values_name(run.values));
}

void print_failure(const CheckResult& result, const GlobalFlags& flags, std::uint32_t seed) {
  std::string complaint = result.complaint;
  for (std::size_t at = complaint.find('\n'); at != std::string::npos; at = complaint.find('\n')) complaint.replace(at, 1, "; ");
  const std::string device = flags.device.empty() ? "" : fmt::format(" --device \"{}\"", flags.device);
  fmt::print("FAILED {}/{} with {}: {} | {}{}{}\n", result.run.op, result.run.kernel, numbers_of(result.run), complaint, check::repeat_command(result.run, seed), device,
             flags.validate ? " --validate" : "");
}

/// One row for each kernel, in the order of their first runs.
struct KernelRow {
  std::string op, kernel;
  std::size_t passed = 0, failed = 0;
  double worst = 0, bound = 0;  ///< of the run that comes nearest to its bound
};

std::vector<KernelRow> rows_of(const CheckReport& report) {
  std::vector<KernelRow> rows;
  for (const CheckResult& result : report.results) {
    if (result.outcome == Outcome::kNotForThis) continue;
    auto row = std::find_if(rows.begin(), rows.end(), [&](const KernelRow& r) { return r.op == result.run.op && r.kernel == result.run.kernel; });
    if (row == rows.end()) row = rows.insert(rows.end(), {result.run.op, result.run.kernel});
    const bool first = row->passed + row->failed == 0;
    ++(result.outcome == Outcome::kPassed ? row->passed : row->failed);
    // Equal results say less than those near a bound, unless they differ.
    const auto share = [](double nmse, double bound) { return bound > 0 ? nmse / bound : nmse > 0 ? HUGE_VAL : -1; };
    if (first || share(result.nmse, result.run.bound) > share(row->worst, row->bound)) row->worst = result.nmse, row->bound = result.run.bound;
  }
  return rows;
}

void print_report(const CheckReport& report) {
  fmt::print("| {:<32} | {:>6} | {:>6} | {:>11} | {:>5} |\n", "kernel", "passed", "failed", "worst error", "bound");
  fmt::print("|:{:-<33}|{:->7}:|{:->7}:|{:->12}:|{:->6}:|\n", "", "", "", "", "");
  for (const KernelRow& row : rows_of(report)) {
    fmt::print("| {:<32} | {:>6} | {:>6} | {:>11} | {:>5} |\n", row.op + "/" + row.kernel, row.passed, row.failed, error_text(row.worst), bound_text(row.bound));
  }
  for (const check::UnsupportedKernel& kernel : report.unsupported) fmt::print("unsupported: {}/{}: {}\n", kernel.op, kernel.kernel, kernel.reason);
  if (report.n_left_out > 0) fmt::print("left out: {} runs with activations in f16, for which this device has no 16-bit storage\n", report.n_left_out);
  fmt::print("{} passed, {} failed, {} unsupported; {} pipelines\n", report.n_passed, report.n_failed, report.unsupported.size(), report.n_pipelines);
}

void print_json(const DeviceInfo& device, const CheckReport& report) {
  nlohmann::json cases = nlohmann::json::array();
  for (const CheckResult& result : report.results) {
    if (result.outcome == Outcome::kNotForThis) continue;
    nlohmann::json one = {{"op", result.run.op}, {"kernel", result.run.kernel}, {"case", result.run.text}, {"values", numbers_of(result.run)}, {"nmse", nullptr},
                          {"bound", result.run.bound}, {"status", result.outcome == Outcome::kPassed ? "passed" : "failed"}};
    if (std::isfinite(result.nmse)) one["nmse"] = result.nmse;
    if (!result.complaint.empty()) one["complaint"] = result.complaint;
    cases.push_back(std::move(one));
  }
  for (const check::UnsupportedKernel& kernel : report.unsupported) {
    cases.push_back({{"op", kernel.op}, {"kernel", kernel.kernel}, {"case", ""}, {"nmse", nullptr}, {"bound", nullptr}, {"status", "unsupported"}, {"complaint", kernel.reason}});
  }
  fmt::print("{}\n", nlohmann::json{{"device", {{"name", device.name}, {"driver", device.driver}, {"type", device.type}}},
                                    {"passed", report.n_passed},
                                    {"failed", report.n_failed},
                                    {"unsupported", report.unsupported.size()},
                                    {"left_out", report.n_left_out},
                                    {"pipelines", report.n_pipelines},
                                    {"cases", cases}}
                         .dump(1));
}

int list(const CheckFlags& own) {
  const Result<std::vector<CheckRun>> runs = check::list_runs(own.options);
  if (!runs.ok()) return report(runs.status().message(), kUsage);
  for (const CheckRun& run : *runs) fmt::print("{}/{} with {}, bound {}: {}\n", run.op, run.kernel, numbers_of(run), bound_text(run.bound), run.text);
  return kDone;
}

Status check_device(const GlobalFlags& flags, const CheckFlags& own, int& closed) {
  RONDO_ASSIGN(const Instance instance, open_instance(flags));
  bool failed = false;
  {
    RONDO_ASSIGN(Device device, open_device(flags, instance));
    PipelineCacheFile cache_file(device, flags.pipeline_cache);
    cache_file.load();
    const bool terminal = isatty(STDERR_FILENO) != 0;
    const auto on_result = [&](const CheckResult& result, std::size_t done, std::size_t total) {
      if (terminal) std::fprintf(stderr, "\r%s", fmt::format("{:>5} of {}: {:<40}", done, total, result.run.op + "/" + result.run.kernel).c_str());
      if (result.outcome == Outcome::kFailed && !own.json) {
        if (terminal) std::fprintf(stderr, "\r%60s\r", "");
        print_failure(result, flags, own.options.seed);
      }
      return !interrupted() && !std::ferror(stdout);
    };
    CompileNotice notice(flags, fmt::format("compiling and running kernels on {} (compiled kernels are cached); --list says which", device.info().name));
    if (!terminal) notice.begin();  // which else shows how far it is
    RONDO_ASSIGN(const CheckReport found, check::run_check(device.internal(), own.options, on_result));
    notice.end();
    if (terminal) std::fprintf(stderr, "\r%60s\r", "");
    cache_file.save();
    if (own.json) print_json(device.info(), found);
    else print_report(found);
    failed = found.n_failed > 0;
    if (found.ended.code() == StatusCode::kDeviceLost) return found.ended;
  }
  closed = check_validation(instance);
  if (failed) closed = kFailed;
  return {};
}

}  // namespace

int run_check(const GlobalFlags& flags, const CheckFlags& own) {
  if (own.list) return list(own);
  if (const auto runs = check::list_runs(own.options); !runs.ok()) return report(runs.status().message(), kUsage);
  if (own.simulate) {
    std::vector<std::string> arguments = {"check", "--subgroup", fmt::format("{}", own.subgroup)};
    for (const std::string& op : own.options.ops) arguments.insert(arguments.end(), {"--op", op});
    for (const std::string& kernel : own.options.kernels) arguments.insert(arguments.end(), {"--kernel", kernel});
    if (!own.options.text.empty()) arguments.insert(arguments.end(), {"--case", own.options.text});
    if (own.options.brief) arguments.emplace_back("--brief");
    return run_simulate(arguments);
  }
  int closed = kDone;
  const Status done = check_device(flags, own, closed);
  return !done.ok() ? report(done) : interrupted() ? static_cast<int>(kInterrupted) : closed;
}

}  // namespace rondo::tools
