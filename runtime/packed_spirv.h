// How SPIR-V lies in the library: what the build writes (cmake/pack_spirv.cpp) and what reads it. An eighth of its size is left.
//
// A SpirvCoder turns each word of a module into a number that is small, and the same where code says the same again: an id that
// a function gave out shortly before is how far back it was, one from before all functions, of a type or a constant, which of these it is: of those that the module's base
// defines alike, the same as there. Runs of numbers
// that were there before, in this module or in its base, the one that it is a variant of, are left out (LZ77). What remains is coded by bits
// with adaptive probabilities (arithmetic coding: Witten, Neal, Cleary, "Arithmetic Coding for Data Compression", 1987).
//
// A stream is tokens, until there are as many numbers as the module has words: a bit; if it is clear a number; if it is set a bit that
// says whether the distance is the latest one, the distance where it is not, and the run's length less one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace rondo::runtime {

/// Goes through a module's words in order. Both directions of the same word must see the same words before it.
class SpirvCoder {
 public:
  /// `base` has gone through all of its module, and outlives this.
  explicit SpirvCoder(const SpirvCoder* base = nullptr) : base_(base), next_place_(base ? base->next_place_ : 0) {}

  std::uint64_t encode(std::uint32_t word) {
    std::uint64_t number = word;
    switch (kind()) {
      case Kind::head: number = (word >> 22) << 22 | (word & 0xffffu) << 6 | (word >> 16 & 63u); break;
      case Kind::result: number = fold(word - latest_ - 1); break;
      case Kind::id: number = is_global(word) ? std::uint64_t{globals_[word].place} << 1 | 1 : std::uint64_t{fold(latest_ - word)} << 1; break;
      case Kind::literal: break;
    }
    step(word);
    return number;
  }

  std::uint32_t decode(std::uint64_t number) {
    auto word = static_cast<std::uint32_t>(number);
    switch (kind()) {
      case Kind::head: word = (word >> 22) << 22 | (word & 63u) << 16 | (word >> 6 & 0xffffu); break;
      case Kind::result: word = latest_ + 1 + unfold(word); break;
      case Kind::id: word = (number & 1) != 0 ? id_at(number >> 1) : latest_ - unfold(static_cast<std::uint32_t>(number >> 1)); break;
      case Kind::literal: break;
    }
    step(word);
    return word;
  }

  /// What the next word is: words alike in it are alike in their numbers.
  std::uint32_t context() const { return is_head() ? 0 : 8 * op_ + (place_ < 7 ? place_ : 7); }

 private:
  static constexpr std::uint32_t kHeaderWords = 5, kMostGlobals = 1u << 16;
  enum Op : std::uint32_t {
    kExtInst = 12, kTypeVoid = 19, kTypeInt = 21, kTypeFloat = 22, kTypeVector = 23, kTypeMatrix = 24, kTypePointer = 32, kTypeForwardPointer = 39,
    kConstant = 43, kSpecConstant = 50, kSpecConstantOp = 52, kFunction = 54, kVariable = 59, kLoad = 61, kStore = 62, kDecorate = 71,
    kMemberDecorate = 72, kVectorShuffle = 79, kCompositeExtract = 81, kCompositeInsert = 82, kControlBarrier = 224, kMemoryBarrier = 225,
    kAtomicStore = 228, kLoopMerge = 246, kSelectionMerge = 247, kLabel = 248, kBranch = 249, kBranchConditional = 250, kSwitch = 251,
    kReturnValue = 254, kTypeCooperativeMatrix = 4456,
  };
  enum class Kind : std::uint8_t { literal, head, result, id };

  /// Small differences either way become small numbers.
  static std::uint32_t fold(std::uint32_t difference) { return difference << 1 ^ (0u - (difference >> 31)); }
  static std::uint32_t unfold(std::uint32_t number) { return number >> 1 ^ (0u - (number & 1u)); }

  /// A result from before all functions: its number, and what says how it was defined.
  struct Global {
    std::uint32_t place = 0;
    std::uint64_t meaning = 0;  ///< 0: there is none of this id
  };
  bool is_global(std::uint32_t id) const { return id < globals_.size() && globals_[id].meaning != 0; }
  std::uint32_t id_at(std::uint64_t place) const { return place < ids_.size() ? ids_[static_cast<std::size_t>(place)] : 0; }
  static std::uint64_t mix(std::uint64_t meaning, std::uint64_t with) { return ((meaning ^ with) * 0x9E3779B97F4A7C15u) ^ ((meaning ^ with) >> 29); }
  bool is_head() const { return n_before_ >= kHeaderWords && left_ == 0; }

  /// Of the next word. Where this errs the module is still packed, only less.
  Kind kind() const {
    if (is_head()) return Kind::head;
    if (n_before_ < kHeaderWords) return Kind::literal;
    if ((op_ >= kTypeVoid && op_ <= kTypeForwardPointer) || op_ == kTypeCooperativeMatrix) {
      if (place_ == 1) return Kind::result;
      return op_ == kTypeInt || op_ == kTypeFloat || ((op_ == kTypeVector || op_ == kTypeMatrix) && place_ == 3) || (op_ == kTypePointer && place_ == 2) ? Kind::literal : Kind::id;
    }
    std::uint32_t first_literal = ~0u;
    switch (op_) {
      case kLabel: return Kind::result;
      case kStore: case kControlBarrier: case kMemoryBarrier: case kAtomicStore: case kLoopMerge: case kSelectionMerge: case kBranch:
      case kBranchConditional: case kReturnValue: return Kind::id;
      case kSwitch: return place_ == 1 || place_ % 2 == 0 ? Kind::id : Kind::literal;
      case kDecorate: case kMemberDecorate: return place_ == 1 ? Kind::id : Kind::literal;
      case kExtInst: if (place_ == 4) return Kind::literal; break;
      case kSpecConstantOp: if (place_ == 3) return Kind::literal; break;
      case kConstant: case kSpecConstant: case kFunction: case kVariable: first_literal = 3; break;
      case kLoad: case kCompositeExtract: first_literal = 4; break;
      case kVectorShuffle: case kCompositeInsert: first_literal = 5; break;
      default: if (op_ < kTypeVoid) return Kind::literal;
    }
    return place_ >= first_literal ? Kind::literal : place_ == 2 ? Kind::result : Kind::id;  // the first is a type
  }

  void step(std::uint32_t word) {
    const Kind kind_of_word = kind();
    if (kind_of_word == Kind::head) {
      op_ = word & 0xffffu;
      left_ = word >> 16;
      place_ = 0;
      in_functions_ |= op_ == kFunction;
      meaning_ = op_ + 1;
      defines_ = false;
    } else if (kind_of_word == Kind::result) {
      latest_ = word;
      defines_ = !in_functions_ && word < kMostGlobals;
    } else {
      meaning_ = mix(meaning_, kind_of_word == Kind::id && is_global(word) ? globals_[word].meaning : word);
      if (op_ == kDecorate || op_ == kMemberDecorate) latest_ = place_ == 1 ? word : latest_;  // the next is often of the same
    }
    if (n_before_ >= kHeaderWords && left_ > 0) --left_, ++place_;
    ++n_before_;
    if (defines_ && left_ == 0) define(latest_);
  }

  /// Of several that are defined alike the first is the base's first, and so on.
  void define(std::uint32_t id) {
    defines_ = false;
    std::uint64_t meaning = meaning_;
    while (places_.contains(meaning)) ++meaning;
    const auto in_base = base_ ? base_->places_.find(meaning) : places_.end();
    const std::uint32_t place = base_ && in_base != base_->places_.end() ? in_base->second : next_place_++;
    places_[meaning] = place;
    if (id >= globals_.size()) globals_.resize(id + 1);
    globals_[id] = {place, meaning | 1};
    if (place >= ids_.size()) ids_.resize(place + 1);
    ids_[place] = id;
  }

  const SpirvCoder* base_;
  std::uint32_t next_place_;
  std::uint32_t n_before_ = 0, latest_ = 0;
  std::uint32_t op_ = 0, left_ = 0, place_ = 0;  ///< of the instruction: what it is, words that are still to come, and the next one's place
  bool in_functions_ = false;
  bool defines_ = false;       ///< the instruction has a result from before all functions
  std::uint64_t meaning_ = 0;  ///< of the instruction so far
  std::vector<Global> globals_;     ///< by id
  std::vector<std::uint32_t> ids_;  ///< by place
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  ///< by meaning
};

/// What is left of all streams after the bits so far: each narrows it, one of them by as much as it was probable. The bytes that its ends
/// share are the stream.
class BitInterval {
 public:
  /// Up to here a bit is one. `probability` of that, of 65,536, neither 0 nor that much.
  std::uint32_t split(std::uint32_t probability) const { return low_ + static_cast<std::uint32_t>(std::uint64_t{high_ - low_} * probability >> 16); }
  void narrow(std::uint32_t split, bool bit) { (bit ? high_ : low_) = bit ? split : split + 1; }
  bool has_byte() const { return ((low_ ^ high_) >> 24) == 0; }
  std::uint8_t take_byte() {
    const auto byte = static_cast<std::uint8_t>(low_ >> 24);
    low_ <<= 8;
    high_ = high_ << 8 | 0xffu;
    return byte;
  }

 private:
  std::uint32_t low_ = 0, high_ = ~0u;
};

/// Numbers in a stream. `Bits` reads or writes: bool code(bool bit, std::uint32_t probability) gives the bit, which only a writer is told.
template <typename Bits>
class NumberCoder {
 public:
  explicit NumberCoder(Bits& bits) : bits_(bits) {}

  bool code_bit(std::uint32_t context, std::uint32_t node, bool bit = false) {
    Model& model = models_[(context * 0x9E3779B1u + node * 0x85EBCA6Bu) >> (32 - kLogModels)];
    bit = bits_.code(bit, model.one);
    // The mean of the bits so far, later of the latest ones.
    const std::int32_t goal = bit ? 0x10000 - kLeast : kLeast;
    model.one = static_cast<std::uint16_t>(model.one + ((goal - model.one) * kRates[model.n_seen] >> 14));
    if (model.n_seen + 1u < kRates.size()) ++model.n_seen;
    return bit;
  }

  /// How many bits it has, then those below the highest; at most 63.
  std::uint64_t code(std::uint32_t context, std::uint64_t number = 0) {
    std::uint32_t n_bits = 0, node = 1;
    while (number >> n_bits != 0) ++n_bits;
    for (int i = 5; i >= 0; --i) node = node << 1 | static_cast<std::uint32_t>(code_bit(context, node, (n_bits >> i & 1) != 0));
    n_bits = node - 64;
    std::uint64_t coded = n_bits != 0;
    for (std::uint32_t i = 1; i < n_bits; ++i) {
      const bool bit = code_bit(context, node, (number >> (n_bits - 1 - i) & 1) != 0);
      node = node << 1 | static_cast<std::uint32_t>(bit);
      coded = coded << 1 | static_cast<std::uint64_t>(bit);
    }
    return coded;
  }

 private:
  static constexpr int kLogModels = 15;
  static constexpr std::int32_t kLeast = 32;
  static constexpr auto kRates = [] {  // of 16,384, by how many bits there were
    std::array<std::int32_t, 40> rates{};
    for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = static_cast<std::int32_t>(0x8000 / (2 * i + 3));
    return rates;
  }();
  struct Model {
    std::uint16_t one = 0x8000;
    std::uint8_t n_seen = 0;
  };
  Bits& bits_;
  std::vector<Model> models_ = std::vector<Model>(std::size_t{1} << kLogModels);
};

/// Contexts of what is not a number of SpirvCoder; its own are kFirstWord and above.
enum PackedContext : std::uint32_t { kIsRun, kIsLatestDistance, kDistance, kLength, kLengthAtLatestDistance, kFirstWord };

/// What came before a token: its kind is foretold by that.
enum class PackedToken : std::uint8_t { number, run, number_after_run };
constexpr PackedToken after(PackedToken token, bool is_run) {
  return is_run ? PackedToken::run : token == PackedToken::run ? PackedToken::number_after_run : PackedToken::number;
}

/// Bits of a stream; behind its end they are zeros.
class BitReader {
 public:
  explicit BitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    for (int i = 0; i < 4; ++i) take_byte();
  }
  bool code(bool, std::uint32_t probability) {
    const std::uint32_t split = interval_.split(probability);
    const bool bit = window_ <= split;
    interval_.narrow(split, bit);
    while (interval_.has_byte()) {
      interval_.take_byte();
      take_byte();
    }
    return bit;
  }

 private:
  void take_byte() { window_ = window_ << 8 | (next_ < bytes_.size() ? bytes_[next_++] : 0u); }

  std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
  BitInterval interval_;
  std::uint32_t window_ = 0;  ///< of the stream, as many bytes as the interval's ends
};

/// `n_words` words of a stream; of bytes that are none other words, or fewer. `base`: the module whose variant they are, or none.
inline std::vector<std::uint32_t> unpack_words(std::span<const std::uint8_t> packed, std::size_t n_words, std::span<const std::uint32_t> base) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(base.size() + n_words);
  SpirvCoder base_coder;
  for (const std::uint32_t word : base) numbers.push_back(base_coder.encode(word));
  std::vector<std::uint32_t> words;
  words.reserve(n_words);
  SpirvCoder coder(&base_coder);
  BitReader bits(packed);
  NumberCoder in(bits);
  std::size_t distance = base.empty() ? 1 : base.size();
  for (PackedToken token{}; words.size() < n_words;) {
    const bool is_run = in.code_bit(kIsRun, static_cast<std::uint32_t>(token));
    std::size_t length = 1;
    if (is_run) {
      const bool is_latest = in.code_bit(kIsLatestDistance, static_cast<std::uint32_t>(token));
      if (!is_latest) distance = in.code(kDistance);
      if (distance == 0 || distance > numbers.size()) return words;
      length += in.code(is_latest ? kLengthAtLatestDistance : kLength);
    }
    for (std::size_t i = 0; i < length && words.size() < n_words; ++i) {
      numbers.push_back(is_run ? numbers[numbers.size() - distance] : in.code(kFirstWord + coder.context()));
      words.push_back(coder.decode(numbers.back()));
    }
    token = after(token, is_run);
  }
  return words;
}

/// Module number `i` of what the build packed: `modules` know where in `bytes` they lie, and the one that they are a variant of.
template <typename Modules>
std::vector<std::uint32_t> unpack_module(std::span<const std::uint8_t> bytes, const Modules& modules, std::size_t i) {
  const auto& packed = modules[i];
  const std::vector<std::uint32_t> base = packed.base < 0 ? std::vector<std::uint32_t>{} : unpack_module(bytes, modules, static_cast<std::size_t>(packed.base));
  return unpack_words(bytes.subspan(packed.offset, packed.size_bytes), packed.n_words, base);
}

}  // namespace rondo::runtime
