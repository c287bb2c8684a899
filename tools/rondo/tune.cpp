// rondo tune: measures which kernels are fastest for a model on this device.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "models/tuner.h"
#include "runtime/fmt.h"
#include "tools/rondo/subcommands.h"
#include "tools/rondo/tuning_file.h"

namespace rondo::tools {

namespace {

void print(const models::Tuned& tuned, const std::string& device, double seconds, const std::string& path) {
  std::size_t n_changed = 0;
  for (const models::Tuned::Step& step : tuned.steps) n_changed += step.choices.size();
  fmt::print("{} steps measured on {} in {:.0f} s, {} choices changed\n\n{:44} {:>12} {:>12}\n", tuned.steps.size(), device, seconds, n_changed, "step", "before", "now");
  for (const models::Tuned::Step& step : tuned.steps) {
    fmt::print("{:44} {:9.3f} ms {:9.3f} ms\n", step.name, step.us_before / 1000, step.us_now / 1000);
    for (const models::Tuned::Choice& one : step.choices) fmt::print("  {}: {} {:.3f} ms, {} {:.3f} ms\n", one.choice, one.before.name, one.before.us / 1000, one.now.name, one.now.us / 1000);
  }
  if (path.empty()) fmt::print("\nnot kept: --tuning none, or no cache directory\n");
  else fmt::print("\nkept in {}\n", path);
}

nlohmann::json as_json(const models::Tuned& tuned, const std::string& device, double seconds, const std::string& path) {
  nlohmann::json steps = nlohmann::json::array();
  for (const models::Tuned::Step& step : tuned.steps) {
    nlohmann::json choices = nlohmann::json::array();
    for (const models::Tuned::Choice& one : step.choices) {
      choices.push_back({{"choice", one.choice}, {"before", {{"kernel", one.before.name}, {"us", one.before.us}}}, {"now", {{"kernel", one.now.name}, {"us", one.now.us}}}});
    }
    steps.push_back({{"step", step.name}, {"us_before", step.us_before}, {"us_now", step.us_now}, {"choices", std::move(choices)}});
  }
  return {{"device", device}, {"seconds", seconds}, {"steps", std::move(steps)}, {"file", path.empty() ? nlohmann::json() : nlohmann::json(path)}};
}

}  // namespace

int run_tune(const GlobalFlags& flags, const TuneFlags& own) {
  if (!flags.as.empty()) return report("tune measures a device as it is, and --as makes it another");
  Workbench::Options options;
  options.makes_tuning = true;
  const Result<std::unique_ptr<Workbench>> opened = Workbench::open(flags, own.model, own.open, options);
  if (!opened.ok()) return report(opened.status());
  Workbench& bench = **opened;
  const double start = now_s();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto on_progress = [&](std::size_t done, std::size_t total) {
    if (terminal) fmt::print(stderr, "\rtuning: {} of {}", done + 1, total);
  };
  const TuningFile file(bench.device(), flags);
  const Result<models::Tuned> tuned = models::tune(*bench.model().internal(), bench.model(), on_progress);
  if (terminal) fmt::print(stderr, "\r{:30}\r", "");
  if (!tuned.ok()) return report(tuned.status());
  if (const Status saved = file.save(tuned->text); !saved.ok()) return report(saved);
  if (own.json) fmt::print("{}\n", as_json(*tuned, bench.device().info().name, now_s() - start, file.path()).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else print(*tuned, bench.device().info().name, now_s() - start, file.path());
  return bench.close();
}

}  // namespace rondo::tools
