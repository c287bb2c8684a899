// Pictures of attention: who looks at whom, as an SVG, a PNG, or the numbers themselves.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rondo/status.h>

namespace rondo::tools {

/// Weights of one head, or of several that have the same labels. Labels are shown in one line; control characters and what is no
/// UTF-8 become visible.
struct HeatMap {
  struct Panel {
    std::string title;
    std::vector<float> weights;  ///< (rows, columns), 0 to 1
  };
  std::string title;
  std::vector<std::string> row_labels, column_labels;  ///< as many as there are rows and columns
  std::vector<Panel> panels;
};

/// Sizes that belong together, at most 4096 x 4096 cells a panel, and a picture of at most 64 million pixels.
/// Errors: kInvalidArgument.
Status check_heat_map(const HeatMap& map);

/// The picture of a map that check_heat_map has passed: darker is more, on a scale whose lightness is even (CIELAB L* from 100
/// to 18), so that it may be printed in grey. Weights below 1/255 stay white.
std::string heat_map_svg(const HeatMap& map);
/// The same picture in pixels, two for each of the SVG's where that is no more than 16 million. Characters outside ASCII are '?'.
/// Errors: those of check_heat_map, kOutOfMemory.
Result<std::vector<std::byte>> heat_map_png(const HeatMap& map);
/// {"title", "rows": [label], "columns": [label], "panels": [{"title", "weights": [[number]]}]}, every weight to its last bit.
std::string heat_map_json(const HeatMap& map);

/// Writes what the path's extension says (.svg, .png or .json): `path` holds the old content or the new one.
/// Errors, naming the path: kInvalidArgument (another extension, no regular file, more cells than an SVG should have), those of
/// the above, kIo.
Status write_heat_map(const HeatMap& map, const std::string& path);

}  // namespace rondo::tools
