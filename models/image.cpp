#include "models/image.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "runtime/fmt.h"

namespace rondo::models {

namespace {

// Weights are fixed-point: a byte, its sign and two bits for what negative lobes add leave these of 32.
constexpr int kFractionBits = 32 - 8 - 2;

double sinc(double x) { return x == 0 ? 1 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }

double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

double triangle(double x) { return std::max(1 - std::abs(x), 0.0); }

/// Its constants are rounded to float, as Pillow's are.
double hamming(double x) {
  x = std::abs(x);
  if (x == 0) return 1;
  if (x >= 1) return 0;
  const double angle = x * std::numbers::pi;
  return std::sin(angle) / angle * (static_cast<double>(0.54f) + static_cast<double>(0.46f) * std::cos(angle));
}

/// Keys' cubic convolution, a = -1/2.
double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

double lanczos(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

struct Filter {
  double (*weight)(double x);
  double support;  ///< it is 0 beyond
};

/// Of all but kNearest.
Filter filter_of(Resampling resampling) {
  switch (resampling) {
    case Resampling::kLanczos: return {lanczos, 3};
    case Resampling::kBicubic: return {cubic, 2};
    case Resampling::kBox: return {box, 0.5};
    case Resampling::kHamming: return {hamming, 1};
    case Resampling::kNearest:
    case Resampling::kBilinear: break;
  }
  return {triangle, 1};
}

/// What each place of a side is made of: places first[i] and those behind, as many as there are weights.
class Taps {
 public:
  Taps(std::uint32_t n_in, std::uint32_t n_out, const Filter& filter) : first_(n_out), begin_(std::size_t{n_out} + 1) {
    const double step = static_cast<double>(n_in) / n_out, stretch = std::max(step, 1.0);
    const double support = filter.support * stretch, shrink = 1.0 / stretch;
    std::vector<double> weights;
    for (std::uint32_t i = 0; i < n_out; ++i) {
      const double center = (i + 0.5) * step;
      const auto low = static_cast<std::int64_t>(center - support + 0.5), high = static_cast<std::int64_t>(center + support + 0.5);
      const auto begin = std::max<std::int64_t>(low, 0), end = std::min<std::int64_t>(high, n_in);
      weights.clear();
      double sum = 0;
      for (std::int64_t at = begin; at < end; ++at) {
        weights.push_back(filter.weight((static_cast<double>(at) - center + 0.5) * shrink));
        sum += weights.back();
      }
      first_[i] = static_cast<std::uint32_t>(begin);
      for (const double weight : weights) fixed_.push_back(to_fixed(sum != 0 ? weight / sum : weight));
      begin_[std::size_t{i} + 1] = fixed_.size();
    }
  }

  std::size_t first(std::size_t i) const { return first_[i]; }
  std::span<const std::int32_t> weights(std::size_t i) const { return std::span(fixed_).subspan(begin_[i], begin_[i + 1] - begin_[i]); }

 private:
  static std::int32_t to_fixed(double weight) { return static_cast<std::int32_t>(weight * (1 << kFractionBits) + (weight < 0 ? -0.5 : 0.5)); }

  std::vector<std::uint32_t> first_;
  std::vector<std::size_t> begin_;
  std::vector<std::int32_t> fixed_;
};

constexpr std::int32_t kHalf = 1 << (kFractionBits - 1);

std::byte to_byte(std::int32_t sum) { return static_cast<std::byte>(std::clamp(sum >> kFractionBits, 0, 255)); }

Image empty_image(std::uint32_t width, std::uint32_t height) { return {width, height, std::vector<std::byte>(std::size_t{3} * width * height)}; }

Image resize_columns(const ImageView& image, std::uint32_t width, const Filter& filter) {
  const Taps taps(image.width, width, filter);
  Image out = empty_image(width, image.height);
  for (std::size_t y = 0; y < image.height; ++y) {
    const std::byte* row = image.rgb.data() + 3 * y * image.width;
    std::byte* to = out.rgb.data() + 3 * y * width;
    for (std::size_t x = 0; x < width; ++x) {
      std::int32_t sums[3] = {kHalf, kHalf, kHalf};
      const std::byte* from = row + 3 * taps.first(x);
      for (const std::int32_t weight : taps.weights(x)) {
        for (int channel = 0; channel < 3; ++channel) sums[channel] += weight * std::to_integer<std::int32_t>(*from++);
      }
      for (int channel = 0; channel < 3; ++channel) *to++ = to_byte(sums[channel]);
    }
  }
  return out;
}

Image resize_rows(const ImageView& image, std::uint32_t height, const Filter& filter) {
  const Taps taps(image.height, height, filter);
  Image out = empty_image(image.width, height);
  const std::size_t row_bytes = std::size_t{3} * image.width;
  std::vector<std::int32_t> sums(row_bytes);
  for (std::size_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    const std::byte* from = image.rgb.data() + taps.first(y) * row_bytes;
    for (const std::int32_t weight : taps.weights(y)) {
      for (std::size_t i = 0; i < row_bytes; ++i) sums[i] += weight * std::to_integer<std::int32_t>(from[i]);
      from += row_bytes;
    }
    std::transform(sums.begin(), sums.end(), out.rgb.begin() + static_cast<std::ptrdiff_t>(y * row_bytes), to_byte);
  }
  return out;
}

/// The place that each of `n_out` is a copy of. The steps add up, as Pillow's do, where products would round otherwise.
std::vector<std::uint32_t> nearest_places(std::uint32_t n_in, std::uint32_t n_out) {
  std::vector<std::uint32_t> places;
  places.reserve(n_out);
  const double step = static_cast<double>(n_in) / n_out;
  double at = step * 0.5;
  for (std::uint32_t i = 0; i < n_out; ++i, at += step) places.push_back(std::min(static_cast<std::uint32_t>(at), n_in - 1));
  return places;
}

Image resize_nearest(const ImageView& image, std::uint32_t width, std::uint32_t height) {
  const std::vector<std::uint32_t> columns = nearest_places(image.width, width), rows = nearest_places(image.height, height);
  Image out = empty_image(width, height);
  std::byte* to = out.rgb.data();
  for (const std::uint32_t row : rows) {
    const std::byte* from = image.rgb.data() + std::size_t{3} * row * image.width;
    for (const std::uint32_t column : columns) to = std::copy_n(from + std::size_t{3} * column, 3, to);
  }
  return out;
}

Image copy(const ImageView& image) { return {image.width, image.height, std::vector<std::byte>(image.rgb.begin(), image.rgb.end())}; }

Status refuse(const std::string& what) { return Status(StatusCode::kInvalidArgument, "image: " + what); }

Status check_size(std::uint64_t width, std::uint64_t height, const char* what) {
  if (width == 0 || height == 0) return refuse(fmt::format("{} {} x {} pixels", what, width, height));
  if (width <= kMostImageSide && height <= kMostImageSide && width * height <= kMostImagePixels) return {};
  return refuse(fmt::format("{} {} x {} pixels, but there may be {} in all and {} on a side", what, width, height, kMostImagePixels, kMostImageSide));
}

/// One side of a crop: how many pixels are left out before it, or put in.
struct CropSide {
  CropSide(std::uint32_t n_in, std::uint32_t n_out) : skipped(n_in > n_out ? (n_in - n_out) / 2 : 0), padding(n_out > n_in ? (n_out - n_in + 1) / 2 : 0), n_kept(std::min(n_in, n_out)) {}
  std::size_t skipped, padding, n_kept;
};

/// What `image` is resized to.
struct Size {
  std::uint64_t width, height;
};
Size resized_size(const ImageView& image, const ImageShape& shape, const ImagePreprocessing& how) {
  if (how.shortest_edge == 0) return {how.resize_width > 0 ? how.resize_width : shape.width, how.resize_height > 0 ? how.resize_height : shape.height};
  const std::uint64_t shorter = std::min(image.width, image.height), longer = std::max(image.width, image.height);
  const auto edge = static_cast<std::uint64_t>(static_cast<double>(how.shortest_edge * longer) / static_cast<double>(shorter));
  return image.width <= image.height ? Size{how.shortest_edge, edge} : Size{edge, how.shortest_edge};
}

Status check_channels(const ImageShape& shape) {
  if (shape.channels == 1 || shape.channels == 3) return {};
  return Status(StatusCode::kUnsupported, fmt::format("image: the model takes {} channels, which RGB does not give", shape.channels));
}

}  // namespace

Status check_image(const ImageView& image) {
  RONDO_TRY(check_size(image.width, image.height, "has"));
  const std::uint64_t n_bytes = std::uint64_t{3} * image.width * image.height;
  return image.rgb.size() == n_bytes ? Status() : refuse(fmt::format("{} bytes are given but {} x {} pixels have {}", image.rgb.size(), image.width, image.height, n_bytes));
}

Result<Image> resize(const ImageView& image, std::uint32_t width, std::uint32_t height, Resampling resampling) {
  RONDO_TRY(check_image(image));
  RONDO_TRY(check_size(width, height, "is resized to"));
  if (image.width == width && image.height == height) return copy(image);
  if (resampling == Resampling::kNearest) return resize_nearest(image, width, height);
  const Filter filter = filter_of(resampling);
  if (image.width == width) return resize_rows(image, height, filter);
  RONDO_TRY(check_size(width, image.height, "becomes, on its way to another size,"));
  Image wide = resize_columns(image, width, filter);
  return image.height == height ? std::move(wide) : resize_rows(wide, height, filter);
}

Result<Image> center_crop(const ImageView& image, std::uint32_t width, std::uint32_t height) {
  RONDO_TRY(check_image(image));
  RONDO_TRY(check_size(width, height, "is cropped to"));
  const CropSide x(image.width, width), y(image.height, height);
  Image out = empty_image(width, height);
  for (std::size_t row = 0; row < y.n_kept; ++row) {
    const std::byte* from = image.rgb.data() + 3 * ((y.skipped + row) * image.width + x.skipped);
    std::copy_n(from, 3 * x.n_kept, out.rgb.data() + 3 * ((y.padding + row) * width + x.padding));
  }
  return out;
}

Image to_grey(const ImageView& image) {
  Image out = copy(image);
  for (std::size_t i = 0; i + 2 < out.rgb.size(); i += 3) {
    const auto red = std::to_integer<std::uint32_t>(out.rgb[i]), green = std::to_integer<std::uint32_t>(out.rgb[i + 1]), blue = std::to_integer<std::uint32_t>(out.rgb[i + 2]);
    std::fill_n(out.rgb.begin() + static_cast<std::ptrdiff_t>(i), 3, static_cast<std::byte>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16));
  }
  return out;
}

Result<std::vector<float>> to_numbers(const ImageView& image, const ImageShape& shape, const ImagePreprocessing& how) {
  RONDO_TRY(check_channels(shape));
  RONDO_TRY(check_image(image));
  if (image.width != shape.width || image.height != shape.height) {
    return refuse(fmt::format("has {} x {} pixels but the model takes {} x {}", image.width, image.height, shape.width, shape.height));
  }
  std::optional<Image> grey;
  if (shape.channels == 1) grey = to_grey(image);
  const std::span<const std::byte> rgb = grey ? grey->rgb : image.rgb;
  const std::size_t n_pixels = std::size_t{shape.height} * shape.width;
  std::vector<float> pixels(shape.n_values());
  for (std::size_t channel = 0; channel < shape.channels; ++channel) {
    std::array<float, 256> numbers{};
    for (std::size_t byte = 0; byte < numbers.size(); ++byte) numbers[byte] = (static_cast<float>(static_cast<double>(byte) * how.scale) - how.mean[channel]) / how.deviation[channel];
    for (std::size_t i = 0; i < n_pixels; ++i) pixels[channel * n_pixels + i] = numbers[std::to_integer<std::size_t>(rgb[3 * i + channel])];
  }
  return pixels;
}

Result<std::vector<float>> preprocess(const ImageView& image, const ImageShape& shape, const ImagePreprocessing& how) {
  if (!how.refusal.empty()) return Status(StatusCode::kUnsupported, "image: " + how.refusal);
  RONDO_TRY(check_channels(shape));
  RONDO_TRY(check_image(image));
  std::optional<Image> owned;
  const auto current = [&] { return owned ? ImageView(*owned) : image; };
  if (shape.channels == 1) owned = to_grey(image);
  if (how.resizes) {
    const Size size = resized_size(image, shape, how);
    RONDO_TRY(check_size(size.width, size.height, "is resized to"));
    RONDO_ASSIGN(owned, resize(current(), static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height), how.resampling));
  }
  if (how.crop_height > 0 && how.crop_width > 0) {
    RONDO_ASSIGN(owned, center_crop(current(), how.crop_width, how.crop_height));
  }
  const ImageView last = current();
  if (last.width != shape.width || last.height != shape.height) {
    return refuse(fmt::format("has {} x {} pixels, of which preprocessing makes {} x {}, but the model takes {} x {}", image.width, image.height, last.width, last.height, shape.width, shape.height));
  }
  return to_numbers(last, shape, how);
}

}  // namespace rondo::models
