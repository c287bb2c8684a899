// rondo eval: logits of all positions against float64, and what is said about inputs and outputs that don't work.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::eval_test {
namespace {

using models::SafetensorsDtype;
using testing::Arguments;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;

const std::string kModel = testing::tests_data_path("tiny-Q4_0.gguf");
const std::string kFixture = testing::tests_data_path("tiny-Q4_0.expected.safetensors");
constexpr std::size_t kVocabulary = 512;

/// A tensor read from a file: its values and its shape.
struct Values {
  std::vector<float> values;
  std::vector<std::uint64_t> shape;
};

Values read_logits(const std::string& path) {
  const auto source = open_file(path);
  if (!source.ok()) {
    ADD_FAILURE() << source.status().message();
    return {};
  }
  const auto file = models::SafetensorsFile::parse(*source);
  if (!file.ok() || !file->find("logits")) {
    ADD_FAILURE() << path << " holds no logits";
    return {};
  }
  EXPECT_EQ(file->find("logits")->dtype, SafetensorsDtype::kF32);
  return {file->read_f32(*source, "logits").value(), file->find("logits")->shape};
}

/// The largest difference, as a share of the expected values' range.
double difference(std::span<const float> found, std::span<const float> expected) {
  if (found.size() != expected.size() || found.empty()) return INFINITY;
  const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!std::isfinite(found[i])) return INFINITY;
    largest = std::max(largest, std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
  }
  return largest / (static_cast<double>(*high) - static_cast<double>(*low));
}

/// Writes a tensor called `name` to a file in `folder` and returns its path.
template <typename T>
std::string write_tensor(const testing::TemporaryFolder& folder, const std::string& file, const std::string& name,
                         SafetensorsDtype dtype, const std::vector<std::uint64_t>& shape,
                         const std::vector<T>& values) {
  const models::SafetensorsTensor tensor{name, dtype, shape, std::as_bytes(std::span(values))};
  const Status written = models::write_safetensors(folder.path(file), {&tensor, 1});
  EXPECT_TRUE(written.ok()) << written.message();
  return folder.path(file);
}

std::string write_ids(const testing::TemporaryFolder& folder, const std::vector<std::uint64_t>& shape,
                      const std::vector<std::int64_t>& ids) {
  return write_tensor(folder, "ids.safetensors", "input_ids", SafetensorsDtype::kI64, shape, ids);
}

CommandResult evaluate(const std::string& inputs, const std::string& outputs, const Arguments& more = {},
                       const std::string& model = kModel) {
  Arguments all = {"eval", "-m", model, "--inputs", inputs, "--outputs", outputs};
  all.insert(all.end(), more.begin(), more.end());
  return testing::run_device_command(all);
}

/// The same on the CPU, where Vulkan finds no driver.
CommandResult evaluate_reference(const std::string& inputs, const std::string& outputs, const Arguments& more = {},
                                 const std::string& model = kModel) {
  CommandInput input;
  input.arguments = {"eval", "-m", model, "--inputs", inputs, "--outputs", outputs, "--reference"};
  input.arguments.insert(input.arguments.end(), more.begin(), more.end());
  input.environment = {{"VK_ICD_FILENAMES", "/nonexistent"}, {"VK_DRIVER_FILES", "/nonexistent"}};
  return testing::run_command(input);
}

/// A model, what a float64 pass made of it, and how far off a KV type may be.
struct Accuracy {
  std::string name, model, fixture, kv_type;
  bool reference;
  double bound;
};

void PrintTo(const Accuracy& accuracy, std::ostream* stream) {
  *stream << accuracy.model << " kv " << accuracy.kv_type;
}

std::string name_of(const ::testing::TestParamInfo<Accuracy>& info) { return info.param.name; }

class EvalAccuracyTest : public ::testing::TestWithParam<Accuracy> {};

TEST_P(EvalAccuracyTest, AgreesWithFloat64) {
  const Accuracy& accuracy = GetParam();
  const bool bundled = accuracy.model.find("tiny-Q4_0") != std::string::npos;
  if (!bundled) RONDO_REQUIRE_TEST_DATA();
  const std::string model = bundled ? kModel : testing::test_data_path(accuracy.model),
                    fixture = bundled ? kFixture : testing::test_data_path(accuracy.fixture);
  const testing::TemporaryFolder folder;
  const std::string outputs = folder.path("out.safetensors");
  const Arguments flags = {"--kv-type", accuracy.kv_type};
  const CommandResult result = accuracy.reference ? evaluate_reference(fixture, outputs, flags, model)
                                                  : evaluate(fixture, outputs, flags, model);
  testing::expect_done(result);
  EXPECT_EQ(result.out, "");
  const Values found = read_logits(outputs), expected = read_logits(fixture);
  EXPECT_EQ(found.shape, expected.shape);
  EXPECT_LT(difference(found.values, expected.values), accuracy.bound);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"out.safetensors"});
}

INSTANTIATE_TEST_SUITE_P(
    All, EvalAccuracyTest,
    ::testing::Values(
        Accuracy{"TinyF32", "tiny-Q4_0.gguf", "", "f32", false, 1e-4},
        Accuracy{"TinyF16", "tiny-Q4_0.gguf", "", "f16", false, 1e-3},
        Accuracy{"TinyQ8", "tiny-Q4_0.gguf", "", "q8_0", false, 2e-2},
        Accuracy{"TinyReferenceQ8", "tiny-Q4_0.gguf", "", "q8_0", true, 2e-2},
        Accuracy{"TinyReferenceF32", "tiny-Q4_0.gguf", "", "f32", true, 1e-4},
        Accuracy{"TinyReferenceF16", "tiny-Q4_0.gguf", "", "f16", true, 1e-3},
        Accuracy{"StoriesF32", "stories260K/stories260K.gguf", "stories260K/expected.safetensors", "f32", false, 1e-4},
        Accuracy{"StoriesF16", "stories260K/stories260K.gguf", "stories260K/expected.safetensors", "f16", false, 1e-3},
        Accuracy{"StoriesReference", "stories260K/stories260K.gguf", "stories260K/expected.safetensors", "f32", true,
                 1e-4},
        Accuracy{"DemoF32", "demo/kjv-f32.gguf", "demo/expected.safetensors", "f32", false, 1e-4},
        Accuracy{"DemoReference", "demo/kjv-f32.gguf", "demo/expected.safetensors", "f32", true, 1e-4},
        Accuracy{"Q8F32", "quant/tiny-Q8_0.gguf", "quant/tiny-Q8_0.expected.safetensors", "f32", false, 1e-4},
        Accuracy{"Q4KF32", "quant/tiny-Q4_K_M.gguf", "quant/tiny-Q4_K_M.expected.safetensors", "f32", false, 1e-4},
        Accuracy{"Q4KReference", "quant/tiny-Q4_K_M.gguf", "quant/tiny-Q4_K_M.expected.safetensors", "f32", true, 1e-4},
        Accuracy{"Q6KF16", "quant/tiny-Q6_K.gguf", "quant/tiny-Q6_K.expected.safetensors", "f16", false, 1e-3},
        Accuracy{"F16F16", "quant/tiny-F16.gguf", "quant/tiny-F16.expected.safetensors", "f16", false, 1e-3}),
    name_of);

TEST(EvalTest, BoundRejectsAnotherPrompt) {
  const testing::TemporaryFolder folder;
  const auto source = open_file(kFixture);
  const auto file = models::SafetensorsFile::parse(*source);
  std::vector<std::int64_t> ids = file->read_i64(*source, "input_ids").value();
  ids[0] = (ids[0] + 1) % static_cast<std::int64_t>(kVocabulary);
  testing::expect_done(evaluate(write_ids(folder, {1, ids.size()}, ids), folder.path("out.safetensors")));
  const Values found = read_logits(folder.path("out.safetensors")), expected = read_logits(kFixture);
  const std::size_t last_row = found.values.size() - kVocabulary;
  EXPECT_GT(difference(std::span(found.values).subspan(last_row), std::span(expected.values).subspan(last_row)), 1e-2);
}

TEST(EvalTest, RowsAreIndependent) {
  const testing::TemporaryFolder folder;
  const std::vector<std::int32_t> ids = {1, 300, 301, 302, 303, 1, 17, 511, 0, 44};  // i32 this time
  const std::string both = write_tensor(folder, "both.safetensors", "input_ids", SafetensorsDtype::kI32, {2, 5}, ids);
  testing::expect_done(evaluate(both, folder.path("out.safetensors")));
  const Values batch = read_logits(folder.path("out.safetensors"));
  EXPECT_EQ(batch.shape, (std::vector<std::uint64_t>{2, 5, kVocabulary}));
  testing::expect_done(evaluate(write_ids(folder, {1, 5}, {1, 17, 511, 0, 44}), folder.path("out.safetensors")));
  const Values second = read_logits(folder.path("out.safetensors"));
  const std::size_t half = batch.values.size() / 2;
  EXPECT_EQ(std::vector<float>(batch.values.begin() + static_cast<std::ptrdiff_t>(half), batch.values.end()),
            second.values);
  testing::expect_done(evaluate_reference(both, folder.path("reference.safetensors")));
  EXPECT_LT(difference(batch.values, read_logits(folder.path("reference.safetensors")).values), 1e-3);
}

TEST(EvalTest, LongInputsComeInChunks) {
  // Three times the rows that are computed at once, less one.
  const testing::TemporaryFolder folder;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 191; ++i) ids.push_back((i * 37 + 5) % 512);
  const std::string inputs = write_ids(folder, {1, ids.size()}, ids);
  testing::expect_done(evaluate(inputs, folder.path("device.safetensors"), {"--kv-type", "f32"}));
  testing::expect_done(evaluate_reference(inputs, folder.path("reference.safetensors"), {"--kv-type", "f32"}));
  EXPECT_LT(difference(read_logits(folder.path("device.safetensors")).values,
                       read_logits(folder.path("reference.safetensors")).values),
            1e-4);
}

/// Both ways to compute must refuse the inputs in the same words, and leave no output behind.
void expect_refused(const testing::TemporaryFolder& folder, const std::string& inputs,
                    const std::vector<std::string>& parts) {
  const std::vector<std::string> before = folder.names();
  expect_error(evaluate(inputs, folder.path("out.safetensors")), 1, parts);
  expect_error(evaluate_reference(inputs, folder.path("out.safetensors")), 1, parts);
  EXPECT_EQ(folder.names(), before);
}

TEST(EvalErrorTest, InputFilesThatAreNone) {
  const testing::TemporaryFolder folder;
  expect_refused(folder, folder.path("absent.safetensors"), {"absent.safetensors"});
  expect_refused(folder, folder.path(""), {folder.path(""), "directory"});
  expect_refused(folder, folder.write("empty.safetensors", ""), {"empty.safetensors"});
  expect_refused(folder, folder.write("text.safetensors", "this is no header of the format at all"),
                 {"text.safetensors"});
  const std::string fixture = testing::read_whole_file(kFixture);
  for (const std::size_t size : {std::size_t{4}, std::size_t{8}, std::size_t{60}, fixture.size() - 1}) {
    expect_error(
        evaluate_reference(folder.write("cut.safetensors", fixture.substr(0, size)), folder.path("out.safetensors")), 1,
        {"cut.safetensors"});
  }
}

TEST(EvalErrorTest, InputTensors) {
  const testing::TemporaryFolder folder;
  const std::vector<std::int64_t> three = {1, 2, 3};
  expect_refused(folder, write_tensor(folder, "name.safetensors", "ids", SafetensorsDtype::kI64, {1, 3}, three),
                 {"name.safetensors", "'input_ids'", "missing"});
  expect_refused(
      folder, write_tensor<float>(folder, "type.safetensors", "input_ids", SafetensorsDtype::kF32, {1, 3}, {1, 2, 3}),
      {"type.safetensors", "input_ids"});
  expect_refused(folder, write_ids(folder, {3}, three), {"ids.safetensors", "'input_ids'", "(batch, tokens)"});
  expect_refused(folder, write_ids(folder, {1, 1, 3}, three), {"ids.safetensors", "'input_ids'", "(batch, tokens)"});
  expect_refused(folder, write_ids(folder, {1, 0}, {}), {"ids.safetensors", "'input_ids'", "empty"});
  expect_refused(folder,
                 write_tensor(folder, "mask.safetensors", "attention_mask", SafetensorsDtype::kI64, {1, 3}, three),
                 {"mask.safetensors", "'attention_mask'"});
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{512}, std::int64_t{1} << 32, INT64_MIN}) {
    expect_refused(folder, write_ids(folder, {1, 2}, {1, id}), {"ids.safetensors", "'input_ids'", std::to_string(id)});
  }
}

TEST(EvalErrorTest, OutputsThatCannotBeWritten) {
  const testing::TemporaryFolder folder;
  const std::string inputs = write_ids(folder, {1, 2}, {1, 2});
  const std::vector<std::string> before = folder.names();
  for (const std::string& outputs :
       {folder.path("absent/out.safetensors"), folder.path(""), std::string("/dev/full")}) {
    expect_error(evaluate_reference(inputs, outputs), 1, {outputs});
  }
  expect_error(evaluate(inputs, folder.path("absent/out.safetensors")), 1, {"absent/out.safetensors"});
  EXPECT_EQ(folder.names(), before);
  // What is there stays as it is if the work fails, and is replaced if it succeeds.
  const std::string old = folder.write("old.safetensors", "old");
  expect_error(evaluate_reference(folder.path("absent.safetensors"), old), 1, {"absent.safetensors"});
  EXPECT_EQ(testing::read_whole_file(old), "old");
  testing::expect_done(evaluate_reference(inputs, old));
  EXPECT_EQ(read_logits(old).shape, (std::vector<std::uint64_t>{1, 2, kVocabulary}));
}

}  // namespace
}  // namespace rondo::eval_test
