// SPIR-V's instructions to operations on scalars.
#include <algorithm>
#include <bit>
#include <new>
#include <numbers>
#include <stdexcept>
#include <tuple>

#include <spirv/unified1/GLSL.std.450.h>

#include "graph/float16.h"
#include "runtime/fmt.h"
#include "tools/simulator/declarations.h"
#include "tools/simulator/instruction_tables.h"
#include "tools/simulator/newer_instructions.h"
#include "tools/simulator/prepare.h"

namespace rondo::simulator {

namespace {

using spv::Op;
using Slots = std::vector<Slot>;

constexpr std::uint64_t kMostScalars = 4096;      // that an instruction gives or stores
constexpr std::uint64_t kMostScalarsOfAll = 1 << 24;
constexpr std::uint32_t kMostOwnBytes = 1 << 18;  // of shared memory, and of an invocation's own

class Decoder : Declarations {
 public:
  using Declarations::Declarations;

  Result<Module> run() {
    RONDO_TRY(read());
    RONDO_TRY(find_body());
    order_blocks();
    initial_stores_ = initial_;  // of the module's own variables, and none of its function's
    for (const std::size_t block : order_) RONDO_TRY(make_phis(body_[block]));
    for (const std::size_t block : order_) RONDO_TRY(decode(body_[block]));
    for (std::size_t i = 0; i < order_.size(); ++i) RONDO_TRY(connect(body_[order_[i]], module_.blocks[i]));
    RONDO_TRY(lay_out());
    return std::move(module_);
  }

 private:
  struct Source {  ///< a block as it was
    std::uint32_t label = 0, merge = 0, next = 0;  ///< next: a loop's continue block
    std::vector<const Instruction*> instructions;  ///< the last one ends it
  };

  // --- blocks

  Status find_body() {
    bool inside = false;
    for (const Instruction& in : instructions_) {
      if (in.op == Op::OpFunction) inside = in.result == entry_;
      if (in.op == Op::OpFunctionEnd) inside = false;
      if (!inside) continue;
      if (in.op == Op::OpLabel) {
        numbers_[in.result] = body_.size();
        body_.push_back({in.result, 0, 0, {}});
      } else if (in.op == Op::OpLoopMerge) {
        body_.back().merge = in.operands[0], body_.back().next = in.operands[1];
      } else if (in.op == Op::OpSelectionMerge) {
        body_.back().merge = in.operands[0];
      } else if (!body_.empty() && in.op != Op::OpLine && in.op != Op::OpNoLine && in.op != Op::OpName) {
        body_.back().instructions.push_back(&in);
      }
    }
    if (body_.empty()) return Status(StatusCode::kUnsupported, fmt::format("{}: has no compute entry point", name_));
    return {};
  }

  std::vector<std::uint32_t> successors(const Source& source) const {
    const Instruction& end = *source.instructions.back();
    switch (end.op) {
      case Op::OpBranch: return {end.operands[0]};
      case Op::OpBranchConditional: return {end.operands[1], end.operands[2]};
      case Op::OpSwitch: {
        std::vector<std::uint32_t> all = {end.operands[1]};
        for (std::size_t i = 3; i < end.operands.size(); i += 2) all.push_back(end.operands[i]);
        return all;
      }
      default: return {};
    }
  }

  /// Reverse postorder, with what a header merges to visited before the blocks between.
  void order_blocks() {
    std::vector<bool> seen(body_.size());
    struct Visit {
      std::size_t block;
      std::vector<std::uint32_t> next;
    };
    std::vector<Visit> stack;
    const auto visit = [&](std::size_t block) {
      if (seen[block]) return;
      seen[block] = true;
      std::vector<std::uint32_t> next = successors(body_[block]);
      // From the back: the merge block, the continue block, the others.
      if (body_[block].next != 0) next.push_back(body_[block].next);
      if (body_[block].merge != 0) next.push_back(body_[block].merge);
      stack.push_back({block, std::move(next)});
    };
    visit(0);
    while (!stack.empty()) {
      if (stack.back().next.empty()) {
        order_.push_back(stack.back().block);
        stack.pop_back();
        continue;
      }
      const std::uint32_t label = stack.back().next.back();
      stack.back().next.pop_back();
      visit(numbers_.at(label));
    }
    std::reverse(order_.begin(), order_.end());
    position_.assign(body_.size(), 0);
    for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<std::uint32_t>(i);
    module_.blocks.resize(order_.size());
  }

  Status make_phis(const Source& source) {
    for (const Instruction* in : source.instructions) {
      if (in->op != Op::OpPhi) continue;
      RONDO_TRY(check_size(*in));
      std::vector<Slot>& slots = values_[in->result];
      for (std::size_t i = 0; i < count_scalars(in->type); ++i) slots.push_back(new_slot());
    }
    return {};
  }

  /// Of what an instruction gives, and of all that there is.
  Status check_size(const Instruction& in) {
    if (in.type == 0 || type(in.type).op == Op::OpTypePointer) return {};
    const std::uint64_t n = count_scalars(in.type);
    if (n > kMostScalars) return lacks(in, fmt::format("more than {} numbers", kMostScalars));
    n_scalars_ += n;
    return n_scalars_ > kMostScalarsOfAll ? lacks(in, fmt::format("more than {} numbers in all", kMostScalarsOfAll)) : Status();
  }

  Status decode(const Source& source) {
    Block& block = module_.blocks[position_[numbers_.at(source.label)]];
    block.first = static_cast<std::uint32_t>(module_.operations.size());
    if (source.label == body_[0].label) {
      Instruction start;
      start.op = Op::OpVariable;
      for (const auto& [variable, initial] : initial_stores_) RONDO_TRY(store(start, variable, initial));
    }
    for (const Instruction* in : source.instructions) {
      if (in->op == Op::OpPhi) continue;
      RONDO_TRY(check_size(*in));
      RONDO_TRY(decode(*in, block));
    }
    block.last = static_cast<std::uint32_t>(module_.operations.size());
    return {};
  }

  /// The edges' copies, now that every value has its slots.
  Status connect(const Source& source, Block& block) {
    const std::vector<std::uint32_t> targets = successors(source);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      Edge edge;
      edge.block = position_[numbers_.at(targets[i])];
      for (const Instruction* in : body_[numbers_.at(targets[i])].instructions) {
        if (in->op != Op::OpPhi) continue;
        for (std::size_t k = 0; k + 1 < in->operands.size(); k += 2) {
          if (in->operands[k + 1] != source.label) continue;
          const std::vector<Slot>&to = values_[in->result], &from = values_[in->operands[k]];
          if (from.size() != to.size()) return lacks(*in, "a pointer");
          RONDO_TRY(check_size(*in));
          for (std::size_t part = 0; part < to.size(); ++part) edge.copies.emplace_back(to[part], from[part]);
          break;
        }
      }
      put_in_order(edge.copies);
      block.edges.push_back(std::move(edge));
    }
    return {};
  }

  /// All at once to one after the other: where a slot is read after it would be written, it is kept in another one first.
  void put_in_order(std::vector<std::pair<Slot, Slot>>& copies) {
    std::erase_if(copies, [](const auto& copy) { return copy.first == copy.second; });
    std::vector<std::pair<Slot, Slot>> kept;
    std::unordered_set<Slot> written;
    for (auto& [to, from] : copies) {
      if (written.contains(from)) {
        const Slot spare = new_slot();
        kept.emplace_back(spare, from);
        from = spare;
      }
      written.insert(to);
    }
    copies.insert(copies.begin(), kept.begin(), kept.end());
  }

  // --- instructions

  std::uint32_t place_of(const Instruction& in) {
    const auto [found, is_new] = places_.try_emplace({in.file, in.line, in.op}, static_cast<std::uint32_t>(module_.places.size()));
    if (is_new) module_.places.push_back({in.file, in.line, instruction_name(in.op)});
    return found->second;
  }

  Slot emit(const Instruction& in, Code code, std::uint32_t bits, Slot a, Slot b = kNone, Slot c = kNone, std::uint32_t extra = 0) {
    const Slot to = new_slot();
    module_.operations.push_back({code, static_cast<std::uint8_t>(bits), to, a, b, c, extra, place_of(in)});
    return to;
  }
  void emit_access(const Instruction& in, Code code, Access access, Slot to = kNone, Slot a = kNone, Slot b = kNone) {
    Variable& variable = module_.variables[access.variable];
    if (code != Code::kLoad && code != Code::kAtomicLoad) variable.read_only = false;
    if (variable.space == Space::kBuffer || variable.space == Space::kShared) module_.smallest_access_bytes = std::min<std::uint32_t>(module_.smallest_access_bytes, access.bits / 8);
    if (variable.space == Space::kPush) {
      for (const Access::Scalar& scalar : access.scalars) module_.push_bytes = std::max(module_.push_bytes, saturated(std::uint64_t{access.first_byte} + scalar.offset_bytes + access.bits / 8));
    }
    module_.operations.push_back({code, access.bits, to, a, b, access.offset, static_cast<std::uint32_t>(module_.accesses.size()), place_of(in)});
    module_.accesses.push_back(std::move(access));
  }

  /// Throws std::out_of_range for what has no value, such as a pointer.
  const Slots& value(std::uint32_t id) const {
    const Slots& slots = values_.at(id);
    if (slots.empty()) throw std::out_of_range("no value");
    return slots;
  }
  Slot component(std::uint32_t id, std::size_t i) const {
    const Slots& slots = value(id);
    return slots.size() == 1 ? slots[0] : slots.at(i);
  }

  /// Accesses of one kind of scalars each: those of a pointer's type, with slots in the same order.
  std::vector<Access> accesses_of(const Pointer& pointer, const Slots& slots) const {
    std::vector<Access> accesses;
    const std::vector<Scalar> scalars = scalars_of(pointer.type, layout_of(module_.variables[pointer.variable].space));
    for (std::size_t i = 0; i < scalars.size(); ++i) {
      if (accesses.empty() || accesses.back().bits != scalars[i].bits) accesses.push_back({pointer.variable, pointer.offset, pointer.first_byte, static_cast<std::uint8_t>(scalars[i].bits), {}});
      accesses.back().scalars.push_back({slots[i], scalars[i].offset_bytes});
    }
    for (Access& access : accesses) {
      std::uint32_t least = kNone;
      for (const Access::Scalar& scalar : access.scalars) least = std::min(least, scalar.offset_bytes);
      for (Access::Scalar& scalar : access.scalars) scalar.offset_bytes -= least;
      access.first_byte = saturated(std::uint64_t{access.first_byte} + least);
    }
    return accesses;
  }

  Status load(const Instruction& in) {
    const auto found = pointers_.find(in.operands[0]);
    if (found == pointers_.end()) return lacks(in, "a pointer that is no variable's");
    const Pointer& pointer = found->second;
    if (has_matrix_in_memory(pointer)) return lacks(in, "a matrix");
    const std::size_t n = count_scalars(pointer.type);
    Slots slots;
    if (pointer.input != kNone) {
      const Slots& input = module_.inputs[pointer.input].slots;
      if (pointer.offset == kNone) {
        slots.assign(input.begin() + pointer.first_byte, input.begin() + pointer.first_byte + static_cast<std::ptrdiff_t>(n));
      } else {
        emit_bound(in, pointer.offset, static_cast<std::uint32_t>(input.size()));
        slots = {pick(in, input, pointer.offset)};
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) slots.push_back(new_slot());
      for (Access& access : accesses_of(pointer, slots)) emit_access(in, Code::kLoad, std::move(access));
    }
    values_[in.result] = std::move(slots);
    return {};
  }

  Status store(const Instruction& in, std::uint32_t to, std::uint32_t from) {
    const auto found = pointers_.find(to);
    if (found == pointers_.end() || found->second.input != kNone) return lacks(in, "a pointer that is no variable's");
    if (count_scalars(found->second.type) > kMostScalars) return lacks(in, fmt::format("more than {} numbers", kMostScalars));
    if (has_matrix_in_memory(found->second)) return lacks(in, "a matrix");
    for (Access& access : accesses_of(found->second, value(from))) emit_access(in, Code::kStore, std::move(access));
    return {};
  }

  /// Matrices have strides and orders of their own in memory that is laid out.
  bool has_matrix_in_memory(const Pointer& pointer) const {
    return pointer.input == kNone && module_.variables[pointer.variable].space != Space::kPrivate && has_matrix(pointer.type);
  }

  /// Says where `index` is not below `count`.
  void emit_bound(const Instruction& in, Slot index, std::uint32_t count) { module_.operations.push_back({Code::kBound, 32, kNone, index, kNone, kNone, count, place_of(in)}); }

  Slot pick(const Instruction& in, const Slots& from, Slot index) {
    Slot picked = from[0];
    for (std::uint32_t i = 1; i < from.size(); ++i) picked = emit(in, Code::kSelect, 32, emit(in, Code::kEqual, 32, index, constant(i)), from[i], picked);
    return picked;
  }

  Status chain(const Instruction& in) {
    const auto found = pointers_.find(in.operands[0]);
    if (found == pointers_.end()) return lacks(in, "a pointer that is no variable's");
    Pointer pointer = found->second;
    const Layout layout = pointer.input == kNone ? layout_of(module_.variables[pointer.variable].space) : Layout::kWords;
    for (const std::uint32_t& index : in.operands.subspan(1)) {
      const std::uint32_t* const known = find_constant(index);
      const Type& composite = type(pointer.type);
      if (composite.op == Op::OpTypeMatrix) return lacks(in, "a matrix");
      if (composite.op == Op::OpTypeStruct) {
        const std::uint32_t member = constant_of(index);
        pointer.first_byte = saturated(std::uint64_t{pointer.first_byte} + member_offset(pointer.type, member, layout));
        pointer.type = composite.members.at(member);
        continue;
      }
      const std::uint32_t stride = composite.op == Op::OpTypeVector ? size_of(composite.element, layout) : stride_of(pointer.type, layout);
      if (known && composite.count > 0 && *known >= composite.count) {  // wrong only where it is executed
        emit_bound(in, value(index).at(0), composite.count);
        pointer.type = composite.element;
        continue;
      }
      if (pointer.input != kNone) {
        if (known) pointer.first_byte += *known;
        else pointer.offset = value(index).at(0);
      } else if (known) {
        pointer.first_byte = saturated(pointer.first_byte + std::uint64_t{*known} * stride);
      } else {
        // Beyond the whole variable an access itself is found.
        if (composite.count > 0 && &index != &in.operands[1]) emit_bound(in, value(index).at(0), composite.count);
        pointer.offset = emit(in, Code::kAddress, 32, value(index).at(0), pointer.offset, kNone, stride);
      }
      pointer.type = composite.element;
    }
    pointers_[in.result] = pointer;
    return {};
  }

  /// One operation for each component of the result.
  void each(const Instruction& in, Code code, std::uint32_t bits, std::span<const std::uint32_t> operands, std::uint32_t extra = 0) {
    Slots slots;
    for (std::size_t i = 0; i < count_scalars(in.type); ++i) {
      const auto operand = [&](std::size_t k) { return k < operands.size() ? component(operands[k], i) : kNone; };
      slots.push_back(emit(in, code, bits, operand(0), operand(1), operand(2), extra));
    }
    values_[in.result] = std::move(slots);
  }

  Slot dot(const Instruction& in, std::uint32_t bits, const Slots& a, const Slots& b) {
    Slot sum = emit(in, Code::kFloatMul, bits, a[0], b[0]);
    for (std::size_t i = 1; i < a.size(); ++i) sum = emit(in, Code::kFloatAdd, bits, sum, emit(in, Code::kFloatMul, bits, a[i], b.at(i)));
    return sum;
  }

  Status decode(const Instruction& in, Block& block) {
    const Words& operands = in.operands;
    if (const auto simple = simple_instructions().find(in.op); simple != simple_instructions().end()) {
      // Comparisons have operands of another type than their result.
      std::uint32_t ids[3] = {};
      std::copy(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(operands.size(), 3)), ids);
      if (simple->second.swapped) std::swap(ids[0], ids[1]);
      each(in, simple->second.code, bits_of_value(operands[0]), {ids, std::min<std::size_t>(operands.size(), 3)});
      return {};
    }
    switch (in.op) {
      case Op::OpNop:
      case Op::OpLoopMerge:
      case Op::OpSelectionMerge: return {};
      case Op::OpUndef: values_[in.result].assign(count_scalars(in.type), undefined()); return {};
      case Op::OpVariable: {
        RONDO_TRY(declare_variable(in));
        if (in.operands.size() > 1) return store(in, in.result, in.operands[1]);
        return {};
      }
      case Op::OpLoad: return load(in);
      case Op::OpStore: return store(in, operands[0], operands[1]);
      case Op::OpAccessChain:
      case Op::OpInBoundsAccessChain: return chain(in);
      case Op::OpCopyLogical:
      case Op::OpCopyObject:
        if (pointers_.contains(operands[0])) pointers_[in.result] = pointers_[operands[0]];
        else values_[in.result] = value(operands[0]);
        return {};
      case Op::OpExtInst: return extended(in);
      case Op::OpArrayLength: return array_length(in);
      case Op::OpBranch: block.ending = Ending::kBranch; return {};
      case Op::OpBranchConditional:
        block.ending = Ending::kBranchConditional;
        block.selector = value(operands[0]).at(0);
        block.place = place_of(in);
        return {};
      case Op::OpSwitch:
        block.ending = Ending::kSwitch;
        block.selector = value(operands[0]).at(0);
        block.place = place_of(in);
        for (std::size_t i = 2; i < operands.size(); i += 2) block.values.push_back(operands[i] & low_ones(bits_of_value(operands[0])));
        return {};
      case Op::OpReturn: block.ending = Ending::kReturn; return {};
      case Op::OpUnreachable:
        block.ending = Ending::kUnreachable;
        block.place = place_of(in);
        return {};
      default: break;
    }
    bool done = false;
    RONDO_TRY(composites(in, done));
    if (!done) RONDO_TRY(conversions(in, done));
    if (!done) RONDO_TRY(between_lanes(in, done));
    if (!done) RONDO_TRY(newer(in, done));
    return done ? Status() : lacks(in);
  }

  std::uint32_t bits_of_value(std::uint32_t id) const {
    const auto found = types_of_.find(id);
    return found == types_of_.end() ? 32 : bits_of(found->second);
  }

  Status composites(const Instruction& in, bool& done) {
    const Words& operands = in.operands;
    done = true;
    Slots& slots = values_[in.result];
    switch (in.op) {
      case Op::OpCompositeConstruct:
        for (const std::uint32_t part : operands) slots.insert(slots.end(), value(part).begin(), value(part).end());
        if (type(in.type).rows != 0) slots = Slots(type(in.type).count, slots.at(0));
        return {};
      case Op::OpCompositeExtract: {
        const auto [first, n] = find_part(operands[0], operands.subspan(1));
        const Slots& from = value(operands[0]);
        slots.assign(from.begin() + first, from.begin() + first + n);
        return {};
      }
      case Op::OpCompositeInsert: {
        const auto [first, n] = find_part(operands[1], operands.subspan(2));
        slots = value(operands[1]);
        std::copy_n(value(operands[0]).begin(), n, slots.begin() + first);
        return {};
      }
      case Op::OpVectorShuffle: {
        Slots both = value(operands[0]);
        both.insert(both.end(), value(operands[1]).begin(), value(operands[1]).end());
        for (const std::uint32_t index : operands.subspan(2)) slots.push_back(index == kNone ? undefined() : both.at(index));
        return {};
      }
      case Op::OpVectorExtractDynamic:
        emit_bound(in, value(operands[1]).at(0), static_cast<std::uint32_t>(value(operands[0]).size()));
        slots = {pick(in, value(operands[0]), value(operands[1]).at(0))};
        return {};
      case Op::OpVectorInsertDynamic:
        emit_bound(in, value(operands[2]).at(0), static_cast<std::uint32_t>(value(operands[0]).size()));
        for (std::uint32_t i = 0; i < value(operands[0]).size(); ++i) {
          slots.push_back(emit(in, Code::kSelect, 32, emit(in, Code::kEqual, 32, value(operands[2]).at(0), constant(i)), value(operands[1]).at(0), value(operands[0]).at(i)));
        }
        return {};
      case Op::OpSelect: each(in, Code::kSelect, 32, operands); return {};
      case Op::OpDot: slots = {dot(in, bits_of(in.type), value(operands[0]), value(operands[1]))}; return {};
      case Op::OpMatrixTimesScalar: {
        if (type(in.type).rows == 0) return lacks(in);
        each(in, scalar_type(in.type).op == Op::OpTypeFloat ? Code::kFloatMul : Code::kMul, bits_of(in.type), operands);
        return {};
      }
      case Op::OpVectorTimesScalar: each(in, Code::kFloatMul, bits_of(in.type), operands); return {};
      case Op::OpAll:
      case Op::OpAny: {
        Slot all = value(operands[0]).at(0);
        for (std::size_t i = 1; i < value(operands[0]).size(); ++i) all = emit(in, in.op == Op::OpAll ? Code::kLogicalAnd : Code::kLogicalOr, 32, all, value(operands[0]).at(i));
        slots = {all};
        return {};
      }
      case Op::OpUMulExtended:
      case Op::OpSMulExtended:
      case Op::OpIAddCarry:
      case Op::OpISubBorrow: {
        if (bits_of_value(operands[0]) != 32) return lacks(in, "less than 32 bits");
        const bool multiplies = in.op == Op::OpUMulExtended || in.op == Op::OpSMulExtended;
        const Code low = multiplies ? Code::kMul : in.op == Op::OpIAddCarry ? Code::kAdd : Code::kSub;
        const Code high = in.op == Op::OpUMulExtended ? Code::kMulHighU : in.op == Op::OpSMulExtended ? Code::kMulHighS : in.op == Op::OpIAddCarry ? Code::kCarry : Code::kBorrow;
        const std::size_t n = value(operands[0]).size();
        for (const Code code : {low, high}) {
          for (std::size_t i = 0; i < n; ++i) slots.push_back(emit(in, code, 32, component(operands[0], i), component(operands[1], i)));
        }
        return {};
      }
      case Op::OpBitFieldInsert:
        for (std::size_t i = 0; i < value(operands[0]).size(); ++i) {
          slots.push_back(emit(in, Code::kInsert, bits_of(in.type), value(operands[0]).at(i), value(operands[1]).at(i), value(operands[2]).at(0), value(operands[3]).at(0)));
        }
        return {};
      default: done = false; return {};
    }
  }

  /// Which scalars of a composite `indices` mean.
  std::pair<std::ptrdiff_t, std::ptrdiff_t> find_part(std::uint32_t id, Words indices) const {
    std::uint32_t at = types_of_.at(id);
    std::uint64_t first = 0, n = count_scalars(at);
    const std::uint64_t all = n;
    for (const std::uint32_t index : indices) {
      const auto [before, own] = part_of(at, index);
      first += before, n = own;
      if (first + n > all) throw std::out_of_range("a part beyond a composite");  // the length of a cooperative matrix is the implementation's
      at = part_type(at, index);
    }
    return {static_cast<std::ptrdiff_t>(first), static_cast<std::ptrdiff_t>(n)};
  }

  Status conversions(const Instruction& in, bool& done) {
    const Words& operands = in.operands;
    done = true;
    const std::uint32_t to = operands.empty() || in.type == 0 ? 32 : bits_of(in.type), from = operands.empty() ? 32 : bits_of_value(operands[0]);
    switch (in.op) {
      case Op::OpConvertUToF: each(in, Code::kToFloatU, from, operands, to); return {};
      case Op::OpConvertSToF: each(in, Code::kToFloatS, from, operands, to); return {};
      case Op::OpConvertFToU: each(in, Code::kFromFloatU, from, operands, to); return {};
      case Op::OpConvertFToS: each(in, Code::kFromFloatS, from, operands, to); return {};
      case Op::OpUConvert: each(in, Code::kNarrow, from, operands, to); return {};
      case Op::OpSConvert: each(in, Code::kWidenS, from, operands, to); return {};
      case Op::OpFConvert: each(in, to == from ? Code::kCopy : to == 32 ? Code::kFloatWiden : Code::kFloatNarrow, from, operands); return {};
      case Op::OpQuantizeToF16: return lacks(in);
      case Op::OpBitcast: return bitcast(in, from, to);
      case Op::OpSDot:
      case Op::OpUDot:
      case Op::OpSUDot:
      case Op::OpSDotAccSat:
      case Op::OpUDotAccSat:
      case Op::OpSUDotAccSat: {
        if (from != 32 || to != 32 || value(operands[0]).size() != 1) return lacks(in, "anything but four bytes in 32 bits, with a result of 32");
        const bool adds = in.op == Op::OpSDotAccSat || in.op == Op::OpUDotAccSat || in.op == Op::OpSUDotAccSat;
        const std::uint32_t signs = in.op == Op::OpSDot || in.op == Op::OpSDotAccSat ? 3u : in.op == Op::OpSUDot || in.op == Op::OpSUDotAccSat ? 1u : 0u;
        values_[in.result] = {emit(in, Code::kDot4, 32, value(operands[0]).at(0), value(operands[1]).at(0), adds ? value(operands[2]).at(0) : kNone, signs | (adds ? 12u : 0u))};
        return {};
      }
      default: done = false; return {};
    }
  }

  /// Between vectors of other widths too: the first parts are the low bits.
  Status bitcast(const Instruction& in, std::uint32_t from, std::uint32_t to) {
    const Slots source = value(in.operands[0]);
    Slots& slots = values_[in.result];
    if (from == to) {
      slots = source;
    } else if (from > to) {
      for (const Slot slot : source) {
        for (std::uint32_t bit = 0; bit < from; bit += to) slots.push_back(emit(in, Code::kExtractU, 32, slot, constant(bit), constant(to)));
      }
    } else {
      for (std::size_t i = 0; i < source.size(); i += to / from) {
        Slot all = source[i];
        for (std::uint32_t k = 1; k < to / from; ++k) all = emit(in, Code::kInsert, 32, all, source.at(i + k), constant(k * from), constant(from));
        slots.push_back(all);
      }
    }
    return {};
  }

  Slot defined_where(const Instruction& in, Slot condition, Slot slot) { return emit(in, Code::kSelect, 32, condition, slot, emit(in, Code::kUndefined, 32, kNone)); }

  /// Component by component; the second may be one number for all.
  Slots float2(const Instruction& in, Code code, std::uint32_t bits, const Slots& a, const Slots& b) {
    Slots slots;
    for (std::size_t i = 0; i < a.size(); ++i) slots.push_back(emit(in, code, bits, a[i], b.size() == 1 ? b[0] : b.at(i)));
    return slots;
  }
  Slot length(const Instruction& in, std::uint32_t bits, const Slots& a) { return emit(in, Code::kFloatSqrt, bits, dot(in, bits, a, a)); }
  Slot number_of(std::uint32_t bits, float value) { return constant(bits == 32 ? std::bit_cast<std::uint32_t>(value) : graph::float_to_half(value)); }

  Status extended(const Instruction& in) {
    if (comments_.contains(in.operands[0])) return {};
    if (in.operands[0] != glsl_) return lacks(in, "a set of instructions other than GLSL.std.450");
    const std::uint32_t number = in.operands[1];
    const Words operands = in.operands.subspan(2);
    const std::uint32_t bits = bits_of_value(operands[0]);
    const auto found = extended_instructions().find(number);
    if (found != extended_instructions().end()) {
      each(in, found->second, bits, operands);
      return {};
    }
    Slots& slots = values_[in.result];
    switch (number) {
      case GLSLstd450FClamp:
      case GLSLstd450NClamp:
      case GLSLstd450UClamp:
      case GLSLstd450SClamp: {
        const bool is_float = number == GLSLstd450FClamp || number == GLSLstd450NClamp;
        const Code most = number == GLSLstd450NClamp ? Code::kFloatMinNumber : is_float ? Code::kFloatMin : number == GLSLstd450UClamp ? Code::kMinU : Code::kMinS;
        const Code least = number == GLSLstd450NClamp ? Code::kFloatMaxNumber : is_float ? Code::kFloatMax : number == GLSLstd450UClamp ? Code::kMaxU : Code::kMaxS;
        const Code in_order = is_float ? Code::kFloatLessEqual : number == GLSLstd450UClamp ? Code::kLessEqualU : Code::kLessEqualS;
        for (std::size_t i = 0; i < value(operands[0]).size(); ++i) {
          const Slot low = component(operands[1], i), high = component(operands[2], i);
          slots.push_back(defined_where(in, emit(in, in_order, bits, low, high), emit(in, most, bits, emit(in, least, bits, component(operands[0], i), low), high)));
        }
        return {};
      }
      case GLSLstd450FMix:  // x (1 - a) + y a
        for (std::size_t i = 0; i < value(operands[0]).size(); ++i) {
          const Slot rest = emit(in, Code::kFloatSub, bits, number_of(bits, 1), component(operands[2], i));
          slots.push_back(emit(in, Code::kFloatAdd, bits, emit(in, Code::kFloatMul, bits, component(operands[0], i), rest), emit(in, Code::kFloatMul, bits, component(operands[1], i), component(operands[2], i))));
        }
        return {};
      case GLSLstd450PackHalf2x16:
        slots = {emit(in, Code::kInsert, 32, emit(in, Code::kFloatNarrow, 32, value(operands[0]).at(0)), emit(in, Code::kFloatNarrow, 32, value(operands[0]).at(1)), constant(16), constant(16))};
        return {};
      case GLSLstd450UnpackHalf2x16:
        for (const std::uint32_t bit : {0u, 16u}) slots.push_back(emit(in, Code::kFloatWiden, 16, emit(in, Code::kExtractU, 32, value(operands[0]).at(0), constant(bit), constant(16))));
        return {};
      case GLSLstd450Length: slots = {length(in, bits, value(operands[0]))}; return {};
      case GLSLstd450Distance: slots = {length(in, bits, float2(in, Code::kFloatSub, bits, value(operands[0]), value(operands[1])))}; return {};
      case GLSLstd450Normalize: slots = float2(in, Code::kFloatDiv, bits, value(operands[0]), {length(in, bits, value(operands[0]))}); return {};
      case GLSLstd450Cross: {
        const Slots a = value(operands[0]), b = value(operands[1]);
        slots = float2(in, Code::kFloatSub, bits, float2(in, Code::kFloatMul, bits, {a.at(1), a.at(2), a[0]}, {b.at(2), b[0], b.at(1)}), float2(in, Code::kFloatMul, bits, {a[2], a[0], a[1]}, {b[1], b[2], b[0]}));
        return {};
      }
      case GLSLstd450Radians: slots = float2(in, Code::kFloatMul, bits, value(operands[0]), {number_of(bits, std::numbers::pi_v<float> / 180)}); return {};
      case GLSLstd450Degrees: slots = float2(in, Code::kFloatMul, bits, value(operands[0]), {number_of(bits, 180 / std::numbers::pi_v<float>)}); return {};
      case GLSLstd450Step:
        for (std::size_t i = 0; i < value(operands[0]).size(); ++i) slots.push_back(emit(in, Code::kSelect, 32, emit(in, Code::kFloatLess, bits, value(operands[1]).at(i), value(operands[0]).at(i)), constant(0), number_of(bits, 1)));
        return {};
      case GLSLstd450SmoothStep: {  // t t (3 - 2 t), t = (x - a) / (b - a) within 0 and 1
        const Slots a = value(operands[0]), b = value(operands[1]), x = value(operands[2]), one = {number_of(bits, 1)}, zero = {constant(0)};
        Slots t = float2(in, Code::kFloatDiv, bits, float2(in, Code::kFloatSub, bits, x, a), float2(in, Code::kFloatSub, bits, b, a));
        t = float2(in, Code::kFloatMin, bits, float2(in, Code::kFloatMax, bits, t, zero), one);
        slots = float2(in, Code::kFloatMul, bits, float2(in, Code::kFloatMul, bits, t, t), float2(in, Code::kFloatSub, bits, Slots(t.size(), number_of(bits, 3)), float2(in, Code::kFloatMul, bits, t, {number_of(bits, 2)})));
        for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = defined_where(in, emit(in, Code::kFloatLess, bits, a.at(i), b.at(i)), slots[i]);
        return {};
      }
      default: return lacks(in, extended_instruction_name(number));
    }
  }

  Status array_length(const Instruction& in) {
    const Pointer& pointer = pointers_.at(in.operands[0]);
    const std::uint32_t member = in.operands[1], array = type(pointer.type).members.at(member);
    values_[in.result] = {emit(in, Code::kArrayLength, 32, member_offset(pointer.type, member, Layout::kDecorated), stride_of(array, Layout::kDecorated), kNone, pointer.variable)};
    return {};
  }

  /// What waits (kNone: nothing), in whose sight memory is ordered, and which: 1: the workgroup waits, 2: shared memory, 4: buffers, 8: these in sight of other workgroups.
  std::uint32_t barrier_of(std::uint32_t execution, std::uint32_t memory, std::uint32_t semantics) const {
    constexpr std::uint32_t kUniformMemory = 0x40, kWorkgroupMemory = 0x100, kOrders = 0x2 | 0x4 | 0x8 | 0x10;
    const bool of_workgroup = execution <= static_cast<std::uint32_t>(spv::Scope::Workgroup), of_subgroup = execution == static_cast<std::uint32_t>(spv::Scope::Subgroup);
    const bool reaches = memory != static_cast<std::uint32_t>(spv::Scope::Invocation) && (of_subgroup || memory != static_cast<std::uint32_t>(spv::Scope::Subgroup));
    const bool orders = reaches && (semantics & kOrders) != 0;
    const bool reaches_others = memory == static_cast<std::uint32_t>(spv::Scope::Device) || memory == static_cast<std::uint32_t>(spv::Scope::QueueFamily) || memory == static_cast<std::uint32_t>(spv::Scope::CrossDevice);
    const bool of_buffers = orders && (semantics & kUniformMemory) != 0;
    return (of_workgroup ? 1u : 0u) | (orders && (semantics & kWorkgroupMemory) ? 2u : 0u) | (of_buffers ? 4u : 0u) | (of_buffers && reaches_others ? 8u : 0u);
  }

  /// The slots of a built-in input, whether or not the module has it.
  const Slots& own_lane(BuiltIn what) {
    Slots& slots = own_lanes_[what];
    if (!slots.empty()) return slots;
    slots.resize(what == BuiltIn::kSubgroupInvocationId || what == BuiltIn::kSubgroupSize ? 1 : 4);
    for (Slot& slot : slots) slot = new_slot();
    module_.inputs.push_back({what, slots});
    return slots;
  }
  Slots both(const Instruction& in, Code code, const Slots& a, const Slots& b) {
    Slots slots;
    for (std::size_t i = 0; i < a.size(); ++i) slots.push_back(emit(in, code, 32, a[i], b.at(i)));
    return slots;
  }
  /// A mask without the lanes that a subgroup does not have.
  Slots of_subgroup(const Instruction& in, const Slots& mask) { return both(in, Code::kAnd, mask, both(in, Code::kOr, own_lane(BuiltIn::kSubgroupGeMask), own_lane(BuiltIn::kSubgroupLtMask))); }
  /// Whether a mask of four words has lane `lane`.
  Slot bit_of(const Instruction& in, const Slots& words, Slot lane) {
    const Slot word = pick(in, words, emit(in, Code::kShiftRightU, 32, lane, constant(5)));
    return emit(in, Code::kExtractU, 32, word, emit(in, Code::kAnd, 32, lane, constant(31)), constant(1));
  }

  Status between_lanes(const Instruction& in, bool& done) {
    const Words& operands = in.operands;
    done = true;
    switch (in.op) {
      case Op::OpControlBarrier:
        module_.operations.push_back({Code::kBarrier, 32, kNone, kNone, kNone, kNone, barrier_of(constant_of(operands[0]), constant_of(operands[1]), constant_of(operands[2])), place_of(in)});
        return {};
      case Op::OpMemoryBarrier:
        module_.operations.push_back({Code::kMemoryBarrier, 32, kNone, kNone, kNone, kNone, barrier_of(kNone, constant_of(operands[0]), constant_of(operands[1])), place_of(in)});
        return {};
      case Op::OpGroupNonUniformElect: values_[in.result] = {emit(in, Code::kElect, 32, kNone)}; return {};
      case Op::OpGroupNonUniformAll: each(in, Code::kVoteAll, 32, operands.subspan(1)); return {};
      case Op::OpGroupNonUniformAny: each(in, Code::kVoteAny, 32, operands.subspan(1)); return {};
      case Op::OpGroupNonUniformAllEqual: {
        const std::uint32_t bits = bits_of_value(operands[1]);
        const bool floats = scalar_type(types_of_.at(operands[1])).op == Op::OpTypeFloat;
        Slot all = constant(1);
        for (const Slot part : Slots(value(operands[1]))) all = emit(in, Code::kLogicalAnd, 32, all, emit(in, Code::kVoteEqual, bits, part, kNone, kNone, floats ? 1 : 0));
        values_[in.result] = {all};
        return {};
      }
      case Op::OpGroupNonUniformBroadcast: each(in, Code::kShuffle, 32, operands.subspan(1), kSameLane); return {};
      case Op::OpGroupNonUniformShuffle: each(in, Code::kShuffle, 32, operands.subspan(1)); return {};
      case Op::OpGroupNonUniformShuffleXor: each(in, Code::kShuffleXor, 32, operands.subspan(1)); return {};
      case Op::OpGroupNonUniformShuffleUp: each(in, Code::kShuffleUp, 32, operands.subspan(1)); return {};
      case Op::OpGroupNonUniformShuffleDown: each(in, Code::kShuffleDown, 32, operands.subspan(1)); return {};
      case Op::OpGroupNonUniformBroadcastFirst: each(in, Code::kBroadcastFirst, 32, operands.subspan(1)); return {};
      case Op::OpGroupNonUniformQuadBroadcast: each(in, Code::kShuffleQuad, 32, operands.subspan(1), kSameLane); return {};
      case Op::OpGroupNonUniformQuadSwap: {
        const Slot apart = constant(constant_of(operands[2]) + 1);
        for (const Slot part : Slots(value(operands[1]))) values_[in.result].push_back(emit(in, Code::kShuffleXor, 32, part, apart));
        return {};
      }
      case Op::OpGroupNonUniformInverseBallot: values_[in.result] = {bit_of(in, value(operands[1]), own_lane(BuiltIn::kSubgroupInvocationId)[0])}; return {};
      case Op::OpGroupNonUniformBallotBitExtract: {
        const Slot lane = value(operands[2]).at(0), bit = bit_of(in, value(operands[1]), lane);
        values_[in.result] = {defined_where(in, emit(in, Code::kLessU, 32, lane, own_lane(BuiltIn::kSubgroupSize)[0]), bit)};
        return {};
      }
      case Op::OpGroupNonUniformBallotFindLSB:
      case Op::OpGroupNonUniformBallotFindMSB: {
        const bool first = in.op == Op::OpGroupNonUniformBallotFindLSB;
        const Slots words = of_subgroup(in, value(operands[1]));
        Slot found = emit(in, Code::kUndefined, 32, kNone);
        for (std::uint32_t k = 0; k < 4; ++k) {
          const std::uint32_t i = first ? 3 - k : k;
          const Slot here = emit(in, Code::kAdd, 32, emit(in, first ? Code::kFindLsb : Code::kFindMsbU, 32, words.at(i)), constant(32 * i));
          found = emit(in, Code::kSelect, 32, words.at(i), here, found);
        }
        values_[in.result] = {found};
        return {};
      }
      case Op::OpGroupNonUniformBallot:
        for (std::uint32_t i = 0; i < 4; ++i) values_[in.result].push_back(emit(in, Code::kBallot, 32, value(operands[1]).at(0), kNone, kNone, i));
        return {};
      default: break;
    }
    if (in.op == Op::OpGroupNonUniformBallotBitCount) {
      const auto how = static_cast<spv::GroupOperation>(operands[1]);
      Slots words = of_subgroup(in, value(operands[2]));
      if (how != spv::GroupOperation::Reduce) words = both(in, Code::kAnd, words, own_lane(how == spv::GroupOperation::InclusiveScan ? BuiltIn::kSubgroupLeMask : BuiltIn::kSubgroupLtMask));
      Slot sum = constant(0);
      for (const Slot word : words) sum = emit(in, Code::kAdd, 32, sum, emit(in, Code::kBitCount, 32, word));
      values_[in.result] = {sum};
      return {};
    }
    if (const auto reduction = reductions().find(in.op); reduction != reductions().end()) {
      const auto how = static_cast<spv::GroupOperation>(operands[1]);
      std::uint32_t extra = 0;
      switch (how) {
        case spv::GroupOperation::Reduce: break;
        case spv::GroupOperation::InclusiveScan: extra = kInclusiveScan; break;
        case spv::GroupOperation::ExclusiveScan: extra = kExclusiveScan; break;
        case spv::GroupOperation::ClusteredReduce:
          extra = constant_of(operands[3]);
          if (extra == 0 || extra > 128 || !std::has_single_bit(extra)) return lacks(in, fmt::format("clusters of {}", extra));
          break;
        default: return lacks(in, "such a group operation");
      }
      each(in, reduction->second, bits_of(in.type), operands.subspan(2, 1), extra);
      return {};
    }
    return atomic(in, done);
  }

  Status atomic(const Instruction& in, bool& done) {
    const Words& operands = in.operands;
    const auto found = atomics().find(in.op);
    const bool is_other = in.op == Op::OpAtomicLoad || in.op == Op::OpAtomicStore || in.op == Op::OpAtomicIIncrement || in.op == Op::OpAtomicIDecrement || in.op == Op::OpAtomicISub || in.op == Op::OpAtomicCompareExchange;
    done = found != atomics().end() || is_other;
    if (!done) return {};
    const auto pointer = pointers_.find(operands[0]);
    if (pointer == pointers_.end() || pointer->second.input != kNone) return lacks(in, "a pointer that is no variable's");
    if (bits_of(pointer->second.type) != 32 || type(pointer->second.type).op != Op::OpTypeInt) return lacks(in, "anything but integers of 32 bits");
    Slot a = kNone, b = kNone;
    Code code = found != atomics().end() ? found->second : Code::kAtomicAdd;
    switch (in.op) {
      case Op::OpAtomicLoad: code = Code::kAtomicLoad; break;
      case Op::OpAtomicStore: code = Code::kAtomicStore, a = value(operands[3]).at(0); break;
      case Op::OpAtomicIIncrement: a = constant(1); break;
      case Op::OpAtomicIDecrement: a = constant(kNone); break;
      case Op::OpAtomicISub: a = emit(in, Code::kNegate, 32, value(operands[3]).at(0)); break;
      case Op::OpAtomicCompareExchange: code = Code::kAtomicCompare, a = value(operands[4]).at(0), b = value(operands[5]).at(0); break;
      default: a = value(operands[3]).at(0); break;
    }
    const Slot to = new_slot();
    std::vector<Access> accesses = accesses_of(pointer->second, {to});
    emit_access(in, code, std::move(accesses[0]), to, a, b);
    if (in.result != 0) values_[in.result] = {to};
    return {};
  }

  /// Instructions of extensions that are newer than the headers.
  Status newer(const Instruction& in, bool& done) {
    const Words& operands = in.operands;
    done = true;
    if (in.op == valve::OpFDot2MixAcc32) {
      Slot sum = value(operands[2]).at(0);
      for (std::size_t i = 0; i < 2; ++i) {
        const Slot a = emit(in, Code::kFloatWiden, 16, value(operands[0]).at(i)), b = emit(in, Code::kFloatWiden, 16, value(operands[1]).at(i));
        sum = emit(in, Code::kFloatFma, 32, a, b, sum);
      }
      values_[in.result] = {sum};
      return {};
    }
    if (in.op == khr::OpCooperativeMatrixLength) {
      values_[in.result] = {constant(type(operands[0]).count)};
      return {};
    }
    if (in.op == khr::OpCooperativeMatrixLoad) {
      Slots slots(count_scalars(in.type));
      for (Slot& slot : slots) slot = new_slot();
      values_[in.result] = slots;
      return matrix_access(in, Code::kMatrixLoad, in.type, operands[0], std::move(slots), operands.subspan(1));
    }
    if (in.op == khr::OpCooperativeMatrixStore) return matrix_access(in, Code::kMatrixStore, types_of_.at(operands[1]), operands[0], value(operands[1]), operands.subspan(2));
    if (in.op == khr::OpCooperativeMatrixMulAdd) return product(in);
    done = false;
    return {};
  }

  /// `how`: the order in memory, and the stride.
  Status matrix_access(const Instruction& in, Code code, std::uint32_t matrix, std::uint32_t at, Slots slots, Words how) {
    const auto found = pointers_.find(at);
    if (found == pointers_.end() || found->second.input != kNone) return lacks(in, "a pointer that is no variable's");
    const Pointer& pointer = found->second;
    Variable& variable = module_.variables[pointer.variable];
    if (variable.space != Space::kBuffer && variable.space != Space::kShared) return lacks(in, "memory that is neither a buffer nor shared");
    const std::uint32_t order = constant_of(how[0]);
    if (order > 1) return lacks(in, fmt::format("order {} in memory", order));
    if (how.size() < 2) return lacks(in, "a matrix without a stride");
    MatrixAccess access;
    access.variable = pointer.variable, access.offset = pointer.offset, access.first_byte = pointer.first_byte;
    access.stride = value(how[1])[0], access.stride_bytes = size_of(pointer.type, layout_of(variable.space));
    access.rows = type(matrix).rows, access.columns = type(matrix).columns;
    access.by_column = order == 1;
    access.together = type(matrix).together;
    access.bits = static_cast<std::uint8_t>(bits_of(matrix));
    access.type = matrix;
    access.slots = std::move(slots);
    if (code == Code::kMatrixStore) variable.read_only = false;
    module_.smallest_access_bytes = std::min<std::uint32_t>(module_.smallest_access_bytes, access.bits / 8);
    module_.operations.push_back({code, access.bits, kNone, kNone, kNone, kNone, static_cast<std::uint32_t>(module_.matrix_accesses.size()), place_of(in)});
    module_.matrix_accesses.push_back(std::move(access));
    return {};
  }

  Status product(const Instruction& in) {
    constexpr std::uint32_t kSaturates = 16;
    const Words& operands = in.operands;
    const std::uint32_t flags = operands.size() > 3 ? operands[3] : 0;
    MatrixProduct product;
    const auto operand = [&](std::uint32_t matrix, Slots slots, std::uint32_t flag) {
      return MatrixProduct::Operand{std::move(slots), static_cast<std::uint8_t>(bits_of(matrix)), scalar_type(matrix).op == Op::OpTypeFloat, (flags & flag) != 0, type(matrix).together};
    };
    const std::uint32_t a = types_of_.at(operands[0]), b = types_of_.at(operands[1]), c = types_of_.at(operands[2]);
    product.rows = type(in.type).rows, product.columns = type(in.type).columns, product.depth = type(a).columns;
    if (product.rows == 0 || type(a).rows != product.rows || type(b).columns != product.columns || type(b).rows != product.depth || type(c).rows != product.rows || type(c).columns != product.columns) return lacks(in, "matrices that do not fit");
    Slots to(count_scalars(in.type));
    for (Slot& slot : to) slot = new_slot();
    values_[in.result] = to;
    product.a = operand(a, value(operands[0]), 1), product.b = operand(b, value(operands[1]), 2), product.c = operand(c, value(operands[2]), 4), product.to = operand(in.type, std::move(to), 8);
    if (product.a.is_float != product.to.is_float || product.b.is_float != product.to.is_float || product.c.is_float != product.to.is_float) return lacks(in, "integers and floats together");
    product.saturates = (flags & kSaturates) != 0;
    module_.operations.push_back({Code::kMatrixProduct, 32, kNone, kNone, kNone, kNone, static_cast<std::uint32_t>(module_.matrix_products.size()), place_of(in)});
    module_.matrix_products.push_back(std::move(product));
    return {};
  }

  /// Places of shared and private variables in their memories.
  Status lay_out() {
    for (Variable& variable : module_.variables) {
      if (variable.space != Space::kShared && variable.space != Space::kPrivate) continue;
      std::uint32_t& end = variable.space == Space::kShared ? module_.shared_bytes : module_.private_bytes;
      variable.first_byte = end;
      if (variable.size_bytes > kMostOwnBytes - end) return Status(StatusCode::kUnsupported, fmt::format("{}: {} has {} bytes; the simulator gives a workgroup or an invocation {}", name_, variable.name.empty() ? "an array" : variable.name, variable.size_bytes, kMostOwnBytes));
      end += (variable.size_bytes + 15) / 16 * 16;
    }
    return {};
  }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> initial_stores_;
  std::map<BuiltIn, Slots> own_lanes_;
  std::uint64_t n_scalars_ = 0;                                ///< of all results
  std::vector<Source> body_;
  std::unordered_map<std::uint32_t, std::size_t> numbers_;     ///< of labels, in body_
  std::vector<std::size_t> order_;
  std::vector<std::uint32_t> position_;                        ///< of body_'s blocks, in module_.blocks
  std::map<std::tuple<std::uint32_t, std::uint32_t, Op>, std::uint32_t> places_;
};

}  // namespace

Result<Module> read_module(std::span<const std::uint32_t> words, const ReadOptions& options, const std::string& name) {
  RONDO_ASSIGN(const std::vector<std::uint32_t> prepared, prepare(words, options, name));
  return decode_module(prepared, options.subgroup_size, name);
}

Result<Module> decode_module(std::span<const std::uint32_t> prepared, std::uint32_t subgroup_size, const std::string& name) {
  try {
    return Decoder(prepared, subgroup_size, name).run();
  } catch (const std::out_of_range&) {  // an id that is no type, value or block of those that were declared
    return Status(StatusCode::kUnsupported, fmt::format("{}: uses an id in a way that the simulator does not know", name));
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, fmt::format("{}: takes more memory than there is", name));
  }
}

std::string describe(const Module& module, std::uint32_t place) {
  const Place& at = module.places[place];
  if (at.line == 0) return at.instruction;
  return fmt::format("{}:{} ({})", at.file == kNone ? "line " : module.files[at.file], at.line, at.instruction);
}

}  // namespace rondo::simulator
