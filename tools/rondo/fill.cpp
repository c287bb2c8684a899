// rondo fill: the words that a model puts where a text has its mask.
#include <algorithm>

#include <nlohmann/json.hpp>

#include <rondo/heads.h>

#include "runtime/fmt.h"
#include "tools/rondo/encode_texts.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

/// A text with masks.
struct Question {
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> masks;  ///< where in the tokens
};

/// What is guessed of one mask.
struct Guess {
  std::int32_t token = 0;
  double probability = 0;
  std::string piece;  ///< without the space before it
  std::string text;   ///< the whole, where there is one mask
};

std::string trimmed(std::string text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first);
}

class Filler {
 public:
  Filler(const FillFlags& own, const Model& model) : own_(own), model_(model), tokenizer_(model.tokenizer()) {}

  Status read(const std::vector<std::string>& lines) {
    RONDO_TRY(need_tokenizer(model_, own_.model));
    const std::int32_t mask = tokenizer_.mask();
    if (mask < 0) return Status(StatusCode::kUnsupported, fmt::format("{}: its tokenizer has no mask", own_.model));
    mask_text_ = tokenizer_.spelling(mask);
    EncodeOptions options;
    options.parse_special = true;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      Question& question = questions_.emplace_back();
      RONDO_ASSIGN(question.tokens, text_tokens(tokenizer_, lines[i], options, most_tokens(model_.info()), TooLong::kRefused, name_of_line(own_.text, i)));
      for (std::size_t at = 0; at < question.tokens.size(); ++at) {
        if (question.tokens[at] == mask) question.masks.push_back(at);
      }
      if (question.masks.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("{} has no {}, which stands for the word to fill in", name_of_line(own_.text, i), mask_text_));
      max_tokens_ = std::max(max_tokens_, static_cast<std::uint32_t>(question.tokens.size()));
    }
    return {};
  }

  Status run(const std::vector<std::string>& lines) {
    EncoderOptions options;
    options.output = EncoderOutput::kHead;
    options.max_tokens = max_tokens_;
    // Logits of all tokens come back: a batch of them shall stay small beside the model.
    constexpr std::uint64_t kMostBytes = 64 << 20;
    const std::uint64_t text_bytes = std::uint64_t{4} * max_tokens_ * model_.info().n_vocab;
    options.max_batch = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(kMostBytes / text_bytes, 1, std::min<std::uint64_t>(8, lines.size())));
    RONDO_ASSIGN(Encoder encoder, Encoder::create(model_, options));
    for (const Question& question : questions_) RONDO_TRY(encoder.append(question.tokens));
    return take_all<Encoding>(encoder, lines.size(), [&](std::size_t i, const Encoding& encoding) -> Status {
      RONDO_TRY(check_numbers(encoding, own_.model));
      print(lines[i], questions_[i], encoding);
      return Status();
    });
  }

 private:
  std::vector<Guess> guesses(const std::string& line, const Question& question, std::size_t mask, const Encoding& encoding) const {
    std::vector<Guess> all;
    const std::span<const float> logits = std::span(encoding.values).subspan(question.masks[mask] * encoding.width, encoding.width);
    for (const Choice& choice : most_probable(logits, own_.n)) {
      Guess& guess = all.emplace_back(Guess{static_cast<std::int32_t>(choice.id), choice.probability, trimmed(tokenizer_.piece(static_cast<std::int32_t>(choice.id))), ""});
      if (guess.piece.empty()) guess.piece = tokenizer_.spelling(guess.token);
      const std::size_t at = line.find(mask_text_);
      if (question.masks.size() == 1 && at != std::string::npos) guess.text = std::string(line).replace(at, mask_text_.size(), guess.piece);
    }
    return all;
  }

  void print(const std::string& line, const Question& question, const Encoding& encoding) const {
    nlohmann::json masks = nlohmann::json::array();
    for (std::size_t mask = 0; mask < question.masks.size(); ++mask) {
      nlohmann::json list = nlohmann::json::array();
      if (!own_.json && question.masks.size() > 1) fmt::print("{} {} of {}:\n", mask_text_, mask + 1, question.masks.size());
      for (const Guess& guess : guesses(line, question, mask, encoding)) {
        if (own_.json) list.push_back({{"token", guess.token}, {"piece", guess.piece}, {"probability", guess.probability}});
        else fmt::print("{:.4f}  {}\n", guess.probability, guess.text.empty() ? guess.piece : guess.text);
      }
      masks.push_back(std::move(list));
    }
    if (own_.json) fmt::print("{}\n", nlohmann::json{{"tokens", question.tokens}, {"masks", masks}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else if (questions_.size() > 1) fmt::print("\n");
  }

  const FillFlags& own_;
  const Model& model_;
  const Tokenizer& tokenizer_;
  std::string mask_text_;
  std::uint32_t max_tokens_ = 0;
  std::vector<Question> questions_;
};

Status fill(const GlobalFlags& flags, const FillFlags& own, int& closed) {
  RONDO_ASSIGN(const std::vector<std::string> lines, read_lines(own.text));
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, open_encoder(flags, own.model, own.open, ModelHead::kMaskedWords));
  Filler filler(own, bench->model());
  RONDO_TRY(filler.read(lines));
  RONDO_TRY(filler.run(lines));
  closed = bench->close();
  return {};
}

}  // namespace

int run_fill(const GlobalFlags& flags, const FillFlags& own) {
  if (!own.text.given()) return report("fill needs one of -p TEXT and -f FILE", kUsage);
  int closed = kDone;
  const Status done = fill(flags, own, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace rondo::tools
