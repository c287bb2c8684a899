#include "tools/rondo/predict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "expert_tiles.params.h"
#include "graph/kernel_choice.h"
#include "graph/tiles.h"
#include "models/json.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "tools/isa/foreign.h"
#include "tools/isa/kernel_pattern.h"
#include "tools/rondo/kernels_in_use.h"

namespace rondo::tools {

namespace {

struct CompiledCount {
  std::uint8_t chip, kernel;  ///< places in kChips and kKernels
  std::uint8_t waves;         ///< of a core; 0: not known
  float per_multiply_add;
};
struct SimulatedCount {
  std::string_view kernel, type;
  std::uint32_t lanes;
  double useful_bytes, activation_bytes, dependent_loads;
};
#include "kernel_counts.inc"

/// The words of a dispatch's label: operator, kernel and type, the last two where there are some.
struct Words {
  std::string op;
  std::string kernel;  ///< "linear/subgroup"; of operators with one kernel what is behind them, if anything
  std::string type;

  explicit Words(std::string_view label) {
    const std::size_t first = label.find(' '), second = first == label.npos ? first : label.find(' ', first + 1);
    kernel = op = std::string(label.substr(0, first));
    if (first != label.npos) kernel += "/" + std::string(label.substr(first + 1, second == label.npos ? second : second - first - 1));
    if (second != label.npos) type = std::string(label.substr(second + 1));
  }
};

/// Null: there is none.
const CompiledCount* find_compiled(const runtime::Dispatch& dispatch, const runtime::Kernel& kernel, std::string_view chip) {
  std::vector<std::string> constants;
  for (std::uint32_t i = 0; i < kernel.n_constants; ++i) constants.push_back(fmt::format("{}={}", constant_name(kernel.shader, i), kernel.constants[i]));
  const std::string label = (std::string_view(runtime::shader_name(kernel.shader)).ends_with("_f16") ? "f16 " : "") + dispatch.label;
  const CompiledCount* found = nullptr;
  std::size_t longest = 0;
  for (const CompiledCount& count : kCompiled) {
    if (kChips[count.chip] != chip) continue;
    const isa::KernelPattern pattern = isa::KernelPattern::parse(kKernels[count.kernel]);
    if (pattern.length <= longest || !pattern.fits(label, constants)) continue;
    longest = pattern.length;
    found = &count;
  }
  return found;
}

/// That of the kernel with this type, or else with any, preferably of as many lanes. What reads as another does has its counts.
const SimulatedCount* find_simulated(const Words& words, std::uint32_t lanes) {
  const SimulatedCount* best = nullptr;
  const auto fit = [&](const SimulatedCount& count) { return (count.type == words.type ? 2 : 0) + (count.lanes == lanes ? 1 : 0); };
  const std::string_view kernel = words.kernel == "attention/half_subgroup" ? "attention/subgroup" : std::string_view(words.kernel);
  for (const SimulatedCount& count : kSimulated) {
    if ((count.kernel == kernel || count.kernel == words.op) && (!best || fit(count) > fit(*best))) best = &count;
  }
  return best;
}

/// Bytes that an invocation asks for in a round of its loop: of the mat-vec 16 of each row of weights and load, of attention as many keys and
/// values. Nothing for kernels that ask for all they need at once.
std::optional<double> bytes_of_round(const runtime::Kernel& kernel) {
  constexpr double kVector = 16;
  const std::string_view name = runtime::shader_name(kernel.shader);
  if (name.starts_with("linear_subgroup") || name.starts_with("linear_halves") || name == "linear_dot") return kVector * (kernel.constants[3] / kernel.constants[15] << kernel.constants[5]) * kernel.constants[13];
  if (name.starts_with("attention_subgroup") || name.starts_with("attention_half_subgroup")) return 2 * kVector * kernel.constants[5];
  return std::nullopt;
}

/// Waits of kernels that make tiles: a round of their loop asks for what a later one multiplies, so each takes as long as a load at least, and
/// as many workgroups are under way as registers leave room for.
double waits_of_tiles(const runtime::Dispatch& dispatch, const runtime::Kernel& kernel, const CompiledCount* count, double workgroups, const runtime::DeviceCaps& caps) {
  const std::string_view name = runtime::shader_name(kernel.shader);
  const bool by_dots = name == "linear_dot_tiled";
  constexpr std::string_view kOfTiles[] = {"linear_dot_tiled", "linear_half_tiled", "linear_matrix", "linear_tiled", "matmul_half_tiled", "matmul_matrix", "matmul_tiled"};
  if (std::none_of(std::begin(kOfTiles), std::end(kOfTiles), [&](std::string_view of_tiles) { return name.starts_with(of_tiles); })) return 0;
  const runtime::InnerLoop& loop = dispatch.cost.loops[0];
  const double threads = by_dots ? graph::DotTile::kThreads : kernel.constants[0], of_round = loop.unrolled > 0 ? loop.unrolled : loop.multiply_adds;
  const double rounds = std::ceil(dispatch.cost.flops / 2 / (of_round * threads * workgroups));
  const double resident = count && count->waves > 0 && kernel.subgroup_size > 0 ? std::min(kResident, 1.0 * count->waves * kernel.subgroup_size) : kResident;
  return kLoadNs * rounds * std::ceil(workgroups / (caps.cores * std::max(std::floor(resident / threads), 1.0)));
}

/// One workgroup looks at all rows twice, each time at a number and at the state.
double waits_of_sorting(const runtime::Dispatch& dispatch, const runtime::Kernel& kernel) {
  shaders::ExpertTilesParams push;
  std::memcpy(&push, dispatch.push.data(), sizeof push);
  return 2 * kLoadNs * std::ceil(1.0 * push.rows / kernel.constants[0]);
}

}  // namespace

double Prediction::total() const { return launch + std::max({memory, arithmetic, lines, shared, waits}); }

const char* Prediction::bound() const {
  const double most = std::max({memory, arithmetic, lines, shared, waits});
  if (launch > most) return "launch";
  return most == memory ? "memory" : most == arithmetic ? "arithmetic" : most == lines ? "lines" : most == shared ? "shared" : "waits";
}

Result<std::vector<Prediction>> predict(const runtime::Program& program, const runtime::DeviceCaps& caps) {
  if (caps.lanes_per_s == 0) return Status(StatusCode::kInvalidArgument, fmt::format("--predict needs a profile with rates, which '{}' does not have; navi21, navi31, dg2, ad102 and h200 are some that do", caps.name));
  std::vector<Prediction> found;
  for (const runtime::Dispatch& dispatch : program.dispatches) {
    const runtime::Kernel& kernel = program.kernels[dispatch.kernel];
    const Words words(dispatch.label);
    const SimulatedCount* const simulated = find_simulated(words, kernel.subgroup_size);
    Prediction one;
    one.launch = dispatch.barrier_before ? caps.dispatch_ns : 0;
    const double workgroups = 1.0 * dispatch.grid[0] * dispatch.grid[1] * dispatch.grid[2];
    double bytes_per_s = kUsableBandwidth * caps.bytes_per_s;
    if (const std::optional<double> round = bytes_of_round(kernel)) bytes_per_s = std::min(bytes_per_s, 1e9 * *round * std::min(workgroups * kernel.constants[0], caps.cores * kResident) / kLoadNs);
    one.memory = 1e9 * dispatch.cost.bytes / bytes_per_s;
    if (words.kernel == "sample") one.memory = 0;  // its cost is that of the longest draw; the most likely token needs one chunk of keys
    const CompiledCount* const count = dispatch.cost.loops[0].multiply_adds > 0 ? find_compiled(dispatch, kernel, caps.counts) : nullptr;
    const double per_multiply_add = count ? count->per_multiply_add : 0;
    one.counted = count != nullptr || dispatch.cost.loops[0].multiply_adds == 0;
    one.arithmetic = 1e9 * (dispatch.cost.flops / 2 * per_multiply_add) / caps.lanes_per_s;
    // Products of matrices are one of these instructions each, and take longer; at worst, nothing else is done meanwhile.
    const bool by_matrices = graph::by_matrix_units(kernel);
    if (by_matrices && caps.matrix_flops_per_s > 0) one.arithmetic += 1e9 * dispatch.cost.flops / caps.matrix_flops_per_s;
    one.counted = one.counted && (!by_matrices || caps.matrix_flops_per_s > 0);
    const double uneven = std::ceil(workgroups / caps.cores) * caps.cores / workgroups;
    one.arithmetic *= uneven;
    one.shared = 1e9 * uneven * dispatch.cost.shared_bytes / (kSharedBytes * caps.lines_per_s);
    if (simulated && simulated->useful_bytes > 0) one.lines = 1e9 * dispatch.cost.bytes * (1 / simulated->useful_bytes + simulated->activation_bytes / 64) / caps.lines_per_s;
    one.waits = kernel.shader == runtime::Shader::expert_tiles ? waits_of_sorting(dispatch, kernel) : std::max(waits_of_tiles(dispatch, kernel, count, workgroups, caps), simulated ? (std::max(simulated->dependent_loads, 1.0) - 1) * kLoadNs : kLoadNs);
    found.push_back(one);
  }
  return found;
}

double MeasuredSteps::total() const {
  double sum = 0;
  for (const auto& [label, ns] : ns_by_kernel) sum += ns;
  return sum;
}

Result<MeasuredSteps> read_measured_steps(const std::string& path, std::string_view step) {
  RONDO_ASSIGN(const std::string text, isa::read_text(path));
  RONDO_ASSIGN(const nlohmann::json trace, models::parse_json(text, path));
  RONDO_ASSIGN(const nlohmann::json* const events, models::find_array(trace, "traceEvents", path));
  MeasuredSteps found;
  std::set<std::string> others;
  bool wanted = false;
  // A step, then its dispatches.
  for (std::size_t i = 0; i < events->size(); ++i) {
    const nlohmann::json& event = (*events)[i];
    const std::string what = fmt::format("{}: event {}", path, i);
    if (!event.is_object()) return Status(StatusCode::kCorruptData, fmt::format("{} is no object", what));
    RONDO_ASSIGN(const std::string name, models::find_string(event, "name", what));
    if (!event.contains("dur")) continue;
    RONDO_ASSIGN(const std::uint64_t row, models::find_u64_or(event, "tid", 0, what));
    if (!event["dur"].is_number()) return Status(StatusCode::kCorruptData, fmt::format("{}: 'dur' must be a number", what));
    if (row == 1) {
      wanted = name == step;
      if (wanted) found.n += 1;
      else others.insert(fmt::format("'{}'", name));
    } else if (row == 2 && wanted) {
      found.ns_by_kernel[name] += 1e3 * event["dur"].get<double>();
    }
  }
  if (found.n == 0) return Status(StatusCode::kInvalidArgument, fmt::format("{}: no step is '{}'; there are {}", path, step, others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))));
  for (auto& [label, ns] : found.ns_by_kernel) ns /= static_cast<double>(found.n);
  return found;
}

std::optional<double> find_measured(const runtime::DeviceCaps& caps, std::uint64_t weight_bytes, std::int64_t rows) {
  for (const runtime::MeasuredStep& step : caps.measured) {
    if (step.rows == rows && std::abs(static_cast<double>(weight_bytes) / static_cast<double>(step.weight_bytes) - 1) < 0.01) return step.ns;
  }
  return std::nullopt;
}

double bandwidth_bound_ns(const runtime::Program& program, const runtime::DeviceCaps& caps) {
  double bytes = 0;
  for (const runtime::Dispatch& dispatch : program.dispatches) bytes += dispatch.cost.bytes;
  return 1e9 * bytes / (kUsableBandwidth * caps.bytes_per_s);
}

}  // namespace rondo::tools
