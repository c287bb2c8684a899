#include "models/formats/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include <rondo/byte_source.h>

#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxPieces = std::size_t{1} << 20;

/// A field of a message: its number, and its value as a number or as bytes.
struct Field {
  std::uint32_t number = 0;
  std::uint32_t wire_type = 0;
  std::uint64_t value = 0;  // of wire types 0, 1 and 5
  std::string_view bytes;   // of wire type 2
};

/// Reads the fields of a message one by one.
class Fields {
 public:
  Fields(std::string_view message, const std::string& file, const char* what) : rest_(message), file_(file), what_(what) {}

  bool done() const { return rest_.empty(); }
  Result<Field> next() {
    Field field;
    RONDO_ASSIGN(const std::uint64_t key, varint());
    field.number = static_cast<std::uint32_t>(key >> 3);
    field.wire_type = static_cast<std::uint32_t>(key & 7);
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff) return wrong(fmt::format("has field {}", key >> 3));
    switch (field.wire_type) {
      case 0: {
        RONDO_ASSIGN(field.value, varint());
        return field;
      }
      case 2: {
        RONDO_ASSIGN(const std::uint64_t size, varint());
        RONDO_ASSIGN(field.bytes, take(size));
        return field;
      }
      case 1:
      case 5: {
        RONDO_ASSIGN(const std::string_view bytes, take(field.wire_type == 1 ? 8 : 4));
        for (std::size_t i = bytes.size(); i > 0; --i) field.value = field.value << 8 | static_cast<unsigned char>(bytes[i - 1]);
        return field;
      }
      default:
        return wrong(fmt::format("has field {} of wire type {}", field.number, field.wire_type));
    }
  }
  Status wrong(const std::string& what) const { return Status(StatusCode::kCorruptData, fmt::format("{}: {} {}", file_, what_, what)); }
  /// Of a field that `next` returned.
  Status expect(const Field& field, std::uint32_t wire_type) const {
    return field.wire_type == wire_type ? Status() : wrong(fmt::format("has field {} of wire type {}, expected {}", field.number, field.wire_type, wire_type));
  }

 private:
  Result<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 10 && i < rest_.size(); ++i) {
      const auto byte = static_cast<unsigned char>(rest_[i]);
      value |= std::uint64_t{byte & 0x7fU} << (7 * i);
      if (byte >= 0x80) continue;
      rest_.remove_prefix(i + 1);
      return value;
    }
    return wrong("ends within a number");
  }
  Result<std::string_view> take(std::uint64_t size) {
    if (size > rest_.size()) return wrong(fmt::format("has a field of {} bytes, but only {} follow", size, rest_.size()));
    const std::string_view bytes = rest_.substr(0, static_cast<std::size_t>(size));
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

  std::string_view rest_;
  const std::string& file_;
  const char* what_;
};

class Reader {
 public:
  Reader(const std::string& path, SentencePieceModel& model) : path_(path), model_(model) {}

  Status read(std::string_view bytes) {
    Fields fields(bytes, path_, "the model");
    while (!fields.done()) {
      RONDO_ASSIGN(const Field field, fields.next());
      if (field.number < 1 || field.number > 3) continue;
      RONDO_TRY(fields.expect(field, 2));
      RONDO_TRY(field.number == 1 ? read_piece(field.bytes) : field.number == 2 ? read_trainer(field.bytes) : read_normalizer(field.bytes));
    }
    if (model_.pieces.empty()) return fields.wrong("has no pieces");
    for (const std::int32_t id : {model_.unknown, model_.bos, model_.eos, model_.padding}) {
      if (id < -1 || id >= static_cast<std::int32_t>(model_.pieces.size())) return fields.wrong(fmt::format("names piece {}, but has {}", id, model_.pieces.size()));
    }
    if (model_.unknown < 0) return fields.wrong("has no unknown piece");
    return {};
  }

 private:
  Status read_piece(std::string_view bytes) {
    Fields fields(bytes, path_, "a piece");
    SentencePieceModel::Piece piece;
    while (!fields.done()) {
      RONDO_ASSIGN(const Field field, fields.next());
      if (field.number == 1) {
        RONDO_TRY(fields.expect(field, 2));
        piece.text = field.bytes;
      } else if (field.number == 2) {
        RONDO_TRY(fields.expect(field, 5));
        piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
      } else if (field.number == 3) {
        RONDO_TRY(fields.expect(field, 0));
        if (field.value < 1 || field.value > 6) return fields.wrong(fmt::format("has type {}, expected 1 to 6", field.value));
        piece.type = static_cast<TokenType>(field.value);  // the same numbers as GGUF's
      }
    }
    if (piece.text.empty()) return fields.wrong(fmt::format("at index {} is empty", model_.pieces.size()));
    if (std::isnan(piece.score)) return fields.wrong(fmt::format("at index {} has NaN for a score", model_.pieces.size()));
    if (model_.pieces.size() == kMaxPieces) return fields.wrong(fmt::format("is one of more than {}", kMaxPieces));
    model_.pieces.push_back(std::move(piece));
    return {};
  }

  Status read_trainer(std::string_view bytes) {
    Fields fields(bytes, path_, "trainer_spec");
    while (!fields.done()) {
      RONDO_ASSIGN(const Field field, fields.next());
      const bool known = field.number == 3 || field.number == 24 || field.number == 35 || (field.number >= 40 && field.number <= 43);
      if (!known) continue;
      RONDO_TRY(fields.expect(field, 0));
      const auto id = static_cast<std::int32_t>(static_cast<std::uint32_t>(field.value));
      if (field.number == 3 && field.value != 1 && field.value != 2) return later("trainer_spec.model_type", fmt::format("is {}", field.value));
      if (field.number == 3) model_.kind = static_cast<SentencePieceModel::Kind>(field.value);
      if (field.number == 24 && field.value != 0) return later("trainer_spec.treat_whitespace_as_suffix", "is true");
      if (field.number == 35) model_.byte_fallback = field.value != 0;
      if (field.number == 40) model_.unknown = id;
      if (field.number == 41) model_.bos = id;
      if (field.number == 42) model_.eos = id;
      if (field.number == 43) model_.padding = id;
    }
    return {};
  }

  Status read_normalizer(std::string_view bytes) {
    Fields fields(bytes, path_, "normalizer_spec");
    while (!fields.done()) {
      RONDO_ASSIGN(const Field field, fields.next());
      if (field.number < 2 || field.number > 5) continue;
      RONDO_TRY(fields.expect(field, field.number == 2 ? 2 : 0));
      if (field.number == 2) model_.charsmap = field.bytes;
      if (field.number == 3) model_.add_dummy_prefix = field.value != 0;
      if (field.number == 4) model_.remove_extra_whitespaces = field.value != 0;
      if (field.number == 5) model_.escape_whitespaces = field.value != 0;
    }
    return {};
  }

  Status later(const char* field, const std::string& what) const {
    return Status(StatusCode::kUnsupported, fmt::format("{}: '{}' {}, which is not there yet", path_, field, what));
  }

  const std::string& path_;
  SentencePieceModel& model_;
};

}  // namespace

Result<SentencePieceModel> SentencePieceModel::read(const std::string& path) {
  RONDO_ASSIGN(const ByteSource source, open_file(path));
  if (source.size_bytes > kMaxBytes) return Status(StatusCode::kUnsupported, fmt::format("{}: has {} bytes, expected at most {}", path, source.size_bytes, kMaxBytes));
  std::string bytes(static_cast<std::size_t>(source.size_bytes), '\0');
  RONDO_TRY(source.read(0, std::as_writable_bytes(std::span<char>(bytes))));
  SentencePieceModel model;
  RONDO_TRY(Reader(path, model).read(bytes));
  return model;
}

}  // namespace rondo::models
