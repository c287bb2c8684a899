// What Debian 12's headers do not name: SPV_KHR_cooperative_matrix, which others have had since 2023, and SPV_VALVE_mixed_float_dot_product, since 2026.
#pragma once

#include <spirv/unified1/spirv.hpp11>

namespace rondo::simulator::khr {

constexpr auto kCapabilityCooperativeMatrix = static_cast<spv::Capability>(6022);
constexpr auto OpTypeCooperativeMatrix = static_cast<spv::Op>(4456);
constexpr auto OpCooperativeMatrixLoad = static_cast<spv::Op>(4457);
constexpr auto OpCooperativeMatrixStore = static_cast<spv::Op>(4458);
constexpr auto OpCooperativeMatrixMulAdd = static_cast<spv::Op>(4459);
constexpr auto OpCooperativeMatrixLength = static_cast<spv::Op>(4460);

}  // namespace rondo::simulator::khr

namespace rondo::simulator::valve {

constexpr auto kCapabilityHalfDot = static_cast<spv::Capability>(6912);
constexpr auto OpFDot2MixAcc32 = static_cast<spv::Op>(6916);

}  // namespace rondo::simulator::valve
