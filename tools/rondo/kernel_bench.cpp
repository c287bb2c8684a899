#include "tools/rondo/kernel_bench.h"

#include <unistd.h>

#include <cstdio>

#include <nlohmann/json.hpp>

#include "graph/operator.h"
#include "models/graph_run.h"
#include "runtime/device.h"
#include "runtime/fmt.h"
#include "tools/rondo/device_rates.h"
#include "tools/rondo/kernel_cases.h"

namespace rondo::tools {

namespace {

/// The longest run worth waiting for on a CPU driver, where kernels made for GPUs crawl.
constexpr double kMostSecondsOnCpu = 0.4;

struct KernelRow {
  KernelCase one;
  std::string shape;
  std::string left_out;  ///< why it was not measured, or ""
  std::size_t dispatches = 0;
  double us = 0, gbps = 0, gflops = 0;
};

struct KernelBench {
  DeviceRates rates;
  std::vector<KernelRow> rows;
};

/// A line on the terminal that shows how far it is; nothing where stderr is none.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (terminal_) std::fprintf(stderr, "\r%60s\r", "");
  }
  void show(std::size_t done, const std::string& what) const {
    if (terminal_) std::fprintf(stderr, "\rmeasuring %3zu of %zu: %-36s", done + 1, total_, what.c_str());
  }

 private:
  std::size_t total_;
  bool terminal_;
};

/// Microseconds of a run, over command buffers of as many runs as keep submitting them cheap.
Result<double> measure_us(Stopwatch& stopwatch, models::GraphRun& run, const models::StorageContents& contents, std::uint32_t repetitions) {
  constexpr double kShortS = 0.002;
  constexpr std::uint32_t kRunsOfShort = 32;
  const auto restore = [&] { return run.write(contents); };  // for kernels that change what they read
  std::uint32_t runs = 1;
  RONDO_ASSIGN(runtime::Recording recording, run.record(runs));
  // Untimed, because drivers compile, and pages come, at the first run.
  RONDO_ASSIGN(const double first_s, stopwatch.time_s(recording.command_buffers(), 1));
  if (first_s < kShortS) {
    runs = kRunsOfShort;
    RONDO_ASSIGN(recording, run.record(runs));
  }
  RONDO_ASSIGN(const double run_s, measure_run_s(stopwatch, {recording.command_buffers(), runs}, repetitions, restore));
  return 1e6 * run_s;
}

/// Whether a case can't be measured here, rather than that something broke.
bool is_refusal(const Status& status) { return status.code() == StatusCode::kUnsupported || status.code() == StatusCode::kOutOfMemory; }

/// GFLOP/s to expect of a case after those before it: of the same kernel and type at as many rows, else at the last number
/// of rows; 0 if nothing is known.
double expect_gflops(const std::vector<KernelRow>& rows, const KernelCase& one) {
  constexpr double kTileRows = 8;  // one row costs a tile what up to eight do
  double expected = 0;
  for (const KernelRow& row : rows) {
    if (!row.left_out.empty() || kernel_name(row.one) != kernel_name(one) || row.one.type != one.type) continue;
    if (row.one.rows <= one.rows) expected = row.gflops * (row.one.rows == 1 && one.rows > 1 ? kTileRows : 1);
  }
  return expected;
}

/// `expected_gflops` bounds how long a run may be expected to take; 0: no bound.
Result<KernelRow> measure_case(Stopwatch& stopwatch, const KernelCase& one, std::uint32_t repetitions, double expected_gflops) {
  CaseGraph built = build_case(one);
  KernelRow row;
  row.one = one;
  row.shape = built.shape;
  if (!built.graph.status().ok()) return Status(StatusCode::kInternal, fmt::format("{} at {}: {}", kernel_name(one), built.shape, built.graph.status().message()));
  if (const double expected_s = expected_gflops > 0 ? 1e-9 * built.flops / expected_gflops : 0; expected_s > kMostSecondsOnCpu) {
    row.left_out = fmt::format("a run would take about {:.1f} s on this CPU driver, going by the shapes before", expected_s);
    return row;
  }
  models::GraphRunOptions options;
  options.lowering.fusion = false;
  options.lowering.forced_kernels[graph::operator_of(one.op).name] = one.kernel;
  Result<models::GraphRun> run = models::GraphRun::create(stopwatch.device(), std::move(built.graph), options);
  if (!run.ok() && is_refusal(run.status())) {
    row.left_out = run.status().message();
    return row;
  }
  RONDO_TRY(Status(run.status()));
  RONDO_TRY(run->write(built.contents));
  RONDO_TRY(run->make_others(built.contents));
  row.dispatches = run->program().dispatches.size();
  RONDO_ASSIGN(row.us, measure_us(stopwatch, *run, built.contents, repetitions));
  row.gbps = 1e-3 * built.bytes / row.us;
  row.gflops = 1e-3 * built.flops / row.us;
  return row;
}

Result<KernelBench> measure(runtime::Device& device, const KernelBenchFlags& own, bool cpu) {
  const std::vector<KernelCase> cases = kernel_cases(own.filter, !cpu);
  const ProgressLine progress(cases.size());
  KernelBench bench;
  RONDO_ASSIGN(Stopwatch stopwatch, Stopwatch::create(device));
  RONDO_ASSIGN(bench.rates, measure_device_rates(stopwatch, own.repetitions));
  for (const KernelCase& one : cases) {
    progress.show(bench.rows.size(), kernel_name(one));
    RONDO_ASSIGN(KernelRow row, measure_case(stopwatch, one, own.repetitions, cpu ? expect_gflops(bench.rows, one) : 0));
    bench.rows.push_back(std::move(row));
  }
  return bench;
}

void print_json(const DeviceInfo& device, const KernelBench& bench) {
  nlohmann::json kernels = nlohmann::json::array(), left_out = nlohmann::json::array();
  for (const KernelRow& row : bench.rows) {
    nlohmann::json line = {{"op", graph::operator_of(row.one.op).name}, {"kernel", row.one.kernel}, {"type", type_of(row.one)}, {"shape", row.shape}};
    if (!row.left_out.empty()) {
      line["reason"] = row.left_out;
      left_out.push_back(std::move(line));
      continue;
    }
    line["dispatches"] = row.dispatches;
    line["us"] = row.us;
    line["gbps"] = row.gbps;
    line["gflops"] = row.gflops;
    line["copy_share"] = row.gbps / bench.rates.copy_gbps;
    line["fma_share"] = row.gflops / bench.rates.fma_gflops;
    kernels.push_back(std::move(line));
  }
  fmt::print("{}\n", nlohmann::json{{"device", {{"name", device.name}, {"driver", device.driver}, {"type", device.type}}},
                                    {"copy_gbps", bench.rates.copy_gbps},
                                    {"fma_gflops", bench.rates.fma_gflops},
                                    {"dispatch_latency_us", bench.rates.dispatch_latency_us},
                                    {"kernels", kernels},
                                    {"left_out", left_out}}
                         .dump(1));
}

void print_md(const DeviceInfo& device, const KernelBench& bench) {
  fmt::print("| {} ({}) | |\n|:---|---:|\n", device.name, device.driver);
  fmt::print("| copies, GB/s read and written | {:.2f} |\n", bench.rates.copy_gbps);
  fmt::print("| multiply-adds, GFLOP/s in f32 | {:.2f} |\n", bench.rates.fma_gflops);
  fmt::print("| dispatch behind a barrier, us | {:.2f} |\n\n", bench.rates.dispatch_latency_us);
  fmt::print("| {:<22} | {:<5} | {:<50} | {:>10} | {:>11} | {:>8} | {:>6} | {:>8} | {:>5} |\n", "kernel", "type", "shape", "dispatches", "us", "GB/s", "% copy", "GFLOP/s", "% FMA");
  fmt::print("|:{:-<23}|:{:-<6}|:{:-<51}|{:->11}:|{:->12}:|{:->9}:|{:->7}:|{:->9}:|{:->6}:|\n", "", "", "", "", "", "", "", "", "");
  for (const KernelRow& row : bench.rows) {
    if (!row.left_out.empty()) continue;
    const bool computes = row.gflops > 0;
    fmt::print("| {:<22} | {:<5} | {:<50} | {:>10} | {:>11.2f} | {:>8.3f} | {:>6.1f} | {:>8} | {:>5} |\n", kernel_name(row.one), type_of(row.one), row.shape, row.dispatches, row.us,
               row.gbps, 100 * row.gbps / bench.rates.copy_gbps, computes ? fmt::format("{:.3f}", row.gflops) : "",
               computes ? fmt::format("{:.1f}", 100 * row.gflops / bench.rates.fma_gflops) : "");
  }
  bool first = true;
  for (const KernelRow& row : bench.rows) {
    if (row.left_out.empty()) continue;
    if (first) fmt::print("\nNot on this device:\n\n");
    first = false;
    fmt::print("- {} {}{}{}: {}\n", kernel_name(row.one), type_of(row.one), row.one.type ? ", " : "", row.shape, row.left_out);
  }
}

}  // namespace

std::string check_kernel_filter(const std::string& filter) {
  if (!kernel_cases(filter, false).empty()) return "";
  return fmt::format("--kernels {}: no OP/KERNEL contains it; the operators are {}", filter, operator_names());
}

Status bench_kernels(const GlobalFlags& flags, const KernelBenchFlags& own, int& closed) {
  RONDO_ASSIGN(const Instance instance, open_instance(flags));
  {
    RONDO_ASSIGN(Device device, open_device(flags, instance));
    PipelineCacheFile cache_file(device, flags.pipeline_cache);
    cache_file.load();
    // Not the type that a profile gives: what the driver gets through is the driver's.
    RONDO_ASSIGN(const KernelBench bench, measure(device.internal(), own, device.info().type == "cpu"));
    cache_file.save();
    if (own.json) print_json(device.info(), bench);
    else print_md(device.info(), bench);
  }
  closed = check_validation(instance);
  return {};
}

}  // namespace rondo::tools
