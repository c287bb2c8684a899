// Cases of encoders: folders with inputs and what is expected of them, packed in tests/data or in RONDO_TEST_DATA, and how tests run them.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/encoder.h>

#include "models/formats/safetensors.h"
#include "tests/device/session_harness.h"
#include "tests/support/packed_folder.h"

namespace rondo::tests::encoder_cases {

/// Integers (batch, columns).
struct Ids {
  std::size_t batch = 0, columns = 0;
  Tokens values;
  std::span<const std::int32_t> row(std::size_t i) const { return std::span(values).subspan(i * columns, columns); }
};

/// A folder with its inputs and what is expected of them.
class Case {
 public:
  /// One of tests/data/encoders.safetensors, unpacked into a folder of its own.
  static Case packed(const std::string& name) {
    Case one;
    one.packed_ = std::make_unique<PackedFolder>(name);
    one.folder = one.packed_->path();
    one.source_ = open_file(PackedFolder::packed_path()).value();
    one.file_ = models::SafetensorsFile::parse(one.source_).value();
    one.prefix_ = name + "/";
    return one;
  }
  /// A folder of RONDO_TEST_DATA.
  static Case of_data(const std::string& name) {
    Case one;
    one.folder = testing::test_data_path("models/" + name);
    return one;
  }
  std::string folder;

  std::optional<Ids> ids(const std::string& name) const {
    const auto [source, file, full] = find("inputs", name);
    const models::SafetensorsEntry* entry = file.find(full);
    if (!entry) return std::nullopt;
    return Ids{entry->shape[0], entry->shape[1], as_tokens(file.read_i64(source, full).value())};
  }
  Ids expected_ids(const std::string& name) const {
    const auto [source, file, full] = find("expected", name);
    const models::SafetensorsEntry& entry = *file.find(full);
    return Ids{entry.shape[0], entry.shape[1], as_tokens(file.read_i64(source, full).value())};
  }
  std::vector<float> pixels() const {
    const auto [source, file, full] = find("inputs", "pixel_values");
    return file.read_f32(source, full).value();
  }
  /// None where nothing is expected.
  std::vector<float> expected(const std::string& name) const {
    const auto [source, file, full] = find("expected", name);
    return file.find(full) ? file.read_f32(source, full).value() : std::vector<float>();
  }

  /// Texts without their padding.
  std::vector<Tokens> texts(const std::string& name = "input_ids") const {
    const std::optional<Ids> all = ids(name), mask = ids("attention_mask");
    std::vector<Tokens> texts;
    for (std::size_t i = 0; all && i < all->batch; ++i) {
      const std::size_t n = mask ? static_cast<std::size_t>(std::count(mask->row(i).begin(), mask->row(i).end(), 1)) : all->columns;
      texts.emplace_back(all->row(i).begin(), all->row(i).begin() + static_cast<std::ptrdiff_t>(n));
    }
    return texts;
  }

 private:
  Case() = default;

  struct Place {
    ByteSource source;
    models::SafetensorsFile file;
    std::string name;
  };
  Place find(const std::string& part, const std::string& name) const {
    if (!prefix_.empty()) return {source_, *file_, prefix_ + part + "/" + name};
    const ByteSource source = open_file(folder + "/" + part + ".safetensors").value();
    return {source, models::SafetensorsFile::parse(source).value(), name};
  }

  std::unique_ptr<PackedFolder> packed_;
  std::string prefix_;
  ByteSource source_;
  std::optional<models::SafetensorsFile> file_;
};

inline Model load(const Case& one, KvType kv_type = KvType::kF32) {
  ModelOptions options;
  options.kv_type = kv_type;
  Result<Model> model = Model::create(test_device(), open_model(one.folder).value(), options);
  EXPECT_TRUE(model.ok()) << describe(model.status());
  RONDO_EXPECT_OK(model->wait_loaded());
  return std::move(model).value();
}

inline Encoder make_encoder(const Model& model, const EncoderOptions& options) {
  Result<Encoder> encoder = Encoder::create(model, options);
  EXPECT_TRUE(encoder.ok()) << describe(encoder.status());
  return std::move(encoder).value();
}

template <typename AnyEncoder>
std::vector<Encoding> take_all(AnyEncoder& encoder) {
  std::vector<Encoding> all;
  while (!encoder.idle()) {
    RONDO_EXPECT_OK(encoder.advance());
    const Status waited = encoder.wait(std::chrono::seconds(1));
    EXPECT_TRUE(waited.ok() || waited.code() == StatusCode::kTimeout) << describe(waited);
    Encoding encoding;
    while (encoder.take(encoding).value()) all.push_back(std::move(encoding));
  }
  return all;
}

}  // namespace rondo::tests::encoder_cases
