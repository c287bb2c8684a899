#include "tools/simulator/instruction_tables.h"

#include <spirv/unified1/GLSL.std.450.h>

#include "runtime/fmt.h"
#include "tools/simulator/newer_instructions.h"

namespace rondo::simulator {

using spv::Op;

std::string instruction_name(Op op) {
  static const std::unordered_map<std::uint32_t, const char*> kNames = {
#include "instruction_names.inc"
  };
  static const std::unordered_map<Op, const char*> kNewer = {
      {khr::OpTypeCooperativeMatrix, "OpTypeCooperativeMatrixKHR"}, {khr::OpCooperativeMatrixLoad, "OpCooperativeMatrixLoadKHR"}, {khr::OpCooperativeMatrixStore, "OpCooperativeMatrixStoreKHR"},
      {valve::OpFDot2MixAcc32, "OpFDot2MixAcc32VALVE"}, {khr::OpCooperativeMatrixMulAdd, "OpCooperativeMatrixMulAddKHR"}, {khr::OpCooperativeMatrixLength, "OpCooperativeMatrixLengthKHR"},
  };
  if (const auto newer = kNewer.find(op); newer != kNewer.end()) return newer->second;
  const auto found = kNames.find(static_cast<std::uint32_t>(op));
  return found == kNames.end() ? fmt::format("instruction {}", static_cast<std::uint32_t>(op)) : found->second;
}

std::string extended_instruction_name(std::uint32_t number) {
  static const std::unordered_map<std::uint32_t, const char*> kNames = {
#include "extended_names.inc"
  };
  const auto found = kNames.find(number);
  return found == kNames.end() ? fmt::format("number {} of GLSL.std.450", number) : found->second;
}

const std::unordered_map<Op, Simple>& simple_instructions() {
  static const std::unordered_map<Op, Simple> kAll = {
      {Op::OpIAdd, {Code::kAdd}}, {Op::OpISub, {Code::kSub}}, {Op::OpIMul, {Code::kMul}}, {Op::OpUDiv, {Code::kDivU}}, {Op::OpSDiv, {Code::kDivS}},
      {Op::OpUMod, {Code::kModU}}, {Op::OpSRem, {Code::kRemS}}, {Op::OpSMod, {Code::kModS}}, {Op::OpSNegate, {Code::kNegate}},
      {Op::OpBitwiseAnd, {Code::kAnd}}, {Op::OpBitwiseOr, {Code::kOr}}, {Op::OpBitwiseXor, {Code::kXor}}, {Op::OpNot, {Code::kNot}},
      {Op::OpLogicalAnd, {Code::kLogicalAnd}}, {Op::OpLogicalOr, {Code::kLogicalOr}}, {Op::OpLogicalNot, {Code::kLogicalNot}}, {Op::OpLogicalEqual, {Code::kEqual}}, {Op::OpLogicalNotEqual, {Code::kNotEqual}},
      {Op::OpShiftLeftLogical, {Code::kShiftLeft}}, {Op::OpShiftRightLogical, {Code::kShiftRightU}}, {Op::OpShiftRightArithmetic, {Code::kShiftRightS}},
      {Op::OpBitFieldUExtract, {Code::kExtractU}}, {Op::OpBitFieldSExtract, {Code::kExtractS}}, {Op::OpBitReverse, {Code::kBitReverse}}, {Op::OpBitCount, {Code::kBitCount}},
      {Op::OpIEqual, {Code::kEqual}}, {Op::OpINotEqual, {Code::kNotEqual}},
      {Op::OpULessThan, {Code::kLessU}}, {Op::OpULessThanEqual, {Code::kLessEqualU}}, {Op::OpUGreaterThan, {Code::kLessU, true}}, {Op::OpUGreaterThanEqual, {Code::kLessEqualU, true}},
      {Op::OpSLessThan, {Code::kLessS}}, {Op::OpSLessThanEqual, {Code::kLessEqualS}}, {Op::OpSGreaterThan, {Code::kLessS, true}}, {Op::OpSGreaterThanEqual, {Code::kLessEqualS, true}},
      {Op::OpFAdd, {Code::kFloatAdd}}, {Op::OpFSub, {Code::kFloatSub}}, {Op::OpFMul, {Code::kFloatMul}}, {Op::OpFDiv, {Code::kFloatDiv}}, {Op::OpFRem, {Code::kFloatRem}}, {Op::OpFMod, {Code::kFloatMod}},
      {Op::OpFNegate, {Code::kFloatNegate}}, {Op::OpIsNan, {Code::kFloatIsNan}}, {Op::OpIsInf, {Code::kFloatIsInf}},
      {Op::OpFOrdEqual, {Code::kFloatEqual}}, {Op::OpFOrdNotEqual, {Code::kFloatNotEqual}}, {Op::OpFOrdLessThan, {Code::kFloatLess}}, {Op::OpFOrdLessThanEqual, {Code::kFloatLessEqual}},
      {Op::OpFOrdGreaterThan, {Code::kFloatLess, true}}, {Op::OpFOrdGreaterThanEqual, {Code::kFloatLessEqual, true}},
      {Op::OpFUnordEqual, {Code::kFloatUnorderedEqual}}, {Op::OpFUnordNotEqual, {Code::kFloatUnorderedNotEqual}}, {Op::OpFUnordLessThan, {Code::kFloatUnorderedLess}},
      {Op::OpFUnordLessThanEqual, {Code::kFloatUnorderedLessEqual}}, {Op::OpFUnordGreaterThan, {Code::kFloatUnorderedLess, true}}, {Op::OpFUnordGreaterThanEqual, {Code::kFloatUnorderedLessEqual, true}},
  };
  return kAll;
}

const std::unordered_map<std::uint32_t, Code>& extended_instructions() {
  static const std::unordered_map<std::uint32_t, Code> kAll = {
      {GLSLstd450RoundEven, Code::kFloatRoundEven}, {GLSLstd450Round, Code::kFloatRoundEven}, {GLSLstd450Trunc, Code::kFloatTrunc}, {GLSLstd450FAbs, Code::kFloatAbs}, {GLSLstd450SAbs, Code::kAbsS},
      {GLSLstd450FSign, Code::kFloatSign}, {GLSLstd450SSign, Code::kSignS}, {GLSLstd450Floor, Code::kFloatFloor}, {GLSLstd450Ceil, Code::kFloatCeil}, {GLSLstd450Fract, Code::kFloatFract},
      {GLSLstd450Sin, Code::kFloatSin}, {GLSLstd450Cos, Code::kFloatCos}, {GLSLstd450Tan, Code::kFloatTan}, {GLSLstd450Asin, Code::kFloatAsin}, {GLSLstd450Acos, Code::kFloatAcos},
      {GLSLstd450Atan, Code::kFloatAtan}, {GLSLstd450Atan2, Code::kFloatAtan2}, {GLSLstd450Sinh, Code::kFloatSinh}, {GLSLstd450Cosh, Code::kFloatCosh}, {GLSLstd450Tanh, Code::kFloatTanh},
      {GLSLstd450Pow, Code::kFloatPow}, {GLSLstd450Exp, Code::kFloatExp}, {GLSLstd450Log, Code::kFloatLog}, {GLSLstd450Exp2, Code::kFloatExp2}, {GLSLstd450Log2, Code::kFloatLog2},
      {GLSLstd450Sqrt, Code::kFloatSqrt}, {GLSLstd450InverseSqrt, Code::kFloatInverseSqrt}, {GLSLstd450FMin, Code::kFloatMin}, {GLSLstd450FMax, Code::kFloatMax},
      {GLSLstd450NMin, Code::kFloatMinNumber}, {GLSLstd450NMax, Code::kFloatMaxNumber}, {GLSLstd450UMin, Code::kMinU}, {GLSLstd450UMax, Code::kMaxU}, {GLSLstd450SMin, Code::kMinS}, {GLSLstd450SMax, Code::kMaxS},
      {GLSLstd450Fma, Code::kFloatFma}, {GLSLstd450FindILsb, Code::kFindLsb}, {GLSLstd450FindUMsb, Code::kFindMsbU}, {GLSLstd450FindSMsb, Code::kFindMsbS},
  };
  return kAll;
}

const std::unordered_map<Op, Code>& reductions() {
  static const std::unordered_map<Op, Code> kAll = {
      {Op::OpGroupNonUniformIAdd, Code::kReduceAdd}, {Op::OpGroupNonUniformIMul, Code::kReduceMul}, {Op::OpGroupNonUniformUMin, Code::kReduceMinU}, {Op::OpGroupNonUniformUMax, Code::kReduceMaxU},
      {Op::OpGroupNonUniformSMin, Code::kReduceMinS}, {Op::OpGroupNonUniformSMax, Code::kReduceMaxS}, {Op::OpGroupNonUniformBitwiseAnd, Code::kReduceAnd}, {Op::OpGroupNonUniformBitwiseOr, Code::kReduceOr},
      {Op::OpGroupNonUniformBitwiseXor, Code::kReduceXor}, {Op::OpGroupNonUniformLogicalAnd, Code::kReduceAnd}, {Op::OpGroupNonUniformLogicalOr, Code::kReduceOr}, {Op::OpGroupNonUniformLogicalXor, Code::kReduceXor},
      {Op::OpGroupNonUniformFAdd, Code::kReduceFloatAdd}, {Op::OpGroupNonUniformFMul, Code::kReduceFloatMul}, {Op::OpGroupNonUniformFMin, Code::kReduceFloatMin}, {Op::OpGroupNonUniformFMax, Code::kReduceFloatMax},
  };
  return kAll;
}

const std::unordered_map<Op, Code>& atomics() {
  static const std::unordered_map<Op, Code> kAll = {
      {Op::OpAtomicIAdd, Code::kAtomicAdd}, {Op::OpAtomicAnd, Code::kAtomicAnd}, {Op::OpAtomicOr, Code::kAtomicOr}, {Op::OpAtomicXor, Code::kAtomicXor}, {Op::OpAtomicUMin, Code::kAtomicMinU},
      {Op::OpAtomicUMax, Code::kAtomicMaxU}, {Op::OpAtomicSMin, Code::kAtomicMinS}, {Op::OpAtomicSMax, Code::kAtomicMaxS}, {Op::OpAtomicExchange, Code::kAtomicExchange},
  };
  return kAll;
}

}  // namespace rondo::simulator
