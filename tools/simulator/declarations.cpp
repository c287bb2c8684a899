#define SPV_ENABLE_UTILITY_CODE  // HasResultAndType
#include "tools/simulator/declarations.h"

#include <algorithm>
#include <stdexcept>

#include "runtime/fmt.h"
#include "tools/simulator/instruction_tables.h"
#include "tools/simulator/newer_instructions.h"

namespace rondo::simulator {

using spv::Op;

namespace {

constexpr std::uint64_t kMostConstants = 1 << 16;  // in one composite

std::optional<BuiltIn> input_of(std::uint32_t built_in) {
  switch (static_cast<spv::BuiltIn>(built_in)) {
    case spv::BuiltIn::GlobalInvocationId: return BuiltIn::kGlobalInvocationId;
    case spv::BuiltIn::LocalInvocationId: return BuiltIn::kLocalInvocationId;
    case spv::BuiltIn::LocalInvocationIndex: return BuiltIn::kLocalInvocationIndex;
    case spv::BuiltIn::WorkgroupId: return BuiltIn::kWorkgroupId;
    case spv::BuiltIn::NumWorkgroups: return BuiltIn::kNumWorkgroups;
    case spv::BuiltIn::SubgroupSize: return BuiltIn::kSubgroupSize;
    case spv::BuiltIn::SubgroupLocalInvocationId: return BuiltIn::kSubgroupInvocationId;
    case spv::BuiltIn::SubgroupId: return BuiltIn::kSubgroupId;
    case spv::BuiltIn::NumSubgroups: return BuiltIn::kNumSubgroups;
    case spv::BuiltIn::SubgroupEqMask: return BuiltIn::kSubgroupEqMask;
    case spv::BuiltIn::SubgroupGeMask: return BuiltIn::kSubgroupGeMask;
    case spv::BuiltIn::SubgroupGtMask: return BuiltIn::kSubgroupGtMask;
    case spv::BuiltIn::SubgroupLeMask: return BuiltIn::kSubgroupLeMask;
    case spv::BuiltIn::SubgroupLtMask: return BuiltIn::kSubgroupLtMask;
    default: return std::nullopt;
  }
}

void has_result_and_type(Op op, bool& has_result, bool& has_type) {
  spv::HasResultAndType(op, &has_result, &has_type);
  if (op == khr::OpTypeCooperativeMatrix) has_result = true, has_type = false;
  if (op == valve::OpFDot2MixAcc32 || op == khr::OpCooperativeMatrixLoad || op == khr::OpCooperativeMatrixMulAdd || op == khr::OpCooperativeMatrixLength) has_result = has_type = true;
}

std::uint32_t aligned(std::uint32_t bytes, std::uint32_t alignment) { return saturated((std::uint64_t{bytes} + alignment - 1) / alignment * alignment); }

/// From the folder shaders/ on, wherever that was.
std::string file_name(const std::string& path) {
  const std::size_t at = path.rfind("/shaders/");
  return at == std::string::npos ? path : path.substr(at + 1);
}

std::string literal_text(Words words) {
  std::string text;
  for (const std::uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) {
      const char c = static_cast<char>(word >> shift & 0xff);
      if (c == '\0') return text;
      text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return text;
}

void decorate(Decorations& decorations, Words operands) {
  const auto value = [&] { return operands.size() > 1 ? operands[1] : 0; };
  switch (static_cast<spv::Decoration>(operands[0])) {
    case spv::Decoration::DescriptorSet: decorations.set = value(); break;
    case spv::Decoration::Binding: decorations.binding = value(); break;
    case spv::Decoration::BuiltIn: decorations.built_in = value(); break;
    case spv::Decoration::ArrayStride: decorations.array_stride = value(); break;
    case spv::Decoration::Offset: decorations.offset = value(); break;
    case spv::Decoration::Coherent: decorations.coherent = true; break;
    default: break;
  }
}

}  // namespace

Status Declarations::read() {
  split();
  for (const Instruction& instruction : instructions_) {
    if (instruction.op == Op::OpFunction) break;
    RONDO_TRY(declare(instruction));
  }
  for (std::size_t i = 0; !has_workgroup_size_ && i < local_size_ids_.size() && i < 3; ++i) module_.local_size[i] = constant_of(local_size_ids_[i]);
  return {};
}

// --- the module's outer parts

void Declarations::split() {
  std::uint32_t file = kNone, line = 0;
  for (std::size_t at = 5; at < words_.size();) {
    const std::size_t n = std::max(words_[at] >> 16, 1u);
    Instruction one;
    one.op = static_cast<Op>(words_[at] & 0xffffu);
    bool has_result = false, has_type = false;
    has_result_and_type(one.op, has_result, has_type);
    std::size_t first = at + 1;
    if (has_type) one.type = words_[first++];
    if (has_result) one.result = words_[first++];
    if (has_result && has_type) types_of_[one.result] = one.type;
    one.operands = words_.subspan(first, std::min(at + n, words_.size()) - first);
    if (one.op == Op::OpString) module_.files.push_back(file_name(literal_text(one.operands))), files_[one.result] = static_cast<std::uint32_t>(module_.files.size() - 1);
    if (one.op == Op::OpLine) file = files_.contains(one.operands[0]) ? files_[one.operands[0]] : kNone, line = one.operands[1];
    if (one.op == Op::OpNoLine || one.op == Op::OpLabel) file = kNone, line = 0;
    one.file = file, one.line = line;
    instructions_.push_back(one);
    at += n;
  }
}

Status Declarations::lacks(const Instruction& instruction, const std::string& what) const {
  const std::string where = instruction.line ? fmt::format(" ({}:{})", instruction.file == kNone ? "line" : module_.files[instruction.file], instruction.line) : "";
  return Status(StatusCode::kUnsupported, fmt::format("{}: {}{}{} is more than the simulator knows", name_, instruction_name(instruction.op), what.empty() ? "" : " of " + what, where));
}

Status Declarations::declare(const Instruction& in) {
  switch (in.op) {
    case Op::OpCapability: return check_capability(in);
    case Op::OpExtInstImport:
      if (literal_text(in.operands) == "GLSL.std.450") glsl_ = in.result;
      if (literal_text(in.operands).starts_with("NonSemantic.")) comments_.insert(in.result);
      return {};
    case Op::OpEntryPoint:
      if (static_cast<spv::ExecutionModel>(in.operands[0]) != spv::ExecutionModel::GLCompute) return lacks(in, "a stage that is not compute");
      if (entry_ != 0) return lacks(in, "a second entry point");
      entry_ = in.operands[1];
      return {};
    case Op::OpExecutionMode:
      if (static_cast<spv::ExecutionMode>(in.operands[1]) == spv::ExecutionMode::LocalSize) {
        for (std::size_t i = 0; i < 3; ++i) module_.local_size[i] = in.operands[2 + i];
      }
      return {};
    case Op::OpExecutionModeId:
      if (static_cast<spv::ExecutionMode>(in.operands[1]) == spv::ExecutionMode::LocalSizeId) local_size_ids_ = in.operands.subspan(2);
      return {};
    case Op::OpName: object_names_[in.operands[0]] = literal_text(in.operands.subspan(1)); return {};
    case Op::OpDecorate: decorate(decorations_[in.operands[0]], in.operands.subspan(1)); return {};
    case Op::OpMemberDecorate: decorate(member_decorations_[{in.operands[0], in.operands[1]}], in.operands.subspan(2)); return {};
    case Op::OpDecorationGroup:
    case Op::OpGroupDecorate:
    case Op::OpGroupMemberDecorate: return lacks(in);
    case Op::OpExtInst: return comments_.contains(in.operands[0]) ? Status() : lacks(in);
    case Op::OpVariable: return declare_variable(in);
    case Op::OpUndef:
    case Op::OpConstant:
    case Op::OpConstantTrue:
    case Op::OpConstantFalse:
    case Op::OpConstantNull:
    case Op::OpConstantComposite: return declare_constant(in);
    case Op::OpSpecConstant:
    case Op::OpSpecConstantTrue:
    case Op::OpSpecConstantFalse:
    case Op::OpSpecConstantComposite:
    case Op::OpSpecConstantOp: return lacks(in);  // frozen, as far as SPIRV-Tools can
    default: return declare_type(in);
  }
}

Status Declarations::check_capability(const Instruction& in) const {
  switch (static_cast<spv::Capability>(in.operands[0])) {
    case spv::Capability::Int64:
    case spv::Capability::Float64:
    case spv::Capability::Int64Atomics:
    case spv::Capability::VariablePointers:
    case spv::Capability::VariablePointersStorageBuffer:
    case spv::Capability::WorkgroupMemoryExplicitLayoutKHR:
    case spv::Capability::PhysicalStorageBufferAddresses: return lacks(in, fmt::format("capability {}", in.operands[0]));
    default: return {};  // an instruction or type that needs another is refused when it comes
  }
}

Status Declarations::declare_type(const Instruction& in) {
  Type type;
  type.op = in.op;
  switch (in.op) {
    case Op::OpTypeVoid:
    case Op::OpTypeBool:
    case Op::OpTypeFunction: break;
    case Op::OpTypeInt:
    case Op::OpTypeFloat:
      type.bits = in.operands[0];
      if (type.bits > 32) return lacks(in, fmt::format("{} bits", type.bits));
      if (in.op == Op::OpTypeFloat && in.operands.size() > 1) return lacks(in, "an encoding of its own");
      break;
    case Op::OpTypeVector:
    case Op::OpTypeMatrix: type.element = in.operands[0], type.count = in.operands[1]; break;
    case Op::OpTypeArray: type.element = in.operands[0], type.count = constant_of(in.operands[1]); break;
    case Op::OpTypeRuntimeArray: type.element = in.operands[0]; break;
    case Op::OpTypeStruct: type.members.assign(in.operands.begin(), in.operands.end()); break;
    case Op::OpTypePointer: type.element = in.operands[1]; break;
    default:
      if (in.op == khr::OpTypeCooperativeMatrix) {
        RONDO_TRY(declare_matrix(in, type));
        break;
      }
      return instruction_name(in.op).starts_with("OpType") ? lacks(in) : Status();  // sources, names and modes tell nothing
  }
  RONDO_TRY(count_parts(in, type));
  types_[in.result] = std::move(type);
  return {};
}

Status Declarations::declare_matrix(const Instruction& in, Type& type) {
  type.op = Op::OpTypeVector;
  type.element = in.operands[0];
  type.rows = constant_of(in.operands[2]), type.columns = constant_of(in.operands[3]);
  const std::uint64_t n = std::uint64_t{type.rows} * type.columns;
  if (static_cast<spv::Scope>(constant_of(in.operands[1])) != spv::Scope::Subgroup) return lacks(in, "a scope that is not the subgroup");
  if (subgroup_size_ == 0) return lacks(in, "a cooperative matrix, unless the size of subgroups is known,");
  if (n == 0 || n > 65536 || n % subgroup_size_ != 0) return lacks(in, fmt::format("{} x {} elements for {} lanes", type.rows, type.columns, subgroup_size_));
  type.count = static_cast<std::uint32_t>(n / subgroup_size_);
  constexpr std::uint32_t kFirstFactor = 0, kPair = 2;  // of any type, as conversions keep elements where they are
  if (constant_of(in.operands[4]) == kFirstFactor && type.columns % kPair == 0 && type.count % kPair == 0) type.together = kPair;
  module_.subgroup_size = subgroup_size_;
  return {};
}

/// What a type consists of has been declared before it, but for pointers, which have no parts.
Status Declarations::count_parts(const Instruction& in, Type& type) const {
  constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 32;
  constexpr std::uint32_t kMostParts = 4096;
  if (type.op == Op::OpTypeStruct) {
    type.n_scalars = 0, type.n_parts = 1;
    for (const std::uint32_t member : type.members) {
      type.n_scalars = std::min(type.n_scalars + types_.at(member).n_scalars, kMostCounted);
      type.alignment = std::max(type.alignment, types_.at(member).alignment);
      type.n_parts += types_.at(member).n_parts;
      if (type.n_parts > kMostParts) return lacks(in, fmt::format("more than {} members", kMostParts));
    }
  } else if (type.op == Op::OpTypeVector || type.op == Op::OpTypeArray || type.op == Op::OpTypeMatrix || type.op == Op::OpTypeRuntimeArray) {
    type.n_scalars = std::min(type.count * types_.at(type.element).n_scalars, kMostCounted);
    type.n_parts = types_.at(type.element).n_parts;
    type.alignment = types_.at(type.element).alignment;
  } else if (type.op == Op::OpTypeInt || type.op == Op::OpTypeFloat || type.op == Op::OpTypeBool) {
    type.alignment = type.bits / 8;
  }
  return {};
}

Status Declarations::declare_constant(const Instruction& in) {
  std::vector<Slot>& slots = values_[in.result];
  if (count_scalars(in.type) > kMostConstants) return lacks(in, fmt::format("more than {} numbers", kMostConstants));
  switch (in.op) {
    case Op::OpConstant: slots = {constant(in.operands[0] & low_ones(bits_of(in.type)))}; break;  // narrow ones come with their sign
    case Op::OpConstantTrue: slots = {constant(1)}; break;
    case Op::OpConstantFalse: slots = {constant(0)}; break;
    case Op::OpConstantComposite: {
      for (const std::uint32_t part : in.operands) slots.insert(slots.end(), values_[part].begin(), values_[part].end());
      if (types_.at(in.type).rows != 0) slots = std::vector<Slot>(types_.at(in.type).count, slots.at(0));
      const auto decorations = decorations_.find(in.result);
      if (decorations != decorations_.end() && decorations->second.built_in == static_cast<std::uint32_t>(spv::BuiltIn::WorkgroupSize)) {
        for (std::size_t i = 0; i < 3; ++i) module_.local_size[i] = constant_values_.at(slots.at(i));
        has_workgroup_size_ = true;  // which overrules LocalSizeId
      }
      break;
    }
    default: slots.assign(count_scalars(in.type), in.op == Op::OpUndef ? undefined() : constant(0)); break;
  }
  return {};
}

Status Declarations::declare_variable(const Instruction& in) {
  const std::uint32_t type = types_[in.type].element;
  Pointer pointer;
  pointer.type = type;
  Variable variable;
  const std::string& own = object_names_[in.result];
  variable.name = own.empty() ? object_names_[type] : own;
  switch (static_cast<spv::StorageClass>(in.operands[0])) {
    case spv::StorageClass::Input: {
      const std::optional<BuiltIn> what = input_of(decorations_[in.result].built_in.value_or(kNone));
      if (!what) return lacks(in, "an input that is no known built-in");
      pointer.input = static_cast<std::uint32_t>(module_.inputs.size());
      BuiltInInput& input = module_.inputs.emplace_back(BuiltInInput{*what, {}});
      for (std::size_t i = 0; i < count_scalars(type); ++i) input.slots.push_back(new_slot());
      break;
    }
    case spv::StorageClass::StorageBuffer:
    case spv::StorageClass::Uniform:
      if (!decorations_[in.result].binding) return lacks(in, "a buffer without a binding");
      if (decorations_[in.result].set.value_or(0) != 0) return lacks(in, fmt::format("descriptor set {}", *decorations_[in.result].set));
      if (types_[type].op != Op::OpTypeStruct) return lacks(in, "an array of buffers");
      variable.space = Space::kBuffer;
      variable.binding = *decorations_[in.result].binding;
      variable.coherent = decorations_[in.result].coherent || member_decorations_[{type, 0}].coherent;
      break;
    case spv::StorageClass::PushConstant: variable.space = Space::kPush; break;
    case spv::StorageClass::Workgroup:
      if (in.operands.size() > 1) return lacks(in, "shared memory with a value");
      variable.space = Space::kShared;
      break;
    case spv::StorageClass::Private:
    case spv::StorageClass::Function: variable.space = Space::kPrivate; break;
    default: return lacks(in, fmt::format("storage class {}", in.operands[0]));
  }
  if (pointer.input == kNone) {
    variable.read_only = true;  // until something writes it
    if (variable.space == Space::kShared || variable.space == Space::kPrivate) variable.size_bytes = size_of(type, layout_of(variable.space));
    if (variable.space == Space::kShared) {
      std::uint32_t element = type;
      while (types_[element].op == Op::OpTypeArray) element = types_[element].element;
      if (types_[element].op == Op::OpTypeVector) variable.vector_bytes = size_of(element, layout_of(variable.space));
    }
    pointer.variable = static_cast<std::uint32_t>(module_.variables.size());
    module_.variables.push_back(std::move(variable));
  }
  pointers_[in.result] = pointer;
  if (in.operands.size() > 1) initial_.emplace_back(in.result, in.operands[1]);
  return {};
}

std::uint32_t Declarations::stride_of(std::uint32_t type, Layout layout) const {
  if (layout == Layout::kDecorated) {
    const auto found = decorations_.find(type);
    if (found != decorations_.end() && found->second.array_stride) return *found->second.array_stride;
  }
  return size_of(types_.at(type).element, layout);
}

std::uint32_t Declarations::member_offset(std::uint32_t type, std::uint32_t member, Layout layout) const {
  if (layout == Layout::kDecorated) {
    const auto found = member_decorations_.find({type, member});
    if (found != member_decorations_.end() && found->second.offset) return *found->second.offset;
  }
  std::uint32_t offset = 0;
  for (std::uint32_t i = 0; i <= member; ++i) {
    const std::uint32_t id = types_.at(type).members.at(i);
    offset = aligned(offset, layout == Layout::kPacked ? types_.at(id).alignment : 1);
    if (i < member) offset = saturated(std::uint64_t{offset} + size_of(id, layout));
  }
  return offset;
}

std::uint32_t Declarations::size_of(std::uint32_t id, Layout layout) const {
  const Type& type = types_.at(id);
  switch (type.op) {
    case Op::OpTypeBool: return 4;
    case Op::OpTypeInt:
    case Op::OpTypeFloat: return layout == Layout::kWords ? 4 : type.bits / 8;
    case Op::OpTypeStruct: {
      std::uint32_t size = 0;
      for (std::uint32_t i = 0; i < type.members.size(); ++i) size = std::max(size, saturated(std::uint64_t{member_offset(id, i, layout)} + size_of(type.members[i], layout)));
      return aligned(size, layout == Layout::kPacked ? type.alignment : 1);
    }
    case Op::OpTypeVector: return type.count * size_of(type.element, layout);
    default: return saturated(std::uint64_t{type.count} * stride_of(id, layout));
  }
}

void Declarations::add_scalars(std::uint32_t id, Layout layout, std::uint32_t offset, std::vector<Scalar>& scalars) const {
  const Type& type = types_.at(id);
  if (type.op == Op::OpTypeStruct) {
    for (std::uint32_t i = 0; i < type.members.size(); ++i) add_scalars(type.members[i], layout, saturated(std::uint64_t{offset} + member_offset(id, i, layout)), scalars);
  } else if (type.op == Op::OpTypeVector || type.op == Op::OpTypeArray || type.op == Op::OpTypeMatrix) {
    const std::uint32_t stride = type.op == Op::OpTypeVector ? size_of(type.element, layout) : stride_of(id, layout);
    for (std::uint32_t i = 0; i < type.count; ++i) add_scalars(type.element, layout, saturated(offset + std::uint64_t{i} * stride), scalars);
  } else {
    scalars.push_back({offset, layout == Layout::kWords ? 32 : type.bits});
  }
}

bool Declarations::has_matrix(std::uint32_t id) const {
  const Type& type = types_.at(id);
  if (type.op == Op::OpTypeStruct) return std::any_of(type.members.begin(), type.members.end(), [&](std::uint32_t member) { return has_matrix(member); });
  return type.op == Op::OpTypeMatrix || type.rows != 0 || ((type.op == Op::OpTypeArray || type.op == Op::OpTypeRuntimeArray) && has_matrix(type.element));
}

std::vector<Scalar> Declarations::scalars_of(std::uint32_t type, Layout layout) const {
  std::vector<Scalar> scalars;
  add_scalars(type, layout, 0, scalars);
  return scalars;
}

std::pair<std::uint32_t, std::uint32_t> Declarations::part_of(std::uint32_t id, std::uint32_t index) const {
  const Type& type = types_.at(id);
  const auto n = [&](std::uint32_t part) { return static_cast<std::uint32_t>(count_scalars(part)); };
  if (type.op != Op::OpTypeStruct) return {index * n(type.element), n(type.element)};
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < index; ++i) before += n(type.members[i]);
  return {before, n(type.members[index])};
}

std::uint32_t Declarations::part_type(std::uint32_t id, std::uint32_t index) const { return types_.at(id).op == Op::OpTypeStruct ? types_.at(id).members[index] : types_.at(id).element; }

Slot Declarations::constant(std::uint32_t value) {
  const auto [found, is_new] = constants_.try_emplace(value, module_.n_slots);
  if (is_new) {
    module_.constants.push_back({new_slot(), value});
    constant_values_[found->second] = value;
  }
  return found->second;
}

Slot Declarations::undefined() {
  if (undefined_ == kNone) module_.constants.push_back({undefined_ = new_slot(), 0, true});
  return undefined_;
}

const std::uint32_t* Declarations::find_constant(std::uint32_t id) const {
  const auto value = values_.find(id);
  if (value == values_.end() || value->second.size() != 1) return nullptr;
  const auto found = constant_values_.find(value->second[0]);
  return found == constant_values_.end() ? nullptr : &found->second;
}

std::uint32_t Declarations::constant_of(std::uint32_t id) const {
  const std::uint32_t* const found = find_constant(id);
  if (!found) throw std::out_of_range("no constant");
  return *found;
}

std::uint32_t Declarations::bits_of(std::uint32_t type) const {
  const Type& found = types_.at(type);
  return found.op == Op::OpTypeVector ? bits_of(found.element) : found.bits;
}

}  // namespace rondo::simulator
