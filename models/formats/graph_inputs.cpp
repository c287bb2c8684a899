#include "models/formats/graph_inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "graph/block_format.h"
#include "models/formats/cache_blocks.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using graph::InputRole;
using graph::TensorId;
using Kind = GraphInputType::Kind;

constexpr std::size_t kChunkElements = std::size_t{1} << 16;
constexpr std::int64_t kMaxConstant = 1 << 16;

Status invalid(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

bool is_view(std::string_view op) { return op == "slice" || op == "transpose" || op == "reshape"; }

/// Keys, values and caches of these types are stored as they are.
bool is_cache_rows(graph::Type type) { return type == graph::Type::kF16 || type == graph::Type::kQ8_0; }

/// The shape in the safetensors file.
std::vector<std::uint64_t> stored_shape(const DescribedInput& input) {
  std::vector<std::uint64_t> shape;
  for (int axis = 0; axis < input.shape.rank; ++axis) shape.push_back(static_cast<std::uint64_t>(input.shape[axis]));
  if (input.type.type == graph::Type::kQ8_0) shape.back() = cache_row_file_bytes(input.shape.last());
  else if (input.type.kind == Kind::kBlocks) shape.back() = graph::file_row_bytes(*graph::find_block_format(input.type.type), shape.back());
  return shape;
}

}  // namespace

Status GraphInputs::check_file() {
  RONDO_ASSIGN(file_, SafetensorsFile::parse(source_));
  for (const DescribedInput& input : description_.inputs) {
    const SafetensorsEntry* entry = file_.find(input.name);
    const std::string what = fmt::format("{}: tensor '{}'", file_.name(), printable(input.name));
    if (!entry) return Status(StatusCode::kNotFound, fmt::format("{} is missing, an input of {}", what, graph_file_));
    if (entry->dtype != input.type.dtype) {
      return invalid(fmt::format("{} has dtype {}, but {} says {}, which is stored as {}", what, safetensors_dtype_name(entry->dtype), graph_file_, input.type.name,
                                 safetensors_dtype_name(input.type.dtype)));
    }
    const std::vector<std::uint64_t> expected = stored_shape(input);
    if (entry->shape == expected) continue;
    return invalid(fmt::format("{} is ({}), but {} says {}{}", what, fmt::join(entry->shape, ", "), graph_file_, to_string(input.shape),
                               input.type.kind == Kind::kBlocks ? fmt::format(" of {}, which is stored as ({})", input.type.name, fmt::join(expected, ", ")) : ""));
  }
  return {};
}

const DescribedInput& GraphInputs::described(const std::string& name) const {
  return *std::lower_bound(description_.inputs.begin(), description_.inputs.end(), name, [](const DescribedInput& input, const std::string& wanted) { return input.name < wanted; });
}

Result<GraphInputs::Form> GraphInputs::form_of(std::string_view op, const graph::NamedInput& role, const DescribedInput& input) const {
  const Kind kind = input.type.kind;
  const auto refuse = [&](const char* expected) {
    return invalid(fmt::format("input '{}' is '{}' of type {} but must be {}", role.name, printable(input.name), input.type.name, expected));
  };
  switch (role.role) {
    case InputRole::kActivation:
      if (is_view(op) && (kind == Kind::kInteger || kind == Kind::kBool)) return Form::kIntegers;
      if (kind == Kind::kFloat) return input.type.type == graph::Type::kF16 ? Form::kHalves : Form::kDense;
      return refuse("f32, f16 or bf16");
    case InputRole::kParameter:
      if (kind == Kind::kFloat) return Form::kDense;
      return refuse("f32, f16 or bf16");
    case InputRole::kConstant:
      if (kind == Kind::kFloat) return Form::kConstant;
      return refuse("f32, f16 or bf16");
    case InputRole::kMask:
      if (kind == Kind::kFloat) return Form::kDense;
      if (kind == Kind::kBool) return Form::kIntegers;
      return refuse("bool, f32, f16 or bf16");
    case InputRole::kIntegers:
      if (kind == Kind::kInteger) return Form::kIntegers;
      return refuse("i32 or i64");
    case InputRole::kMatrix:
      if (kind == Kind::kFloat || kind == Kind::kBlocks) return Form::kWeight;
      return refuse("f32, f16, bf16 or a weight type like q8_0");
    case InputRole::kKeys:
    case InputRole::kCache:
      if (is_cache_rows(input.type.type)) return Form::kCacheRows;
      if (kind == Kind::kFloat && input.type.type == graph::Type::kF32) return Form::kDense;
      return refuse("f32, f16 or q8_0");
    case InputRole::kStepState: break;
  }
  return invalid(fmt::format("input '{}' belongs to sessions", role.name));
}

Result<TensorId> GraphInputs::find_or_make(std::string_view op, const graph::NamedInput& role, const std::string& name, bool changed) {
  const DescribedInput& input = described(name);
  RONDO_ASSIGN(const Form form, form_of(op, role, input));
  const Form changeable = is_cache_rows(input.type.type) ? Form::kCacheRows : Form::kDense;
  if (changed && form != changeable) {
    return invalid(fmt::format("input '{}' is '{}' of type {}, but a kv_write changes it where it is stored, which is not as this node reads it; give it under another name too", role.name, printable(name), input.type.name));
  }
  if (const auto found = made_.find({name, form}); found != made_.end()) return found->second;
  Result<TensorId> made = make(op, input, form, changed);
  if (!made.ok()) return invalid(fmt::format("input '{}' is '{}': {}", role.name, printable(name), made.status().message()));
  made_[{name, form}] = *made;
  if (form != Form::kConstant) stored_[graph_.tensor(*made).storage] = {&input, form};
  return made;
}

TensorId GraphInputs::find_changed(const std::string& name) const {
  for (const Form form : {Form::kDense, Form::kCacheRows}) {
    const auto found = made_.find({name, form});
    if (found != made_.end() && graph_.storage_of(found->second).kind == graph::StorageKind::kCache) return found->second;
  }
  return graph::kNone;
}

Result<TensorId> GraphInputs::make(std::string_view op, const DescribedInput& input, Form form, bool changed) {
  const graph::StorageKind kind = changed ? graph::StorageKind::kCache : graph::StorageKind::kInput;
  TensorId made = graph::kNone;
  switch (form) {
    case Form::kDense: made = graph_.add_tensor(input.name, kind, graph::Type::kF32, input.shape); break;
    case Form::kHalves: made = graph_.add_tensor(input.name, kind, graph::Type::kF16, input.shape); break;
    case Form::kIntegers: made = graph_.add_tensor(input.name, graph::StorageKind::kInput, graph::Type::kI32, input.shape); break;
    case Form::kConstant: return add_constant(input);
    case Form::kCacheRows:
      if (input.shape.rank != 4) return invalid(fmt::format("{} of {} must be (B, G, S, D)", to_string(input.shape), input.type.name));
      made = graph_.add_cache(input.name, kind, input.type.type, input.shape);
      break;
    case Form::kWeight:
      if (op == "patch_embed" ? input.shape.rank != 4 || input.shape[2] != input.shape[3] : input.shape.rank != 2) {
        return invalid(fmt::format("{} must be {}", to_string(input.shape), op == "patch_embed" ? "(D, C, P, P)" : op == "embedding" ? "(V, D)" : "(N, K)"));
      }
      RONDO_TRY(check_whole_blocks(input));
      made = add_weight(input);
      break;
  }
  RONDO_TRY(Status(graph_.status()));
  return made;
}

TensorId GraphInputs::add_weight(const DescribedInput& input) {
  const std::int64_t rows = input.shape[0], columns = input.shape.n_elements() / rows;
  graph::Storage storage;
  storage.name = input.name;
  storage.kind = graph::StorageKind::kWeight;
  storage.type = input.type.type;
  storage.matrix = {rows, columns};
  storage.size_bytes = graph::plane_layout(*graph::find_block_format(input.type.type), rows, columns).size_bytes;
  graph::Tensor tensor;
  tensor.name = input.name;
  tensor.type = input.type.type;
  tensor.shape = {rows, columns};
  tensor.strides = graph::contiguous_strides(tensor.shape);
  tensor.storage = graph_.add_storage(std::move(storage));
  return graph_.add_view(std::move(tensor));
}

Result<TensorId> GraphInputs::add_constant(const DescribedInput& input) {
  if (input.shape.rank != 1 || input.shape[0] > kMaxConstant) return invalid(fmt::format("{} must have one dimension of at most {}", to_string(input.shape), kMaxConstant));
  RONDO_ASSIGN(const std::vector<float> values, file_.read_f32(source_, input.name));
  const TensorId made = graph_.add_constant(input.name, input.shape, values);
  RONDO_TRY(Status(graph_.status()));
  return made;
}

Status GraphInputs::load(StorageBytes& contents, bool integers) const {
  for (const auto& [storage, stored] : stored_) {
    // Booleans grow fourfold, and nothing about them needs a check.
    if ((stored.form == Form::kIntegers && stored.input->type.kind == Kind::kInteger) != integers) continue;
    const auto read = stored.form == Form::kIntegers    ? &GraphInputs::read_integers
                      : stored.form == Form::kWeight    ? &GraphInputs::read_bytes
                      : stored.form == Form::kHalves    ? &GraphInputs::read_halves
                      : stored.form == Form::kCacheRows ? &GraphInputs::read_cache_rows
                                                        : &GraphInputs::read_floats;
    RONDO_ASSIGN(contents[storage], (this->*read)(*stored.input));
  }
  return {};
}

Result<std::vector<std::byte>> GraphInputs::read_bytes(const DescribedInput& input) const {
  const SafetensorsEntry& entry = *file_.find(input.name);
  std::vector<std::byte> bytes(entry.size_bytes);
  RONDO_TRY(source_.read(entry.offset_bytes, bytes));
  return bytes;
}

Result<std::vector<std::byte>> GraphInputs::read_floats(const DescribedInput& input) const {
  if (input.type.type == graph::Type::kF32) return read_bytes(input);
  RONDO_ASSIGN(const std::vector<float> values, file_.read_f32(source_, input.name));
  const auto bytes = std::as_bytes(std::span(values));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<std::vector<std::byte>> GraphInputs::read_halves(const DescribedInput& input) const {
  RONDO_ASSIGN(std::vector<std::byte> bytes, read_bytes(input));
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

Result<std::vector<std::byte>> GraphInputs::read_cache_rows(const DescribedInput& input) const {
  RONDO_ASSIGN(std::vector<std::byte> dense, read_bytes(input));
  if (input.type.type == graph::Type::kQ8_0) return planes_of_blocks(dense, input.shape.n_rows(), input.shape[3]);
  if (input.shape[3] % 2 == 0) return dense;
  const auto rows = static_cast<std::size_t>(input.shape.n_rows()), row_bytes = static_cast<std::size_t>(input.shape[3]) * 2;
  std::vector<std::byte> padded(rows * (row_bytes + 2));
  for (std::size_t row = 0; row < rows; ++row) std::memcpy(padded.data() + row * (row_bytes + 2), dense.data() + row * row_bytes, row_bytes);
  return padded;
}

Result<std::vector<std::byte>> GraphInputs::read_integers(const DescribedInput& input) const {
  const SafetensorsEntry& entry = *file_.find(input.name);
  const std::size_t n = entry.n_elements(), element_bytes = safetensors_dtype_bytes(entry.dtype);
  std::vector<std::byte> words(n * 4), chunk;
  for (std::size_t done = 0; done < n; done += kChunkElements) {
    const std::size_t count = std::min(kChunkElements, n - done);
    chunk.resize(count * element_bytes);
    RONDO_TRY(source_.read(entry.offset_bytes + done * element_bytes, chunk));
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t wide = 0;
      std::int32_t value = 0;
      if (entry.dtype == SafetensorsDtype::kI64) std::memcpy(&wide, chunk.data() + i * 8, 8);
      else if (entry.dtype == SafetensorsDtype::kBool) wide = chunk[i] != std::byte{0} ? 1 : 0;
      else std::memcpy(&value, chunk.data() + i * 4, 4), wide = value;
      if (wide < std::numeric_limits<std::int32_t>::min() || wide > std::numeric_limits<std::int32_t>::max()) {
        return invalid(fmt::format("{}: tensor '{}' holds {}, beyond 32 bits", file_.name(), printable(input.name), wide));
      }
      value = static_cast<std::int32_t>(wide);
      std::memcpy(words.data() + (done + i) * 4, &value, 4);
    }
  }
  return words;
}

}  // namespace rondo::models
