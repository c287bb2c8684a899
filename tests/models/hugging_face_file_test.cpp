// Folders that are wrong: one line that names the file and the field, whatever is in them.
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "models/checkpoint.h"
#include "models/formats/safetensors.h"
#include "models/json.h"
#include "models/reference.h"
#include "runtime/fmt.h"
#include "tests/support/command_runner.h"
#include "tests/support/test_data.h"

namespace rondo::models::hugging_face_file_test {
namespace {

using json = nlohmann::json;

/// The bundled folder's files, to be changed.
class HuggingFaceFileTest : public ::testing::Test {
 protected:
  HuggingFaceFileTest() : bundled_(testing::tests_data_path("qwen2")), config_(json::parse(testing::read_whole_file(bundled_ + "/config.json"))), source_(open_file(bundled_ + "/model.safetensors").value()), file_(SafetensorsFile::parse(source_).value()) {
    for (const SafetensorsEntry& entry : file_.entries()) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(entry.size_bytes));
      EXPECT_TRUE(source_.read(entry.offset_bytes, bytes).ok());
      tensors_[entry.name] = {entry.shape, std::move(bytes), entry.dtype};
    }
  }

  struct Tensor {
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
    SafetensorsDtype dtype = SafetensorsDtype::kF32;
  };
  using Tensors = std::map<std::string, Tensor>;

  std::string path(const std::string& name) const { return folder_.path(name); }
  void write_config() const { folder_.write("config.json", config_.dump()); }
  void write_tensors(const std::string& file, const Tensors& tensors) const {
    std::vector<SafetensorsTensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    const Status written = write_safetensors(path(file), list);
    ASSERT_TRUE(written.ok()) << written.message();
  }
  void write_all() const {
    write_config();
    write_tensors("model.safetensors", tensors_);
  }
  /// The network that the folder stands for, or why there is none.
  Status opened() const {
    const Result<ByteSource> source = open_model(folder_.path(""));
    return source.ok() ? open_checkpoint(*source).status() : source.status();
  }
  void expect_refusal(StatusCode code, std::initializer_list<std::string> parts) const {
    const Status status = opened();
    EXPECT_EQ(status.code(), code) << status.message();
    for (const std::string& part : parts) EXPECT_NE(status.message().find(part), std::string::npos) << "'" << part << "' is not in: " << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  }

  testing::TemporaryFolder folder_;
  const std::string bundled_;
  json config_;
  const ByteSource source_;
  const SafetensorsFile file_;
  Tensors tensors_;
};

TEST_F(HuggingFaceFileTest, FilesThatAreMissing) {
  expect_refusal(StatusCode::kNotFound, {"config.json"});
  write_config();
  expect_refusal(StatusCode::kNotFound, {"model.safetensors", "model.safetensors.index.json"});
  folder_.write("config.json", "{");
  expect_refusal(StatusCode::kCorruptData, {"config.json"});
  folder_.write("config.json", "{}");
  expect_refusal(StatusCode::kNotFound, {"config.json", "model_type"});
  write_all();
  EXPECT_TRUE(opened().ok()) << opened().message();
}

TEST_F(HuggingFaceFileTest, ModelTypesThatAreNotThere) {
  config_["model_type"] = "mamba";
  write_all();
  expect_refusal(StatusCode::kUnsupported, {"config.json", "'mamba'", "llama", "gemma3_text", "bloom"});
}

/// JSON of the wrong kind at every key: refused by the key's name, or of no meaning.
TEST_F(HuggingFaceFileTest, ValuesOfTheWrongKind) {
  const json original = config_;
  const std::vector<json> values = {"text", json::array({1}), json::object({{"a", 1}}), -1, 1.5, true, 1e300, std::uint64_t{1} << 40, 0};
  std::size_t n_refused = 0;
  write_tensors("model.safetensors", tensors_);
  for (auto field = original.begin(); field != original.end(); ++field) {
    for (const json& value : values) {
      config_ = original;
      config_[field.key()] = value;
      write_config();
      const Status status = opened();
      if (status.ok()) continue;
      ++n_refused;
      EXPECT_NE(status.message().find(folder_.path("").substr(0, folder_.path("").size() - 1)), std::string::npos) << field.key() << " " << value << ": " << status.message();
      EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    }
  }
  EXPECT_GT(n_refused, 60u);
  for (const char* needed : {"num_hidden_layers", "hidden_size", "num_attention_heads"}) {
    config_ = original;
    config_.erase(needed);
    write_config();
    expect_refusal(StatusCode::kCorruptData, {"config.json", std::string("'") + needed + "' is missing"});
  }
}

TEST_F(HuggingFaceFileTest, FeaturesThatAreNotThere) {
  const json original = config_;
  write_tensors("model.safetensors", tensors_);
  const std::pair<const char*, json> features[] = {{"hidden_act", "relu"}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}, {"use_qk_norm", true}};
  for (const auto& [field, value] : features) {
    config_ = original;
    config_[field] = value;
    write_config();
    expect_refusal(StatusCode::kUnsupported, {"config.json", std::string("'") + field + "'", "not there yet"});
  }
  config_ = original;
  config_["use_sliding_window"] = true, config_["sliding_window"] = 8;
  write_config();
  expect_refusal(StatusCode::kUnsupported, {"config.json", "'use_sliding_window'"});
}

TEST_F(HuggingFaceFileTest, TensorsThatContradictTheConfig) {
  Tensors changed = tensors_;
  write_config();
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  changed.erase(name);
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kCorruptData, {"blk.1.ffn_up.weight", "missing"});
  changed = tensors_;
  std::swap(changed[name].shape[0], changed[name].shape[1]);
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kCorruptData, {"blk.1.ffn_up.weight"});
  changed[name].shape = {changed[name].shape[0], changed[name].shape[1], 1};
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kUnsupported, {name, "3 dimensions"});
  changed = tensors_;
  changed[name].dtype = SafetensorsDtype::kI32;
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kUnsupported, {name, "I32", "F32, F16 and BF16"});
  changed = tensors_;
  changed["model.layers.0.mamba.weight"] = tensors_.at(name);
  write_tensors("model.safetensors", changed);
  expect_refusal(StatusCode::kUnsupported, {"model.layers.0.mamba.weight", "qwen2"});
}

/// Shards: as one file, and every way in which an index and its files disagree.
TEST_F(HuggingFaceFileTest, ShardsAndTheirIndex) {
  write_config();
  Tensors halves[2];
  std::size_t n = 0;
  for (const auto& [name, tensor] : tensors_) halves[n++ % 2][name] = tensor;
  const auto write_index = [&](const std::map<std::string, std::string>& map) { folder_.write("model.safetensors.index.json", json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump()); };
  std::map<std::string, std::string> map;
  for (int i = 0; i < 2; ++i) {
    write_tensors(fmt::format("model-0000{}-of-00002.safetensors", i + 1), halves[i]);
    for (const auto& [name, tensor] : halves[i]) map[name] = fmt::format("model-0000{}-of-00002.safetensors", i + 1);
  }
  write_index(map);
  ASSERT_TRUE(opened().ok()) << opened().message();
  const std::vector<std::int32_t> ids = {1, 2, 3, 200};
  const auto in_shards = open_checkpoint(open_model(folder_.path("")).value()).value(), whole = open_checkpoint(open_model(bundled_).value()).value();
  EXPECT_EQ(reference_logits(*in_shards, ids, graph::Type::kF32).value(), reference_logits(*whole, ids, graph::Type::kF32).value());

  const std::string first = map.begin()->first;
  auto changed = map;
  changed["model.extra.weight"] = "model-00003-of-00002.safetensors";
  write_index(changed);
  expect_refusal(StatusCode::kNotFound, {"model-00003-of-00002.safetensors"});
  changed = map;
  changed[first] = std::next(map.begin())->second;
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {first, "not in the index, or in another file"});
  changed = map;
  changed.erase(first);
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {first, "not in the index"});
  changed = map;
  changed["model.extra.weight"] = map.at(first);
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {"model.extra.weight", "missing"});
  changed = map;
  changed[first] = "../model.safetensors";
  write_index(changed);
  expect_refusal(StatusCode::kCorruptData, {"index.json", "no file of the folder"});
  folder_.write("model.safetensors.index.json", R"({"weight_map": {"a": 3}})");
  expect_refusal(StatusCode::kCorruptData, {"index.json", "'a'"});
  folder_.write("model.safetensors.index.json", R"({"weight_map": 3})");
  expect_refusal(StatusCode::kCorruptData, {"index.json", "weight_map"});
}

/// BF16 and F16 are what they mean.
TEST_F(HuggingFaceFileTest, HalvesAreRead) {
  write_config();
  for (auto& [name, tensor] : tensors_) {
    std::vector<std::byte> halves(tensor.bytes.size() / 2);
    for (std::size_t i = 0; i < halves.size() / 2; ++i) std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(4 * i + 2), 2, halves.begin() + static_cast<std::ptrdiff_t>(2 * i));
    tensor.bytes = std::move(halves);
    tensor.dtype = SafetensorsDtype::kBF16;
  }
  write_tensors("model.safetensors", tensors_);
  const std::vector<std::int32_t> ids = {1, 2, 3, 200};
  const auto narrow = open_checkpoint(open_model(folder_.path("")).value()).value(), whole = open_checkpoint(open_model(bundled_).value()).value();
  const std::vector<float> a = reference_logits(*narrow, ids, graph::Type::kF32).value(), b = reference_logits(*whole, ids, graph::Type::kF32).value();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 0.3);  // of logits with a deviation of 2.4
}

}  // namespace
}  // namespace rondo::models::hugging_face_file_test
