// rondo bench: rows, forms and fields. How fast it is depends on the device and is no test's business.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::bench_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandResult;
using testing::expect_error;

const std::string kModel = testing::tests_data_path("tiny-Q4_0.gguf");

CommandResult bench(const Arguments& more, const std::string& model = kModel) {
  Arguments all = {"bench", "-m", model};
  all.insert(all.end(), more.begin(), more.end());
  return testing::run_device_command(all);
}

std::vector<std::string> test_names(const json& document) {
  std::vector<std::string> names;
  for (const json& row : document.at("results")) names.push_back(row.at("test"));
  return names;
}

TEST(BenchTest, JsonHasEveryField) {
  const CommandResult result = bench({"-p", "8,3", "-n", "4", "-d", "0,16", "-r", "2", "-o", "json"});
  testing::expect_done(result);
  const json document = testing::parse_output(result);
  EXPECT_EQ(test_names(document),
            (std::vector<std::string>{"pp8", "pp3", "tg4", "pp8 @ d16", "pp3 @ d16", "tg4 @ d16"}));
  EXPECT_TRUE(document.at("device").at("name").is_string());
  EXPECT_EQ(document.at("model").at("architecture"), "llama");
  EXPECT_GT(document.at("load_s").get<double>(), 0);
  for (const json& row : document.at("results")) {
    const bool prefill = row.at("n_gen") == 0;
    EXPECT_EQ(row.at("n_prompt") == 0, !prefill) << row;
    EXPECT_EQ(row.at("depth"), row.at("test").get<std::string>().find(" @ d16") == std::string::npos ? 0 : 16);
    for (const char* field : {"tps_mean", "host_us_per_token", "dispatches", "submissions_per_token", "worst_ms"}) {
      EXPECT_GT(row.at(field).get<double>(), 0) << field << " of " << row;
    }
    EXPECT_GE(row.at("tps_stdev").get<double>(), 0);
  }
  EXPECT_EQ(document.at("results")[5].at("dispatches"), document.at("results")[2].at("dispatches"))
      << "decode is one recording at every depth";
}

/// No file: shape and type say everything, and rows up to the depth are there without a prefill.
TEST(BenchTest, RandomModelsOfEveryType) {
  for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
    const CommandResult result = testing::run_device_command(
        {"bench", "--random", "15m", "--type", type, "-p", "3", "-n", "2", "-d", "0,700", "-r", "1", "-o", "json"});
    testing::expect_done(result);
    const json document = testing::parse_output(result);
    EXPECT_EQ(test_names(document), (std::vector<std::string>{"pp3", "tg2", "pp3 @ d700", "tg2 @ d700"}));
    EXPECT_EQ(document.at("model").at("name"), std::string("random 15m ") + type);
    EXPECT_EQ(document.at("model").at("n_parameters"), 15191712);
    for (const json& row : document.at("results")) EXPECT_GT(row.at("tps_mean").get<double>(), 0);
  }
}

TEST(BenchTest, DepthsOfAQuantisedCache) {
  const CommandResult result = testing::run_device_command({"bench", "--random", "15m", "--kv-type", "q8_0", "-p", "3", "-n", "2", "-d", "700", "-r", "1", "-o", "json"});
  testing::expect_done(result);
  const json document = testing::parse_output(result);
  EXPECT_EQ(test_names(document), (std::vector<std::string>{"pp3 @ d700", "tg2 @ d700"}));
  for (const json& row : document.at("results")) EXPECT_GT(row.at("tps_mean").get<double>(), 0);
}

/// The K types need columns in multiples of 256.
TEST(BenchTest, RandomModelsOfTheKTypes) {
  for (const auto& [type, n_bytes] : {std::pair("q4_k", 61'676'544u), std::pair("q6_k", 90'765'312u)}) {
    const CommandResult result =
        testing::run_device_command({"bench", "--random", "110m", "--type", type, "-p", "3", "-n", "2", "-r", "1", "-o", "json"});
    testing::expect_done(result);
    const json document = testing::parse_output(result);
    EXPECT_EQ(test_names(document), (std::vector<std::string>{"pp3", "tg2"}));
    EXPECT_EQ(document.at("model").at("name"), std::string("random 110m ") + type);
    EXPECT_EQ(document.at("model").at("n_parameters"), 109529856);
    EXPECT_NEAR(document.at("model").at("weight_bytes").get<double>(), n_bytes, 0.005 * n_bytes) << "all matrices have the type";
  }
}

TEST(BenchTest, CsvAndMarkdownHoldARowForEachTest) {
  const CommandResult csv = bench({"-p", "8", "-n", "4", "-r", "1", "-o", "csv"});
  testing::expect_done(csv);
  const auto lines = testing::split(csv.out, "\n");
  ASSERT_EQ(lines.size(), 4U) << csv.out;  // header, two rows, nothing after the last line's end
  EXPECT_EQ(lines[0].rfind("test,n_prompt,n_gen,depth,tps_mean,", 0), 0U) << lines[0];
  EXPECT_EQ(lines[1].rfind("pp8,8,0,0,", 0), 0U) << lines[1];
  EXPECT_EQ(lines[2].rfind("tg4,0,4,0,", 0), 0U) << lines[2];
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_EQ(testing::split(lines[i], ",").size(), testing::split(lines[0], ",").size());

  const CommandResult markdown = bench({"-p", "8", "-n", "4", "-r", "1"});
  testing::expect_done(markdown);
  EXPECT_NE(markdown.out.find("| pp8 "), std::string::npos) << markdown.out;
  EXPECT_NE(markdown.out.find("| tg4 "), std::string::npos) << markdown.out;
  EXPECT_NE(markdown.out.find("|:--"), std::string::npos) << markdown.out;
}

TEST(BenchTest, ZeroSkips) {
  const json decode = testing::parse_output(bench({"-p", "0", "-n", "2", "-r", "1", "-o", "json"}));
  EXPECT_EQ(test_names(decode), std::vector<std::string>{"tg2"});
  const json prefill = testing::parse_output(bench({"-p", "2", "-n", "0", "-r", "1", "-o", "json"}));
  EXPECT_EQ(test_names(prefill), std::vector<std::string>{"pp2"});
  const json nothing = testing::parse_output(bench({"-p", "0", "-n", "0", "-r", "1", "-o", "json"}));
  EXPECT_EQ(test_names(nothing), std::vector<std::string>());
}

TEST(BenchTest, GoesBeyondTheModelsContext) {
  // The model was made for 256 tokens.
  const json document = testing::parse_output(bench({"-p", "4", "-n", "3", "-d", "300", "-r", "1", "-o", "json"}));
  EXPECT_EQ(test_names(document), (std::vector<std::string>{"pp4 @ d300", "tg3 @ d300"}));
}

TEST(BenchTest, BurstBoundsSubmissions) {
  const auto submissions = [](const char* burst) {
    const CommandResult result = bench({"-p", "0", "-n", "16", "-r", "1", "-o", "json", "--burst", burst});
    testing::expect_done(result);
    return testing::parse_output(result).at("results").at(0).at("submissions_per_token").get<double>();
  };
  EXPECT_EQ(submissions("1"), 1.0);
  EXPECT_LT(submissions("8"), 1.0);
}

TEST(BenchTest, FusionSavesDispatches) {
  const auto dispatches = [](Arguments more) {
    more.insert(more.end(), {"-p", "0", "-n", "2", "-r", "1", "-o", "json"});
    return testing::parse_output(bench(more)).at("results").at(0).at("dispatches").get<double>();
  };
  EXPECT_LT(dispatches({}), dispatches({"--no-fusion"}));
}

TEST(BenchTest, NamesFromTheFileCannotBreakTheDocument) {
  std::string model = testing::read_whole_file(kModel);
  const std::size_t name = model.find("random-tiny-f32");
  ASSERT_NE(name, std::string::npos);
  model.replace(name, 4, "\"\\\xff\n");
  const testing::TemporaryFolder folder;
  const CommandResult result = bench({"-p", "2", "-n", "0", "-r", "1", "-o", "json"}, folder.write("name.gguf", model));
  if (result.exit_status == 1) return expect_error(result, 1, {"general.name"});  // refusing the file is as good
  testing::expect_done(result);
  EXPECT_TRUE(testing::parse_output(result).at("model").at("name").is_string());
}

TEST(BenchTest, ErrorsNameWhatIsWrong) {
  expect_error(bench({}, testing::tests_data_path("absent.gguf")), 1, {"absent.gguf"});
  expect_error(bench({"--kernel", "linear=fastest"}), 1, {"linear=fastest"});
}

}  // namespace
}  // namespace rondo::bench_test
