#include "models/tokenizers/bpe.h"

#include <algorithm>
#include <functional>

#include "models/printable.h"
#include "models/tokenizers/nfc.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::string_view kPreKey = "tokenizer.ggml.pre";

// Positions within a piece are 32-bit; longer pieces are cut.
constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30;
constexpr std::int32_t kGone = -2;  // the token of a symbol that became part of its left neighbour

/// GPT-2's letters for bytes: Latin-1's visible characters stand for themselves, the others, in order, for those from
/// U+0100 on.
struct ByteAlphabet {
  static constexpr int kEnd = 0x144;
  std::array<std::int16_t, 256> letters = {};
  std::array<std::int16_t, kEnd> bytes = {};  // -1 for what is no letter

  constexpr ByteAlphabet() {
    for (std::int16_t& byte : bytes) byte = -1;
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool visible = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
      const int letter = visible ? byte : next++;
      letters[static_cast<std::size_t>(byte)] = static_cast<std::int16_t>(letter);
      bytes[static_cast<std::size_t>(letter)] = static_cast<std::int16_t>(byte);
    }
  }
};
constexpr ByteAlphabet kAlphabet;

void append_letter(char byte, std::string& out) {
  const int letter = kAlphabet.letters[static_cast<unsigned char>(byte)];
  if (letter < 0x80) {
    out += static_cast<char>(letter);
  } else {
    out += static_cast<char>(0xc0 | (letter >> 6));
    out += static_cast<char>(0x80 | (letter & 0x3f));
  }
}

/// Removes one letter from the front of `spelling`, which is not empty. The byte that it stands for, or -1.
int take_letter(std::string_view& spelling) {
  int letter = static_cast<unsigned char>(spelling[0]);
  std::size_t size = 1;
  if (letter >= 0xc2 && letter < 0xe0 && spelling.size() > 1 && (spelling[1] & 0xc0) == 0x80) {
    letter = (letter & 0x1f) << 6 | (spelling[1] & 0x3f);
    size = 2;
  } else if (letter >= 0x80) {
    return -1;
  }
  spelling.remove_prefix(size);
  return letter < ByteAlphabet::kEnd ? kAlphabet.bytes[static_cast<std::size_t>(letter)] : -1;
}

}  // namespace

struct BpeTokenizer::Symbol {
  std::int32_t prev;
  std::int32_t next;
  std::int32_t token;
};

/// Memory that the pieces of a text share.
struct BpeTokenizer::Workspace {
  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> queue;  // a heap of rank << 32 | left, the least on top
  std::string spelling;
};

Result<BpeTokenizer> BpeTokenizer::create(const GgufFile& file) {
  BpeTokenizer tokenizer;
  RONDO_TRY(tokenizer.load_pre_tokenizer(file));
  RONDO_ASSIGN(tokenizer.vocabulary_, Vocabulary::read(file, Vocabulary::DefaultIds::kNone));
  RONDO_TRY(tokenizer.check_spellings(file));
  RONDO_TRY(tokenizer.vocabulary_.index(file, true));
  for (std::size_t byte = 0; byte < tokenizer.byte_tokens_.size(); ++byte) {
    std::string letter;
    append_letter(static_cast<char>(byte), letter);
    tokenizer.byte_tokens_[byte] = tokenizer.vocabulary_.find(letter);
    tokenizer.last_byte_tokens_[byte] = tokenizer.vocabulary_.find(letter + tokenizer.end_of_word_);
  }
  RONDO_ASSIGN(tokenizer.merges_, MergeTable::read(file, tokenizer.vocabulary_));
  return tokenizer;
}

Status BpeTokenizer::load_pre_tokenizer(const GgufFile& file) {
  RONDO_ASSIGN(const std::string_view name, file.string(kPreKey));
  RONDO_ASSIGN(const std::string_view end_of_word, file.string_or("rondo.end_of_word", ""));
  end_of_word_ = end_of_word;
  RONDO_ASSIGN(lower_case_, file.boolean_or("rondo.lower_case", false));
  if (!end_of_word_.empty()) {
    if (name != kClipName) return file.key_error(kPreKey, fmt::format("is '{}', expected '{}' where words have an end", printable(name), kClipName));
    splitter_ = TextSplitter(kClipPreTokenizer);
    add_bos_ = false;
    return {};
  }
  const auto all = pre_tokenizers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& known) { return known.name == name; });
  if (found == all.end()) {
    std::string names;
    for (const PreTokenizer& known : all) {
      names += names.empty() ? "" : ", ";
      names += known.name;
    }
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}: metadata key '{}' is '{}': this pre-tokenizer is not there yet, expected one of {}",
                              file.name(), kPreKey, printable(name), names));
  }
  splitter_ = TextSplitter(*found);
  RONDO_ASSIGN(whole_tokens_first_, file.boolean_or("rondo.whole_tokens_first", found->whole_tokens_first));
  RONDO_ASSIGN(add_bos_, file.boolean_or("tokenizer.ggml.add_bos_token", found->add_bos));
  return Status();
}

Status BpeTokenizer::check_spellings(const GgufFile& file) const {
  for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
    if (vocabulary_.type(id) != TokenType::kNormal && vocabulary_.type(id) != TokenType::kUndefined) continue;
    for (std::string_view rest = vocabulary_.spelling(id); !rest.empty();) {
      if (take_letter(rest) >= 0) continue;
      return file.key_error(kTokensKey,
                            fmt::format("holds '{}' at index {}, which is marked as a normal token, expected only "
                                        "letters of GPT-2's byte alphabet",
                                        printable(vocabulary_.spelling(id)), id));
    }
  }
  return Status();
}

void BpeTokenizer::merge_symbols(Workspace& workspace) const {
  std::vector<Symbol>& symbols = workspace.symbols;
  std::vector<std::uint64_t>& queue = workspace.queue;
  const auto at = [&](std::int32_t index) -> Symbol& { return symbols[static_cast<std::size_t>(index)]; };
  /// Queues the merge of `left` with its neighbour, if there is one.
  const auto enqueue = [&](std::int32_t left) {
    if (left < 0 || at(left).next < 0) return false;
    const std::int32_t rank = merges_.find(at(left).token, at(at(left).next).token);
    if (rank < 0) return false;
    queue.push_back(static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint64_t>(left));
    return true;
  };
  const std::greater<std::uint64_t> later;
  queue.clear();
  for (std::size_t left = 0; left < symbols.size(); ++left) enqueue(static_cast<std::int32_t>(left));
  std::make_heap(queue.begin(), queue.end(), later);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), later);
    const std::uint64_t best = queue.back();
    queue.pop_back();
    const MergeTable::Merge& merge = merges_[static_cast<std::size_t>(best >> 32)];
    const auto index = static_cast<std::int32_t>(best & 0xffffffff);
    Symbol& left = at(index);
    // One of the two has been merged with something else since.
    if (left.token != merge.left || left.next < 0 || at(left.next).token != merge.right) continue;
    Symbol& right = at(left.next);
    left.token = merge.token;
    right.token = kGone;
    left.next = right.next;
    if (right.next >= 0) at(right.next).prev = index;
    if (enqueue(left.prev)) std::push_heap(queue.begin(), queue.end(), later);
    if (enqueue(index)) std::push_heap(queue.begin(), queue.end(), later);
  }
}

void BpeTokenizer::encode_piece(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& tokens) const {
  // A letter takes at least a byte.
  if (whole_tokens_first_ && piece.size() <= vocabulary_.max_findable_bytes()) {
    workspace.spelling.clear();
    for (const char byte : piece) append_letter(byte, workspace.spelling);
    const std::int32_t token = vocabulary_.find(workspace.spelling);
    if (token >= 0) {
      tokens.push_back(token);
      return;
    }
  }
  std::vector<Symbol>& symbols = workspace.symbols;
  symbols.clear();
  for (const char byte : piece) {
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back(Symbol{index - 1, index + 1, byte_tokens_[static_cast<unsigned char>(byte)]});
  }
  symbols.back().next = -1;
  if (!end_of_word_.empty()) symbols.back().token = last_byte_tokens_[static_cast<unsigned char>(piece.back())];
  merge_symbols(workspace);
  for (const Symbol& symbol : symbols) {
    if (symbol.token >= 0) tokens.push_back(symbol.token);
  }
}

void BpeTokenizer::encode_text(std::string_view whole, bool /*begins_text*/, std::vector<std::int32_t>& tokens) const {
  Workspace workspace;
  const std::string lowered = lower_case_ ? to_lower_case(whole) : std::string();
  const std::string_view text = lower_case_ ? std::string_view(lowered) : whole;
  std::size_t begin = 0;
  for (const std::size_t end : splitter_.piece_ends(text)) {
    if (!end_of_word_.empty() && unicode_class(character_at(text, begin).code) == UnicodeClass::kWhiteSpace) {
      begin = end;
      continue;
    }
    for (std::size_t size; begin < end; begin += size) {
      size = std::min(end - begin, kMaxPieceBytes);
      encode_piece(text.substr(begin, size), workspace, tokens);
    }
  }
}

void BpeTokenizer::append_text(std::int32_t token, std::string& out) const {
  if (vocabulary_.type(token) == TokenType::kByte) return;  // only other kinds of tokenizer have these
  std::string_view rest = vocabulary_.spelling(token);
  const bool ends_word = !end_of_word_.empty() && rest.ends_with(end_of_word_);
  if (ends_word) rest.remove_suffix(end_of_word_.size());
  while (!rest.empty()) {
    const int byte = take_letter(rest);
    if (byte < 0) return;
    out += static_cast<char>(byte);
  }
  if (ends_word) out += ' ';
}

}  // namespace rondo::models
