#include "tools/rondo/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

#include "models/new_file.h"
#include "models/utf8.h"
#include "runtime/fmt.h"

namespace rondo::tools {

namespace {

constexpr std::size_t kMaxCells = 4096;          // of a side
constexpr std::int64_t kMaxPixels = 64'000'000;
constexpr std::int64_t kMaxFinePixels = 16'000'000;
constexpr std::size_t kMaxSvgCells = 1'000'000;  // of all panels: about 50 bytes each

// In the SVG's units.
constexpr int kMargin = 12, kGap = 16, kFontSize = 11, kLine = 12, kTitleLine = 22, kLabelGap = 5, kBarWidth = 12;
constexpr std::size_t kMaxLabel = 24, kMaxTitle = 160;

using Color = std::array<std::uint8_t, 3>;
constexpr Color kInk = {0x22, 0x22, 0x22}, kFrame = {0x99, 0x99, 0x99};
/// CIELAB: L* falls by 10.25 from each to the next, the hue goes from 245 to 285 degrees.
constexpr Color kScale[] = {{0xff, 0xff, 0xff}, {0xd3, 0xe4, 0xf2}, {0xa8, 0xc9, 0xe5}, {0x7f, 0xae, 0xd9}, {0x53, 0x93, 0xcc}, {0x1d, 0x78, 0xbe}, {0x00, 0x5d, 0xa1}, {0x00, 0x43, 0x80}, {0x00, 0x2b, 0x5e}};
constexpr std::size_t kSteps = std::size(kScale) - 1;

bool is_visible(float weight) { return weight >= 1.0f / 255; }

Color color_of(float weight) {
  const float at = std::clamp(weight, 0.0f, 1.0f) * static_cast<float>(kSteps);
  const std::size_t step = std::min(static_cast<std::size_t>(at), kSteps - 1);
  Color color;
  for (std::size_t i = 0; i < color.size(); ++i) color[i] = static_cast<std::uint8_t>(std::lround(std::lerp(static_cast<float>(kScale[step][i]), static_cast<float>(kScale[step + 1][i]), at - static_cast<float>(step))));
  return color;
}

std::string hex(const Color& color) { return fmt::format("#{:02x}{:02x}{:02x}", color[0], color[1], color[2]); }

/// The characters of a text: UTF-8 that XML may hold, control characters as \xNN, no more than `most`.
std::vector<std::string> characters_of(std::string_view text, std::size_t most) {
  models::Utf8Stream stream;
  const std::string valid = stream.add(text) + stream.finish();
  std::vector<std::string> characters;
  for (std::size_t at = 0, n = 0; at < valid.size(); at += n) {
    if (characters.size() == most) {
      characters.back() = "...";
      break;
    }
    n = models::utf8_character_bytes(std::string_view(valid).substr(at));
    std::string character = valid.substr(at, n);
    const auto byte = static_cast<unsigned char>(character[0]);
    if (byte < 0x20 || byte == 0x7f) character = fmt::format("\\x{:02x}", byte);
    if (character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") character = "\xEF\xBF\xBD";
    characters.push_back(std::move(character));
  }
  return characters;
}

/// Of a text in letters of equal width: 0.6 of the font's size, twice that from the first of the East Asian blocks (U+2E80) on.
int width_of(std::string_view text, std::size_t most = kMaxLabel) {
  std::size_t n = 0;
  for (const std::string& character : characters_of(text, most)) {
    const bool ascii = static_cast<unsigned char>(character[0]) < 0x80;
    n += ascii ? character.size() : character >= "\xE2\xBA\x80" && character != "\xEF\xBF\xBD" ? 2 : 1;
  }
  return static_cast<int>((n * 6 * kFontSize + 9) / 10);
}

int longest(const std::vector<std::string>& labels, std::size_t step) {
  int width = 0;
  for (std::size_t i = 0; i < labels.size(); i += step) width = std::max(width, width_of(labels[i]));
  return width;
}

/// Where everything lies.
struct Layout {
  std::size_t rows = 0, columns = 0;
  std::size_t across = 1;  ///< panels beside each other
  int cell = 1;
  std::size_t label_step = 1;  ///< only each of so many rows and columns has room for its label
  int panel_width = 0, panel_height = 0;
  int left = 0, top = 0;                        ///< of the first panel's cells
  int pitch_x = 0, pitch_y = 0;                 ///< from panel to panel
  int bar_x = 0, bar_y = 0, bar_height = 0;     ///< the legend
  std::int64_t width = 0, height = 0;

  int x_of(std::size_t panel) const { return left + static_cast<int>(panel % across) * pitch_x; }
  int y_of(std::size_t panel) const { return top + static_cast<int>(panel / across) * pitch_y; }
};

/// About as many panels beside as below each other; a few more where no place stays empty then.
std::size_t panels_across(std::size_t n) {
  std::size_t side = 1;
  while (side * side < n) ++side;
  for (std::size_t across = side; 2 * across <= 3 * side; ++across) {
    if (n % across == 0) return across;
  }
  return side;
}

Layout lay_out(const HeatMap& map) {
  Layout out;
  out.rows = map.row_labels.size(), out.columns = map.column_labels.size();
  const bool single = map.panels.size() == 1;
  const int n = static_cast<int>(std::max(out.rows, out.columns));
  out.cell = std::clamp((single ? 768 : 384) / n, 1, single ? 24 : 16);
  out.label_step = static_cast<std::size_t>((kLine + out.cell - 1) / out.cell);
  out.across = panels_across(map.panels.size());
  out.panel_width = static_cast<int>(out.columns) * out.cell, out.panel_height = static_cast<int>(out.rows) * out.cell;
  int title_width = 0;
  for (const HeatMap::Panel& panel : map.panels) title_width = std::max(title_width, width_of(panel.title));
  out.pitch_x = std::max(out.panel_width, title_width) + kGap;
  out.pitch_y = out.panel_height + (title_width > 0 ? kTitleLine : 0) + kGap;
  out.left = kMargin + std::max(longest(map.row_labels, out.label_step) + kLabelGap, (title_width - out.panel_width) / 2);
  out.top = kMargin + (map.title.empty() ? 0 : kTitleLine) + (title_width > 0 ? kTitleLine : 0);
  const auto down = static_cast<int>((map.panels.size() + out.across - 1) / out.across);
  const int right = out.left + static_cast<int>(out.across) * out.pitch_x;
  const std::int64_t bottom = out.top + std::int64_t{out.pitch_y} * (down - 1) + out.panel_height;
  out.bar_x = right, out.bar_y = out.top, out.bar_height = std::clamp(out.panel_height, 48, 144);
  out.width = std::max(right + kBarWidth + kLabelGap + width_of("1"), kMargin + width_of(map.title, kMaxTitle)) + kMargin;
  out.height = std::max<std::int64_t>(bottom + kLabelGap + longest(map.column_labels, out.label_step), out.bar_y + out.bar_height) + kMargin;
  return out;
}

/// What a picture is drawn on. Coordinates are the SVG's.
class Canvas {
 public:
  enum class Anchor : std::uint8_t { kLeft, kMiddle, kRight };
  virtual ~Canvas() = default;
  /// A line whose middle is at `y`.
  virtual void text(int x, int y, Anchor anchor, const std::vector<std::string>& characters) = 0;
  /// A line from below, whose middle is at `x` and whose end is at `y`.
  virtual void upward_text(int x, int y, const std::vector<std::string>& characters) = 0;
  virtual void panel(int x, int y, const Layout& layout, std::span<const float> weights) = 0;
  virtual void legend(int x, int y, int height) = 0;
};

void draw(const HeatMap& map, const Layout& layout, Canvas& canvas) {
  using enum Canvas::Anchor;
  if (!map.title.empty()) canvas.text(kMargin, kMargin + kFontSize / 2, kLeft, characters_of(map.title, kMaxTitle));
  const auto middle = [&](std::size_t i) { return static_cast<int>(i) * layout.cell + layout.cell / 2; };
  for (std::size_t i = 0; i < map.panels.size(); ++i) {
    const int x = layout.x_of(i), y = layout.y_of(i);
    canvas.panel(x, y, layout, map.panels[i].weights);
    if (!map.panels[i].title.empty()) canvas.text(x + layout.panel_width / 2, y - kTitleLine / 2, kMiddle, characters_of(map.panels[i].title, kMaxLabel));
    if (i % layout.across == 0) {
      for (std::size_t row = 0; row < layout.rows; row += layout.label_step) canvas.text(x - kLabelGap, y + middle(row), kRight, characters_of(map.row_labels[row], kMaxLabel));
    }
    if (i + layout.across >= map.panels.size()) {
      for (std::size_t column = 0; column < layout.columns; column += layout.label_step) {
        canvas.upward_text(x + middle(column), y + layout.panel_height + kLabelGap, characters_of(map.column_labels[column], kMaxLabel));
      }
    }
  }
  canvas.legend(layout.bar_x, layout.bar_y, layout.bar_height);
  canvas.text(layout.bar_x + kBarWidth + kLabelGap, layout.bar_y + kFontSize / 2, kLeft, {"1"});
  canvas.text(layout.bar_x + kBarWidth + kLabelGap, layout.bar_y + layout.bar_height - kFontSize / 2, kLeft, {"0"});
}

class SvgCanvas : public Canvas {
 public:
  explicit SvgCanvas(const Layout& layout) {
    out_ += fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"monospace\" font-size=\"{2}\" fill=\"{3}\">\n", layout.width, layout.height, kFontSize, hex(kInk));
    out_ += "<linearGradient id=\"scale\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">";
    for (std::size_t i = 0; i <= kSteps; ++i) out_ += fmt::format("<stop offset=\"{}\" stop-color=\"{}\"/>", static_cast<double>(i) / kSteps, hex(kScale[i]));
    out_ += "</linearGradient>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
  }

  void text(int x, int y, Anchor anchor, const std::vector<std::string>& characters) override {
    const char* anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" dy=\".35em\"{}>{}</text>\n", x, y, anchors[static_cast<std::size_t>(anchor)], escaped(characters));
  }
  void upward_text(int x, int y, const std::vector<std::string>& characters) override {
    out_ += fmt::format("<text transform=\"translate({} {})rotate(-90)\" dy=\".35em\" text-anchor=\"end\">{}</text>\n", x, y, escaped(characters));
  }
  void panel(int x, int y, const Layout& layout, std::span<const float> weights) override {
    frame(x, y, layout.panel_width, layout.panel_height, "#fff");
    out_ += fmt::format("<g transform=\"translate({} {})scale({})\" shape-rendering=\"crispEdges\">\n", x, y, layout.cell);
    for (std::size_t row = 0; row < layout.rows; ++row) {
      for (std::size_t column = 0; column < layout.columns; ++column) {
        const float weight = weights[row * layout.columns + column];
        if (is_visible(weight)) out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"1\" height=\"1\" fill=\"{}\"/>\n", column, row, hex(color_of(weight)));
      }
    }
    out_ += "</g>\n";
  }
  void legend(int x, int y, int height) override { frame(x, y, kBarWidth, height, "url(#scale)"); }

  std::string finish() { return std::move(out_) + "</svg>\n"; }

 private:
  void frame(int x, int y, int width, int height, const char* fill) {
    out_ += fmt::format("<rect x=\"{}.5\" y=\"{}.5\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n", x - 1, y - 1, width + 1, height + 1, fill, hex(kFrame));
  }
  static std::string escaped(const std::vector<std::string>& characters) {
    std::string out;
    for (const std::string& character : characters) out += character == "&" ? "&amp;" : character == "<" ? "&lt;" : character == ">" ? "&gt;" : character;
    return out;
  }

  std::string out_;
};

class PngCanvas : public Canvas {
 public:
  explicit PngCanvas(const Layout& layout)
      : scale_(4 * layout.width * layout.height <= kMaxFinePixels ? 2 : 1),
        width_(static_cast<int>(layout.width) * scale_), height_(static_cast<int>(layout.height) * scale_),
        pixels_(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_), kScale[0]) {}

  void text(int x, int y, Anchor anchor, const std::vector<std::string>& characters) override {
    std::string ascii = ascii_of(characters);
    const int width = stb_easy_font_width(ascii.data()) * scale_;
    const int left = x * scale_ - (anchor == Anchor::kLeft ? 0 : anchor == Anchor::kMiddle ? width / 2 : width);
    for (const Box& box : strokes(ascii)) fill(left + box.x * scale_, y * scale_ + (box.y - kFontMiddle) * scale_, box.width * scale_, box.height * scale_, kInk);
  }
  void upward_text(int x, int y, const std::vector<std::string>& characters) override {
    std::string ascii = ascii_of(characters);
    const int end = stb_easy_font_width(ascii.data());
    for (const Box& box : strokes(ascii)) {
      fill(x * scale_ + (box.y - kFontMiddle) * scale_, y * scale_ + (end - box.x - box.width) * scale_, box.height * scale_, box.width * scale_, kInk);
    }
  }
  void panel(int x, int y, const Layout& layout, std::span<const float> weights) override {
    frame(x, y, layout.panel_width, layout.panel_height);
    const int cell = layout.cell * scale_;
    for (std::size_t row = 0; row < layout.rows; ++row) {
      for (std::size_t column = 0; column < layout.columns; ++column) {
        const float weight = weights[row * layout.columns + column];
        if (is_visible(weight)) fill(x * scale_ + static_cast<int>(column) * cell, y * scale_ + static_cast<int>(row) * cell, cell, cell, color_of(weight));
      }
    }
  }
  void legend(int x, int y, int height) override {
    frame(x, y, kBarWidth, height);
    const int n = height * scale_;
    for (int i = 0; i < n; ++i) fill(x * scale_, y * scale_ + i, kBarWidth * scale_, 1, color_of(1 - (static_cast<float>(i) + 0.5f) / static_cast<float>(n)));
  }

  Result<std::vector<std::byte>> finish() {
    std::vector<std::byte> png;
    const auto append = [](void* context, void* data, int n_bytes) {
      const auto* bytes = static_cast<const std::byte*>(data);
      static_cast<std::vector<std::byte>*>(context)->insert(static_cast<std::vector<std::byte>*>(context)->end(), bytes, bytes + n_bytes);
    };
    if (!stbi_write_png_to_func(append, &png, width_, height_, 3, pixels_.data(), 3 * width_)) {
      return Status(StatusCode::kOutOfMemory, fmt::format("heat map: there is no memory for a PNG of {} x {} pixels", width_, height_));
    }
    return png;
  }

 private:
  static constexpr int kFontMiddle = 4;  ///< of its letters, below the top of a line
  struct Box {
    int x, y, width, height;
  };

  static std::string ascii_of(const std::vector<std::string>& characters) {
    std::string ascii;
    for (const std::string& character : characters) ascii += static_cast<unsigned char>(character[0]) < 0x80 ? character : "?";
    return ascii;
  }
  static std::vector<Box> strokes(std::string& ascii) {
    struct Corner {
      float x, y, z;
      std::uint8_t color[4];
    };
    std::vector<Corner> corners(ascii.size() * 128);  // no letter has more than 31 strokes of four corners
    const int n = stb_easy_font_print(0, 0, ascii.data(), nullptr, corners.data(), static_cast<int>(corners.size() * sizeof(Corner)));
    std::vector<Box> boxes;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const Corner &first = corners[4 * i], &opposite = corners[4 * i + 2];
      boxes.push_back({static_cast<int>(first.x), static_cast<int>(first.y), static_cast<int>(opposite.x - first.x), static_cast<int>(opposite.y - first.y)});
    }
    return boxes;
  }

  void frame(int x, int y, int width, int height) {
    fill(x * scale_ - 1, y * scale_ - 1, width * scale_ + 2, height * scale_ + 2, kFrame);
    fill(x * scale_, y * scale_, width * scale_, height * scale_, kScale[0]);
  }
  void fill(int x, int y, int width, int height, const Color& color) {
    const int begin = std::clamp(x, 0, width_), end = std::clamp(x + width, 0, width_);
    for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row) {
      const auto line = pixels_.begin() + std::ptrdiff_t{row} * width_;
      std::fill(line + begin, line + end, color);
    }
  }

  int scale_, width_, height_;
  std::vector<Color> pixels_;
};

}  // namespace

Status check_heat_map(const HeatMap& map) {
  const auto error = [](const std::string& what) { return Status(StatusCode::kInvalidArgument, "heat map: " + what); };
  const std::size_t rows = map.row_labels.size(), columns = map.column_labels.size();
  if (rows == 0 || columns == 0 || map.panels.empty()) return error("there is nothing to draw");
  if (rows > kMaxCells || columns > kMaxCells) return error(fmt::format("{} x {} cells a panel, but {} x {} are the most that can be drawn", rows, columns, kMaxCells, kMaxCells));
  for (std::size_t i = 0; i < map.panels.size(); ++i) {
    const std::size_t n = map.panels[i].weights.size();
    if (n != rows * columns) return error(fmt::format("panel {} has {} weights instead of {} x {}", i, n, rows, columns));
  }
  const Layout layout = lay_out(map);
  if (layout.width * layout.height > kMaxPixels) return error(fmt::format("its picture would be {} x {} pixels, but 64 million are the most that can be drawn", layout.width, layout.height));
  return {};
}

std::string heat_map_svg(const HeatMap& map) {
  const Layout layout = lay_out(map);
  SvgCanvas canvas(layout);
  draw(map, layout, canvas);
  return canvas.finish();
}

Result<std::vector<std::byte>> heat_map_png(const HeatMap& map) {
  RONDO_TRY(check_heat_map(map));
  const Layout layout = lay_out(map);
  PngCanvas canvas(layout);
  draw(map, layout, canvas);
  return canvas.finish();
}

std::string heat_map_json(const HeatMap& map) {
  // Of floats, which are written in as few digits as tell them apart.
  using Json = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t, float>;
  const std::size_t columns = map.column_labels.size();
  Json panels = Json::array();
  for (const HeatMap::Panel& panel : map.panels) {
    Json rows = Json::array();
    for (std::size_t row = 0; row < map.row_labels.size(); ++row) rows.push_back(std::span(panel.weights).subspan(row * columns, columns));
    panels.push_back({{"title", panel.title}, {"weights", std::move(rows)}});
  }
  return Json{{"title", map.title}, {"rows", map.row_labels}, {"columns", map.column_labels}, {"panels", std::move(panels)}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status write_heat_map(const HeatMap& map, const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  const auto error = [&](const std::string& what) { return Status(StatusCode::kInvalidArgument, fmt::format("{}: {}", path, what)); };
  if (extension != ".svg" && extension != ".png" && extension != ".json") return error("pictures are written as .svg, .png or .json");
  if (const Status status = check_heat_map(map); !status.ok()) return status.with_prefix(path);
  const std::size_t n_cells = map.panels.size() * map.panels[0].weights.size();
  if (extension == ".svg" && n_cells > kMaxSvgCells) return error(fmt::format("heat map: {} cells, but {} are the most for an SVG; a .png can hold them", n_cells, kMaxSvgCells));
  models::NewFile file(path);
  RONDO_TRY(file.create());  // a path that can't be written is found out before anything is drawn
  if (extension == ".png") {
    const Result<std::vector<std::byte>> png = heat_map_png(map);
    if (!png.ok()) return png.status().with_prefix(path);
    RONDO_TRY(file.write(*png));
  } else {
    const std::string text = extension == ".svg" ? heat_map_svg(map) : heat_map_json(map);
    RONDO_TRY(file.write(std::as_bytes(std::span(text))));
  }
  return file.commit();
}

}  // namespace rondo::tools
