// preprocessor_config.json beside what the image processors of transformers do (tests/data/images.safetensors).
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/byte_source.h>

#include "models/checkpoint.h"
#include "models/formats/gguf.h"
#include "models/formats/gguf_writer.h"
#include "models/formats/hugging_face_images.h"
#include "models/formats/safetensors.h"
#include "models/image.h"
#include "models/json.h"
#include "tests/support/packed_folder.h"
#include "tests/support/pictures.h"

namespace rondo::models::image_preprocessing_test {
namespace {

using tests::PackedFolder;
using tests::random_picture;

Result<ImagePreprocessing> read(const PackedFolder& folder, const std::string& config) {
  folder.write_file("preprocessor_config.json", config);
  RONDO_ASSIGN(const ByteSource source, open_model(folder.path()));
  RONDO_ASSIGN(const auto checkpoint, open_checkpoint(source));
  return checkpoint->network.image_preprocessing;
}

std::string metadata_of(const std::string& name) {
  const std::string bytes = testing::read_whole_file(tests::references_path());
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), 8);
  return parse_json(std::string_view(bytes).substr(8, header_bytes), "images").value()["__metadata__"][name].get_ref<const std::string&>();
}

// Bit for bit. The folder's network, a DeiT, takes 3 channels of 12 x 12.
TEST(ImagePreprocessingTest, NumbersAreThoseOfTransformers) {
  const ByteSource source = open_file(tests::references_path()).value();
  const SafetensorsFile file = SafetensorsFile::parse(source).value();
  std::size_t n = 0;
  for (const SafetensorsEntry& entry : file.entries()) {
    if (!entry.name.starts_with("numbers/")) continue;
    const std::vector<std::string> parts = testing::split(entry.name, "/");
    const ImageShape shape{static_cast<std::uint32_t>(entry.shape[0]), 12, 12};
    const PackedFolder folder("deit");
    std::string config = metadata_of(parts[1]);
    if (shape.channels == 1) {
      // The folder's network has three channels, which are given the one's numbers.
      nlohmann::json changed = parse_json(config, "config").value();
      changed["image_mean"] = changed["image_mean"][0];
      changed["image_std"] = changed["image_std"][0];
      config = changed.dump();
    }
    const auto how = read(folder, config);
    ASSERT_TRUE(how.ok()) << how.status().message();
    const auto numbers = preprocess(random_picture(parts[2]), shape, *how);
    ASSERT_TRUE(numbers.ok()) << parts[1] << ": " << numbers.status().message();
    EXPECT_TRUE(*numbers == file.read_f32(source, entry.name).value()) << parts[1];
    ++n;
  }
  EXPECT_EQ(n, 7u);
}

TEST(ImagePreprocessingTest, ProcessorsHaveTheirDefaults) {
  const PackedFolder deit("deit"), clip("clip");
  const ImagePreprocessing of_deit = read(deit, "{}").value(), of_clip = read(clip, "{}").value(), of_vit = read(deit, R"({"feature_extractor_type": "ViTFeatureExtractor"})").value();
  EXPECT_EQ(of_deit.resampling, Resampling::kBicubic);
  EXPECT_EQ(of_deit.resize_height, 256u);
  EXPECT_EQ(of_deit.crop_width, 224u);
  EXPECT_EQ(of_clip.shortest_edge, 224u);
  EXPECT_EQ(of_clip.crop_height, 224u);
  EXPECT_FLOAT_EQ(of_clip.mean[1], 0.4578275f);
  EXPECT_FLOAT_EQ(of_clip.deviation[2], 0.27577711f);
  EXPECT_EQ(of_vit.resampling, Resampling::kBilinear);
  EXPECT_EQ(of_vit.resize_width, 224u);
  EXPECT_EQ(of_vit.crop_width, 0u);
  EXPECT_EQ(of_vit.scale, 1.0 / 255);
  std::filesystem::remove(deit.path() + "/preprocessor_config.json");
  const auto checkpoint = open_checkpoint(open_model(deit.path()).value());
  ASSERT_TRUE(checkpoint.ok());
  const auto numbers = preprocess(random_picture(20, 30), {3, 12, 12}, (*checkpoint)->network.image_preprocessing);
  ImagePreprocessing usual;
  usual.resize_height = usual.resize_width = 12;
  EXPECT_EQ(numbers.value(), preprocess(random_picture(20, 30), {3, 12, 12}, usual).value()) << "without the file: bilinear, to the model's size";
}

struct Wrong {
  const char* config;
  std::vector<std::string_view> words;
};

TEST(ImagePreprocessingTest, WhatCantBeIsRefusedByName) {
  const PackedFolder folder("deit");
  const Wrong all[] = {
      {R"({"resample": 6})", {"resample", "is 6", "[0, 5]"}},
      {R"({"resample": "bicubic"})", {"resample"}},
      {R"({"size": 0})", {"'size' is 0", "[1, 16384]"}},
      {R"({"size": {"height": 0, "width": 3}})", {"size", "'height' is 0"}},
      {R"({"size": {"height": 3, "width": 100000}})", {"size", "'width' is 100000"}},
      {R"({"size": {"shortest_edge": -1}})", {"shortest_edge"}},
      {R"({"size": [3]})", {"size", "a number, two, or an object"}},
      {R"({"size": ["a", 3]})", {"height"}},
      {R"({"size": true})", {"size"}},
      {R"({"crop_size": 20000})", {"crop_size", "20000"}},
      {R"({"do_resize": 1})", {"do_resize", "true or false"}},
      {R"({"do_center_crop": "yes"})", {"do_center_crop"}},
      {R"({"image_processor_type": 3})", {"image_processor_type"}},
      {R"({"rescale_factor": "x"})", {"rescale_factor"}},
      {R"({"image_mean": [1, 2, null]})", {"image_mean"}},
  };
  for (const Wrong& one : all) {
    const auto how = read(folder, one.config);
    ASSERT_FALSE(how.ok()) << one.config;
    EXPECT_NE(how.status().message().find("preprocessor_config.json"), std::string::npos) << how.status().message();
    for (const std::string_view word : one.words) EXPECT_NE(how.status().message().find(word), std::string::npos) << "'" << word << "' is not in: " << how.status().message();
  }
}

// The network is opened all the same: it takes numbers, but no pictures.
TEST(ImagePreprocessingTest, WhatIsNotThereYetIsSaidOfPictures) {
  const PackedFolder folder("deit");
  const Wrong all[] = {
      {R"({"image_processor_type": "BitImageProcessor"})", {"image_processor_type", "'BitImageProcessor'"}},
      {R"({"size": {"longest_edge": 12}})", {"'size'", "shortest_edge"}},
      {R"({"crop_size": {"shortest_edge": 12}})", {"crop_size"}},
  };
  for (const Wrong& one : all) {
    const auto how = read(folder, one.config);
    ASSERT_TRUE(how.ok()) << how.status().message();
    const Status status = preprocess(random_picture(12, 12), {3, 12, 12}, *how).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    for (const std::string_view word : one.words) EXPECT_NE(status.message().find(word), std::string::npos) << "'" << word << "' is not in: " << status.message();
    EXPECT_NE(status.message().find("not there yet"), std::string::npos) << status.message();
  }
}

// One channel has one number, or the same three times.
TEST(ImagePreprocessingTest, NumbersOfOneChannel) {
  const PackedFolder folder("deit");
  const auto refusal = [&](const char* config) {
    folder.write_file("preprocessor_config.json", config);
    GgufWriter writer;
    EXPECT_TRUE(write_image_preprocessing(folder.path(), "vit", 1, writer).ok()) << config;
    const std::vector<std::byte> header = writer.header();
    const GgufFile file = GgufFile::parse(memory_source(header, "keys")).value();
    EXPECT_TRUE(file.has("rondo.image_mean.2"));
    return std::string(file.string_or("rondo.image_refusal", "").value());
  };
  EXPECT_EQ(refusal(R"({"image_mean": [0.1307], "image_std": 0.3081})"), "");
  EXPECT_EQ(refusal(R"({"image_mean": [0.5, 0.5, 0.5]})"), "");
  EXPECT_NE(refusal(R"({"image_mean": [0.5, 0.5, 0.4]})").find("'image_mean' has different numbers for one channel"), std::string::npos);
  EXPECT_NE(refusal(R"({"image_processor_type": "CLIPImageProcessor"})").find("image_mean"), std::string::npos);
}

}  // namespace
}  // namespace rondo::models::image_preprocessing_test
