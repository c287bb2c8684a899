#include "models/formats/quantized_gguf.h"

#include <vector>

#include "graph/block_format.h"
#include "graph/quantize.h"
#include "models/formats/derived_gguf.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

GgmlType ggml_type_of(graph::Type type) {
  std::uint32_t number = 0;
  while (graph::find_ggml_type(number) != type) ++number;  // every weight type has one
  return static_cast<GgmlType>(number);
}

bool is_matrix(const GgufTensor& tensor) {
  const bool has_rows = tensor.n_dims == 2 || tensor.n_dims == 3;  // of one, or of all experts
  return has_rows && tensor.name.ends_with(".weight") && !tensor.name.ends_with("ffn_gate_inp.weight") && tensor.name != "position_embd.weight" && tensor.name != "token_types.weight";
}

bool is_plain(GgmlType type) { return type == GgmlType::kF32 || type == GgmlType::kF16 || type == GgmlType::kBF16; }

/// `tensor` of `source` in blocks of `type`.
DerivedTensor quantized(const ByteSource& source, const GgufTensor& tensor, graph::Type type) {
  const graph::BlockFormat& from = *graph::find_block_format(*graph::find_ggml_type(static_cast<std::uint32_t>(tensor.type)));
  const graph::BlockFormat& to = *graph::find_block_format(type);
  StitchedSource::Conversion conversion;
  conversion.n_units = tensor.dims[0] / to.block_elements * tensor.dims[1] * tensor.dims[2];
  conversion.unit_bytes_there = std::uint64_t{from.block_bytes} * to.block_elements;
  conversion.unit_bytes = to.block_bytes;
  conversion.convert = [&from, quantize = graph::find_quantizer(type)](std::span<const std::byte> there, std::span<std::byte> out) {
    std::vector<float> values(there.size() / from.block_bytes);
    from.dequantize_row(there, static_cast<std::uint32_t>(values.size()), values.data());
    quantize(values, out.data());
  };
  const auto add = [&source, &tensor, conversion](StitchedSource& file) { file.add_converted(source, tensor.offset_bytes, conversion); };
  return {&tensor, ggml_type_of(type), conversion.n_units * conversion.unit_bytes, add};
}

}  // namespace

Result<ByteSource> quantize_gguf(const ByteSource& source, graph::Type type) {
  RONDO_ASSIGN(const GgufFile file, GgufFile::parse(source));
  std::vector<DerivedTensor> tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    const bool is_other = is_matrix(tensor) && tensor.type != ggml_type_of(type);
    if (is_other && !is_plain(tensor.type)) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: tensor '{}' is {}, and only f32, f16 and bf16 are quantised to {}", source.name, printable(tensor.name),
                                                          ggml_type_info(tensor.type).name, graph::type_name(type)));
    }
    if (is_other && tensor.dims[0] % graph::find_block_format(type)->block_elements == 0) {
      tensors.push_back(quantized(source, tensor, type));
    } else {
      tensors.push_back({&tensor, tensor.type, tensor.size_bytes, [&](StitchedSource& to) { to.add_run(source, tensor.offset_bytes, tensor.size_bytes); }});
    }
  }
  return derive_gguf(source, file, [](std::string_view key) { return key == "general.file_type"; }, tensors, source.name);
}

}  // namespace rondo::models
