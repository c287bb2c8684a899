#include "models/formats/hugging_face_images.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "models/formats/hugging_face_folder.h"
#include "models/formats/json_file.h"
#include "models/image.h"
#include "models/json.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using json = nlohmann::json;
using Values = std::array<double, 3>;

constexpr std::uint32_t kMostSide = 1 << 14;

/// What an image processor does where its file says nothing.
struct Processor {
  const char* name;        ///< "ViT" of ViTImageProcessor
  const char* model_type;  ///< whose images it is for where the file does not name it
  std::uint32_t size;
  bool keeps_shape;        ///< `size` as a number is the shorter side's
  std::uint32_t crop;
  bool crops;
  Resampling resampling;
  Values mean, deviation;
};
constexpr Values kHalves = {0.5, 0.5, 0.5};
constexpr Processor kProcessors[] = {
    {"ViT", "vit", 224, false, 224, false, Resampling::kBilinear, kHalves, kHalves},
    {"DeiT", "deit", 256, false, 224, true, Resampling::kBicubic, kHalves, kHalves},
    {"CLIP", "clip", 224, true, 224, true, Resampling::kBicubic, {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}},
};

class Reader {
 public:
  Reader(const FolderConfig& config, std::string_view model_type, std::uint32_t channels, GgufWriter& writer)
      : config_(config), processor_(find(&Processor::model_type, model_type)), channels_(channels), writer_(writer) {}

  Status write() {
    RONDO_TRY(choose_processor());
    RONDO_TRY(write_sizes());
    RONDO_TRY(write_numbers());
    if (!refusal_.empty()) writer_.string("rondo.image_refusal", refusal_);
    return {};
  }

 private:
  /// A size of `size` or `crop_size`: a shorter side, or both.
  struct Size {
    std::uint32_t shortest_edge = 0, height = 0, width = 0;
  };

  /// The first where there is none.
  static const Processor& find(const char* Processor::*member, std::string_view text) {
    const auto found = std::find_if(std::begin(kProcessors), std::end(kProcessors), [&](const Processor& each) { return each.*member == text; });
    return found == std::end(kProcessors) ? kProcessors[0] : *found;
  }

  void refuse(const char* field, const std::string& what) {
    if (refusal_.empty()) refusal_ = fmt::format("preprocessor_config.json: '{}' {}, which is not there yet", field, what);
  }

  Status choose_processor() {
    const char* field = config_.has("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
    RONDO_ASSIGN(const std::string type, config_.string_or(config_.value(), field, ""));
    if (type.empty()) return {};
    for (const char* kind : {"ImageProcessor", "ImageProcessorFast", "FeatureExtractor"}) {
      if (!type.ends_with(kind)) continue;
      const std::string name = type.substr(0, type.size() - std::string_view(kind).size());
      processor_ = find(&Processor::name, name);
      if (name == processor_.name) return {};
    }
    refuse(field, fmt::format("is '{}'", printable(type)));
    return {};
  }

  Result<std::uint32_t> side(const FolderConfig& object, const char* field) const {
    RONDO_ASSIGN(const std::uint32_t value, object.need({field}));
    RONDO_TRY(object.check_range(field, value, kMostSide));
    return value;
  }

  Result<Size> read_size(const char* field, bool keeps_shape, std::uint32_t usual) {
    const auto of_number = [&](std::uint32_t value) { return keeps_shape ? Size{value, 0, 0} : Size{0, value, value}; };
    if (!config_.has(field)) return of_number(usual);
    const json& found = *config_.value().find(field);
    if (found.is_object()) {
      const FolderConfig object(found, config_.within(field));
      if (object.has("height") && object.has("width")) {
        RONDO_ASSIGN(const std::uint32_t height, side(object, "height"));
        RONDO_ASSIGN(const std::uint32_t width, side(object, "width"));
        return Size{0, height, width};
      }
      if (object.has("shortest_edge")) {
        RONDO_ASSIGN(const std::uint32_t edge, side(object, "shortest_edge"));
        return Size{edge, 0, 0};
      }
      refuse(field, "has neither height and width nor shortest_edge");
      return of_number(usual);
    }
    if (!found.is_array()) {
      RONDO_ASSIGN(const std::uint32_t value, side(config_, field));
      return of_number(value);
    }
    if (found.size() != 2) return config_.wrong(field, "must be a number, two, or an object");
    const FolderConfig pair(json{{"height", found[0]}, {"width", found[1]}}, config_.within(field));
    RONDO_ASSIGN(const std::uint32_t height, side(pair, "height"));
    RONDO_ASSIGN(const std::uint32_t width, side(pair, "width"));
    return Size{0, height, width};
  }

  Status write_sizes() {
    RONDO_ASSIGN(const bool resizes, config_.boolean_or("do_resize", true));
    RONDO_ASSIGN(const bool crops, config_.boolean_or("do_center_crop", processor_.crops));
    RONDO_ASSIGN(const std::optional<std::uint32_t> resampling, config_.count({"resample"}));
    if (resampling && *resampling >= kResamplings) return config_.wrong("resample", fmt::format("is {} but must be in [0, {}]", *resampling, kResamplings - 1));
    writer_.boolean("rondo.image_resizes", resizes);
    writer_.u32("rondo.image_resampling", resampling.value_or(static_cast<std::uint32_t>(processor_.resampling)));
    if (resizes) {
      RONDO_ASSIGN(const Size size, read_size("size", processor_.keeps_shape, processor_.size));
      writer_.u32("rondo.image_shortest_edge", size.shortest_edge);
      writer_.u32("rondo.image_resize_height", size.height);
      writer_.u32("rondo.image_resize_width", size.width);
    }
    if (!crops) return {};
    RONDO_ASSIGN(const Size crop, read_size("crop_size", false, processor_.crop));
    if (crop.shortest_edge > 0) refuse("crop_size", "has a shortest_edge");
    writer_.u32("rondo.image_crop_height", crop.height);
    writer_.u32("rondo.image_crop_width", crop.width);
    return {};
  }

  /// A number for each channel, or one for all.
  Result<Values> read_values(const char* field, const Values& usual) {
    if (!config_.has(field)) return usual;
    const json& found = *config_.value().find(field);
    if (!found.is_array()) {
      RONDO_ASSIGN(const std::optional<double> value, config_.number({field}));
      return Values{*value, *value, *value};
    }
    Values values{};
    if (found.size() != values.size() && found.size() != channels_) return config_.later(field, fmt::format("has {} numbers instead of {}", found.size(), channels_));
    for (std::size_t i = 0; i < std::min(values.size(), found.size()); ++i) {
      RONDO_ASSIGN(const std::optional<double> value, config_.number(json{{field, found[i]}}, {field}));
      if (!value) return config_.wrong(field, "must be a number for each channel");
      values[i] = *value;
    }
    for (std::size_t i = found.size(); i < values.size(); ++i) values[i] = values[0];
    return values;
  }

  Status write_numbers() {
    RONDO_ASSIGN(const bool rescales, config_.boolean_or("do_rescale", true));
    RONDO_ASSIGN(const bool normalizes, config_.boolean_or("do_normalize", true));
    RONDO_ASSIGN(const std::optional<double> factor, config_.number({"rescale_factor"}));
    writer_.f64("rondo.image_scale", rescales ? factor.value_or(1.0 / 255) : 1);
    Values mean = {0, 0, 0}, deviation = {1, 1, 1};
    if (normalizes) {
      RONDO_ASSIGN(mean, read_values("image_mean", processor_.mean));
      RONDO_ASSIGN(deviation, read_values("image_std", processor_.deviation));
    }
    for (const auto& [field, values] : {std::pair{"image_mean", mean}, std::pair{"image_std", deviation}}) {
      if (channels_ == 1 && (values[1] != values[0] || values[2] != values[0])) refuse(field, "has different numbers for one channel");
    }
    for (std::size_t i = 0; i < mean.size(); ++i) {
      writer_.f32(fmt::format("rondo.image_mean.{}", i), static_cast<float>(mean[i]));
      writer_.f32(fmt::format("rondo.image_deviation.{}", i), static_cast<float>(deviation[i]));
    }
    return {};
  }

  const FolderConfig& config_;
  Processor processor_;
  std::uint32_t channels_;
  GgufWriter& writer_;
  std::string refusal_;
};

}  // namespace

Status write_image_preprocessing(const std::string& folder, std::string_view model_type, std::uint32_t channels, GgufWriter& writer) {
  RONDO_ASSIGN(const JsonDocument document, JsonDocument::read(folder + "/preprocessor_config.json"));
  if (document.value().is_null()) return {};
  const FolderConfig config(document.value(), document.name());
  return Reader(config, model_type, channels, writer).write();
}

}  // namespace rondo::models
