// Loading: in small budgets, from sources that fail, from files cut anywhere, and from files that contradict themselves.
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/formats/gguf.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"
#include "tests/device/small_llama.h"
#include "tests/support/gguf_writer.h"

namespace rondo::tests::model_loading_test {
namespace {

using models::GgmlType;
using testing::GgufWriter;

Status load_all(ByteSource source) {
  RONDO_ASSIGN(Model model, Model::create(test_device(), std::move(source)));
  return model.wait_loaded();
}

TEST(LoadTest, SmallBudgetsMakeProgressAndFinish) {
  Result<ByteSource> source = open_file(tiny_path());
  RONDO_ASSERT_OK(source.status());
  Result<Model> model = Model::create(test_device(), *source);
  RONDO_ASSERT_OK(model.status());
  expect_failure(Session::create(*model).status(), StatusCode::kFailedPrecondition, {"not loaded"});

  LoadProgress progress;
  std::uint64_t n_calls = 0, n_with_bytes = 0;
  while (!progress.finished && n_calls < 10'000) {
    const bool waiting = progress.bytes_done == progress.bytes_total && n_calls > 0;  // for the driver, if at all
    const Result<LoadProgress> now = model->load_some(std::chrono::milliseconds(waiting ? 10 : 0));
    RONDO_ASSERT_OK(now.status());
    EXPECT_GE(now->bytes_done, progress.bytes_done);
    EXPECT_LE(now->bytes_done, now->bytes_total);
    n_with_bytes += now->bytes_done > progress.bytes_done;
    if (!now->finished) expect_failure(Session::create(*model).status(), StatusCode::kFailedPrecondition, {"not loaded"});
    progress = *now;
    ++n_calls;
  }
  EXPECT_TRUE(progress.finished);
  EXPECT_EQ(progress.bytes_done, progress.bytes_total);
  EXPECT_GT(n_with_bytes, 10u);  // a piece for each tensor at least
  EXPECT_GT(n_calls, n_with_bytes + 5);  // and one for each kernel
  const Result<LoadProgress> after = model->load_some(std::chrono::microseconds(0));
  RONDO_ASSERT_OK(after.status());
  EXPECT_TRUE(after->finished);

  const Expected wanted = read_expected(testing::tests_data_path("tiny-Q4_0.expected.safetensors"));
  Session session = make_session(*model, without_model_stops());
  EXPECT_EQ(continue_with(session, wanted.input, 12), wanted.greedy);
}

TEST(LoadTest, InfoTellsWhatTheFileSays) {
  const Model model = load_model(demo_path());
  const ModelInfo& info = model.info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.n_layers, 5u);
  EXPECT_EQ(info.width, 192u);
  EXPECT_EQ(info.n_heads, 6u);
  EXPECT_EQ(info.n_kv_heads, 2u);
  EXPECT_EQ(info.n_vocab, 1024u);
  EXPECT_EQ(info.context, 256u);
  EXPECT_EQ(model.tokenizer().n_vocab(), 1024);
  EXPECT_GT(info.n_parameters, 2'000'000u);
  EXPECT_GT(info.weight_bytes, info.n_parameters);  // Q8_0: a little more than a byte each
  EXPECT_LT(info.weight_bytes, 2 * info.n_parameters);
}

TEST(LoadTest, TheLargestBudgetIsNoneTooSmall) {
  Result<Model> model = Model::create(test_device(), open_file(tiny_path()).value());
  RONDO_ASSERT_OK(model.status());
  const Result<LoadProgress> progress = model->load_some(std::chrono::microseconds::max());
  RONDO_ASSERT_OK(progress.status());
  EXPECT_TRUE(progress->finished);
  Result<Model> slow = Model::create(test_device(), open_file(tiny_path()).value());
  RONDO_ASSERT_OK(slow.status());
  const Result<LoadProgress> least = slow->load_some(std::chrono::microseconds::min());
  RONDO_ASSERT_OK(least.status());
  EXPECT_FALSE(least->finished);
}

TEST(LoadTest, AKvTypeThatIsNoneIsRefused) {
  ModelOptions options;
  options.kv_type = static_cast<KvType>(77);
  expect_failure(Model::create(test_device(), open_file(tiny_path()).value(), options).status(), StatusCode::kInvalidArgument, {"kv_type is 77"});
}

/// A source that fails once `n_bytes` have been read from it.
ByteSource failing_after(const std::string& bytes, std::uint64_t n_bytes, StatusCode code) {
  ByteSource source = testing::source_of(bytes, "archive/model.gguf");
  const auto left = std::make_shared<std::uint64_t>(n_bytes);
  source.read = [read = source.read, left, code](std::uint64_t offset, std::span<std::byte> out) -> Status {
    if (out.size() > *left) return Status(code, "archive/model.gguf: the archive ended");
    *left -= out.size();
    return read(offset, out);
  };
  return source;
}

TEST(LoadTest, ASourceThatFailsIsAStatusWhereverItFails) {
  const std::string bytes = testing::read_whole_file(tiny_path());
  const Leaks hooks(test_runtime_device());
  std::uint64_t needed = 0;
  for (std::uint64_t n = 0; n < 2 * bytes.size(); n = n < 4096 ? n * 2 + 97 : n + bytes.size() / 40) {
    const StatusCode code = n % 2 == 0 ? StatusCode::kIo : StatusCode::kCorruptData;
    const Status status = load_all(failing_after(bytes, n, code));
    expect_no_leaks(test_runtime_device());
    if (status.ok()) {
      needed = n;
      break;
    }
    expect_failure(status, code, {"archive/model.gguf", "the archive ended"});
  }
  EXPECT_GT(needed, bytes.size());  // the header and all of the weights
}

/// The second try reads what the first could not.
TEST(LoadTest, LoadingGoesOnAfterAFailure) {
  const std::string bytes = testing::read_whole_file(tiny_path());
  ByteSource source = testing::source_of(bytes);
  const auto n_reads = std::make_shared<int>(0);
  const auto broken = std::make_shared<bool>(false);
  source.read = [read = source.read, n_reads, broken](std::uint64_t offset, std::span<std::byte> out) -> Status {
    if (*broken && ++*n_reads % 3 != 0) return Status(StatusCode::kIo, "the line is bad");
    return read(offset, out);
  };
  Result<Model> model = Model::create(test_device(), source);
  RONDO_ASSERT_OK(model.status());
  *broken = true;
  int n_failures = 0;
  while (n_failures < 1000) {
    const Status status = model->wait_loaded();
    if (status.ok()) break;
    expect_failure(status, StatusCode::kIo, {"model.gguf", "tensor '", "the line is bad"});
    ++n_failures;
  }
  EXPECT_GT(n_failures, 10);
  const Expected wanted = read_expected(testing::tests_data_path("tiny-Q4_0.expected.safetensors"));
  Session session = make_session(*model, without_model_stops());
  EXPECT_EQ(continue_with(session, wanted.input, 12), wanted.greedy);
}

TEST(LoadTest, AFileCutAnywhereIsAStatus) {
  const std::string bytes = testing::read_whole_file(tiny_path());
  constexpr std::size_t kCuts = 200;
  for (std::size_t i = 0; i < kCuts; ++i) {
    // Half of the places in the header, which is small, and half over the whole file.
    const std::size_t size = i % 2 == 0 ? i * 20'000 / kCuts + i / 2 : bytes.size() * i / kCuts;
    const std::string cut = bytes.substr(0, size);
    const Status status = load_all(testing::source_of(cut));
    EXPECT_FALSE(status.ok()) << "cut to " << size << " of " << bytes.size();
    expect_failure(status, StatusCode::kCorruptData, {"model.gguf"});
  }
  RONDO_EXPECT_OK(load_all(testing::source_of(bytes)));
}

/// A source that has become shorter since its size was asked for.
TEST(LoadTest, AFileThatShrinksWhileItIsLoadedIsAStatus) {
  const std::string bytes = testing::read_whole_file(tiny_path());
  const Leaks hooks(test_runtime_device());
  for (const std::size_t size : {bytes.size() - 1, bytes.size() * 3 / 4, bytes.size() / 2}) {
    {
      std::size_t size_now = bytes.size();
      ByteSource source = testing::source_of(bytes);
      source.read = [&size_now, read = source.read](std::uint64_t offset, std::span<std::byte> out) -> Status {
        if (offset + out.size() > size_now) return Status(StatusCode::kCorruptData, "it has become shorter");
        return read(offset, out);
      };
      Result<Model> model = Model::create(test_device(), source);
      RONDO_ASSERT_OK(model.status());
      size_now = size;
      expect_failure(model->wait_loaded(), StatusCode::kCorruptData, {"model.gguf", "tensor '", "shorter"});
    }
    expect_no_leaks(test_runtime_device());
  }
}

struct WrongFile {
  const char* name;
  StatusCode code;
  const char* field;
  std::function<void(SmallLlama&)> change;
};

class WrongFileTest : public ::testing::TestWithParam<WrongFile> {};

TEST(SmallLlamaTest, TheFileWithNothingWrongLoadsAndRuns) {
  const std::string bytes = SmallLlama().build();
  Result<Model> model = Model::create(test_device(), testing::source_of(bytes));
  RONDO_ASSERT_OK(model.status());
  RONDO_ASSERT_OK(model->wait_loaded());
  Session session = make_session(*model, without_model_stops());
  EXPECT_EQ(continue_with(session, Tokens{1, 5, 9}, 5).size(), 5u);
}

TEST_P(WrongFileTest, IsRefusedInOneLineThatNamesFileAndField) {
  SmallLlama file;
  GetParam().change(file);
  const std::string bytes = file.build();
  const Leaks hooks(test_runtime_device());
  expect_failure(load_all(testing::source_of(bytes, "wrong.gguf")), GetParam().code, {"wrong.gguf: ", GetParam().field});
  expect_no_leaks(test_runtime_device());
}

/// A tensor with other dimensions or of another type.
std::function<void(SmallLlama&)> changed(const char* tensor, std::vector<std::uint64_t> dims, GgmlType type = GgmlType::kF32) {
  return [=](SmallLlama& file) {
    file.changed = tensor;
    file.changed_dims = dims;
    file.changed_type = type;
  };
}

std::function<void(SmallLlama&)> without(const char* tensor) {
  return [=](SmallLlama& file) { file.missing = tensor; };
}

template <typename T>
std::function<void(SmallLlama&)> with(T SmallLlama::*member, T value) {
  return [=](SmallLlama& file) { file.*member = value; };
}

std::function<void(SmallLlama&)> with_keys(const std::function<void(GgufWriter&)>& add) { return with(&SmallLlama::add_keys, add); }

constexpr StatusCode kCorrupt = StatusCode::kCorruptData, kLater = StatusCode::kUnsupported;

const WrongFile kWrongFiles[] = {
    {"Architecture", kLater, "general.architecture", with(&SmallLlama::architecture, std::string("mamba"))},
    {"NoLayers", kCorrupt, "llama.block_count", with(&SmallLlama::n_layers, 0u)},
    {"TooManyLayers", kCorrupt, "blk.2.attn_norm.weight", with(&SmallLlama::n_layers, 3u)},
    {"AbsurdLayers", kCorrupt, "llama.block_count", with(&SmallLlama::n_layers, 0xffffffffu)},
    {"NoHeads", kCorrupt, "llama.attention.head_count", with(&SmallLlama::n_heads, 0u)},
    {"HeadsThatDoNotDivide", kCorrupt, "llama.embedding_length", [](SmallLlama& file) { file.n_heads = file.n_kv_heads = 5; }},
    {"KvHeadsThatDoNotDivide", kCorrupt, "llama.attention.head_count_kv", with(&SmallLlama::n_kv_heads, 3u)},
    {"MoreKvHeadsThanHeads", kCorrupt, "llama.attention.head_count_kv", with(&SmallLlama::n_kv_heads, 8u)},
    {"NoContext", kCorrupt, "llama.context_length", with(&SmallLlama::context, 0u)},
    {"NoEpsilon", StatusCode::kNotFound, "llama.attention.layer_norm_rms_epsilon", with(&SmallLlama::rms_epsilon, false)},
    {"NegativeEpsilon", kCorrupt, "llama.attention.layer_norm_rms_epsilon", with(&SmallLlama::epsilon, -1e-5f)},
    {"NanEpsilon", kCorrupt, "llama.attention.layer_norm_rms_epsilon", with(&SmallLlama::epsilon, std::numeric_limits<float>::quiet_NaN())},
    {"OddRopeDimensions", kCorrupt, "llama.rope.dimension_count", with_keys([](GgufWriter& w) { w.u32("llama.rope.dimension_count", 7); })},
    {"RopeBaseOfZero", kCorrupt, "llama.rope.freq_base", with_keys([](GgufWriter& w) { w.f32("llama.rope.freq_base", 0); })},
    {"RopeBaseOfAnotherType", kCorrupt, "llama.rope.freq_base", with_keys([](GgufWriter& w) { w.string("llama.rope.freq_base", "10000"); })},
    {"RopeScaling", kLater, "llama.rope.scaling.type", with_keys([](GgufWriter& w) { w.string("llama.rope.scaling.type", "dynamic"); })},
    {"ExpertsUnused", kCorrupt, "llama.expert_used_count", with_keys([](GgufWriter& w) { w.u32("llama.expert_count", 8); })},
    {"MoreExpertsUsedThanThere", kCorrupt, "llama.expert_used_count", with_keys([](GgufWriter& w) { w.u32("llama.expert_count", 8).u32("llama.expert_used_count", 9); })},
    {"ExpertsUsedButNotThere", kCorrupt, "llama.expert_used_count", with_keys([](GgufWriter& w) { w.u32("llama.expert_used_count", 2); })},
    {"TooManyExperts", kCorrupt, "llama.expert_count", with_keys([](GgufWriter& w) { w.u32("llama.expert_count", 4000000000u).u32("llama.expert_used_count", 2); })},
    {"ExpertsWithoutWeights", kCorrupt, "blk.0.ffn_gate_inp.weight", with_keys([](GgufWriter& w) { w.u32("llama.expert_count", 8).u32("llama.expert_used_count", 2); })},
    {"ExpertsBySigmoid", kLater, "llama.expert_gating_func", with_keys([](GgufWriter& w) { w.u32("llama.expert_count", 8).u32("llama.expert_used_count", 2).u32("llama.expert_gating_func", 2); })},
    {"MoreTokensThanRows", kCorrupt, "tokenizer.ggml.tokens", with(&SmallLlama::n_tokens, 301u)},
    {"MoreRowsThanTokens", kCorrupt, "tokenizer.ggml.tokens", with(&SmallLlama::n_vocab, 301u)},
    {"NoEmbedding", kCorrupt, "token_embd.weight", without("token_embd.weight")},
    {"NoKeys", kCorrupt, "blk.0.attn_k.weight", without("blk.0.attn_k.weight")},
    {"NoNorm", kCorrupt, "output_norm.weight", without("output_norm.weight")},
    {"EmbeddingOfOneDimension", kCorrupt, "token_embd.weight", changed("token_embd.weight", {9600})},
    {"QueryOfAnotherShape", kCorrupt, "blk.0.attn_q.weight", changed("blk.0.attn_q.weight", {32, 64})},
    {"DownTransposed", kCorrupt, "blk.0.ffn_down.weight", changed("blk.0.ffn_down.weight", {32, 64})},
    {"UpOfThreeDimensions", kCorrupt, "blk.0.ffn_up.weight", changed("blk.0.ffn_up.weight", {32, 32, 2})},
    {"NormOfAnotherLength", kCorrupt, "blk.0.ffn_norm.weight", changed("blk.0.ffn_norm.weight", {64})},
    {"NormThatIsAMatrix", kCorrupt, "blk.0.attn_norm.weight", changed("blk.0.attn_norm.weight", {32, 2})},
    {"WeightTypeThatIsNotThere", kLater, "blk.0.attn_v.weight", changed("blk.0.attn_v.weight", {}, GgmlType::kQ8_1)},
    {"QuantisedNorm", kLater, "blk.0.attn_norm.weight", changed("blk.0.attn_norm.weight", {}, GgmlType::kQ8_0)},
    {"QueryBiasAlone", kCorrupt, "blk.0.attn_k.bias", with(&SmallLlama::extra, std::string("blk.0.attn_q.bias"))},
    {"BiasOfTheFeedForward", kCorrupt, "blk.0.ffn_gate.bias", with(&SmallLlama::extra, std::string("blk.0.ffn_up.bias"))},
    {"RopeFactorsOfAnotherLength", kCorrupt, "rope_freqs.weight", with(&SmallLlama::extra, std::string("rope_freqs.weight"))},
};

INSTANTIATE_TEST_SUITE_P(Files, WrongFileTest, ::testing::ValuesIn(kWrongFiles),
                         [](const ::testing::TestParamInfo<WrongFile>& each) { return std::string(each.param.name); });

TEST(QuantisedFileTest, TypesThatAreNotThereYetAreNamed) {
  for (const GgmlType type : {GgmlType::kQ8_1, GgmlType::kIQ4_XS, GgmlType::kTQ1_0, GgmlType::kIQ2_XXS}) {
    SmallLlama file;
    file.width = 256;
    file.changed = "token_embd.weight";
    file.changed_type = type;
    expect_failure(load_all(testing::source_of(file.build())), StatusCode::kUnsupported,
                   {"model.gguf: tensor 'token_embd.weight' is ", models::ggml_type_info(type).name, "not there yet"});
  }
}

TEST(ModelOptionsTest, KernelsThatAreNotThereAreRefused) {
  const std::string bytes = SmallLlama().build();
  for (const auto& [op, kernel] : {std::pair("linear", "fastest"), std::pair("lineal", "tiled")}) {
    ModelOptions options;
    options.kernels[op] = kernel;
    expect_failure(Model::create(test_device(), testing::source_of(bytes), options).status(), StatusCode::kInvalidArgument,
                   {std::string(op) + "=" + kernel});
  }
}

}  // namespace
}  // namespace rondo::tests::model_loading_test
