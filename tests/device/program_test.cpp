// Programs on a device: set, run and read many times, caches that stay, segments, and what is refused.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/graph.h>

#include "graph/float16.h"
#include "models/graph_builder.h"
#include "tests/device/allocation_counter.h"
#include "tests/support/device_environment.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_bytes.h"

namespace rondo::program_test {
namespace {

using tests::test_device;

std::vector<float> wave(std::size_t n, float step) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = std::sin(step * static_cast<float>(i) + 0.3f);
  return values;
}

/// A layer of attention and an MLP over x (1, 5, 32), with one weight in two roles.
Graph layer() {
  Graph g("layer");
  const Tensor x = g.input("x", Type::kF32, {1, 5, 32});
  const auto matrix = [&](const char* name, int n, int k) { return g.constant(name, {n, k}, wave(static_cast<std::size_t>(n * k), 0.11f)); };
  SelfAttentionWeights weights;
  weights.query = matrix("query", 32, 32);
  weights.key = matrix("key", 16, 32);
  weights.value = matrix("value", 16, 32);
  weights.output = matrix("output", 32, 32);
  AttentionOptions options;
  options.causal = true;
  const Tensor h = g.add(x, g.self_attention(g.rms_norm(x, {}), weights, 4, options));
  g.output("y", g.add(h, g.mul(g.linear(g.linear(h, matrix("up", 64, 32), Activation::kGelu), matrix("down", 32, 64)), 0.25f)));
  g.output("best", g.argmax(h));
  return g;
}

/// The same through the references.
std::vector<float> reference(const std::vector<float>& x) {
  Graph g = layer();
  models::GraphFile file = g.internal()->finish().value();
  for (const models::StoredInput& stored : file.inputs) {
    std::vector<std::byte>& bytes = file.contents[stored.storage];
    bytes.resize(models::stored_bytes_of(stored.input, stored.form));
    const models::InputElements elements = stored.elements.source.read ? stored.elements : models::InputElements{memory_source(std::as_bytes(std::span(x)), "x"), 0};
    EXPECT_TRUE(models::read_elements(stored.input, stored.form, elements, bytes).ok());
  }
  const graph::Tensor y = file.graph.tensor(file.outputs[0].tensor);
  const auto after = models::interpret_graph_file(std::move(file));
  EXPECT_TRUE(after.ok()) << after.status().message();
  const std::vector<std::byte> dense = models::dense_elements(y, after->at(y.storage));
  std::vector<float> values(dense.size() / 4);
  std::memcpy(values.data(), dense.data(), dense.size());
  return values;
}

std::vector<float> run(Program& program, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  const Status set = program.set_input("x", x);
  EXPECT_TRUE(set.ok()) << set.message();
  const Status ran = program.run_and_wait();
  EXPECT_TRUE(ran.ok()) << ran.message();
  const Status read = program.read("y", y);
  EXPECT_TRUE(read.ok()) << read.message();
  return y;
}

TEST(ProgramTest, RunsManyTimesWithTheSameBits) {
  Result<Program> program = Program::compile(test_device(), layer());
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::vector<float> x = wave(160, 0.37f), other = wave(160, 0.91f);
  const std::vector<float> first = run(*program, x), expected = reference(x);
  double difference = 0, power = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference += std::pow(double{first[i]} - double{expected[i]}, 2);
    power += std::pow(double{expected[i]}, 2);
  }
  EXPECT_LT(difference, 1e-10 * power);
  const std::vector<float> second = run(*program, other);
  EXPECT_NE(second, first);
  for (int turn = 0; turn < 3; ++turn) EXPECT_EQ(run(*program, x), first);
  // What was set stays.
  ASSERT_TRUE(program->run_and_wait().ok());
  std::vector<float> y(160);
  ASSERT_TRUE(program->read("y", y).ok());
  EXPECT_EQ(y, first);
  std::vector<std::int32_t> best(5);
  EXPECT_TRUE(program->read("best", best).ok());
}

TEST(ProgramTest, CutsAndFusionChangeNoBitOrLittle) {
  const std::vector<float> x = wave(160, 0.37f);
  Result<Program> whole = Program::compile(test_device(), layer());
  ProgramOptions options;
  options.max_segment_us = 1e-3;  // every dispatch alone
  Result<Program> cut = Program::compile(test_device(), layer(), options);
  ASSERT_TRUE(whole.ok() && cut.ok());
  EXPECT_EQ(run(*whole, x), run(*cut, x));
  // In a loop that never waits.
  ASSERT_TRUE(cut->submit().ok());
  EXPECT_TRUE(cut->running());
  int turns = 0;
  while (cut->running()) {
    ASSERT_TRUE(cut->advance().ok());
    ++turns;
  }
  EXPECT_GT(turns, 1);
  std::vector<float> y(160);
  ASSERT_TRUE(cut->read("y", y).ok());
  EXPECT_EQ(y, run(*whole, x));
}

TEST(ProgramTest, RefusesInTheUsersWords) {
  Result<Program> program = Program::compile(test_device(), layer());
  ASSERT_TRUE(program.ok());
  std::vector<float> y(160);
  EXPECT_EQ(program->read("y", y).message(), "layer: output 'y' can't be read before a run has ended");
  EXPECT_EQ(program->submit().message(), "layer: input 'x' was never set");
  EXPECT_FALSE(program->running());
  EXPECT_EQ(program->set_input("x", wave(159, 1)).message(), "layer: input 'x' is f32 (1, 5, 32), 640 bytes, but 636 are given");
  EXPECT_EQ(program->set_input("x", std::vector<std::int32_t>(160)).message(), "layer: input 'x' is f32, but i32 is given");
  EXPECT_EQ(program->set_input("key", wave(512, 1)).code(), StatusCode::kNotFound);
  EXPECT_TRUE(program->set_input("x", std::as_bytes(std::span(y))).ok());
  ASSERT_TRUE(program->submit().ok());
  if (program->running()) {
    EXPECT_EQ(program->set_input("x", y).code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(program->submit().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(program->read("y", y).code(), StatusCode::kFailedPrecondition);
  }
  ASSERT_TRUE(program->wait(std::chrono::seconds(60)).ok());
  EXPECT_TRUE(program->wait(std::chrono::seconds(0)).ok()) << "nothing runs";
  std::vector<float> room(159);
  EXPECT_EQ(program->read("y", room).message(), "layer: output 'y' is f32 (1, 5, 32), which takes 640 bytes, but there is room for 636");
  EXPECT_EQ(program->read("bets", y).message(), "layer: output 'bets' does not exist; did you mean 'best'?");
  EXPECT_EQ(program->read("best", std::span(y).first(5)).message(), "layer: output 'best' is i32, but f32 is asked for");
  Program moved = std::move(*program);
  EXPECT_EQ(program->submit().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(program->run_and_wait().code(), StatusCode::kFailedPrecondition);
}

TEST(ProgramTest, OutlivesItsDevice) {
  Result<Device> device = Device::create(tests::test_instance());
  ASSERT_TRUE(device.ok()) << device.status().message();
  Result<Program> program = Program::compile(*device, layer());
  ASSERT_TRUE(program.ok());
  { const Device gone = std::move(*device); }
  EXPECT_EQ(Program::compile(*device, layer()).status().code(), StatusCode::kFailedPrecondition);
  const std::vector<float> x = wave(160, 0.37f);
  EXPECT_EQ(run(*program, x), run(*program, x));
  ASSERT_TRUE(program->submit().ok());  // and goes while it works
}

TEST(ProgramTest, IntegersStayInsideOfWhatTheyCount) {
  Graph g("ids");
  const Tensor ids = g.input("ids", Type::kI32, {3});
  g.output("y", g.embedding(ids, g.constant("w", {4, 2}, wave(8, 1))));
  Result<Program> program = Program::compile(test_device(), std::move(g));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const Status refused = program->set_input("ids", std::vector<std::int32_t>{0, 4, 1});
  EXPECT_EQ(refused.message(), "ids: embedding: input 'ids' (ids) holds 4, outside [0, 3]");
  ASSERT_TRUE(program->set_input("ids", std::vector<std::int32_t>{3, 0, 1}).ok());
  ASSERT_TRUE(program->run_and_wait().ok());
  std::vector<float> y(6);
  ASSERT_TRUE(program->read("y", y).ok());
  const std::vector<float> w = wave(8, 1);
  EXPECT_EQ(y, (std::vector<float>{w[6], w[7], w[0], w[1], w[2], w[3]}));
}

class ProgramCacheTest : public ::testing::TestWithParam<Type> {};

/// A token's key and value are written at `start`; attention over what is there. Token by token, then anew.
TEST_P(ProgramCacheTest, CachesStayOnTheDevice) {
  Graph g("decoder");
  const Tensor x = g.input("x", Type::kF32, {1, 2, 1, 32}), start = g.input("start", Type::kI32, {1}), lengths = g.input("lengths", Type::kI32, {1});
  const Tensor keys = g.kv_write(g.cache("keys", GetParam(), {1, 2, 8, 32}), x, start);
  const Tensor values = g.kv_write(g.cache("values", GetParam(), {1, 2, 8, 32}), g.mul(x, 2), start);
  AttentionOptions options;
  options.lengths = lengths;
  g.output("y", g.attention(x, keys, values, options));
  Result<Program> program = Program::compile(test_device(), std::move(g));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const auto step = [&](std::int32_t position) {
    std::vector<float> y(64);
    EXPECT_TRUE(program->set_input("x", wave(64, 0.1f + 0.3f * static_cast<float>(position))).ok());
    EXPECT_TRUE(program->set_input("start", std::vector<std::int32_t>{position}).ok());
    EXPECT_TRUE(program->set_input("lengths", std::vector<std::int32_t>{position + 1}).ok());
    const Status ran = program->run_and_wait();
    EXPECT_TRUE(ran.ok()) << ran.message();
    EXPECT_TRUE(program->read("y", y).ok());
    return y;
  };
  std::vector<std::vector<float>> first;
  for (std::int32_t position = 0; position < 4; ++position) first.push_back(step(position));
  // The last one saw those before it: alone it has another answer, with zeros before it a third one.
  ASSERT_TRUE(program->reset_caches().ok());
  EXPECT_NE(step(3), first[3]);
  ASSERT_TRUE(program->reset_caches().ok());
  for (std::int32_t position = 0; position < 4; ++position) EXPECT_EQ(step(position), first[static_cast<std::size_t>(position)]);
  EXPECT_NE(program->set_input("start", std::vector<std::int32_t>{9}).message(), "");
  ASSERT_TRUE(program->set_input("start", std::vector<std::int32_t>{8}).ok());
  EXPECT_EQ(program->submit().message(), "decoder: kv_write: writes rows 8 to 8 of sequence 0, but the cache has 8");
}

/// What was read of a cache before it is written stays what it was, output or not.
TEST(ProgramTest, ViewsOfACacheKeepWhatItHad) {
  Graph g("shift");
  const Tensor cache = g.cache("cache", Type::kF32, {1, 1, 2, 4}), rows = g.input("rows", Type::kF32, {1, 1, 1, 4});
  const Tensor before = g.slice(cache, 2, 0, 1), also = g.slice(cache, 2, 0, 1);
  g.output("before", before);
  const Tensor after = g.kv_write(cache, rows, g.integer(0));
  g.output("difference", g.sub(g.slice(after, 2, 0, 1), also));
  Result<Program> program = Program::compile(test_device(), std::move(g));
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::vector<float> values[] = {{0, 0, 0, 0}, {1, 2, 3, 4}, {9, 8, 7, 6}};
  for (std::size_t i = 1; i < 3; ++i) {
    ASSERT_TRUE(program->set_input("rows", values[i]).ok());
    ASSERT_TRUE(program->run_and_wait().ok());
    std::vector<float> found(4), difference(4), expected(4);
    ASSERT_TRUE(program->read("before", found).ok() && program->read("difference", difference).ok());
    for (std::size_t k = 0; k < 4; ++k) expected[k] = values[i][k] - values[i - 1][k];
    EXPECT_EQ(found, values[i - 1]);
    EXPECT_EQ(difference, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ProgramCacheTest, ::testing::Values(Type::kF32, Type::kF16, Type::kQ8_0));

TEST(ProgramTest, FilesAreGraphsToo) {
  using rondo::testing::bytes_of_values;
  using rondo::testing::source_of;
  const std::string inputs = rondo::testing::safetensors_bytes({{"x", "F32", {2, 4}, bytes_of_values<float>({1, 2, 3, 4, 5, 6, 7, 8})}, {"w", "F32", {4, 3}, bytes_of_values(wave(12, 1))}});
  const ByteSource files[] = {source_of(inputs, "in.safetensors")};
  const std::string json = R"({"inputs":{"x":{},"w":{"layout":"kn"}},"nodes":[{"op":"linear","inputs":{"input":"x","weight":"w"},"outputs":["y"]}],"outputs":["y"]})";
  Result<Graph> graph = Graph::load(source_of(json, "g.json"), files);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  Result<Program> program = Program::compile(test_device(), std::move(*graph));
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ(program->inputs().size(), 1U);  // weights are fixed
  EXPECT_EQ(program->outputs()[0].shape, (Shape{2, 3}));
  const auto expected = [](const std::vector<float>& x) {
    const std::vector<float> w = wave(12, 1);
    std::vector<float> y(6);
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t k = 0; k < 4; ++k) y[i] += x[i / 3 * 4 + k] * w[k * 3 + i % 3];
    }
    return y;
  };
  const auto close = [&](const std::vector<float>& x) {
    std::vector<float> y(6);
    EXPECT_TRUE(program->run_and_wait().ok());
    EXPECT_TRUE(program->read("y", y).ok());
    const std::vector<float> wanted = expected(x);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[i], wanted[i], 1e-5f);
  };
  close({1, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_TRUE(program->set_input("x", wave(8, 2)).ok());
  close(wave(8, 2));
}

TEST(ProgramTest, RunsAllocateLittle) {
  Result<Program> program = Program::compile(test_device(), layer());
  ASSERT_TRUE(program.ok());
  const std::vector<float> x = wave(160, 0.37f);
  (void)run(*program, x);
  std::vector<float> y(160);
  const tests::AllocationCounter counter;
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_TRUE(program->set_input("x", x).ok());
    ASSERT_TRUE(program->run_and_wait().ok());
    ASSERT_TRUE(program->read("y", y).ok());
  }
  EXPECT_LE(tests::AllocationCounter::n_own_allocations, 20U * 4);  // a byte source and its name
  EXPECT_LT(tests::AllocationCounter::largest_bytes, 4096U);
}

}  // namespace
}  // namespace rondo::program_test
