// The line about compiling: after two seconds and not before, once, not with --log-level error, and never on stdout.
#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"
#include "tools/rondo/compile_notice.h"

namespace rondo::compile_notice_test {
namespace {

using testing::CommandInput;
using testing::CommandResult;

std::string said_after(const tools::GlobalFlags& flags, std::initializer_list<std::chrono::milliseconds> phases) {
  ::testing::internal::CaptureStderr();
  {
    tools::CompileNotice notice(flags, "compiling");
    for (const std::chrono::milliseconds phase : phases) {
      notice.begin();
      notice.begin();
      std::this_thread::sleep_for(phase);
      notice.end();
    }
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(CompileNoticeTest, ComesOnceAndOnlyWhereItTakesLong) {
  using std::chrono::milliseconds;
  EXPECT_EQ(said_after({}, {milliseconds(10), milliseconds(10)}), "");
  EXPECT_EQ(said_after({}, {milliseconds(10), milliseconds(2200), milliseconds(2200)}), "rondo: compiling\n");
  tools::GlobalFlags quiet;
  quiet.log_level = "error";
  EXPECT_EQ(said_after(quiet, {milliseconds(2200)}), "");
}

TEST(CompileNoticeTest, AFirstRunSaysWhatItDoes) {
  const testing::TemporaryFolder folder;
  CommandInput input;
  input.arguments = {"generate", "-m", testing::tests_data_path("tiny-Q4_0.gguf"), "-p", "x", "-n", "1", "--json"};
  input.environment = {{"MESA_SHADER_CACHE_DISABLE", "true"}, {"XDG_CACHE_HOME", folder.path("cache")}};
  const CommandResult result = testing::run_command(input);
  testing::expect_done(result);
  const nlohmann::json document = testing::parse_output(result);
  const std::size_t at = result.err.find("rondo: compiling ");
  if (document["load_s"].get<double>() > 5) {
    EXPECT_NE(at, std::string::npos) << result.description();
  }
  if (at == std::string::npos) return;
  EXPECT_NE(result.err.find(" kernels for ", at), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(" (first run; cached afterwards)\n", at), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("rondo: compiling ", at + 1), std::string::npos) << result.err;
}

}  // namespace
}  // namespace rondo::compile_notice_test
