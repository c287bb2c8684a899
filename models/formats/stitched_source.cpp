#include "models/formats/stitched_source.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "runtime/fmt.h"

namespace rondo::models {

namespace {

struct Piece {
  std::uint64_t begin = 0, size_bytes = 0;
  std::vector<std::byte> bytes;  ///< what it is, where there is no source; zeros, if empty
  ByteSource source;
  std::uint64_t offset_bytes = 0;  ///< in the source
  std::uint64_t rows = 0, columns = 0, element_bytes = 0;  ///< of a transposed matrix
  StitchedSource::Conversion conversion;                   ///< of no units: none
};

/// Fills `out` from byte `at` of a converted piece.
Status read_converted(const Piece& piece, std::uint64_t at, std::span<std::byte> out) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  const StitchedSource::Conversion& units = piece.conversion;
  const std::uint64_t most = std::max<std::uint64_t>(kMostBytes / units.unit_bytes_there, 1);
  std::vector<std::byte> there, converted;
  while (!out.empty()) {
    const std::uint64_t first = at / units.unit_bytes, skipped = at % units.unit_bytes;
    const std::uint64_t n = std::min(most, (skipped + out.size() + units.unit_bytes - 1) / units.unit_bytes);
    there.resize(static_cast<std::size_t>(n * units.unit_bytes_there));
    RONDO_TRY(piece.source.read(piece.offset_bytes + first * units.unit_bytes_there, there));
    converted.resize(static_cast<std::size_t>(n * units.unit_bytes));
    units.convert(there, converted);
    const std::size_t taken = std::min(out.size(), static_cast<std::size_t>(converted.size() - skipped));
    std::memcpy(out.data(), converted.data() + skipped, taken);
    out = out.subspan(taken);
    at += taken;
  }
  return {};
}

}  // namespace

struct StitchedSource::Pieces {
  std::vector<Piece> all;
  std::uint64_t size_bytes = 0;
  std::mutex mutex;
  std::size_t turned = ~std::size_t{0};  ///< the piece that is kept
  std::vector<std::byte> turned_bytes;

  void add(Piece piece) {
    piece.begin = size_bytes;
    size_bytes += piece.size_bytes;
    if (piece.size_bytes > 0) all.push_back(std::move(piece));
  }

  Status read_transposed(std::size_t index, std::uint64_t at, std::span<std::byte> out) {
    const std::lock_guard lock(mutex);
    const Piece& piece = all[index];
    if (turned != index) {
      turned = ~std::size_t{0};
      std::vector<std::byte> bytes(static_cast<std::size_t>(piece.size_bytes));
      RONDO_TRY(piece.source.read(piece.offset_bytes, bytes));
      turned_bytes.resize(bytes.size());
      const std::uint64_t element = piece.element_bytes;
      for (std::uint64_t row = 0; row < piece.rows; ++row) {
        for (std::uint64_t column = 0; column < piece.columns; ++column) {
          std::memcpy(turned_bytes.data() + (row * piece.columns + column) * element, bytes.data() + (column * piece.rows + row) * element, element);
        }
      }
      turned = index;
    }
    std::memcpy(out.data(), turned_bytes.data() + at, out.size());
    return {};
  }

  Status read(std::uint64_t offset, std::span<std::byte> out) {
    auto piece = std::upper_bound(all.begin(), all.end(), offset, [](std::uint64_t place, const Piece& each) { return place < each.begin; });
    for (--piece; !out.empty(); ++piece) {
      const std::uint64_t at = offset - piece->begin;
      const std::span<std::byte> part = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), piece->size_bytes - at)));
      if (piece->rows > 0) RONDO_TRY(read_transposed(static_cast<std::size_t>(piece - all.begin()), at, part));
      else if (piece->conversion.n_units > 0) RONDO_TRY(read_converted(*piece, at, part));
      else if (piece->source.read) RONDO_TRY(piece->source.read(piece->offset_bytes + at, part));
      else if (piece->bytes.empty()) std::memset(part.data(), 0, part.size());
      else std::memcpy(part.data(), piece->bytes.data() + at, part.size());
      out = out.subspan(part.size());
      offset += part.size();
    }
    return {};
  }
};

StitchedSource::StitchedSource() : pieces_(std::make_shared<Pieces>()) {}

void StitchedSource::add_bytes(std::vector<std::byte> bytes) {
  Piece piece;
  piece.size_bytes = bytes.size();
  piece.bytes = std::move(bytes);
  pieces_->add(std::move(piece));
}

void StitchedSource::add_run(const ByteSource& source, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  Piece piece;
  piece.size_bytes = size_bytes;
  piece.source = source;
  piece.offset_bytes = offset_bytes;
  pieces_->add(std::move(piece));
}

void StitchedSource::add_transposed(const ByteSource& source, std::uint64_t offset_bytes, std::uint64_t rows, std::uint64_t columns, std::uint64_t element_bytes) {
  Piece piece;
  piece.size_bytes = rows * columns * element_bytes;
  piece.source = source;
  piece.offset_bytes = offset_bytes;
  piece.rows = rows, piece.columns = columns, piece.element_bytes = element_bytes;
  pieces_->add(std::move(piece));
}

void StitchedSource::add_converted(const ByteSource& source, std::uint64_t offset_bytes, Conversion conversion) {
  Piece piece;
  piece.size_bytes = conversion.n_units * conversion.unit_bytes;
  piece.source = source;
  piece.offset_bytes = offset_bytes;
  piece.conversion = std::move(conversion);
  pieces_->add(std::move(piece));
}

void StitchedSource::pad_to(std::uint64_t size_bytes) {
  if (size_bytes <= pieces_->size_bytes) return;
  Piece piece;
  piece.size_bytes = size_bytes - pieces_->size_bytes;
  pieces_->add(std::move(piece));
}

std::uint64_t StitchedSource::size_bytes() const { return pieces_->size_bytes; }

ByteSource StitchedSource::source(std::string name) const {
  ByteSource source;
  source.size_bytes = pieces_->size_bytes;
  source.read = [pieces = pieces_, name](std::uint64_t offset, std::span<std::byte> out) {
    if (offset > pieces->size_bytes || out.size() > pieces->size_bytes - offset) {
      return Status(StatusCode::kInvalidArgument, fmt::format("{}: {} bytes at offset {} are beyond its end at {}", name, out.size(), offset, pieces->size_bytes));
    }
    return out.empty() ? Status() : pieces->read(offset, out);
  };
  source.name = std::move(name);
  return source;
}

}  // namespace rondo::models
