// Weights that the device makes: what they are once decoded, of every type.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "graph/block_format.h"
#include "graph/float16.h"
#include "models/model_loader.h"
#include "models/random_weights.h"
#include "runtime/transfer.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::random_weights_test {
namespace {

using graph::PlaneLayout;
using graph::Type;
using Words = std::vector<std::uint32_t>;

constexpr std::int64_t kRows = 256, kColumns = 512;

float half_of(std::uint32_t word, std::uint32_t index) { return graph::half_to_float(static_cast<std::uint16_t>(word >> (16 * index))); }
std::int32_t signed_byte(std::uint32_t word, std::uint32_t index) { return static_cast<std::int8_t>(word >> (8 * index)); }
/// Nibble of element `i` of 32 whose low bits begin at `at`, in the order of all types but Q8_0.
std::uint32_t k_nibble(const std::uint32_t* at, std::uint32_t i) { return at[i / 8] >> (8 * (i % 4) + i / 4 % 2 * 4) & 15u; }

/// Element `column` of a row whose planes begin at `quants` and `scales`: what block_format.h and lib/block_<type>.glsl say.
float decode(Type type, const std::uint32_t* quants, const std::uint32_t* scales, std::uint32_t column) {
  const std::uint32_t group = column / 32, i = column % 32, block = group / 8, in_block = group % 8;
  switch (type) {
    case Type::kF32: {
      float value;
      std::memcpy(&value, quants + column, sizeof value);
      return value;
    }
    case Type::kF16: return half_of(quants[column / 2], column % 2);
    case Type::kQ8_0: return half_of(scales[group / 2], group % 2) * static_cast<float>(signed_byte(quants[column / 4], column % 4));
    case Type::kQ4_0: return half_of(scales[group / 2], group % 2) * (static_cast<float>(k_nibble(quants + 4 * group, i)) - 8);
    case Type::kQ4_K: {
      const std::uint32_t* at = scales + 4 * block;
      const std::uint32_t scale = (at[1] >> (4 * in_block) & 15u) | (at[3] >> (2 * in_block) & 3u) << 4;
      const std::uint32_t min = (at[2] >> (4 * in_block) & 15u) | (at[3] >> (16 + 2 * in_block) & 3u) << 4;
      return half_of(at[0], 0) * static_cast<float>(scale * k_nibble(quants + 4 * group, i)) - half_of(at[0], 1) * static_cast<float>(min);
    }
    case Type::kQ6_K: {
      const std::uint32_t* at = scales + 5 * block;
      const std::uint32_t* low = quants + 48 * block;
      const std::uint32_t high = low[32 + 2 * in_block + i / 16] >> (8 * (i % 4) + i % 16 / 4 * 2) & 3u;
      const auto quant = static_cast<std::int32_t>(k_nibble(low + 4 * in_block, i) | high << 4) - 32;
      const std::uint32_t part = column % 256 / 16;
      return half_of(at[0], 0) * static_cast<float>(signed_byte(at[1 + part / 4], part % 4) * quant);
    }
    default: ADD_FAILURE() << graph::type_name(type); return 0;
  }
}

std::vector<float> decode_all(Type type, const Words& words) {
  const PlaneLayout layout = graph::plane_layout(*graph::find_block_format(type), kRows, kColumns);
  std::vector<float> values;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const std::uint32_t* scales = words.data() + layout.scale_offset_words + row * layout.scale_row_words;
    for (std::uint32_t column = 0; column < kColumns; ++column) values.push_back(decode(type, words.data() + row * layout.row_words, scales, column));
  }
  return values;
}

struct Made {
  const char* name;
  models::GgmlType stored;
  Type type;
  std::size_t n_values;  ///< how many different ones there are
};
void PrintTo(const Made& made, std::ostream* out) { *out << made.name; }

class RandomWeightsTest : public ::testing::TestWithParam<Made> {};

/// The matrix of (kRows, kColumns) of a small model, as the device made it.
std::vector<float> made_matrix(const Made& made) {
  SmallLlama small;
  small.width = kRows, small.ffn = kColumns;
  small.changed = "blk.0.ffn_down.weight", small.changed_type = made.stored;
  const std::string bytes = small.build();
  Result<Model> model = Model::create(test_device(), memory_source(std::as_bytes(std::span(bytes)), "model.gguf"));
  EXPECT_TRUE(model.ok()) << describe(model.status());
  if (!model.ok()) return {};
  const models::LoadedModel& loaded = model->internal()->model();
  const std::vector<models::WeightBlock>& blocks = loaded.network().blocks;
  const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const models::WeightBlock& one) { return one.parts[0].tensor == small.changed; });
  EXPECT_EQ(block->type, made.type);
  EXPECT_EQ(block->matrix[0], kRows);
  EXPECT_EQ(block->matrix[1], kColumns);
  RONDO_EXPECT_OK(models::make_random_block(loaded, static_cast<std::size_t>(block - blocks.begin())));
  const runtime::BufferRange& place = loaded.weights.pieces[static_cast<std::size_t>(block - blocks.begin())].at(0).place;
  Words words(place.size_bytes / 4);
  const runtime::Buffer& buffer = loaded.weight_buffers[place.buffer];
  RONDO_EXPECT_OK(runtime::read_back(loaded.device, buffer, place.offset_bytes, std::as_writable_bytes(std::span(words))));
  return decode_all(made.type, words);
}

double mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

double deviation_of(std::span<const float> values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const float value : values) sum += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST_P(RandomWeightsTest, KeepTheSizeOfActivations) {
  const std::vector<float> values = made_matrix(GetParam());
  ASSERT_EQ(values.size(), static_cast<std::size_t>(kRows * kColumns));
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }));
  const double deviation = deviation_of(values);
  EXPECT_NEAR(deviation * std::sqrt(static_cast<double>(kColumns)), 1, 0.02);
  EXPECT_LE(std::fabs(mean_of(values)), 0.12 * deviation) << "q4_0's quants, from -8 to 7, have a mean of 0.108 deviations";
  EXPECT_GE(std::set<float>(values.begin(), values.end()).size(), GetParam().n_values);
  const auto row = [&](std::ptrdiff_t i) { return std::vector<float>(values.begin() + i * kColumns, values.begin() + (i + 1) * kColumns); };
  EXPECT_NE(row(0), row(1));
  for (std::ptrdiff_t i = 0; i < kRows; i += 17) EXPECT_NEAR(deviation_of(row(i)) / deviation, 1, 0.2) << "row " << i;
  for (std::size_t at = 0; at < values.size(); at += 32 * 31) EXPECT_NEAR(deviation_of(std::span(values).subspan(at, 32)) / deviation, 1, 0.6) << "group " << at / 32;
}

INSTANTIATE_TEST_SUITE_P(Types, RandomWeightsTest,
                         ::testing::Values(Made{"f32", models::GgmlType::kF32, Type::kF32, 100'000}, Made{"f16", models::GgmlType::kF16, Type::kF16, 10'000},
                                           Made{"q8_0", models::GgmlType::kQ8_0, Type::kQ8_0, 255}, Made{"q4_0", models::GgmlType::kQ4_0, Type::kQ4_0, 16},
                                           Made{"q4_k", models::GgmlType::kQ4_K, Type::kQ4_K, 16}, Made{"q6_k", models::GgmlType::kQ6_K, Type::kQ6_K, 64}),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace rondo::tests::random_weights_test
