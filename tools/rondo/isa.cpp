// rondo isa: what the driver's compiler makes of every kernel.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "runtime/fmt.h"
#include "runtime/instance.h"
#include "runtime/kernel.h"
#include "tools/isa/budget.h"
#include "tools/isa/compiler.h"
#include "tools/isa/isolated.h"
#include "tools/rondo/kernels_in_use.h"
#include "tools/rondo/profiles.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

using json = nlohmann::ordered_json;

/// The device to compile for: as elsewhere, but one that runs nothing will do too.
Result<std::uint32_t> find_compiling_device(const Instance& instance, const std::string& selector) {
  Result<std::uint32_t> found = instance.find_device(selector);
  if (found.ok() || found.status().code() != StatusCode::kUnsupported) return found;
  const std::span<const DeviceInfo> infos = instance.devices();
  for (const DeviceInfo& info : infos) {
    const bool wanted = selector.empty() || selector == std::to_string(info.index) || info.name.find(selector) != std::string::npos;
    if (wanted && isa::has_statistics(instance.internal().snapshot(info.index))) return info.index;
  }
  return found;
}

void set_if_told(json& to, const char* name, const std::optional<double>& value) { to[name] = value ? json(*value) : json(nullptr); }

/// "kWidth=128" and so on.
std::vector<std::string> constants_of(const KernelInUse& one) {
  std::vector<std::string> constants;
  for (std::uint32_t i = 0; i < one.kernel.n_constants; ++i) constants.push_back(fmt::format("{}={}", constant_name(one.kernel.shader, i), one.kernel.constants[i]));
  return constants;
}

json describe(const KernelInUse& one) {
  json specialization = json::object();
  for (std::uint32_t i = 0; i < one.kernel.n_constants; ++i) specialization[constant_name(one.kernel.shader, i)] = one.kernel.constants[i];
  return {{"label", one.label}, {"kernel", runtime::shader_name(one.kernel.shader)}, {"specialization", specialization}};
}

void add_results(json& row, const isa::Executable& executable, const std::vector<isa::LoopCost>& costs) {
  set_if_told(row, "registers", executable.registers);
  set_if_told(row, "spills", executable.spills);
  set_if_told(row, "scratch_bytes", executable.scratch_bytes);
  set_if_told(row, "occupancy", executable.occupancy);
  set_if_told(row, "instructions", executable.instructions);
  set_if_told(row, "cost", executable.cost);
  set_if_told(row, "per_multiply_add", isa::vector_per_multiply_add(costs));
  row["subgroup_size"] = executable.subgroup_size;
  json inner = json::array(), loops = json::array(), statistics = json::object();
  for (const isa::LoopCost& cost : costs) {
    inner.push_back({{"multiply_adds", cost.multiply_adds}, {"vector", cost.vector}, {"memory", cost.memory}, {"shared", cost.shared}, {"scratch", cost.scratch}});
  }
  for (const isa::CompiledLoop& loop : executable.loops) {
    json counts = json::object();
    for (std::size_t kind = 0; kind < isa::kKinds; ++kind) {
      if (loop.counts[kind] > 0) counts[isa::kind_name(static_cast<isa::Kind>(kind))] = loop.counts[kind];
    }
    loops.push_back({{"lines", {loop.first_line, loop.last_line}}, {"innermost", loop.innermost}, {"instructions", counts}});
  }
  for (const isa::Statistic& statistic : executable.statistics) statistics[statistic.name] = statistic.value;
  row["inner_loops"] = inner;
  row["loops"] = loops;
  row["statistics"] = statistics;
}

isa::Module module_of(const runtime::Kernel& kernel) {
  isa::Module module;
  module.code = runtime::shader_code(kernel.shader);
  module.constants.assign(kernel.constants.begin(), kernel.constants.begin() + kernel.n_constants);
  module.n_bindings = kernel.n_bindings;
  module.push_bytes = kernel.push_bytes;
  return module;
}

/// What a child has while it works.
struct Workshop {
  std::optional<Instance> instance;
  std::unique_ptr<isa::Compiler> compiler;
  std::vector<KernelInUse> kernels;
};

Result<isa::Jobs> open_workshop(const GlobalFlags& flags, const IsaFlags& own, const std::optional<isa::Budget>& budget) {
  const auto shop = std::make_shared<Workshop>();
  RONDO_ASSIGN(Instance instance, open_instance(flags));
  shop->instance.emplace(std::move(instance));
  RONDO_ASSIGN(const std::uint32_t index, find_compiling_device(*shop->instance, flags.device));
  const DeviceInfo& info = shop->instance->devices()[index];
  RONDO_ASSIGN(shop->compiler, isa::Compiler::create(shop->instance->internal(), index));
  RONDO_ASSIGN(const std::optional<DeviceProfile> profile, find_profile(flags.as));
  runtime::DeviceCaps caps = shop->instance->internal().plans()[index].caps;
  if (profile) caps = runtime::clamp_caps(caps, profile->internal());
  RONDO_ASSIGN(shop->kernels, kernels_in_use(caps, flags.model_options().kernels));
  std::erase_if(shop->kernels, [&](const KernelInUse& one) { return one.label.find(own.filter) == std::string::npos; });

  isa::Jobs jobs;
  jobs.n = shop->kernels.size();
  const bool judged = budget && budget->is_for(info.driver);
  jobs.about = json{{"name", caps.name}, {"driver", info.driver}, {"type", info.type}, {"judged", judged}}.dump();
  jobs.name = [shop](std::size_t i) { return describe(shop->kernels[i]).dump(); };
  jobs.run = [shop, judged, &budget, device = info.name](std::size_t i) {
    const KernelInUse& one = shop->kernels[i];
    json row = describe(one);
    const Result<isa::Executable> executable = shop->compiler->compile(module_of(one.kernel));
    if (!executable.ok()) {
      row["failure"] = executable.status().message();
      return row.dump();
    }
    const std::vector<isa::LoopCost> costs = isa::cost_of_loops(*executable, one.loops);
    add_results(row, *executable, costs);
    if (judged) {
      const isa::Budget::Line* const line = budget->find(device, one.label, constants_of(one));
      const std::string excess = line ? isa::find_excess(*line, *executable, isa::vector_per_multiply_add(costs)) : "no line of the budget is for it";
      if (!excess.empty()) row["excess"] = excess;
      if (line) row["budget_line"] = line->number;
    }
    return row.dump();
  };
  jobs.n_complaints = [shop] { return static_cast<std::size_t>(shop->instance->n_validation_messages()); };
  return jobs;
}

/// What `rondo isa` found on one device.
struct Survey {
  json device;
  std::vector<json> rows;
  isa::JobsDone done;
  std::size_t n_exceeded = 0, n_failed = 0;
};

/// A number of a row, or "-".
std::string cell(const json& row, const char* name, const char* unit = "") {
  const auto found = row.find(name);
  return found == row.end() || found->is_null() ? "-" : fmt::format("{:.4g}{}", found->get<double>(), unit);
}

std::string constants_of(const json& row) {
  std::string text;
  for (const auto& [name, value] : row["specialization"].items()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.get<std::uint32_t>());
  return text;
}

void print_table(const Survey& survey) {
  fmt::print("{} ({})\n\n", survey.device["name"].get<std::string>(), survey.device["driver"].get<std::string>());
  fmt::print("| {:<28} | {:>9} | {:>6} | {:>7} | {:>9} | {:>8} | {:>12} | {:>9} | {:>7} | {} |\n", "kernel", "registers", "spills", "scratch", "occupancy", "subgroup", "instructions", "cost", "per FMA",
             "specialization");
  fmt::print("|:{:-<29}|{:->10}:|{:->7}:|{:->8}:|{:->10}:|{:->9}:|{:->13}:|{:->10}:|{:->8}:|:---|\n", "", "", "", "", "", "", "", "", "");
  for (const json& row : survey.rows) {
    if (row.contains("failure")) continue;
    fmt::print("| {:<28} | {:>9} | {:>6} | {:>7} | {:>9} | {:>8} | {:>12} | {:>9} | {:>7} | {} |\n", row["label"].get<std::string>(), cell(row, "registers"), cell(row, "spills"), cell(row, "scratch_bytes"),
               cell(row, "occupancy"), cell(row, "subgroup_size"), cell(row, "instructions"), cell(row, "cost"), cell(row, "per_multiply_add"), constants_of(row));
  }
  std::fputc('\n', stdout);
}

void print_failures(const Survey& survey, const std::string& budget_file) {
  for (const json& row : survey.rows) {
    const std::string what = fmt::format("{} ({})", row["label"].get<std::string>(), constants_of(row));
    if (row.contains("failure")) fmt::print("FAILED {}: {}\n", what, row["failure"].get<std::string>());
    if (row.contains("excess")) {
      const std::string where = row.contains("budget_line") ? fmt::format("{}, line {}", budget_file, row["budget_line"].get<std::size_t>()) : budget_file;
      fmt::print("EXCEEDS {}: {} ({})\n", what, row["excess"].get<std::string>(), where);
    }
  }
}

Result<std::optional<isa::Budget>> read_budget(const std::string& path) {
  if (path.empty()) return std::optional<isa::Budget>();
  RONDO_ASSIGN(const ByteSource source, open_file(path));
  std::string text(source.size_bytes, '\0');
  RONDO_TRY(source.read(0, std::as_writable_bytes(std::span(text))));
  RONDO_ASSIGN(isa::Budget budget, isa::Budget::parse(text, path));
  return std::optional<isa::Budget>(std::move(budget));
}

Result<Survey> take_survey(const GlobalFlags& flags, const IsaFlags& own, const std::optional<isa::Budget>& budget) {
  Survey survey;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto on_about = [&](const std::string& about) { survey.device = json::parse(about); };
  const auto on_result = [&](const isa::JobResult& result) {
    json row = json::parse(result.failure.empty() ? result.output : result.name);
    if (!result.failure.empty()) row["failure"] = result.failure;
    survey.n_failed += row.contains("failure");
    survey.n_exceeded += row.contains("excess");
    if (terminal) std::fprintf(stderr, "\rcompiling %4zu of %zu: %-40s", result.index + 1, result.total, row["label"].get<std::string>().c_str());
    survey.rows.push_back(std::move(row));
    return true;
  };
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * own.limit_s));
  Result<isa::JobsDone> done = isa::run_isolated([&] { return open_workshop(flags, own, budget); }, limit, on_about, on_result);
  if (terminal) std::fprintf(stderr, "\r%70s\r", "");
  RONDO_TRY(Status(done.status()));
  survey.done = *done;
  return survey;
}

int list_devices(const GlobalFlags& flags) {
  const Result<Instance> instance = open_instance(flags);
  if (!instance.ok()) return report(instance.status());
  for (const DeviceInfo& info : instance->devices()) {
    const bool tells = isa::has_statistics(instance->internal().snapshot(info.index));
    fmt::print("{}: {} ({}): {}\n", info.index, info.name, info.driver, tells ? "tells what it compiles" : "does not tell what it compiles");
  }
  return kDone;
}

}  // namespace

int run_isa(const GlobalFlags& flags, const IsaFlags& own) {
  if (own.device_list) return list_devices(flags);
  const Result<std::optional<isa::Budget>> budget = read_budget(own.budget);
  if (!budget.ok()) return report(budget.status());
  const Result<Survey> survey = take_survey(flags, own, *budget);
  if (!survey.ok()) return report(survey.status());
  if (survey->rows.empty()) return report(fmt::format("isa: no kernel's name contains '{}'", own.filter), kUsage);
  if (own.json) {
    fmt::print("{}\n", json{{"device", survey->device}, {"kernels", survey->rows}}.dump(1));
  } else {
    print_table(*survey);
    print_failures(*survey, own.budget);
    fmt::print("{} kernels, {} failed{}\n", survey->rows.size(), survey->n_failed, survey->device["judged"].get<bool>() ? fmt::format(", {} above the budget", survey->n_exceeded) : "");
  }
  if (*budget && !survey->device["judged"].get<bool>()) {
    std::fprintf(stderr, "rondo: %s is for Mesa %s, not for %s: nothing is judged\n", own.budget.c_str(), (*budget)->mesa().c_str(), survey->device["driver"].get<std::string>().c_str());
  }
  if (survey->done.complaints > 0) return report(fmt::format("validation: the layers printed {} messages; see above", survey->done.complaints));
  return survey->n_failed + survey->n_exceeded > 0 ? kFailed : kDone;
}

}  // namespace rondo::tools
