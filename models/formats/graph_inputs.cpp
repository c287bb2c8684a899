#include "models/formats/graph_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "graph/block_format.h"
#include "graph/cache_layout.h"
#include "graph/float16.h"
#include "models/formats/cache_blocks.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using graph::InputRole;
using graph::TensorId;
using Form = InputForm;
using Kind = GraphInputType::Kind;

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 18;
constexpr std::int64_t kMaxConstant = 1 << 16;

Status invalid(std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); }

bool is_view(std::string_view op) { return op == "slice" || op == "transpose" || op == "reshape"; }

/// Keys, values and caches of these types are stored as they are.
bool is_cache_rows(graph::Type type) { return type == graph::Type::kF16 || type == graph::Type::kQ8_0; }

/// How people call a role that does not take an input.
Status refuse_type(const graph::NamedInput& role, const DescribedInput& input, const char* expected) {
  return invalid(fmt::format("input '{}' is '{}' of type {} but must be {}", role.name, printable(input.name), input.type.name, expected));
}

Result<Form> form_of(std::string_view op, const graph::NamedInput& role, const DescribedInput& input) {
  const Kind kind = input.type.kind;
  if (input.transposed && role.role != InputRole::kMatrix) {
    return invalid(fmt::format("input '{}' is '{}' with layout kn, which is for weights that are matrices", role.name, printable(input.name)));
  }
  switch (role.role) {
    case InputRole::kActivation:
      if (is_view(op) && (kind == Kind::kInteger || kind == Kind::kBool)) return Form::kIntegers;
      if (kind == Kind::kFloat) return input.type.type == graph::Type::kF16 ? Form::kHalves : Form::kDense;
      return refuse_type(role, input, "f32, f16 or bf16");
    case InputRole::kParameter:
      if (kind == Kind::kFloat) return Form::kDense;
      return refuse_type(role, input, "f32, f16 or bf16");
    case InputRole::kConstant:
      if (kind == Kind::kFloat) return Form::kConstant;
      return refuse_type(role, input, "f32, f16 or bf16");
    case InputRole::kMask:
      if (kind == Kind::kFloat) return Form::kDense;
      if (kind == Kind::kBool) return Form::kIntegers;
      return refuse_type(role, input, "bool, f32, f16 or bf16");
    case InputRole::kIntegers:
      if (kind == Kind::kInteger) return Form::kIntegers;
      return refuse_type(role, input, "i32 or i64");
    case InputRole::kMatrix:
      if (kind == Kind::kFloat || kind == Kind::kBlocks) return Form::kWeight;
      return refuse_type(role, input, "f32, f16, bf16 or a weight type like q8_0");
    case InputRole::kKeys:
    case InputRole::kCache:
      if (is_cache_rows(input.type.type)) return Form::kCacheRows;
      if (kind == Kind::kFloat && input.type.type == graph::Type::kF32) return Form::kDense;
      return refuse_type(role, input, "f32, f16 or q8_0");
    case InputRole::kStepState: break;
  }
  return invalid(fmt::format("input '{}' belongs to sessions", role.name));
}

/// Calls take(first element, bytes of elements) for one piece after the other.
template <typename Take>
Status for_each_chunk(const DescribedInput& input, const InputElements& elements, Take&& take) {
  const std::uint64_t element = safetensors_dtype_bytes(input.type.dtype), total = element_bytes_of(input);
  std::vector<std::byte> chunk(std::min(total, kChunkBytes));
  for (std::uint64_t done = 0; done < total; done += chunk.size()) {
    chunk.resize(std::min<std::uint64_t>(chunk.size(), total - done));
    RONDO_TRY(elements.source.read(elements.offset_bytes + done, chunk));
    RONDO_TRY(take(done / element, std::span<const std::byte>(chunk)));
  }
  return {};
}

Status read_as_they_are(const DescribedInput& input, const InputElements& elements, std::span<std::byte> out) {
  const std::uint64_t n = element_bytes_of(input);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), std::byte{0});
  return elements.source.read(elements.offset_bytes, out.first(n));
}

Status read_floats(const DescribedInput& input, const InputElements& elements, std::span<std::byte> out) {
  if (input.type.type == graph::Type::kF32) return read_as_they_are(input, elements, out);
  const bool half = input.type.type == graph::Type::kF16;
  return for_each_chunk(input, elements, [&](std::uint64_t first, std::span<const std::byte> chunk) -> Status {
    for (std::size_t i = 0; i < chunk.size() / 2; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, chunk.data() + 2 * i, 2);
      const std::uint32_t wide = std::uint32_t{bits} << 16;
      float value = 0;
      if (half) value = graph::half_to_float(bits);
      else std::memcpy(&value, &wide, 4);
      std::memcpy(out.data() + 4 * (first + i), &value, 4);
    }
    return {};
  });
}

Status read_integers(const DescribedInput& input, const InputElements& elements, std::span<std::byte> out) {
  const std::size_t size = safetensors_dtype_bytes(input.type.dtype);
  return for_each_chunk(input, elements, [&](std::uint64_t first, std::span<const std::byte> chunk) -> Status {
    for (std::size_t i = 0; i < chunk.size() / size; ++i) {
      std::int64_t wide = 0;
      std::int32_t value = 0;
      if (size == 8) std::memcpy(&wide, chunk.data() + i * 8, 8);
      else if (size == 1) wide = chunk[i] != std::byte{0} ? 1 : 0;
      else std::memcpy(&value, chunk.data() + i * 4, 4), wide = value;
      if (wide < std::numeric_limits<std::int32_t>::min() || wide > std::numeric_limits<std::int32_t>::max()) {
        return invalid(fmt::format("{}: tensor '{}' holds {}, beyond 32 bits", elements.source.name, printable(input.name), wide));
      }
      value = static_cast<std::int32_t>(wide);
      std::memcpy(out.data() + (first + i) * 4, &value, 4);
    }
    return {};
  });
}

Status read_cache_rows(const DescribedInput& input, const InputElements& elements, std::span<std::byte> out) {
  if (input.type.type == graph::Type::kF16 && input.shape[3] % 2 == 0) return read_as_they_are(input, elements, out);
  std::vector<std::byte> dense(element_bytes_of(input));
  RONDO_TRY(elements.source.read(elements.offset_bytes, dense));
  if (input.type.type == graph::Type::kQ8_0) {
    const std::vector<std::byte> planes = planes_of_blocks(dense, input.shape.n_rows(), input.shape[3]);
    std::copy(planes.begin(), planes.end(), out.begin());
    return {};
  }
  const auto rows = static_cast<std::size_t>(input.shape.n_rows()), row_bytes = static_cast<std::size_t>(input.shape[3]) * 2;
  std::fill(out.begin(), out.end(), std::byte{0});
  for (std::size_t row = 0; row < rows; ++row) std::memcpy(out.data() + row * (row_bytes + 2), dense.data() + row * row_bytes, row_bytes);
  return {};
}

/// Rows (N, K) of a matrix that the file has as (K, N).
Status read_transposed(const DescribedInput& input, const InputElements& elements, std::span<std::byte> out) {
  const std::size_t size = safetensors_dtype_bytes(input.type.dtype);
  const auto columns = static_cast<std::uint64_t>(input.shape[0]), rows = static_cast<std::uint64_t>(input.shape[1]);
  return for_each_chunk(input, elements, [&](std::uint64_t first, std::span<const std::byte> chunk) -> Status {
    for (std::size_t i = 0; i < chunk.size() / size; ++i) {
      const std::uint64_t column = (first + i) / rows, row = (first + i) % rows;
      std::memcpy(out.data() + (row * columns + column) * size, chunk.data() + i * size, size);
    }
    return {};
  });
}

}  // namespace

std::uint64_t element_bytes_of(const DescribedInput& input) {
  std::uint64_t n = 1;
  for (const std::uint64_t extent : stored_shape(input)) n *= extent;
  return n * safetensors_dtype_bytes(input.type.dtype);
}

std::uint64_t stored_bytes_of(const DescribedInput& input, Form form) {
  const auto n = static_cast<std::uint64_t>(input.shape.n_elements());
  switch (form) {
    case Form::kDense:
    case Form::kConstant:
    case Form::kIntegers: return 4 * n;
    case Form::kHalves: return (2 * n + 3) / 4 * 4;
    case Form::kCacheRows: return graph::cache_layout(input.type.type, input.shape.n_rows(), input.shape[3]).size_bytes;
    case Form::kWeight: break;
  }
  return element_bytes_of(input);
}

Status read_elements(const DescribedInput& input, Form form, const InputElements& elements, std::span<std::byte> out) {
  switch (form) {
    case Form::kDense:
    case Form::kConstant: return read_floats(input, elements, out);
    case Form::kIntegers: return read_integers(input, elements, out);
    case Form::kCacheRows: return read_cache_rows(input, elements, out);
    case Form::kHalves: return read_as_they_are(input, elements, out);
    case Form::kWeight: break;
  }
  return input.transposed ? read_transposed(input, elements, out) : read_as_they_are(input, elements, out);
}

std::size_t GraphInputs::add(DescribedInput input, InputElements elements, bool fixed) {
  inputs_.push_back({std::move(input), std::move(elements), fixed});
  return inputs_.size() - 1;
}

Result<TensorId> GraphInputs::find_or_make(std::string_view op, const graph::NamedInput& role, std::size_t number, bool changed) {
  const Declared& declared = inputs_[number];
  const DescribedInput& input = declared.input;
  RONDO_ASSIGN(const Form form, form_of(op, role, input));
  const Form changeable = is_cache_rows(input.type.type) ? Form::kCacheRows : Form::kDense;
  if (changed && form != changeable) {
    return invalid(fmt::format("input '{}' is '{}' of type {}, but a kv_write changes it where it is stored, which is not as this node reads it; "
                               "give it under another name too", role.name, printable(input.name), input.type.name));
  }
  if (const auto found = made_.find({number, form}); found != made_.end()) return found->second;
  Result<TensorId> made = make(op, declared, form, changed);
  if (!made.ok()) return invalid(fmt::format("input '{}' is '{}': {}", role.name, printable(input.name), made.status().message()));
  made_[{number, form}] = *made;
  if (form != Form::kConstant) stored_[graph_.tensor(*made).storage] = {number, form};
  return made;
}

TensorId GraphInputs::find_changed(std::size_t number) const {
  for (const Form form : {Form::kDense, Form::kCacheRows}) {
    const auto found = made_.find({number, form});
    if (found != made_.end() && graph_.storage_of(found->second).kind == graph::StorageKind::kCache) return found->second;
  }
  return graph::kNone;
}

std::vector<StoredInput> GraphInputs::stored() const {
  std::vector<StoredInput> all;
  for (const auto& [storage, what] : stored_) {
    const Declared& declared = inputs_[what.first];
    all.push_back({declared.input, what.second, storage, declared.elements, declared.fixed});
  }
  return all;
}

Result<TensorId> GraphInputs::make(std::string_view op, const Declared& declared, Form form, bool changed) {
  const DescribedInput& input = declared.input;
  const graph::StorageKind kind = changed ? graph::StorageKind::kCache : graph::StorageKind::kInput;
  const graph::Shape shape = input.shape.rank == 0 ? graph::Shape{1} : input.shape;
  TensorId made = graph::kNone;
  switch (form) {
    case Form::kDense: made = graph_.add_tensor(input.name, kind, graph::Type::kF32, shape); break;
    case Form::kHalves: made = graph_.add_tensor(input.name, kind, graph::Type::kF16, shape); break;
    case Form::kIntegers: made = graph_.add_tensor(input.name, graph::StorageKind::kInput, graph::Type::kI32, shape); break;
    case Form::kConstant: return add_constant(declared);
    case Form::kCacheRows:
      if (shape.rank != 4) return invalid(fmt::format("{} of {} must be (B, G, S, D)", to_string(input.shape), input.type.name));
      made = graph_.add_cache(input.name, kind, input.type.type, shape);
      break;
    case Form::kWeight:
      if (op == "patch_embed" ? shape.rank != 4 || shape[2] != shape[3] : shape.rank != 2) {
        const char* expected = op == "patch_embed" ? "(D, C, P, P)" : op == "embedding" ? "(V, D)" : input.transposed ? "(K, N)" : "(N, K)";
        return invalid(fmt::format("{} must be {}", to_string(input.shape), expected));
      }
      RONDO_TRY(check_whole_blocks(input));
      made = input.transposed ? graph_.add_weight(input.name, input.type.type, {shape[1], shape[0]}) : graph_.add_weight(input.name, input.type.type, {shape[0], shape.n_elements() / shape[0]});
      break;
  }
  RONDO_TRY(Status(graph_.status()));
  return made;
}

Result<TensorId> GraphInputs::add_constant(const Declared& declared) {
  const DescribedInput& input = declared.input;
  if (input.shape.rank != 1 || input.shape[0] > kMaxConstant) return invalid(fmt::format("{} must have one dimension of at most {}", to_string(input.shape), kMaxConstant));
  if (!declared.elements.source.read) return invalid("kernels are built for its values, so it must be a weight or a constant");
  std::vector<float> values(static_cast<std::size_t>(input.shape[0]));
  RONDO_TRY(read_elements(input, Form::kConstant, declared.elements, std::as_writable_bytes(std::span(values))));
  const TensorId made = graph_.add_constant(input.name, input.shape, values);
  RONDO_TRY(Status(graph_.status()));
  return made;
}

Result<TensorId> add_literal(graph::Graph& graph, GraphInputs& inputs, const graph::NamedNode& node, const graph::NamedInput& role, const graph::AttributeValue& number) {
  const auto* integer = std::get_if<std::int64_t>(&number);
  const double value = integer ? static_cast<double>(*integer) : std::get<double>(number);
  std::string name = integer ? fmt::format("{}", *integer) : fmt::format("{}", value);
  std::vector<std::byte> bytes(4);
  DescribedInput input{name, {Kind::kFloat, graph::Type::kF32, SafetensorsDtype::kF32, "f32"}, {1}};
  if (role.role == InputRole::kIntegers) {
    if (!integer || *integer < std::numeric_limits<std::int32_t>::min() || *integer > std::numeric_limits<std::int32_t>::max()) {
      return invalid(fmt::format("input '{}' is {} but must be an integer of 32 bits", role.name, name));
    }
    input.type = {Kind::kInteger, graph::Type::kI32, SafetensorsDtype::kI32, "i32"};
    const auto word = static_cast<std::int32_t>(*integer);
    std::memcpy(bytes.data(), &word, 4);
  } else if (role.role == InputRole::kActivation) {
    if (std::abs(value) > std::numeric_limits<float>::max()) return invalid(fmt::format("input '{}' is {}, beyond f32", role.name, name));
    bool half = false, single = false;
    for (const auto& [other, tensor] : node.inputs) {
      if (tensor == graph::kNone) continue;
      half |= graph.tensor(tensor).type == graph::Type::kF16;
      single |= graph.tensor(tensor).type == graph::Type::kF32;
    }
    const auto real = static_cast<float>(value);
    if (half && !single) {
      input.type = {Kind::kFloat, graph::Type::kF16, SafetensorsDtype::kF16, "f16"};
      const std::uint16_t bits = graph::float_to_half(real);
      std::memcpy(bytes.data(), &bits, 2);
    } else {
      std::memcpy(bytes.data(), &real, 4);
    }
  } else {
    return invalid(fmt::format("input '{}' is {} but must be a tensor", role.name, name));
  }
  auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  ByteSource source = memory_source(*kept, input.name);
  source.read = [kept, read = std::move(source.read)](std::uint64_t offset, std::span<std::byte> out) { return read(offset, out); };
  return inputs.find_or_make(node.op, role, inputs.add(std::move(input), {std::move(source), 0}, true), false);
}

Status check_patch_channels(const graph::Graph& graph, const graph::NamedNode& node, const DescribedInput& weight) {
  const auto pixels = std::find_if(node.inputs.begin(), node.inputs.end(), [](const auto& input) { return input.first == "pixels"; });
  if (pixels == node.inputs.end() || pixels->second == graph::kNone) return {};
  const graph::Shape& image = graph.tensor(pixels->second).shape;
  if (image.rank != 4 || weight.shape[1] == image[1]) return {};
  return invalid(fmt::format("weight is {} but pixels {} have {} channels", to_string(weight.shape), to_string(image), image[1]));
}

}  // namespace rondo::models
