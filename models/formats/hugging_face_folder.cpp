#include "models/formats/hugging_face_folder.h"

#include <algorithm>

#include "models/json.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

using json = nlohmann::json;

Result<std::optional<std::uint32_t>> FolderConfig::count(std::initializer_list<const char*> fields) const {
  for (const char* field : fields) {
    if (!has(field)) continue;
    RONDO_ASSIGN(const std::uint64_t found, find_u64(value(), field, name()));
    if (found > 0xffffffffu) return wrong(field, fmt::format("is {}, which is too large", found));
    return std::optional(static_cast<std::uint32_t>(found));
  }
  return std::optional<std::uint32_t>();
}

Result<std::optional<double>> FolderConfig::number(const json& object, std::initializer_list<const char*> fields) const {
  for (const char* field : fields) {
    if (!has_field(object, field)) continue;
    const json& found = *object.find(field);
    if (!found.is_number()) return wrong(field, "must be a number");
    return std::optional(found.is_number_float() ? *found.get_ptr<const json::number_float_t*>()
                                                 : found.is_number_unsigned() ? static_cast<double>(*found.get_ptr<const json::number_unsigned_t*>())
                                                                              : static_cast<double>(*found.get_ptr<const json::number_integer_t*>()));
  }
  return std::optional<double>();
}

Result<std::uint32_t> FolderConfig::need(std::initializer_list<const char*> fields) const {
  RONDO_ASSIGN(const std::optional<std::uint32_t> found, count(fields));
  if (!found) return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' is missing", name(), *fields.begin()));
  return *found;
}

Status FolderConfig::check_range(const char* field, std::uint32_t value, std::uint32_t most) const {
  return value >= 1 && value <= most ? Status() : wrong(field, fmt::format("is {} but must be in [1, {}]", value, most));
}

Status FolderTensor::error(StatusCode code, const std::string& what) const { return Status(code, fmt::format("{}: tensor '{}' {}", source->name, printable(entry.name), what)); }

std::optional<GgmlType> FolderTensor::find_type() const {
  switch (entry.dtype) {
    case SafetensorsDtype::kF32: return GgmlType::kF32;
    case SafetensorsDtype::kF16: return GgmlType::kF16;
    case SafetensorsDtype::kBF16: return GgmlType::kBF16;
    default: return std::nullopt;
  }
}

Result<GgmlType> FolderTensor::need_type() const {
  const std::optional<GgmlType> type = find_type();
  if (!type) return error(StatusCode::kUnsupported, fmt::format("is {}, which is not there yet (F32, F16 and BF16 are)", entry.spelling()));
  return *type;
}

Result<FolderTensors> FolderTensors::open(const std::string& folder) {
  FolderTensors tensors;
  const std::string index = folder + "/model.safetensors.index.json";
  const Result<ByteSource> one = open_file(folder + "/model.safetensors");
  if (one.ok()) {
    RONDO_TRY(tensors.add(*one, nullptr));
    return tensors;
  }
  if (one.status().code() != StatusCode::kNotFound) return one.status();
  const Result<json> document = read_json_file(index);
  if (document.status().code() == StatusCode::kNotFound) return Status(StatusCode::kNotFound, fmt::format("{}: has neither model.safetensors nor model.safetensors.index.json", folder));
  RONDO_TRY(document.status());
  RONDO_ASSIGN(const json* map, find_object(*document, "weight_map", index));
  std::map<std::string, std::set<std::string>> files;
  for (auto entry = map->begin(); entry != map->end(); ++entry) {
    if (!entry->is_string()) return Status(StatusCode::kCorruptData, fmt::format("{}: 'weight_map' has no file for '{}'", index, printable(entry.key())));
    const std::string& file = entry->get_ref<const std::string&>();
    if (file.empty() || file.find('/') != std::string::npos || file.find('\0') != std::string::npos) return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' is no file of the folder", index, printable(file)));
    files[file].insert(entry.key());
  }
  for (const auto& [file, names] : files) {
    RONDO_ASSIGN(const ByteSource source, open_file(folder + "/" + file));
    RONDO_TRY(tensors.add(source, &names));
  }
  return tensors;
}

Status FolderTensors::add(const ByteSource& source, const std::set<std::string>* listed) {
  sources_.push_back(std::make_shared<ByteSource>(source));
  RONDO_ASSIGN(const SafetensorsFile file, SafetensorsFile::parse(source));
  for (const SafetensorsEntry& entry : file.entries()) {
    if (listed && !listed->contains(entry.name)) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' is not in the index, or in another file", source.name, printable(entry.name)));
    if (!tensors_.emplace(entry.name, FolderTensor{sources_.back().get(), entry}).second) {
      return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' is in another file as well", source.name, printable(entry.name)));
    }
  }
  if (!listed) return {};
  for (const std::string& name : *listed) {
    if (!file.find(name)) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' is missing, which the index says is there", source.name, printable(name)));
  }
  return {};
}

void FolderFile::place(const std::string& name, std::span<const std::uint64_t> dims, GgmlType type, std::uint64_t size_bytes, std::function<void(StitchedSource&)> add) {
  placed_.push_back({keys.tensor(name, dims, type, size_bytes), std::move(add)});
}

void FolderFile::place_values(const std::string& name, std::vector<float> values) {
  const std::uint64_t dims[] = {std::max<std::uint64_t>(values.size(), 1)};
  if (values.empty()) values.push_back(0);  // refused by whoever reads it
  const std::uint64_t size_bytes = values.size() * sizeof(float);
  place(name, dims, GgmlType::kF32, size_bytes, [values = std::move(values)](StitchedSource& file) {
    const auto bytes = std::as_bytes(std::span(values));
    file.add_bytes({bytes.begin(), bytes.end()});
  });
}

ByteSource FolderFile::finish(const std::string& name) const {
  StitchedSource file;
  file.add_bytes(keys.header());
  const std::uint64_t data = file.size_bytes();
  for (const Placed& placed : placed_) {
    file.pad_to(data + placed.offset_bytes);
    placed.add(file);
  }
  file.pad_to(data + keys.data_bytes());
  return file.source(name);
}

}  // namespace rondo::models
