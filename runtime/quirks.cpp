#include "runtime/quirks.h"

#include <algorithm>

namespace rondo::runtime {

void apply_quirks(DeviceCaps& caps) {
  // llvmpipe (Mesa 22.3) leaves all loops of an invocation, silently, after 65,535 iterations in all.
  // Test again: attention with one query over 2^20 keys against its reference.
  if (caps.driver.find("llvmpipe") != std::string::npos) caps.max_loop_iterations = 65535;
  // Mesa's compilers for Intel's and AMD's devices (26.1) move loads from buffers that are read only behind products that these were to be under way for.
  // Test again: the order of loads and products in `rondo isa "linear dot_tiled"` with RADV_DEBUG=asm or INTEL_DEBUG=cs, with and without.
  constexpr std::uint32_t kAmd = 0x1002, kIntel = 0x8086;
  caps.sinks_loads = caps.vendor_id == kAmd || caps.vendor_id == kIntel;
  // Vulkan lets fma() be a multiplication and an addition, and does not tell. CPU drivers and Adreno's make it that, as Mesa's for AMD's devices before RDNA2, of which
  // some have fast dot products: GCN and CDNA have no subgroups of 32, and RDNA1's are Navi 10 to 14.
  // Test again: `rondo check --kernel dot_tiled` with this set.
  constexpr std::uint32_t kNvidia = 0x10de;
  const bool rdna2 = caps.vendor_id == kAmd && caps.min_required_subgroup_size == 32 && caps.name.find("NAVI1") == std::string::npos;
  caps.fused_fma = caps.type != DeviceType::kCpu && (caps.vendor_id == kNvidia || caps.vendor_id == kIntel || rdna2);
  // Mesa's compiler for Intel's devices (26.1) loads a matrix two elements at a time, although a lane's can lie side by side in memory. Where lanes have them is
  // nothing that Vulkan promises: should it change, a model's self-test finds kernels wrong, and others are chosen.
  // Test again: instructions of `rondo isa "linear matrix f16"` on dg2, with and without.
  caps.columns_in_lanes = caps.vendor_id == kIntel && caps.driver.find("Mesa") != std::string::npos;
  // turnip (Mesa 26.1) loads neighbouring numbers of 16 bits together into registers of 16 bits. Of words that hold two it shifts the second down.
  // Test again: instructions of `rondo isa "linear halves f16"` and `rondo isa "linear subgroup f16"`.
  caps.half_registers = caps.driver.find("turnip") != std::string::npos;
  // turnip (Mesa 22.3) reports more shared memory than a workgroup can have and ends the process beyond 32 KiB.
  // Test again: compile a kernel with 40 KiB of shared memory under FD_GPU_ID=660.
  if (caps.driver.find("turnip") != std::string::npos) caps.max_shared_bytes = std::min(caps.max_shared_bytes, 32768u);
}

}  // namespace rondo::runtime
