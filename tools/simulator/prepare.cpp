#include "tools/simulator/prepare.h"

#include <algorithm>
#include <unordered_map>

#include <spirv-tools/libspirv.hpp>
#include <spirv-tools/optimizer.hpp>
#include <spirv/unified1/spirv.hpp11>

#include "runtime/fmt.h"

namespace rondo::simulator {

namespace {

constexpr spv_target_env kEnvironment = SPV_ENV_VULKAN_1_2;
constexpr std::uint32_t kMostUnrolled = 1024;

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

bool is_comparison(spv::Op op) { return op >= spv::Op::OpIEqual && op <= spv::Op::OpSLessThanEqual; }

/// Takes the wish to be unrolled from loops that count to, from or by more than `most`, or with the loops around them 16 times that,
/// which SPIRV-Tools would unroll until memory ends. What a loop counts is taken for constants among its header's phis and its first
/// comparison.
void bound_unrolling(std::vector<std::uint32_t>& words, std::uint32_t most) {
  constexpr std::uint32_t kUnroll = 1;
  std::unordered_map<std::uint32_t, std::uint32_t> values;
  struct Loop {
    std::uint32_t merge;
    std::uint64_t rounds;  // with those of the loops around it
  };
  std::vector<Loop> around;
  std::uint32_t counts = 1;
  bool waits = false;  // for the comparison that ends the loop
  std::size_t hint = 0;
  for (std::size_t at = 5; at < words.size(); at += std::max(words[at] >> 16, 1u)) {
    const auto op = static_cast<spv::Op>(words[at] & 0xffffu);
    const std::uint32_t n = words[at] >> 16;
    if (op == spv::Op::OpConstant && n == 4) values[words[at + 2]] = words[at + 3];
    if (op == spv::Op::OpLabel) {
      const auto ended = std::find_if(around.begin(), around.end(), [&](const Loop& loop) { return loop.merge == words[at + 1]; });
      around.erase(ended, around.end());
      if (!waits) counts = 1;
    }
    if (op == spv::Op::OpPhi || is_comparison(op)) {
      for (std::uint32_t i = 3; i < n; i += op == spv::Op::OpPhi ? 2 : 1) {
        const auto found = values.find(words[at + i]);
        if (found != values.end()) counts = std::max(counts, std::min(found->second, 0u - found->second));
      }
    }
    if (op == spv::Op::OpLoopMerge) waits = (words[at + 3] & kUnroll) != 0, hint = at + 3;
    if (op != spv::Op::OpBranchConditional || !waits) continue;
    const std::uint64_t rounds = counts * (around.empty() ? 1 : around.back().rounds);
    if (counts > most || rounds > std::uint64_t{16} * most) words[hint] &= ~kUnroll;
    else around.push_back({words[hint - 2], rounds});
    waits = false, counts = 1;
  }
}

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
  spvtools::Optimizer before(kEnvironment);
  before.SetMessageConsumer(message.consumer());
  before.RegisterPass(spvtools::CreateSetSpecConstantDefaultValuePass(values))
      .RegisterPass(spvtools::CreateFreezeSpecConstantValuePass())
      .RegisterPass(spvtools::CreateFoldSpecConstantOpAndCompositePass())
      .RegisterPass(spvtools::CreateMergeReturnPass())
      .RegisterPass(spvtools::CreateInlineExhaustivePass())
      .RegisterPass(spvtools::CreateEliminateDeadFunctionsPass())
      .RegisterPass(spvtools::CreateSSARewritePass())
      .RegisterPass(spvtools::CreateCCPPass());
  optimizer.RegisterPerformancePasses()
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
  std::vector<std::uint32_t> inlined, optimised;
  if (!before.Run(words.data(), words.size(), &inlined, options)) return Status(StatusCode::kCorruptData, fmt::format("{}: SPIRV-Tools can't inline it: {}", name, message.text()));
  bound_unrolling(inlined, kMostUnrolled);
  if (!optimizer.Run(inlined.data(), inlined.size(), &optimised, options)) return Status(StatusCode::kCorruptData, fmt::format("{}: SPIRV-Tools can't optimise it: {}", name, message.text()));
  return optimised;
}

}  // namespace rondo::simulator
