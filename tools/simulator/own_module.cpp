#include "tools/simulator/own_module.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "runtime/fmt.h"
#include "tools/check/op_case.h"

namespace rondo::simulator {

namespace {

constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 30;
constexpr std::uint32_t kMostBindings = 64;

Status refuse(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

Result<std::vector<char>> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Status(StatusCode::kNotFound, fmt::format("{}: can't be read", path));
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return Status(StatusCode::kIo, fmt::format("{}: can't be read", path));
  return bytes;
}

Result<std::uint64_t> number(const std::string& text, std::uint64_t most, const std::string& what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > most) return refuse(fmt::format("{}: '{}' is no number up to {}", what, text, most));
  return value;
}

/// BINDING and what stands behind the =.
Result<std::pair<std::uint32_t, std::string>> split_binding(const std::string& text, const char* flag) {
  const std::size_t at = text.find('=');
  if (at == std::string::npos) return refuse(fmt::format("{} {}: must be BINDING=...", flag, text));
  RONDO_ASSIGN(const std::uint64_t binding, number(text.substr(0, at), kMostBindings - 1, fmt::format("{} {}", flag, text)));
  return std::pair(static_cast<std::uint32_t>(binding), text.substr(at + 1));
}

Result<Buffer> make_buffer(const std::string& what, const std::string& flag) {
  Buffer buffer;
  const std::size_t at = what.find(':');
  const std::string kind = what.substr(0, at);
  if (at == std::string::npos || (kind != "zeros" && kind != "random" && kind != "unwritten")) {
    RONDO_ASSIGN(const std::vector<char> bytes, read_file(what));
    buffer.bytes.resize(bytes.size());
    std::memcpy(buffer.bytes.data(), bytes.data(), bytes.size());
    return buffer;
  }
  RONDO_ASSIGN(const std::uint64_t bytes, number(what.substr(at + 1), kMostBufferBytes, flag));
  buffer.bytes.resize(bytes);
  if (kind == "unwritten") buffer.written.resize(bytes);
  if (kind == "random") {
    const std::vector<float> values = check::random_values((bytes + 3) / 4, 1);
    std::memcpy(buffer.bytes.data(), values.data(), bytes);
  }
  return buffer;
}

}  // namespace

Result<std::vector<std::uint32_t>> parse_words(const std::string& text) {
  std::vector<std::uint32_t> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    char* behind = nullptr;
    if (!one.empty() && one.back() == 'f' && one.find("0x") == std::string::npos) {
      words.push_back(std::bit_cast<std::uint32_t>(std::strtof(one.c_str(), &behind)));
      if (behind != one.c_str() + one.size() - 1 || one.size() < 2) return refuse(fmt::format("'{}' is no number", one));
    } else {
      const long long value = std::strtoll(one.c_str(), &behind, 0);
      if (one.empty() || *behind != '\0' || value < -(1ll << 31) || value >= (1ll << 32)) return refuse(fmt::format("'{}' is no number of 32 bits", one));
      words.push_back(static_cast<std::uint32_t>(value));
    }
    begin = end + 1;
  }
  return words;
}

Result<OwnRun> run_own_module(const OwnModule& own) {
  RONDO_ASSIGN(const std::vector<char> bytes, read_file(own.path));
  if (bytes.size() < 20 || bytes.size() % 4 != 0) return Status(StatusCode::kCorruptData, fmt::format("{}: has {} bytes, which is no SPIR-V", own.path, bytes.size()));
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  const auto words_of = [](const std::string& text, const char* flag) -> Result<std::vector<std::uint32_t>> {
    Result<std::vector<std::uint32_t>> parsed = parse_words(text);
    if (!parsed.ok()) return parsed.status().with_prefix(flag);
    return parsed;
  };
  RONDO_ASSIGN(const std::vector<std::uint32_t> constants, words_of(own.constants, "--constants"));
  RONDO_ASSIGN(const std::vector<std::uint32_t> push, words_of(own.push, "--push"));
  RONDO_ASSIGN(Module module, read_module(words, {constants, own.subgroup_size, own.spirv_tools}, own.path));

  Launch launch;
  launch.subgroup_size = own.subgroup_size;
  launch.grid = own.grid;
  launch.push = std::as_bytes(std::span(push));
  std::vector<Buffer> buffers;
  for (const std::string& text : own.buffers) {
    RONDO_ASSIGN(const auto split, split_binding(text, "--buffer"));
    RONDO_ASSIGN(Buffer buffer, make_buffer(split.second, "--buffer " + text));
    if (launch.bindings.size() <= split.first) launch.bindings.resize(split.first + 1);
    launch.bindings[split.first] = {static_cast<std::uint32_t>(buffers.size()), 0, buffer.bytes.size()};
    buffers.push_back(std::move(buffer));
  }
  Result<Report> report = simulate(module, buffers, launch);
  if (!report.ok()) return report.status().with_prefix(own.path);
  for (const std::string& text : own.outputs) {
    RONDO_ASSIGN(const auto split, split_binding(text, "--output"));
    if (split.first >= launch.bindings.size() || launch.bindings[split.first].buffer == kNone) return refuse(fmt::format("--output {}: there is no such --buffer", text));
    const Buffer& buffer = buffers[launch.bindings[split.first].buffer];
    std::ofstream out(split.second, std::ios::binary);
    out.write(reinterpret_cast<const char*>(buffer.bytes.data()), static_cast<std::streamsize>(buffer.bytes.size()));
    out.close();
    if (!out) return Status(StatusCode::kIo, fmt::format("{}: can't be written", split.second));
  }
  return OwnRun{std::move(module), std::move(report).value()};
}

}  // namespace rondo::simulator
