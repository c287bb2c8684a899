// rondo attention: a picture of what each token of a text, or patch of an image, attends to.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>

#include "runtime/fmt.h"
#include "models/utf8.h"
#include "tools/rondo/encode_texts.h"
#include "tools/rondo/heat_map.h"
#include "tools/rondo/image_file.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

/// Tokens as a vocabulary spells them, spaces before words left out.
std::vector<std::string> labels_of_tokens(const Tokenizer& tokenizer, std::span<const std::int32_t> tokens) {
  constexpr std::string_view kSpaces[] = {"\xE2\x96\x81", "\xC4\xA0"};  // SentencePiece's, and that of bytes as letters
  std::vector<std::string> labels;
  for (const std::int32_t token : tokens) {
    std::string label(tokenizer.spelling(token));
    for (const std::string_view space : kSpaces) {
      if (label.starts_with(space) && label.size() > space.size()) label.erase(0, space.size());
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

/// What comes before the patches (a class token, and one more of DeiT), and rows and columns of patches, which are square.
std::vector<std::string> labels_of_patches(const ImageShape& shape, std::uint32_t n_rows) {
  std::uint32_t columns = n_rows, before = 0;
  for (const std::uint32_t more : {1u, 2u, 0u}) {
    for (std::uint32_t side = 1; side <= std::min(shape.width, shape.height); ++side) {
      if (std::uint64_t{shape.height / side} * (shape.width / side) + more != n_rows || shape.height % side != 0 || shape.width % side != 0) continue;
      columns = shape.width / side, before = more;
      break;
    }
    if (columns != n_rows) break;
  }
  std::vector<std::string> labels;
  for (std::uint32_t i = 0; i < before; ++i) labels.push_back(i == 0 ? "[class]" : "[distilled]");
  for (std::uint32_t i = 0; i + before < n_rows; ++i) labels.push_back(fmt::format("{},{}", i / columns, i % columns));
  return labels;
}

class Picture {
 public:
  Picture(const AttentionFlags& own, const Model& model) : own_(own), model_(model) { options_.output = EncoderOutput::kAttention, options_.max_batch = 1, options_.attention_layer = own.layer; }

  Status of_text() {
    RONDO_TRY(need_tokenizer(model_, own_.model));
    RONDO_ASSIGN(const std::string text, own_.text.read());
    RONDO_ASSIGN(const std::vector<std::int32_t> tokens, text_tokens(model_.tokenizer(), text, {}, most_tokens(model_.info()), TooLong::kRefused, "the text"));
    options_.max_tokens = static_cast<std::uint32_t>(tokens.size());
    RONDO_ASSIGN(Encoder encoder, named(Encoder::create(model_, options_)));
    RONDO_TRY(encoder.append(tokens));
    RONDO_TRY(take(encoder));
    labels_ = labels_of_tokens(model_.tokenizer(), tokens);
    return {};
  }

  Status of_image() {
    RONDO_ASSIGN(const models::Image image, read_image(own_.image));
    RONDO_ASSIGN(ImageEncoder encoder, named(ImageEncoder::create(model_, options_)));
    RONDO_TRY(encoder.append_image(image.rgb, image.width, image.height));
    RONDO_TRY(take(encoder));
    labels_ = labels_of_patches(encoder.shape(), encoding_.width);
    return {};
  }

  Result<HeatMap> map() const {
    const std::size_t tokens = encoding_.width, heads = encoding_.n_rows / tokens;
    if (own_.head && *own_.head >= heads) return Status(StatusCode::kInvalidArgument, fmt::format("--head is {} but layer {} has heads from 0 to {}", *own_.head, own_.layer, heads - 1));
    HeatMap map;
    map.row_labels = map.column_labels = labels_;
    const std::string model = std::filesystem::path(own_.model).filename().string();
    map.title = fmt::format("{}, layer {}{}", model.empty() ? own_.model : model, own_.layer, own_.head ? fmt::format(", head {}", *own_.head) : "");
    for (std::size_t head = own_.head.value_or(0); head < (own_.head ? *own_.head + 1 : heads); ++head) {
      const auto begin = encoding_.values.begin() + static_cast<std::ptrdiff_t>(head * tokens * tokens);
      map.panels.push_back({own_.head ? "" : fmt::format("head {}", head), std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(tokens * tokens))});
    }
    return map;
  }

 private:
  /// With the flag or the model that is the matter.
  template <typename AnyEncoder>
  Result<AnyEncoder> named(Result<AnyEncoder> created) const {
    if (created.ok()) return created;
    return created.status().with_prefix(created.status().code() == StatusCode::kInvalidArgument ? "--layer" : own_.model);
  }
  template <typename AnyEncoder>
  Status take(AnyEncoder& encoder) {
    return take_all<Encoding>(encoder, 1, [this](std::size_t, Encoding encoding) -> Status {
      RONDO_TRY(check_numbers(encoding, own_.model));
      encoding_ = std::move(encoding);
      return Status();
    });
  }

  const AttentionFlags& own_;
  const Model& model_;
  EncoderOptions options_;
  Encoding encoding_;
  std::vector<std::string> labels_;
};

Status draw(const GlobalFlags& flags, const AttentionFlags& own, int& closed) {
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, Workbench::open(flags, own.model, own.open, {}));
  Picture picture(own, bench->model());
  RONDO_TRY(own.text.given() ? picture.of_text() : picture.of_image());
  RONDO_ASSIGN(const HeatMap map, picture.map());
  RONDO_TRY(write_heat_map(map, own.output));
  closed = bench->close();
  return {};
}

}  // namespace

int run_attention(const GlobalFlags& flags, const AttentionFlags& own) {
  if (own.text.given() != own.image.empty()) return report("attention needs one of -p TEXT, -f FILE and --image FILE", kUsage);
  const std::string extension = std::filesystem::path(own.output).extension().string();
  if (extension != ".svg" && extension != ".png" && extension != ".json") return report(fmt::format("-o {}: pictures are written as .svg, .png or .json", own.output), kUsage);
  int closed = kDone;
  const Status done = draw(flags, own, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace rondo::tools
