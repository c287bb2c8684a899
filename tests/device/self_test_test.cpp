// The self-test of a model's kernels: what is wrong on purpose is found, put away and replaced, and the model's tokens stay right.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/model_loader.h"
#include "models/self_test_cases.h"
#include "tests/device/faults.h"
#include "tests/device/greedy_reference.h"
#include "tests/device/sabotages.h"
#include "tests/device/session_harness.h"
#include "tests/device/small_llama.h"
#include "tests/support/family_gguf.h"

namespace rondo::tests::self_test_test {
namespace {

const Sabotage& sabotage_named(std::string_view name) {
  const auto found = std::find_if(sabotages().begin(), sabotages().end(), [&](const Sabotage& each) { return each.name == name; });
  EXPECT_NE(found, sabotages().end()) << name;
  return *found;
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class SelfTest : public ::testing::Test {
 protected:
  SelfTest() : device_(make_second_device(test_runtime_device(), [this](runtime::Device::Parts& parts) {
                 parts.log = [this](LogLevel level, std::string_view message) {
                   if (level <= LogLevel::kWarn) log_.emplace_back(message);
                 };
               })) {}

  runtime::Device& runtime() { return device_.internal(); }

  Result<Model> create(ModelOptions options = {}, const std::string& path = tiny_path()) {
    options.self_test = true;
    options.on_quarantine = [this](const std::string& kernel) { quarantine_.push_back(kernel); };
    RONDO_ASSIGN(ByteSource source, open_file(path));
    return Model::create(device_, std::move(source), options);
  }

  static std::vector<std::string> labels_of(const Model& model) {
    std::vector<std::string> labels;
    for (const models::PlannedStep& step : model.internal()->model().plan->steps) {
      for (const runtime::Dispatch& dispatch : step.lowered.program.dispatches) labels.push_back(dispatch.label);
    }
    return labels;
  }
  static bool has_label(const Model& model, std::string_view label) {
    const std::vector<std::string> labels = labels_of(model);
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  }
  bool is_quarantined(std::string_view label) const { return std::find(quarantine_.begin(), quarantine_.end(), label) != quarantine_.end(); }

  /// The model loads, and its tokens are those of the reference.
  void expect_right_tokens(Model& model, graph::Type kv_type = graph::Type::kF16) {
    RONDO_ASSERT_OK(model.wait_loaded());
    Session session = make_session(model, without_model_stops());
    const Tokens input = made_up_tokens(30, model.info().n_vocab);
    const Tokens made = continue_with(session, input, 6);
    ASSERT_EQ(made.size(), 6u);
    expect_interpreters_choice(*model.internal()->model().checkpoint, kv_type, input, made);
  }

  std::vector<std::string> log_, quarantine_;
  Device device_;
};

TEST_F(SelfTest, FindsNothingWhereNothingIsWrong) {
  for (const KvType kv_type : {KvType::kF16, KvType::kF32, KvType::kQ8_0}) {
    for (const bool fusion : {true, false}) {
      ModelOptions options;
      options.kv_type = kv_type;
      options.fusion = fusion;
      const Result<Model> model = create(options, fusion ? demo_path() : tiny_path());
      RONDO_ASSERT_OK(model.status());
    }
  }
  EXPECT_EQ(quarantine_, std::vector<std::string>());
  EXPECT_EQ(log_, std::vector<std::string>());
}

TEST_F(SelfTest, AnotherKernelTakesThePlaceOfAWrongOne) {
  if (runtime().caps().type != runtime::DeviceType::kCpu || !runtime().caps().subgroup_shuffle) GTEST_SKIP() << "this device does not choose wide kernels";
  const Sabotage& sabotage = sabotage_named("scale_the_last_column");
  const ReplacedShader replaced(runtime(), sabotage.shader, sabotage.path);
  Result<Model> model = create();
  RONDO_ASSERT_OK(model.status());
  EXPECT_TRUE(is_quarantined("linear wide q4_0"));
  EXPECT_TRUE(is_quarantined("linear_glu wide q4_0"));
  EXPECT_FALSE(has_label(*model, "linear wide q4_0"));
  EXPECT_TRUE(has_label(*model, "linear tiled q4_0"));
  EXPECT_TRUE(has_label(*model, "linear vector q4_0")) << "decode has one row";
  ASSERT_EQ(log_.size(), quarantine_.size()) << "a line for each";
  for (std::size_t i = 0; i < log_.size(); ++i) {
    EXPECT_NE(log_[i].find("kernel '" + quarantine_[i] + "' fails on device"), std::string::npos) << log_[i];
    EXPECT_NE(log_[i].find("takes its place"), std::string::npos) << log_[i];
    EXPECT_EQ(log_[i].find('\n'), std::string::npos) << log_[i];
  }
  expect_right_tokens(*model);

  // What was found holds without another test.
  ModelOptions known;
  known.quarantine = quarantine_;
  Model again = load_model(tiny_path(), known, device_);
  EXPECT_EQ(labels_of(again), labels_of(*model));
  expect_right_tokens(again);
}

TEST_F(SelfTest, WithoutItTheWrongKernelIsUsed) {
  if (runtime().caps().type != runtime::DeviceType::kCpu || !runtime().caps().subgroup_shuffle) GTEST_SKIP() << "this device does not choose wide kernels";
  const Sabotage& sabotage = sabotage_named("scale_the_last_column");
  const ReplacedShader replaced(runtime(), sabotage.shader, sabotage.path);
  const Model model = load_model(tiny_path(), {}, device_);
  EXPECT_TRUE(has_label(model, "linear wide q4_0"));
  EXPECT_EQ(log_, std::vector<std::string>());
}

TEST_F(SelfTest, EveryCandidateOfAForcedChoiceIsLookedAt) {
  const Sabotage& sabotage = sabotage_named("accumulate_in_f16");
  const ReplacedShader replaced(runtime(), sabotage.shader, sabotage.path);
  ModelOptions options;
  options.kernels["linear"] = "tiled";
  const Result<Model> model = create(options);
  expect_failure(model.status(), StatusCode::kUnsupported, {"self-test", "[linear] kernel 'linear tiled", "quarantine", "no other can take its place"});
  EXPECT_TRUE(is_quarantined("linear tiled q4_0"));
  EXPECT_NE(log_.front().find("error "), std::string::npos) << log_.front();
}

/// What linears do for their neighbours is in no dispatch of its own, and still in a case: a norm, or a rotation.
class SelfTestOfNeighbours : public SelfTest {
 protected:
  void SetUp() override {
    SelfTest::SetUp();
    if (!runtime().caps().subgroup_arithmetic || runtime().caps().max_required_subgroup_size < 4) GTEST_SKIP() << "this device has no kernel that computes them";
  }

  void expect_found(std::string_view name) {
    const Sabotage& sabotage = sabotage_named(name);
    const ReplacedShader replaced(runtime(), sabotage.shader, sabotage.path);
    ModelOptions options;
    options.kernels["linear"] = "subgroup";
    expect_failure(create(options).status(), StatusCode::kUnsupported, {"self-test", "kernel 'linear", "subgroup q4_0' is in quarantine"});
  }
};

TEST_F(SelfTestOfNeighbours, ANormBeforeALinear) { expect_found("forget_the_norm_before"); }
TEST_F(SelfTestOfNeighbours, ANormBehindALinear) { expect_found("forget_a_part_of_the_norm_behind"); }
TEST_F(SelfTestOfNeighbours, ARotationBehindALinear) { expect_found("turn_the_other_way"); }

TEST_F(SelfTestOfNeighbours, AreFoundRight) {
  ModelOptions options;
  options.kernels["linear"] = "subgroup";
  Result<Model> model = create(options);
  RONDO_ASSERT_OK(model.status());
  EXPECT_EQ(quarantine_, std::vector<std::string>());
  expect_right_tokens(*model);
}

/// One linear turns queries and keys, and another puts values away.
TEST_F(SelfTestOfNeighbours, ValuesOfAnotherTypeAreFoundRight) {
  SmallLlama small;
  small.width = 128;
  small.changed = "blk.0.attn_v.weight";
  small.changed_type = models::GgmlType::kF16;
  const std::string file = small.build();
  ModelOptions options;
  options.kernels["linear"] = "subgroup";
  options.self_test = true;
  options.on_quarantine = [this](const std::string& kernel) { quarantine_.push_back(kernel); };
  Result<Model> model = Model::create(device_, memory_source(std::as_bytes(std::span(file)), "small.gguf"), options);
  RONDO_ASSERT_OK(model.status());
  EXPECT_EQ(quarantine_, std::vector<std::string>());
  EXPECT_FALSE(has_label(*model, "rope_kv_write f16"));
  expect_right_tokens(*model);
}

/// Rounded activations are no reason for quarantine, and a wrong scale of theirs is.
class SelfTestOfRounding : public SelfTest {
 protected:
  void SetUp() override {
    SelfTest::SetUp();
    if (!runtime().caps().integer_dot || runtime().caps().max_required_subgroup_size < 8) GTEST_SKIP() << "this device has no integer dot products, or subgroups that are too small";
    options_.activations = Activations::kQ8;
  }

  /// With this mistake in it, the kernel of that label is put away, and tokens are right.
  void expect_replaced(const char* mistake, const char* label) {
    const Sabotage& sabotage = sabotage_named(mistake);
    const ReplacedShader replaced(runtime(), sabotage.shader, sabotage.path);
    Result<Model> model = create(options_);
    RONDO_ASSERT_OK(model.status());
    EXPECT_TRUE(is_quarantined(label));
    EXPECT_FALSE(has_label(*model, label));
    expect_right_tokens(*model);
  }

  ModelOptions options_;
};

TEST_F(SelfTestOfRounding, IsFoundRight) {
  Result<Model> model = create(options_);
  RONDO_ASSERT_OK(model.status());
  EXPECT_EQ(quarantine_, std::vector<std::string>());
  EXPECT_TRUE(has_label(*model, "linear dot q4_0"));
}

TEST_F(SelfTestOfRounding, IsReplacedWhereItIsWrong) { expect_replaced("take_another_groups_scale", "linear dot q4_0"); }

/// Bytes that one linear leaves for another, which no kernel by itself shows.
TEST_F(SelfTestOfRounding, WhatIsLeftForOthersIsLookedAt) { expect_replaced("mix_up_what_is_left_in_bytes", "linear_glu dot q4_0"); }

/// The last workgroup of an attention to end joins what all have left, in every step anew.
TEST_F(SelfTest, SplitsOfAttentionAreJoined) {
  if (!runtime().caps().device_scope || runtime().caps().max_required_subgroup_size < 8) GTEST_SKIP() << "this device has no kernel that joins them";
  ModelOptions options;
  options.kernels["attention"] = "subgroup";
  Result<Model> model = create(options);
  RONDO_ASSERT_OK(model.status());
  EXPECT_EQ(quarantine_, std::vector<std::string>());
  EXPECT_FALSE(has_label(*model, "attention combine"));
  expect_right_tokens(*model);
}

TEST_F(SelfTest, MatrixUnitsAreFoundRight) {
  if (runtime().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  ModelOptions options;
  options.kernels = {{"linear", "matrix"}, {"attention", "matrix"}};
  Result<Model> model = create(options);
  RONDO_ASSERT_OK(model.status());
  EXPECT_EQ(quarantine_, std::vector<std::string>());
  EXPECT_TRUE(has_label(*model, "linear matrix q4_0"));
  EXPECT_TRUE(has_label(*model, "attention matrix f16"));
  expect_right_tokens(*model);
}

TEST_F(SelfTest, AFusedOperatorComesApart) {
  const Sabotage& sabotage = sabotage_named("write_one_row_too_far");
  const ReplacedShader replaced(runtime(), sabotage.shader, sabotage.path);
  for (const KvType kv_type : {KvType::kF32, KvType::kQ8_0}) {
    ModelOptions options;
    options.kv_type = kv_type;
    quarantine_.clear();
    Result<Model> model = create(options);
    RONDO_ASSERT_OK(model.status());
    const std::string type = kv_type == KvType::kF32 ? "f32" : "q8_0";
    EXPECT_EQ(quarantine_, std::vector<std::string>{"rope_kv_write " + type});
    EXPECT_FALSE(has_label(*model, "rope_kv_write " + type));
    EXPECT_TRUE(has_label(*model, "rope"));
    EXPECT_TRUE(has_label(*model, "kv_write " + type));
    EXPECT_NE(log_.back().find("'rope' and 'kv_write " + type + "' takes its place"), std::string::npos) << log_.back();
    expect_right_tokens(*model, kv_type == KvType::kF32 ? graph::Type::kF32 : graph::Type::kQ8_0);
  }
}

TEST_F(SelfTest, WhatHasNoReplacementIsRefused) {
  const Sabotage& sabotage = sabotage_named("epsilon_of_rms_norm");
  const ReplacedShader replaced(runtime(), sabotage.shader, sabotage.path);
  SmallLlama small;
  small.epsilon = 0.5f;
  const std::string file = small.build();
  const Result<Model> model = [&] {
    ModelOptions options;
    options.self_test = true;
    options.kernels["rms_norm"] = "baseline";
    options.on_quarantine = [this](const std::string& kernel) { quarantine_.push_back(kernel); };
    return Model::create(device_, memory_source(std::as_bytes(std::span(file)), "small.gguf"), options);
  }();
  expect_failure(model.status(), StatusCode::kUnsupported, {"self-test", "[rms_norm] kernel 'rms_norm baseline' is in quarantine", "no other can take its place"});
  EXPECT_EQ(quarantine_, std::vector<std::string>{"rms_norm baseline"});
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("nothing can take its place"), std::string::npos) << log_[0];
}

/// Pipelines are made by an executor.
ModelOptions one_by_one() {
  ModelOptions options;
  options.executor = [](std::size_t n, const std::function<void(std::size_t)>& job) {
    for (std::size_t i = 0; i < n; ++i) job(i);
  };
  return options;
}

TEST_F(SelfTest, AKernelThatCantBeMadeIsReplacedToo) {
  const ReplacedShader refused(runtime(), runtime::Shader::rope_kv_write);
  for (const bool with_executor : {false, true}) {
    const ModelOptions options = with_executor ? one_by_one() : ModelOptions();
    quarantine_.clear();
    Result<Model> model = create(options);
    RONDO_ASSERT_OK(model.status());
    EXPECT_EQ(quarantine_, std::vector<std::string>{"rope_kv_write f16"});
    expect_right_tokens(*model);
  }
}

/// Without a self-test too, when pipelines are made: a line says so, and what is left is loaded.
TEST_F(SelfTest, LoadingReplacesAKernelThatCantBeMade) {
  const ReplacedShader refused(runtime(), runtime::Shader::rope_kv_write);
  for (const bool with_executor : {false, true}) {
    const ModelOptions options = with_executor ? one_by_one() : ModelOptions();
    log_.clear();
    Result<Model> model = Model::create(device_, open_file(tiny_path()).value(), options);
    RONDO_ASSERT_OK(model.status());
    expect_right_tokens(*model);
    EXPECT_FALSE(has_label(*model, "rope_kv_write f16"));
    ASSERT_EQ(log_.size(), 1u);
    EXPECT_NE(log_[0].find("kernel rope_kv_write: the shader module can't be created"), std::string::npos) << log_[0];
    EXPECT_NE(log_[0].find("others take the place of 'rope_kv_write f16'"), std::string::npos) << log_[0];
  }
}

/// What can't be made is a table of another kernel's: that kernel is replaced.
TEST_F(SelfTest, LoadingReplacesKernelsWhoseTablesCantBeMade) {
  const auto mixtral = std::find_if(family_files().begin(), family_files().end(), [](const FamilyFile& family) { return std::string_view(family.name) == "mixtral"; });
  ASSERT_NE(mixtral, family_files().end());
  const std::string file = build_family_file(*mixtral, 1);
  {
    const ReplacedShader refused(runtime(), runtime::Shader::expert_tiles);
    log_.clear();
    Result<Model> model = Model::create(device_, memory_source(std::as_bytes(std::span(file)), "mixtral.gguf"), {});
    RONDO_ASSERT_OK(model.status());
    RONDO_ASSERT_OK(model->wait_loaded());
    EXPECT_FALSE(has_label(*model, "expert tiles"));
    ASSERT_FALSE(log_.empty());
    for (const std::string& line : log_) {
      EXPECT_NE(line.find("kernel expert_tiles: the shader module can't be created"), std::string::npos) << line;
      EXPECT_NE(line.find("others take the place of 'expert_linear"), std::string::npos) << line;
    }
  }
  EXPECT_TRUE(has_label(*Model::create(device_, memory_source(std::as_bytes(std::span(file)), "mixtral.gguf"), {}), "expert tiles"));
}

/// A device may list a shape of matrices whose kernels it then refuses.
TEST_F(SelfTest, LoadingReplacesMatricesThatCantBeMade) {
  if (runtime().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  ModelOptions options;
  options.activations = Activations::kF16;
  EXPECT_TRUE(has_label(*Model::create(device_, open_file(tiny_path()).value(), options), "linear matrix q4_0"));
  const ReplacedShader refused(runtime(), runtime::Shader::linear_matrix);
  log_.clear();
  Result<Model> model = Model::create(device_, open_file(tiny_path()).value(), options);
  RONDO_ASSERT_OK(model.status());
  expect_right_tokens(*model);
  ASSERT_EQ(log_.size(), 2u) << "one line for each label";
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string label = i == 0 ? "linear matrix q4_0" : "linear_glu matrix q4_0";
    EXPECT_FALSE(has_label(*model, label));
    EXPECT_NE(log_[i].find("kernel linear_matrix: the shader module can't be created"), std::string::npos) << log_[i];
    EXPECT_NE(log_[i].find("others take the place of '" + label + "'"), std::string::npos) << log_[i];
  }
}

/// What has no other kernel ends loading, with the driver's word.
TEST_F(SelfTest, LoadingEndsWhereNothingIsLeft) {
  const ReplacedShader refused(runtime(), runtime::Shader::step_begin);
  Result<Model> model = Model::create(device_, open_file(tiny_path()).value());
  RONDO_ASSERT_OK(model.status());
  EXPECT_NE(model->wait_loaded().message().find("kernel step_begin: the shader module can't be created"), std::string::npos) << model->wait_loaded().message();
}

/// The labels of the cases of the tiny model, in their order.
std::vector<std::string> labels_of_cases(Device& device) {
  const Result<std::unique_ptr<const models::Checkpoint>> checkpoint = models::open_checkpoint(open_file(tiny_path()).value());
  const Model model = load_model(tiny_path(), {}, device);
  const models::LoadedModel& loaded = model.internal()->model();
  std::vector<models::StepKind> kinds;
  for (const models::PlannedStep& step : loaded.plan->steps) kinds.push_back(step.kind);
  const auto cases = models::self_test_cases(loaded.network(), device.internal().caps(), *loaded.plan, kinds, {});
  EXPECT_TRUE(cases.ok()) << cases.status().message();
  std::vector<std::string> labels;
  for (const models::SelfTestCase& test : *cases) labels.push_back(test.label);
  return labels;
}

/// Models that are created while one call after the other fails: what the self-test says when it was a kernel's.
struct Blamed {
  std::string kernel;
  Status status;
};
template <typename Call>
std::vector<Blamed> blamed_when_failing(VkResult failure) {
  std::vector<Blamed> all;
  for (std::uint64_t n = 0; n < 12; ++n) {
    Device device(make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {}));
    const Hooks<Call> hooks(device.internal());
    Call::fail(failure, n);
    ModelOptions options;
    std::vector<std::string> kernels;
    options.self_test = true;
    options.on_quarantine = [&](const std::string& kernel) { kernels.push_back(kernel); };
    const Result<Model> model = Model::create(device, open_file(tiny_path()).value(), options);
    // An upload that ended while its wait was said to have timed out is as good as any other.
    EXPECT_TRUE(!model.ok() || (failure == VK_TIMEOUT && kernels.empty())) << "call " << n;
    EXPECT_LE(kernels.size(), 1u);
    if (!kernels.empty()) all.push_back({kernels[0], model.status()});
    (void)device.internal().vk().vkDeviceWaitIdle(device.internal().handle());
  }
  return all;
}

/// Uploads and reads submit and wait as well, and are nobody's fault; each kernel does so once, in turn.
TEST_F(SelfTest, AKernelThatCostsTheDeviceIsNamedFirst) {
  const std::vector<std::string> labels = labels_of_cases(test_device());
  const auto expect_in_turn = [&](const std::vector<Blamed>& blamed, StatusCode code, const char* what) {
    ASSERT_GE(blamed.size(), 2u);
    ASSERT_LT(blamed.size(), 12u);
    for (std::size_t i = 0; i < blamed.size(); ++i) {
      EXPECT_EQ(blamed[i].kernel, labels[i]);
      expect_failure(blamed[i].status, code, {"self-test of kernel '" + labels[i] + "'", what});
    }
  };
  expect_in_turn(blamed_when_failing<QueueSubmit>(VK_ERROR_DEVICE_LOST), StatusCode::kDeviceLost, "device");
  expect_in_turn(blamed_when_failing<WaitSemaphores>(VK_TIMEOUT), StatusCode::kInternal, "does not end");
}

/// What fails beside the kernels is nobody's fault.
TEST_F(SelfTest, OtherFailuresBlameNoKernel) {
  const auto expect_blameless = [&](StatusCode code) {
    const Result<Model> model = create();
    EXPECT_EQ(model.status().code(), code) << describe(model.status());
    EXPECT_EQ(quarantine_, std::vector<std::string>());
    EXPECT_EQ(log_, std::vector<std::string>());
  };
  const Hooks<AllocateMemory, MapMemory, CreateDescriptorPool, AllocateDescriptorSets> hooks(runtime());
  AllocateMemory::fail(VK_ERROR_OUT_OF_DEVICE_MEMORY, 3, AllocateMemory::kForever);
  expect_blameless(StatusCode::kOutOfMemory);
  AllocateMemory::succeed();
  MapMemory::fail(VK_ERROR_MEMORY_MAP_FAILED, 2);
  expect_blameless(StatusCode::kInternal);
  MapMemory::succeed();
  CreateDescriptorPool::fail(VK_ERROR_FRAGMENTATION);
  expect_blameless(StatusCode::kInternal);
  CreateDescriptorPool::succeed();
  AllocateDescriptorSets::fail(VK_ERROR_OUT_OF_POOL_MEMORY);
  expect_blameless(StatusCode::kInternal);
}

TEST_F(SelfTest, AFileThatEndsEarlyIsTheFilesFault) {
  const std::string whole = contents_of(tiny_path());
  ByteSource source = memory_source(std::as_bytes(std::span(whole)), "tiny.gguf");
  const auto read = source.read;
  source.read = [read](std::uint64_t offset, std::span<std::byte> out) {
    return offset > 30'000 && out.size() > 64 ? Status(StatusCode::kIo, "the disk is gone") : read(offset, out);
  };
  ModelOptions options;
  options.self_test = true;
  options.on_quarantine = [this](const std::string& kernel) { quarantine_.push_back(kernel); };
  const Result<Model> model = Model::create(device_, std::move(source), options);
  expect_failure(model.status(), StatusCode::kIo, {"tensor '", "the disk is gone"});
  EXPECT_EQ(quarantine_, std::vector<std::string>());
}

TEST(QuarantineTest, AKernelThatThereIsNotIsRefused) {
  ModelOptions options;
  const auto refusal = [&](const char* kernel) {
    options.quarantine = {kernel};
    return Model::create(test_device(), open_file(tiny_path()).value(), options).status();
  };
  expect_failure(refusal("lineal tiled q4_0"), StatusCode::kInvalidArgument, {"quarantine", "'lineal tiled q4_0'", "no operator 'lineal'"});
  expect_failure(refusal("linear tilde q4_0"), StatusCode::kInvalidArgument, {"quarantine", "'linear tilde q4_0'", "subgroup, dot, vector, wide, tiled"});
  expect_failure(refusal("linear"), StatusCode::kInvalidArgument, {"quarantine", "subgroup, dot, vector, wide, tiled"});
  for (const char* label : {"linear tiled", "linear tiled q9_9", "linear tiled q4_0 ", "linear tiled q4_0 x", "kv_write", "rope_kv_write x"}) {
    expect_failure(refusal(label), StatusCode::kInvalidArgument, {"quarantine", "one type"});
  }
  expect_failure(refusal("rms_norm f32"), StatusCode::kInvalidArgument, {"quarantine", "'rms_norm f32'"});
  expect_failure(refusal("rms\nnorm"), StatusCode::kInvalidArgument, {"quarantine", "'rms?norm'"});
  EXPECT_LT(refusal(std::string(100'000, 'x').c_str()).message().size(), 300u);
  expect_failure(refusal(""), StatusCode::kInvalidArgument, {"quarantine", "no operator ''"});
}

}  // namespace
}  // namespace rondo::tests::self_test_test
