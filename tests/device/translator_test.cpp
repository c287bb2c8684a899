// Translators: greedily as a Session continues, and beams beside a search that computes every hypothesis anew.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/translator.h>

#include "models/beam_search.h"
#include "tests/device/session_harness.h"
#include "tests/support/packed_folder.h"

namespace rondo::tests::translator_test {
namespace {

Model load_folder(const std::string& path, KvType kv_type = KvType::kF16) {
  ModelOptions options;
  options.kv_type = kv_type;
  Result<ByteSource> source = open_model(path);
  EXPECT_TRUE(source.ok()) << describe(source.status());
  Result<Model> model = Model::create(test_device(), std::move(source).value(), options);
  EXPECT_TRUE(model.ok()) << describe(model.status());
  RONDO_EXPECT_OK(model->wait_loaded());
  return std::move(model).value();
}

std::vector<Translation> translate(const Model& model, const TranslatorOptions& options, const std::vector<Tokens>& sources) {
  Result<Translator> translator = Translator::create(model, options);
  EXPECT_TRUE(translator.ok()) << describe(translator.status());
  for (const Tokens& source : sources) RONDO_EXPECT_OK(translator->append(source));
  std::vector<Translation> all;
  while (!translator->idle()) {
    RONDO_EXPECT_OK(translator->advance());
    const Status waited = translator->wait(std::chrono::seconds(1));
    EXPECT_TRUE(waited.ok() || waited.code() == StatusCode::kTimeout) << describe(waited);
    Translation translation;
    while (translator->take(translation).value()) all.push_back(std::move(translation));
  }
  return all;
}

/// The same search over logits of a session that is given each hypothesis from its beginning.
models::BeamSearch::Result searched_anew(Session& session, const Model& model, const Tokens& source, const TranslatorOptions& options) {
  const Tokens& start = model.info().start_tokens;
  const std::span<const std::int32_t> ends = model.tokenizer().stop_ids();
  models::BeamSearch search({options.beams, options.length_penalty, options.max_tokens, Tokens(ends.begin(), ends.end())});
  std::vector<Tokens> hypotheses = {start};
  const std::size_t n_vocab = model.info().n_vocab;
  while (!search.over()) {
    std::vector<float> logits;
    for (const Tokens& tokens : hypotheses) {
      RONDO_EXPECT_OK(session.set_source(source));
      const Result<std::vector<float>> all = session.wait_logits(tokens);
      EXPECT_TRUE(all.ok()) << describe(all.status());
      logits.insert(logits.end(), all->end() - static_cast<std::ptrdiff_t>(n_vocab), all->end());
    }
    std::vector<Tokens> next;
    for (const models::BeamSearch::Beam& beam : search.step(logits, n_vocab)) {
      next.push_back(hypotheses[beam.parent]);
      next.back().push_back(beam.token);
    }
    hypotheses = std::move(next);
  }
  return search.results().front();
}

Tokens some_source(std::uint32_t seed, std::size_t n, std::uint32_t n_vocab) {
  Tokens tokens;
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>((seed = seed * 1664525u + 1013904223u) % n_vocab));
  return tokens;
}

class TranslatorTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TranslatorTest, BeamsAreThoseOfASearchThatComputesEverythingAnew) {
  const PackedFolder folder(GetParam());
  const Model model = load_folder(folder.path(), KvType::kF32);
  Session session = make_session(model);
  const std::vector<Tokens> sources = {some_source(1, 5, model.info().n_vocab), some_source(2, 9, model.info().n_vocab)};
  for (const std::uint32_t beams : {2u, 4u, 5u}) {
    TranslatorOptions options;
    options.beams = beams;
    options.max_tokens = 7;
    options.max_source = 9;
    const std::vector<Translation> found = translate(model, options, sources);
    ASSERT_EQ(found.size(), sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const models::BeamSearch::Result expected = searched_anew(session, model, sources[i], options);
      EXPECT_EQ(found[i].tokens, expected.tokens) << beams << " beams, source " << i;
      EXPECT_NEAR(found[i].score, expected.score, 1e-4);
      EXPECT_EQ(found[i].ended, expected.ended);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, TranslatorTest, ::testing::Values("transformer_prenorm", "m2m100", "mbart", "t5_gated"), [](const auto& one) { return std::string(one.param); });

TEST(TranslatorKindsTest, GreedyIsWhatASessionMakes) {
  const PackedFolder folder("m2m100");
  const Model model = load_folder(folder.path());
  const Tokens source = some_source(3, 6, model.info().n_vocab);
  Session session = make_session(model);
  RONDO_ASSERT_OK(session.set_source(source));
  const Tokens expected = continue_with(session, model.info().start_tokens, 8);
  TranslatorOptions options;
  options.max_tokens = 8;
  const std::vector<Translation> found = translate(model, options, {source, source});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].tokens, expected);
  EXPECT_EQ(found[1].tokens, expected) << "nothing of the first text is left";
}

TEST(TranslatorKindsTest, CachesOfEveryTypeAreCopiedWhereHypothesesSplit) {
  const PackedFolder folder("m2m100");
  const Model in_f16 = load_folder(folder.path());
  Session session = make_session(in_f16);
  for (const KvType type : {KvType::kF16, KvType::kQ8_0}) {  // of which beams make f16
    const Model model = load_folder(folder.path(), type);
    const Tokens source = some_source(4, 7, model.info().n_vocab);
    TranslatorOptions options;
    options.beams = 4;
    options.max_tokens = 7;
    const std::vector<Translation> found = translate(model, options, {source});
    const models::BeamSearch::Result expected = searched_anew(session, model, source, options);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].tokens, expected.tokens);
    EXPECT_NEAR(found[0].score, expected.score, 1e-3);
  }
}

TEST(TranslatorKindsTest, WrongOptionsAndTextsAreRefusedByName) {
  const PackedFolder folder("m2m100");
  const Model model = load_folder(folder.path());
  const auto refused = [&](const TranslatorOptions& options, std::initializer_list<std::string_view> words) { expect_failure(Translator::create(model, options).status(), StatusCode::kInvalidArgument, words); };
  refused({.beams = 0}, {"beams", "0"});
  refused({.beams = 17}, {"beams", "17"});
  refused({.beams = 2, .length_penalty = std::nan("")}, {"length_penalty"});
  refused({.max_tokens = 1u << 30}, {"max_tokens"});
  refused({.max_source = 1u << 30}, {"max_source"});
  refused({.max_segment_us = 0}, {"max_segment_us"});
  expect_failure(Translator::create(load_model(demo_path())).status(), StatusCode::kUnsupported, {"llama", "encoder-decoder"});
  Result<Translator> translator = Translator::create(model, {.beams = 2, .max_source = 4});
  RONDO_ASSERT_OK(translator.status());
  expect_failure(translator->append(Tokens{}), StatusCode::kInvalidArgument, {"no tokens"});
  expect_failure(translator->append(Tokens(5, 1)), StatusCode::kInvalidArgument, {"max_source"});
  expect_failure(translator->append(Tokens{-1}), StatusCode::kInvalidArgument, {"-1"});
  expect_failure(translator->append("text"), StatusCode::kFailedPrecondition, {"tokenizer"});
  EXPECT_TRUE(translator->idle());
  Translator moved = std::move(*translator);
  expect_failure(translator->advance(), StatusCode::kFailedPrecondition, {"moved"});
  EXPECT_TRUE(translator->idle());
}

}  // namespace
}  // namespace rondo::tests::translator_test
