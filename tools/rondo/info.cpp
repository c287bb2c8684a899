// rondo info: what a model file holds and what running it takes. Needs no Vulkan.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include <rondo/encoder.h>

#include "graph/cache_layout.h"
#include "graph/kernel_choice.h"
#include "models/memory_plan.h"
#include "models/printable.h"
#include "models/tuning.h"
#include "runtime/device.h"
#include "runtime/fmt.h"
#include "tools/rondo/graph_info.h"
#include "tools/rondo/profiles.h"
#include "tools/rondo/subcommands.h"
#include "tools/rondo/tuning_file.h"

namespace rondo::tools {

namespace {

using nlohmann::json;

/// Tensors of one type.
struct TypeTotals {
  std::uint64_t n_tensors = 0, n_parameters = 0, bytes = 0;
};

/// The memory plan as far as it can be told.
struct PlanReport {
  std::string device;
  bool of_profile = true;
  std::uint32_t n_ctx = 0;
  graph::Type kv_type = graph::Type::kF16;
  std::uint64_t weight_bytes = 0, kv_bytes_per_token = 0, kv_bytes = 0;
  std::string kv_formula;
  std::uint32_t n_source = 0;        ///< of an encoder-decoder
  std::uint64_t source_bytes = 0;    ///< of caches of its sources
  std::string source_formula;
  bool encodes = false;              ///< it has no caches, and n_ctx is its longest text, or an image's rows
  std::optional<models::MemoryPlan> memory;
  std::string step;                  ///< with the fewest rows: of how many of its linears round their activations
  std::size_t n_linears = 0, n_rounding = 0;
  std::uint32_t most_rows = 0;       ///< of a step: how many of its linears are for matrix units
  std::size_t n_linears_of_most = 0, n_rounding_of_most = 0, n_half_dot = 0, n_half_dot_attention = 0, n_half_dot_others = 0, n_matrix = 0, n_matrix_attention = 0, n_matrix_others = 0;
  std::string refusal;  ///< why there is no `memory`
  std::string tuned_on;  ///< the device that `tuned` is of, or ""
  std::map<std::string, std::string, std::less<>> tuned;  ///< choices that rondo tune made: what for, and which kernel
};

/// All that is printed.
struct ModelReport {
  std::string path;
  std::uint64_t file_bytes = 0;
  models::GgufFile file;
  std::string architecture, name, tokenizer, pre_tokenizer;
  std::optional<std::uint32_t> n_layers, width, ffn, n_heads, n_kv_heads, head_dim, context, n_vocab;
  std::uint64_t n_parameters = 0, tensor_bytes = 0;
  std::vector<models::NetworkPart> parts;
  ImageShape image = {};
  std::map<std::string, TypeTotals> types;
  std::optional<PlanReport> plan;
  std::string no_plan;  ///< why there is no `plan`
};

std::optional<std::uint32_t> find_number(const models::GgufFile& file, const std::string& key) {
  const Result<std::uint32_t> value = file.u32(key);
  return value.ok() ? std::optional<std::uint32_t>(*value) : std::nullopt;
}

std::string find_text(const models::GgufFile& file, const char* key) {
  const Result<std::string_view> value = file.string(key);
  return value.ok() ? models::printable(*value) : "";
}

/// What the metadata and the tensor table say, whatever the architecture.
void describe_file(ModelReport& report) {
  const models::GgufFile& file = report.file;
  report.architecture = find_text(file, "general.architecture");
  report.name = find_text(file, "general.name");
  report.tokenizer = find_text(file, "tokenizer.ggml.model");
  report.pre_tokenizer = find_text(file, "tokenizer.ggml.pre");
  const auto number = [&](const char* key) { return find_number(file, report.architecture + key); };
  report.n_layers = number(".block_count");
  report.width = number(".embedding_length");
  report.ffn = number(".feed_forward_length");
  report.n_heads = number(".attention.head_count");
  report.n_kv_heads = file.has(report.architecture + ".attention.head_count_kv") ? number(".attention.head_count_kv") : report.n_heads;
  report.head_dim = number(".attention.key_length");
  if (!report.head_dim && report.width && report.n_heads && *report.n_heads > 0) report.head_dim = *report.width / *report.n_heads;
  report.context = number(".context_length");
  const Result<const models::GgufStrings*> tokens = file.strings("tokenizer.ggml.tokens");
  if (tokens.ok()) report.n_vocab = static_cast<std::uint32_t>((*tokens)->size());
  for (const models::GgufTensor& tensor : file.tensors()) {
    TypeTotals& totals = report.types[models::ggml_type_info(tensor.type).name];
    const std::uint64_t n = tensor.dims[0] * tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
    ++totals.n_tensors;
    totals.n_parameters += n;
    totals.bytes += tensor.size_bytes;
    report.tensor_bytes += tensor.size_bytes;
    if (tensor.name != "rope_freqs.weight") report.n_parameters += n;  // a table, not learned
  }
}

/// "2 x 5 layers x 2 KV heads x 32 head width x 256 tokens x 2 bytes", one such term for each run of equal caches, of sources or not.
std::string kv_formula(std::span<const models::CacheSpec> all, bool of_source, graph::Type kv_type, std::uint32_t n_ctx) {
  std::vector<models::CacheSpec> caches;
  std::copy_if(all.begin(), all.end(), std::back_inserter(caches), [&](const models::CacheSpec& spec) { return (spec.extent == models::CacheExtent::kSource) == of_source; });
  std::string formula;
  for (std::size_t first = 0; first < caches.size();) {
    const models::CacheSpec& spec = caches[first];
    const auto alike = [&](const models::CacheSpec& other) { return other.n_heads == spec.n_heads && other.key_width == spec.key_width && other.value_width == spec.value_width; };
    std::size_t n = 1;
    while (first + n < caches.size() && alike(caches[first + n])) ++n;
    const graph::CacheLayout row = graph::cache_layout(kv_type, 1, spec.key_width);
    const std::string term = kv_type == graph::Type::kQ8_0
                                 ? fmt::format("2 x {} layers x {} KV heads x {} tokens x ({} bytes of quants + {} of scales)", n, spec.n_heads, n_ctx, row.row_elements, 4 * row.scale_row_words)
                                 : fmt::format("2 x {} layers x {} KV heads x {} head width x {} tokens x {} bytes", n, spec.n_heads, row.row_elements, n_ctx, kv_type == graph::Type::kF16 ? 2 : 4);
    formula += (formula.empty() ? "" : " + ") + term;
    first += n;
  }
  return formula;
}

bool is_linear(const runtime::Dispatch& dispatch) { return dispatch.label.starts_with("linear") || dispatch.label.starts_with("expert_linear"); }

void count_linears(const models::SessionPlan& whole, PlanReport& plan) {
  const auto fewest = std::min_element(whole.steps.begin(), whole.steps.end(), [](const models::PlannedStep& a, const models::PlannedStep& b) { return a.kind.rows < b.kind.rows; });
  if (fewest == whole.steps.end()) return;
  const runtime::Program& program = fewest->lowered.program;
  plan.step = plan.encodes ? fmt::format("{} rows", fewest->kind.rows) : "a token";
  for (const runtime::Dispatch& dispatch : program.dispatches) {
    plan.n_linears += is_linear(dispatch);
    plan.n_rounding += graph::by_integer_dots(program.kernels[dispatch.kernel]);
    plan.n_half_dot_attention += dispatch.label.starts_with("attention") && graph::by_half_dots(program.kernels[dispatch.kernel]);
  }
  const auto most = std::max_element(whole.steps.begin(), whole.steps.end(), [](const models::PlannedStep& a, const models::PlannedStep& b) { return a.kind.rows < b.kind.rows; });
  plan.most_rows = static_cast<std::uint32_t>(most->kind.rows);
  for (const runtime::Dispatch& dispatch : most->lowered.program.dispatches) {
    const runtime::Kernel& kernel = most->lowered.program.kernels[dispatch.kernel];
    plan.n_linears_of_most += is_linear(dispatch);
    plan.n_rounding_of_most += graph::by_integer_dots(kernel);
    if (graph::by_half_dots(kernel) && !dispatch.label.starts_with("attention")) ++(is_linear(dispatch) ? plan.n_half_dot : plan.n_half_dot_others);
    (is_linear(dispatch) ? plan.n_matrix : dispatch.label.starts_with("attention") ? plan.n_matrix_attention : plan.n_matrix_others) += graph::by_matrix_units(kernel);
  }
}

Result<Device> open_chosen(const GlobalFlags& flags) {
  RONDO_ASSIGN(const Instance instance, open_instance(flags));
  return open_device(flags, instance);
}

/// What decides a plan besides the model and its options.
struct PlannedDevice {
  std::string name;
  runtime::DeviceCaps caps;
  models::TunedKernels tuned;
};
Result<PlannedDevice> with_tuned(const GlobalFlags& flags, const Device& device) {
  PlannedDevice planned{device.info().name, device.internal().caps(), {}};
  if (!TuningFile::is_any_there(flags)) return planned;
  RONDO_ASSIGN(const std::string text, TuningFile(device, flags).load());
  planned.tuned = models::tuned_kernels(device.internal(), text);
  return planned;
}

/// Which of a plan's choices are by measurements.
void note_tuned(const PlannedDevice& device, const models::SessionPlan& whole, PlanReport& plan) {
  if (device.tuned.empty()) return;
  plan.tuned_on = device.name;
  for (const models::PlannedStep& step : whole.steps) {
    for (const runtime::Dispatch& dispatch : step.lowered.program.dispatches) {
      if (device.tuned.contains(dispatch.choice)) plan.tuned[dispatch.choice] = dispatch.label;
    }
  }
}

/// The same beside the plan of a profile, if the device that the flags choose was tuned. Errors: those of a file that was named.
Status find_tuned(const GlobalFlags& flags, const models::Checkpoint& checkpoint, PlanReport& plan) {
  if (!TuningFile::is_any_there(flags)) return {};
  const Result<Device> chosen = open_chosen(flags);
  if (!chosen.ok()) return flags.tuning.empty() ? Status() : chosen.status();
  RONDO_ASSIGN(const PlannedDevice device, with_tuned(flags, *chosen));
  models::PlanOptions options = flags.model_options();
  options.tuned = device.tuned;
  const Result<models::SessionPlan> whole = models::plan_whole(checkpoint, device.caps, options, plan.n_ctx);
  if (whole.ok()) note_tuned(device, *whole, plan);
  return {};
}

/// What a plan is for: a profile, which needs no Vulkan, or the device that --device names.
Result<PlannedDevice> planned_device(const GlobalFlags& flags, bool of_profile) {
  if (!of_profile) {
    RONDO_ASSIGN(const Device device, open_chosen(flags));
    return with_tuned(flags, device);
  }
  RONDO_ASSIGN(const std::optional<DeviceProfile> profile, find_profile(flags.as.empty() ? "baseline" : flags.as));
  return PlannedDevice{profile->name(), profile->internal(), {}};
}

Result<PlanReport> make_plan(const GlobalFlags& flags, const InfoFlags& own, const models::Checkpoint& checkpoint) {
  const bool of_profile = !flags.names_device || !flags.as.empty();
  RONDO_ASSIGN(const PlannedDevice device, planned_device(flags, of_profile));
  const models::Network& network = checkpoint.network;
  models::PlanOptions options = flags.model_options();
  options.tuned = device.tuned;
  PlanReport plan;
  plan.device = device.name;
  plan.of_profile = of_profile;
  plan.encodes = !network.find(models::Role::kDecode);
  const std::uint32_t usual = plan.encodes ? (network.facts.context ? models::default_text(network) : network.facts.image_rows) : models::default_context(network);
  const std::uint32_t most = network.facts.context ? network.facts.context : network.facts.image_rows;
  if (own.ctx > 0 && plan.encodes && (network.facts.context == 0 || own.ctx > most)) return Status(StatusCode::kInvalidArgument, fmt::format("--ctx is {} but {} was made for {}", own.ctx, own.model, most));
  plan.n_ctx = own.ctx ? own.ctx : usual;
  plan.kv_type = models::kv_type_of(options);
  plan.weight_bytes = models::weight_bytes(network.blocks);
  plan.kv_bytes_per_token = models::kv_bytes_per_token(network.caches, plan.kv_type);
  plan.kv_bytes = plan.kv_bytes_per_token * plan.n_ctx;
  plan.kv_formula = plan.encodes ? "" : fmt::format("{} = {}", kv_formula(network.caches, false, plan.kv_type, plan.n_ctx), plan.kv_bytes);
  plan.n_source = plan.encodes ? 0 : models::default_source(network);
  for (const models::CacheSpec& spec : network.caches) {
    if (spec.extent != models::CacheExtent::kSource) continue;
    for (const std::int64_t width : {spec.key_width, spec.value_width}) plan.source_bytes += graph::cache_layout(plan.kv_type, plan.n_source, width).size_bytes * static_cast<std::uint64_t>(spec.n_heads);
  }
  if (plan.n_source > 0) plan.source_formula = fmt::format("{} = {}", kv_formula(network.caches, true, plan.kv_type, plan.n_source), plan.source_bytes);
  Result<models::SessionPlan> whole = models::plan_whole(checkpoint, device.caps, options, plan.n_ctx);
  if (whole.ok()) {
    count_linears(*whole, plan);
    note_tuned(device, *whole, plan);
    plan.memory = std::move(whole->memory);
  } else if (whole.status().code() == StatusCode::kUnsupported || whole.status().code() == StatusCode::kOutOfMemory) {
    plan.refusal = whole.status().message();
  } else {
    return whole.status();
  }
  if (of_profile) RONDO_TRY(find_tuned(flags, checkpoint, plan));
  return plan;
}

Result<ModelReport> make_report(const GlobalFlags& flags, const InfoFlags& own) {
  RONDO_ASSIGN(ByteSource source, open_model(own.model, own.open));
  const std::uint64_t file_bytes = source.size_bytes;
  RONDO_ASSIGN(models::GgufFile file, models::GgufFile::parse(source));
  ModelReport report{own.model, file_bytes, std::move(file), {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, 0, 0, {}, {}, {}, {}, {}};
  describe_file(report);
  if (report.context && own.ctx > *report.context) {
    return Status(StatusCode::kInvalidArgument, fmt::format("--ctx is {} but {} was made for {}", own.ctx, own.model, *report.context));
  }
  if (report.file.tensors().empty()) {
    report.no_plan = "the file holds a vocabulary but no weights";
    return report;
  }
  const Result<std::unique_ptr<const models::Checkpoint>> checkpoint = models::open_checkpoint(std::move(source));
  if (!checkpoint.ok()) {
    if (checkpoint.status().code() != StatusCode::kUnsupported) return checkpoint.status();
    report.no_plan = checkpoint.status().message();
    return report;
  }
  report.n_parameters = (*checkpoint)->n_parameters;
  const models::NetworkFacts& facts = (*checkpoint)->network.facts;
  report.n_vocab = facts.n_vocab > 0 ? std::optional(facts.n_vocab) : std::nullopt;
  report.parts = (*checkpoint)->network.parts;
  report.image = facts.image;
  RONDO_ASSIGN(report.plan, make_plan(flags, own, **checkpoint));
  return report;
}

json plan_json(const PlanReport& plan) {
  json document{{"device", plan.device},
                {"n_ctx", plan.n_ctx},
                {"kv_type", graph::type_name(plan.kv_type)},
                {"weight_bytes", plan.weight_bytes},
                {"kv_bytes_per_token", plan.kv_bytes_per_token},
                {"kv_bytes", plan.kv_bytes},
                {"kv_formula", plan.kv_formula},
                {"n_source", plan.n_source},
                {"source_bytes", plan.source_bytes},
                {"source_formula", plan.source_formula},
                {"activations", {{"linears", plan.n_linears}, {"rounding", plan.n_rounding}, {"most_rows", plan.most_rows}, {"linears_of_most_rows", plan.n_linears_of_most}, {"rounding_of_most_rows", plan.n_rounding_of_most}, {"by_half_dots", plan.n_half_dot}, {"attention_by_half_dots", plan.n_half_dot_attention}, {"others_by_half_dots", plan.n_half_dot_others}, {"by_matrix_units", plan.n_matrix}, {"attention_by_matrix_units", plan.n_matrix_attention}, {"others_by_matrix_units", plan.n_matrix_others}}},
                {"refusal", plan.memory ? json() : json(plan.refusal)},
                {"tuned", plan.tuned_on.empty() ? json() : json{{"device", plan.tuned_on}, {"choices", plan.tuned}}}};
  for (const char* key : {"activation_bytes", "unaliased_activation_bytes", "constant_bytes", "staging_bytes", "device_bytes", "host_bytes"}) document[key] = nullptr;
  document["buffers"] = json::array();
  if (!plan.memory) return document;
  const models::MemoryPlan& memory = *plan.memory;
  document["activation_bytes"] = memory.activation_bytes;
  document["unaliased_activation_bytes"] = memory.unaliased_activation_bytes;
  document["constant_bytes"] = memory.constant_bytes;
  document["staging_bytes"] = memory.staging_bytes;
  document["device_bytes"] = memory.total_bytes(runtime::MemoryIntent::kDevice);
  document["host_bytes"] = memory.total_bytes(runtime::MemoryIntent::kReadback);
  for (const models::Slot& buffer : memory.slots) {
    if (buffer.size_bytes == 0) continue;
    document["buffers"].push_back(
        {{"name", buffer.name}, {"size_bytes", buffer.size_bytes}, {"memory", buffer.intent == runtime::MemoryIntent::kDevice ? "device" : "host"}});
  }
  return document;
}

std::string as_json(const ModelReport& report) {
  const auto number = [](const std::optional<std::uint32_t>& value) { return value ? json(*value) : json(); };
  json types = json::array(), metadata = json::object(), parts = json::array();
  for (const models::NetworkPart& part : report.parts) parts.push_back({{"name", part.name}, {"formula", part.formula}, {"parameters", part.n}});
  for (const auto& [type, totals] : report.types) {
    types.push_back({{"type", type}, {"count", totals.n_tensors}, {"parameters", totals.n_parameters}, {"bytes", totals.bytes}});
  }
  for (const models::GgufMetadata& entry : report.file.metadata()) metadata[entry.key] = entry.value.text();
  const json document{{"file", {{"path", report.path}, {"size_bytes", report.file_bytes}, {"gguf_version", report.file.version()}}},
                      {"architecture", report.architecture},
                      {"name", report.name},
                      {"n_layers", number(report.n_layers)},
                      {"width", number(report.width)},
                      {"ffn", number(report.ffn)},
                      {"n_heads", number(report.n_heads)},
                      {"n_kv_heads", number(report.n_kv_heads)},
                      {"head_dim", number(report.head_dim)},
                      {"context", number(report.context)},
                      {"n_vocab", number(report.n_vocab)},
                      {"tokenizer", {{"kind", report.tokenizer}, {"pre", report.pre_tokenizer}}},
                      {"n_parameters", report.n_parameters},
                      {"parts", parts},
                      {"tensors", {{"count", report.file.tensors().size()}, {"bytes", report.tensor_bytes}, {"types", types}}},
                      {"plan", report.plan ? plan_json(*report.plan) : json()},
                      {"no_plan", report.plan ? json() : json(report.no_plan)},
                      {"metadata", metadata}};
  return document.dump(1, ' ', false, json::error_handler_t::replace);  // paths and metadata may hold anything
}

std::string text_of(const std::optional<std::uint32_t>& value) { return value ? fmt::format("{}", *value) : "?"; }

std::string megabytes(std::uint64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

void print_plan(const PlanReport& plan) {
  const std::string device = (plan.of_profile ? "device profile " : "device ") + plan.device;
  if (plan.encodes) fmt::print("\nmemory plan: an encoder of up to {} rows of each input, {} at once, {}\n", plan.n_ctx, EncoderOptions().max_batch, device);
  else fmt::print("\nmemory plan: context of {} tokens, KV cache {}, {}\n", plan.n_ctx, graph::type_name(plan.kv_type), device);
  const auto line = [](const char* what, std::uint64_t bytes, const std::string& more) { fmt::print("  {:<12} {:>14} bytes  {:>11}{}{}\n", what, bytes, megabytes(bytes), more.empty() ? "" : "  ", more); };
  line("weights", plan.weight_bytes, "");
  if (!plan.encodes) {
    line("KV cache", plan.kv_bytes, plan.kv_formula);
    line("  per token", plan.kv_bytes_per_token, "");
  }
  if (plan.n_source > 0) line("  of a source", plan.source_bytes, plan.source_formula);
  if (!plan.memory) {
    fmt::print("  it can't run there: {}\n", plan.refusal);
    return;
  }
  const models::MemoryPlan& memory = *plan.memory;
  if (plan.n_rounding > 0) fmt::print("  {} of the {} linears of {} round their activations to bytes (--activations)\n", plan.n_rounding, plan.n_linears, plan.step);
  if (plan.n_rounding_of_most > 0 && plan.step != fmt::format("{} rows", plan.most_rows)) fmt::print("  {} of the {} linears of {} rows round their activations to bytes (--activations)\n", plan.n_rounding_of_most, plan.n_linears_of_most, plan.most_rows);
  if (plan.n_half_dot > 0) fmt::print("  {} of the {} linears of {} rows are multiplied in f16, two products by an instruction (--activations)\n", plan.n_half_dot, plan.n_linears_of_most, plan.most_rows);
  if (plan.n_half_dot_others > 0) fmt::print("  other products of {} rows are computed in f16, two by an instruction, in {} {} of a step (--activations)\n", plan.most_rows, plan.n_half_dot_others, plan.n_half_dot_others == 1 ? "place" : "places");
  if (plan.n_half_dot_attention > 0) fmt::print("  attention of {} multiplies queries in f16, two products by an instruction, in {} {} of a step (--activations)\n", plan.step, plan.n_half_dot_attention, plan.n_half_dot_attention == 1 ? "place" : "places");
  if (plan.n_matrix > 0) fmt::print("  {} of the {} linears of {} rows are multiplied in f16 by matrix units (--activations)\n", plan.n_matrix, plan.n_linears_of_most, plan.most_rows);
  if (plan.n_matrix_attention > 0) fmt::print("  attention of {} rows is computed in f16 by matrix units, in {} {} of a step (--activations)\n", plan.most_rows, plan.n_matrix_attention, plan.n_matrix_attention == 1 ? "place" : "places");
  if (plan.n_matrix_others > 0) fmt::print("  other products of {} rows are computed in f16 by matrix units, in {} {} of a step (--activations)\n", plan.most_rows, plan.n_matrix_others, plan.n_matrix_others == 1 ? "place" : "places");
  line("activations", memory.activation_bytes, fmt::format("{} before aliasing", memory.unaliased_activation_bytes));
  line("tables", memory.constant_bytes, "");
  line("in all", memory.total_bytes(runtime::MemoryIntent::kDevice), "of device memory, with step state, tokens and alignment");
  line("host", memory.total_bytes(runtime::MemoryIntent::kReadback), "for the tokens that come back");
  line("staging", memory.staging_bytes, "at most, and only while loading");
  if (plan.tuned.empty()) return;
  fmt::print("\nchosen by rondo tune, on {}\n", plan.tuned_on);
  for (const auto& [choice, label] : plan.tuned) fmt::print("  {}: {}\n", choice, label);
}

void print_text(const ModelReport& report) {
  fmt::print("{}: {}, GGUF version {}, {}\n", report.name.empty() ? report.path : report.name, report.architecture.empty() ? "no architecture" : report.architecture,
             report.file.version(), megabytes(report.file_bytes));
  fmt::print("  layers {}, width {}, feed-forward {}\n", text_of(report.n_layers), text_of(report.width), text_of(report.ffn));
  fmt::print("  heads {} of width {}, KV heads {}\n", text_of(report.n_heads), text_of(report.head_dim), text_of(report.n_kv_heads));
  if (report.image.n_values() > 0) fmt::print("  images of {} x {} with {} channels\n", report.image.width, report.image.height, report.image.channels);
  fmt::print("  context {}, vocabulary {}, tokenizer {}{}\n", text_of(report.context), text_of(report.n_vocab), report.tokenizer.empty() ? "none" : report.tokenizer,
             report.pre_tokenizer.empty() ? "" : fmt::format(" ({})", report.pre_tokenizer));
  fmt::print("  parameters {} ({:.2f} M)\n", report.n_parameters, static_cast<double>(report.n_parameters) / 1e6);
  for (const models::NetworkPart& part : report.parts) fmt::print("    {:<16} {:>12} = {}\n", part.name, part.n, part.formula);
  if (!report.types.empty()) fmt::print("\n{:<8} {:>8} {:>14} {:>14}\n", "type", "tensors", "parameters", "bytes");
  for (const auto& [type, totals] : report.types) fmt::print("{:<8} {:>8} {:>14} {:>14}\n", type, totals.n_tensors, totals.n_parameters, totals.bytes);
  if (report.plan) print_plan(*report.plan);
  else fmt::print("\nno memory plan: {}\n", report.no_plan);
  fmt::print("\nmetadata\n");
  for (const models::GgufMetadata& entry : report.file.metadata()) fmt::print("  {} = {}\n", models::printable(entry.key), entry.value.text());
}

}  // namespace

int run_info(const GlobalFlags& flags, const InfoFlags& own) {
  if (own.model.empty() == own.graph.empty()) return report("info takes a model or a graph file: one of --model and --graph is required; see rondo info --help", kUsage);
  if (!own.graph.empty()) return run_graph_info(flags, own);
  const Result<ModelReport> made = make_report(flags, own);
  if (!made.ok()) return report(made.status());
  if (own.json) fmt::print("{}\n", as_json(*made));
  else print_text(*made);
  return kDone;
}

}  // namespace rondo::tools
