// rondo answer: the span of a context that answers a question.
#include <algorithm>

#include <nlohmann/json.hpp>

#include <rondo/heads.h>

#include "models/utf8.h"
#include "runtime/fmt.h"
#include "tools/rondo/encode_texts.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

/// A token of the context, and the bytes of it that it is of.
struct Piece {
  std::int32_t token = 0;
  std::size_t begin = 0, end = 0;
};

/// Part of the context behind the question, as the model is asked.
struct Window {
  std::vector<std::int32_t> tokens, types;
  std::uint32_t begin = 0, end = 0;  ///< the tokens that are the context's
  std::size_t first_piece = 0;
};

struct Found {
  double probability = 0;
  std::size_t first = 0, last = 0;  ///< pieces
};

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
/// Bytes of the sign or ideograph that `text` begins with, which is a word of its own; 0 where it begins with neither. Tokenizers have
/// tables of these; where they see words otherwise, the tokens of words are others than the text's.
std::size_t sign_bytes(std::string_view text) {
  const char c = text.front();
  if ((c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~')) return 1;
  const std::size_t n = models::utf8_character_bytes(text);
  if (n != 3) return 0;
  const std::string_view character = text.substr(0, 3);
  const bool punctuation = character >= "\u2010" && character <= "\u2027", east_asian = character >= "\u3001" && character <= "\u303d", ideograph = character >= "\u3400" && character <= "\u9fff";
  return punctuation || east_asian || ideograph ? n : 0;
}

/// The tokens of `text`, word by word, each with the bytes of its word; where the tokenizer makes others of the whole, without bytes.
std::vector<Piece> pieces_of(const Tokenizer& tokenizer, const std::string& text) {
  EncodeOptions bare;
  bare.add_bos = bare.add_eos = false;
  std::vector<Piece> pieces;
  std::vector<std::int32_t> joined;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t word = begin;
    while (word < text.size() && is_space(text[word])) ++word;
    std::size_t end = word;
    const std::string_view rest = std::string_view(text).substr(word);
    if (!rest.empty()) end += sign_bytes(rest);
    if (end == word) {
      while (end < text.size() && !is_space(text[end]) && (end == word || sign_bytes(std::string_view(text).substr(end)) == 0)) ++end;
    }
    if (end > word) {
      for (const std::int32_t token : tokenizer.encode(std::string_view(text).substr(begin, end - begin), bare)) {
        pieces.push_back({token, word, end});
        joined.push_back(token);
      }
    }
    begin = std::max(end, word);
    if (word == text.size()) break;
  }
  const std::vector<std::int32_t> whole = tokenizer.encode(text, bare);
  if (joined == whole) return pieces;
  pieces.clear();
  for (const std::int32_t token : whole) pieces.push_back({token, 0, 0});
  return pieces;
}

std::string on_one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), is_space, ' ');
  return text;
}

class Asker {
 public:
  Asker(const AnswerFlags& own, const Model& model, std::string context) : own_(own), model_(model), context_(std::move(context)) {}

  /// Cuts the context into windows that overlap by half.
  Status read() {
    const Tokenizer& tokenizer = model_.tokenizer();
    RONDO_TRY(need_tokenizer(model_, own_.model));
    pieces_ = pieces_of(tokenizer, context_);
    if (pieces_.empty()) return Status(StatusCode::kInvalidArgument, fmt::format("{}: the context is empty", own_.file));
    constexpr std::uint32_t kUsual = 384;  // as the models were made for (Devlin et al. 2019)
    const std::uint32_t most = std::min(model_.info().context, kUsual);
    const EncodedPair bare = tokenizer.encode_pair(own_.question, "");
    if (bare.tokens.size() + 8 > most) return Status(StatusCode::kInvalidArgument, fmt::format("-p: the question has {} tokens, which leaves the context too few of the {} that are asked at once", bare.tokens.size(), most));
    const std::size_t room = most - bare.tokens.size(), stride = std::max<std::size_t>(room / 2, 1);
    for (std::size_t first = 0;; first += stride) {
      const std::size_t n = std::min(room, pieces_.size() - first);
      Window& window = windows_.emplace_back();
      window.first_piece = first;
      window.begin = static_cast<std::uint32_t>(bare.n_first), window.end = static_cast<std::uint32_t>(bare.n_first + n);
      window.tokens.assign(bare.tokens.begin(), bare.tokens.begin() + static_cast<std::ptrdiff_t>(bare.n_first));
      for (std::size_t i = 0; i < n; ++i) window.tokens.push_back(pieces_[first + i].token);
      window.tokens.insert(window.tokens.end(), bare.tokens.begin() + static_cast<std::ptrdiff_t>(bare.n_first), bare.tokens.end());
      if (model_.info().n_token_types > 1) {
        window.types.assign(window.tokens.size(), 1);
        std::fill_n(window.types.begin(), bare.n_first, 0);
      }
      if (first + n == pieces_.size()) return {};
    }
  }

  Status run() {
    EncoderOptions options;
    options.output = EncoderOutput::kHead;
    options.max_batch = static_cast<std::uint32_t>(std::min<std::size_t>(windows_.size(), 8));
    for (const Window& window : windows_) options.max_tokens = std::max(options.max_tokens, static_cast<std::uint32_t>(window.tokens.size()));
    RONDO_ASSIGN(Encoder encoder, Encoder::create(model_, options));
    for (const Window& window : windows_) RONDO_TRY(encoder.append(window.tokens, window.types));
    std::vector<Found> found;
    const Status taken = take_all<Encoding>(encoder, windows_.size(), [&](std::size_t i, const Encoding& encoding) -> Status {
      constexpr std::uint32_t kLongest = 30;
      RONDO_TRY(check_numbers(encoding, own_.model));
      for (const Answer& answer : best_answers(encoding.values, windows_[i].begin, windows_[i].end, kLongest, 8 * std::size_t{own_.n})) {
        const std::size_t shift = windows_[i].first_piece;
        found.push_back({answer.probability, shift + answer.first - windows_[i].begin, shift + answer.last - windows_[i].begin});
      }
      return {};
    });
    if (!taken.ok()) return taken;
    // Windows overlap, and a word may have several tokens, so the same answer may have been found twice.
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.probability > b.probability; });
    std::vector<Found> best;
    for (const Found& each : found) {
      const bool known = std::any_of(best.begin(), best.end(), [&](const Found& other) {
        if (pieces_[each.last].end == 0) return other.first == each.first && other.last == each.last;
        return pieces_[other.first].begin == pieces_[each.first].begin && pieces_[other.last].end == pieces_[each.last].end;
      });
      if (!known && best.size() < own_.n) best.push_back(each);
    }
    print(best);
    return {};
  }

 private:
  std::string text_of(const Found& found) const {
    const Piece &first = pieces_[found.first], &last = pieces_[found.last];
    if (last.end > 0) return context_.substr(first.begin, last.end - first.begin);
    std::vector<std::int32_t> tokens;
    for (std::size_t i = found.first; i <= found.last; ++i) tokens.push_back(pieces_[i].token);
    return model_.tokenizer().decode(tokens);
  }

  void print(const std::vector<Found>& best) const {
    nlohmann::json answers = nlohmann::json::array();
    for (const Found& found : best) {
      const std::string text = text_of(found);
      if (!own_.json) fmt::print("{:.4f}  {}\n", found.probability, on_one_line(text));
      nlohmann::json answer = {{"text", text}, {"probability", found.probability}};
      if (pieces_[found.last].end > 0) answer["begin"] = pieces_[found.first].begin, answer["end"] = pieces_[found.last].end;
      answers.push_back(std::move(answer));
    }
    if (own_.json) fmt::print("{}\n", nlohmann::json{{"answers", answers}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  const AnswerFlags& own_;
  const Model& model_;
  std::string context_;
  std::vector<Piece> pieces_;
  std::vector<Window> windows_;
};

Status answer(const GlobalFlags& flags, const AnswerFlags& own, int& closed) {
  TextFlags file;
  file.file = own.file, file.has_file = true;
  RONDO_ASSIGN(std::string context, file.read());
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, open_encoder(flags, own.model, own.open, ModelHead::kAnswers));
  Asker asker(own, bench->model(), std::move(context));
  RONDO_TRY(asker.read());
  RONDO_TRY(asker.run());
  closed = bench->close();
  return {};
}

}  // namespace

int run_answer(const GlobalFlags& flags, const AnswerFlags& own) {
  int closed = kDone;
  const Status done = answer(flags, own, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace rondo::tools
