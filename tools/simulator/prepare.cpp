#include "tools/simulator/prepare.h"

#include <unordered_map>

#include <spirv-tools/libspirv.hpp>
#include <spirv-tools/optimizer.hpp>

#include "runtime/fmt.h"

namespace rondo::simulator {

namespace {

constexpr spv_target_env kEnvironment = SPV_ENV_VULKAN_1_2;

/// The first thing that SPIRV-Tools says, on one line.
class FirstMessage {
 public:
  spvtools::MessageConsumer consumer() {
    return [this](spv_message_level_t level, const char*, const spv_position_t&, const char* message) {
      if (level > SPV_MSG_ERROR || !text_.empty() || !message) return;
      text_ = message;
      text_ = text_.substr(0, text_.find('\n'));
    };
  }
  std::string text() const { return text_.empty() ? "SPIRV-Tools does not say why" : text_; }

 private:
  std::string text_;
};

}  // namespace

Result<std::vector<std::uint32_t>> prepare(std::span<const std::uint32_t> words, std::span<const std::uint32_t> constants, const std::string& name) {
  FirstMessage message;
  spvtools::SpirvTools tools(kEnvironment);
  tools.SetMessageConsumer(message.consumer());
  spvtools::ValidatorOptions rules;
  rules.SetScalarBlockLayout(true);
  if (!tools.Validate(words.data(), words.size(), rules)) return Status(StatusCode::kCorruptData, fmt::format("{}: is no valid SPIR-V: {}", name, message.text()));

  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> values;
  for (std::size_t i = 0; i < constants.size(); ++i) values[static_cast<std::uint32_t>(i)] = {constants[i]};
  spvtools::Optimizer optimizer(kEnvironment);
  optimizer.SetMessageConsumer(message.consumer());
  optimizer.RegisterPass(spvtools::CreateSetSpecConstantDefaultValuePass(values))
      .RegisterPass(spvtools::CreateFreezeSpecConstantValuePass())
      .RegisterPass(spvtools::CreateFoldSpecConstantOpAndCompositePass())
      .RegisterPerformancePasses()
      // Once more: what unrolling left are arrays with known indices, which become values now.
      .RegisterPass(spvtools::CreateScalarReplacementPass(0))
      .RegisterPass(spvtools::CreateSSARewritePass())
      .RegisterPass(spvtools::CreateSimplificationPass())
      .RegisterPass(spvtools::CreateRedundancyEliminationPass())
      .RegisterPass(spvtools::CreateDeadBranchElimPass())
      .RegisterPass(spvtools::CreateBlockMergePass())
      .RegisterPass(spvtools::CreateAggressiveDCEPass());
  spvtools::OptimizerOptions options;
  options.set_run_validator(false);
  std::vector<std::uint32_t> optimised;
  if (!optimizer.Run(words.data(), words.size(), &optimised, options)) return Status(StatusCode::kCorruptData, fmt::format("{}: SPIRV-Tools can't optimise it: {}", name, message.text()));
  return optimised;
}

}  // namespace rondo::simulator
