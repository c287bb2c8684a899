// rondo tune: what it prints and keeps, and that other commands use it.
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::tune_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandResult;
using testing::expect_done;
using testing::expect_error;
using testing::TemporaryFolder;

const std::string& model() {
  static const std::string path = testing::tests_data_path("tiny-Q4_0.gguf");
  return path;
}

std::string bundled(const std::string& name) {
  const std::string demo = RONDO_DEMO_MODEL;
  return demo.substr(0, demo.rfind('/') + 1) + name;
}

TEST(TuneTest, WhatItKeepsIsUsed) {
  const TemporaryFolder folder;
  const Arguments cache = {"--pipeline-cache", folder.path("p.bin")};
  const auto run = [&](Arguments arguments) {
    arguments.insert(arguments.end(), cache.begin(), cache.end());
    return testing::run_device_command(arguments);
  };
  const CommandResult tuned = run({"tune", "-m", model(), "--json"});
  expect_done(tuned);
  const json report = testing::parse_output(tuned);
  ASSERT_GE(report.at("steps").size(), 2u);
  for (const json& step : report.at("steps")) {
    EXPECT_GT(step.at("us_before"), 0) << step;
    EXPECT_LE(step.at("us_now"), step.at("us_before")) << step;
    EXPECT_EQ(step.at("us_now") == step.at("us_before"), step.at("choices").empty()) << step;
  }
  const std::string path = report.at("file");
  ASSERT_EQ(folder.path("").rfind(path.substr(0, path.rfind('/') + 1), 0), 0u) << path;
  json document = json::parse(testing::read_whole_file(path), nullptr, false);
  ASSERT_TRUE(document.is_object());

  // A choice that differs from the usual one is seen by graph and info.
  const json usual = testing::parse_output(run({"graph", "-m", model(), "--format", "json", "--tuning", "none"}));
  const std::string label = [&] {
    for (const json& dispatch : usual.at("dispatches")) {
      const std::string of_dispatch = dispatch.at("label");
      if (of_dispatch.rfind("linear_glu", 0) == 0) return of_dispatch;
    }
    return std::string();
  }();
  ASSERT_NE(label, "");
  const std::string other = label.find(" tiled ") != std::string::npos ? "vector" : "tiled";
  document["choices"] = {{"linear_glu q4_0 f32 1 x 256 x 256", other}};
  const std::string file = folder.write("mine.json", document.dump());
  const CommandResult graph = run({"graph", "-m", model(), "--tuning", file}), info = run({"info", "-m", model(), "--tuning", file});
  expect_done(graph);
  expect_done(info);
  EXPECT_NE(graph.out.find("linear_glu " + other), std::string::npos) << graph.out;
  EXPECT_NE(info.out.find("linear_glu q4_0 f32 1 x 256 x 256: linear_glu " + other + " q4_0"), std::string::npos) << info.out;
  const json noted = testing::parse_output(run({"info", "-m", model(), "--tuning", file, "--json"})).at("plan").at("tuned");
  const json plan = testing::parse_output(run({"info", "-m", model(), "--tuning", file, "--device", noted.at("device").get<std::string>(), "--json"})).at("plan");
  EXPECT_EQ(plan.at("device"), noted.at("device"));
  EXPECT_EQ(plan.at("tuned"), noted) << "planned for the device that it was measured on";
  expect_done(run({"generate", "-m", model(), "-p", "x", "-n", "2", "--tuning", file}));
}

TEST(TuneTest, WhatIsWrongWithTheFileIsOneLine) {
  const TemporaryFolder folder;
  const auto generate = [&](const std::string& tuning) { return testing::run_device_command({"generate", "-m", model(), "-p", "x", "-n", "3", "--temp", "0", "--tuning", tuning}); };
  const std::string plain = generate("none").out;
  for (const std::string& file : {folder.write("empty.json", "{}"), folder.write("cut.json", "{\"rondo_tuning\": 1"), folder.write("large.json", std::string(2u << 20, ' ')),
                                  folder.write("other.json", "{\"rondo_tuning\": 1, \"device\": \"x\", \"rondo\": \"y\", \"choices\": {}}"), folder.path("")}) {
    const CommandResult result = generate(file);
    expect_done(result);
    EXPECT_EQ(result.out, plain) << file;
    EXPECT_EQ(testing::count_warnings(result), 1u) << result.err;
  }
  expect_error(generate(folder.path("nowhere.json")), 1, {"--tuning: there is no file", "nowhere.json", "rondo tune"});
}

TEST(TuneTest, RefusesWhatCantBe) {
  const TemporaryFolder folder;
  expect_error(testing::run_device_command({"tune", "-m", model(), "--as", "baseline"}), 1, {"tune", "--as"});
  expect_error(testing::run_device_command({"generate", "-m", model(), "-p", "x", "--as", "baseline", "--tuning", folder.path("t")}), 1, {"--tuning", "--as"});
  expect_error(testing::run_command({"graph", "-m", model(), "--as", "baseline", "--tuning", folder.path("t")}), 1, {"--tuning", "--as"});
  expect_error(testing::run_command({"tune"}), 2, {"--model is required"});
  const std::string file = folder.write("f", "");
  expect_error(testing::run_device_command({"tune", "-m", model(), "--tuning", file + "/t.json"}), 1, {file + "/t.json", "can't be written"});
}

/// A path given by mistake may be anything.
TEST(TuneTest, WritesOverNothingButItsOwn) {
  const TemporaryFolder folder;
  const auto tune = [&](const std::string& file) { return testing::run_device_command({"tune", "-m", bundled("digits"), "--tuning", file}); };
  for (const std::string& bytes : {std::string("notes"), std::string("{}"), std::string(2u << 20, 'x')}) {
    const std::string file = folder.write("mine", bytes);
    expect_error(tune(file), 1, {"--tuning: " + file + " is there and is no file of rondo tune's"});
    EXPECT_EQ(testing::read_whole_file(file), bytes);
  }
  expect_error(tune(folder.path("")), 1, {"--tuning"});
  for (const std::string& bytes : {std::string(), std::string("{\"rondo_tuning\": 1, \"device\": \"another\", \"rondo\": \"\", \"choices\": {}}")}) {
    const std::string file = folder.write("mine", bytes);
    expect_done(tune(file));
    EXPECT_NE(testing::read_whole_file(file), bytes);
  }
}

TEST(TuneTest, EncodersAndEncodersWithDecodersToo) {
  const TemporaryFolder folder;
  std::vector<std::string> names = {"digits"};
  if (std::getenv("RONDO_TEST_THOROUGH")) names.insert(names.end(), {"translator", "bert"});  // a minute each
  for (const std::string& name : names) {
    const CommandResult tuned = testing::run_device_command({"tune", "-m", bundled(name), "--json", "--pipeline-cache", folder.path("p.bin")});
    expect_done(tuned);
    const json steps = testing::parse_output(tuned).at("steps");
    EXPECT_GE(steps.size(), name == "digits" ? 2u : 4u) << steps;
    std::size_t n_encode = 0;
    for (const json& step : steps) n_encode += step.at("step").get<std::string>().rfind("encode", 0) == 0;
    EXPECT_GE(n_encode, name == "translator" ? 2u : 0u) << "sources of every length: " << steps;
  }
}

}  // namespace
}  // namespace rondo::tune_test
