#include "tools/simulator/prepare.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_map>

#include <spirv-tools/libspirv.hpp>
#include <spirv-tools/optimizer.hpp>
#include <spirv/unified1/spirv.hpp11>

#include "runtime/fmt.h"
#include "tools/simulator/newer_instructions.h"

namespace rondo::simulator {

namespace {

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

/// Takes the wish to be unrolled from loops that count to, from or by more than kMostUnrolled, or with the loops around them
/// 16 times that, which SPIRV-Tools would unroll until memory ends. What a loop counts is taken for constants among its header's
/// phis and its first comparison.
void bound_unrolling(std::vector<std::uint32_t>& words) {
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
    if (counts > kMostUnrolled || rounds > std::uint64_t{16} * kMostUnrolled) words[hint] &= ~kUnroll;
    else around.push_back({words[hint - 2], rounds});
    waits = false, counts = 1;
  }
}

/// Gives specialization constants 0, 1, ... these values; others keep their own.
void set_constants(std::vector<std::uint32_t>& words, std::span<const std::uint32_t> constants) {
  std::unordered_map<std::uint32_t, std::uint32_t> values;
  for (std::size_t at = 5; at < words.size(); at += std::max(words[at] >> 16, 1u)) {
    const auto op = static_cast<spv::Op>(words[at] & 0xffffu);
    if (op == spv::Op::OpDecorate && static_cast<spv::Decoration>(words[at + 2]) == spv::Decoration::SpecId && words[at + 3] < constants.size()) values[words[at + 1]] = constants[words[at + 3]];
    const bool is_bool = op == spv::Op::OpSpecConstantTrue || op == spv::Op::OpSpecConstantFalse;
    if (!is_bool && op != spv::Op::OpSpecConstant) continue;
    const auto found = values.find(words[at + 2]);
    if (found == values.end()) continue;
    if (is_bool) words[at] = (words[at] & 0xffff0000u) | static_cast<std::uint32_t>(found->second != 0 ? spv::Op::OpSpecConstantTrue : spv::Op::OpSpecConstantFalse);
    else words[at + 3] = found->second;
  }
}

/// Whether instructions follow each other to the end.
bool is_whole(std::span<const std::uint32_t> words) {
  if (words.size() < 5 || words[0] != spv::MagicNumber) return false;
  std::size_t at = 5;
  while (at < words.size() && words[at] >> 16 != 0) at += words[at] >> 16;
  return at == words.size();
}

/// Instructions that Debian 12's SPIRV-Tools do not know.
bool has_newer_instructions(std::span<const std::uint32_t> words) {
  for (std::size_t at = 5; at + 1 < words.size(); at += std::max(words[at] >> 16, 1u)) {
    const auto op = static_cast<spv::Op>(words[at] & 0xffffu);
    const auto capability = static_cast<spv::Capability>(words[at + 1]);
    if (op == spv::Op::OpCapability && (capability == khr::kCapabilityCooperativeMatrix || capability == valve::kCapabilityHalfDot)) return true;
    if (op == spv::Op::OpMemoryModel) return false;
  }
  return false;
}

// What is done before and after loops are kept from being unrolled, as arguments of spirv-opt.
const std::vector<std::string>& inlining() {
  static const std::vector<std::string> kPasses = {"--freeze-spec-const", "--fold-spec-const-op-composite", "--eliminate-dead-branches", "--eliminate-dead-functions", "--merge-return", "--inline-entry-points-exhaustive", "--eliminate-dead-functions", "--ssa-rewrite", "--ccp"};
  return kPasses;
}
const std::vector<std::string>& optimising() {
  // -O once, and then for the arrays with known indices that unrolling left, which become values now.
  static const std::vector<std::string> kPasses = {"-O", "--scalar-replacement=0", "--ssa-rewrite", "--simplify-instructions", "--redundancy-elimination", "--eliminate-dead-branches", "--merge-blocks", "--eliminate-dead-code-aggressive"};
  return kPasses;
}

/// Where loops are kept: what is known by then is left out, and no more, as optimising takes longer than such a module runs.
std::vector<std::string> inlining_alone() {
  std::vector<std::string> passes = inlining();
  passes.insert(passes.end(), {"--eliminate-dead-branches", "--merge-blocks", "--simplify-instructions", "--eliminate-dead-code-aggressive"});
  return passes;
}

/// SPIRV-Tools as it is linked.
class LinkedTools {
 public:
  explicit LinkedTools(std::uint32_t version) : environment_(version > 0x10500u ? SPV_ENV_VULKAN_1_3 : SPV_ENV_VULKAN_1_2) {}

  Status validate(std::span<const std::uint32_t> words) const {
    FirstMessage message;
    spvtools::SpirvTools tools(environment_);
    tools.SetMessageConsumer(message.consumer());
    spvtools::ValidatorOptions rules;
    rules.SetScalarBlockLayout(true);
    return tools.Validate(words.data(), words.size(), rules) ? Status() : Status(StatusCode::kCorruptData, message.text());
  }
  Result<std::vector<std::uint32_t>> run(std::span<const std::uint32_t> words, const std::vector<std::string>& passes) const {
    FirstMessage message;
    spvtools::Optimizer optimizer(environment_);
    optimizer.SetMessageConsumer(message.consumer());
    spvtools::OptimizerOptions options;
    options.set_run_validator(false);
    std::vector<std::uint32_t> done;
    if (!optimizer.RegisterPassesFromFlags(passes) || !optimizer.Run(words.data(), words.size(), &done, options)) return Status(StatusCode::kCorruptData, message.text());
    return done;
  }

 private:
  spv_target_env environment_;
};

/// SPIRV-Tools as `program` runs it.
class OtherTools {
 public:
  explicit OtherTools(std::string program) : program_(std::move(program)) {}

  Status validate(std::span<const std::uint32_t> words) { return start(words, {"spirv-val", "--target-env", "vulkan1.3", "--scalar-block-layout"}, false).status(); }
  Result<std::vector<std::uint32_t>> run(std::span<const std::uint32_t> words, const std::vector<std::string>& passes) {
    std::vector<std::string> arguments = {"spirv-opt", "--target-env=vulkan1.3"};
    arguments.insert(arguments.end(), passes.begin(), passes.end());
    return start(words, std::move(arguments), true);
  }

 private:
  Result<std::vector<std::uint32_t>> start(std::span<const std::uint32_t> words, std::vector<std::string> arguments, bool writes) {
    namespace fs = std::filesystem;
    std::error_code none;
    std::string folder = (fs::temp_directory_path(none) / "rondo-simulate-XXXXXX").string();
    if (none || !mkdtemp(folder.data())) return Status(StatusCode::kIo, fmt::format("{}: no folder for temporary files can be made", folder));
    const std::string in = folder + "/in.spv", out = folder + "/out.spv", said = folder + "/said";
    std::ofstream file(in, std::ios::binary);
    file.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
    file.close();
    arguments.insert(arguments.begin(), program_);
    arguments.push_back(in);
    if (writes) arguments.insert(arguments.end(), {"-o", out});
    Result<std::vector<std::uint32_t>> result = Status(StatusCode::kIo, fmt::format("{}: can't be written", in));
    if (file) result = finish(arguments, said, writes ? out : "");
    fs::remove_all(folder, none);
    return result;
  }
  Result<std::vector<std::uint32_t>> finish(const std::vector<std::string>& arguments, const std::string& said, const std::string& out) const {
    std::vector<char*> pointers;
    for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, said.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t process = 0;
    const int error = posix_spawn(&process, program_.c_str(), &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (error != 0 || waitpid(process, &status, 0) < 0) return Status(StatusCode::kIo, fmt::format("{}: can't be run: {}", program_, std::strerror(error != 0 ? error : errno)));
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return Status(StatusCode::kIo, fmt::format("{} {}: ends with status {}: {}", program_, arguments[1], WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), error_in(said)));
    if (WEXITSTATUS(status) == 1) return Status(StatusCode::kCorruptData, error_in(said));
    std::vector<std::uint32_t> words;
    if (out.empty()) return words;
    std::ifstream file(out, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    words.resize(bytes.size() / 4);
    if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * 4);
    if (bytes.size() % 4 != 0 || !is_whole(words)) return Status(StatusCode::kIo, fmt::format("{} {}: writes no whole module", program_, arguments[1]));
    return words;
  }
  /// The first line that says so, or the first of all.
  static std::string error_in(const std::string& said) {
    std::ifstream text(said);
    std::string first, line;
    while (std::getline(text, line)) {
      if (first.empty()) first = line;
      if (line.starts_with("error")) return line;
    }
    return first.empty() ? "it does not say why" : first;
  }

  std::string program_;
};

template <typename Tools>
Result<std::vector<std::uint32_t>> prepare_with(Tools tools, std::span<const std::uint32_t> words, const ReadOptions& options, const std::string& name) {
  const Status valid = tools.validate(words);
  if (!valid.ok()) {
    const bool lacks_tools = options.spirv_tools.empty() && has_newer_instructions(words) && valid.message().find("capability") != std::string::npos;
    if (lacks_tools) return Status(StatusCode::kUnsupported, fmt::format("{}: has cooperative matrices or dot products of halves, which SPIRV-Tools {} can't validate; --spirv-tools names newer ones: {}", name, spvSoftwareVersionString(), valid.message()));
    return valid.code() == StatusCode::kIo ? valid : Status(valid.code(), fmt::format("{}: is no valid SPIR-V: {}", name, valid.message()));
  }
  std::vector<std::uint32_t> set(words.begin(), words.end());
  set_constants(set, options.constants);
  const bool keeps_loops = options.loops == Loops::kKept;
  Result<std::vector<std::uint32_t>> inlined = tools.run(set, keeps_loops ? inlining_alone() : inlining());
  if (!inlined.ok()) return inlined.status().with_prefix(fmt::format("{}: SPIRV-Tools can't inline it", name));
  if (keeps_loops) return inlined;
  bound_unrolling(*inlined);
  Result<std::vector<std::uint32_t>> optimised = tools.run(*inlined, optimising());
  if (!optimised.ok()) return optimised.status().with_prefix(fmt::format("{}: SPIRV-Tools can't optimise it", name));
  return optimised;
}

}  // namespace

Result<std::vector<std::uint32_t>> prepare(std::span<const std::uint32_t> words, const ReadOptions& options, const std::string& name) {
  // In the other byte order a module would be valid too.
  if (!is_whole(words)) return Status(StatusCode::kCorruptData, fmt::format("{}: is no SPIR-V of this machine's byte order, or ends within an instruction", name));
  if (!options.spirv_tools.empty()) return prepare_with(OtherTools(options.spirv_tools), words, options, name);
  return prepare_with(LinkedTools(words.size() > 1 ? words[1] : 0), words, options, name);
}

}  // namespace rondo::simulator
