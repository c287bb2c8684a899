// A ByteSource made of pieces of others, of bytes, and of what is turned over or converted while it is read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
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
  /// Units that have another size there. `convert` makes units out of as many; it may be called from several threads.
  struct Conversion {
    std::uint64_t n_units = 0, unit_bytes = 0, unit_bytes_there = 0;
    std::function<void(std::span<const std::byte> there, std::span<std::byte> out)> convert;
  };
  /// The units that lie there, converted: those that a read touches, a MiB at a time.
  void add_converted(const ByteSource& source, std::uint64_t offset_bytes, Conversion conversion);
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
