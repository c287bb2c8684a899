#include "models/tuning.h"

#include <algorithm>
#include <optional>

#include "graph/kernel_choice.h"
#include "graph/operator.h"
#include "models/json.h"
#include "models/memory_plan.h"
#include "models/printable.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "runtime/pipeline_cache.h"

namespace rondo::models {

namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMostBytes = 1u << 20;
constexpr const char* kWhat = "tuning";
constexpr const char* kVersionField = "rondo_tuning";

Result<TunedKernels> read_tuning(runtime::Device& device, std::string_view text) {
  TunedKernels kernels;
  if (text.empty()) return kernels;
  if (text.size() > kMostBytes) return Status(StatusCode::kCorruptData, fmt::format("tuning: it has {} bytes, more than {}", text.size(), kMostBytes));
  RONDO_ASSIGN(const nlohmann::json document, parse_json(text, kWhat));
  RONDO_ASSIGN(const std::uint64_t version, find_u64(document, kVersionField, kWhat));
  if (version != kVersion) return Status(StatusCode::kUnsupported, fmt::format("tuning: '{}' is {} but this rondo knows {}", kVersionField, version, kVersion));
  RONDO_ASSIGN(const std::string key, find_string(document, "device", kWhat));
  if (key != device.pipeline_cache().key()) return Status(StatusCode::kUnsupported, fmt::format("tuning: it is of device and driver {}, not of {}", printable(key), device.pipeline_cache().key()));
  RONDO_ASSIGN(const std::string hash, find_string(document, "rondo", kWhat));
  if (hash != runtime::embedded_spirv_key()) return Status(StatusCode::kUnsupported, fmt::format("tuning: it is of the kernels {}, not of {}", printable(hash), runtime::embedded_spirv_key()));
  RONDO_ASSIGN(const nlohmann::json* choices, find_object(document, "choices", kWhat));
  for (const auto& [choice, kernel] : choices->items()) {
    if (!kernel.is_string()) return Status(StatusCode::kCorruptData, fmt::format("tuning: choices: '{}' is no text", printable(choice)));
    const std::string& name = kernel.get_ref<const std::string&>();
    const std::optional<graph::Op> op = graph::find_operator(std::string_view(choice).substr(0, choice.find(' ')));
    if (!op) return Status(StatusCode::kCorruptData, fmt::format("tuning: choices: '{}' is of no operator", printable(choice)));
    const graph::Operator& its = graph::operator_of(*op);
    if (std::find(its.kernels.begin(), its.kernels.end(), name) == its.kernels.end()) {
      return Status(StatusCode::kCorruptData, fmt::format("tuning: choices: '{}' is no kernel of {}", printable(name), its.name));
    }
    kernels[choice] = name;
  }
  return kernels;
}

}  // namespace

void log_unfit_choices(const runtime::Device& device, const TunedKernels& tuned, const SessionPlan& plan) {
  std::map<std::string_view, std::string_view> unfit;
  for (const PlannedStep& step : plan.steps) {
    for (const runtime::Dispatch& dispatch : step.lowered.program.dispatches) {
      const auto wanted = tuned.find(dispatch.choice);
      const std::string_view kernel = graph::chosen_kernel(dispatch);
      if (wanted != tuned.end() && !kernel.empty() && kernel != wanted->second) unfit[wanted->first] = wanted->second;
    }
  }
  if (unfit.empty()) return;
  const auto& [choice, kernel] = *unfit.begin();
  const std::string others = unfit.size() == 1 ? "" : fmt::format(", and {} more", unfit.size() - 1);
  device.log(LogLevel::kWarn, fmt::format("tuning: '{}' does not fit '{}'{}; the next best kernel is chosen", kernel, choice, others));
}

bool is_tuning(std::string_view text) {
  const Result<nlohmann::json> document = parse_json(text, kWhat);
  return document.ok() && has_field(*document, kVersionField);
}

TunedKernels tuned_kernels(runtime::Device& device, std::string_view text) {
  Result<TunedKernels> kernels = read_tuning(device, text);
  if (kernels.ok()) return std::move(kernels).value();
  device.log(LogLevel::kWarn, fmt::format("{}; kernels are chosen without it", kernels.status().message()));
  return {};
}

std::string write_tuning(runtime::Device& device, const TunedKernels& kernels) {
  nlohmann::json choices = nlohmann::json::object();
  for (const auto& [choice, kernel] : kernels) choices[choice] = kernel;
  return nlohmann::json{{kVersionField, kVersion}, {"device", device.pipeline_cache().key()}, {"rondo", runtime::embedded_spirv_key()}, {"choices", choices}}.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace rondo::models
