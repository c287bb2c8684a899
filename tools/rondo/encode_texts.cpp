#include "tools/rondo/encode_texts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <unistd.h>

#include <rondo/translator.h>

#include "models/loaded_model.h"
#include "models/model_loader.h"
#include "runtime/fmt.h"

namespace rondo::tools {

namespace {

/// What has been done of `n`, after a second, on a terminal that shows no results.
class ProgressBar {
 public:
  explicit ProgressBar(std::size_t n) : n_(n), begun_s_(now_s()), terminal_(isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) == 0) {}
  ~ProgressBar() {
    if (shown_) std::fprintf(stderr, "\r%*s\r", kWidth + 40, "");
  }
  void show(std::size_t done) {
    if (!terminal_ || now_s() - begun_s_ < 1) return;
    const auto filled = static_cast<int>(done * kWidth / std::max<std::size_t>(n_, 1));
    std::fprintf(stderr, "\r[%.*s%*s] %zu of %zu", filled, "########################################", kWidth - filled, "", done, n_);
    shown_ = true;
  }

 private:
  static constexpr int kWidth = 40;
  std::size_t n_;
  double begun_s_;
  bool terminal_, shown_ = false;
};

const char* words_of(ModelHead head, bool images) {
  switch (head) {
    case ModelHead::kMaskedWords: return "a head that guesses masked words, as that of BertForMaskedLM";
    case ModelHead::kAnswers: return "a head that answers questions, as that of BertForQuestionAnswering";
    case ModelHead::kTokenLabels: return "a head that labels tokens, as that of BertForTokenClassification";
    case ModelHead::kLabels: return images ? "a head that labels images, as that of ViTForImageClassification" : "a head that labels texts, as that of BertForSequenceClassification";
    default: return images ? "an encoder of images, such as ViT or CLIP" : "an encoder of texts, such as BERT, T5 or CLIP";
  }
}

}  // namespace

Result<std::vector<std::string>> read_lines(const TextFlags& text) {
  RONDO_ASSIGN(std::string all, text.read());
  if (!text.has_file) return std::vector<std::string>{std::move(all)};
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    lines.push_back(all.substr(begin, end - begin));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    begin = end + 1;
  }
  if (lines.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("{}: there is no line in it", text.file));
  return lines;
}

Result<std::unique_ptr<Workbench>> open_encoder(const GlobalFlags& flags, const std::string& path, OpenOptions open, ModelHead head, bool images) {
  open.head = head;
  Workbench::Options options;
  options.accepts = [&](const Model& model) -> Status {
    const models::Network& network = model.internal()->model().network();
    const bool takes = network.find(images ? models::Role::kEncodeImage : models::Role::kEncode);
    if (takes && (head == ModelHead::kNone || network.facts.head == head)) return {};
    const char* const input = takes ? "" : images ? ", which takes no images" : network.find(models::Role::kEncodeImage) ? ", which takes images" : ", which makes tokens";
    return Status(StatusCode::kUnsupported, fmt::format("{}: is a {}{}; this needs {}", path, network.facts.architecture, input, words_of(head, images)));
  };
  return Workbench::open(flags, path, open, options);
}

std::uint32_t most_tokens(const ModelInfo& info) { return std::max(info.context, info.source_context); }

std::string name_of_line(const TextFlags& text, std::size_t line) { return text.has_file ? fmt::format("line {} of {}", line + 1, text.file) : "the text"; }

Result<std::vector<std::int32_t>> text_tokens(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options, std::uint32_t max_tokens, TooLong too_long, const std::string& what) {
  std::vector<std::int32_t> tokens = tokenizer.encode(text, options);
  if (tokens.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("{} is empty, and the model puts nothing around it", what));
  if (tokens.size() <= max_tokens) return tokens;
  if (too_long != TooLong::kCut) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{} has {} tokens but the model takes {}; shorten it{}", what, tokens.size(), max_tokens, too_long == TooLong::kRefused ? "" : ", or --truncate"));
  }
  tokens[max_tokens - 1] = tokens.back();
  tokens.resize(max_tokens);
  return tokens;
}

Status need_tokenizer(const Model& model, const std::string& path) {
  if (model.tokenizer().n_vocab() > 0) return {};
  RONDO_ASSIGN(const ByteSource source, open_model(path));
  RONDO_TRY(Tokenizer::create(source).status());  // says why
  return Status(StatusCode::kNotFound, fmt::format("{}: has no tokenizer", path));
}

Status check_numbers(const Encoding& encoding, const std::string& path) {
  if (std::all_of(encoding.values.begin(), encoding.values.end(), [](float value) { return std::isfinite(value); })) return {};
  return Status(StatusCode::kInternal, fmt::format("{}: what the model computes is beyond f32; its weights or preprocessor_config.json may be damaged", path));
}

template <typename Item, typename Runner>
Status take_all(Runner& runner, std::size_t n, const std::function<Status(std::size_t, Item)>& take) {
  keep_results();
  ProgressBar bar(n);
  std::size_t done = 0;
  while (!runner.idle()) {
    if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
    RONDO_TRY(runner.advance());
    const Status waited = runner.wait(std::chrono::milliseconds(100));
    if (!waited.ok() && waited.code() != StatusCode::kTimeout) return waited;
    for (;;) {
      Item item;
      RONDO_ASSIGN(const bool taken, runner.take(item));
      if (!taken) break;
      RONDO_TRY(take(done++, std::move(item)));
    }
    bar.show(done);
  }
  return {};
}

template Status take_all(Encoder& encoder, std::size_t n, const std::function<Status(std::size_t, Encoding)>& take);
template Status take_all(ImageEncoder& encoder, std::size_t n, const std::function<Status(std::size_t, Encoding)>& take);
template Status take_all(Translator& translator, std::size_t n, const std::function<Status(std::size_t, Translation)>& take);

}  // namespace rondo::tools
