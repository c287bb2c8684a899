// Other people's SPIR-V modules, to be compiled beside ours: a folder with modules.json.
//
//   {"name": "llama.cpp b1234", "n_bindings": 12, "push_bytes": 128,
//    "modules": [{"name": "mul_mat_vec_q4_0", "file": "mul_mat_vec_q4_0.spv", "beside": "linear subgroup q4_0 kTokens=1",
//                 "chips": ["navi21"], "constants": [64, 1], "subgroup_size": 64, "full_subgroups": true, "products": 32}]}
//
// n_bindings (64 at most) and push_bytes (256 at most) are the most of all modules. Without subgroup_size and full_subgroups the driver chooses; without
// chips a module is for all. Specialization constants are 0, 1, 2, ... products: of a weight and an activation (of keys and queries, of values and
// probabilities) in an iteration of the largest loop as it is unrolled; without it all multiplications count, those of scales too. tools/fetch_peer_kernels.py makes such a folder.
#pragma once

#include <string>
#include <vector>

#include <rondo/status.h>

#include "tools/isa/compiler.h"
#include "tools/isa/kernel_pattern.h"

namespace rondo::isa {

struct ForeignModule {
  std::string name;
  KernelPattern beside;  ///< our kernels that it is put beside: the first that fits
  std::vector<std::string> chips;
  Module module;
  std::uint32_t products = 0;  ///< 0: not told
};

/// The bytes of a file. Errors: kNotFound, kIo.
Result<std::string> read_text(const std::string& path);

/// Those of a folder that are for the device. Errors: kNotFound, kIo, kCorruptData, naming the file and field.
Result<std::vector<ForeignModule>> read_foreign_modules(const std::string& folder, std::string_view device_name);

}  // namespace rondo::isa
