#include "tools/rondo/image_file.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/fmt.h"

namespace {

// What one allocation for the picture that is being read may have: compressed data that says more is damaged.
thread_local std::size_t most_allocated_bytes = 0;

// Zeros: stb_image 2.27 reads the tables of JPEGs that do not define them.
void* allocate_bounded(std::size_t size) { return size <= most_allocated_bytes ? std::calloc(1, size) : nullptr; }
void* reallocate_bounded(void* memory, std::size_t size) { return size <= most_allocated_bytes ? std::realloc(memory, size) : nullptr; }

}  // namespace

#define STBI_MALLOC(size) allocate_bounded(size)
#define STBI_REALLOC(memory, size) reallocate_bounded(memory, size)
#define STBI_FREE(memory) std::free(memory)
#define STBI_ASSERT(condition) ((void)0)
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_MAX_DIMENSIONS 65536
#define STBI_FAILURE_USERMSG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

namespace rondo::tools {

namespace {

using Bytes = std::span<const std::byte>;
using models::Image;

constexpr std::string_view kPngBegin("\x89PNG\r\n\x1a\n", 8), kJpegBegin("\xff\xd8\xff", 3), kExifBegin("Exif\0\0", 6);

bool begins_with(Bytes bytes, std::string_view text) { return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0; }

std::uint32_t byte_at(Bytes bytes, std::size_t at) { return std::to_integer<std::uint32_t>(bytes[at]); }

/// Two or four bytes; the caller knows that they are there.
std::uint32_t number_at(Bytes bytes, std::size_t at, std::size_t n, bool little_endian) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < n; ++i) value = value << 8 | byte_at(bytes, at + (little_endian ? n - 1 - i : i));
  return value;
}

/// Of the TIFF file in an EXIF segment; 1 where it says nothing that can be meant.
int orientation_of(Bytes tiff) {
  constexpr std::size_t kHeaderBytes = 8, kEntryBytes = 12;
  constexpr std::uint32_t kOrientation = 0x0112, kShort = 3;
  if (tiff.size() < kHeaderBytes) return 1;
  const bool little_endian = begins_with(tiff, "II");
  if (!little_endian && !begins_with(tiff, "MM")) return 1;
  if (number_at(tiff, 2, 2, little_endian) != 42) return 1;
  const std::size_t directory = number_at(tiff, 4, 4, little_endian);
  if (directory > tiff.size() - 2) return 1;
  const std::size_t n = number_at(tiff, directory, 2, little_endian);
  Bytes entries = tiff.subspan(directory + 2);
  for (std::size_t i = 0; i < n && entries.size() >= kEntryBytes; ++i, entries = entries.subspan(kEntryBytes)) {
    if (number_at(entries, 0, 2, little_endian) != kOrientation || number_at(entries, 2, 2, little_endian) != kShort) continue;
    const std::uint32_t value = number_at(entries, 8, 2, little_endian);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

/// Where the next marker begins that is no restart and no escaped byte of entropy-coded data.
std::size_t next_marker(Bytes jpeg, std::size_t at) {
  for (; at + 1 < jpeg.size(); ++at) {
    const std::uint32_t code = byte_at(jpeg, at + 1);
    if (byte_at(jpeg, at) == 0xff && code != 0 && code != 0xff && !(code >= 0xd0 && code <= 0xd7)) return at;
  }
  return jpeg.size();
}

/// Whether the tables of a segment DHT (B.2.4.2) fill it, none with more than the 256 symbols that there are. stb_image 2.27 writes beyond
/// its own where there are more.
bool has_sound_tables(Bytes segment) {
  constexpr std::size_t kHeaderBytes = 17, kMostSymbols = 256;
  while (!segment.empty()) {
    if (segment.size() < kHeaderBytes) return false;
    std::size_t n = 0;
    for (std::size_t i = 1; i < kHeaderBytes; ++i) n += byte_at(segment, i);
    if (n > kMostSymbols || n > segment.size() - kHeaderBytes) return false;
    segment = segment.subspan(kHeaderBytes + n);
  }
  return true;
}

Status check_pixels(const std::string& name, std::uint64_t width, std::uint64_t height, std::uint32_t bits) {
  const std::uint64_t most = bits > 8 ? kMostPicturePixels / 2 : kMostPicturePixels;
  if (width == 0 || height == 0) return Status(StatusCode::kCorruptData, fmt::format("{}: is a picture of {} x {} pixels", name, width, height));
  if (width <= most && height <= most && width * height <= most) return {};
  return Status(StatusCode::kUnsupported, fmt::format("{}: has {} x {} pixels of {} bits, more than {} in all; make it smaller first", name, width, height, bits, most));
}

Status damaged(const std::string& name) {
  const char* reason = stbi_failure_reason();
  if (reason && std::string_view(reason) == "Out of memory") reason = "it holds more than a picture of its size";
  return Status(StatusCode::kCorruptData, fmt::format("{}: the picture ends too early, is damaged, or of a kind that is not there yet ({})", name, reason ? reason : "no reason is known"));
}

/// A PNG's palette with all 256 colours, the others black: pixels may name any, and stb_image reads them.
void complete_palette(std::vector<std::byte>& png) {
  constexpr std::size_t kSignatureBytes = 8, kAroundBytes = 12, kPaletteBytes = 768;
  for (std::size_t at = kSignatureBytes; png.size() - at >= kAroundBytes;) {
    const std::size_t n_bytes = number_at(png, at, 4, false);
    if (n_bytes > png.size() - at - kAroundBytes) return;
    if (begins_with(Bytes(png).subspan(at + 4), "PLTE") && n_bytes < kPaletteBytes) {
      png.insert(png.begin() + static_cast<std::ptrdiff_t>(at + 8 + n_bytes), kPaletteBytes - n_bytes, std::byte{0});
      png[at + 2] = std::byte{kPaletteBytes >> 8}, png[at + 3] = std::byte{kPaletteBytes & 0xff};  // nobody looks at its checksum
      return;
    }
    at += kAroundBytes + n_bytes;
  }
}

}  // namespace

JpegOutline outline_of_jpeg(Bytes jpeg) {
  constexpr std::uint32_t kEnd = 0xd9, kTables = 0xc4, kApplication1 = 0xe1, kScan = 0xda;
  JpegOutline outline;
  bool has_exif = false;
  for (std::size_t at = next_marker(jpeg, 2); at < jpeg.size(); at = next_marker(jpeg, at)) {
    const std::uint32_t code = byte_at(jpeg, at + 1);
    at += 2;
    outline.whole = code == kEnd;
    if (outline.whole || jpeg.size() - at < 2) return outline;
    const std::size_t n_bytes = number_at(jpeg, at, 2, false);
    if (n_bytes < 2 || n_bytes > jpeg.size() - at) return outline;
    const Bytes segment = jpeg.subspan(at + 2, n_bytes - 2);
    if (code == kTables && !has_sound_tables(segment)) outline.sound = false;
    if (code == kScan) ++outline.n_scans;
    if (code == kApplication1 && !has_exif && begins_with(segment, kExifBegin)) {
      has_exif = true;
      outline.orientation = orientation_of(segment.subspan(kExifBegin.size()));
    }
    at += n_bytes;
  }
  return outline;
}

Image turn(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool swaps = orientation >= 5;
  const std::size_t width = image.width, height = image.height;
  Image out{swaps ? image.height : image.width, swaps ? image.width : image.height, std::vector<std::byte>(image.rgb.size())};
  std::byte* to = out.rgb.data();
  for (std::size_t y = 0; y < out.height; ++y) {
    for (std::size_t x = 0; x < out.width; ++x) {
      std::size_t from_x = swaps ? y : x, from_y = swaps ? x : y;
      if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) from_x = width - 1 - from_x;
      if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) from_y = height - 1 - from_y;
      std::memcpy(to, image.rgb.data() + 3 * (from_y * width + from_x), 3);
      to += 3;
    }
  }
  return out;
}

Result<Image> read_image(const std::string& path) {
  RONDO_ASSIGN(const ByteSource source, open_file(path));
  return read_image(source);
}

Result<Image> read_image(const ByteSource& source) {
  const std::string& name = source.name;
  if (source.size_bytes == 0) return Status(StatusCode::kCorruptData, fmt::format("{}: is empty", name));
  if (source.size_bytes > kMostPictureBytes) return Status(StatusCode::kUnsupported, fmt::format("{}: has {} bytes, more than pictures may have ({})", name, source.size_bytes, kMostPictureBytes));
  std::vector<std::byte> bytes(static_cast<std::size_t>(source.size_bytes));
  RONDO_TRY(source.read(0, bytes));
  const bool png = begins_with(bytes, kPngBegin);
  if (!png && !begins_with(bytes, kJpegBegin)) return Status(StatusCode::kCorruptData, fmt::format("{}: is no PNG or JPEG picture", name));
  // stb_image says of what is too large for it as little as of what is damaged.
  const std::uint32_t bits = png && bytes.size() > 24 ? byte_at(bytes, 24) : 8;
  if (png && bytes.size() > 24) RONDO_TRY(check_pixels(name, number_at(bytes, 16, 4, false), number_at(bytes, 20, 4, false), bits));
  const JpegOutline outline = png ? JpegOutline{.whole = true} : outline_of_jpeg(bytes);
  if (!outline.whole) return Status(StatusCode::kCorruptData, fmt::format("{}: the picture ends too early", name));
  constexpr int kMostScans = 64;  // each is decoded over the whole picture; who makes them has some ten
  if (outline.n_scans > kMostScans) return Status(StatusCode::kUnsupported, fmt::format("{}: has {} scans, more than pictures may have ({})", name, outline.n_scans, kMostScans));
  if (png) complete_palette(bytes);
  if (!outline.sound) return Status(StatusCode::kCorruptData, fmt::format("{}: the picture is damaged: its Huffman tables are none", name));

  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  const auto n_bytes = static_cast<int>(bytes.size());
  int width = 0, height = 0, channels = 0;
  most_allocated_bytes = (std::size_t{1} << 22) + bytes.size();
  if (!stbi_info_from_memory(data, n_bytes, &width, &height, &channels)) return damaged(name);
  RONDO_TRY(check_pixels(name, static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height), bits));
  most_allocated_bytes += std::size_t{16} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(stbi_load_from_memory(data, n_bytes, &width, &height, &channels, 3), &stbi_image_free);
  if (!pixels) return damaged(name);
  Image image{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), std::vector<std::byte>(std::size_t{3} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
  std::memcpy(image.rgb.data(), pixels.get(), image.rgb.size());
  return turn(std::move(image), outline.orientation);
}

}  // namespace rondo::tools
