// The rondo command. Contract: results on stdout, the rest on stderr; exit status 0, 1 (failed), 2 (usage), 130 (interrupted).
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rondo/version.h>

#include "tools/rondo/command.h"

namespace rondo::tools {
namespace {

/// Commands and flags of the contract that are not built yet.
constexpr std::array kCommandsToCome = {"isa", "quantize", "chat"};
constexpr std::array kFlagsToCome = {"--quarantine"};

bool starts_with_flag(std::string_view argument, std::string_view flag) {
  return argument == flag || (argument.size() > flag.size() && argument.substr(0, flag.size()) == flag && argument[flag.size()] == '=');
}

/// The exit status for something that isn't built yet, or 0.
int refuse_what_is_to_come(int argc, char** argv) {
  if (argc > 1) {
    for (const char* command : kCommandsToCome) {
      if (std::strcmp(argv[1], command) == 0) return report(fmt::format("{} is not there yet", command), kUsage);
    }
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    for (const char* flag : kFlagsToCome) {
      if (starts_with_flag(argument, flag)) return report(fmt::format("{} is not there yet", flag), kUsage);
    }
  }
  return kDone;
}

int run(int argc, char** argv) {
  GlobalFlags flags;
  flags.started_s = now_s();
  // Not through CLI11: each subcommand would set it again, and the environment would win over the flag.
  if (const char* device = std::getenv("RONDO_DEVICE")) flags.device = device;
  install_interrupt_handler();
  CLI::App app("Runs transformer models on any Vulkan GPU.", "rondo");
  app.set_version_flag("--version", std::string("rondo ") + library_version());
  app.require_subcommand(1);
  int status = kDone;
  add_devices(app, flags, status);
  add_generate(app, flags, status);
  add_tokenize(app, flags, status);
  add_eval(app, flags, status);
  add_bench(app, flags, status);
  add_info(app, flags, status);
  add_graph(app, flags, status);
  add_check(app, flags, status);
  if (const int refused = refuse_what_is_to_come(argc, argv)) return refused;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      return report(fmt::format("'{}' is not a command; see rondo --help", argv[1]), kUsage);
    }
    return report(fmt::format("{}; see rondo --help", error.what()), kUsage);
  }
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && status == kDone) return report("stdout: the results can't be written");
  return status;
}

}  // namespace
}  // namespace rondo::tools

int main(int argc, char** argv) {
  try {
    return rondo::tools::run(argc, argv);
  } catch (const std::exception& error) {
    if (std::ferror(stdout)) return rondo::tools::report("stdout: the results can't be written");  // fmt throws
    return rondo::tools::report(error.what());
  }
}
