// Pictures in files, PNG and JPEG, as 8-bit RGB.
//
// Nobody has to trust the files. stb_image decodes them; what it would take is checked before it is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/image.h"

namespace rondo::tools {

constexpr std::uint64_t kMostPictureBytes = std::uint64_t{256} << 20;  ///< of a file
constexpr std::uint64_t kMostPicturePixels = std::uint64_t{1} << 26;  ///< half as many of 16 bits

/// The picture in a file: grey is repeated, transparency left out, of 16 bits the upper 8 are kept, and a JPEG is turned as its EXIF
/// orientation says. Errors: those of open_file, kCorruptData (no picture, one that ends too early or is damaged), kUnsupported (too
/// large, or a kind that is not there yet); one line that begins with the path.
Result<models::Image> read_image(const std::string& path);
/// The same of any source.
Result<models::Image> read_image(const ByteSource& source);

/// What a JPEG's segments say, as far as the picture's own decoder does not.
struct JpegOutline {
  bool whole = false;   ///< it has its end marker
  bool sound = true;    ///< its Huffman tables are whole and have no more symbols than there are
  int orientation = 1;  ///< 1 to 8, as EXIF numbers them
  int n_scans = 0;
};
/// Any bytes will do. The segments are those of ITU-T T.81, Annex B; the orientation is tag 0x0112 of TIFF's first directory in
/// the first "Exif" segment.
JpegOutline outline_of_jpeg(std::span<const std::byte> jpeg);

/// The picture that a viewer shows where EXIF says `orientation` of the stored one.
models::Image turn(models::Image image, int orientation);

}  // namespace rondo::tools
