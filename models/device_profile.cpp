// Device profiles from JSON documents.
#include <rondo/device.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <memory>

#include "models/json.h"
#include "runtime/device_plan.h"
#include "runtime/fmt.h"

namespace rondo {

namespace {

/// A limit of a profile: its field in the document, and where it goes.
struct Limit {
  const char* field;
  std::uint32_t* value;
};

Status read_u32(const nlohmann::json& document, const char* field, std::string_view what, std::uint32_t& value) {
  RONDO_ASSIGN(const std::uint64_t found, models::find_u64(document, field, what));
  if (found > std::numeric_limits<std::uint32_t>::max()) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' is {}, which does not fit 32 bits", what, field, found));
  }
  value = static_cast<std::uint32_t>(found);
  return {};
}

Status read_features(const nlohmann::json& document, std::string_view what, runtime::DeviceCaps& caps) {
  RONDO_ASSIGN(const nlohmann::json* features, models::find_array(document, "features", what));
  bool size_control = false;
  for (const nlohmann::json& feature : *features) {
    if (feature == "subgroup_shuffle") caps.subgroup_shuffle = true;
    else if (feature == "subgroup_arithmetic") caps.subgroup_arithmetic = true;
    else if (feature == "integer_dot") caps.integer_dot = true;
    else if (feature == "fast_integer_dot") caps.integer_dot = caps.fast_integer_dot = true;
    else if (feature == "float16") caps.float16 = true;
    else if (feature == "half_dot") caps.float16 = caps.half_dot = true;
    else if (feature == "subgroup_size_control") size_control = true;
    else if (feature == "storage16") caps.storage16 = true;
    else if (feature == "device_scope") caps.device_scope = true;
    else if (feature == "timestamps") caps.timestamp_bits = 64;
    else return Status(StatusCode::kCorruptData, fmt::format("{}: 'features' holds something that is none of \"subgroup_shuffle\", \"subgroup_arithmetic\", \"subgroup_size_control\", \"integer_dot\", \"fast_integer_dot\", \"float16\", \"half_dot\", \"storage16\", \"device_scope\" and \"timestamps\"", what));
  }
  runtime::set_required_subgroup_sizes(caps, size_control);
  return {};
}

/// "rows x columns x depth" of cooperative matrices of f16 with sums in f32; optional.
Status read_matrices(const nlohmann::json& document, std::string_view what, runtime::DeviceCaps& caps) {
  if (!document.contains("matrices")) return {};
  RONDO_ASSIGN(const nlohmann::json* matrices, models::find_array(document, "matrices", what));
  for (const nlohmann::json& matrix : *matrices) {
    const std::string text = matrix.is_string() ? matrix.get<std::string>() : "";
    runtime::MatrixShape shape;
    const char* at = text.data();
    const char* const end = at + text.size();
    bool right = true;
    for (std::uint32_t* size : {&shape.rows, &shape.columns, &shape.depth}) {
      const auto [next, error] = std::from_chars(at, end, *size);
      right = right && error == std::errc() && std::has_single_bit(*size) && *size <= 256 && (size == &shape.depth ? next == end : next != end && *next == 'x');
      if (!right) return Status(StatusCode::kCorruptData, fmt::format("{}: 'matrices' holds something that is no \"16x16x16\", of powers of two up to 256", what));
      at = next + 1;
    }
    caps.matrices.push_back(shape);
  }
  if (!caps.matrices.empty() && !caps.float16) return Status(StatusCode::kCorruptData, fmt::format("{}: 'matrices' are there, but not the feature \"float16\"", what));
  return {};
}

/// What a card moves and computes in a second, for predictions; optional.
Status read_rates(const nlohmann::json& document, std::string_view what, runtime::DeviceCaps& caps) {
  if (!document.contains("rates")) return {};
  constexpr const char* kFields[] = {"memory_bytes_per_s", "cores", "core_lanes", "clock_hz"};
  constexpr double kDispatchNs = 1500;  // of one that waits for another, unless measured
  RONDO_ASSIGN(const nlohmann::json* rates, models::find_object(document, "rates", what));
  double numbers[4];
  for (std::size_t i = 0; i < 4; ++i) {
    RONDO_ASSIGN(const std::uint64_t found, models::find_u64(*rates, kFields[i], fmt::format("{}: rates", what)));
    if (found == 0) return Status(StatusCode::kCorruptData, fmt::format("{}: rates: '{}' is 0", what, kFields[i]));
    numbers[i] = static_cast<double>(found);
  }
  RONDO_ASSIGN(caps.counts, models::find_string(*rates, "counts", fmt::format("{}: rates", what)));
  RONDO_ASSIGN(const std::uint64_t of_matrices, models::find_u64_or(*rates, "matrix_flops_per_s", 0, fmt::format("{}: rates", what)));
  if (rates->size() != (of_matrices != 0 ? 6 : 5)) return Status(StatusCode::kCorruptData, fmt::format("{}: 'rates' has other fields than {}, counts and matrix_flops_per_s", what, fmt::join(kFields, ", ")));
  caps.matrix_flops_per_s = static_cast<double>(of_matrices);
  caps.bytes_per_s = numbers[0];
  caps.lanes_per_s = numbers[1] * numbers[2] * numbers[3];
  caps.flops_per_s = 2 * caps.lanes_per_s;
  caps.lines_per_s = numbers[1] * numbers[3];
  caps.cores = static_cast<std::uint32_t>(std::min(numbers[1], 1e6));
  caps.dispatch_ns = kDispatchNs;
  return {};
}

/// What steps took on a card, beside which predictions are printed; optional.
Status read_measured(const nlohmann::json& document, std::string_view what, runtime::DeviceCaps& caps) {
  if (!document.contains("measured")) return {};
  RONDO_ASSIGN(const nlohmann::json* steps, models::find_array(document, "measured", what));
  for (const nlohmann::json& step : *steps) {
    const std::string where = fmt::format("{}: measured", what);
    if (!step.is_object() || step.size() != 3) return Status(StatusCode::kCorruptData, fmt::format("{}: a step is an object of weight_bytes, rows and ns", where));
    runtime::MeasuredStep& found = caps.measured.emplace_back();
    RONDO_ASSIGN(found.weight_bytes, models::find_u64(step, "weight_bytes", where));
    RONDO_TRY(read_u32(step, "rows", where, found.rows));
    RONDO_ASSIGN(const std::uint64_t ns, models::find_u64(step, "ns", where));
    if (found.weight_bytes == 0 || found.rows == 0 || ns == 0) return Status(StatusCode::kCorruptData, fmt::format("{}: weight_bytes, rows and ns must not be 0", where));
    found.ns = static_cast<double>(ns);
  }
  return {};
}

/// Where figures come from, for people: a text for each field, "*" for all others.
Status check_sources(const nlohmann::json& document, std::string_view what) {
  const auto sources = document.find("sources");
  if (sources == document.end()) return {};
  const auto wrong = [&](const std::string& why) { return Status(StatusCode::kCorruptData, fmt::format("{}: 'sources' {}", what, why)); };
  if (!sources->is_object()) return wrong("must be an object of texts");
  for (auto source = sources->begin(); source != sources->end(); ++source) {
    if (!source->is_string()) return wrong(fmt::format("has no text for '{}'", source.key()));
    if (source.key() != "*" && !document.contains(source.key())) return wrong(fmt::format("has a text for '{}', which the profile does not have", source.key()));
  }
  return {};
}

Status refuse_unknown_fields(const nlohmann::json& document, std::string_view what, std::span<const Limit> limits) {
  for (auto field = document.begin(); field != document.end(); ++field) {
    const std::string& name = field.key();
    bool known = name == "name" || name == "type" || name == "features" || name == "max_storage_range_bytes" || name == "max_allocation_bytes" ||
                 name == "memory_budget_bytes" || name == "max_grid" || name == "sources" || name == "rates" || name == "measured" || name == "matrices";
    for (const Limit& limit : limits) known = known || name == limit.field;
    if (!known) return Status(StatusCode::kCorruptData, fmt::format("{}: there is no field '{}' in a device profile", what, name));
  }
  return {};
}

}  // namespace

Result<DeviceProfile> DeviceProfile::parse(std::string_view json, std::string_view what) {
  RONDO_ASSIGN(const nlohmann::json document, models::parse_json(json, what));
  auto caps = std::make_unique<runtime::DeviceCaps>();
  RONDO_ASSIGN(caps->name, models::find_string(document, "name", what));
  RONDO_ASSIGN(const std::string type, models::find_string(document, "type", what));
  const std::optional<runtime::DeviceType> known = runtime::find_device_type(type);
  if (!known) return Status(StatusCode::kCorruptData, fmt::format("{}: 'type' must be discrete, integrated, virtual, cpu or other", what));
  caps->type = *known;
  RONDO_ASSIGN(caps->max_storage_range_bytes, models::find_u64(document, "max_storage_range_bytes", what));
  RONDO_ASSIGN(caps->max_allocation_bytes, models::find_u64(document, "max_allocation_bytes", what));
  RONDO_ASSIGN(caps->memory_budget_bytes, models::find_u64_or(document, "memory_budget_bytes", 0, what));
  std::uint32_t grid = 0;
  RONDO_TRY(read_u32(document, "max_grid", what, grid));
  caps->max_grid = {grid, grid, grid};
  const Limit limits[] = {{"storage_offset_alignment", &caps->storage_offset_alignment},
                          {"non_coherent_atom_bytes", &caps->non_coherent_atom_bytes},
                          {"max_storage_buffers", &caps->max_storage_buffers},
                          {"max_invocations", &caps->max_invocations},
                          {"max_shared_bytes", &caps->max_shared_bytes},
                          {"max_push_bytes", &caps->max_push_bytes},
                          {"min_subgroup_size", &caps->min_subgroup_size},
                          {"max_subgroup_size", &caps->max_subgroup_size}};
  for (const Limit& limit : limits) RONDO_TRY(read_u32(document, limit.field, what, *limit.value));
  RONDO_TRY(read_features(document, what, *caps));
  RONDO_TRY(read_matrices(document, what, *caps));
  RONDO_TRY(refuse_unknown_fields(document, what, limits));
  RONDO_TRY(check_sources(document, what));
  const auto power_of_two = [](std::uint32_t n) { return n > 0 && (n & (n - 1)) == 0; };
  if (!power_of_two(caps->storage_offset_alignment) || caps->storage_offset_alignment < 16 || !power_of_two(caps->non_coherent_atom_bytes)) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: alignments must be powers of two, that of offsets at least 16", what));
  }
  if (!power_of_two(caps->min_subgroup_size) || !power_of_two(caps->max_subgroup_size) || caps->min_subgroup_size > caps->max_subgroup_size) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: subgroup sizes from {} to {} make no range of powers of two", what, caps->min_subgroup_size, caps->max_subgroup_size));
  }
  const std::string low = runtime::find_low_limit(*caps);
  if (!low.empty()) return Status(StatusCode::kUnsupported, fmt::format("{}: {}", what, low));
  if (caps->max_allocation_bytes < caps->max_storage_range_bytes) {
    return Status(StatusCode::kUnsupported, fmt::format("{}: max_allocation_bytes is below max_storage_range_bytes", what));
  }
  runtime::set_predictions(*caps);
  RONDO_TRY(read_rates(document, what, *caps));
  RONDO_TRY(read_measured(document, what, *caps));
  return DeviceProfile(std::move(caps));
}

}  // namespace rondo
