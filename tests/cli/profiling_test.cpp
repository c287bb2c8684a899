// --timings and --trace: what they show, and that they change no result. --pipeline-cache: what its file may be.
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::profiling_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandResult;
using testing::expect_done;
using testing::expect_error;
using testing::TemporaryFolder;

CommandResult generate(const Arguments& more) {
  Arguments all = {"generate", "-m", RONDO_DEMO_MODEL, "-p", "And Jesus answered", "-n", "9", "--temp", "0"};
  all.insert(all.end(), more.begin(), more.end());
  return testing::run_device_command(all);
}

/// Chrome's JSON of a run: events on row 1 are steps, on row 2 the dispatches inside them, one after the other.
void expect_trace(const std::string& text, std::size_t n_decode_steps) {
  const json document = json::parse(text, nullptr, false);
  ASSERT_FALSE(document.is_discarded());
  std::map<std::string, std::size_t> steps;
  std::size_t n_dispatches = 0;
  double dispatches_us = 0, steps_us = 0, last_end = 0;
  for (const json& event : document.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    ASSERT_EQ(event.at("ph"), "X");
    const double begin = event.at("ts"), duration = event.at("dur");
    EXPECT_GE(duration, 0);
    if (event.at("tid") == 1) {
      ++steps[event.at("name")];
      steps_us += duration;
    } else {
      ++n_dispatches;
      dispatches_us += duration;
      EXPECT_GE(begin, last_end - 1e-3) << "one dispatch at a time";
      last_end = begin + duration;
    }
  }
  EXPECT_EQ(steps["decode 1"], n_decode_steps);
  EXPECT_GT(n_dispatches, 20 * n_decode_steps);
  EXPECT_NEAR(dispatches_us, steps_us, 1e-3 * steps_us + 1);
}

TEST(ProfilingTest, TimingsAndTraceOfGenerate) {
  const TemporaryFolder folder;
  const CommandResult plain = generate({}), profiled = generate({"--timings", "--trace", folder.path("t.json")});
  expect_done(profiled);
  EXPECT_EQ(profiled.out, plain.out);
  for (const char* part : {"speeds under the profiler", "9 profiled steps", "decode 1", "attention", "linear", "sample"}) {
    EXPECT_NE(profiled.err.find(part), std::string::npos) << part << "\n" << profiled.err;
  }
  expect_trace(testing::read_whole_file(folder.path("t.json")), 8);
}

TEST(ProfilingTest, OfBenchAndEval) {
  const TemporaryFolder folder;
  const std::string model = testing::tests_data_path("tiny-Q4_0.gguf");
  const CommandResult bench =
      testing::run_device_command({"bench", "-m", model, "-p", "8", "-n", "5", "-r", "2", "--timings", "--trace", folder.path("b.json")});
  expect_done(bench);
  EXPECT_NE(bench.err.find("under the profiler"), std::string::npos) << bench.err;
  expect_trace(testing::read_whole_file(folder.path("b.json")), 2 * 5);
  const CommandResult eval = testing::run_device_command(
      {"eval", "-m", model, "--inputs", testing::tests_data_path("tiny-Q4_0.expected.safetensors"), "--outputs", folder.path("o"), "--timings"});
  expect_done(eval);
  EXPECT_NE(eval.err.find("logits 64"), std::string::npos) << eval.err;
}

TEST(ProfilingTest, ATraceThatCantBeWrittenIsRefusedBeforeAnyWork) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path("no/such/folder.json"), folder.path("")}) {
    const CommandResult result = generate({"--trace", path});
    expect_error(result, 1, {"--trace", path});
    EXPECT_EQ(result.out, "");
  }
}

TEST(ProfilingTest, ATraceOnAFullDiskIsAnError) {
  if (!std::ofstream("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  const CommandResult result = generate({"--trace", "/dev/full"});
  EXPECT_EQ(result.exit_status, 1) << result.description();
  EXPECT_NE(result.err.find("rondo: error: --trace: /dev/full can't be written to its end"), std::string::npos) << result.err;
}

/// Whatever is wrong with a cache is one line at most, and the text comes all the same.
TEST(PipelineCacheFileTest, AnythingElseThanACacheIsIgnoredWithOneLine) {
  const TemporaryFolder folder;
  const std::string plain = generate({"--pipeline-cache", "none"}).out;
  const auto warnings = [&](const std::string& path) {
    const CommandResult result = generate({"--pipeline-cache", path});
    expect_done(result);
    EXPECT_EQ(result.out, plain);
    return testing::count_warnings(result);
  };
  EXPECT_EQ(warnings(folder.write("empty", "")), 1U);
  EXPECT_EQ(warnings(folder.write("text", std::string(5000, 'x'))), 1U);
  EXPECT_EQ(warnings(folder.path("")), 1U) << "a folder";
  // A driver that keeps nothing in its cache writes nothing; one that does can't write there. Neither says more than a line.
  EXPECT_LE(warnings(folder.write("file", "x") + "/below.bin"), 1U);
  EXPECT_LE(warnings(folder.path("new/folder/cache.bin")), 0U);
}

}  // namespace
}  // namespace rondo::profiling_test
