// Encoders, encoder-decoders and towers of images against PyTorch in float64: the cases of tests/data/encoders.safetensors, which
// tests/support/encoder_references.py makes, and those that transformers itself has computed (RONDO_TEST_DATA).
#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <rondo/encoder.h>

#include "graph/hazards.h"
#include "models/encoder_state.h"
#include "models/formats/safetensors.h"
#include "models/image.h"
#include "models/json.h"
#include "models/model_loader.h"
#include "models/session_state.h"
#include "tests/device/encoder_cases.h"
#include "tests/device/session_harness.h"
#include "tests/support/packed_folder.h"
#include "tests/support/pictures.h"

namespace rondo::tests::encoder_test {
namespace {

using namespace encoder_cases;

/// All texts of a case, with their types.
std::vector<Encoding> encode_all(const Case& one, Encoder& encoder) {
  const std::vector<Tokens> texts = one.texts(), types = one.texts("token_type_ids");
  for (std::size_t i = 0; i < texts.size(); ++i) RONDO_EXPECT_OK(encoder.append(texts[i], types.empty() ? Tokens() : types[i]));
  return take_all(encoder);
}

/// The rows that texts have, one after the other, of (batch, rows, width) as references have them; `encodings` say how many.
std::vector<float> rows_of_texts(std::span<const float> padded, const std::vector<Encoding>& encodings) {
  const std::size_t width = encodings.front().width, rows = padded.size() / encodings.size() / width;
  std::vector<float> kept;
  for (std::size_t i = 0; i < encodings.size(); ++i) {
    const auto text = padded.subspan(i * rows * width, encodings[i].n_rows * width);
    kept.insert(kept.end(), text.begin(), text.end());
  }
  return kept;
}

std::vector<float> joined(const std::vector<Encoding>& encodings) {
  std::vector<float> values;
  for (const Encoding& encoding : encodings) values.insert(values.end(), encoding.values.begin(), encoding.values.end());
  return values;
}

constexpr double kBound = 1e-5;  // of an output's range; 1e-4 is asked for

void expect_close(const std::vector<Encoding>& found, const std::vector<float>& expected, const char* what) {
  ASSERT_FALSE(found.empty()) << what;
  EXPECT_LE(relative_to_range(joined(found), rows_of_texts(expected, found)), kBound) << what;
}

/// What a case's model makes of its texts or images.
void check_encoder(const Case& one) {
  const Model model = load(one);
  const std::vector<float> pixels = one.ids("input_ids") ? std::vector<float>() : one.pixels();
  int n_checked = 0;
  for (const auto& [name, output, pooling] : {std::tuple{"last_hidden_state", EncoderOutput::kHidden, Pooling::kModel}, std::tuple{"pooler_output", EncoderOutput::kVector, Pooling::kPooler}, std::tuple{"logits", EncoderOutput::kHead, Pooling::kModel}}) {
    const std::vector<float> expected = one.expected(name);
    if (expected.empty()) continue;
    EncoderOptions options;
    options.output = output;
    options.pooling = pooling;
    ++n_checked;
    if (pixels.empty()) {
      Encoder encoder = make_encoder(model, options);
      expect_close(encode_all(one, encoder), expected, name);
      continue;
    }
    Result<ImageEncoder> encoder = ImageEncoder::create(model, options);
    RONDO_ASSERT_OK(encoder.status());
    const std::size_t n = encoder->shape().n_values();
    for (std::size_t at = 0; at < pixels.size(); at += n) RONDO_ASSERT_OK(encoder->append(std::span(pixels).subspan(at, n)));
    expect_close(take_all(*encoder), expected, name);
  }
  EXPECT_GT(n_checked, 0);
}

/// Logits of decoder inputs, hidden states of sources, and greedy tokens.
void check_encoder_decoder(const Case& one) {
  const Model model = load(one);
  Encoder encoder = make_encoder(model, {.output = EncoderOutput::kHidden});
  expect_close(encode_all(one, encoder), one.expected("encoder_last_hidden_state"), "encoder_last_hidden_state");
  const Ids decoder = *one.ids("decoder_input_ids"), made = one.expected_ids("gen_tokens");
  const std::vector<Tokens> sources = one.texts();
  Session session = make_session(model, without_model_stops());
  std::vector<float> logits;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    RONDO_ASSERT_OK(session.set_source(sources[i]));
    const Result<std::vector<float>> found = session.wait_logits(decoder.row(i));
    RONDO_ASSERT_OK(found.status());
    logits.insert(logits.end(), found->begin(), found->end());
  }
  EXPECT_LE(relative_to_range(logits, one.expected("logits")), kBound);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    RONDO_ASSERT_OK(session.set_source(sources[i]));
    EXPECT_EQ(continue_with(session, model.info().start_tokens, static_cast<std::uint32_t>(made.columns)), Tokens(made.row(i).begin(), made.row(i).end())) << "text " << i;
    // generate() takes the source as its prompt.
    const Result<Generation> generation = session.generate(std::span<const std::int32_t>(sources[i]), static_cast<std::uint32_t>(made.columns));
    RONDO_ASSERT_OK(generation.status());
    EXPECT_EQ(generation->tokens, Tokens(made.row(i).begin(), made.row(i).end())) << "text " << i;
  }
}

class PackedEncoderTest : public ::testing::TestWithParam<const char*> {};
TEST_P(PackedEncoderTest, IsWhatPyTorchComputes) { check_encoder(Case::packed(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Cases, PackedEncoderTest,
                         ::testing::Values("bert_mlm", "bert_cls", "bert_tokens", "bert_qa", "bert_relative_key", "bert_relative_key_query", "roberta", "roberta_cls", "distilbert", "distilbert_mlm", "nomic_bert", "t5_encoder",
                                           "deit", "vit_pooled", "vit_no_qkv_bias"),
                         [](const auto& one) { return std::string(one.param); });

class PackedEncoderDecoderTest : public ::testing::TestWithParam<const char*> {};
TEST_P(PackedEncoderDecoderTest, IsWhatPyTorchComputes) { check_encoder_decoder(Case::packed(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Cases, PackedEncoderDecoderTest, ::testing::Values("transformer_prenorm", "m2m100", "mbart", "t5_gated"), [](const auto& one) { return std::string(one.param); });

class TransformersTest : public ::testing::Test {
 protected:
  void SetUp() override { RONDO_REQUIRE_TEST_DATA(); }
};
TEST_F(TransformersTest, Bert) { check_encoder(Case::of_data("bert")); }
TEST_F(TransformersTest, Vit) { check_encoder(Case::of_data("vit")); }
TEST_F(TransformersTest, Bart) { check_encoder_decoder(Case::of_data("bart")); }
TEST_F(TransformersTest, Marian) { check_encoder_decoder(Case::of_data("marian")); }
TEST_F(TransformersTest, T5) { check_encoder_decoder(Case::of_data("t5_relu")); }
TEST_F(TransformersTest, TheTransformerItself) { check_encoder_decoder(Case::of_data("aiayn_torch")); }

class TowersTest : public ::testing::TestWithParam<const char*> {};
TEST_P(TowersTest, VectorsAreThoseOfClip) {
  const Case one = Case::packed(GetParam());
  const Model model = load(one);
  Encoder texts = make_encoder(model, {.normalize = true});
  for (const Tokens& text : one.texts()) RONDO_ASSERT_OK(texts.append(text));  // cut at their end
  expect_close(take_all(texts), one.expected("text_embeds"), "text_embeds");
  Result<ImageEncoder> images = ImageEncoder::create(model, {.normalize = true});
  RONDO_ASSERT_OK(images.status());
  const std::vector<float> pixels = one.pixels();
  for (std::size_t at = 0; at < pixels.size(); at += images->shape().n_values()) RONDO_ASSERT_OK(images->append(std::span(pixels).subspan(at, images->shape().n_values())));
  expect_close(take_all(*images), one.expected("image_embeds"), "image_embeds");
}
INSTANTIATE_TEST_SUITE_P(Cases, TowersTest, ::testing::Values("clip", "clip_eos"), [](const auto& one) { return std::string(one.param); });

/// Texts of many lengths of a vocabulary of 96.
std::vector<Tokens> made_up_texts(std::size_t n, std::size_t longest) {
  std::vector<Tokens> texts;
  for (std::size_t i = 0; i < n; ++i) {
    Tokens& text = texts.emplace_back();
    for (std::size_t t = 0; t < 1 + (i * 7) % longest; ++t) text.push_back(static_cast<std::int32_t>((i * 31 + t * 17) % 96));
  }
  return texts;
}

class EncoderBatchTest : public ::testing::TestWithParam<const char*> {};

// Whatever lies beside a text in its batch, wherever it lies there, and however much of the batch is empty, not a bit of its result changes.
TEST_P(EncoderBatchTest, WhatIsBesideATextChangesNoBitOfIt) {
  const Case one = Case::packed(GetParam());
  const Model model = load(one);
  const std::vector<Tokens> texts = made_up_texts(8, 32);
  for (const EncoderOutput output : {EncoderOutput::kHidden, EncoderOutput::kVector}) {
    Encoder encoder = make_encoder(model, {.output = output});
    const std::vector<Encoding> together = encoder.encode(texts).value();
    ASSERT_EQ(together.size(), texts.size());
    EXPECT_EQ(encoder.statistics().n_steps, 1u);
    EXPECT_EQ(encoder.statistics().n_inputs, texts.size());
    const std::vector<Encoding> backwards = encoder.encode(std::vector<Tokens>(texts.rbegin(), texts.rend())).value();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(together[i].values, backwards[texts.size() - 1 - i].values) << "text " << i;
      EXPECT_EQ(together[i].n_rows, output == EncoderOutput::kHidden ? texts[i].size() : 1u);
    }
    const std::vector<Tokens> few = {Tokens(32, 90), texts[5], Tokens(1, 3)};
    EXPECT_EQ(encoder.encode(few).value()[1].values, together[5].values);
    // Alone it may be computed by other kernels.
    const std::vector<Tokens> alone = {texts[5]};
    EXPECT_LE(relative_to_range(encoder.encode(alone).value()[0].values, together[5].values), 1e-6);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, EncoderBatchTest, ::testing::Values("bert_mlm", "nomic_bert", "t5_encoder", "bert_relative_key_query"), [](const auto& one) { return std::string(one.param); });

TEST(EncoderTest, VectorsArePooledAsTheOptionsSay) {
  const Model model = load(Case::packed("bert_mlm"));
  const std::vector<Tokens> texts = made_up_texts(6, 30);
  Encoder hidden = make_encoder(model, {.output = EncoderOutput::kHidden});
  const std::vector<Encoding> rows = hidden.encode(texts).value();
  for (const Pooling pooling : {Pooling::kMean, Pooling::kFirst, Pooling::kLast}) {
    for (const bool normalize : {false, true}) {
      Encoder encoder = make_encoder(model, {.pooling = pooling, .normalize = normalize});
      const std::vector<Encoding> found = encoder.encode(texts).value();
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::size_t width = rows[i].width, n = rows[i].n_rows;
        std::vector<double> expected(width);
        for (std::size_t row = 0; row < n; ++row) {
          if ((pooling == Pooling::kFirst && row > 0) || (pooling == Pooling::kLast && row + 1 < n)) continue;
          for (std::size_t k = 0; k < width; ++k) expected[k] += static_cast<double>(rows[i].values[row * width + k]) / (pooling == Pooling::kMean ? static_cast<double>(n) : 1);
        }
        double length = 0;
        for (const double value : expected) length += value * value;
        for (std::size_t k = 0; k < width; ++k) EXPECT_NEAR(found[i].values[k], expected[k] / (normalize ? std::sqrt(length) : 1), 2e-6) << "text " << i << ", " << k;
      }
    }
  }
}

// Towers whose vectors are projected have others of their own width.
TEST(EncoderTest, VectorsHaveTheWidthOfTheirPooling) {
  const Case one = Case::packed("clip");
  const Model model = load(one);
  const Tokens text = one.texts()[0];
  for (const auto& [pooling, width] : {std::pair{Pooling::kModel, 20u}, std::pair{Pooling::kPooler, 16u}, std::pair{Pooling::kMean, 16u}, std::pair{Pooling::kFirst, 16u}}) {
    Encoder encoder = make_encoder(model, {.pooling = pooling});
    const std::vector<Tokens> texts = {text, text, text};
    const std::vector<Encoding> all = encoder.encode(texts).value();
    EXPECT_EQ(all[0].width, width);
    EXPECT_EQ(all[0].values, all[2].values);
  }
  const std::vector<float> pixels = one.pixels();
  for (const auto& [pooling, width] : {std::pair{Pooling::kModel, 20u}, std::pair{Pooling::kPooler, 24u}, std::pair{Pooling::kMean, 24u}, std::pair{Pooling::kLast, 24u}}) {
    Result<ImageEncoder> encoder = ImageEncoder::create(model, {.pooling = pooling});
    RONDO_ASSERT_OK(encoder.status());
    const std::size_t n = encoder->shape().n_values();
    for (std::size_t i = 0; i < 3; ++i) RONDO_ASSERT_OK(encoder->append(std::span(pixels).first(n)));
    const std::vector<Encoding> all = take_all(*encoder);
    EXPECT_EQ(all[0].width, width);
    EXPECT_EQ(all[0].values, all[2].values);
  }
}

// A head of its own, and a bias under another name, are used.
TEST(EncoderTest, HeadsOfWordsNeedNotBeTied) {
  const Case one = Case::packed("bert_mlm");
  nlohmann::json config = models::parse_json(testing::read_whole_file(one.folder + "/config.json"), "config").value();
  config["tie_word_embeddings"] = false;
  std::ofstream(one.folder + "/config.json") << config.dump();
  expect_failure(models::open_checkpoint(open_model(one.folder).value()).status(), StatusCode::kCorruptData, {"cls.output.weight"});
}

TEST(EncoderTest, InputsThatDoNotFitAreRefused) {
  const Model model = load(Case::packed("bert_mlm"));
  Encoder encoder = make_encoder(model, {});
  expect_failure(encoder.append(Tokens()), StatusCode::kInvalidArgument, {"no tokens"});
  expect_failure(encoder.append(Tokens(41, 5)), StatusCode::kInvalidArgument, {"41 tokens", "40"});
  expect_failure(encoder.append(Tokens{5, 96}), StatusCode::kInvalidArgument, {"token 1 is 96", "95"});
  expect_failure(encoder.append(Tokens{5, 6}, Tokens{0}), StatusCode::kInvalidArgument, {"1 types", "2 tokens"});
  expect_failure(encoder.append(Tokens{5, 6}, Tokens{0, 2}), StatusCode::kInvalidArgument, {"type 1 is 2", "0 to 1"});
  expect_failure(encoder.append("text"), StatusCode::kFailedPrecondition, {"has no tokenizer"});
  EXPECT_TRUE(encoder.idle());
  const std::vector<Tokens> texts = {{5, 6}, {}};
  expect_failure(encoder.encode(texts).status(), StatusCode::kInvalidArgument, {"no tokens"});
  EXPECT_TRUE(encoder.idle()) << "nothing of it is left";
  RONDO_EXPECT_OK(encoder.append(Tokens{5, 6}));
  expect_failure(encoder.encode(texts).status(), StatusCode::kFailedPrecondition, {"encode"});
  EXPECT_EQ(take_all(encoder).size(), 1u);
  expect_failure(Encoder::create(model, {.pooling = Pooling::kPooler}).status(), StatusCode::kUnsupported, {"bert", "no pooler"});
  expect_failure(Encoder::create(model, {.max_batch = 0}).status(), StatusCode::kInvalidArgument, {"max_batch"});
  expect_failure(Encoder::create(model, {.max_tokens = 41}).status(), StatusCode::kInvalidArgument, {"max_tokens is 41"});
  expect_failure(Encoder::create(model, {.output = EncoderOutput::kHidden, .normalize = true}).status(), StatusCode::kInvalidArgument, {"normalize"});
  expect_failure(ImageEncoder::create(model).status(), StatusCode::kUnsupported, {"bert", "no images"});
  expect_failure(Session::create(model).status(), StatusCode::kUnsupported, {"bert", "makes no tokens"});
  Encoder moved = std::move(encoder);
  expect_failure(encoder.append(Tokens{5}), StatusCode::kFailedPrecondition, {"moved from"});
}

TEST(EncoderTest, ImagesThatDoNotFitAreRefused) {
  const Model model = load(Case::packed("deit"));
  Result<ImageEncoder> encoder = ImageEncoder::create(model);
  RONDO_ASSERT_OK(encoder.status());
  EXPECT_EQ(encoder->shape(), (ImageShape{3, 12, 12}));
  expect_failure(encoder->append(std::vector<float>(431)), StatusCode::kInvalidArgument, {"431", "(3, 12, 12)"});
  expect_failure(encoder->append_rgb(std::vector<std::byte>(433)), StatusCode::kInvalidArgument, {"433", "12 x 12"});
  expect_failure(Encoder::create(model).status(), StatusCode::kUnsupported, {"vit", "does not encode texts"});
}

TEST(EncoderTest, BytesBecomeNumbersAsTheFolderSays) {
  const Case one = Case::packed("deit");
  std::ofstream(one.folder + "/preprocessor_config.json") << R"({"image_mean": [0.5, 0.25, 0.125], "image_std": [0.5, 0.75, 2], "rescale_factor": 0.00392156862745098})";
  const Model model = load(one);
  Result<ImageEncoder> encoder = ImageEncoder::create(model, {.output = EncoderOutput::kHead});
  RONDO_ASSERT_OK(encoder.status());
  std::vector<std::byte> rgb;
  for (std::size_t i = 0; i < 3 * 144; ++i) rgb.push_back(static_cast<std::byte>(i * 37 % 256));
  std::vector<float> pixels(3 * 144);
  const float mean[] = {0.5f, 0.25f, 0.125f}, deviation[] = {0.5f, 0.75f, 2};
  for (std::size_t i = 0; i < rgb.size(); ++i) pixels[i % 3 * 144 + i / 3] = (static_cast<float>(std::to_integer<int>(rgb[i])) / 255 - mean[i % 3]) / deviation[i % 3];
  RONDO_ASSERT_OK(encoder->append_rgb(rgb));
  RONDO_ASSERT_OK(encoder->append(pixels));
  const std::vector<Encoding> both = take_all(*encoder);
  EXPECT_LE(relative_to_range(both[0].values, both[1].values), 1e-5);
}

// The folder has no preprocessor_config.json: pictures are resized to its 32 x 32, bilinear.
TEST(EncoderTest, PicturesOfAnySizeAreResized) {
  RONDO_REQUIRE_TEST_DATA();
  const Model model = load(Case::of_data("vit"));
  Result<ImageEncoder> encoder = ImageEncoder::create(model, {.output = EncoderOutput::kHead, .max_batch = 1});
  RONDO_ASSERT_OK(encoder.status());
  const models::Image picture = random_picture(57, 41);
  RONDO_ASSERT_OK(encoder->append_image(picture.rgb, 57, 41));
  RONDO_ASSERT_OK(encoder->append_rgb(models::resize(picture, 32, 32, models::Resampling::kBilinear).value().rgb));
  RONDO_ASSERT_OK(encoder->append_rgb(models::resize(picture, 32, 32, models::Resampling::kBicubic).value().rgb));
  expect_failure(encoder->append_image(picture.rgb, 57, 42), StatusCode::kInvalidArgument, {"7011 bytes", "57 x 42"});
  expect_failure(encoder->append_image({}, 0, 0), StatusCode::kInvalidArgument, {"0 x 0"});
  const std::vector<Encoding> all = take_all(*encoder);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].values, all[1].values);
  EXPECT_NE(all[0].values, all[2].values);
}

TEST(EncoderTest, PicturesAreCroppedAsTheFolderSays) {
  const Case one = Case::packed("deit");
  std::ofstream(one.folder + "/preprocessor_config.json") << R"({"size": {"shortest_edge": 14}, "crop_size": 12, "resample": 3})";
  const Model model = load(one);
  Result<ImageEncoder> encoder = ImageEncoder::create(model, {.output = EncoderOutput::kHead, .max_batch = 1});
  RONDO_ASSERT_OK(encoder.status());
  const models::Image picture = random_picture(28, 40);
  RONDO_ASSERT_OK(encoder->append_image(picture.rgb, 28, 40));
  const models::Image resized = models::resize(picture, 14, 20, models::Resampling::kBicubic).value();
  RONDO_ASSERT_OK(encoder->append_rgb(models::center_crop(resized, 12, 12).value().rgb));
  const std::vector<Encoding> both = take_all(*encoder);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].values, both[1].values);
}

// Operators are cut out of steps of several texts, of images and of sources, and all kernels are right.
TEST(EncoderTest, SelfTestsPass) {
  for (const char* name : {"bert_cls", "bert_relative_key_query", "vit_pooled", "clip", "m2m100", "t5_gated"}) {
    const Case one = Case::packed(name);
    ModelOptions options;
    options.self_test = true;
    options.on_quarantine = [&](const std::string& kernel) { ADD_FAILURE() << name << ": " << kernel; };
    RONDO_EXPECT_OK(Model::create(test_device(), open_model(one.folder).value(), options).status());
  }
}

// The formulas of a network's parts give the parameters of its file.
TEST(EncoderTest, PartsAddUpToAllParameters) {
  for (const char* name : {"bert_mlm", "bert_cls", "bert_relative_key", "bert_relative_key_query", "roberta", "distilbert", "nomic_bert", "t5_encoder", "deit", "vit_pooled", "vit_no_qkv_bias", "clip", "transformer_prenorm", "m2m100", "mbart",
                           "t5_gated"}) {
    const Case one = Case::packed(name);
    const auto checkpoint = models::open_checkpoint(open_model(one.folder).value());
    RONDO_ASSERT_OK(checkpoint.status());
    std::uint64_t n = 0;
    for (const models::NetworkPart& part : (*checkpoint)->network.parts) n += part.n;
    EXPECT_EQ(n, (*checkpoint)->n_parameters) << name;
  }
}

// Every Program after every other, in whatever order runs come.
TEST(EncoderTest, ProgramsHaveNoHazards) {
  const Model model = load(Case::packed("bert_relative_key_query"));
  Encoder encoder = make_encoder(model, {});
  const std::vector<const runtime::Program*> programs = encoder.internal().programs();
  EXPECT_GE(programs.size(), 2u);
  EXPECT_TRUE(graph::find_hazards_in_all_orders(programs).empty());
}

TEST(EncoderDecoderTest, ProgramsHaveNoHazards) {
  const Model model = load(Case::packed("t5_gated"));
  Session session = make_session(model);
  EXPECT_TRUE(graph::find_hazards_in_all_orders(session.internal().steps().programs()).empty());
  EXPECT_FALSE(session.internal().steps().encode().empty());
}

SessionOptions with_source(std::uint32_t n_source) {
  SessionOptions options;
  options.n_source = n_source;
  return options;
}

TEST(EncoderDecoderTest, SourcesThatDoNotFitAreRefused) {
  const Model model = load(Case::packed("mbart"));
  Session session = make_session(model, with_source(9));
  EXPECT_EQ(session.n_source(), 9u);
  expect_failure(session.append(Tokens{2}, 1), StatusCode::kFailedPrecondition, {"without a source", "mbart"});
  expect_failure(session.set_source(Tokens()), StatusCode::kInvalidArgument, {"no tokens"});
  expect_failure(session.set_source(Tokens(10, 5)), StatusCode::kInvalidArgument, {"10 tokens", "at most 9"});
  expect_failure(session.set_source(Tokens{5, 96}), StatusCode::kInvalidArgument, {"source token 1 is 96"});
  expect_failure(Session::create(model, with_source(41)).status(), StatusCode::kInvalidArgument, {"n_source is 41", "40"});
  SessionOptions longer;
  longer.n_ctx = 41;
  expect_failure(Session::create(model, longer).status(), StatusCode::kInvalidArgument, {"n_ctx is 41", "40 positions"});
  const Model llama = load_model(tiny_path());
  Session decoder = make_session(llama);
  EXPECT_EQ(decoder.n_source(), 0u);
  expect_failure(decoder.set_source(Tokens{1}), StatusCode::kFailedPrecondition, {"takes no source"});
  expect_failure(Session::create(llama, with_source(4)).status(), StatusCode::kInvalidArgument, {"takes no source"});
}

// A source is encoded once, however many tokens are made of it; another one replaces it; a rewind keeps it.
TEST(EncoderDecoderTest, ASourceIsEncodedOnceAndStays) {
  const Case one = Case::packed("t5_gated");
  const Model model = load(one);
  const std::vector<Tokens> sources = one.texts();
  Session session = make_session(model, without_model_stops());
  RONDO_ASSERT_OK(session.set_source(sources[0]));
  const Tokens first = continue_with(session, model.info().start_tokens, 6);
  const std::uint64_t n_steps = session.statistics().n_steps;
  EXPECT_EQ(n_steps, 1 + 6u) << "the encoder's, and one for each token";
  RONDO_ASSERT_OK(session.rewind(0));
  EXPECT_EQ(continue_with(session, model.info().start_tokens, 6), first);
  EXPECT_EQ(session.statistics().n_steps, n_steps + 6);
  RONDO_ASSERT_OK(session.set_source(sources[1]));
  const Tokens second = continue_with(session, model.info().start_tokens, 6);
  Session fresh = make_session(model, without_model_stops());
  RONDO_ASSERT_OK(fresh.set_source(sources[1]));
  EXPECT_EQ(continue_with(fresh, model.info().start_tokens, 6), second);
  EXPECT_NE(first, second);
}

// Cancelled before its source was encoded, a session encodes it with what comes next.
TEST(EncoderDecoderTest, ACancelledSourceIsEncodedLater) {
  const Case one = Case::packed("mbart");
  const Model model = load(one);
  Session session = make_session(model, without_model_stops());
  RONDO_ASSERT_OK(session.set_source(one.texts()[0]));
  const Tokens expected = continue_with(session, model.info().start_tokens, 5);
  RONDO_ASSERT_OK(session.set_source(one.texts()[0]));
  RONDO_ASSERT_OK(session.append(model.info().start_tokens, 5));
  session.cancel();
  while (!session.idle()) {
    RONDO_ASSERT_OK(session.advance());
    (void)session.wait(std::chrono::seconds(1));
    std::int32_t taken[8];
    RONDO_ASSERT_OK(session.take_tokens(taken).status());
  }
  RONDO_ASSERT_OK(session.rewind(0));
  EXPECT_EQ(continue_with(session, model.info().start_tokens, 5), expected);
}

}  // namespace
}  // namespace rondo::tests::encoder_test
