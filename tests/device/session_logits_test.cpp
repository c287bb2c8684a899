// Whole models on the device against references in double precision, with every way to submit the same steps.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "graph/hazards.h"
#include "models/model_loader.h"
#include "models/checkpoint.h"
#include "models/reference.h"
#include "models/session_state.h"
#include "tests/device/greedy_reference.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::session_logits_test {
namespace {

struct Case {
  const char* name;
  const char* gguf;      ///< within RONDO_TEST_DATA; tests/data if `bundled`
  const char* expected;
  bool bundled;

  std::string path_of(const char* file) const { return bundled ? testing::tests_data_path(file) : testing::test_data_path(file); }
};

constexpr Case kCases[] = {
    {"Bundled", "tiny-Q4_0.gguf", "tiny-Q4_0.expected.safetensors", true},
    {"Stories260K", "stories260K/stories260K.gguf", "stories260K/expected.safetensors", false},
    {"TinyF16", "quant/tiny-F16.gguf", "quant/tiny-F16.expected.safetensors", false},
    {"TinyQ8_0", "quant/tiny-Q8_0.gguf", "quant/tiny-Q8_0.expected.safetensors", false},
    {"TinyQ4_K", "quant/tiny-Q4_K_M.gguf", "quant/tiny-Q4_K_M.expected.safetensors", false},
    {"TinyQ6_K", "quant/tiny-Q6_K.gguf", "quant/tiny-Q6_K.expected.safetensors", false},
    {"TinyBF16", "quant/tiny-BF16.gguf", "quant/tiny-BF16.expected.safetensors", false},
    {"TinyQ4_1", "quant/tiny-Q4_1.gguf", "quant/tiny-Q4_1.expected.safetensors", false},
    {"TinyQ5_0", "quant/tiny-Q5_0.gguf", "quant/tiny-Q5_0.expected.safetensors", false},
    {"TinyQ5_1", "quant/tiny-Q5_1.gguf", "quant/tiny-Q5_1.expected.safetensors", false},
    {"TinyQ2_K", "quant/tiny-Q2_K.gguf", "quant/tiny-Q2_K.expected.safetensors", false},
    {"TinyQ3_K", "quant/tiny-Q3_K_M.gguf", "quant/tiny-Q3_K_M.expected.safetensors", false},
    {"TinyQ5_K", "quant/tiny-Q5_K_M.gguf", "quant/tiny-Q5_K_M.expected.safetensors", false},
    {"TinyIQ4_NL", "quant/tiny-IQ4_NL.gguf", "quant/tiny-IQ4_NL.expected.safetensors", false},
};

/// Those whose files are there, but for some.
std::vector<Case> cases_without(std::initializer_list<std::string_view> names) {
  std::vector<Case> cases;
  std::copy_if(std::begin(kCases), std::end(kCases), std::back_inserter(cases), [&](const Case& one) {
    return std::find(names.begin(), names.end(), one.name) == names.end() && (one.bundled || !testing::test_data_folder().empty());
  });
  return cases;
}

/// Bounds on the logits, as parts of their range: what f32 arithmetic costs, and what rounding K and V costs.
double bound_of(KvType kv_type) { return kv_type == KvType::kF32 ? 1e-4 : kv_type == KvType::kF16 ? 1e-3 : 2e-2; }

const char* name_of(KvType kv_type) { return kv_type == KvType::kF32 ? "f32" : kv_type == KvType::kF16 ? "f16" : "q8_0"; }

class ReferenceTest : public ::testing::TestWithParam<Case> {
 protected:
  std::string path_of(const char* file) const { return GetParam().path_of(file); }
  Model load(KvType kv_type, bool fusion = true) const {
    ModelOptions options;
    options.activations = Activations::kF32;
    options.kv_type = kv_type;
    options.fusion = fusion;
    return load_model(path_of(GetParam().gguf), options);
  }
  Expected expected() const { return read_expected(path_of(GetParam().expected)); }
  /// The model's logits by the operators' references.
  Result<std::vector<float>> interpreted(std::span<const std::int32_t> input, graph::Type kv_type) const {
    RONDO_ASSIGN(ByteSource source, open_file(path_of(GetParam().gguf)));
    RONDO_ASSIGN(const auto checkpoint, models::open_checkpoint(std::move(source)));
    return models::reference_logits(*checkpoint, input, kv_type);
  }
};

#define RONDO_REQUIRE_CASE() \
  if (!GetParam().bundled) RONDO_REQUIRE_TEST_DATA()

TEST_P(ReferenceTest, LogitsAreWithinTheirBound) {
  RONDO_REQUIRE_CASE();
  const Expected wanted = expected();
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kQ8_0}) {
    for (const bool fusion : {true, false}) {
      const Model model = load(kv_type, fusion);
      Session session = make_session(model);
      const Result<std::vector<float>> logits = session.wait_logits(wanted.input);
      RONDO_ASSERT_OK(logits.status());
      EXPECT_LE(relative_to_range(*logits, wanted.logits), bound_of(kv_type)) << name_of(kv_type) << (fusion ? "" : ", no fusion");
    }
  }
}

/// The oracle of tests that have no file of such logits; without a device.
TEST_P(ReferenceTest, LogitsOfTheInterpreterAreWithinTheirBound) {
  RONDO_REQUIRE_CASE();
  const Expected wanted = expected();
  const Result<std::vector<float>> logits = interpreted(wanted.input, graph::Type::kF32);
  RONDO_ASSERT_OK(logits.status());
  EXPECT_LE(relative_to_range(*logits, wanted.logits), 1e-5);
}

/// Against the interpreter over the same q8_0 cache the device is as exact as a quant that falls to another side allows.
TEST_P(ReferenceTest, LogitsOverAQuantisedCacheAreThoseOfTheInterpreter) {
  RONDO_REQUIRE_CASE();
  const Expected wanted = expected();
  const Result<std::vector<float>> reference = interpreted(wanted.input, graph::Type::kQ8_0);
  RONDO_ASSERT_OK(reference.status());
  EXPECT_GT(relative_to_range(*reference, wanted.logits), 1e-4) << "that was not rounded";
  EXPECT_LE(relative_to_range(*reference, wanted.logits), bound_of(KvType::kQ8_0));
  const Model model = load(KvType::kQ8_0);
  Session session = make_session(model);
  const Result<std::vector<float>> logits = session.wait_logits(wanted.input);
  RONDO_ASSERT_OK(logits.status());
  EXPECT_LE(relative_to_range(*logits, *reference), 1e-3);
}

/// Whether the device has what rounded activations need.
bool has_integer_dots(const runtime::DeviceCaps& caps) { return caps.integer_dot && caps.subgroup_shuffle && caps.subgroup_arithmetic && caps.max_required_subgroup_size >= 8; }

/// Activations that are rounded to bytes cost accuracy, and no more than is said; every run gives the same bits, whatever the burst.
TEST(RoundedActivationsTest, CostWhatIsSaid) {
  if (!has_integer_dots(test_runtime_device().caps())) GTEST_SKIP() << "this device has no integer dot products, or subgroups that are too small";
  double most = 0;
  // Each type's products are op_tests'; what rounding does to a model, it does with any of them, and each is four models to compile.
  const bool is_thorough = std::getenv("RONDO_TEST_THOROUGH") != nullptr;
  for (const Case& one : cases_without({"Stories260K", "TinyF16", "TinyBF16"})) {
    const std::string_view name = one.name;
    if (!is_thorough && name != "Bundled" && name != "TinyQ8_0" && name != "TinyQ4_K") continue;
    const Expected wanted = read_expected(one.path_of(one.expected));
    ModelOptions options;
    options.kv_type = KvType::kF32;
    options.kernels["linear"] = "dot";  // of any number of rows
    const Model all = load_model(one.path_of(one.gguf), options);
    Session session = make_session(all);
    const Result<std::vector<float>> logits = session.wait_logits(wanted.input);
    RONDO_ASSERT_OK(logits.status());
    const double error = relative_to_range(*logits, wanted.logits);
    EXPECT_LE(error, 2e-2) << one.name;
    EXPECT_GT(error, 1e-5) << one.name << ": nothing was rounded";
    most = std::max(most, error);

    options.kernels.clear();
    options.activations = Activations::kQ8;
    const Model model = load_model(one.path_of(one.gguf), options);
    Session whole = make_session(model);
    const Result<std::vector<float>> by_rows = whole.wait_logits(wanted.input);  // by tiles, where there are more than 8
    RONDO_ASSERT_OK(by_rows.status());
    EXPECT_LE(relative_to_range(*by_rows, wanted.logits), 2e-2) << one.name;
    EXPECT_GT(relative_to_range(*by_rows, wanted.logits), 1e-5) << one.name << ": nothing was rounded";
    Tokens first;
    for (const std::uint32_t burst : {1u, 16u}) {
      Session decoding = make_session(model, without_model_stops(burst));
      const Tokens made = continue_with(decoding, wanted.input, 12);
      if (first.empty()) first = made;
      EXPECT_EQ(made, first) << one.name << ", burst " << burst;
    }
  }
  RecordProperty("most", std::to_string(most));
}

/// What the bundled model loses of a text, in nats a token: each line feed and word foretold by what is before it in its window of the context.
double loss_of(const Model& model, std::string_view text) {
  const Tokens tokens = model.tokenizer().encode(text);
  const std::size_t window = model.info().context;
  double loss = 0;
  std::size_t n = 0;
  for (std::size_t first = 0; first + 2 <= tokens.size(); first += window) {
    const Tokens part(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.begin() + static_cast<std::ptrdiff_t>(std::min(first + window, tokens.size())));
    Session session = make_session(model);
    const Result<std::vector<float>> logits = session.wait_logits(part);
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    if (!logits.ok()) return 0;
    const std::size_t vocabulary = logits->size() / part.size();
    for (std::size_t i = 0; i + 1 < part.size(); ++i, ++n) {
      const float* row = logits->data() + i * vocabulary;
      const double largest = static_cast<double>(*std::max_element(row, row + vocabulary));
      double mass = 0;
      for (std::size_t id = 0; id < vocabulary; ++id) mass += std::exp(static_cast<double>(row[id]) - largest);
      loss += largest + std::log(mass) - static_cast<double>(row[part[i + 1]]);
    }
  }
  return loss / static_cast<double>(n);
}

/// Of two chapters that the bundled model was not trained on.
TEST(RoundedActivationsTest, HeldOutLossStaysWithinHalfAPercent) {
  if (!has_integer_dots(test_runtime_device().caps())) GTEST_SKIP() << "this device has no integer dot products, or subgroups that are too small";
  const std::string text = testing::read_whole_file(testing::tests_data_path("held_out.txt"));
  ModelOptions options;
  options.kv_type = KvType::kF32;
  options.activations = Activations::kF32;
  const double exact = loss_of(load_model(RONDO_DEMO_MODEL, options), text);
  EXPECT_NEAR(exact, 2.7, 0.3);
  options.activations = Activations::kQ8;  // by tiles
  const double by_tiles = loss_of(load_model(RONDO_DEMO_MODEL, options), text);
  options.kernels["linear"] = "dot";  // of any number of rows
  const double by_rows = loss_of(load_model(RONDO_DEMO_MODEL, options), text);
  for (const double rounded : {by_tiles, by_rows}) {
    EXPECT_NEAR(rounded, exact, 0.005 * exact);
    EXPECT_NE(rounded, exact) << "nothing was rounded";
  }
  EXPECT_NE(by_tiles, by_rows) << "of one kernel";
  RecordProperty("exact", std::to_string(exact));
  RecordProperty("by_tiles", std::to_string(by_tiles));
  RecordProperty("by_rows", std::to_string(by_rows));
}

/// Matrix units cost accuracy, and no more than is said; every run gives the same bits.
TEST(MatrixUnitLogitsTest, CostWhatIsSaid) {
  if (test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  double most = 0;
  for (const Case& one : cases_without({"Stories260K", "TinyBF16"})) {
    const Expected wanted = read_expected(one.path_of(one.expected));
    ModelOptions options;
    options.kv_type = KvType::kF32;
    options.kernels = {{"linear", "matrix"}, {"attention", "matrix"}};
    const Model model = load_model(one.path_of(one.gguf), options);
    std::vector<float> first;
    for (int run = 0; run < 2; ++run) {
      Session session = make_session(model);
      const Result<std::vector<float>> logits = session.wait_logits(wanted.input);
      RONDO_ASSERT_OK(logits.status());
      const double error = relative_to_range(*logits, wanted.logits);
      EXPECT_LE(error, 2e-3) << one.name;
      EXPECT_GT(error, 1e-6) << one.name << ": nothing was rounded";
      if (first.empty()) first = *logits;
      EXPECT_EQ(*logits, first) << one.name;
      most = std::max(most, error);
    }
    SessionOptions on;
    on.use_model_stop_ids = false;
    Session session = make_session(model, on);
    EXPECT_EQ(continue_with(session, wanted.input, static_cast<std::uint32_t>(wanted.greedy.size())), wanted.greedy) << one.name << ": no two of these logits are within the bound";
  }
  RecordProperty("most", std::to_string(most));
}

TEST_P(ReferenceTest, AWrongReferenceIsRejected) {
  RONDO_REQUIRE_CASE();
  const Expected wanted = expected();
  const Model model = load(KvType::kF16);
  Session session = make_session(model);
  const Result<std::vector<float>> logits = session.wait_logits(wanted.input);
  RONDO_ASSERT_OK(logits.status());
  const auto [low, high] = std::minmax_element(wanted.logits.begin(), wanted.logits.end());
  // One value off by a little more than twice the bound; one row in the place of another; one value missing.
  std::vector<float> perturbed = wanted.logits;
  perturbed[perturbed.size() / 2] += 2.5e-3f * (*high - *low);
  EXPECT_GT(relative_to_range(*logits, perturbed), bound_of(KvType::kF16));
  const auto n_vocab = static_cast<std::ptrdiff_t>(model.info().n_vocab);
  std::vector<float> shifted = wanted.logits;
  std::rotate(shifted.begin(), shifted.begin() + n_vocab, shifted.end());
  EXPECT_GT(relative_to_range(*logits, shifted), bound_of(KvType::kF16));
  EXPECT_GT(relative_to_range(std::span(*logits).first(logits->size() - 1), wanted.logits), bound_of(KvType::kF16));
}

TEST_P(ReferenceTest, GreedyTokensAreThoseOfTheReference) {
  RONDO_REQUIRE_CASE();
  const Expected wanted = expected();
  ASSERT_FALSE(wanted.greedy.empty());
  for (const KvType kv_type : {KvType::kF32, KvType::kF16}) {
    const Model model = load(kv_type);
    for (const std::uint32_t burst : {1u, 3u, 16u}) {
      for (const bool cut : {false, true}) {
        SessionOptions options;
        options.burst = burst;
        options.use_model_stop_ids = false;
        if (cut) options.max_segment_us = 1;
        Session session = make_session(model, options);
        const Tokens made = continue_with(session, wanted.input, static_cast<std::uint32_t>(wanted.greedy.size()));
        EXPECT_EQ(made, wanted.greedy) << name_of(kv_type) << ", burst " << burst << (cut ? ", cut" : "");
        EXPECT_EQ(session.stop_reason(), StopReason::kLength);
        const SessionStatistics& statistics = session.statistics();
        EXPECT_EQ(statistics.segments_per_decode_step > 1, cut);
        EXPECT_EQ(statistics.n_steps, wanted.greedy.size());
      }
    }
  }
}

/// The margins of the fixtures' tokens do not allow for q8_0 in all models: the interpreter judges, over the same cache.
TEST_P(ReferenceTest, GreedyTokensOverAQuantisedCacheAreThoseOfTheInterpreter) {
  RONDO_REQUIRE_CASE();
  const Expected wanted = expected();
  Result<ByteSource> source = open_file(path_of(GetParam().gguf));
  RONDO_ASSERT_OK(source.status());
  const Result<std::unique_ptr<const models::Checkpoint>> checkpoint = models::open_checkpoint(std::move(source).value());
  RONDO_ASSERT_OK(checkpoint.status());
  const Model model = load(KvType::kQ8_0);
  Tokens first;
  for (const std::uint32_t burst : {1u, 16u}) {
    Session session = make_session(model, without_model_stops(burst));
    const Tokens made = continue_with(session, wanted.input, static_cast<std::uint32_t>(wanted.greedy.size()));
    ASSERT_EQ(made.size(), wanted.greedy.size());
    if (first.empty()) expect_interpreters_choice(**checkpoint, graph::Type::kQ8_0, wanted.input, made);
    else EXPECT_EQ(made, first) << "burst " << burst;
    first = made;
  }
}

TEST_P(ReferenceTest, RepeatedRunsHaveTheSameBits) {
  RONDO_REQUIRE_CASE();
  const Tokens input = expected().input;
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kQ8_0}) {
    const Model model = load(kv_type);
    Session session = make_session(model);
    const Result<std::vector<float>> once = session.wait_logits(input);
    RONDO_ASSERT_OK(once.status());
    RONDO_ASSERT_OK(session.rewind(0));
    const Result<std::vector<float>> again = session.wait_logits(input);
    RONDO_ASSERT_OK(again.status());
    Session other = make_session(model);
    const Result<std::vector<float>> elsewhere = other.wait_logits(input);
    RONDO_ASSERT_OK(elsewhere.status());
    ASSERT_EQ(once->size(), again->size());
    EXPECT_EQ(std::memcmp(once->data(), again->data(), once->size() * sizeof(float)), 0);
    ASSERT_EQ(once->size(), elsewhere->size());
    EXPECT_EQ(std::memcmp(once->data(), elsewhere->data(), once->size() * sizeof(float)), 0);
  }
}

/// As the recordings have them: a hazard between any two of a session's Programs, in any order, would be found.
TEST_P(ReferenceTest, ProgramsHaveTheBarriersTheyNeed) {
  RONDO_REQUIRE_CASE();
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kQ8_0}) {
    const Model model = load(kv_type);
    Result<std::unique_ptr<models::SessionState>> state = models::SessionState::create(*model.internal()->loaded(), {});
    RONDO_ASSERT_OK(state.status());
    const Tokens input = made_up_tokens(3, model.info().n_vocab);
    RONDO_ASSERT_OK((*state)->wait_logits(input).status());
    const std::vector<const runtime::Program*> programs = (*state)->steps().programs();
    ASSERT_GE(programs.size(), 4u);  // decode, prefill with and without sampling, logits
    const std::vector<graph::Hazard> hazards = graph::find_hazards_in_all_orders(programs);
    EXPECT_TRUE(hazards.empty()) << name_of(kv_type) << ": " << hazards.front().earlier << " / " << hazards.front().later;

    // A wrong result is rejected: the same Programs without one of their barriers.
    runtime::Program broken = *programs.front();
    const auto barrier = std::find_if(broken.dispatches.rbegin(), broken.dispatches.rend(),
                                      [](const runtime::Dispatch& dispatch) { return dispatch.barrier_before; });
    ASSERT_NE(barrier, broken.dispatches.rend());
    barrier->barrier_before = false;
    const runtime::Program* const alone[] = {&broken};
    EXPECT_FALSE(graph::find_hazards_in_all_orders(alone).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceTest, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case>& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace rondo::tests::session_logits_test
