// The table of check's cases, and the words that they are written in.
#include "tools/check/cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "graph/operator.h"
#include "lib/step_state.h"
#include "tools/check/case_text.h"
#include "tools/check/check.h"

namespace rondo::check::check_cases_test {
namespace {

using graph::Shape;

TEST(CheckCasesTest, EveryCaseIsTakenByItsOperator) {
  for (const std::string& text : all_cases(true)) {
    const Result<CaseText> parsed = parse_case(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const Result<OpCase> built = build_case(*parsed, Values::kRandom, 1);
    EXPECT_TRUE(built.ok()) << built.status().message();
  }
}

TEST(CheckCasesTest, NoCaseIsThereTwice) {
  std::vector<std::string> cases = all_cases(true);
  std::sort(cases.begin(), cases.end());
  EXPECT_EQ(std::adjacent_find(cases.begin(), cases.end()), cases.end()) ;
}

/// Every kernel with whole numbers where they are exact, with random and large ones; every weight type in both operators.
TEST(CheckCasesTest, EveryKernelAndTypeIsThere) {
  const Result<std::vector<CheckRun>> runs = list_runs({});
  ASSERT_TRUE(runs.ok());
  std::set<std::string> found;
  for (const CheckRun& run : *runs) found.insert(run.op + "/" + run.kernel + " " + values_name(run.values));
  for (std::size_t i = 0; i < graph::kOpCount; ++i) {
    const graph::Operator& table = graph::operator_of(static_cast<graph::Op>(i));
    for (const char* kernel : table.kernels) {
      for (const char* values : {" random", " large"}) EXPECT_TRUE(found.contains(std::string(table.name) + "/" + kernel + values)) << table.name << "/" << kernel << values;
    }
  }
  for (const char* op : {"linear", "embedding"}) {
    for (const graph::Type type : kWeightTypes) {
      const std::string words = std::string("weight ") + graph::type_name(type) + " ";
      EXPECT_TRUE(std::any_of(runs->begin(), runs->end(), [&](const CheckRun& run) { return run.op == op && run.text.find(words) != std::string::npos; })) << op << " " << words;
    }
  }
}

CaseText parsed(const char* text) {
  Result<CaseText> result = parse_case(text);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? std::move(result).value() : CaseText{};
}

TEST(CaseTextTest, ReadsInputsAttributesAndState) {
  const CaseText text = parsed("attention query (2, 4, 7, 16) sliced * 0.5, key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), mask bool (7, 41), lengths [37, 0], causal, window_back 5, softcap 2.5, valid [7, 3]");
  ASSERT_EQ(text.inputs.size(), 5u);
  EXPECT_EQ(text.op, "attention");
  EXPECT_EQ(text.inputs[0].layout, Layout::kSliced);
  EXPECT_EQ(text.inputs[0].scale, 0.5f);
  EXPECT_EQ(text.inputs[1].type, graph::Type::kF16);
  EXPECT_EQ(text.inputs[2].shape, (Shape{2, 2, 41, 24}));
  EXPECT_TRUE(text.inputs[3].boolean);
  EXPECT_EQ(text.inputs[4].integers, (std::vector<std::int32_t>{37, 0}));
  EXPECT_EQ(text.inputs[4].shape, (Shape{2}));
  ASSERT_EQ(text.attributes.size(), 3u);
  EXPECT_EQ(text.attributes[0].second, graph::AttributeValue(true));
  EXPECT_EQ(text.attributes[1].second, graph::AttributeValue(std::int64_t{5}));
  EXPECT_EQ(text.attributes[2].second, graph::AttributeValue(2.5));
  EXPECT_EQ(text.valid, (std::vector<std::int64_t>{7, 3}));
  EXPECT_EQ(parsed("sample logits (1, 9), tokens (1, 3), state.temperature 0.8").state.at("temperature"), 0.8);
}

TEST(CaseTextTest, RefusesWhatItCanNotRead) {
  const auto refusal = [](const char* text) { return parse_case(text).status().message(); };
  EXPECT_EQ(refusal("nothing input (3)"), "case 'nothing input (3)': there is no operator 'nothing'");
  EXPECT_EQ(refusal("relu input (3"), "case 'relu input (3': expected a comma or a closing parenthesis at its end");
  EXPECT_EQ(refusal("relu input (0)"), "case 'relu input (0)': expected at most 4 extents of at least 1 and a closing parenthesis where there is '0'");
  EXPECT_EQ(refusal("relu input (3) (4)"), "case 'relu input (3) (4)': expected a comma where there is '('");
  EXPECT_EQ(refusal("relu input (3),"), "case 'relu input (3),': expected an input or attribute at its end");
  EXPECT_EQ(refusal("relu input (3) * big"), "case 'relu input (3) * big': expected a number that fits f32 where there is 'big'");
  EXPECT_EQ(refusal("attention lengths [x]"), "case 'attention lengths [x]': expected an integer of 32 bits or a closing bracket where there is 'x'");
}

std::vector<float> elements(const OpCase& c, graph::TensorId id) {
  const graph::Tensor& tensor = c.graph.tensor(id);
  const std::vector<std::byte> bytes = c.before(tensor.storage);
  std::vector<float> values;
  for (std::int64_t flat = 0; flat < tensor.shape.n_elements(); ++flat) {
    std::int64_t rest = flat, at = tensor.offset_elements;
    for (int axis = tensor.shape.rank - 1; axis >= 0; --axis) {
      at += rest % tensor.shape[axis] * tensor.strides[static_cast<std::size_t>(axis)];
      rest /= tensor.shape[axis];
    }
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * at, 4);
    values.push_back(value);
  }
  return values;
}

/// The layouts differ in memory, not in the numbers; what lies between is NaN.
TEST(CaseBuildTest, LayoutsHoldTheSameNumbers) {
  std::vector<float> dense;
  for (const char* layout : {"dense", "transposed", "permuted", "sliced", "stepped"}) {
    const CaseText text = parsed((std::string("neg input (3, 5, 7) ") + layout).c_str());
    const Result<OpCase> built = build_case(text, Values::kRandom, 4);
    ASSERT_TRUE(built.ok()) << built.status().message();
    const graph::TensorId input = built->graph.nodes().back().inputs[0];
    const std::vector<float> found = elements(*built, input);
    if (dense.empty()) dense = found;
    EXPECT_EQ(found, dense) << layout;
    EXPECT_EQ(built->graph.tensor(input).is_contiguous(), std::string(layout) == "dense") << layout;
  }
  EXPECT_FALSE(std::any_of(dense.begin(), dense.end(), [](float value) { return std::isnan(value); }));
}

TEST(CaseBuildTest, SpecialNumbersAreInOneElementOfOneInput) {
  const CaseText text = parsed("add a (3, 5), b (3, 5)");
  const Result<OpCase> built = build_case(text, Values::kInfinity, 1, 1);
  ASSERT_TRUE(built.ok());
  const graph::Node& node = built->graph.nodes().back();
  const auto n_infinite = [&](std::size_t input) {
    const std::vector<float> values = elements(*built, node.inputs[input]);
    return std::count_if(values.begin(), values.end(), [](float value) { return std::isinf(value); });
  };
  EXPECT_EQ(n_infinite(0), 0);
  EXPECT_EQ(n_infinite(1), 1);
}

/// Each 32 columns have a step of their own, and a NaN spoils those 32 alone.
TEST(CaseBuildTest, ARoundedInputIsWithinHalfAStep) {
  constexpr std::size_t kColumns = 80, kNan = 40;
  const CaseText text = parsed("linear input (2, 80), weight (3, 80)");
  const auto input_of = [&](bool rounded) {
    const Result<OpCase> built = build_case(text, Values::kNan, 1, 0, rounded);
    return elements(*built, built->graph.nodes().back().inputs[0]);
  };
  const std::vector<float> values = input_of(false), rounded = input_of(true);
  std::size_t n_different = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % kColumns, first = i - column % 32, end = std::min(first + 32, i - column + kColumns);
    EXPECT_EQ(std::isnan(rounded[i]), first == kNan / 32 * 32) << i;
    if (std::isnan(rounded[i])) continue;
    float most = 0;
    for (std::size_t j = first; j < end; ++j) most = std::max(most, std::abs(values[j]));
    EXPECT_LE(std::abs(rounded[i] - values[i]), most / 127 * 0.5001f) << i;
    n_different += rounded[i] != values[i];
  }
  EXPECT_GT(n_different, 100u);
}

/// Keys behind `lengths`, and the one that a boolean mask hides from all, hold NaN, so that nothing of them can leak unseen.
TEST(CaseBuildTest, HiddenKeysHoldNan) {
  const CaseText text = parsed("attention query (2, 1, 3, 4), key (2, 1, 6, 4), value (2, 1, 6, 4), lengths [6, 2], mask bool (3, 6)");
  const Result<OpCase> built = build_case(text, Values::kRandom, 1);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const std::vector<float> values = elements(*built, built->graph.nodes().back().inputs[2]);
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t j = 0; j < 6; ++j) EXPECT_EQ(std::isnan(values[(b * 6 + j) * 4]), j == 3 || (b == 1 && j >= 2)) << b << ", " << j;
  }
}

TEST(CaseBuildTest, TheStepStateIsSet) {
  const Result<OpCase> built = build_case(parsed("step_begin tokens (2, 9), rows 4, state.position 3, valid [2, 4], inactive [1]"), Values::kRandom, 1);
  ASSERT_TRUE(built.ok());
  std::vector<std::int32_t> words(2 * RONDO_STATE_WORDS);
  std::memcpy(words.data(), built->before(built->graph.state).data(), words.size() * 4);
  EXPECT_EQ(words[RONDO_STATE_POSITION], 3);
  EXPECT_EQ(words[RONDO_STATE_COUNT], 2);
  EXPECT_EQ(words[RONDO_STATE_ACTIVE], 1);
  EXPECT_EQ(words[RONDO_STATE_WORDS + RONDO_STATE_COUNT], 4);
  EXPECT_EQ(words[RONDO_STATE_WORDS + RONDO_STATE_ACTIVE], 0);
  EXPECT_EQ(build_case(parsed("step_begin tokens (2, 9), rows 4, state.colour 3"), Values::kRandom, 1).status().message(),
            "case 'step_begin tokens (2, 9), rows 4, state.colour 3': the step state has no 'colour'");
}

/// What can't be meant ends before anything is allocated or written.
TEST(CaseBuildTest, RefusesWhatDoesNotFitTogether) {
  const auto refusal = [](const std::string& text) {
    const Result<CaseText> words = parse_case(text);
    return words.ok() ? std::string(build_case(*words, Values::kRandom, 1).status().message()) : std::string(words.status().message());
  };
  const std::pair<const char*, const char*> kRefused[] = {
      {"silu input (3, 4), inactive [99]", "'inactive' holds 99 but there are 1 sequences"},
      {"silu input (3, 4), inactive [-1]", "'inactive' holds -1"},
      {"silu input (3, 4), valid [5, 5]", "'valid' is of 2 sequences, which 3 rows are not"},
      {"silu input (4, 4), valid [-1]", "'valid' holds -1"},
      {"silu input (4, 4), valid [9223372036854775807]", "expected an integer of 32 bits"},
      {"silu input (1000000000, 1000000000)", "expected a shape of at most 67108864 elements"},
      {"silu input (3, 4) * nan", "expected a number that fits f32"},
      {"silu input (3, 4) * 1e300", "expected a number that fits f32"},
      {"silu input (3, 4) joined", "'input' is (3, 4) but joined ones are (B, heads, T, D)"},
      {"linear input (3, 64), weight q8_0 (7, 64) transposed", "'weight' can't be q8_0 (7, 64) of this layout"},
      {"linear input (3, 40), weight q8_0 (7, 40)", "40 columns of 'weight' are no whole blocks of q8_0"},
      {"step_begin tokens (1, 9), rows 700000000", "takes "},
      {"step_begin tokens (1, 9), rows 1, state.position 1.5", "'state.position' is 1.5, which is no integer"},
      {"attention query (1, 1, 2, 8), key q4_0 (1, 1, 4, 8), value (1, 1, 4, 8)", "case '"},
      {"rope_kv_write query (1, 2, 3, 8) joined, key (1, 2, 4, 8) joined", "'key' is (1, 2, 4, 8), which can't be joined"},
  };
  for (const auto& [text, expected] : kRefused) EXPECT_NE(refusal(text).find(expected), std::string::npos) << text << ": " << refusal(text);
}

TEST(CaseBuildTest, IdsReachJustBeyondTheVocabulary) {
  const CaseText text = parsed("embedding weight f32 (5, 3), ids (400)");
  const Result<OpCase> built = build_case(text, Values::kRandom, 1);
  ASSERT_TRUE(built.ok());
  std::vector<std::int32_t> ids(400);
  std::memcpy(ids.data(), built->before(built->graph.tensor(built->graph.nodes().back().inputs[0]).storage).data(), 1600);
  EXPECT_EQ(*std::min_element(ids.begin(), ids.end()), -1);
  EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), 5);
}

TEST(CheckRunsTest, ARunCanBeRepeated) {
  const CheckRun run{"relu", "baseline", "relu input (3)", Values::kRandom, 0, 0};
  EXPECT_EQ(repeat_command(run, 7), "rondo check --kernel relu/baseline --seed 7 --case \"relu input (3)\"");
}

}  // namespace
}  // namespace rondo::check::check_cases_test
