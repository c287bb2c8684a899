// rondo-simulate: what a kernel does wrong, and what its accesses would cost, without a GPU.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "runtime/fmt.h"
#include "tools/check/check.h"
#include "tools/rondo/profiles.h"
#include "tools/simulator/budget.h"
#include "tools/simulator/mask.h"
#include "tools/simulator/metrics.h"
#include "tools/simulator/own_module.h"

namespace rondo::simulator {

namespace {

enum ExitStatus : int { kDone = 0, kFailed = 1, kUsage = 2 };

struct Flags {
  std::string what;  ///< OP, OP/KERNEL, FILE.spv, "check" or "budget"
  std::string shape, type = "f32", as, svg, one_case, budget;
  std::vector<std::string> ops, kernels;
  bool json = false, brief = false;
  std::uint32_t subgroup = 0;  ///< 0: 32, or the profile's
  OwnModule own;
};

int report(const std::string& message, int status = kFailed) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  fmt::print(stderr, "rondo-simulate: error: {}\n", line);
  return status;
}

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  return out ? Status() : Status(StatusCode::kIo, fmt::format("{}: can't be written", path));
}

/// Prints a dispatch, and draws it where a picture is wanted. Of several dispatches, pictures are numbered.
class Printer {
 public:
  explicit Printer(const Flags& flags) : flags_(flags) {}

  void print(const SimulatedDispatch& done) {
    const Metrics metrics(done);
    n_findings_ += done.report.findings.size();
    fmt::print("{}\n", flags_.json ? json_of(done, metrics) : table_of(done, metrics));
    ++n_dispatches_;
    if (flags_.svg.empty() || !written_.ok()) return;
    std::string path = flags_.svg;
    if (n_dispatches_ > 1) path.insert(path.ends_with(".svg") ? path.size() - 4 : path.size(), fmt::format("-{}", n_dispatches_));
    written_ = write_text(path, picture_of(done));
  }
  int status() const { return !written_.ok() ? report(written_.message()) : n_findings_ > 0 ? kFailed : kDone; }

 private:
  const Flags& flags_;
  std::size_t n_findings_ = 0, n_dispatches_ = 0;
  Status written_;
};

/// "linear input (1, 2048), weight q8_0 (2048, 2048)" of "1 row, 2048 to 2048"; other texts are the words of `rondo check --list`.
std::string case_text(const std::string& op, const Flags& flags) {
  unsigned rows = 0, columns = 0, outputs = 0;
  char rest = 0;
  const auto reads = [&](const char* form) { return std::sscanf(flags.shape.c_str(), form, &rows, &columns, &outputs, &rest) == 3; };
  const bool is_matrix = reads("%u row, %u to %u%c") || reads("%u rows, %u to %u%c");
  if (!is_matrix) return fmt::format("{} {}", op, flags.shape);
  return fmt::format("{} input ({}, {}), weight {} ({}, {})", op, rows, columns, flags.type, op == "linear_glu" ? 2 * outputs : outputs, columns);
}

/// The device that the case is lowered for, and how many lanes its subgroups have.
Result<runtime::DeviceCaps> find_caps(const Flags& flags, const std::string& kernel, std::uint32_t& lanes) {
  if (flags.as.empty()) {
    const bool wide = kernel == "wide";
    lanes = flags.subgroup ? flags.subgroup : wide ? 8 : 32;
    return simulated_caps(lanes, wide, kernel == "matrix");
  }
  RONDO_ASSIGN(const std::optional<DeviceProfile> profile, tools::find_profile(flags.as));
  runtime::DeviceCaps caps = profile->internal();
  lanes = flags.subgroup ? flags.subgroup : std::clamp(32u, std::max(caps.min_subgroup_size, 4u), std::min(caps.max_subgroup_size, kMostLanes));
  if (lanes < caps.min_subgroup_size || lanes > caps.max_subgroup_size) return Status(StatusCode::kInvalidArgument, fmt::format("--subgroup {}: {} has {} to {} lanes", lanes, flags.as, caps.min_subgroup_size, caps.max_subgroup_size));
  if (flags.subgroup && caps.max_required_subgroup_size != 0) caps.min_required_subgroup_size = caps.max_required_subgroup_size = lanes;  // no kernel asks for another
  return caps;
}

/// Simulates one kernel at its shape. What is wrong with the flags is kInvalidArgument.
Status simulate_kernel(const Flags& flags, const OnDispatch& on_dispatch) {
  const std::size_t slash = flags.what.find('/');
  const std::string op = flags.what.substr(0, slash), kernel = slash == std::string::npos ? "" : flags.what.substr(slash + 1);
  if (flags.shape.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("{} needs a --shape: \"1 row, 2048 to 2048\", or what `rondo check --list` prints behind an operator's name", flags.what));
  RONDO_ASSIGN(const check::CaseText parsed, check::parse_case(case_text(op, flags)));
  RONDO_ASSIGN(const check::OpCase built, check::build_case(parsed, check::Values::kRandom, 1));
  std::uint32_t lanes = 0;
  RONDO_ASSIGN(const runtime::DeviceCaps caps, find_caps(flags, kernel, lanes));
  check::RunOptions how;
  if (!kernel.empty()) how.kernels[check::table_of(op).name] = kernel;
  ModuleCache modules(Loops::kUnrolled, flags.own.spirv_tools);
  return simulate_case(modules, built, how, caps, lanes, on_dispatch).status();
}

int run_kernel(const Flags& flags) {
  Printer printer(flags);
  const Status done = simulate_kernel(flags, [&](const SimulatedDispatch& dispatch) { printer.print(dispatch); });
  if (!done.ok()) return report(done.message(), done.code() == StatusCode::kInvalidArgument ? kUsage : kFailed);
  return printer.status();
}

/// Every line of a file of budgets, with what its kernel takes.
int run_budget(const Flags& flags) {
  std::ifstream in(flags.budget);
  if (!in) return report(fmt::format("{}: can't be read", flags.budget));
  const Result<std::vector<BudgetLine>> lines = parse_budget({std::istreambuf_iterator<char>(in), {}}, flags.budget);
  if (!lines.ok()) return report(lines.status().message());
  std::size_t n_wrong = 0;
  for (const BudgetLine& line : *lines) {
    Flags own;
    own.what = line.kernel, own.shape = line.shape, own.type = line.type, own.subgroup = line.lanes;
    own.own.spirv_tools = flags.own.spirv_tools;
    std::optional<Metrics> metrics;
    std::uint64_t most = 0;
    const Status done = simulate_kernel(own, [&](const SimulatedDispatch& dispatch) {
      if (metrics && dispatch.report.lane_operations <= most) return;
      metrics.emplace(dispatch);
      most = dispatch.report.lane_operations;
    });
    if (!done.ok()) return report(fmt::format("{}: {} | {}: {}", flags.budget, line.kernel, line.shape, done.message()));
    const std::string what = exceeded(line, *metrics);
    if (!what.empty()) ++n_wrong;
    std::string values;
    for (const Limit& limit : line.limits) values += fmt::format("{}{} {:.4g}", values.empty() ? "" : ", ", limit.name, *find_metric(*metrics, limit.name));
    fmt::print("{}{} | {} | {} | {} | {}{}\n", what.empty() ? "" : "EXCEEDED ", line.kernel, line.shape, line.type.empty() ? "-" : line.type, line.lanes, values, what.empty() ? "" : ": " + what);
  }
  fmt::print("{} kernels, {} exceed their budget\n", lines->size(), n_wrong);
  return n_wrong > 0 ? kFailed : kDone;
}

int run_file(const Flags& flags) {
  OwnModule own = flags.own;
  own.path = flags.what;
  own.subgroup_size = flags.subgroup ? flags.subgroup : 32;
  const Result<OwnRun> run = run_own_module(own);
  if (!run.ok()) return report(run.status().message());
  runtime::Dispatch dispatch;
  dispatch.grid = own.grid;
  dispatch.label = flags.what;
  Printer printer(flags);
  printer.print({dispatch, run->module, run->report, {}});
  return printer.status();
}

/// Every case of `rondo check`, with its judgement and what the simulator finds.
int run_check(const Flags& flags) {
  check::CheckOptions options;
  options.ops = flags.ops, options.kernels = flags.kernels, options.text = flags.one_case;
  options.brief = flags.brief;
  const std::uint32_t lanes = flags.subgroup ? flags.subgroup : 32;
  ModuleCache modules(Loops::kKept, flags.own.spirv_tools);
  std::size_t n_findings = 0;
  std::uint64_t lane_operations = 0;
  const check::CaseRunner run_case = [&](const check::OpCase& op, const check::RunOptions& how) -> Result<check::DeviceRun> {
    const bool wide = std::any_of(how.kernels.begin(), how.kernels.end(), [](const auto& forced) { return forced.second == "wide"; });
    const std::uint32_t own_lanes = wide ? std::min(lanes, 16u) : lanes;  // kernels for CPU drivers know no larger subgroups
    return simulate_case(modules, op, how, simulated_caps(own_lanes, wide, !flags.own.spirv_tools.empty()), own_lanes, [&](const SimulatedDispatch& done) {
      lane_operations += done.report.lane_operations;
      for (const Finding& finding : done.report.findings) {
        ++n_findings;
        fmt::print("FOUND in {} {}: {}\n", done.dispatch.label, name_of(finding.kind), finding.text);
      }
    });
  };
  const Result<check::CheckReport> checked = check::run_check(run_case, options, [&](const check::CheckResult& result, std::size_t, std::size_t) {
    if (result.outcome == check::Outcome::kFailed) {
      fmt::print("FAILED {}/{} with {} numbers: {}: {}\n", result.run.op, result.run.kernel, check::values_name(result.run.values), result.run.text, result.complaint);
      std::fflush(stdout);
    }
    return true;
  });
  if (!checked.ok()) return report(checked.status().message(), kUsage);
  fmt::print("{} lanes: {} passed, {} failed, {} findings; {:.1f} M operations of lanes\n", lanes, checked->n_passed, checked->n_failed, n_findings, static_cast<double>(lane_operations) / 1e6);
  return checked->n_failed + n_findings > 0 ? kFailed : kDone;
}

}  // namespace

int run(int argc, char** argv) {
  Flags flags;
  CLI::App app("Executes kernels lane by lane: finds races and undefined values, counts cache lines and bank conflicts. Needs no Vulkan.", "rondo-simulate");
  app.add_option("what", flags.what, "an operator (linear), one of its kernels (linear/vector), a module (FILE.spv), check: every case of `rondo check`, or budget")->required()->type_name("OP[/KERNEL]|FILE.spv|check|budget");
  app.add_option("--subgroup", flags.subgroup, "lanes of a subgroup (default: 32, the profile's, or 8 where a kernel is for CPU drivers)")->check(CLI::IsMember({4, 8, 16, 32, 64, 128}))->type_name("N");
  app.add_flag("--json", flags.json, "one JSON object for each dispatch");
  app.add_option("--svg", flags.svg, "draw the lines that a subgroup touches")->type_name("FILE");
  app.add_option("--shape", flags.shape, "of a kernel: \"1 row, 2048 to 2048\", or the words of `rondo check --list` behind the operator")->type_name("TEXT");
  app.add_option("--type", flags.type, "of the weight, with \"1 row, 2048 to 2048\"")->capture_default_str()->type_name("TYPE");
  app.add_option("--as", flags.as, "choose the kernel as for the device of this profile")->check(CLI::Validator([](std::string& name) { return tools::check_profile(name); }, ""))->type_name("NAME");
  app.add_option("--op", flags.ops, "of check: only this operator, may be repeated")->type_name("NAME");
  app.add_option("--kernel", flags.kernels, "of check: only kernels of this name, may be repeated")->type_name("NAME");
  app.add_option("--case", flags.one_case, "of check: this case instead of those of the table")->type_name("TEXT");
  app.add_flag("--brief", flags.brief, "of check: whole and random numbers only");
  app.add_option("--budget", flags.budget, "of budget: the file, such as tools/simulator/budget.txt")->type_name("FILE");
  app.add_option("--buffer", flags.own.buffers, "of a module: BINDING=FILE, =zeros:BYTES, =random:BYTES or =unwritten:BYTES, may be repeated")->type_name("BINDING=WHAT");
  app.add_option("--output", flags.own.outputs, "of a module: where the buffer is written to afterwards, may be repeated")->type_name("BINDING=FILE");
  app.add_option("--push", flags.own.push, "of a module: push constants, such as 3,0x10,1.5f")->type_name("WORDS");
  app.add_option("--constants", flags.own.constants, "of a module: specialization constants 0, 1, ...")->type_name("WORDS");
  app.add_option("--grid", flags.own.grid, "of a module: workgroups, X,Y,Z")->delimiter(',')->type_name("X,Y,Z");
  app.add_option("--spirv-tools", flags.own.spirv_tools, "a program that runs spirv-val and spirv-opt of another release, named by its first argument: tools/new_drivers.sh makes one")->check(CLI::ExistingFile)->type_name("PROGRAM");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return report(fmt::format("{}; see rondo-simulate --help", error.what()), kUsage);
  }
  if (flags.what == "check") return run_check(flags);
  if (flags.what == "budget") return flags.budget.empty() ? report("budget needs a --budget FILE", kUsage) : run_budget(flags);
  return flags.what.ends_with(".spv") ? run_file(flags) : run_kernel(flags);
}

}  // namespace rondo::simulator

int main(int argc, char** argv) { return rondo::simulator::run(argc, argv); }
