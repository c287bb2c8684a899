#include "models/formats/stacked_experts.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "models/formats/stitched_source.h"

namespace rondo::models {

namespace {

constexpr std::size_t kNibbleBytes = 16, kBlockBytes = kNibbleBytes + 1;

void join_block(std::byte scale, const std::byte* there, std::byte* block) {
  block[0] = scale;
  const auto element = [&](std::size_t i) { return (there[i / 2] >> (i % 2 * 4)) & std::byte{15}; };
  for (std::size_t j = 0; j < kNibbleBytes; ++j) block[1 + j] = element(j) | element(j + kNibbleBytes) << 4;
}

}  // namespace

ByteSource join_mxfp4(const ByteSource& blocks, std::uint64_t blocks_offset, const ByteSource& scales, std::uint64_t scales_offset, std::uint64_t n_blocks) {
  constexpr std::uint64_t kMostBlocks = 1 << 15;
  ByteSource joined;
  joined.name = blocks.name;
  joined.size_bytes = n_blocks * kBlockBytes;
  joined.read = [=](std::uint64_t offset, std::span<std::byte> out) -> Status {
    std::vector<std::byte> nibbles, exponents, whole;
    while (!out.empty()) {
      const std::uint64_t first = offset / kBlockBytes;
      const auto skipped = static_cast<std::size_t>(offset % kBlockBytes);
      const auto n = static_cast<std::size_t>(std::min(kMostBlocks, (skipped + out.size() + kBlockBytes - 1) / kBlockBytes));
      nibbles.resize(n * kNibbleBytes), exponents.resize(n), whole.resize(n * kBlockBytes);
      RONDO_TRY(blocks.read(blocks_offset + first * kNibbleBytes, nibbles));
      RONDO_TRY(scales.read(scales_offset + first, exponents));
      for (std::size_t i = 0; i < n; ++i) join_block(exponents[i], nibbles.data() + i * kNibbleBytes, whole.data() + i * kBlockBytes);
      const std::size_t taken = std::min(out.size(), whole.size() - skipped);
      std::memcpy(out.data(), whole.data() + skipped, taken);
      out = out.subspan(taken);
      offset += taken;
    }
    return {};
  };
  return joined;
}

ByteSource alternate_rows(const ByteSource& rows, std::uint64_t offset_bytes, std::uint64_t n_rows, std::uint64_t row_bytes, std::uint64_t first) {
  StitchedSource::Conversion pairs;
  pairs.n_units = n_rows / 2, pairs.unit_bytes = row_bytes, pairs.unit_bytes_there = 2 * row_bytes;
  pairs.convert = [row_bytes, first](std::span<const std::byte> there, std::span<std::byte> out) {
    const auto bytes = static_cast<std::size_t>(row_bytes);
    for (std::size_t i = 0; i < out.size() / bytes; ++i) std::memcpy(out.data() + i * bytes, there.data() + (2 * i + static_cast<std::size_t>(first)) * bytes, bytes);
  };
  StitchedSource chosen;
  chosen.add_converted(rows, offset_bytes, std::move(pairs));
  return chosen.source(rows.name);
}

}  // namespace rondo::models
