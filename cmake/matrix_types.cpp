// Completes the types of cooperative matrices in a SPIR-V module, in place; runs during the build.
//
// shaders/lib/matrix.glsl names OpTypeCooperativeMatrixKHR by GL_EXT_spirv_intrinsics, for compilers that know no such type: glslang 12
// writes only literals into it. They are the bits of a component (a float), the scope, the constant_ids of rows and columns, and the
// use; instead of each the instruction needs the id of a type or of a constant.
// usage: rondo_matrix_types [--no-names] MODULE.spv
// --no-names: leaves out what is there for people only.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

namespace {

using Words = std::vector<std::uint32_t>;

enum Op : std::uint32_t {
  kSource = 3,
  kMemberName = 6,
  kTypeInt = 21,
  kTypeFloat = 22,
  kConstant = 43,
  kSpecConstant = 50,
  kFunction = 54,
  kDecorate = 71,
  kFirstType = 19,  // OpTypeVoid
  kTypeCooperativeMatrix = 4456,
};
constexpr std::uint32_t kSpecId = 1, kHeaderWords = 5, kBound = 3;

std::uint32_t op_of(const Words& instruction) { return instruction[0] & 0xffffu; }
Words make(std::uint32_t op, std::initializer_list<std::uint32_t> operands) {
  Words instruction{(static_cast<std::uint32_t>(operands.size()) + 1) << 16 | op};
  instruction.insert(instruction.end(), operands);
  return instruction;
}

/// A module with declarations that matrices need in front of all others.
class Completion {
 public:
  Completion(Words words, bool names) : words_(std::move(words)), names_(names) {}

  /// What is wrong, or null.
  const char* run() {
    if (const char* wrong = split()) return wrong;
    for (Words& instruction : rest_) {
      if (op_of(instruction) != kTypeCooperativeMatrix) continue;
      if (instruction.size() != 7) return "a type of matrices has other operands than five literals";
      for (const std::size_t size : {4u, 5u}) {
        if (sizes_.find(instruction[size]) == sizes_.end()) return "a matrix has a size that is no specialization constant";
        instruction[size] = sizes_[instruction[size]];
      }
      instruction[2] = float_type(instruction[2]);
      for (const std::size_t constant : {3u, 6u}) instruction[constant] = constant_of(instruction[constant]);
    }
    return nullptr;
  }

  Words take() {
    Words all(words_.begin(), words_.begin() + kHeaderWords);
    all[kBound] = bound_;
    for (const std::vector<Words>* part : {&before_, &front_, &rest_}) {
      for (const Words& instruction : *part) all.insert(all.end(), instruction.begin(), instruction.end());
    }
    return all;
  }

 private:
  /// Into what stands before types, types of numbers and specialization constants that are no operations, and the rest.
  const char* split() {
    if (words_.size() < kHeaderWords || words_[0] != 0x07230203) return "not a SPIR-V module of this machine's byte order";
    bound_ = words_[kBound];
    std::map<std::uint32_t, std::uint32_t> spec_ids;
    bool in_types = false;
    for (std::size_t at = kHeaderWords; at < words_.size();) {
      const std::size_t n = words_[at] >> 16;
      if (n == 0 || at + n > words_.size()) return "an instruction goes beyond the module's end";
      const Words instruction(words_.begin() + static_cast<std::ptrdiff_t>(at), words_.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
      const std::uint32_t op = op_of(instruction);
      if (!names_ && op >= kSource && op <= kMemberName) continue;
      in_types = in_types || (op >= kFirstType && op < kFunction);
      if (op == kDecorate && n == 4 && instruction[2] == kSpecId) spec_ids[instruction[1]] = instruction[3];
      if (op == kTypeFloat && n == 3) floats_[instruction[2]] = instruction[1];
      if (op == kTypeInt && instruction[2] == 32 && instruction[3] == 0) uint_ = instruction[1];
      if (op == kSpecConstant && instruction[1] == uint_ && spec_ids.count(instruction[2])) {
        sizes_[spec_ids[instruction[2]]] = instruction[2];
        front_.push_back(instruction);
      } else if (op == kTypeFloat || (op == kTypeInt && instruction[1] == uint_)) {
        front_.push_back(instruction);
      } else {
        (in_types ? rest_ : before_).push_back(instruction);
      }
    }
    return uint_ == 0 ? "there is no type uint" : nullptr;
  }

  std::uint32_t float_type(std::uint32_t bits) {
    std::uint32_t& id = floats_[bits];
    if (id == 0) front_.push_back(make(kTypeFloat, {id = bound_++, bits}));
    return id;
  }
  std::uint32_t constant_of(std::uint32_t value) {
    std::uint32_t& id = constants_[value];
    if (id == 0) front_.push_back(make(kConstant, {uint_, id = bound_++, value}));
    return id;
  }

  Words words_;
  bool names_;
  std::vector<Words> before_, front_, rest_;
  std::uint32_t bound_ = 0, uint_ = 0;
  std::map<std::uint32_t, std::uint32_t> floats_, sizes_, constants_;  ///< ids by bits, constant_id and value
};

}  // namespace

int main(int argc, char** argv) {
  const bool names = argc != 3 || std::strcmp(argv[1], "--no-names") != 0;
  if (argc != (names ? 2 : 3)) {
    std::fputs("usage: rondo_matrix_types [--no-names] MODULE.spv\n", stderr);
    return 2;
  }
  const char* const path = argv[argc - 1];
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  in.close();
  Words words(bytes.size() / 4);
  std::copy_n(bytes.data(), words.size() * 4, reinterpret_cast<char*>(words.data()));
  Completion completion(std::move(words), names);
  if (const char* wrong = completion.run()) {
    std::fprintf(stderr, "rondo_matrix_types: %s: %s\n", path, wrong);
    return 1;
  }
  const Words complete = completion.take();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(complete.data()), static_cast<std::streamsize>(complete.size() * 4));
  out.close();
  if (!out) {
    std::fprintf(stderr, "rondo_matrix_types: %s: cannot be written\n", path);
    return 1;
  }
  return 0;
}
