// A compute shader made ready to be executed lane by lane: validated, specialized and optimised by SPIRV-Tools, its calls
// inlined, and decoded into operations on scalars. Pure; no Vulkan.
//
// A scalar of 32 bits or fewer is a slot, which has a value in each lane. Composites are lists of slots, so that making, taking
// apart and shuffling them costs nothing. Blocks lie in structured order: a merge block behind everything that it merges, so
// that lanes reconverge there if the lowest block that has lanes always runs first.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rondo/status.h>

namespace rondo::simulator {

using Slot = std::uint32_t;
constexpr std::uint32_t kNone = 0xffffffffu;

constexpr std::uint32_t saturated(std::uint64_t n) { return n > 0xffffffffu ? 0xffffffffu : static_cast<std::uint32_t>(n); }
constexpr std::uint32_t low_ones(std::uint32_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

/// Where in the source an instruction comes from, and what it is.
struct Place {
  std::uint32_t file = kNone;  ///< index into Module::files
  std::uint32_t line = 0;      ///< 0: unknown, as without -g
  std::string instruction;     ///< "OpLoad"
};

enum class Space : std::uint8_t { kBuffer, kPush, kShared, kPrivate };

struct Variable {
  std::string name;
  Space space = Space::kBuffer;
  std::uint32_t binding = 0;      ///< of a buffer, in descriptor set 0
  std::uint32_t size_bytes = 0;   ///< of shared and private ones
  std::uint32_t first_byte = 0;   ///< of shared and private ones, in the memory of their space
  std::uint32_t vector_bytes = 0; ///< of a shared one that is a vector or an array of vectors
  bool read_only = false;         ///< no instruction writes it
  bool coherent = false;          ///< a buffer in which other workgroups see what is written, where something orders it
};

/// Input variables that the machine fills in before the first operation.
enum class BuiltIn : std::uint8_t {
  kGlobalInvocationId, kLocalInvocationId, kLocalInvocationIndex, kWorkgroupId, kNumWorkgroups,
  kSubgroupSize, kSubgroupInvocationId, kSubgroupId, kNumSubgroups,
  kSubgroupEqMask, kSubgroupGeMask, kSubgroupGtMask, kSubgroupLeMask, kSubgroupLtMask,
};
struct BuiltInInput {
  BuiltIn what{};
  std::vector<Slot> slots;
};

/// Operations on scalars: what SPIR-V's instructions and GLSL.std.450 become. Floats of 16 bits are computed in f32 and rounded.
enum class Code : std::uint8_t {
#define RONDO_SIMULATOR_CODE(name) name,
#include "tools/simulator/codes.inc"
#undef RONDO_SIMULATOR_CODE
};

/// What `extra` of a reduction may be in place of a number of lanes: each lane gets what those up to it, or before it, hold.
constexpr std::uint32_t kInclusiveScan = 1000, kExclusiveScan = 1001;
/// What `extra` of a shuffle is where all lanes must ask for the same lane.
constexpr std::uint32_t kSameLane = 1;

struct Operation {
  Code code{};
  std::uint8_t bits = 32;    ///< of the operands
  Slot to = kNone;
  Slot a = kNone, b = kNone, c = kNone;
  std::uint32_t extra = 0;   ///< an immediate, or an index into accesses, copies or edges
  std::uint32_t place = 0;   ///< index into Module::places
};

/// A load, store or atomic of one or several scalars that lie in one variable.
struct Access {
  struct Scalar {
    Slot slot;                  ///< that it goes to or comes from
    std::uint32_t offset_bytes; ///< from the access' address
  };
  std::uint32_t variable = 0;
  Slot offset = kNone;          ///< bytes, different in each lane; kNone: `first_byte` alone
  std::uint32_t first_byte = 0;
  std::uint8_t bits = 32;       ///< of each scalar in memory; those of private memory and bools have 32
  std::vector<Scalar> scalars;
};

/// Where element i of a cooperative matrix is, row after row: each in the lane behind that of the one before, and then in the next slot. Of first factors two
/// elements are together, one slot behind the other.
struct MatrixPlace {
  std::uint32_t slot, lane;
  MatrixPlace(std::uint32_t i, std::uint32_t together, std::uint32_t width) : slot(i / together / width * together + i % together), lane(i / together % width) {}
};

/// A load or store of a cooperative matrix.
struct MatrixAccess {
  std::uint32_t variable = 0;
  Slot offset = kNone;           ///< of the first element, in bytes; kNone: `first_byte` alone
  std::uint32_t first_byte = 0;
  Slot stride = kNone;           ///< from a row, or a column, to the next, in units of
  std::uint32_t stride_bytes = 0;
  std::uint32_t rows = 0, columns = 0;
  bool by_column = false;        ///< how it lies in memory
  std::uint32_t together = 1;    ///< MatrixPlace's
  std::uint32_t type = 0;        ///< the id of the matrix' type
  std::uint8_t bits = 32;        ///< of an element
  std::vector<Slot> slots;
};

/// to = a b + c, of matrices with rows x depth, depth x columns and rows x columns elements.
struct MatrixProduct {
  struct Operand {
    std::vector<Slot> slots;
    std::uint8_t bits = 32;
    bool is_float = false, is_signed = false;
    std::uint32_t together = 1;  ///< MatrixPlace's
  };
  std::uint32_t rows = 0, columns = 0, depth = 0;
  Operand a, b, c, to;
  bool saturates = false;
};

/// Where control goes, and what the phis there become on this way.
struct Edge {
  std::uint32_t block = 0;
  std::vector<std::pair<Slot, Slot>> copies;  ///< (to, from), in an order that one after the other may be done
};

enum class Ending : std::uint8_t { kBranch, kBranchConditional, kSwitch, kReturn, kUnreachable };

struct Block {
  std::uint32_t first = 0, last = 0;  ///< operations [first, last)
  Ending ending{};
  Slot selector = kNone;
  std::vector<std::uint32_t> values;  ///< of a switch: those of edges 1, 2, ...
  std::vector<Edge> edges;            ///< of a condition: if true, if false; of a switch: default, then by value
  std::uint32_t place = 0;
};

struct Constant {
  Slot slot;
  std::uint32_t value;
  bool undefined = false;
};

struct Module {
  std::array<std::uint32_t, 3> local_size{1, 1, 1};
  std::vector<Variable> variables;
  std::vector<BuiltInInput> inputs;
  std::vector<Constant> constants;
  std::vector<Operation> operations;
  std::vector<Access> accesses;
  std::vector<MatrixAccess> matrix_accesses;
  std::vector<MatrixProduct> matrix_products;
  std::vector<Block> blocks;
  std::vector<Place> places;
  std::vector<std::string> files;
  std::uint32_t n_slots = 0;
  std::uint32_t subgroup_size = 0;          ///< that cooperative matrices are shared among; 0: any will do
  std::uint32_t shared_bytes = 0, private_bytes = 0;
  std::uint32_t smallest_access_bytes = 4;  ///< of buffers and shared memory
  std::uint32_t push_bytes = 0;             ///< that the module reads at most

  std::uint32_t n_invocations() const { return local_size[0] * local_size[1] * local_size[2]; }
};

/// What becomes of loops that ask to be unrolled: as in drivers, or kept, in code that is not optimised, which takes a fraction of the
/// time to read, more to run, and finds the same. What a kernel takes is counted with kUnrolled.
enum class Loops { kUnrolled, kKept };

struct ReadOptions {
  std::span<const std::uint32_t> constants;  ///< values of specialization constants 0, 1, ...
  std::uint32_t subgroup_size = 0;           ///< needed where there are cooperative matrices
  /// A program that runs `spirv-val` and `spirv-opt` of another release than the one that is linked, as its first argument says;
  /// empty: the linked one is used.
  std::string spirv_tools;
  Loops loops = Loops::kUnrolled;
};

/// Reads a module with one compute entry point. Errors: kCorruptData (it is not valid SPIR-V for Vulkan, with what SPIRV-Tools
/// says), kUnsupported (it has what the simulator does not; the instruction, capability or type is named), kIo (`spirv_tools`
/// can't be run).
Result<Module> read_module(std::span<const std::uint32_t> words, const ReadOptions& options, const std::string& name);

/// The same of a module that is valid, whose constants are set and whose calls are inlined; nothing of that is checked.
Result<Module> decode_module(std::span<const std::uint32_t> prepared, std::uint32_t subgroup_size, const std::string& name);

/// "shaders/linear_vector.comp:41 (OpLoad)", as far as it is known.
std::string describe(const Module& module, std::uint32_t place);

}  // namespace rondo::simulator
