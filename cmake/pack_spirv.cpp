// Packs SPIR-V modules for shader_code.inc, as runtime/packed_spirv.h says; runs during the build.
// usage: rondo_pack_spirv FILE MODULE.spv ...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/packed_spirv.h"

namespace {

using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<std::uint32_t>;

class BitWriter {
 public:
  bool code(bool bit, std::uint32_t probability) {
    interval_.narrow(interval_.split(probability), bit);
    while (interval_.has_byte()) bytes_.push_back(interval_.take_byte());
    return bit;
  }
  /// The stream so far. What a reader finds behind it is zeros, and must be within the interval.
  Bytes take() {
    bytes_.push_back(static_cast<std::uint8_t>(interval_.take_byte() + 1));
    return std::move(bytes_);
  }

 private:
  rondo::runtime::BitInterval interval_;
  Bytes bytes_;
};

/// Numbers, and where runs of them were before.
class History {
 public:
  explicit History(std::vector<std::uint64_t> numbers) : numbers_(std::move(numbers)) {}

  /// How many numbers from `at` on are those of `distance` before.
  std::size_t run_length(std::size_t at, std::size_t distance) const {
    std::size_t length = 0;
    while (distance <= at && at + length < numbers_.size() && numbers_[at + length] == numbers_[at + length - distance]) ++length;
    return length;
  }

  struct Run {
    std::size_t length = 0, distance = 0;
  };
  /// The longest run, of at most so many places that begin alike.
  Run find(std::size_t at) const {
    constexpr std::size_t kMostPlaces = 400;
    Run best;
    const auto found = at + kShortestRun <= numbers_.size() ? places_.find(key(at)) : places_.end();
    if (found == places_.end()) return best;
    const std::vector<std::size_t>& places = found->second;
    for (std::size_t i = places.size(); i-- > 0 && places.size() - i <= kMostPlaces;) {
      const std::size_t length = run_length(at, at - places[i]);
      if (length > best.length) best = {length, at - places[i]};
    }
    return best;
  }

  /// From now on runs may begin at `at`.
  void add(std::size_t at) {
    if (at + kShortestRun <= numbers_.size()) places_[key(at)].push_back(at);
  }

 private:
  static constexpr std::size_t kShortestRun = 5;  ///< at a new distance; shorter ones took more room, by trial
  std::uint64_t key(std::size_t at) const {
    std::uint64_t key = 0;
    for (std::size_t i = 0; i < kShortestRun; ++i) key = (key ^ numbers_[at + i]) * 0x9E3779B97F4A7C15u;
    return key;
  }
  std::vector<std::uint64_t> numbers_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> places_;
};

Bytes pack(const Words& words, const Words& base) {
  using namespace rondo::runtime;
  std::vector<std::uint64_t> numbers;
  std::vector<std::uint32_t> contexts;
  SpirvCoder base_coder;
  const auto add = [&](SpirvCoder& coder, const Words& part) {
    for (const std::uint32_t word : part) {
      contexts.push_back(coder.context());
      numbers.push_back(coder.encode(word));
    }
  };
  add(base_coder, base);
  SpirvCoder coder(&base_coder);
  add(coder, words);
  History history(numbers);
  for (std::size_t i = 0; i < base.size(); ++i) history.add(i);
  BitWriter bits;
  NumberCoder out(bits);
  PackedToken token{};
  std::size_t distance = base.empty() ? 1 : base.size();
  for (std::size_t at = base.size(); at < numbers.size();) {
    History::Run run{history.run_length(at, distance), distance};
    if (run.length < 2 && token != PackedToken::run) run.length = 0;
    const History::Run found = history.find(at);
    history.add(at);
    if (found.length > run.length + (run.length > 0 ? 3 : 1)) {
      // A number first, if a longer run, or the old distance, begins after it.
      const bool waits = history.find(at + 1).length > found.length + 1 || history.run_length(at + 1, distance) + 1 >= found.length;
      run = waits ? History::Run{} : found;
    }
    const bool is_run = run.length > 0;
    out.code_bit(kIsRun, static_cast<std::uint32_t>(token), is_run);
    if (is_run) {
      const bool is_latest = run.distance == distance;
      out.code_bit(kIsLatestDistance, static_cast<std::uint32_t>(token), is_latest);
      if (!is_latest) out.code(kDistance, run.distance);
      out.code(is_latest ? kLengthAtLatestDistance : kLength, run.length - 1);
      distance = run.distance;
    } else {
      out.code(kFirstWord + contexts[at], numbers[at]);
    }
    token = after(token, is_run);
    const std::size_t end = at + (is_run ? run.length : 1);
    while (++at < end) history.add(at);
  }
  return bits.take();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: rondo_pack_spirv FILE MODULE.spv ...\n", stderr);
    return 2;
  }
  std::vector<std::string> names;
  std::vector<Words> modules;
  for (int i = 2; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
    Words words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    constexpr std::uint32_t kMagic = 0x07230203;
    if (words.size() < 5 || bytes.size() % 4 != 0 || words[0] != kMagic) {
      std::fprintf(stderr, "rondo_pack_spirv: %s: not a SPIR-V module of this machine's byte order\n", argv[i]);
      return 1;
    }
    names.push_back(std::filesystem::path(argv[i]).stem().string());
    modules.push_back(std::move(words));
  }
  std::string bytes, entries;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const auto base = std::find_if(names.begin(), names.end(), [&](const std::string& name) { return names[i] == name + "_f16"; });
    const Words of_base = base == names.end() ? Words{} : modules[static_cast<std::size_t>(base - names.begin())];
    const Bytes packed = pack(modules[i], of_base);
    if (rondo::runtime::unpack_words(packed, modules[i].size(), of_base) != modules[i]) {
      std::fprintf(stderr, "rondo_pack_spirv: %s: what is unpacked is not what was packed\n", names[i].c_str());
      return 1;
    }
    for (std::size_t k = 0; k < packed.size(); ++k) bytes += std::to_string(packed[k]) + (k % 32 == 31 ? ",\n" : ",");
    bytes += "\n";
    entries += "    {\"" + names[i] + "\", " + std::to_string(offset) + ", " + std::to_string(packed.size()) + ", " + std::to_string(modules[i].size()) + ", " +
               std::to_string(base == names.end() ? -1 : base - names.begin()) + "},\n";
    offset += packed.size();
  }
  std::ofstream out(argv[1]);
  out << "// Generated by rondo_pack_spirv: SPIR-V by enumerator of Shader.\n"
      << "constexpr std::uint8_t kPackedShaders[] = {\n" << bytes << "};\n"
      << "struct PackedShader { const char* name; std::uint32_t offset, size_bytes, n_words; std::int32_t base; };\n"
      << "constexpr PackedShader kShaders[] = {\n" << entries << "};\n";
  out.close();
  if (!out) {
    std::fprintf(stderr, "rondo_pack_spirv: %s: cannot be written\n", argv[1]);
    return 1;
  }
  return 0;
}
