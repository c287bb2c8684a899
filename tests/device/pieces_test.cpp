// Weights and caches in pieces, because a storage buffer of the device holds less than they need: the same results.
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "graph/hazards.h"
#include "models/model_loader.h"
#include "models/session_state.h"
#include "runtime/fmt.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::pieces_test {
namespace {

/// The test device with small storage buffers. The limit must hold a vocabulary's logits and 8 rows of what the model computes.
std::optional<Device> narrow_device(const char* type, std::uint64_t range_bytes) {
  const runtime::DeviceCaps& caps = test_runtime_device().caps();
  const std::string text = fmt::format(
      R"({{"name": "narrow", "type": "{}", "max_storage_range_bytes": {}, "max_allocation_bytes": {}, "storage_offset_alignment": 256,
          "non_coherent_atom_bytes": 256, "max_storage_buffers": 8, "max_invocations": 128, "max_shared_bytes": 16384, "max_push_bytes": 128,
          "max_grid": 65535, "min_subgroup_size": {}, "max_subgroup_size": {}, "features": ["subgroup_shuffle"]}})",
      type, range_bytes, 16 * range_bytes, caps.min_subgroup_size, caps.max_subgroup_size);
  Result<DeviceProfile> profile = DeviceProfile::parse(text, "narrow");
  EXPECT_TRUE(profile.ok()) << describe(profile.status());
  if (!profile.ok()) return std::nullopt;
  Result<Device> device = Device::create(test_instance(), {}, {&*profile});
  EXPECT_TRUE(device.ok()) << describe(device.status());
  if (!device.ok()) return std::nullopt;
  return std::move(device).value();
}

/// Dispatches whose label begins with `what`.
std::size_t count(const runtime::Program& program, std::string_view what) {
  return static_cast<std::size_t>(std::count_if(program.dispatches.begin(), program.dispatches.end(),
                                                [&](const runtime::Dispatch& dispatch) { return dispatch.label.starts_with(what); }));
}

struct PiecesCase {
  const char* name;
  const char* gguf;
  const char* expected;
  bool bundled;
  const char* type;  ///< of device: chooses the kernels
};

class PiecesTest : public ::testing::TestWithParam<PiecesCase> {
 protected:
  static constexpr std::uint64_t kRangeBytes = 64 << 10;
  static constexpr std::uint32_t kContext = 256;  // 64 KiB for a head in f32

  std::string path_of(const char* file) const { return GetParam().bundled ? testing::tests_data_path(file) : testing::test_data_path(file); }
};

TEST_P(PiecesTest, GiveTheSameResults) {
  if (!GetParam().bundled) RONDO_REQUIRE_TEST_DATA();
  std::optional<Device> device = narrow_device(GetParam().type, kRangeBytes);
  ASSERT_TRUE(device);
  const Expected wanted = read_expected(path_of(GetParam().expected));
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kQ8_0}) {
    for (const bool fusion : {true, false}) {
      ModelOptions options;
      options.kv_type = kv_type;
      options.fusion = fusion;
      const Model model = load_model(path_of(GetParam().gguf), options, *device);
      Session session = make_session(model, without_model_stops(3, kv_type == KvType::kF32 ? kContext : 2 * kContext));
      const Result<std::vector<float>> logits = session.wait_logits(wanted.input);
      RONDO_ASSERT_OK(logits.status());
      EXPECT_LE(relative_to_range(*logits, wanted.logits), kv_type == KvType::kF32 ? 1e-4 : kv_type == KvType::kF16 ? 1e-3 : 2e-2);
      RONDO_ASSERT_OK(session.rewind(0));
      EXPECT_EQ(continue_with(session, wanted.input, static_cast<std::uint32_t>(wanted.greedy.size())), wanted.greedy);
    }
  }
}

/// What the test above runs is in pieces indeed, each within the limit, with the barriers that it needs.
TEST_P(PiecesTest, AreWhatProgramsBind) {
  if (!GetParam().bundled) RONDO_REQUIRE_TEST_DATA();
  std::optional<Device> device = narrow_device(GetParam().type, kRangeBytes);
  ASSERT_TRUE(device);
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8_0}) {
    ModelOptions options;
    options.kv_type = kv_type;
    const Model model = load_model(path_of(GetParam().gguf), options, *device);
    Result<std::unique_ptr<models::SessionState>> state = models::SessionState::create(*model.internal()->loaded(), without_model_stops(1, 2 * kContext));
    RONDO_ASSERT_OK(state.status());
    const std::size_t n_layers = model.info().n_layers;
    for (const runtime::Program* program : (*state)->steps().programs()) {
      EXPECT_GT(count(*program, "embedding"), 1u) << program->name;
      EXPECT_GT(count(*program, "rope_kv_write"), n_layers) << program->name;
      EXPECT_GT(count(*program, "attention") - count(*program, "attention combine"), n_layers) << program->name;
      for (const runtime::Dispatch& dispatch : program->dispatches) {
        for (const runtime::Binding& binding : dispatch.bindings) EXPECT_LE(binding.range.size_bytes, kRangeBytes) << dispatch.label;
      }
    }
    EXPECT_TRUE(graph::find_hazards_in_all_orders((*state)->steps().programs()).empty());
  }
}

constexpr PiecesCase kPiecesCases[] = {
    {"BundledGpu", "tiny-Q4_0.gguf", "tiny-Q4_0.expected.safetensors", true, "other"},
    {"BundledCpu", "tiny-Q4_0.gguf", "tiny-Q4_0.expected.safetensors", true, "cpu"},
    {"F16Gpu", "quant/tiny-F16.gguf", "quant/tiny-F16.expected.safetensors", false, "other"},
    {"Q5_0Gpu", "quant/tiny-Q5_0.gguf", "quant/tiny-Q5_0.expected.safetensors", false, "other"},
    {"Q4_KCpu", "quant/tiny-Q4_K_M.gguf", "quant/tiny-Q4_K_M.expected.safetensors", false, "cpu"},
};
INSTANTIATE_TEST_SUITE_P(Models, PiecesTest, ::testing::ValuesIn(kPiecesCases),
                         [](const ::testing::TestParamInfo<PiecesCase>& each) { return std::string(each.param.name); });

/// Unless a head alone needs more.
TEST(PieceLimitTest, OneHeadMustFit) {
  std::optional<Device> device = narrow_device("other", 64 << 10);
  ASSERT_TRUE(device);
  const Model model = load_model(tiny_path(), {}, *device);
  SessionOptions options;
  options.n_ctx = 4096;
  expect_failure(Session::create(model, options).status(), StatusCode::kUnsupported, {"the keys of one head", "65536", "smaller context"});
}

}  // namespace
}  // namespace rondo::tests::pieces_test
