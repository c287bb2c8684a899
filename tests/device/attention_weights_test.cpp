// What the attention of each layer weighs, against tests/data/attention.safetensors, which tests/support/attention_references.py
// computes in float64, and what must hold of it in any model.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <rondo/encoder.h>

#include "graph/hazards.h"
#include "models/encoder_state.h"
#include "tests/device/encoder_cases.h"
#include "tests/support/family_gguf.h"

namespace rondo::tests::attention_weights_test {
namespace {

using namespace encoder_cases;

constexpr double kBound = 1e-5;

EncoderOptions of_layer(std::uint32_t layer, std::uint32_t max_batch = 8) {
  EncoderOptions options;
  options.output = EncoderOutput::kAttention;
  options.attention_layer = layer;
  options.max_batch = max_batch;
  return options;
}

/// A case's folder, of tests/data or of RONDO_TEST_DATA.
struct Place {
  const char* name;
  bool packed = false;
  std::uint32_t n_layers = 1;
};
void PrintTo(const Place& place, std::ostream* stream) { *stream << place.name; }

/// What is expected, or none.
std::vector<float> expected(const std::string& name) {
  const ByteSource source = open_file(testing::tests_data_path("attention.safetensors")).value();
  const models::SafetensorsFile file = models::SafetensorsFile::parse(source).value();
  return file.find(name) ? file.read_f32(source, name).value() : std::vector<float>();
}

/// The largest difference; infinite where the sizes differ.
double difference(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i])));
  return worst;
}

/// Every row of every head adds up to 1, and, of a causal model, weighs nothing that comes after its token.
void expect_rows(const Encoding& encoding, std::size_t n_tokens, bool causal) {
  ASSERT_EQ(encoding.width, n_tokens);
  ASSERT_EQ(encoding.n_rows % n_tokens, 0u);
  ASSERT_EQ(encoding.values.size(), std::size_t{encoding.n_rows} * n_tokens);
  for (std::size_t row = 0; row < encoding.n_rows; ++row) {
    double sum = 0;
    for (std::size_t j = 0; j < n_tokens; ++j) {
      const float weight = encoding.values[row * n_tokens + j];
      sum += static_cast<double>(weight);
      EXPECT_GE(weight, 0.0f);
      EXPECT_TRUE(weight == 0 || !causal || j <= row % n_tokens) << "row " << row << ", key " << j << ": " << weight;
    }
    EXPECT_NEAR(sum, 1, kBound) << "row " << row;
  }
}

class AttentionOfCasesTest : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (!GetParam().packed && !std::getenv("RONDO_TEST_DATA")) GTEST_SKIP() << "RONDO_TEST_DATA is not set";
  }
  Case make_case() const { return GetParam().packed ? Case::packed(GetParam().name) : Case::of_data(GetParam().name); }
  std::vector<float> expected_of(std::size_t text, std::uint32_t layer, const char* tower = "") const { return expected(std::string(GetParam().name) + tower + "/" + std::to_string(text) + "/" + std::to_string(layer)); }
};

TEST_P(AttentionOfCasesTest, AreThoseOfFloat64) {
  const Case one = make_case();
  const Model model = load(one);
  const std::vector<Tokens> texts = one.texts(), types = one.texts("token_type_ids");
  const std::string& kind = model.info().architecture;
  const bool causal = kind == "gpt2" || kind == "llama" || kind == "gemma2" || kind == "bloom" || kind == "clip";
  for (std::uint32_t layer = 0; layer < GetParam().n_layers; ++layer) {
    Encoder encoder = make_encoder(model, of_layer(layer));
    for (std::size_t i = 0; i < texts.size(); ++i) RONDO_ASSERT_OK(encoder.append(texts[i], types.empty() ? Tokens() : types[i]));
    const std::vector<Encoding> all = take_all(encoder);
    ASSERT_EQ(all.size(), texts.size());
    int n_compared = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE("layer " + std::to_string(layer) + ", text " + std::to_string(i));
      expect_rows(all[i], texts[i].size(), causal);
      const std::vector<float> reference = expected_of(i, layer);
      if (reference.empty()) continue;
      ++n_compared;
      EXPECT_LE(difference(all[i].values, reference), kBound);
    }
    EXPECT_GE(n_compared, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionOfCasesTest,
                         ::testing::Values(Place{"bert", false, 3}, Place{"gpt2", false, 3}, Place{"llama", false, 3}, Place{"mistral_sw", false, 3}, Place{"gemma2", false, 4}, Place{"bloom", false, 2}, Place{"bert_relative_key", true, 2},
                                           Place{"bert_relative_key_query", true, 2}, Place{"nomic_bert", true, 1}, Place{"m2m100", true, 2}, Place{"t5_gated", true, 2}, Place{"clip", true, 2}),
                         [](const auto& one) { return std::string(one.param.name); });

/// Compares all images of a case that there is a reference of.
void expect_images(const Case& one, const std::string& name, std::uint32_t n_layers) {
  const Model model = load(one);
  const std::vector<float> pixels = one.pixels();
  for (std::uint32_t layer = 0; layer < n_layers; ++layer) {
    Result<ImageEncoder> encoder = ImageEncoder::create(model, of_layer(layer));
    RONDO_ASSERT_OK(encoder.status());
    const std::size_t n = encoder->shape().n_values();
    for (std::size_t i = 0; i < pixels.size() / n; ++i) RONDO_ASSERT_OK(encoder->append(std::span(pixels).subspan(i * n, n)));
    const std::vector<Encoding> all = take_all(*encoder);
    int n_compared = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      expect_rows(all[i], all[i].width, false);
      const std::vector<float> reference = expected(name + "/" + std::to_string(i) + "/" + std::to_string(layer));
      if (reference.empty()) continue;
      ++n_compared;
      EXPECT_LE(difference(all[i].values, reference), kBound) << "layer " << layer << ", image " << i;
    }
    EXPECT_GE(n_compared, 1);
  }
}

TEST(AttentionOfImagesTest, OfViTAreThoseOfFloat64) {
  RONDO_REQUIRE_TEST_DATA();
  expect_images(Case::of_data("vit"), "vit", 3);
}
TEST(AttentionOfImagesTest, OfClipAreThoseOfFloat64) { expect_images(Case::packed("clip"), "clip_image", 2); }

// Also shows that a reference of another layer is told from the right one.
TEST(AttentionWeightsTest, ADecoderSeesWhatComesBefore) {
  const Model model = load_model(demo_path());
  const Tokens text = model.tokenizer().encode("And Jesus answered and said unto them");
  std::vector<float> last;
  for (std::uint32_t layer = 0; layer < model.info().n_layers; ++layer) {
    Encoder encoder = make_encoder(model, of_layer(layer));
    const std::vector<Tokens> texts = {text};
    const Encoding found = encoder.encode(texts).value()[0];
    EXPECT_EQ(found.n_rows, model.info().n_heads * text.size());
    expect_rows(found, text.size(), true);
    EXPECT_GT(difference(found.values, last), 100 * kBound);
    last = found.values;
  }
}

class AttentionOfFamilyTest : public ::testing::TestWithParam<FamilyFile> {};

// Decoders of all families without caches: what a token attends to is the same, whatever follows it.
TEST_P(AttentionOfFamilyTest, DependsOnWhatComesBeforeAlone) {
  const std::string bytes = build_family_file(GetParam(), 1);
  const Model model = load_model_from(bytes);
  const std::size_t n = 40, few = 17, n_heads = model.info().n_heads;
  Tokens text;
  for (std::size_t i = 0; i < n; ++i) text.push_back(static_cast<std::int32_t>(3 + i * 7 % 50));
  const std::vector<Tokens> texts = {text, Tokens(text.begin(), text.begin() + few)};
  Encoder encoder = make_encoder(model, of_layer(model.info().n_layers - 1));
  const std::vector<Encoding> found = encoder.encode(texts).value();
  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(found[0].values.size(), n_heads * n * n);
  ASSERT_EQ(found[1].values.size(), n_heads * few * few);
  for (std::size_t row = 0; row < n_heads * few; ++row) {
    const std::size_t head = row / few, i = row % few;
    double sum = 0;
    for (std::size_t j = 0; j < few; ++j) {
      const float weight = found[1].values[row * few + j];
      EXPECT_NEAR(weight, found[0].values[(head * n + i) * n + j], 1e-6);
      EXPECT_TRUE(weight == 0 || j <= i);
      sum += static_cast<double>(weight);
    }
    EXPECT_LE(sum, 1 + kBound);
    EXPECT_EQ(sum < 1 - kBound, GetParam().sinks) << sum;
  }
}
INSTANTIATE_TEST_SUITE_P(All, AttentionOfFamilyTest, ::testing::ValuesIn(family_files().begin(), family_files().end()), [](const auto& one) {
  std::string name = one.param.name;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.' || c == ' '; }, '_');
  return name;
});

// A text's own rows and columns, whatever lies beside it and however long its recording is.
TEST(AttentionWeightsTest, WhatIsBesideATextChangesNoBitOfIt) {
  for (const char* name : {"bert_relative_key_query", "t5_gated"}) {
    const Model model = load(Case::packed(name));
    const std::vector<Tokens> texts = {Tokens(32, 90), {7, 8, 9}, Tokens(20, 11), {5}, {6, 7, 8, 9, 10, 11, 12}};
    Encoder encoder = make_encoder(model, of_layer(1));
    const std::vector<Encoding> together = encoder.encode(texts).value();
    EXPECT_EQ(encoder.statistics().n_steps, 1u);
    const std::vector<Encoding> backwards = encoder.encode(std::vector<Tokens>(texts.rbegin(), texts.rend())).value();
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(together[i].values, backwards[texts.size() - 1 - i].values) << name << ", text " << i;
    Encoder one_by_one = make_encoder(model, of_layer(1, 1));
    const std::vector<Encoding> alone = one_by_one.encode(texts).value();
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_LE(difference(together[i].values, alone[i].values), 1e-6) << name << ", text " << i;
  }
}

// Nothing behind the layer is computed.
TEST(AttentionWeightsTest, LaterLayersAreNotComputed) {
  const Model model = load(Case::packed("bert_mlm"));
  std::uint64_t n_before = 0;
  for (const std::uint32_t layer : {0u, 1u}) {
    Encoder encoder = make_encoder(model, of_layer(layer));
    const std::vector<Tokens> texts = {{5, 6, 7}};
    RONDO_ASSERT_OK(encoder.encode(texts).status());
    EXPECT_GT(encoder.statistics().n_dispatches, n_before);
    n_before = encoder.statistics().n_dispatches;
    EXPECT_TRUE(graph::find_hazards_in_all_orders(encoder.internal().programs()).empty());
  }
  Encoder hidden = make_encoder(model, {.output = EncoderOutput::kHidden});
  const std::vector<Tokens> texts = {{5, 6, 7}};
  RONDO_ASSERT_OK(hidden.encode(texts).status());
  EXPECT_LT(n_before, hidden.statistics().n_dispatches);
}

TEST(AttentionWeightsTest, LayersThatAreNotThereAreRefused) {
  expect_failure(Encoder::create(load(Case::packed("bert_mlm")), of_layer(2)).status(), StatusCode::kInvalidArgument, {"attention_layer is 2", "bert", "0 to 1"});
  expect_failure(Encoder::create(load(Case::packed("m2m100")), of_layer(2)).status(), StatusCode::kInvalidArgument, {"attention_layer is 2", "m2m_100", "0 to 1 in its encoder"});
  const Model deit = load(Case::packed("deit"));
  expect_failure(ImageEncoder::create(deit, of_layer(9)).status(), StatusCode::kInvalidArgument, {"attention_layer is 9", "vit"});
  expect_failure(Encoder::create(deit, of_layer(0)).status(), StatusCode::kUnsupported, {"vit", "takes no texts"});
  const Model llama = load_model(tiny_path());
  expect_failure(Encoder::create(llama).status(), StatusCode::kUnsupported, {"llama", "does not encode texts"});
  expect_failure(ImageEncoder::create(llama, of_layer(0)).status(), StatusCode::kUnsupported, {"llama", "takes no images"});
}

}  // namespace
}  // namespace rondo::tests::attention_weights_test
