#include "models/formats/split_gguf.h"

#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/formats/derived_gguf.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

/// What a part's name says.
struct PartName {
  std::string stem;  ///< before "-00001-of-00003.gguf"
  std::uint32_t number = 0, count = 0;

  std::string path(std::uint32_t other) const { return fmt::format("{}-{:05}-of-{:05}.gguf", stem, other, count); }
};

std::optional<PartName> find_part_name(std::string_view path) {
  constexpr std::string_view kOf = "-of-", kEnd = ".gguf";
  constexpr std::size_t kDigits = 5, kTail = 1 + kDigits + kOf.size() + kDigits + kEnd.size();
  if (path.size() < kTail) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail);
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || !tail.ends_with(kEnd)) return std::nullopt;
  PartName name;
  name.stem = path.substr(0, path.size() - kTail);
  for (const auto& [first, value] : {std::pair{std::size_t{1}, &name.number}, std::pair{1 + kDigits + kOf.size(), &name.count}}) {
    const char* begin = tail.data() + first;
    if (std::from_chars(begin, begin + kDigits, *value).ptr != begin + kDigits) return std::nullopt;
  }
  if (name.number < 1 || name.number > name.count) return std::nullopt;
  return name;
}

/// An open part.
struct Part {
  ByteSource source;
  GgufFile file;
};

/// The parts of one file, from the first on.
class Parts {
 public:
  explicit Parts(PartName name) : name_(std::move(name)) {}

  Status open() {
    for (std::uint32_t number = 1; number <= name_.count; ++number) {
      Result<ByteSource> source = open_file(name_.path(number));
      if (!source.ok()) {
        return source.status().with_prefix(number == 1 && parts_.empty() ? fmt::format("part 1 of {}", name_.count)
                                                                         : fmt::format("{}: part {} of {}", parts_[0]->source.name, number, name_.count));
      }
      RONDO_ASSIGN(GgufFile file, GgufFile::parse_part(*source));
      parts_.push_back(std::make_unique<const Part>(Part{std::move(source).value(), std::move(file)}));
      RONDO_TRY(check(*parts_.back(), number));
    }
    const std::uint32_t n_tensors = n_tensors_;
    if (part_of_.size() == n_tensors) return {};
    return first().key_error(kSplitTensors, fmt::format("is {}, but its {} parts have {} tensors", n_tensors, name_.count, part_of_.size()));
  }

  Result<ByteSource> joined(const std::string& name) const {
    std::vector<DerivedTensor> tensors;
    for (const auto& part : parts_) {
      for (const GgufTensor& tensor : part->file.tensors()) {
        tensors.push_back({&tensor, tensor.type, tensor.size_bytes, [&part = *part, &tensor](StitchedSource& file) { file.add_run(part.source, tensor.offset_bytes, tensor.size_bytes); }});
      }
    }
    const auto is_of_parts = [](std::string_view key) { return key == kSplitNumber || key == kSplitCount || key == kSplitTensors; };
    return derive_gguf(parts_[0]->source, first(), is_of_parts, tensors, name);
  }

 private:
  const GgufFile& first() const { return parts_[0]->file; }

  Status check(const Part& part, std::uint32_t number) {
    const GgufFile& file = part.file;
    const bool is_first = number == 1;
    RONDO_ASSIGN(const std::uint32_t index, file.u32(kSplitNumber));
    if (index != number - 1) return file.key_error(kSplitNumber, fmt::format("is {}, expected {} in part {} of {}", index, number - 1, number, name_.count));
    // The first part must say these; others usually do.
    RONDO_ASSIGN(const std::uint32_t count, is_first ? file.u32(kSplitCount) : file.u32_or(kSplitCount, name_.count));
    if (count != name_.count) return file.key_error(kSplitCount, fmt::format("is {}, but its name says {}", count, name_.count));
    RONDO_ASSIGN(const std::uint32_t n_tensors, is_first ? file.u32(kSplitTensors) : file.u32_or(kSplitTensors, n_tensors_));
    if (is_first) n_tensors_ = n_tensors;
    if (n_tensors != n_tensors_) return file.key_error(kSplitTensors, fmt::format("is {}, but {} in {}", n_tensors, n_tensors_, first().name()));
    constexpr std::string_view kArchitecture = "general.architecture";
    if (file.has(kArchitecture)) {
      RONDO_ASSIGN(const std::string_view ours, file.string(kArchitecture));
      RONDO_ASSIGN(const std::string_view expected, first().string_or(kArchitecture, ""));
      if (ours != expected) return file.key_error(kArchitecture, fmt::format("is '{}', but '{}' in {}", printable(ours), printable(expected), first().name()));
    }
    if (file.has(kAlignment)) {
      RONDO_ASSIGN(const std::uint32_t ours, file.u32(kAlignment));
      RONDO_ASSIGN(const std::uint32_t expected, first().u32_or(kAlignment, kUsualAlignment));
      if (ours != expected) return file.key_error(kAlignment, fmt::format("is {}, but {} in {}", ours, expected, first().name()));
    }
    for (const GgufTensor& tensor : file.tensors()) {
      const auto [entry, is_new] = part_of_.emplace(tensor.name, number);
      if (!is_new) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' is in part {} as well", file.name(), printable(tensor.name), entry->second));
    }
    return {};
  }

  PartName name_;
  std::vector<std::unique_ptr<const Part>> parts_;
  std::map<std::string_view, std::uint32_t> part_of_;  ///< by the tensors' names, which the parts own
  std::uint32_t n_tensors_ = 0;
};

}  // namespace

Result<ByteSource> open_gguf(const std::string& path) {
  RONDO_ASSIGN(ByteSource source, open_file(path));
  const std::optional<PartName> name = find_part_name(path);
  if (!name) return source;
  {
    RONDO_ASSIGN(const GgufFile file, GgufFile::parse_part(source));
    if (!file.has(kSplitCount)) return source;  // it is only called so
    RONDO_ASSIGN(const std::uint32_t count, file.u32(kSplitCount));
    if (count != name->count) return file.key_error(kSplitCount, fmt::format("is {}, but its name says {}", count, name->count));
  }
  Parts parts(*name);
  RONDO_TRY(parts.open());
  return parts.joined(path);
}

}  // namespace rondo::models
