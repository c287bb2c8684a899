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
#include "tools/isa/foreign.h"
#include "tools/isa/isolated.h"
#include "tools/rondo/kernels_in_use.h"
#include "tools/rondo/profiles.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

using nlohmann::json;

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

isa::Module module_of(const runtime::Kernel& kernel, const runtime::DeviceCaps& caps) {
  isa::Module module;
  module.code = runtime::shader_code(kernel.shader, caps);
  module.constants.assign(kernel.constants.begin(), kernel.constants.begin() + kernel.n_constants);
  module.n_bindings = kernel.n_bindings;
  module.push_bytes = kernel.push_bytes;
  module.subgroup_size = kernel.subgroup_size;
  module.full_subgroups = kernel.subgroup_size != 0;
  return module;
}

/// A kernel to compile: one of ours, or of others.
struct Item {
  json description;
  std::string label;
  std::vector<std::string> constants;
  isa::Module module;
  std::array<runtime::InnerLoop, 2> loops{};
  std::uint32_t products = 0;  ///< of a foreign module
  bool foreign = false;
  std::string failure;  ///< why it can't be compiled, or ""
};

/// What a child has while it works.
struct Workshop {
  std::optional<Instance> instance;
  std::unique_ptr<isa::Compiler> compiler;
  std::vector<Item> items;
  std::string device;
  const isa::Budget* budget = nullptr;  ///< null: nothing is judged
};

Item item_of(const KernelInUse& one, const runtime::DeviceCaps& caps) { return {describe(one), one.label, constants_of(one), module_of(one.kernel, caps), one.loops, 0, false, ""}; }

/// Theirs for this device, each behind the kernel of ours that it is put beside, of those whose labels contain `filter`.
std::vector<Item> pair_up(const std::vector<KernelInUse>& kernels, const runtime::DeviceCaps& caps, std::vector<isa::ForeignModule> theirs, const std::string& filter) {
  std::vector<Item> items;
  for (isa::ForeignModule& foreign : theirs) {
    const auto ours = std::find_if(kernels.begin(), kernels.end(), [&](const KernelInUse& one) { return foreign.beside.fits(one.label, constants_of(one)); });
    Item item;
    item.label = ours == kernels.end() ? foreign.beside.label : ours->label;
    if (item.label.find(filter) == std::string::npos) continue;
    if (ours == kernels.end()) {
      item.description = {{"label", item.label}, {"specialization", json::object()}};
      item.failure = "no kernel of ours that is in use here fits";
      items.push_back(item);
    } else {
      items.push_back(item_of(*ours, caps));
    }
    item.description = {{"label", foreign.name}, {"beside", item.label}, {"specialization", json::object()}};
    for (std::size_t i = 0; i < foreign.module.constants.size(); ++i) item.description["specialization"][std::to_string(i)] = foreign.module.constants[i];
    item.module = std::move(foreign.module);
    item.products = foreign.products;
    item.foreign = true;
    item.failure = "";
    items.push_back(std::move(item));
  }
  return items;
}

json compile(Workshop& shop, const Item& item) {
  json row = item.description;
  if (!item.failure.empty()) {
    row["failure"] = item.failure;
    return row;
  }
  const Result<isa::Executable> executable = shop.compiler->compile(item.module);
  if (!executable.ok()) {
    row["failure"] = executable.status().message();
    return row;
  }
  const std::vector<isa::LoopCost> costs = item.foreign ? isa::cost_of_largest_loops(*executable, item.products) : isa::cost_of_loops(*executable, item.loops);
  add_results(row, *executable, costs);
  if (!shop.budget || item.foreign) return row;
  const isa::Budget::Line* const line = shop.budget->find(shop.device, item.label, item.constants);
  const std::string excess = line ? isa::find_excess(*line, *executable, isa::vector_per_multiply_add(costs)) : "no line of the budget is for it";
  if (!excess.empty()) row["excess"] = excess;
  if (line) row["budget_line"] = line->number;
  return row;
}

Result<isa::Jobs> open_workshop(const GlobalFlags& flags, const IsaFlags& own, const std::optional<isa::Budget>& budget) {
  const auto shop = std::make_shared<Workshop>();
  RONDO_ASSIGN(Instance instance, open_instance(flags));
  shop->instance.emplace(std::move(instance));
  RONDO_ASSIGN(const std::uint32_t index, find_compiling_device(*shop->instance, flags.device));
  const DeviceInfo& info = shop->instance->devices()[index];
  shop->device = info.name;
  RONDO_ASSIGN(shop->compiler, isa::Compiler::create(shop->instance->internal(), index));
  RONDO_ASSIGN(const std::optional<DeviceProfile> profile, find_profile(flags.as));
  runtime::DeviceCaps caps = shop->instance->internal().plans()[index].caps;
  if (profile) caps = runtime::clamp_caps(caps, profile->internal());
  RONDO_ASSIGN(const std::vector<KernelInUse> kernels, kernels_in_use(caps, flags.model_options().kernels));
  if (own.against.empty()) {
    for (const KernelInUse& one : kernels) {
      if (one.label.find(own.filter) != std::string::npos) shop->items.push_back(item_of(one, caps));
    }
  } else {
    RONDO_ASSIGN(std::vector<isa::ForeignModule> theirs, isa::read_foreign_modules(own.against, info.name));
    shop->items = pair_up(kernels, caps, std::move(theirs), own.filter);
  }
  // A device with one size has it without being asked.
  for (Item& item : shop->items) {
    if (!item.foreign && !shop->compiler->has_subgroup_size_control()) item.module.subgroup_size = 0, item.module.full_subgroups = false;
  }
  if (budget && budget->is_for(info.driver)) shop->budget = &*budget;

  isa::Jobs jobs;
  jobs.n = shop->items.size();
  jobs.about = json{{"name", caps.name}, {"driver", info.driver}, {"type", info.type}, {"judged", shop->budget != nullptr}}.dump();
  jobs.name = [shop](std::size_t i) { return shop->items[i].description.dump(); };
  jobs.run = [shop](std::size_t i) { return compile(*shop, shop->items[i]).dump(); };
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
std::string cell(const json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end() || found->is_null()) return "-";
  const double value = found->get<double>();
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
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

/// Ours / theirs, and by how much ours needs more; rows come in pairs.
void print_comparison(const Survey& survey) {
  fmt::print("{} ({}): ours / theirs\n\n", survey.device["name"].get<std::string>(), survey.device["driver"].get<std::string>());
  fmt::print("| {:<22} | {:<44} | {:>13} | {:>9} | {:>11} | {:>11} | {:>13} | {:>5} |\n", "kernel", "theirs", "registers", "spills", "occupancy", "subgroup", "per FMA", "ratio");
  fmt::print("|:{:-<23}|:{:-<45}|{:->14}:|{:->10}:|{:->12}:|{:->12}:|{:->14}:|{:->6}:|\n", "", "", "", "", "", "", "", "");
  for (std::size_t i = 0; i + 1 < survey.rows.size(); i += 2) {
    const json &ours = survey.rows[i], &theirs = survey.rows[i + 1];
    const auto both = [&](const char* name) { return cell(ours, name) + " / " + cell(theirs, name); };
    const bool known = ours.contains("per_multiply_add") && theirs.contains("per_multiply_add") && !ours["per_multiply_add"].is_null() && !theirs["per_multiply_add"].is_null();
    const std::string ratio = known ? fmt::format("{:.2f}", ours["per_multiply_add"].get<double>() / theirs["per_multiply_add"].get<double>()) : "-";
    fmt::print("| {:<22} | {:<44} | {:>13} | {:>9} | {:>11} | {:>11} | {:>13} | {:>5} |\n", ours["label"].get<std::string>(), theirs["label"].get<std::string>(), both("registers"), both("spills"),
               both("occupancy"), both("subgroup_size"), both("per_multiply_add"), ratio);
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
  RONDO_ASSIGN(const std::string text, isa::read_text(path));
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
  if (survey->rows.empty()) return report(own.against.empty() ? fmt::format("isa: no kernel's name contains '{}'", own.filter) : fmt::format("isa: {} has no module for this device", own.against), kUsage);
  if (own.json) {
    fmt::print("{}\n", json{{"device", survey->device}, {"kernels", survey->rows}}.dump(1));
  } else {
    own.against.empty() ? print_table(*survey) : print_comparison(*survey);
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
