// Tiny random decoders as GGUF files in memory, one of each family: two layers or more, odd sizes, and norms, scales and biases
// so far from 1 and 0 that leaving one out shows. Made from a seed, the same everywhere.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::tests {

/// What a file of a family has.
struct FamilyFile {
  const char* name = "";          ///< of the case; the family's, or with what is special behind it
  const char* architecture = "";
  bool layer_norm = false, norm_bias = false;
  bool fused_qkv = false, qkv_bias = false, output_bias = false;
  bool gated = true, fused_gate = false, ffn_bias = false;
  int head_norm = 0;              ///< of queries and keys: 1 of each head's elements, 2 of all together, 3 of each head by itself
  bool norms_before = true, norms_behind = false;
  bool ffn_norm = true, second_norm = false;
  bool positions = false, embedding_norm = false;
  bool head = false, head_bias = false;
  std::uint32_t n_layers = 2, n_heads = 6, n_kv_heads = 2, head_dim = 16, width = 96;
  std::uint32_t window = 0;
  std::string_view window_layers = {};  ///< "1110": which layers have it; empty: the family's
  std::uint32_t context = 96;
  std::uint32_t rotated = 0;      ///< dimensions; 0: no key
  double theta = 0;               ///< 0: no key
  const char* scaling = nullptr;  ///< rope.scaling.type
  float scaling_factor = 0;
  std::uint32_t original_context = 0;
  int rope_factors = 0;           ///< 1: rope_freqs, 2: short and long
  float attention_softcap = 0, final_softcap = 0, embedding_scale = 0, residual_scale = 0, logit_scale = 0, attention_scale = 0, max_alibi_bias = 0;
  std::uint32_t n_experts = 0, experts_used = 0, expert_ffn = 0, shared_ffn = 0;
  bool expert_bias = false;       ///< and of the router
  bool sinks = false;
  int parallel_key = -1;          ///< use_parallel_residual: 0, 1, or none
};

std::span<const FamilyFile> family_files();
inline void PrintTo(const FamilyFile& family, std::ostream* stream) { *stream << family.name; }

/// What is wrong with a file, on purpose.
struct FamilyFault {
  std::string without;      ///< a tensor or key that is left out
  std::string changed_key;  ///< a key of the family's that has another value:
  enum class Value { kText, kZero, kHuge, kNegative, kNan } value = Value::kText;
};

/// The file's bytes. `names`, if given, gets the names of its tensors and of the family's own keys.
std::string build_family_file(const FamilyFile& family, std::uint32_t seed, const FamilyFault& fault = {}, std::vector<std::string>* names = nullptr);

}  // namespace rondo::tests
