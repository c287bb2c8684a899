// rondo classify: labels of texts or pictures, with their probabilities.
#include <nlohmann/json.hpp>

#include <rondo/heads.h>

#include "models/printable.h"
#include "runtime/fmt.h"
#include "tools/rondo/encode_texts.h"
#include "tools/rondo/image_file.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

/// The labels of one input, in words.
void print_labels(const ClassifyFlags& own, const ModelInfo& info, const std::string& name, bool named, const Encoding& encoding) {
  const std::vector<Choice> choices = most_probable(encoding.values, own.n);
  if (own.json) {
    nlohmann::json labels = nlohmann::json::array();
    for (const Choice& choice : choices) labels.push_back({{"label", info.labels[choice.id]}, {"id", choice.id}, {"probability", choice.probability}});
    nlohmann::json result = {{"labels", labels}};
    if (named) result["input"] = name;
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  if (named) fmt::print("{}\n", name);
  for (const Choice& choice : choices) fmt::print("{}{:.4f}  {}\n", named ? "  " : "", choice.probability, models::printable(info.labels[choice.id]));
}

Status classify_texts(const ClassifyFlags& own, const Model& model) {
  RONDO_ASSIGN(const std::vector<std::string> lines, read_lines(own.text));
  RONDO_TRY(need_tokenizer(model, own.model));
  const std::uint32_t most = most_tokens(model.info());
  EncoderOptions options;
  options.output = EncoderOutput::kHead;
  options.max_batch = static_cast<std::uint32_t>(std::min<std::size_t>(lines.size(), 64));
  std::vector<std::vector<std::int32_t>> texts;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    RONDO_ASSIGN(std::vector<std::int32_t> tokens, text_tokens(model.tokenizer(), lines[i], {}, most, cut_if(own.truncate), name_of_line(own.text, i)));
    options.max_tokens = std::max(options.max_tokens, static_cast<std::uint32_t>(tokens.size()));
    texts.push_back(std::move(tokens));
  }
  RONDO_ASSIGN(Encoder encoder, Encoder::create(model, options));
  for (const std::vector<std::int32_t>& text : texts) RONDO_TRY(encoder.append(text));
  return take_all<Encoding>(encoder, texts.size(), [&](std::size_t i, const Encoding& encoding) -> Status {
    RONDO_TRY(check_numbers(encoding, own.model));
    print_labels(own, model.info(), lines[i], own.text.has_file, encoding);
    return Status();
  });
}

/// Pictures are read and dropped one at a time; what the encoder keeps is of the model's own size.
Status classify_images(const ClassifyFlags& own, const Model& model) {
  EncoderOptions options;
  options.output = EncoderOutput::kHead;
  options.max_batch = static_cast<std::uint32_t>(std::min<std::size_t>(own.images.size(), 8));
  RONDO_ASSIGN(ImageEncoder encoder, ImageEncoder::create(model, options));
  for (const std::string& path : own.images) {
    RONDO_ASSIGN(const models::Image image, read_image(path));
    RONDO_TRY(encoder.append_image(image.rgb, image.width, image.height).with_prefix(path));
  }
  return take_all<Encoding>(encoder, own.images.size(), [&](std::size_t i, const Encoding& encoding) -> Status {
    RONDO_TRY(check_numbers(encoding, own.model));
    print_labels(own, model.info(), own.images[i], own.images.size() > 1, encoding);
    return Status();
  });
}

Status classify(const GlobalFlags& flags, const ClassifyFlags& own, int& closed) {
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, open_encoder(flags, own.model, own.open, ModelHead::kLabels, !own.images.empty()));
  RONDO_TRY(own.images.empty() ? classify_texts(own, bench->model()) : classify_images(own, bench->model()));
  closed = bench->close();
  return {};
}

}  // namespace

int run_classify(const GlobalFlags& flags, const ClassifyFlags& own) {
  if (own.text.given() != own.images.empty()) return report("classify needs one of -p TEXT, -f FILE and --image FILE", kUsage);
  int closed = kDone;
  const Status done = classify(flags, own, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace rondo::tools
