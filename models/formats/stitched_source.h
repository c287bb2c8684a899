// A ByteSource made of pieces of others, of bytes, and of matrices that are turned over while they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rondo/byte_source.h>

namespace rondo::models {

class StitchedSource {
 public:
  StitchedSource();

  void add_bytes(std::vector<std::byte> bytes);
  /// `size_bytes` of `source` from `offset_bytes` on.
  void add_run(const ByteSource& source, std::uint64_t offset_bytes, std::uint64_t size_bytes);
  /// The (rows, columns) matrix that lies there as (columns, rows), of elements of `element_bytes`. It is read whole, and one at
  /// a time is kept in memory.
  void add_transposed(const ByteSource& source, std::uint64_t offset_bytes, std::uint64_t rows, std::uint64_t columns, std::uint64_t element_bytes);
  /// Zeros up to `size_bytes` in all.
  void pad_to(std::uint64_t size_bytes);

  std::uint64_t size_bytes() const;
  /// May be read from several threads. Errors: those of the sources; kInvalidArgument (beyond its end).
  ByteSource source(std::string name) const;

 private:
  struct Pieces;
  std::shared_ptr<Pieces> pieces_;
};

}  // namespace rondo::models
