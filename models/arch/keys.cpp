#include "models/arch/keys.h"

#include <optional>

#include "graph/activation.h"
#include "models/printable.h"
#include "models/utf8.h"

namespace rondo::models {

Status read_name(const GgufFile& file, NetworkFacts& facts) {
  if (!file.has("general.name")) return {};
  RONDO_ASSIGN(const std::string_view name, file.string("general.name"));
  Utf8Stream text;  // files promise UTF-8 but hold anything
  facts.name = text.add(printable(name));
  facts.name += text.finish();
  return {};
}

Status read_vocabulary(const GgufFile& file, const char* tensor, std::uint32_t& n_vocab) {
  const auto corrupt = [&](const char* what) { return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' {}", file.name(), tensor, what)); };
  const GgufTensor* embedding = file.find_tensor(tensor);
  if (!embedding) return corrupt("is missing");
  if (embedding->n_dims != 2 || embedding->dims[1] > (1u << 24)) return corrupt("is not a matrix of at most 2^24 rows");
  n_vocab = static_cast<std::uint32_t>(embedding->dims[1]);
  return {};
}

Status read_epsilon(const ArchitectureKeys& keys, NormConfig& norm) {
  const char* epsilon = norm.kind == NormKind::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  RONDO_TRY(keys.need(epsilon));
  RONDO_TRY(keys.read_positive(epsilon, norm.epsilon));
  return norm.epsilon < 1 ? Status() : keys.corrupt(epsilon, fmt::format("is {} but must be in (0, 1)", norm.epsilon));
}

Status read_activation(const GgufFile& file, const char* key, graph::Activation& activation) {
  RONDO_ASSIGN(const std::string_view name, file.string_or(key, graph::activation_name(activation)));
  const std::optional<graph::Activation> found = graph::find_activation(name);
  if (!found) return file.key_error(key, fmt::format("is '{}', which is no activation ({} are)", printable(name), fmt::join(graph::activation_names(), ", ")));
  activation = *found;
  return {};
}

Status check_all_found(const GgufFile& file, const WeightFinder& find, std::string_view architecture) {
  for (const GgufTensor& tensor : file.tensors()) {
    const bool unused = tensor.name.ends_with(".cross_attn_rel_b.weight");  // of old T5 files
    if (find.was_found(tensor.name) || unused) continue;
    return Status(StatusCode::kUnsupported, fmt::format("{}: tensor '{}' is none that a {} has, or not there yet", file.name(), printable(tensor.name), architecture));
  }
  return {};
}

}  // namespace rondo::models
