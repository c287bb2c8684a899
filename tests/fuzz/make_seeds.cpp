// Writes small files of the binary formats to begin fuzzing with: make_seeds FOLDER makes FOLDER/gguf and FOLDER/safetensors.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "models/formats/gguf.h"
#include "tests/device/small_llama.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_bytes.h"

namespace {

using rondo::testing::bytes_of_values;
using rondo::testing::GgufWriter;
using rondo::testing::safetensors_bytes;

bool write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file.good();
}

std::string small_llama(std::uint32_t width) {
  rondo::tests::SmallLlama llama;
  llama.n_layers = 1;
  llama.width = width;
  llama.ffn = llama.width;
  llama.n_heads = llama.n_kv_heads = 2;
  llama.n_tokens = llama.n_vocab = 260;
  return llama.build();
}

std::string byte_pairs(const char* pre) {
  std::vector<std::string> tokens;
  for (char c = '!'; c <= '~'; ++c) tokens.emplace_back(1, c);
  tokens.insert(tokens.end(), {"th", "the", "\xc4\xa0", "\xc4\xa0t", "qu", "<|endoftext|>"});
  std::vector<std::int32_t> types(tokens.size(), 1);
  types.back() = 3;
  GgufWriter file;
  file.string("general.architecture", "llama").string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", pre);
  file.strings("tokenizer.ggml.tokens", tokens).i32s("tokenizer.ggml.token_type", types);
  file.strings("tokenizer.ggml.merges", {"t h", "th e", "\xc4\xa0 t", "q u"});
  file.u32("tokenizer.ggml.bos_token_id", 99).u32("tokenizer.ggml.eos_token_id", 99);
  return file.build();
}

std::string all_values() {
  GgufWriter file;
  using Type = GgufWriter::Type;
  file.u32("general.alignment", 32).string("general.name", "a name").boolean("flag", true).f32("f32", 0.5f);
  file.number("u8", Type::kU8, std::uint8_t{1}).number("i16", Type::kI16, std::int16_t{-2}).number("u64", Type::kU64, std::uint64_t{3}).number("f64", Type::kF64, 4.0);
  file.strings("strings", {"a", "", "bc"}).f32s("f32s", {1, 2}).i32s("i32s", {3, 4, 5});
  file.tensor("q8", {32, 2}, rondo::models::GgmlType::kQ8_0, std::string(68, '\1')).tensor("f", {3}, rondo::models::GgmlType::kF32, std::string(12, '\0'));
  return file.build();
}

std::string all_dtypes() {
  return safetensors_bytes({{"a", "F32", {2, 3}, std::string(24, '\1')}, {"b", "F16", {3}, std::string(6, '\2')}, {"c", "BF16", {1, 1}, std::string(2, '\3')},
                            {"d", "I32", {2}, std::string(8, '\4')}, {"e", "I64", {}, std::string(8, '\5')}, {"f", "BOOL", {4}, std::string("\0\1\0\1", 4)},
                            {"g", "U8", {2, 34}, std::string(68, '\6')}, {"empty", "F32", {0, 5}, ""}});
}

std::string with_metadata() {
  const std::string header = R"({"__metadata__":{"format":"pt","escaped":"\u00e9\n\ud83e\udd8a"},"x":{"shape":[1],"data_offsets":[0,4],"dtype":"F32"}}   )";
  return bytes_of_values(std::vector<std::uint64_t>{header.size()}) + header + std::string(4, '\0');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: rondo_fuzz_seeds FOLDER\n", stderr), 2;
  const std::filesystem::path folder = argv[1];
  bool done = write(folder / "gguf/llama", small_llama(4)) && write(folder / "gguf/all_values", all_values());
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "smollm", "deepseek-v3", "superbpe"}) done = done && write(folder / "gguf" / pre, byte_pairs(pre));
  done = done && write(folder / "safetensors/all_dtypes", all_dtypes()) && write(folder / "safetensors/with_metadata", with_metadata());
  if (!done) std::fprintf(stderr, "make_seeds: %s can't be written\n", argv[1]);
  return done ? 0 : 1;
}
