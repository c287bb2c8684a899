// What stands before a module's functions: names, types and how they lie in memory, constants, variables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <spirv/unified1/spirv.hpp11>

#include <rondo/status.h>

#include "tools/simulator/module.h"

namespace rondo::simulator {

using Words = std::span<const std::uint32_t>;

struct Instruction {
  spv::Op op{};
  std::uint32_t type = 0, result = 0;  ///< 0: none
  Words operands;                      ///< behind type and result
  std::uint32_t file = kNone, line = 0;
};

struct Type {
  spv::Op op{};
  std::uint32_t bits = 32;       ///< of a scalar; bools have 32
  std::uint32_t element = 0;     ///< of vectors, arrays and pointers
  std::uint32_t count = 0;       ///< 0: runtime; of a cooperative matrix, which is a vector in each lane, its elements there
  std::uint32_t rows = 0, columns = 0;  ///< of a cooperative matrix; else 0
  std::uint32_t together = 1;    ///< of it, elements side by side that a lane has (MatrixPlace)
  std::uint64_t n_scalars = 1;   ///< of a runtime array: 0
  std::uint32_t alignment = 1;   ///< bytes of its largest scalar
  std::uint32_t n_parts = 1;     ///< members and members' members; of an array those of its element
  std::vector<std::uint32_t> members;
};

struct Decorations {
  std::optional<std::uint32_t> set, binding, built_in, array_stride, offset;
  bool coherent = false;
};

/// How types lie in memory: as decorated, as scalars are aligned, or each scalar in four bytes.
enum class Layout : std::uint8_t { kDecorated, kPacked, kWords };
constexpr Layout layout_of(Space space) { return space == Space::kPrivate ? Layout::kWords : space == Space::kShared ? Layout::kPacked : Layout::kDecorated; }

struct Scalar {
  std::uint32_t offset_bytes = 0;
  std::uint32_t bits = 32;
};

struct Pointer {
  std::uint32_t variable = kNone, input = kNone;  ///< one of the two
  Slot offset = kNone;
  std::uint32_t first_byte = 0;                   ///< of an input: the first component
  std::uint32_t type = 0;                         ///< pointed to
};

/// Reads a module that SPIRV-Tools has found valid. Ids are SPIR-V's; those that are asked for are there.
class Declarations {
 public:
  Declarations(Words words, std::uint32_t subgroup_size, std::string name) : words_(words), subgroup_size_(subgroup_size), name_(std::move(name)) {}

  /// Splits the module and reads what stands before its functions. Errors: kUnsupported.
  Status read();

 protected:
  const Type& type(std::uint32_t id) const { return types_.at(id); }
  /// Bits of a scalar, or of a vector's.
  std::uint32_t bits_of(std::uint32_t type) const;
  const Type& scalar_type(std::uint32_t id) const { return type(type(id).op == spv::Op::OpTypeVector ? type(id).element : id); }
  std::uint32_t stride_of(std::uint32_t type, Layout layout) const;
  std::uint32_t member_offset(std::uint32_t type, std::uint32_t member, Layout layout) const;
  std::uint32_t size_of(std::uint32_t type, Layout layout) const;
  std::uint64_t count_scalars(std::uint32_t type) const { return types_.at(type).n_scalars; }
  bool has_matrix(std::uint32_t type) const;
  /// All scalars of a type, in order.
  std::vector<Scalar> scalars_of(std::uint32_t type, Layout layout) const;
  /// Of a composite: how many scalars lie before part `index`, and how many it has.
  std::pair<std::uint32_t, std::uint32_t> part_of(std::uint32_t type, std::uint32_t index) const;
  std::uint32_t part_type(std::uint32_t type, std::uint32_t index) const;

  Slot new_slot() { return module_.n_slots++; }
  Slot constant(std::uint32_t value);
  Slot undefined();
  /// The value of a scalar constant, or null.
  const std::uint32_t* find_constant(std::uint32_t id) const;
  /// The same; throws std::out_of_range where there is none.
  std::uint32_t constant_of(std::uint32_t id) const;

  Status declare_variable(const Instruction& in);
  /// kUnsupported, naming the instruction, its line and what of it.
  Status lacks(const Instruction& instruction, const std::string& what = "") const;

  Words words_;
  std::uint32_t subgroup_size_;
  std::string name_;
  Module module_;
  std::vector<Instruction> instructions_;
  std::unordered_map<std::uint32_t, std::uint32_t> types_of_;  ///< of results that have one
  std::unordered_map<std::uint32_t, std::vector<Slot>> values_;
  std::unordered_map<std::uint32_t, Pointer> pointers_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> initial_;  ///< values that variables begin with: (variable, constant)
  std::uint32_t glsl_ = 0, entry_ = 0;
  std::unordered_set<std::uint32_t> comments_;  ///< sets of instructions that say nothing of what is computed

 private:
  void split();
  Status declare(const Instruction& in);
  Status check_capability(const Instruction& in) const;
  Status declare_type(const Instruction& in);
  Status declare_matrix(const Instruction& in, Type& type);
  Status count_parts(const Instruction& in, Type& type) const;
  Status declare_constant(const Instruction& in);
  void add_scalars(std::uint32_t id, Layout layout, std::uint32_t offset, std::vector<Scalar>& scalars) const;

  Words local_size_ids_;
  bool has_workgroup_size_ = false;
  std::unordered_map<std::uint32_t, std::string> object_names_;
  std::unordered_map<std::uint32_t, std::uint32_t> files_;
  std::unordered_map<std::uint32_t, Type> types_;
  std::unordered_map<std::uint32_t, Decorations> decorations_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Decorations> member_decorations_;
  std::unordered_map<std::uint32_t, Slot> constants_;
  std::unordered_map<Slot, std::uint32_t> constant_values_;
  Slot undefined_ = kNone;
};

}  // namespace rondo::simulator
