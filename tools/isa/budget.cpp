#include "tools/isa/budget.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "runtime/fmt.h"
#include "tools/isa/words.h"

namespace rondo::isa {

namespace {

bool read_number(std::string_view word, std::optional<double>& value) {
  if (word == "-") return true;
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  value = number;
  return error == std::errc() && end == word.data() + word.size() && number >= 0;
}

Status read_line(std::string_view text, Budget::Line& line) {
  std::string_view rest = text;
  line.chip = take_word(rest);
  constexpr const char* kColumns[] = {"registers", "waves", "spills", "scratch", "per_multiply_add"};
  std::optional<double>* const values[] = {&line.registers, &line.waves, &line.spills, &line.scratch_bytes, &line.per_multiply_add};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    const std::string_view word = take_word(rest);
    if (!read_number(word, *values[i])) return Status(StatusCode::kCorruptData, fmt::format("'{}' is neither a number of {} nor -", word, kColumns[i]));
  }
  line.kernel = KernelPattern::parse(rest);
  if (line.kernel.label.empty()) return Status(StatusCode::kCorruptData, "a line is chip, registers, waves, spills, scratch, per_multiply_add, kernel; there is no kernel");
  return {};
}

}  // namespace

Result<Budget> Budget::parse(std::string_view text, std::string_view what) {
  Budget budget;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line[0] == '#') continue;
    std::string_view rest = line;
    if (budget.mesa_.empty()) {
      if (take_word(rest) != "mesa" || trimmed(rest).empty()) return Status(StatusCode::kCorruptData, fmt::format("{}, line {}: the first line must be `mesa VERSION`", what, number));
      budget.mesa_ = trimmed(rest);
      continue;
    }
    Line read;
    read.number = number;
    if (const Status status = read_line(line, read); !status.ok()) return status.with_prefix(fmt::format("{}, line {}", what, number));
    for (const Line& other : budget.lines_) {
      if (other.chip == read.chip && other.kernel == read.kernel) {
        return Status(StatusCode::kCorruptData, fmt::format("{}, line {}: {} has a line for this kernel already, line {}", what, number, read.chip, other.number));
      }
    }
    budget.lines_.push_back(std::move(read));
  }
  if (budget.mesa_.empty()) return Status(StatusCode::kCorruptData, fmt::format("{}: it is empty; the first line must be `mesa VERSION`", what));
  return budget;
}

bool Budget::is_for(std::string_view driver) const {
  const std::size_t at = driver.find("Mesa " + mesa_);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + 5 + mesa_.size();
  return end == driver.size() || !std::isdigit(static_cast<unsigned char>(driver[end]));
}

const Budget::Line* Budget::find(std::string_view device_name, std::string_view kernel, const std::vector<std::string>& constants) const {
  const Line* best = nullptr;
  for (const Line& line : lines_) {
    if (line.kernel.fits(kernel, constants) && is_chip(line.chip, device_name) && (!best || line.kernel.length > best->kernel.length)) best = &line;
  }
  return best;
}

std::string find_excess(const Budget::Line& line, const Executable& executable, std::optional<double> per_multiply_add) {
  std::string excess;
  const auto compare = [&](const std::optional<double>& value, const std::optional<double>& allowed, const char* what, bool least = false) {
    // Ratios are kept with one decimal.
    if (!value || !allowed || (least ? *value >= *allowed : *value <= *allowed + 0.05)) return;
    excess += fmt::format("{}{:.4g} {}, {} {:.4g} allowed", excess.empty() ? "" : "; ", *value, what, least ? "at least" : "at most", *allowed);
  };
  compare(executable.registers, line.registers, "registers");
  compare(executable.occupancy, line.waves, "waves", true);
  compare(executable.spills, line.spills, "spills");
  compare(executable.scratch_bytes, line.scratch_bytes, "bytes of scratch");
  compare(per_multiply_add, line.per_multiply_add, "instructions per multiply-add");
  return excess;
}

}  // namespace rondo::isa
