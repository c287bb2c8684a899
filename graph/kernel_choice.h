// Which of an operator's kernels: a table of what there is, what each needs, and what fits a device best.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/lowering.h"
#include "graph/operator.h"

namespace rondo::graph {

inline bool is_cpu(const runtime::DeviceCaps& caps) { return caps.type == runtime::DeviceType::kCpu; }

/// The kernel is "matrix" of linears, matmul or attention, with activations in f32 or f16.
inline bool by_matrix_units(const runtime::Kernel& kernel) {
  const runtime::Shader shader = runtime::f16_variant(kernel.shader);
  return shader == runtime::Shader::linear_matrix_f16 || shader == runtime::Shader::matmul_matrix_f16 || shader == runtime::Shader::attention_matrix_f16;
}

/// The kernel multiplies factors in f16 two by an instruction: linear's and matmul's "half_tiled", attention's "half_subgroup".
inline bool by_half_dots(const runtime::Kernel& kernel) {
  const runtime::Shader shader = runtime::f16_variant(kernel.shader);
  return shader == runtime::Shader::linear_half_tiled_f16 || shader == runtime::Shader::matmul_half_tiled_f16 || kernel.shader == runtime::Shader::attention_half_subgroup;
}

/// The kernel rounds factors to f16, as far as they are not: those of both kinds; by the name that a table has for it, too.
inline bool rounds_to_halves(std::string_view kernel) { return kernel == "matrix" || kernel.starts_with("half_"); }
inline bool rounds_to_halves(const runtime::Kernel& kernel) { return by_matrix_units(kernel) || by_half_dots(kernel); }

/// The kernel rounds activations to bytes, and so takes weights of blocks only; by the name that a table has for it, too.
inline bool by_integer_dots(std::string_view kernel) { return kernel == "dot" || kernel == "dot_tiled"; }
inline bool by_integer_dots(const runtime::Kernel& kernel) { return kernel.shader == runtime::Shader::linear_dot || kernel.shader == runtime::Shader::linear_dot_tiled; }

/// The kernel takes weights, or keys and values, of f16 only; by the name that a table has for it.
inline bool takes_only_f16(std::string_view kernel) { return kernel == "halves" || kernel == "half_subgroup"; }

/// The kernel that a dispatch of this operator is of, by its label ("tiled" of "linear tiled q4_0"), or "": it makes what a kernel needs beside ("expert
/// tiles", "attention tables", "linear combine").
std::string_view kernel_in_label(const Operator& op, std::string_view label);

/// The same of a dispatch that was chosen for something, "" too where it was not. A choice begins with its operator's name.
std::string_view chosen_kernel(const runtime::Dispatch& dispatch);

/// One kernel of an operator. `Call` is what of a node decides: shapes and types. `Emit` is the function that emits its dispatch.
template <typename Call, typename Emit>
struct KernelEntry {
  const char* name;
  /// What the device or the call lacks, in words that follow "needs", or "".
  std::string (*lacks)(const runtime::DeviceCaps& caps, const Call& call);
  /// Upper bound of the iterations of an invocation's loops: drivers may end them early, and say nothing.
  std::uint64_t (*iterations)(const runtime::DeviceCaps& caps, const Call& call);
  /// The more, the better it fits; of equals the first is taken.
  int (*rank)(const runtime::DeviceCaps& caps, const Call& call);
  Emit emit;
};

/// Which choice it is.
struct KernelChoice {
  std::string_view op;      ///< the operator's name
  std::string key;          ///< all that decides how fast its kernels are on one device: "linear q4_0 f32 512 x 4096 x 4096", or "" where nothing is measured
  std::string_view forced;  ///< the kernel that the user wants, or ""
  std::span<const char* const> kernels = {};  ///< those of the table that the operator has; empty: all

  bool allows(std::string_view kernel) const;  ///< the operator has it, and no other is forced
};

/// What decides about one kernel of a table.
struct KernelCandidate {
  const char* name;
  std::size_t place;  ///< in the table
  int rank;
  std::string lacks;
  std::uint64_t iterations;
  bool is_quarantined;
};

/// The place of one of `candidates`, which are those that the choice allows, in the table's order: of those that can run the best by rank, unless
/// measurements favour another, and the first that is not in quarantine; if all are, the first. Errors: kUnsupported (none can run: what the best
/// lacks, or with `advice` that its loops would be ended).
Result<std::size_t> choose_candidate(const Lowering& lowering, std::vector<KernelCandidate> candidates, const KernelChoice& choice, std::string_view advice);

/// The kernel of `table` that is forced, or else the best of those that the operator has, by choose_candidate, as are the errors. `label_of` tells
/// the label that a kernel by this name would have.
template <typename Call, typename Emit, typename LabelOf>
Result<const KernelEntry<Call, Emit>*> choose_kernel(const Lowering& lowering, std::span<const KernelEntry<Call, Emit>> table, const Call& call, const KernelChoice& choice, const LabelOf& label_of,
                                                       std::string_view advice = "") {
  const runtime::DeviceCaps& caps = lowering.caps();
  std::vector<KernelCandidate> candidates;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const KernelEntry<Call, Emit>& entry = table[i];
    if (!choice.allows(entry.name)) continue;
    std::string lacks = entry.lacks(caps, call);
    const std::uint64_t iterations = lacks.empty() ? entry.iterations(caps, call) : 0;  // what it lacks may be the tile that they are counted by
    candidates.push_back({entry.name, i, entry.rank(caps, call), std::move(lacks), iterations, lowering.is_quarantined(label_of(entry.name))});
  }
  RONDO_ASSIGN(const std::size_t place, choose_candidate(lowering, std::move(candidates), choice, advice));
  return &table[place];
}

}  // namespace rondo::graph
