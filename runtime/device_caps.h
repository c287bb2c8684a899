// What decisions may depend on: the limits and features of a device, as plain data.
//
// For a device made by Rondo these are what it enabled; for an imported one what its owner enabled. Profiles clamp them,
// so that choices made for another device run here. No Vulkan header, no threads, copyable.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rondo::runtime {

enum class DeviceType : std::uint8_t { kDiscrete, kIntegrated, kVirtual, kCpu, kOther };

/// Of matrices that a subgroup multiplies by an instruction: rows x depth by depth x columns of f16, summed up in f32.
struct MatrixShape {
  std::uint32_t rows = 0, columns = 0, depth = 0;
  bool operator==(const MatrixShape&) const = default;
};

/// Of whichever types: left (rows x depth) times right (depth x columns) plus sums, by all invocations of a scope.
struct MatrixProduct {
  MatrixShape shape;
  std::string left, right, sums;  ///< "f16", "bf16", "f32", "i8", ...
  std::string scope;              ///< "subgroup", "workgroup", ...
  bool operator==(const MatrixProduct&) const = default;
};

/// What a step took.
struct MeasuredStep {
  std::uint64_t weight_bytes = 0;  ///< of its model
  std::uint32_t rows = 0;          ///< tokens
  double ns = 0;
};

struct DeviceCaps {
  std::string name;
  std::string driver;
  DeviceType type = DeviceType::kOther;
  std::uint32_t vendor_id = 0;

  std::uint64_t max_storage_range_bytes = 128u << 20;
  std::uint64_t max_allocation_bytes = 1u << 30;
  std::uint64_t memory_budget_bytes = 0;  ///< size of the device-local heap
  std::uint32_t storage_offset_alignment = 256;
  std::uint32_t non_coherent_atom_bytes = 256;

  std::uint32_t max_storage_buffers = 8;
  std::uint32_t max_invocations = 128;
  std::uint32_t max_shared_bytes = 16384;
  std::uint32_t max_push_bytes = 128;
  std::array<std::uint32_t, 3> max_grid{65535, 65535, 65535};

  std::uint32_t min_subgroup_size = 1;
  std::uint32_t max_subgroup_size = 128;
  /// Sizes that a kernel can rely on for its subgroups, because it requires them or there is one only; 0 and 0: none.
  std::uint32_t min_required_subgroup_size = 0;
  std::uint32_t max_required_subgroup_size = 0;
  std::uint32_t max_workgroup_subgroups = 32;  ///< of a workgroup of kernels that require their size
  bool subgroup_shuffle = false;  ///< subgroupShuffle in compute shaders
  bool subgroup_arithmetic = false;  ///< subgroupAdd and its like in compute shaders
  bool integer_dot = false;          ///< shaderIntegerDotProduct: products of four bytes that are packed in a word
  bool fast_integer_dot = false;     ///< of signed ones by an instruction of its own
  bool half_dot = false;             ///< shaderMixedFloatDotProductFloat16AccFloat32: two products of f16 and a sum in f32 by one instruction
  bool float16 = false;              ///< shaderFloat16: arithmetic in f16
  std::vector<MatrixShape> matrices;  ///< VK_KHR_cooperative_matrix; empty: none, or not those of f16
  std::vector<MatrixProduct> matrix_products;  ///< all that the driver lists whose sums keep their type, each once; empty in profiles, which have `matrices` only
  bool storage16 = false;  ///< storageBuffer16BitAccess: what kernels for activations in f16 need
  bool device_scope = false;  ///< vulkanMemoryModelDeviceScope: a workgroup can see what others of its dispatch have written
  std::uint32_t cores = 0;  ///< that workgroups are shared among (compute units, multiprocessors), where the driver or profile tells; else 0
  std::uint32_t timestamp_bits = 0;  ///< of the compute queue's counter; 0: no timestamps
  double timestamp_period_ns = 1;
  /// Nanoseconds from one timestamp to a later one; the counter may have run over once in between.
  double ticks_ns(std::uint64_t from, std::uint64_t to) const {
    const std::uint64_t mask = timestamp_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << timestamp_bits) - 1;
    return static_cast<double>((to - from) & mask) * timestamp_period_ns;
  }
  /// Iterations that all loops of one invocation may make together; 0: no limit. See quirks.cpp.
  std::uint32_t max_loop_iterations = 0;
  /// Its compiler moves loads from buffers that are read only to where they are used. See quirks.cpp.
  bool sinks_loads = false;
  /// fma() rounds once. See quirks.cpp.
  bool fused_fma = false;
  /// Lane n of a subgroup of as many lanes has column n of the second factor of a product of matrices, its elements in order; of a first factor of eight rows it has
  /// pairs of elements n, n + lanes and so on (shaders/lib/matrix.glsl). See quirks.cpp.
  bool columns_in_lanes = false;

  /// Halves that are loaded one by one lie side by side in registers of 16 bits. See quirks.cpp.
  bool half_registers = false;

  /// Predictions only: what the device moves and computes per second, and what a dependent dispatch costs.
  double bytes_per_s = 50e9;
  double flops_per_s = 1e12;
  double dispatch_ns = 5000;
  /// Of a profile that tells them, else 0: lanes that execute an instruction, and cache lines of 64 bytes that cores ask for, in a second.
  double lanes_per_s = 0, lines_per_s = 0;
  double matrix_flops_per_s = 0;  ///< of matrix units, f16 with sums in f32; 0: not told
  std::vector<MeasuredStep> measured;  ///< on a card of the profile
  std::string counts;  ///< the chip whose compiler's counts hold for it
};

}  // namespace rondo::runtime
