// Pictures of attention: what is drawn is what was given, in each format, and nothing else is left on the disk.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include "tools/rondo/heat_map.h"

namespace rondo::tools::heat_map_test {
namespace {

using Color = std::array<std::uint8_t, 3>;
constexpr Color kWhite = {255, 255, 255}, kMost = {0x00, 0x2b, 0x5e};

/// Every row another ramp from 0 to 1.
HeatMap made_up(std::size_t rows, std::size_t columns, std::size_t panels) {
  HeatMap map;
  map.title = "layer 0";
  for (std::size_t i = 0; i < rows; ++i) map.row_labels.push_back("row" + std::to_string(i));
  for (std::size_t i = 0; i < columns; ++i) map.column_labels.push_back("column" + std::to_string(i));
  for (std::size_t panel = 0; panel < panels; ++panel) {
    HeatMap::Panel& made = map.panels.emplace_back();
    made.title = "head " + std::to_string(panel);
    for (std::size_t i = 0; i < rows * columns; ++i) made.weights.push_back(static_cast<float>((i * (panel + 3)) % 11) / 10);
  }
  return map;
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// What keeps a text from being XML without a prologue, or "": tags that nest, attributes in quotation marks, no bare & or <.
std::string xml_error(std::string_view text) {
  std::vector<std::string> open;
  bool had_root = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '&') {
      const std::string_view rest = text.substr(at);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;")) return "a bare & at " + std::to_string(at);
    }
    if (static_cast<unsigned char>(text[at]) < 0x20 && text[at] != '\n') return "a control character";
    if (text[at] != '<') {
      if (open.empty() && text[at] != '\n') return "text outside of the root";
      ++at;
      continue;
    }
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) return "a tag that does not end";
    std::string tag(text.substr(at + 1, end - at - 1));
    at = end + 1;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "</" + tag.substr(1) + "> in the wrong place";
      open.pop_back();
      continue;
    }
    if (open.empty() && had_root) return "a second root";
    had_root = true;
    if (tag.find('<') != std::string::npos || count(tag, "\"") % 2 != 0 || count(tag, "=") != count(tag, "=\"")) return "a tag that is none: " + tag;
    if (!tag.ends_with('/')) open.push_back(tag.substr(0, tag.find(' ')));
  }
  return !had_root ? "no root" : open.empty() ? "" : open.back() + " is left open";
}

/// Where the cells of each panel lie, as the SVG says.
struct Place {
  int x = 0, y = 0, cell = 0;
};
std::vector<Place> places_in(const std::string& svg) {
  std::vector<Place> places;
  for (std::size_t at = svg.find("<g transform"); at != std::string::npos; at = svg.find("<g transform", at + 1)) {
    Place& place = places.emplace_back();
    EXPECT_EQ(std::sscanf(svg.c_str() + at, "<g transform=\"translate(%d %d)scale(%d)\"", &place.x, &place.y, &place.cell), 3);
  }
  return places;
}

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> bytes;
  Color at(int x, int y) const {
    const auto first = 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x));
    return {bytes.at(first), bytes.at(first + 1), bytes.at(first + 2)};
  }
};
Picture decode(const std::vector<std::byte>& png) {
  Picture picture;
  int channels = 0;
  stbi_uc* bytes = stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(png.data()), static_cast<int>(png.size()), &picture.width, &picture.height, &channels, 0);
  EXPECT_NE(bytes, nullptr);
  EXPECT_EQ(channels, 3);
  if (bytes) picture.bytes.assign(bytes, bytes + std::size_t{3} * static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height));
  stbi_image_free(bytes);
  return picture;
}

TEST(HeatMapTest, AnSvgHasARectangleForEachWeightThatCanBeSeen) {
  for (const std::size_t panels : {1U, 4U, 5U, 12U}) {
    const HeatMap map = made_up(7, 13, panels);
    std::size_t seen = 0;
    for (const HeatMap::Panel& panel : map.panels) seen += static_cast<std::size_t>(std::count_if(panel.weights.begin(), panel.weights.end(), [](float weight) { return weight >= 1.0f / 255; }));
    const std::string svg = heat_map_svg(map);
    EXPECT_EQ(xml_error(svg), "");
    EXPECT_EQ(count(svg, "<rect "), seen + panels + 2) << "with a frame for each panel, the ground and the legend";
    EXPECT_EQ(count(svg, ">row6</text>"), panels == 1 ? 1U : panels == 4 ? 2U : panels == 5 ? 2U : 3U) << "on the outer axes only";
    EXPECT_EQ(places_in(svg).size(), panels);
  }
  EXPECT_NE(xml_error(heat_map_svg(made_up(2, 2, 1)) + "<g>"), "");
}

TEST(HeatMapTest, LabelsMayHoldAnything) {
  HeatMap map = made_up(4, 4, 1);
  map.title = "a < b && \"c\"";
  map.row_labels = {"</s>", "line\nend", "\xff\xfe", "ein sehr langes Wort, das niemand lesen will"};
  map.column_labels = {"\xE2\x96\x81the", "&amp;", std::string("\0", 1), ""};
  const std::string svg = heat_map_svg(map);
  EXPECT_EQ(xml_error(svg), "");
  for (const char* shown : {">a &lt; b &amp;&amp; \"c\"<", ">&lt;/s&gt;<", ">line\\x0aend<", ">\xEF\xBF\xBD\xEF\xBF\xBD<", ">ein sehr langes Wort, d...<", ">\xE2\x96\x81the<", ">&amp;amp;<", ">\\x00<"}) {
    EXPECT_NE(svg.find(shown), std::string::npos) << shown;
  }
  const Result<std::vector<std::byte>> png = heat_map_png(map);
  ASSERT_TRUE(png.ok()) << png.status().message();
  decode(*png);
  EXPECT_TRUE(nlohmann::json::accept(heat_map_json(map)));
}

TEST(HeatMapTest, APngShowsEachWeightInItsColor) {
  for (const std::size_t panels : {1U, 4U}) {
    const HeatMap map = made_up(11, 5, panels);
    const std::vector<Place> places = places_in(heat_map_svg(map));
    const Result<std::vector<std::byte>> png = heat_map_png(map);
    ASSERT_TRUE(png.ok()) << png.status().message();
    const Picture picture = decode(*png);
    ASSERT_EQ(places.size(), panels);
    for (std::size_t panel = 0; panel < panels; ++panel) {
      for (std::size_t i = 0; i < map.panels[panel].weights.size(); ++i) {
        const int column = static_cast<int>(i % 5), row = static_cast<int>(i / 5);
        const auto [x, y, cell] = places[panel];
        const Color color = picture.at(2 * (x + column * cell) + cell, 2 * (y + row * cell) + cell);
        const float weight = map.panels[panel].weights[i];
        if (weight == 0) EXPECT_EQ(color, kWhite);
        else if (weight == 0.5f) EXPECT_EQ(color, (Color{0x53, 0x93, 0xcc}));
        else if (weight == 1) EXPECT_EQ(color, kMost);
        else EXPECT_TRUE(color < kWhite && color > kMost) << weight;
      }
    }
  }
}

TEST(HeatMapTest, MoreWeightIsDarkerAndBothFormatsAgree) {
  HeatMap map = made_up(1, 256, 1);
  for (std::size_t i = 0; i < 256; ++i) map.panels[0].weights[i] = static_cast<float>(i) / 255;
  const std::string svg = heat_map_svg(map);
  const auto [x, y, cell] = places_in(svg).at(0);
  const Result<std::vector<std::byte>> png = heat_map_png(map);
  ASSERT_TRUE(png.ok()) << png.status().message();
  const Picture picture = decode(*png);
  std::vector<double> greys;
  for (int i = 0; i < 256; ++i) {
    const Color color = picture.at(2 * (x + i * cell) + cell, 2 * y + cell);
    greys.push_back(0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]);
    if (i > 1) {
      EXPECT_LT(greys.back(), greys.end()[-3]) << i;
    }
    char fill[64];
    std::snprintf(fill, sizeof(fill), "<rect x=\"%d\" y=\"0\" width=\"1\" height=\"1\" fill=\"#%02x%02x%02x\"/>", i, color[0], color[1], color[2]);
    EXPECT_EQ(svg.find(fill) != std::string::npos, i > 0) << fill;
  }
}

TEST(HeatMapTest, JsonKeepsEveryBit) {
  HeatMap map = made_up(3, 4, 2);
  map.panels[0].weights[5] = 0.1f;
  map.panels[1].weights[7] = 1.17549435e-38f;
  map.panels[1].weights[8] = 0.333333343f;
  const nlohmann::json read = nlohmann::json::parse(heat_map_json(map));
  EXPECT_EQ(read["title"], map.title);
  EXPECT_EQ(read["rows"], map.row_labels);
  EXPECT_EQ(read["columns"], map.column_labels);
  for (std::size_t panel = 0; panel < 2; ++panel) {
    EXPECT_EQ(read["panels"][panel]["title"], map.panels[panel].title);
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(read["panels"][panel]["weights"][i / 4][i % 4].get<float>(), map.panels[panel].weights[i]);
  }
}

TEST(HeatMapTest, WhatCannotBeDrawnIsRefused) {
  const auto refusal = [](const HeatMap& map) { return check_heat_map(map).message(); };
  EXPECT_EQ(refusal(HeatMap()), "heat map: there is nothing to draw");
  HeatMap map = made_up(3, 4, 2);
  EXPECT_EQ(refusal(map), "");
  map.panels[1].weights.pop_back();
  EXPECT_EQ(refusal(map), "heat map: panel 1 has 11 weights instead of 3 x 4");
  map = made_up(4097, 1, 1);
  EXPECT_EQ(refusal(map), "heat map: 4097 x 1 cells a panel, but 4096 x 4096 are the most that can be drawn");
  map = made_up(4096, 1, 1);
  EXPECT_EQ(refusal(map), "");
  map.panels.resize(1000, map.panels[0]);
  EXPECT_EQ(heat_map_png(map).status().message(), refusal(map));
  EXPECT_NE(refusal(map).find("but 64 million are the most that can be drawn"), std::string::npos) << refusal(map);
}

class HeatMapFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rondo_heat_map.XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t n_files() const { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }

  std::string folder_;
};

TEST_F(HeatMapFileTest, TheExtensionChoosesTheFormat) {
  const HeatMap map = made_up(3, 4, 2);
  for (const char* name : {"a.svg", "a.png", "a.json"}) ASSERT_TRUE(write_heat_map(map, path(name)).ok());
  EXPECT_EQ(content(path("a.svg")), heat_map_svg(map));
  EXPECT_EQ(content(path("a.json")), heat_map_json(map));
  EXPECT_EQ(content(path("a.png")).substr(1, 3), "PNG");
  EXPECT_EQ(n_files(), 3U) << "nothing else is left";
}

TEST_F(HeatMapFileTest, OtherPathsAreRefusedByName) {
  const HeatMap map = made_up(3, 4, 1);
  for (const char* name : {"a.jpg", "a", "svg", "a.SVG", "a.svg.gz", ""}) {
    EXPECT_EQ(write_heat_map(map, path(name)).message(), path(name) + ": pictures are written as .svg, .png or .json");
  }
  EXPECT_EQ(write_heat_map(map, path("absent/a.png")).message(), path("absent/a.png") + ": can't be written: No such file or directory");
  std::filesystem::create_directory(path("folder.png"));
  EXPECT_EQ(write_heat_map(map, path("folder.png")).message(), path("folder.png") + ": is not a regular file, so it can't be replaced by one");
  EXPECT_EQ(write_heat_map(HeatMap(), path("a.png")).message(), path("a.png") + ": heat map: there is nothing to draw");
  EXPECT_EQ(write_heat_map(made_up(1001, 1000, 1), path("a.svg")).message(), path("a.svg") + ": heat map: 1001000 cells, but 1000000 are the most for an SVG; a .png can hold them");
  EXPECT_EQ(n_files(), 1U);
}

}  // namespace
}  // namespace rondo::tools::heat_map_test
