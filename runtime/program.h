// The runtime's input language: which kernels run, on which bytes, in which order. Plain data, no Vulkan, no tensors.
//
// A Program is made by graph/ (or by hand), checked by graph/hazards.h, and obeyed by runtime/recording.h. It holds no
// device objects: buffers are indices that the recording resolves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shader_list.h"

namespace rondo::runtime {

/// Bytes of a buffer. `buffer` indexes the list of buffers given when the Program is recorded.
struct BufferRange {
  std::uint32_t buffer = 0;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const BufferRange&) const = default;
};

enum class Access : std::uint8_t { kRead, kWrite, kReadWrite };

/// One storage buffer of a dispatch: an upper bound, over all legal lengths, of what it touches.
struct Binding {
  BufferRange range;
  Access access = Access::kRead;
};

constexpr std::size_t kMaxSpecialization = 18;
constexpr std::size_t kMaxBindings = 8;
constexpr std::size_t kMaxPushBytes = 128;

/// What becomes one pipeline: a SPIR-V module and its specialization constants 0, 1, 2, ... (0 is the workgroup width).
struct Kernel {
  Shader shader{};
  std::array<std::uint32_t, kMaxSpecialization> constants{};
  std::uint32_t n_constants = 0;
  std::uint32_t n_bindings = 0;
  std::uint32_t push_bytes = 0;
  std::uint32_t subgroup_size = 0;  ///< that it relies on, of full subgroups; 0: any
  bool operator==(const Kernel&) const = default;
};

/// A loop that kernels spend their time in: the multiply-adds of one iteration, by one invocation.
struct InnerLoop {
  std::uint32_t multiply_adds = 0;  ///< 0: there is no such loop
  std::uint32_t unrolled = 0;       ///< where a compiler unrolls it: those of the loop around it; 0: it can't
  std::uint32_t times = 0;          ///< iterations of it in one of the loop around it, what that does besides counts as well; 0: it doesn't
};

/// What a dispatch is expected to cost: bytes moved and floating-point operations, upper bounds for predictions; and by what
/// its compiled loops are to be measured (tools/isa).
struct Cost {
  double bytes = 0;
  double flops = 0;
  std::array<InnerLoop, 2> loops{};  ///< of equal work, if there are two
  double shared_bytes = 0;           ///< that lanes load from shared memory and store there, of kernels by matrix units; 0: not told
};

/// One vkCmdDispatch with all it needs.
struct Dispatch {
  std::uint32_t kernel = 0;          ///< index into Program::kernels
  std::vector<Binding> bindings;     ///< binding number = index
  std::vector<std::byte> push;       ///< push constants
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  Cost cost;
  std::string label;                 ///< operator and kernel, for people
  std::string choice;                ///< what a choice among kernels was made for (graph/kernel_choice.h), or ""
  bool barrier_before = false;       ///< all earlier writes and reads happen before this dispatch
};

/// Dispatches in order. The recording begins with a barrier against everything before it and ends with one that makes
/// writes visible to the host, so Programs may follow each other, and themselves, in any order.
struct Program {
  std::string name;
  std::vector<Kernel> kernels;
  std::vector<Dispatch> dispatches;
};

/// Dispatches [first, last): what one command buffer holds.
struct Segment {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  double cost_ns = 0;  ///< predicted
};

}  // namespace rondo::runtime
