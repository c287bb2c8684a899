// rondo graph: text, DOT and JSON of one Program agree, no device is needed with --as, and bad input is refused.
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::graph_test {
namespace {

using nlohmann::json;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;
using testing::run_command;

const std::string kModel = testing::tests_data_path("tiny-Q4_0.gguf");

Arguments graph(const Arguments& more) {
  Arguments all = {"graph", "-m", kModel, "--ctx", "100"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Runs where the Vulkan loader itself can't be found.
CommandResult run_without_vulkan(const Arguments& arguments) {
  static const testing::TemporaryFolder folder;
  for (const char* name : {"libvulkan.so", "libvulkan.so.1"}) folder.write(name, "no library");
  CommandInput input;
  input.arguments = arguments;
  input.environment = {{"LD_LIBRARY_PATH", folder.path("")}};
  return run_command(input);
}

json graph_json(Arguments more) {
  more.insert(more.end(), {"--format", "json"});
  const CommandResult result = run_without_vulkan(graph(more));
  testing::expect_done(result);
  EXPECT_EQ(result.err, "");
  return testing::parse_output(result);
}

const std::vector<Arguments>& steps() {
  static const std::vector<Arguments> all = {{"--as", "baseline"},
                                             {"--as", "baseline", "--step", "prefill"},
                                             {"--as", "baseline-small", "--step", "prefill", "--rows", "7"},
                                             {"--as", "baseline", "--no-fusion"},
                                             {"--as", "baseline", "--segment-us", "20"}};
  return all;
}

TEST(GraphTest, JsonIsConsistent) {
  for (const Arguments& step : steps()) {
    const json document = graph_json(step);
    const json &kernels = document.at("kernels"), &dispatches = document.at("dispatches"), &totals = document.at("totals");
    std::map<std::string, std::uint64_t> buffers;
    for (const json& buffer : document.at("buffers")) buffers[buffer.at("name")] = buffer.at("size_bytes");
    std::size_t n_barriers = 0;
    double predicted = 0;
    for (std::size_t i = 0; i < dispatches.size(); ++i) {
      const json& dispatch = dispatches[i];
      EXPECT_EQ(dispatch.at("index"), i);
      ASSERT_LT(dispatch.at("kernel").get<std::size_t>(), kernels.size());
      const json& kernel = kernels[dispatch.at("kernel").get<std::size_t>()];
      EXPECT_EQ(dispatch.at("bindings").size(), kernel.at("n_bindings"));
      EXPECT_EQ(dispatch.at("push_bytes"), kernel.at("push_bytes"));
      for (const json& binding : dispatch.at("bindings")) {
        ASSERT_EQ(buffers.count(binding.at("buffer")), 1u) << binding;
        EXPECT_LE(binding.at("offset_bytes").get<std::uint64_t>() + binding.at("size_bytes").get<std::uint64_t>(),
                  buffers[binding.at("buffer")]);
        EXPECT_TRUE(binding.at("tensor").is_string() || binding.at("buffer") != "weights 0") << binding;
      }
      for (const json& n : dispatch.at("grid")) EXPECT_GE(n, 1);
      if (dispatch.at("barrier_before").get<bool>()) ++n_barriers;
      predicted += dispatch.at("predicted_ns").get<double>();
    }
    EXPECT_EQ(totals.at("kernels"), kernels.size());
    EXPECT_EQ(totals.at("dispatches"), dispatches.size());
    EXPECT_EQ(totals.at("barriers"), n_barriers);
    EXPECT_EQ(totals.at("segments"), document.at("segments").size());
    EXPECT_NEAR(totals.at("predicted_ns"), predicted, 1e-6 * predicted);
    std::size_t next = 0;
    for (const json& segment : document.at("segments")) {
      EXPECT_EQ(segment.at("first"), next);
      next = segment.at("last");
    }
    EXPECT_EQ(next, dispatches.size()) << "segments cover all dispatches";
  }
}

TEST(GraphTest, FlagsChangeTheProgram) {
  const json decode = graph_json({"--as", "baseline"});
  EXPECT_EQ(decode.at("rows"), 1);
  EXPECT_EQ(decode.at("device"), "baseline");
  EXPECT_EQ(decode.at("n_ctx"), 100);
  EXPECT_EQ(graph_json({"--as", "baseline", "--step", "prefill"}).at("rows"), 512);
  EXPECT_EQ(graph_json({"--as", "baseline", "--step", "prefill", "--rows", "7"}).at("rows"), 7);
  EXPECT_GT(graph_json({"--as", "baseline", "--no-fusion"}).at("dispatches").size(), decode.at("dispatches").size());
  EXPECT_GT(graph_json({"--as", "baseline", "--segment-us", "20"}).at("segments").size(), decode.at("segments").size());
  EXPECT_EQ(graph_json({"--as", "baseline", "--kv-type", "f32"}).at("kv_type"), "f32");
  EXPECT_EQ(graph_json({"--as", "baseline", "--kv-type", "q8_0"}).at("kv_type"), "q8_0");
}

TEST(GraphTest, TextSaysTheSame) {
  for (const Arguments& step : steps()) {
    const CommandResult text = run_without_vulkan(graph(step));
    testing::expect_done(text);
    const json document = graph_json(step), totals = document.at("totals");
    const std::string line = totals.at("kernels").dump() + " kernels, " + totals.at("dispatches").dump() +
                             " dispatches, " + totals.at("barriers").dump() + " barriers, " +
                             totals.at("segments").dump() + " segments\n";
    EXPECT_NE(text.out.find(line), std::string::npos) << line << text.out;
    EXPECT_NE(text.out.find("activations " + totals.at("activation_bytes").dump() + " bytes, " +
                            totals.at("unaliased_activation_bytes").dump() + " before aliasing"),
              std::string::npos);
    std::size_t n_barriers = 0;
    for (std::size_t at = text.out.find("\n     barrier\n"); at != std::string::npos;
         at = text.out.find("\n     barrier\n", at + 1)) {
      ++n_barriers;
    }
    EXPECT_EQ(totals.at("barriers"), n_barriers);
    for (const json& dispatch : document.at("dispatches")) {
      EXPECT_NE(text.out.find(" " + dispatch.at("index").dump() + " " + dispatch.at("label").get<std::string>() + "  "),
                std::string::npos)
          << dispatch;
    }
  }
}

/// Enough of the DOT language for what the command writes: nested braces, statements, attribute lists, quoted strings.
class DotChecker {
 public:
  explicit DotChecker(const std::string& text) : text_(text) {}

  std::set<std::string> nodes;
  std::vector<std::pair<std::string, std::string>> edges;

  /// "" or what is wrong.
  std::string check() {
    if (word() != "digraph") return "it does not begin with digraph";
    word();
    const std::string wrong = block();
    skip();
    return !wrong.empty() ? wrong : at_ == text_.size() ? "" : "something follows the graph";
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(const std::string& mark) {
    skip();
    if (text_.compare(at_, mark.size(), mark) != 0) return false;
    at_ += mark.size();
    return true;
  }
  /// An identifier or a quoted string; "" if there is none.
  std::string word() {
    skip();
    std::string found;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\') ++at_;
        if (at_ < text_.size()) found += text_[at_];
      }
      return at_++ < text_.size() ? found : "";
    }
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) found += text_[at_++];
    return found;
  }
  bool attributes() {
    if (!take("[")) return true;
    do {
      if (word().empty() || !take("=") || word().empty()) return false;
    } while (take(","));
    return take("]");
  }
  std::string block() {
    if (!take("{")) return "a { is missing";
    while (!take("}")) {
      const std::string first = word();
      if (first.empty()) return "a statement begins with nothing at " + text_.substr(at_, 40);
      if (first == "subgraph") {
        word();
        if (const std::string wrong = block(); !wrong.empty()) return wrong;
        continue;
      }
      if (take("=")) {
        if (word().empty()) return "no value of " + first;
      } else if (take("->")) {
        edges.emplace_back(first, word());
      } else if (first != "node") {
        nodes.insert(first);
      }
      if (!attributes()) return "wrong attributes of " + first;
      if (!take(";")) return "no ; after " + first;
    }
    return "";
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

TEST(GraphTest, DotIsValid) {
  for (const Arguments& step : steps()) {
    Arguments arguments = graph(step);
    arguments.insert(arguments.end(), {"--format", "dot"});
    const CommandResult dot = run_without_vulkan(arguments);
    testing::expect_done(dot);
    DotChecker checker(dot.out);
    ASSERT_EQ(checker.check(), "") << dot.out;
    const json dispatches = graph_json(step).at("dispatches");
    EXPECT_EQ(checker.nodes.size(), dispatches.size());
    EXPECT_GE(checker.edges.size() + 1, dispatches.size()) << "every dispatch depends on another but the first";
    for (const auto& [from, to] : checker.edges) {
      EXPECT_EQ(checker.nodes.count(from), 1u) << from;
      EXPECT_EQ(checker.nodes.count(to), 1u) << to;
      EXPECT_LT(std::stoi(from.substr(1)), std::stoi(to.substr(1)));
    }
  }
}

TEST(GraphTest, TheDotCheckerIsStrict) {
  for (const std::string wrong : {"graph x {}", "digraph x {", "digraph x { a -> b }", "digraph x { a [label=]; }",
                                  "digraph x { a [label=\"b]; }", "digraph x {} y"}) {
    DotChecker checker(wrong);
    EXPECT_NE(checker.check(), "") << wrong;
  }
}

TEST(GraphTest, OfTheDeviceThatIsThere) {
  Arguments arguments = graph({"--format", "json"});
  const CommandResult result = testing::run_device_command(arguments);
  testing::expect_done(result);
  EXPECT_NE(testing::parse_output(result).at("device"), "baseline");
  const CommandResult clamped = testing::run_device_command({"bench", "-m", kModel, "-p", "0", "-n", "1", "-r", "1", "--as", "baseline", "-o", "json"});
  testing::expect_done(clamped);
  EXPECT_EQ(testing::parse_output(clamped).at("results").at(0).at("dispatches"), graph_json({"--as", "baseline"}).at("totals").at("dispatches"));
}

TEST(GraphTest, WithoutADeviceItNamesTheWayOut) {
  expect_error(run_without_vulkan(graph({})), 1, {"libvulkan.so.1", "--as baseline"});
  CommandInput input;
  input.arguments = graph({"--device", "no such device"});
  expect_error(run_command(input), 1, {"'no such device'", "--as baseline"});
}

TEST(GraphTest, BadInputIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string bytes = testing::read_whole_file(kModel);
  for (const std::string& model : {folder.path("absent.gguf"), folder.path(""), folder.write("cut.gguf", bytes.substr(0, 9000))}) {
    expect_error(run_without_vulkan({"graph", "-m", model, "--as", "baseline"}), 1, {model});
  }
  expect_error(run_without_vulkan({"graph", "-m", kModel, "--ctx", "0"}), 2, {"--ctx"});
  expect_error(run_without_vulkan({"graph", "-m", kModel, "--ctx", "16000000", "--as", "baseline"}), 1, {"--ctx"});
  expect_error(run_without_vulkan(graph({"--as", "x"})), 2, {"'x'", "baseline, baseline-small"});
  expect_error(run_without_vulkan(graph({"--as", "baseline", "--kernel", "linear=x"})), 1, {"linear=x"});
  expect_error(run_without_vulkan(graph({"--as", "baseline", "--activations", "q9"})), 2, {"--activations", "q9"});
  CommandInput input;
  input.arguments = graph({"--as", "baseline"});
  input.stdout_path = "/dev/full";
  expect_error(run_command(input), 1, {"stdout"});
}

TEST(GraphTest, PredictsForCardsWithRates) {
  const CommandResult text = run_command(graph({"--as", "h200", "--predict"}));
  EXPECT_EQ(text.exit_status, 0) << text.err;
  EXPECT_NE(text.out.find("| linear dot q4_0 |"), std::string::npos) << text.out;
  EXPECT_NE(run_command(graph({"--as", "h200", "--predict", "--activations", "f32"})).out.find("| linear subgroup q4_0 |"), std::string::npos);
  EXPECT_NE(text.out.find(" us predicted for h200: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("Assumed: 4800 GB/s"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("matrix units of 990 Tflop/s"), std::string::npos) << text.out;
  EXPECT_NE(run_command(graph({"--as", "h200", "--predict", "--step", "prefill"})).out.find("| linear matrix q4_0 |"), std::string::npos);
  const CommandResult found = run_command(graph({"--as", "h200", "--predict", "--format", "json"}));
  EXPECT_EQ(found.exit_status, 0) << found.err;
  const json all = json::parse(found.out);
  double sum = 0;
  std::size_t n = 0;
  for (const json& kernel : all["kernels"]) sum += kernel["ns"].get<double>(), n += kernel["dispatches"].get<std::size_t>();
  EXPECT_NEAR(sum, all["ns"].get<double>(), 1);
  EXPECT_GT(sum, all["bandwidth_bound_ns"].get<double>());
  const json plain = json::parse(run_command(graph({"--as", "h200", "--format", "json"})).out);
  EXPECT_EQ(n, plain["dispatches"].size());
}

/// A trace as `bench --trace` writes it: two steps of the kind and one of another.
TEST(GraphTest, PutsWhatWasMeasuredBesideThePrediction) {
  const testing::TemporaryFolder folder;
  const auto event = [](const char* name, int row, double us) { return json{{"name", name}, {"ph", "X"}, {"pid", 1}, {"tid", row}, {"ts", 0}, {"dur", us}}; };
  const json events = {{{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", 1}}, event("prefill and sample 8", 1, 9), event("linear dot q4_0", 2, 900),
                       event("decode 1", 1, 9), event("linear dot q4_0", 2, 30), event("linear dot q4_0", 2, 10), event("sample", 2, 5), event("a new one", 2, 2),
                       event("decode 1", 1, 9), event("linear dot q4_0", 2, 20)};
  const std::string trace = folder.write("trace.json", json{{"traceEvents", events}}.dump());
  const json all = json::parse(run_command(graph({"--as", "h200", "--predict", "--measured", trace, "--format", "json"})).out);
  EXPECT_EQ(all["measured"]["steps"], 2);
  EXPECT_NEAR(all["measured"]["ns"].get<double>(), 33'500, 1);
  bool found = false;
  for (const json& kernel : all["kernels"]) {
    EXPECT_EQ(kernel.contains("measured_ns"), kernel["label"] == "linear dot q4_0" || kernel["label"] == "sample") << kernel;
    if (kernel["label"] != "linear dot q4_0") continue;
    found = true;
    EXPECT_NEAR(kernel["measured_ns"].get<double>(), 30'000, 1);
    EXPECT_NEAR(kernel["off_by"].get<double>(), (kernel["ns"].get<double>() - kernel["launch_ns"].get<double>()) / 30'000, 1e-6);
  }
  EXPECT_TRUE(found);
  const std::string text = run_command(graph({"--as", "h200", "--predict", "--measured", trace})).out;
  EXPECT_NE(text.find("| measured | off by |"), std::string::npos) << text;
  EXPECT_NE(text.find("Measured, 2 steps dispatch by dispatch: 33.5 us; predicted without launches "), std::string::npos) << text;
  EXPECT_NE(text.find("Not among those predicted: a new one."), std::string::npos) << text;
  expect_error(run_command(graph({"--as", "h200", "--predict", "--step", "prefill", "--rows", "64", "--measured", trace})), 1, {"--measured", "trace.json", "no step is 'prefill and sample 64'; there are 'decode 1', 'prefill and sample 8'"});
  expect_error(run_command(graph({"--as", "h200", "--predict", "--measured", folder.write("none.json", "{}")})), 1, {"none.json", "'traceEvents'"});
  expect_error(run_command(graph({"--as", "h200", "--predict", "--measured", folder.write("odd.json", R"({"traceEvents": [{"name": "decode 1", "tid": 1, "dur": "x"}]})")})), 1, {"odd.json", "event 0", "'dur'"});
  expect_error(run_command(graph({"--as", "h200", "--predict", "--measured", folder.path("absent.json")})), 1, {"absent.json"});
  expect_error(run_command(graph({"--as", "h200", "--measured", trace})), 2, {"--measured", "--predict"});
}

TEST(GraphTest, PredictsNothingWithoutRates) {
  expect_error(run_command(graph({"--as", "baseline", "--predict"})), 2, {"--predict needs a profile with rates", "'baseline'"});
  expect_error(run_command(graph({"--as", "h200", "--predict", "--format", "dot"})), 2, {"--predict prints text or json, not dot"});
}

}  // namespace
}  // namespace rondo::graph_test
