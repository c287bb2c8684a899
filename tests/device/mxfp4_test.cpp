// A file of MXFP4 made here, since none is at hand: its values are those that the definition of the format gives.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/float16.h"
#include "models/checkpoint.h"
#include "models/reference.h"
#include "tests/device/session_harness.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/microscaling.h"

namespace rondo::tests::mxfp4_test {
namespace {

using models::GgmlType;
using models::GgufTensor;

struct Quantised {
  std::string mxfp4;          ///< blocks of a scale and 16 bytes: element i in the low half of byte i, element i + 16 above it
  std::vector<float> values;  ///< that they stand for
};

/// To the nearest, with the largest magnitude of a block below 8 times its scale.
Quantised quantise(const std::vector<float>& values) {
  Quantised made;
  made.values.resize(values.size());
  for (std::size_t first = 0; first < values.size(); first += 32) {
    float largest = 0;
    for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[first + i]));
    int exponent = 0;
    std::frexp(largest, &exponent);  // largest in [2^(exponent - 1), 2^exponent)
    const auto scale = static_cast<std::uint32_t>(exponent - 3 + 127);
    std::uint32_t bytes[16] = {};
    for (std::size_t i = 0; i < 32; ++i) {
      const auto distance = [&](std::uint32_t bits) { return std::abs(e2m1_value(bits) * e8m0_value(scale) - values[first + i]); };
      std::uint32_t nearest = 0;
      for (std::uint32_t bits = 1; bits < 16; ++bits) {
        if (distance(bits) < distance(nearest)) nearest = bits;
      }
      made.values[first + i] = e2m1_value(nearest) * e8m0_value(scale);
      bytes[i % 16] |= nearest << (i / 16 * 4);
    }
    made.mxfp4 += static_cast<char>(scale);
    for (const std::uint32_t byte : bytes) made.mxfp4 += static_cast<char>(byte);
  }
  return made;
}

class Mxfp4Test : public ::testing::Test {
 protected:
  void SetUp() override {
    RONDO_REQUIRE_TEST_DATA();
    const testing::GgufCopy source("quant/tiny-F16.gguf");
    testing::GgufWriter mxfp4, f32;
    testing::copy_metadata(source.file, mxfp4);
    testing::copy_metadata(source.file, f32);
    for (const GgufTensor& tensor : source.file.tensors()) {
      const std::string_view data = source.data(tensor);
      const std::vector<std::uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims);
      if (tensor.type != GgmlType::kF16) {
        mxfp4.tensor(tensor.name, dims, tensor.type, data);
        f32.tensor(tensor.name, dims, tensor.type, data);
        continue;
      }
      std::vector<std::uint16_t> halves(data.size() / 2);
      std::memcpy(halves.data(), data.data(), data.size());
      std::vector<float> values;
      for (const std::uint16_t half : halves) values.push_back(graph::half_to_float(half));
      const Quantised made = quantise(values);
      mxfp4.tensor(tensor.name, dims, GgmlType::kMXFP4, made.mxfp4);
      f32.tensor(tensor.name, dims, GgmlType::kF32, {reinterpret_cast<const char*>(made.values.data()), made.values.size() * 4});
    }
    mxfp4_ = mxfp4.build();
    f32_ = f32.build();
    input_ = read_expected(testing::test_data_path("quant/tiny-F16.expected.safetensors")).input;
  }
  static std::vector<float> reference(const std::string& file, const Tokens& tokens) {
    const std::unique_ptr<const models::Checkpoint> checkpoint = models::open_checkpoint(testing::source_of(file)).value();
    Result<std::vector<float>> logits = models::reference_logits(*checkpoint, tokens, graph::Type::kF32);
    EXPECT_TRUE(logits.ok()) << describe(logits.status());
    return std::move(logits).value();
  }

  std::string mxfp4_, f32_;
  Tokens input_;
};

TEST_F(Mxfp4Test, TheInterpreterReadsTheSameNumbers) {
  const std::vector<float> wanted = reference(f32_, input_);
  EXPECT_EQ(reference(mxfp4_, input_), wanted);
  const Expected exact = read_expected(testing::test_data_path("quant/tiny-F16.expected.safetensors"));
  EXPECT_GT(relative_to_range(wanted, exact.logits), 1e-3) << "the type must tell something";
}

TEST_F(Mxfp4Test, LogitsAreThoseOfTheNumbers) {
  const std::vector<float> wanted = reference(f32_, input_);
  ModelOptions options;
  options.kv_type = KvType::kF32;
  for (const char* kernel : {"", "subgroup", "vector", "tiled"}) {
    options.kernels.clear();
    if (*kernel) options.kernels["linear"] = kernel;
    const Model model = load_model_from(mxfp4_, options);
    Session session = make_session(model);
    const Result<std::vector<float>> logits = session.wait_logits(input_);
    RONDO_ASSERT_OK(logits.status());
    EXPECT_LE(relative_to_range(*logits, wanted), 1e-4) << "kernel '" << kernel << "'";
  }
}

/// The interpreter, given what the device made, would have made each of its tokens from the numbers in f32.
TEST_F(Mxfp4Test, GreedyTokensAreThoseOfTheNumbers) {
  ModelOptions options;
  options.kv_type = KvType::kF32;
  const Model model = load_model_from(mxfp4_, options);
  Session session = make_session(model, without_model_stops());
  const Tokens made = continue_with(session, input_, 12);
  ASSERT_EQ(made.size(), 12u);
  const Tokens all = joined(input_, made);
  const std::vector<float> logits = reference(f32_, all);
  const std::size_t n_vocab = model.info().n_vocab;
  for (std::size_t i = input_.size(); i < all.size(); ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>((i - 1) * n_vocab);
    EXPECT_EQ(std::max_element(row, row + static_cast<std::ptrdiff_t>(n_vocab)) - row, all[i]) << "token " << i;
  }
}

}  // namespace
}  // namespace rondo::tests::mxfp4_test
