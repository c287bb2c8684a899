// The keys of a GGUF file below its architecture's name, with the file's errors.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <rondo/status.h>

#include "graph/graph.h"
#include "models/arch/layers.h"
#include "models/formats/gguf.h"
#include "models/network.h"
#include "runtime/fmt.h"

namespace rondo::models {

class ArchitectureKeys {
 public:
  explicit ArchitectureKeys(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + '.') {}

  std::string name(const char* key) const { return prefix_ + key; }
  bool has(const char* key) const { return file_.has(name(key)); }
  Result<std::uint32_t> u32_or(const char* key, std::uint32_t fallback) const { return file_.u32_or(name(key), fallback); }
  Result<bool> boolean_or(const char* key, bool fallback) const { return file_.boolean_or(name(key), fallback); }
  bool is_array(const char* key) const {
    const GgufValue* value = file_.find(name(key));
    return value && value->type == GgufValueType::kArray;
  }
  Result<std::span<const std::uint8_t>> booleans(const char* key) const { return file_.booleans(name(key)); }
  Result<std::string_view> string_or(const char* key, std::string_view fallback) const { return file_.string_or(name(key), fallback); }

  /// A positive integer of at most `limit`.
  Status read_count(const char* key, std::uint32_t limit, std::uint32_t& value) const {
    RONDO_ASSIGN(value, file_.u32(name(key)));
    return check_count(key, limit, value);
  }
  /// The same, but `fallback` where the key is absent.
  Status read_count_or(const char* key, std::uint32_t limit, std::uint32_t fallback, std::uint32_t& value) const {
    RONDO_ASSIGN(value, file_.u32_or(name(key), fallback));
    return check_count(key, limit, value);
  }

  /// A finite number above 0 (or 0 too, where that means that there is none); `value` stays where the key is absent.
  Status read_positive(const char* key, double& value, bool or_zero = false) const {
    if (!has(key)) return {};
    RONDO_ASSIGN(const float found, file_.f32(name(key)));
    if (!std::isfinite(found) || found < 0 || (found == 0 && !or_zero)) return corrupt(key, fmt::format("is {} but must be positive", found));
    value = static_cast<double>(found);
    return {};
  }

  /// kNotFound where there is none.
  Status need(const char* key) const { return has(key) ? Status() : Status(StatusCode::kNotFound, fmt::format("{}: metadata key '{}' is missing", file_.name(), name(key))); }

  Status corrupt(const char* key, const std::string& what) const {
    return Status(StatusCode::kCorruptData, fmt::format("{}: metadata key '{}' {}", file_.name(), name(key), what));
  }
  Status unsupported(const char* key, const std::string& what) const {
    return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key '{}'{}", file_.name(), name(key), what));
  }

 private:
  Status check_count(const char* key, std::uint32_t limit, std::uint32_t value) const {
    return value >= 1 && value <= limit ? Status() : corrupt(key, fmt::format("is {} but must be in [1, {}]", value, limit));
  }

  const GgufFile& file_;
  std::string prefix_;
};

/// general.name, made printable.
Status read_name(const GgufFile& file, NetworkFacts& facts);
/// How many tokens an embedding has. Errors: kCorruptData (missing, or no matrix of at most 2^24 rows).
Status read_vocabulary(const GgufFile& file, const char* tensor, std::uint32_t& n_vocab);
/// The epsilon of a network's norms, which must be there.
Status read_epsilon(const ArchitectureKeys& keys, NormConfig& norm);
/// A function by its name; `activation` stays where the key is absent.
Status read_activation(const GgufFile& file, const char* key, graph::Activation& activation);
/// kUnsupported, naming it, where the file has a tensor that no part of the network took.
Status check_all_found(const GgufFile& file, const WeightFinder& find, std::string_view architecture);

}  // namespace rondo::models
