// A file whose matrices differ in type, as files quantised to Q4_K_M do: most in Q4_K, some in Q6_K.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/checkpoint.h"
#include "models/memory_plan.h"
#include "models/reference.h"
#include "tests/device/greedy_reference.h"
#include "tests/device/session_harness.h"
#include "tests/support/gguf_copy.h"

namespace rondo::tests::mixed_types_test {
namespace {

using models::GgufTensor;
using testing::GgufWriter;

/// One model quantised in two ways: the values and the second feed-forward matrices in Q6_K, all others in Q4_K.
std::string mixed_file() {
  const testing::GgufCopy most("quant/tiny-Q4_K_M.gguf"), some("quant/tiny-Q6_K.gguf");
  GgufWriter writer;
  testing::copy_metadata(most.file, writer);
  for (const GgufTensor& tensor : most.file.tensors()) {
    const bool other = tensor.name.find(".attn_v.") != std::string::npos || tensor.name.find(".ffn_down.") != std::string::npos;
    const testing::GgufCopy& from = other ? some : most;
    const GgufTensor& copied = *from.file.find_tensor(tensor.name);
    writer.tensor(copied.name, {copied.dims.begin(), copied.dims.begin() + copied.n_dims}, copied.type, from.data(copied));
  }
  return writer.build();
}

class MixedTypesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RONDO_REQUIRE_TEST_DATA();
    bytes_ = mixed_file();
    checkpoint_ = models::open_checkpoint(testing::source_of(bytes_)).value();
    pure_ = read_expected(testing::test_data_path("quant/tiny-Q4_K_M.expected.safetensors"));
  }
  /// The block that holds this tensor, or an empty one.
  models::WeightBlock block_of(const std::string& tensor) const {
    for (const models::WeightBlock& block : checkpoint_->network.blocks) {
      for (const models::WeightPart& part : block.parts) {
        if (part.tensor == tensor) return block;
      }
    }
    return {};
  }

  std::string bytes_;
  std::unique_ptr<const models::Checkpoint> checkpoint_;
  Expected pure_;  ///< of the file that is Q4_K throughout; its input serves here too
};

TEST_F(MixedTypesTest, OnlyMatricesOfEqualTypeAreJoined) {
  for (std::uint32_t i = 0; i < checkpoint_->network.facts.n_layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    const models::WeightBlock query = block_of(layer + "attn_q.weight"), value = block_of(layer + "attn_v.weight"), gate = block_of(layer + "ffn_gate.weight");
    EXPECT_EQ(query.type, graph::Type::kQ4_K);
    ASSERT_EQ(query.parts.size(), 2u);
    EXPECT_EQ(query.parts[1].tensor, layer + "attn_k.weight");
    EXPECT_EQ(value.type, graph::Type::kQ6_K);
    EXPECT_EQ(value.parts.size(), 1u);
    EXPECT_EQ(gate.type, graph::Type::kQ4_K);
    EXPECT_EQ(gate.parts.size(), 2u);
    EXPECT_EQ(block_of(layer + "ffn_down.weight").type, graph::Type::kQ6_K);
  }
}

/// Every kernel of linear, with and without fusion, which can't join q, k and v here.
TEST_F(MixedTypesTest, LogitsAreThoseOfTheInterpreter) {
  const Result<std::vector<float>> wanted = models::reference_logits(*checkpoint_, pure_.input, graph::Type::kF32);
  RONDO_ASSERT_OK(wanted.status());
  EXPECT_GT(relative_to_range(*wanted, pure_.logits), 1e-3) << "the mixture must tell something";
  ModelOptions options;
  options.kv_type = KvType::kF32;
  for (const char* kernel : {"", "subgroup", "vector", "tiled"}) {
    for (const bool fusion : {true, false}) {
      options.fusion = fusion;
      options.kernels.clear();
      if (*kernel) options.kernels["linear"] = kernel;
      const Model model = load_model_from(bytes_, options);
      Session session = make_session(model);
      const Result<std::vector<float>> logits = session.wait_logits(pure_.input);
      RONDO_ASSERT_OK(logits.status());
      EXPECT_LE(relative_to_range(*logits, *wanted), 1e-4) << "kernel '" << kernel << "'" << (fusion ? "" : ", no fusion");
      EXPECT_GT(relative_to_range(*logits, pure_.logits), 1e-3);
    }
  }
}

TEST_F(MixedTypesTest, GreedyTokensAreThoseOfTheInterpreter) {
  constexpr std::uint32_t kNew = 12;
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kQ8_0}) {
    ModelOptions options;
    options.kv_type = kv_type;
    const Model model = load_model_from(bytes_, options);
    Session session = make_session(model, without_model_stops());
    const Tokens made = continue_with(session, pure_.input, kNew);
    ASSERT_EQ(made.size(), kNew);
    expect_interpreters_choice(*checkpoint_, models::kv_type_of(options), pure_.input, made);
  }
}

}  // namespace
}  // namespace rondo::tests::mixed_types_test
