// Pictures from files: each kind that is read, what is refused, and files that are cut or damaged.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include <rondo/byte_source.h>

#include "models/image.h"
#include "tests/support/pictures.h"
#include "tools/rondo/image_file.h"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>

namespace rondo::image_file_test {
namespace {

using models::Image;
using tests::expect_refused;
using tests::random_picture;

using Bytes = std::string;

void add_bytes(void* context, void* data, int n) { static_cast<Bytes*>(context)->append(static_cast<const char*>(data), static_cast<std::size_t>(n)); }

Bytes png(int width, int height, int channels, const std::vector<std::uint8_t>& values) {
  Bytes bytes;
  EXPECT_NE(stbi_write_png_to_func(add_bytes, &bytes, width, height, channels, values.data(), width * channels), 0);
  return bytes;
}

Bytes jpeg(const Image& image) {
  Bytes bytes;
  EXPECT_NE(stbi_write_jpg_to_func(add_bytes, &bytes, static_cast<int>(image.width), static_cast<int>(image.height), 3, image.rgb.data(), 100), 0);
  return bytes;
}

Bytes big_endian(std::uint32_t value, int n) {
  Bytes bytes;
  for (int i = n - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

Bytes chunk(const Bytes& type, const Bytes& data) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : type + data) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return big_endian(static_cast<std::uint32_t>(data.size()), 4) + type + data + big_endian(~crc, 4);
}

/// A PNG whose rows, each behind its filter's number, are stored as they are.
Bytes stored_png(std::uint32_t width, std::uint32_t height, int bits, int color, const Bytes& rows) {
  std::uint32_t low = 1, high = 0;
  for (const char c : rows) low = (low + static_cast<std::uint8_t>(c)) % 65521, high = (high + low) % 65521;
  const auto n = static_cast<std::uint32_t>(rows.size());
  Bytes length = big_endian(n, 2), inverted = big_endian(~n, 2);
  std::reverse(length.begin(), length.end());
  std::reverse(inverted.begin(), inverted.end());
  const Bytes header = big_endian(width, 4) + big_endian(height, 4) + static_cast<char>(bits) + static_cast<char>(color) + Bytes(3, '\0');
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", "\x78\x01\x01" + length + inverted + rows + big_endian(high << 16 | low, 4)) + chunk("IEND", "");
}

Result<Image> read(const Bytes& bytes) { return tools::read_image(memory_source(std::as_bytes(std::span(bytes)), "a.png")); }

std::vector<int> values_of(const Result<Image>& image) {
  EXPECT_TRUE(image.ok()) << image.status().message();
  std::vector<int> values;
  if (image.ok()) std::transform(image->rgb.begin(), image->rgb.end(), std::back_inserter(values), [](std::byte byte) { return std::to_integer<int>(byte); });
  return values;
}

TEST(ImageFileTest, EveryKindOfPngBecomesRgb) {
  EXPECT_EQ(values_of(read(png(2, 1, 3, {1, 2, 3, 4, 5, 6}))), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(read(png(1, 1, 3, {9, 8, 7}))), (std::vector<int>{9, 8, 7}));
  EXPECT_EQ(values_of(read(png(1, 2, 1, {200, 17}))), (std::vector<int>{200, 200, 200, 17, 17, 17})) << "grey";
  EXPECT_EQ(values_of(read(png(1, 2, 2, {200, 0, 17, 255}))), (std::vector<int>{200, 200, 200, 17, 17, 17})) << "grey and alpha";
  EXPECT_EQ(values_of(read(png(2, 1, 4, {1, 2, 3, 0, 4, 5, 6, 128}))), (std::vector<int>{1, 2, 3, 4, 5, 6})) << "alpha is left out";
  EXPECT_EQ(values_of(read(stored_png(1, 2, 16, 2, Bytes("\0\x01\xff\x02\x80\x03\x7f\0\xfe\xff\x10\x20\x30\x40", 14)))), (std::vector<int>{1, 2, 3, 0xfe, 0x10, 0x30})) << "16 bits";
  EXPECT_EQ(values_of(read(stored_png(2, 1, 16, 0, Bytes("\0\x12\xff\x34\x80", 5)))), (std::vector<int>{0x12, 0x12, 0x12, 0x34, 0x34, 0x34})) << "grey of 16 bits";
  EXPECT_EQ(values_of(read(stored_png(3, 1, 1, 0, Bytes("\0\xa0", 2)))), (std::vector<int>{255, 255, 255, 0, 0, 0, 255, 255, 255})) << "one bit";
  const auto image = read(png(5, 7, 3, std::vector<std::uint8_t>(105, 3)));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->width, 5u);
  EXPECT_EQ(image->height, 7u);
}

TEST(ImageFileTest, WhatIsNoPictureIsRefused) {
  expect_refused(read("").status(), StatusCode::kCorruptData, {"a.png: is empty"});
  expect_refused(read("text").status(), StatusCode::kCorruptData, {"a.png: is no PNG or JPEG picture"});
  expect_refused(read("GIF89a\1\0\1\0").status(), StatusCode::kCorruptData, {"a.png: is no PNG or JPEG picture"});
  expect_refused(tools::read_image("/nonexistent/a.png").status(), StatusCode::kNotFound, {"/nonexistent/a.png"});
  expect_refused(tools::read_image("/").status(), StatusCode::kInvalidArgument, {"a directory"});
  ByteSource large;
  large.name = "large.png";
  large.size_bytes = tools::kMostPictureBytes + 1;
  expect_refused(tools::read_image(large).status(), StatusCode::kUnsupported, {"large.png", "268435457 bytes"});
  expect_refused(read(stored_png(30'000, 30'000, 8, 2, "")).status(), StatusCode::kUnsupported, {"a.png: has 30000 x 30000 pixels", "67108864"});
  expect_refused(read(stored_png(8192, 8192, 16, 2, "")).status(), StatusCode::kUnsupported, {"a.png: has 8192 x 8192 pixels of 16 bits", "33554432"});
  expect_refused(read(stored_png(8192, 8192, 8, 2, "")).status(), StatusCode::kCorruptData, {"a.png"});
  expect_refused(read(stored_png(0xffffffffu, 0xffffffffu, 8, 2, "")).status(), StatusCode::kUnsupported, {"4294967295 x 4294967295"});
  expect_refused(read(stored_png(0, 7, 8, 2, "")).status(), StatusCode::kCorruptData, {"0 x 7"});
  expect_refused(read(stored_png(5, 5, 8, 2, Bytes(10, '\0'))).status(), StatusCode::kCorruptData, {"a.png", "damaged"});
  Bytes wide = jpeg(random_picture(16, 16));
  const std::size_t frame = wide.find("\xff\xc0");
  wide.replace(frame + 5, 4, "\xff\xff\xff\xff");
  expect_refused(read(wide).status(), StatusCode::kUnsupported, {"65535 x 65535"});
}

// Symbols counted in the 16 bytes behind a table's number: what stb_image would write beyond its tables.
TEST(ImageFileTest, TablesOfTooManySymbolsAreRefused) {
  const Bytes whole = jpeg(random_picture(9, 9));
  const std::size_t table = whole.find("\xff\xc4");
  ASSERT_NE(table, Bytes::npos);
  for (const int n : {17, 255}) {
    Bytes bytes = whole;
    for (std::size_t i = 0; i < 16; ++i) bytes[table + 5 + i] = static_cast<char>(n);
    expect_refused(read(bytes).status(), StatusCode::kCorruptData, {"a.png", "Huffman tables"});
  }
  // None at all: whatever comes, nothing is read that is not there.
  Bytes without = whole;
  for (std::size_t at = without.find("\xff\xc4"); at != Bytes::npos; at = without.find("\xff\xc4")) without[at + 1] = '\xe5';
  (void)read(without);
}

TEST(ImageFileTest, ColoursThatAPaletteLacksAreBlack) {
  const Bytes header = big_endian(2, 4) + big_endian(1, 4) + Bytes("\x08\x03\0\0\0", 5);
  const Bytes data("\x78\x01\x01\x03\x00\xfc\xff\x00\x00\xff\x02\x01\x01\x00", 14);  // one stored row: filter 0, colours 0 and 255
  const auto image = read(Bytes("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", header) + chunk("PLTE", "abc") + chunk("IDAT", data) + chunk("IEND", ""));
  ASSERT_TRUE(image.ok()) << image.status().message();
  EXPECT_EQ(values_of(image), (std::vector<int>{'a', 'b', 'c', 0, 0, 0}));
}

TEST(ImageFileTest, ManyScansAndMorePixelsThanThereAreAreRefused) {
  const Bytes whole = jpeg(random_picture(9, 9));
  const std::size_t scan = whole.find("\xff\xda");
  ASSERT_NE(scan, Bytes::npos);
  Bytes many = whole.substr(0, whole.size() - 2);
  for (int i = 0; i < 70; ++i) many += whole.substr(scan, whole.size() - 2 - scan);
  expect_refused(read(many + "\xff\xd9").status(), StatusCode::kUnsupported, {"a.png", "71 scans"});
  const Bytes large = png(4000, 4000, 1, std::vector<std::uint8_t>(16'000'000, 7));
  Bytes small = large;
  small.replace(16, 8, big_endian(8, 4) + big_endian(8, 4));
  const std::size_t data = small.find("IDAT");
  ASSERT_NE(data, Bytes::npos);
  expect_refused(read(small).status(), StatusCode::kCorruptData, {"a.png", "more than a picture of its size"});
}

// Shorter by any number of bytes: one line, and nothing is read that is not there.
TEST(ImageFileTest, TruncatedPicturesAreRefused) {
  const Bytes of_png = png(4, 3, 3, std::vector<std::uint8_t>(36, 77)), of_jpeg = jpeg(random_picture(9, 9));
  for (std::size_t n = 0; n + 4 < of_png.size(); ++n) EXPECT_FALSE(read(of_png.substr(0, n)).ok()) << n;
  for (std::size_t n = 0; n < of_jpeg.size(); ++n) {
    const auto image = read(of_jpeg.substr(0, n));
    ASSERT_FALSE(image.ok()) << n;
    EXPECT_EQ(image.status().message().find('\n'), std::string::npos);
  }
  expect_refused(read(of_jpeg.substr(0, of_jpeg.size() - 2)).status(), StatusCode::kCorruptData, {"ends too early"});
  EXPECT_TRUE(read(of_jpeg).ok());
  EXPECT_TRUE(read(of_jpeg + "and more").ok());
}

/// TIFF's header and a directory of two entries, the second of which is the orientation.
Bytes exif(bool little_endian, int orientation) {
  const auto number = [&](std::uint32_t value, int n) {
    Bytes bytes = big_endian(value, n);
    if (little_endian) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  };
  const Bytes resolution = number(0x011a, 2) + number(4, 2) + number(1, 4) + number(72, 4);
  const Bytes turned = number(0x0112, 2) + number(3, 2) + number(1, 4) + number(static_cast<std::uint32_t>(orientation), 2) + number(0, 2);
  return Bytes("Exif\0\0", 6) + (little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) + resolution + turned + number(0, 4);
}

Bytes with_segment(const Bytes& jpeg_bytes, int code, const Bytes& data) {
  return jpeg_bytes.substr(0, 2) + '\xff' + static_cast<char>(code) + big_endian(static_cast<std::uint32_t>(data.size() + 2), 2) + data + jpeg_bytes.substr(2);
}

Image rotated_right(const Image& image) {
  Image out{image.height, image.width, std::vector<std::byte>(image.rgb.size())};
  for (std::uint32_t y = 0; y < image.height; ++y) {
    for (std::uint32_t x = 0; x < image.width; ++x) std::memcpy(&out.rgb[3 * (std::size_t{x} * out.width + (image.height - 1 - y))], &image.rgb[3 * (std::size_t{y} * image.width + x)], 3);
  }
  return out;
}

Image mirrored(const Image& image) {
  Image out = image;
  for (std::uint32_t y = 0; y < image.height; ++y) {
    for (std::uint32_t x = 0; x < image.width; ++x) std::memcpy(&out.rgb[3 * (std::size_t{y} * image.width + (image.width - 1 - x))], &image.rgb[3 * (std::size_t{y} * image.width + x)], 3);
  }
  return out;
}

TEST(ImageFileTest, JpegsAreTurnedAsExifSays) {
  const Bytes plain = jpeg(random_picture(7, 4));
  const Image image = read(plain).value();
  // EXIF 2.3, tag 0x0112: where row 0 and column 0 of what is stored belong.
  const Image half = rotated_right(rotated_right(image)), right = rotated_right(image), left = rotated_right(half);
  const std::array<Image, 8> shown = {image, mirrored(image), half, mirrored(half), mirrored(right), right, mirrored(left), left};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little_endian : {false, true}) {
      const auto turned = read(with_segment(plain, 0xe1, exif(little_endian, orientation)));
      ASSERT_TRUE(turned.ok()) << turned.status().message();
      const Image& expected = shown[static_cast<std::size_t>(orientation - 1)];
      EXPECT_EQ(turned->width, expected.width) << orientation;
      EXPECT_TRUE(turned->rgb == expected.rgb) << orientation;
    }
  }
  for (const int wrong : {0, 9, 65535}) EXPECT_TRUE(read(with_segment(plain, 0xe1, exif(true, wrong)))->rgb == image.rgb);
  const Bytes first = with_segment(with_segment(plain, 0xe1, exif(true, 3)), 0xe1, "http://ns.adobe.com/xap/1.0/");
  EXPECT_TRUE(read(first)->rgb == half.rgb) << "behind a segment of another kind";
  EXPECT_TRUE(read(with_segment(first, 0xe1, exif(false, 6)))->rgb == right.rgb) << "the first counts";
}

// Any bytes as segments, in memory of their own size, so that a sanitizer sees what is read beyond it.
TEST(ImageFileTest, DamagedExifBreaksNothing) {
  const Bytes whole = with_segment(jpeg(random_picture(3, 2)), 0xe1, exif(true, 6)).substr(0, 80);
  std::uint32_t state = 5;
  const auto random = [&](std::size_t n) {
    state = state * 1664525u + 1013904223u;
    return static_cast<std::size_t>(state >> 8) % n;
  };
  for (int turn = 0; turn < 20'000; ++turn) {
    std::vector<std::byte> bytes(1 + random(whole.size()));
    std::memcpy(bytes.data(), whole.data(), bytes.size());
    for (std::size_t i = 0; i < random(4); ++i) bytes[random(bytes.size())] = static_cast<std::byte>(random(2) == 0 ? 0xff : random(256));
    const int orientation = tools::outline_of_jpeg(bytes).orientation;
    ASSERT_TRUE(orientation >= 1 && orientation <= 8);
  }
}

TEST(ImageFileTest, FilesAreRead) {
  const std::string path = std::filesystem::temp_directory_path() / ("rondo-picture-" + std::to_string(::getpid()) + ".png");
  const Bytes bytes = png(2, 1, 3, {1, 2, 3, 4, 5, 6});
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(values_of(tools::read_image(path)), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  std::ofstream(path, std::ios::binary) << bytes.substr(0, 40);
  expect_refused(tools::read_image(path).status(), StatusCode::kCorruptData, {path + ": "});
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace rondo::image_file_test
