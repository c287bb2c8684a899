// rondo simulate, and check --simulate: another program, so that the command stays small.
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "runtime/fmt.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

int run_simulate(const std::vector<std::string>& arguments) {
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string program = (own.parent_path() / "rondo-simulate").string();
  std::vector<char*> all = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) all.push_back(const_cast<char*>(argument.c_str()));
  all.push_back(nullptr);
  if (!failed) execv(program.c_str(), all.data());
  return report("rondo-simulate is not beside the command; build it with -DRONDO_BUILD_SIMULATOR=ON");
}

}  // namespace rondo::tools
