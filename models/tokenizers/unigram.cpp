#include "models/tokenizers/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "models/tokenizers/pieces.h"
#include "models/utf8.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
constexpr double kUnknownPenalty = 10;
// Places within a run are 32-bit; longer texts are cut.
constexpr std::size_t kMaxRunBytes = std::size_t{1} << 30;

/// The best way to a place within a run.
struct Way {
  double score = 0;
  std::uint32_t begin = 0;
  std::int32_t piece = -2;  // -1: unknown; -2: there is none yet
};

}  // namespace

Result<UnigramTokenizer> UnigramTokenizer::create(const GgufFile& file, const ByteSource* source) {
  UnigramTokenizer tokenizer;
  RONDO_ASSIGN(tokenizer.vocabulary_, Vocabulary::read(file, Vocabulary::DefaultIds::kT5));
  RONDO_ASSIGN(tokenizer.byte_fallback_, file.boolean_or("rondo.byte_fallback", false));
  RONDO_ASSIGN(tokenizer.byte_tokens_, byte_tokens(file, tokenizer.vocabulary_));
  RONDO_TRY(tokenizer.load_pieces(file, source));
  RONDO_TRY(tokenizer.vocabulary_.index(file, false));
  if (tokenizer.in_sentence_piece_ && !OwnPieces::are_there(file)) tokenizer.vocabulary_.leave_user_defined();
  RONDO_ASSIGN(tokenizer.add_bos_, file.boolean_or("tokenizer.ggml.add_bos_token", false));
  RONDO_ASSIGN(const bool add_eos, file.boolean_or("tokenizer.ggml.add_eos_token", true));
  if (add_eos && tokenizer.vocabulary_.eos() >= 0) tokenizer.between_ = tokenizer.after_ = {tokenizer.vocabulary_.eos()};
  RONDO_ASSIGN(const std::string_view where, file.string_or("rondo.space_prefix", ""));
  tokenizer.space_prefix_ = where == "first" ? SpacePrefix::kFirst : where == "always" ? SpacePrefix::kAlways : where == "section" ? SpacePrefix::kSection : SpacePrefix::kText;
  tokenizer.add_space_prefix_ = tokenizer.text_.adds_prefix();
  return tokenizer;
}

Status UnigramTokenizer::load_pieces(const GgufFile& file, const ByteSource* source) {
  if (OwnPieces::are_there(file)) {
    RONDO_ASSIGN(const OwnPieces own, OwnPieces::read(file, vocabulary_));
    RONDO_ASSIGN(text_, PieceText::read(file, source, own.spellings));
    in_sentence_piece_ = text_.as_sentence_piece();
    return add_pieces(file, own.spellings, own.scores, own.ids);
  }
  RONDO_ASSIGN(text_, PieceText::read(file, source, vocabulary_));
  in_sentence_piece_ = text_.as_sentence_piece();
  RONDO_ASSIGN(const std::vector<float> scores, read_scores(file, "rondo.score_bits", vocabulary_.size()));
  return add_pieces(file, vocabulary_, scores, {});
}

Status UnigramTokenizer::add_pieces(const GgufFile& file, const Vocabulary& from, const std::vector<float>& scores, const std::vector<std::int32_t>& ids) {
  std::vector<PieceTrie::Piece> texts;
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::lowest();
  for (std::int32_t i = 0; i < from.size(); ++i) {
    const TokenType type = from.type(i);
    const float score = scores[static_cast<std::size_t>(i)];
    pieces_.push_back({score, ids.empty() ? i : ids[static_cast<std::size_t>(i)], type == TokenType::kUserDefined});
    const bool normal = type == TokenType::kNormal || type == TokenType::kUndefined;
    if (normal) least = std::min(least, score), most = std::max(most, score);
    const std::string_view text = from.spelling(i);
    if (text.empty() || (!normal && type != TokenType::kUserDefined)) continue;
    if (text.size() > PieceTrie::kMaxPieceBytes) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key '{}' holds a piece of {} bytes at index {}, expected at most {}", file.name(), kTokensKey, text.size(), i,
                                                          PieceTrie::kMaxPieceBytes));
    }
    texts.push_back({text, i});
  }
  if (most < least) return file.key_error(kTokensKey, "holds no normal token");
  trie_ = PieceTrie(std::move(texts));
  unknown_score_ = in_sentence_piece_ ? static_cast<double>(least - static_cast<float>(kUnknownPenalty)) : static_cast<double>(least) - kUnknownPenalty;
  best_score_ = most;
  return {};
}

void UnigramTokenizer::append_unknown(std::string_view text, std::vector<std::int32_t>& tokens) const {
  const auto byte_token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char c) { return byte_token(c) >= 0; })) {
    for (const char c : text) tokens.push_back(byte_token(c));
  } else if (vocabulary_.unknown() >= 0) {
    tokens.push_back(vocabulary_.unknown());
  }
}

void UnigramTokenizer::encode_run(std::string_view text, std::vector<std::int32_t>& tokens) const {
  std::vector<Way> ways(text.size() + 1);
  const auto offer = [&](std::size_t begin, std::size_t end, std::int32_t piece, double score) {
    Way& best = ways[end];
    score += ways[begin].score;
    if (best.piece != -2 && score <= best.score) return;
    // What is compared is exact; SentencePiece keeps it as a float.
    best = {in_sentence_piece_ ? static_cast<double>(static_cast<float>(score)) : score, static_cast<std::uint32_t>(begin), piece};
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t character = std::max<std::size_t>(utf8_character_bytes(text.substr(begin)), 1);
    bool has_character = false;
    PieceTrie::Cursor cursor = trie_.root();
    for (std::size_t end = begin; end < text.size() && cursor.follow(text[end]);) {
      ++end;
      const std::int32_t piece = cursor.value();
      if (piece < 0) continue;
      const Piece& known = pieces_[static_cast<std::size_t>(piece)];
      double score = static_cast<double>(known.score);
      if (known.user_defined) score = in_sentence_piece_ ? static_cast<double>(static_cast<float>(end - begin) * best_score_) - 0.1 : 0;
      offer(begin, end, piece, score);
      has_character = has_character || end - begin == character;
    }
    if (!has_character) offer(begin, begin + character, -1, unknown_score_);
    begin += character;
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> path;  // beginnings and ends, the last first
  for (auto end = static_cast<std::uint32_t>(text.size()); end > 0; end = ways[end].begin) path.emplace_back(ways[end].begin, end);
  std::reverse(path.begin(), path.end());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::int32_t piece = ways[path[i].second].piece;
    if (piece >= 0) {
      tokens.push_back(pieces_[static_cast<std::size_t>(piece)].id);
      continue;
    }
    const std::uint32_t begin = path[i].first;
    while (i + 1 < path.size() && ways[path[i + 1].second].piece < 0) ++i;
    append_unknown(text.substr(begin, path[i].second - begin), tokens);
  }
}

void UnigramTokenizer::encode_text(std::string_view text, bool begins_text, std::vector<std::int32_t>& tokens) const {
  const std::string whole = text_.made_visible(text, begins_text);
  const std::string_view visible = whole;
  for (std::size_t begin = 0, end = 0; begin < visible.size(); begin = end) {
    end = text_.splits() ? std::min(visible.find(kSpace, begin + 1), visible.size()) : visible.size();
    end = std::min(end, begin + kMaxRunBytes);
    encode_run(visible.substr(begin, end - begin), tokens);
  }
}

void UnigramTokenizer::append_text(std::int32_t token, std::string& out) const { append_piece_text(vocabulary_, token, out); }

}  // namespace rondo::models
