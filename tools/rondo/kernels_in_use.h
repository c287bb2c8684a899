// The pipelines that a device would run: what the lowering chooses for it at the standard shapes of kernel_cases.h and for
// all cases of `check`, and the largest tiles, which a device with other numbers of cores has. Pure.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "runtime/device_caps.h"
#include "runtime/program.h"

namespace rondo::tools {

struct KernelInUse {
  /// Operator, kernel, type: "linear vector q8_0"; "f16 linear vector q8_0" with activations in f16. Several specializations
  /// may share one.
  std::string label;
  runtime::Kernel kernel;
  std::array<runtime::InnerLoop, 2> loops{};
};

/// Each pipeline once, those of the standard shapes first. `forced`: operator name -> kernel name. Errors: kInvalidArgument (a
/// case of `check` that is none, which is a bug).
Result<std::vector<KernelInUse>> kernels_in_use(const runtime::DeviceCaps& caps, const std::map<std::string, std::string, std::less<>>& forced);

/// What the shader calls its specialization constant number `index`, as in "kWeightType".
std::string constant_name(runtime::Shader shader, std::uint32_t index);

}  // namespace rondo::tools
