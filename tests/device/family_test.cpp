// Decoders of every family against llama.cpp's logits and tokens of the same tiny random files (tests/support/family_gguf.h;
// what is expected was recorded by tests/support/family_expected.py).
#include <string>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "tests/device/session_harness.h"
#include "tests/support/family_gguf.h"

namespace rondo::tests::family_test {
namespace {

struct Case {
  const FamilyFile* family;
  std::uint32_t seed;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const FamilyFile& family : family_files()) {
    for (const std::uint32_t seed : {1u, 2u}) cases.push_back({&family, seed});
  }
  return cases;
}

std::string name_of(const Case& one) { return std::string(one.family->name) + "." + std::to_string(one.seed); }
void PrintTo(const Case& one, std::ostream* stream) { *stream << name_of(one); }

class FamilyTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    source_ = open_file(testing::tests_data_path("families.safetensors")).value();
    file_ = models::SafetensorsFile::parse(source_).value();
    ids_ = as_tokens(file_.read_i64(source_, name() + ".ids").value());
    rows_ = as_tokens(file_.read_i64(source_, name() + ".rows").value());
    greedy_ = as_tokens(file_.read_i64(source_, name() + ".greedy").value());
    logits_ = file_.read_f32(source_, name() + ".logits").value();
    ASSERT_EQ(ids_.size(), 40u);
  }

  static std::string name() { return name_of(GetParam()); }

  Model load(KvType kv_type, bool fusion = true) {
    ModelOptions options;
    options.kv_type = kv_type;
    options.fusion = fusion;
    bytes_ = build_family_file(*GetParam().family, GetParam().seed);
    return load_model_from(bytes_, options);
  }

  /// The recorded rows of logits of all positions.
  double error_of(const std::vector<float>& all) const {
    const std::size_t n_vocab = logits_.size() / rows_.size();
    std::vector<float> found;
    for (const std::int32_t row : rows_) found.insert(found.end(), all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * n_vocab), all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row + 1) * n_vocab));
    return relative_to_range(found, logits_);
  }

  ByteSource source_;
  models::SafetensorsFile file_;
  Tokens ids_, rows_, greedy_;
  std::vector<float> logits_;
  std::string bytes_;
};

TEST_P(FamilyTest, LogitsAreThoseOfAnotherImplementation) {
  for (const bool fusion : {true, false}) {
    if (!fusion && GetParam().seed != 1) continue;
    const Model model = load(KvType::kF32, fusion);
    Session session = make_session(model, without_model_stops());
    const Result<std::vector<float>> found = session.wait_logits(ids_);
    RONDO_ASSERT_OK(found.status());
    EXPECT_LE(error_of(*found), 1e-4) << (fusion ? "" : "without fusion");
  }
}

/// In one piece, in pieces that begin and end anywhere, and one token after the other: windows and positions go on.
TEST_P(FamilyTest, GreedyTokensAreThoseOfAnotherImplementation) {
  const Model model = load(KvType::kF32);
  const auto n = static_cast<std::uint32_t>(greedy_.size());
  ASSERT_GE(n, 4u);
  for (const std::size_t piece : {std::size_t{40}, std::size_t{13}, std::size_t{1}}) {
    Session session = make_session(model, without_model_stops());
    Tokens made;
    for (std::size_t at = 0; at < ids_.size(); at += piece) {
      const auto part = std::span(ids_).subspan(at, std::min(piece, ids_.size() - at));
      made = continue_with(session, part, at + piece < ids_.size() ? 0 : n);
    }
    EXPECT_EQ(made, greedy_) << "in pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FamilyTest, ::testing::ValuesIn(all_cases()), [](const ::testing::TestParamInfo<Case>& one) {
  std::string name = name_of(one.param);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace rondo::tests::family_test
