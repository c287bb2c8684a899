// Pictures beside what Pillow and NumPy make of them (tests/data/images.safetensors).
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/byte_source.h>

#include "models/formats/safetensors.h"
#include "models/image.h"
#include "tests/support/pictures.h"

namespace rondo::image_test {
namespace {

using models::Image;
using models::ImageView;
using models::Resampling;
using tests::expect_refused;
using tests::random_picture;

struct Reference {
  std::vector<std::string> name;
  std::uint32_t width = 0, height = 0;
  std::vector<std::byte> bytes;
};

/// Those whose names begin with `kind`.
std::vector<Reference> references(const std::string& kind) {
  const ByteSource source = open_file(tests::references_path()).value();
  const models::SafetensorsFile file = models::SafetensorsFile::parse(source).value();
  std::vector<Reference> found;
  for (const models::SafetensorsEntry& entry : file.entries()) {
    if (!entry.name.starts_with(kind + "/")) continue;
    Reference& one = found.emplace_back(Reference{testing::split(entry.name, "/"), static_cast<std::uint32_t>(entry.shape[1]), static_cast<std::uint32_t>(entry.shape[0]), {}});
    one.bytes.resize(entry.size_bytes);
    EXPECT_TRUE(source.read(entry.offset_bytes, one.bytes).ok());
  }
  return found;
}

TEST(ImageTest, ResizingGivesPillowsBytes) {
  const std::vector<Reference> all = references("resize");
  EXPECT_EQ(all.size(), 60u);
  for (const Reference& one : all) {
    const auto resized = models::resize(random_picture(one.name[2]), one.width, one.height, static_cast<Resampling>(std::stoi(one.name[1])));
    ASSERT_TRUE(resized.ok()) << resized.status().message();
    EXPECT_TRUE(resized->rgb == one.bytes) << one.name[2] << " to " << one.name[3] << " by filter " << one.name[1];
  }
}

TEST(ImageTest, AnotherFilterIsNoticed) {
  for (const Reference& one : references("resize")) {
    if (one.name[2] != "23x17") continue;
    const auto resized = models::resize(random_picture(23, 17), one.width, one.height, static_cast<Resampling>((std::stoi(one.name[1]) + 1) % 6));
    EXPECT_FALSE(resized.value().rgb == one.bytes);
  }
}

TEST(ImageTest, CropsAreOfTheMiddle) {
  const std::vector<Reference> all = references("crop");
  EXPECT_EQ(all.size(), 6u);
  for (const Reference& one : all) {
    const auto cropped = models::center_crop(random_picture(one.name[1]), one.width, one.height);
    ASSERT_TRUE(cropped.ok()) << cropped.status().message();
    EXPECT_TRUE(cropped->rgb == one.bytes) << one.name[1] << " to " << one.name[2];
  }
}

TEST(ImageTest, GreyIsPillows) {
  const Reference one = references("grey").at(0);
  const Image grey = models::to_grey(random_picture(one.name[1]));
  ASSERT_EQ(grey.rgb.size(), 3 * one.bytes.size());
  for (std::size_t i = 0; i < grey.rgb.size(); ++i) ASSERT_EQ(grey.rgb[i], one.bytes[i / 3]) << i;
}

TEST(ImageTest, SizesThatCantBeAreRefused) {
  const Image one = random_picture(1, 1);
  for (const Resampling filter : {Resampling::kNearest, Resampling::kBicubic}) {
    expect_refused(models::resize(one, 0, 5, filter).status(), StatusCode::kInvalidArgument, {"image:", "0 x 5"});
    expect_refused(models::resize(one, 1 << 15, 1 << 14, filter).status(), StatusCode::kInvalidArgument, {"32768 x 16384", "268435456"});
    expect_refused(models::resize(one, 1, 0xffffffffu, filter).status(), StatusCode::kInvalidArgument, {"1 x 4294967295"});
  }
  expect_refused(models::center_crop(one, 1 << 20, 1 << 20).status(), StatusCode::kInvalidArgument, {"1048576 x 1048576"});
  expect_refused(models::resize(ImageView{0, 0, {}}, 5, 5, Resampling::kBox).status(), StatusCode::kInvalidArgument, {"0 x 0"});
  expect_refused(models::resize(ImageView{0xffffffffu, 0xffffffffu, one.rgb}, 5, 5, Resampling::kBox).status(), StatusCode::kInvalidArgument, {"4294967295 x 4294967295"});
  expect_refused(models::resize(ImageView{2, 1, one.rgb}, 5, 5, Resampling::kBox).status(), StatusCode::kInvalidArgument, {"3 bytes", "2 x 1", "have 6"});
  // Neither size is too large, but what lies between is.
  const Image tall = random_picture(1, 1 << 20);
  expect_refused(models::resize(tall, 1 << 14, 1, Resampling::kBox).status(), StatusCode::kInvalidArgument, {"16384 x 1048576"});
  EXPECT_TRUE(models::resize(tall, 2, 1, Resampling::kLanczos).ok());
}

TEST(ImageTest, StepsThatDoNotFitAreRefused) {
  const Image image = random_picture(20, 10);
  models::ImagePreprocessing how;
  EXPECT_EQ(models::preprocess(image, {3, 4, 6}, how).value().size(), 72u) << "resized to the model's size";
  expect_refused(models::to_numbers(image, {3, 4, 6}, how).status(), StatusCode::kInvalidArgument, {"20 x 10", "6 x 4"});
  expect_refused(models::preprocess(image, {4, 4, 6}, how).status(), StatusCode::kUnsupported, {"4 channels"});
  expect_refused(models::preprocess(ImageView{20, 11, image.rgb}, {3, 4, 6}, how).status(), StatusCode::kInvalidArgument, {"600 bytes", "660"});
  how.shortest_edge = 5;
  expect_refused(models::preprocess(image, {3, 5, 5}, how).status(), StatusCode::kInvalidArgument, {"20 x 10", "makes 10 x 5", "takes 5 x 5"});
  how.shortest_edge = 1 << 14;
  expect_refused(models::preprocess(random_picture(1, 1000), {3, 5, 5}, how).status(), StatusCode::kInvalidArgument, {"16384 x 16384000"});
  how.refusal = "so it is";
  expect_refused(models::preprocess(image, {3, 4, 6}, how).status(), StatusCode::kUnsupported, {"so it is"});
}

}  // namespace
}  // namespace rondo::image_test
