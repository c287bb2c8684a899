#include "tools/isa/foreign.h"

#include <algorithm>
#include <cstring>

#include <rondo/byte_source.h>

#include "models/json.h"
#include "runtime/fmt.h"

namespace rondo::isa {

namespace {

constexpr std::uint32_t kSpirvMagic = 0x07230203;

Result<std::vector<std::uint32_t>> read_spirv(const std::string& path) {
  RONDO_ASSIGN(const std::string bytes, read_text(path));
  std::vector<std::uint32_t> code(bytes.size() / sizeof(std::uint32_t));
  if (!code.empty()) std::memcpy(code.data(), bytes.data(), code.size() * sizeof(std::uint32_t));
  if (bytes.size() % sizeof(std::uint32_t) != 0 || code.size() < 5 || code[0] != kSpirvMagic) return Status(StatusCode::kCorruptData, fmt::format("{}: this is no SPIR-V module", path));
  return code;
}

Result<std::uint32_t> find_u32(const nlohmann::json& object, const char* name, std::uint32_t otherwise, std::uint32_t most, const std::string& what) {
  RONDO_ASSIGN(const std::uint64_t value, models::find_u64_or(object, name, otherwise, what));
  if (value > most) return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' is {}, at most {} are there", what, name, value, most));
  return static_cast<std::uint32_t>(value);
}

Result<ForeignModule> read_module(const nlohmann::json& one, const std::string& what) {
  ForeignModule foreign;
  RONDO_ASSIGN(foreign.name, models::find_string(one, "name", what));
  RONDO_ASSIGN(const std::string beside, models::find_string(one, "beside", what));
  foreign.beside = KernelPattern::parse(beside);
  RONDO_ASSIGN(foreign.module.subgroup_size, find_u32(one, "subgroup_size", 0, 128, what));
  RONDO_ASSIGN(foreign.products, find_u32(one, "products", 0, 1u << 20, what));
  if (const auto full = one.find("full_subgroups"); full != one.end()) {
    if (!full->is_boolean()) return Status(StatusCode::kCorruptData, fmt::format("{}: 'full_subgroups' must be true or false", what));
    foreign.module.full_subgroups = *full == true;
  }
  if (const auto chips = one.find("chips"); chips != one.end()) {
    if (!chips->is_array()) return Status(StatusCode::kCorruptData, fmt::format("{}: 'chips' must be an array of names", what));
    for (const nlohmann::json& chip : *chips) {
      if (!chip.is_string()) return Status(StatusCode::kCorruptData, fmt::format("{}: 'chips' must be an array of names", what));
      foreign.chips.push_back(chip.get_ref<const std::string&>());
    }
  }
  RONDO_ASSIGN(const nlohmann::json* const constants, models::find_array(one, "constants", what));
  for (const nlohmann::json& constant : *constants) {
    if (!constant.is_number_unsigned() || constant > UINT32_MAX) return Status(StatusCode::kCorruptData, fmt::format("{}: 'constants' must be an array of 32-bit numbers", what));
    foreign.module.constants.push_back(static_cast<std::uint32_t>(*constant.get_ptr<const std::uint64_t*>()));
  }
  return foreign;
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  RONDO_ASSIGN(const ByteSource source, open_file(path));
  std::string text(source.size_bytes, '\0');
  RONDO_TRY(source.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::vector<ForeignModule>> read_foreign_modules(const std::string& folder, std::string_view device_name) {
  const std::string path = folder + "/modules.json";
  RONDO_ASSIGN(const std::string text, read_text(path));
  RONDO_ASSIGN(const nlohmann::json document, models::parse_json(text, path));
  RONDO_ASSIGN(const nlohmann::json* const modules, models::find_array(document, "modules", path));
  RONDO_ASSIGN(const std::uint32_t n_bindings, find_u32(document, "n_bindings", 8, 64, path));
  RONDO_ASSIGN(const std::uint32_t push_bytes, find_u32(document, "push_bytes", 128, 256, path));
  std::vector<ForeignModule> found;
  for (std::size_t i = 0; i < modules->size(); ++i) {
    const std::string what = fmt::format("{}: module {}", path, i);
    if (!(*modules)[i].is_object()) return Status(StatusCode::kCorruptData, fmt::format("{} is no object", what));
    RONDO_ASSIGN(ForeignModule foreign, read_module((*modules)[i], what));
    const bool wanted = foreign.chips.empty() || std::any_of(foreign.chips.begin(), foreign.chips.end(), [&](const std::string& chip) { return is_chip(chip, device_name); });
    if (!wanted) continue;
    RONDO_ASSIGN(const std::string file, models::find_string((*modules)[i], "file", what));
    RONDO_ASSIGN(foreign.module.code, read_spirv(folder + "/" + file));
    foreign.module.n_bindings = n_bindings;
    foreign.module.push_bytes = push_bytes;
    found.push_back(std::move(foreign));
  }
  return found;
}

}  // namespace rondo::isa
