#include "tools/check/check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "graph/activation.h"
#include "graph/kernel_choice.h"
#include "graph/operator.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "tools/check/cases.h"
#include "tools/check/device_run.h"

namespace rondo::check {

using graph::float_element, graph::is_poison;

namespace {

/// Of results in f16: rounding towards zero costs 2e-7, what f32 rounds the other way now and then 2e-9.
constexpr double kHalves = 1e-7, kHalvesRoundedTwice = 1e-6;
/// Of activations that lie so near to the middle of two bytes that a device's division takes the other one.
constexpr double kBytesRoundedOtherwise = 1e-6;

/// What an operator's results may be off, and whether sums of whole numbers come out exactly (docs/correctness.md says why).
struct Bound {
  double nmse = 0;
  bool exact_integers = true;
};

const graph::AttributeValue* find_attribute(const CaseText& text, std::string_view name) {
  const auto found = std::find_if(text.attributes.begin(), text.attributes.end(), [&](const auto& attribute) { return attribute.first == name; });
  return found == text.attributes.end() ? nullptr : &found->second;
}

/// The type other than f32 of a cache that the operator writes, if there is one.
std::optional<graph::Type> narrow_cache(const CaseText& text) {
  for (const CaseInput& input : text.inputs) {
    if (input.role == graph::InputRole::kCache && input.type != graph::Type::kF32) return input.type;
  }
  return std::nullopt;
}

Bound bound_in_f32(const CaseText& text) {
  const graph::ErrorClass error = table_of(text.op).accuracy.error;
  graph::Activation after = graph::Activation::kIdentity;
  if (const graph::AttributeValue* activation = find_attribute(text, "activation")) after = graph::find_activation(std::get<std::string>(*activation)).value_or(graph::Activation::kIdentity);
  const double bound = graph::bound_in_f32(error, after);
  const bool exact = error == graph::ErrorClass::kExact || (error == graph::ErrorClass::kExactSums && bound == graph::bound_in_f32(error, graph::Activation::kIdentity));
  if (bound == 0) return {0, true};
  if (const auto cache = narrow_cache(text)) return {graph::bound_of_rounding(*cache), false};
  return {bound, exact};
}

Bound bound_of(const CaseText& text) {
  const Bound bound = bound_in_f32(text);
  if (bound.nmse == 0 || !has_f16_activations(text)) return bound;
  // What fused operators do at once, their references round in between.
  const bool fused = table_of(text.op).reference == nullptr;
  return {std::max(bound.nmse, fused ? kHalvesRoundedTwice : kHalves), bound.exact_integers};
}

/// A storage's own bound, where only some of an operator's results are off by the run's.
Tolerance tolerance_of(const CheckRun& run, const graph::Storage& storage) {
  if ((run.op != "rope_kv_write" && run.op != "norm_rope_kv_write") || storage.type == graph::Type::kI32) return {run.bound};
  if (storage.name == "value_cache") return kExact;  // rounded only
  // What the norm leaves is rounded in the reference, before it is turned.
  const double halves = run.op == "norm_rope_kv_write" ? run.bound : kHalves;
  return storage.name == "key_cache" ? Tolerance{run.bound} : Tolerance{run.f16_activations ? halves : graph::bound_in_f32(graph::ErrorClass::kSums, graph::Activation::kIdentity)};
}

/// The inputs that a NaN or infinity may come in by: numbers, where the operator has an IEEE result.
std::vector<std::size_t> special_inputs(const CaseText& text) {
  std::vector<std::size_t> found;
  if (text.op == "sample") return found;
  for (std::size_t i = 0; i < text.inputs.size(); ++i) {
    const CaseInput& input = text.inputs[i];
    const bool numbers = input.role == graph::InputRole::kActivation || (input.role == graph::InputRole::kKeys && input.type == graph::Type::kF32);
    if (numbers && input.shape.n_elements() > 1) found.push_back(i);
  }
  return found;
}

std::span<const char* const> kernels_of(std::string_view op) { return table_of(op).kernels; }

/// Whether a user's `wanted` means this kernel.
bool is_named(std::string_view op, std::string_view kernel, std::string_view wanted) { return wanted == kernel || wanted == fmt::format("{}/{}", op, kernel); }
bool has_kernel(std::string_view op, std::string_view wanted) {
  const auto kernels = kernels_of(op);
  return std::any_of(kernels.begin(), kernels.end(), [&](const char* kernel) { return is_named(op, kernel, wanted); });
}

/// An activation that makes more of a sum's error: as many times as the sum is large, here some 20.
bool magnifies(const CaseText& text) {
  const graph::AttributeValue* activation = find_attribute(text, "activation");
  return activation && std::get<std::string>(*activation) == "exp";
}

/// The weight, or null.
const CaseInput* find_matrix(const CaseText& text) {
  const auto found = std::find_if(text.inputs.begin(), text.inputs.end(), [](const CaseInput& input) { return input.role == graph::InputRole::kMatrix; });
  return found == text.inputs.end() ? nullptr : &*found;
}

/// The error of rounded factors is that of a sum: it is small beside many sums of which few cancel.
bool has_many_sums(const CaseText& text) {
  const CaseInput* weight = find_matrix(text);
  return weight && weight->shape[0] >= 32;
}

/// And where nothing magnifies it.
bool tells_rounding(const CaseText& text) { return has_many_sums(text) && !magnifies(text); }

/// What halves leave of both factors, of which weights in f32 are one.
double of_halves(const CaseText& text) {
  if (magnifies(text)) return 100 * graph::kRoundedFactors;
  const CaseInput* weight = find_matrix(text);
  return weight && weight->type == graph::Type::kF32 && !has_many_sums(text) ? 10 * graph::kRoundedFactors : graph::kRoundedFactors;
}

std::vector<CheckRun> runs_of(const CaseText& text, const CheckOptions& options) {
  std::vector<CheckRun> runs;
  const Bound bound = bound_of(text);
  for (const char* kernel : kernels_of(text.op)) {
    const auto names = [&](const std::string& wanted) { return is_named(text.op, kernel, wanted); };
    if (!options.kernels.empty() && std::none_of(options.kernels.begin(), options.kernels.end(), names)) continue;
    const bool rounds = graph::by_integer_dots(kernel);
    const auto add_with = [&](bool rounded, Values values, double nmse, std::size_t special = 0) { runs.push_back({text.op, kernel, text.text, values, special, has_f16_activations(text), rounded, nmse}); };
    const auto add = [&](Values values, double nmse, std::size_t special = 0) { add_with(rounds, values, nmse, special); };
    const double factors = text.op.ends_with("_glu") ? 2 : 1;  // that are off
    if (rounds) add_with(false, Values::kBytes, bound.nmse);
    if (rounds && tells_rounding(text)) add_with(false, Values::kRandom, std::max(bound.nmse, factors * graph::kRoundedActivations));
    const double halves = graph::rounds_to_halves(std::string_view(kernel)) ? of_halves(text) : 0;
    const double nmse = std::max({bound.nmse, rounds ? kBytesRoundedOtherwise : 0, halves});
    if (bound.exact_integers && !rounds) add(Values::kInteger, 0);
    add(Values::kRandom, nmse);
    if (options.brief) continue;
    // Of sums so large the rest where gates cancel is far off, which is where their function is steep; so is that of scores. Behind a limit a sum whose sign is lost costs as much as one
    // that is missing: halves leave an error of 3e-4 of a gate's standard deviation, 7e-4 where they are rounded towards zero, and as large a share of gates and ups is smaller than that.
    const double steep = find_attribute(text, "limit") ? 5000 : 100;
    add(Values::kLarge, halves != 0 && (factors != 1 || text.op == "attention") ? steep * nmse : nmse);
    for (const std::size_t input : special_inputs(text)) {
      add(Values::kNan, nmse, input);
      add(Values::kInfinity, nmse, input);
    }
  }
  return runs;
}

Result<std::vector<CaseText>> select_cases(const CheckOptions& options) {
  std::vector<CaseText> selected;
  for (const std::string& op : options.ops) {
    if (graph::named_inputs(op).empty()) return Status(StatusCode::kInvalidArgument, graph::no_such_operator(op));
  }
  const std::vector<std::string> texts = options.text.empty() ? all_cases(options.thorough) : std::vector<std::string>{options.text};
  for (const std::string& text : texts) {
    RONDO_ASSIGN(CaseText parsed, parse_case(text));
    if (!options.ops.empty() && std::find(options.ops.begin(), options.ops.end(), parsed.op) == options.ops.end()) continue;
    selected.push_back(std::move(parsed));
  }
  return selected;
}

/// Takes elements out of the judgement that NaN or infinity may be in: of rows in which some is due, those where the device or
/// the reference has one. Returns what is wrong with such a row if it is finite throughout, or "".
std::string settle_rows(const OpCase& op, DeviceRun& run, std::vector<std::vector<std::byte>>& expected) {
  for (std::size_t i = 0; i < op.graph.n_tensors(); ++i) {
    const graph::Tensor& tensor = op.graph.tensor(static_cast<graph::TensorId>(i));
    if (op.graph.storage(tensor.storage).kind != graph::StorageKind::kOutput || tensor.type == graph::Type::kI32 || tensor.shape.rank == 0) continue;
    const auto storage = static_cast<std::size_t>(tensor.storage);
    const auto element_bytes = static_cast<std::size_t>(graph::element_bytes(tensor.type));
    const auto is_special = [&](std::span<const std::byte> bytes, std::size_t at) {
      return !std::isfinite(float_element(tensor.type, bytes, at)) && !is_poison(tensor.type, bytes, at);
    };
    const std::int64_t width = tensor.shape.last();
    const std::int64_t step = tensor.strides[static_cast<std::size_t>(tensor.shape.rank - 1)];
    for (std::int64_t row = 0; row < tensor.shape.n_rows(); ++row) {
      std::int64_t rest = row, first = tensor.offset_elements;
      for (int axis = tensor.shape.rank - 2; axis >= 0; --axis) {
        first += rest % tensor.shape[axis] * tensor.strides[static_cast<std::size_t>(axis)];
        rest /= tensor.shape[axis];
      }
      bool due = false, found = false;
      for (std::int64_t c = 0; c < width; ++c) {
        const auto at = static_cast<std::size_t>(first + c * step);
        due = due || is_special(expected[storage], at);
        found = found || is_special(run.after[storage], at);
      }
      if (!due) continue;
      if (!found) return fmt::format("{}: row {} is finite although {} went in", op.graph.storage(tensor.storage).name, row, "NaN or infinity");
      for (std::int64_t c = 0; c < width; ++c) {
        const auto at = static_cast<std::size_t>(first + c * step);
        const bool finite = std::isfinite(float_element(tensor.type, expected[storage], at)) && std::isfinite(float_element(tensor.type, run.after[storage], at));
        if (finite || is_poison(tensor.type, run.after[storage], at)) continue;
        std::memcpy(run.after[storage].data() + at * element_bytes, expected[storage].data() + at * element_bytes, element_bytes);
      }
    }
  }
  return "";
}

/// One case after the other, and the reference of the last one, which all kernels share.
class Checker {
 public:
  Checker(const CaseRunner& run_case, const CheckOptions& options) : run_case_(run_case), options_(options) {}

  Result<CheckResult> check(const CheckRun& run) {
    RONDO_TRY(prepare(run));
    CheckResult result{run, Outcome::kFailed, std::numeric_limits<double>::infinity(), ""};
    RunOptions how;
    how.kernels[table_of(run.op).name] = run.kernel;
    how.repeats = options_.repeats.value_or(options_.brief ? 1 : 25);
    Result<DeviceRun> ran = run_case_(*case_, how);
    if (!ran.ok()) {
      if (ran.status().code() == StatusCode::kDeviceLost) return ran.status();
      result.complaint = ran.status().message();
      if (ran.status().code() == StatusCode::kUnsupported) result.outcome = Outcome::kNotForThis;
      return result;
    }
    const bool special = run.values == Values::kNan || run.values == Values::kInfinity;
    if (special) result.complaint = settle_rows(*case_, *ran, expected_);
    if (!result.complaint.empty()) return result;
    result.nmse = 0;
    result.complaint = judge(*case_, *ran, expected_, [&](const graph::Storage& storage) { return tolerance_of(run, storage); }, &result.nmse);
    if (result.complaint.empty()) result.outcome = Outcome::kPassed;
    return result;
  }

 private:
  Status prepare(const CheckRun& run) {
    const std::string key = fmt::format("{} {} {} {}", run.text, values_name(run.values), run.special, run.rounded);
    if (key == prepared_) return {};
    RONDO_ASSIGN(const CaseText text, parse_case(run.text));
    RONDO_ASSIGN(OpCase built, build_case(text, run.values, options_.seed, run.special));
    RONDO_ASSIGN(expected_, built.run_reference());
    if (run.rounded) {
      RONDO_ASSIGN(const OpCase rounded, build_case(text, run.values, options_.seed, run.special, true));
      RONDO_ASSIGN(std::vector<std::vector<std::byte>> due, rounded.run_reference());
      for (std::size_t i = 0; i < due.size(); ++i) {
        if (built.graph.storage(static_cast<graph::StorageId>(i)).kind == graph::StorageKind::kOutput) expected_[i] = std::move(due[i]);
      }
    }
    case_.emplace(std::move(built));
    prepared_ = key;
    return {};
  }

  const CaseRunner& run_case_;
  const CheckOptions& options_;
  std::string prepared_;
  std::optional<OpCase> case_;
  std::vector<std::vector<std::byte>> expected_;
};

}  // namespace

Result<std::vector<CheckRun>> list_runs(const CheckOptions& options) {
  RONDO_ASSIGN(const std::vector<CaseText> cases, select_cases(options));
  if (cases.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("case '{}' is not one of {}", options.text, fmt::join(options.ops, ", ")));
  for (const std::string& kernel : options.kernels) {
    const auto is_of = [&](const CaseText& text) { return has_kernel(text.op, kernel); };
    if (std::none_of(cases.begin(), cases.end(), is_of)) {
      return Status(StatusCode::kInvalidArgument, fmt::format("no kernel of {} is called {}", options.ops.empty() ? "these operators" : fmt::join(options.ops, ", "), kernel));
    }
  }
  std::vector<CheckRun> runs;
  for (const CaseText& text : cases) {
    std::vector<CheckRun> own = runs_of(text, options);
    // All kernels for one kind of numbers, then the next: the reference is computed once for them.
    std::stable_sort(own.begin(), own.end(), [](const CheckRun& a, const CheckRun& b) { return std::tuple(a.values, a.special, a.rounded) < std::tuple(b.values, b.special, b.rounded); });
    std::move(own.begin(), own.end(), std::back_inserter(runs));
  }
  if (!options.text.empty()) RONDO_TRY(Status(build_case(cases.front(), Values::kRandom, options.seed).status()));
  return runs;
}

namespace {

Result<CheckReport> run_all(const CaseRunner& run_case, bool has_storage16, const CheckOptions& options, const OnResult& on_result) {
  RONDO_ASSIGN(std::vector<CheckRun> runs, list_runs(options));
  Checker checker(run_case, options);
  CheckReport report;
  if (!has_storage16 && options.text.empty()) report.n_left_out = std::erase_if(runs, [](const CheckRun& run) { return run.f16_activations; });
  std::map<std::pair<std::string, std::string>, std::string> refused;
  std::set<std::pair<std::string, std::string>> ran;
  std::set<std::string> ran_cases;
  for (const CheckRun& run : runs) {
    Result<CheckResult> checked = checker.check(run);
    if (!checked.ok()) {
      report.ended = checked.status();
      checked = CheckResult{run, Outcome::kFailed, std::numeric_limits<double>::infinity(), report.ended.message()};
    }
    CheckResult& result = *checked;
    if (result.outcome == Outcome::kNotForThis) refused[{run.op, run.kernel}] = result.complaint;
    else ran.insert({run.op, run.kernel}), ran_cases.insert(run.text);
    report.n_passed += result.outcome == Outcome::kPassed;
    report.n_failed += result.outcome == Outcome::kFailed;
    report.results.push_back(std::move(result));
    if (!on_result(report.results.back(), report.results.size(), runs.size()) || !report.ended.ok()) break;
  }
  for (const auto& [kernel, reason] : refused) {
    if (!ran.contains(kernel)) report.unsupported.push_back({kernel.first, kernel.second, reason});
  }
  std::set<std::string> nobody_ran;
  for (const CheckResult& result : report.results) {
    const bool all_kernels = options.kernels.empty() && !ran_cases.contains(result.run.text);
    if (all_kernels && nobody_ran.insert(result.run.text).second) report.unsupported.push_back({result.run.op, "any kernel", fmt::format("{}: {}", result.run.text, result.complaint)});
  }
  return report;
}

}  // namespace

Result<CheckReport> run_check(runtime::Device& device, const CheckOptions& options, const OnResult& on_result) {
  const std::size_t pipelines_before = device.kernels().n_pipelines();
  const CaseRunner run_case = [&](const OpCase& op, const RunOptions& how) { return run_on_device(device, op, how); };
  RONDO_ASSIGN(CheckReport report, run_all(run_case, device.caps().storage16, options, on_result));
  report.n_pipelines = device.kernels().n_pipelines() - pipelines_before;
  return report;
}

Result<CheckReport> run_check(const CaseRunner& run_case, const CheckOptions& options, const OnResult& on_result) { return run_all(run_case, true, options, on_result); }

std::string repeat_command(const CheckRun& run, std::uint32_t seed) { return fmt::format("rondo check --kernel {}/{} --seed {} --case \"{}\"", run.op, run.kernel, seed, run.text); }

}  // namespace rondo::check
