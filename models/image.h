// Pictures of 8-bit RGB, and how one becomes the numbers that a network takes: resized, cropped, rescaled, normalised.
//
// Pure functions. Resizing gives the bytes that Pillow 9.4 gives, cropping those of transformers. Nothing is allocated for a
// picture before its size is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rondo/encoder.h>
#include <rondo/status.h>

namespace rondo::models {

/// Of one picture, whether it comes, goes or lies between two passes.
constexpr std::uint64_t kMostImagePixels = std::uint64_t{1} << 28;
constexpr std::uint32_t kMostImageSide = 1u << 24;

/// Three bytes a pixel, row after row, of somebody else.
struct ImageView {
  std::uint32_t width = 0, height = 0;
  std::span<const std::byte> rgb;
};

/// Three bytes a pixel, row after row.
struct Image {
  std::uint32_t width = 0, height = 0;
  std::vector<std::byte> rgb;
  operator ImageView() const { return {width, height, rgb}; }
};

/// Filters by Pillow's numbers.
enum class Resampling : std::uint8_t { kNearest, kLanczos, kBilinear, kBicubic, kBox, kHamming };
constexpr std::uint32_t kResamplings = 6;

/// How a picture becomes numbers, step after step; (byte * scale - mean) / deviation of each channel is the last.
struct ImagePreprocessing {
  bool resizes = true;
  Resampling resampling = Resampling::kBilinear;
  std::uint32_t shortest_edge = 0;                    ///< that the shorter side gets, the other in proportion; or 0:
  std::uint32_t resize_height = 0, resize_width = 0;  ///< or 0: the model's
  std::uint32_t crop_height = 0, crop_width = 0;      ///< of its middle; 0: all of it
  double scale = 1.0 / 255;
  std::array<float, 3> mean = {0.5f, 0.5f, 0.5f}, deviation = {0.5f, 0.5f, 0.5f};
  std::string refusal = {};  ///< why pictures are not taken, or ""
};

/// kInvalidArgument unless a picture has pixels, not too many, and as many bytes as its size says.
Status check_image(const ImageView& image);

/// The picture in another size. A filter's support grows with the reduction; columns come first, then rows, and each pass is
/// rounded to bytes. A side that stays is left as it is. Errors: those of check_image; kInvalidArgument (a size of 0, or too large).
Result<Image> resize(const ImageView& image, std::uint32_t width, std::uint32_t height, Resampling resampling);

/// The middle of a picture, with zeros where it has none. Errors: as resize.
Result<Image> center_crop(const ImageView& image, std::uint32_t width, std::uint32_t height);

/// Red, green and blue become the luma of ITU-R 601 in all three, as Pillow's convert("L") rounds it.
Image to_grey(const ImageView& image);

/// The pixels of a picture of `shape`'s height and width as (channels, height, width); of one channel: of its luma. Errors:
/// those of check_image; kInvalidArgument (another size), kUnsupported (neither 1 nor 3 channels).
Result<std::vector<float>> to_numbers(const ImageView& image, const ImageShape& shape, const ImagePreprocessing& how);

/// All steps, of a picture of any size. Errors: as those above; kInvalidArgument (what comes of it is not of the model's size),
/// kUnsupported (`how` refuses).
Result<std::vector<float>> preprocess(const ImageView& image, const ImageShape& shape, const ImagePreprocessing& how);

}  // namespace rondo::models
