// rondo embed: a vector of each text.
#include <bit>
#include <cstdio>

#include <unistd.h>

#include "models/formats/safetensors.h"
#include "runtime/fmt.h"
#include "tools/rondo/encode_texts.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

constexpr std::uint32_t kBatch = 64;

Pooling pooling_of(const std::string& name) { return name == "mean" ? Pooling::kMean : name == "cls" ? Pooling::kFirst : name == "last" ? Pooling::kLast : Pooling::kModel; }

/// What NumPy reads: version 1.0 of its format.
std::string npy_header(std::size_t rows, std::size_t columns) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr std::size_t kBefore = 10;
  header.resize((kBefore + header.size() + 1 + 63) / 64 * 64 - kBefore - 1, ' ');
  header += '\n';
  const char before[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return std::string(before, kBefore) + header;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_vectors(const std::string& format, std::size_t n, std::uint32_t width, std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  const std::span<const std::byte> bytes = std::as_bytes(values);
  if (format == "json") {
    std::string text = fmt::format("{{\"width\":{},\"vectors\":[", width);
    for (std::size_t i = 0; i < n; ++i) text += fmt::format("{}[{}]", i > 0 ? ",\n" : "", fmt::join(values.subspan(i * width, width), ","));
    return print(text + "]}\n");
  }
  const models::SafetensorsTensor tensor{"vectors", models::SafetensorsDtype::kF32, {n, width}, bytes};
  print(format == "npy" ? npy_header(n, width) : models::safetensors_header({&tensor, 1}));
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

Status embed(const GlobalFlags& flags, const EmbedFlags& own, int& closed) {
  RONDO_ASSIGN(const std::vector<std::string> lines, read_lines(own.text));
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, open_encoder(flags, own.model, own.open, ModelHead::kNone));
  const Model& model = bench->model();
  RONDO_TRY(need_tokenizer(model, own.model));
  const std::uint32_t most = most_tokens(model.info());
  std::vector<std::vector<std::int32_t>> texts;
  EncoderOptions options;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    RONDO_ASSIGN(std::vector<std::int32_t> tokens, text_tokens(model.tokenizer(), lines[i], {}, most, cut_if(own.truncate), name_of_line(own.text, i)));
    options.max_tokens = std::max(options.max_tokens, static_cast<std::uint32_t>(tokens.size()));
    texts.push_back(std::move(tokens));
  }
  options.max_batch = static_cast<std::uint32_t>(std::min<std::size_t>(lines.size(), kBatch));
  options.pooling = pooling_of(own.pooling);
  options.normalize = own.normalize;
  std::vector<float> values;
  std::uint32_t width = 0;
  {
    RONDO_ASSIGN(Encoder encoder, Encoder::create(model, options));
    for (const std::vector<std::int32_t>& text : texts) RONDO_TRY(encoder.append(text));
    const Status taken = take_all<Encoding>(encoder, texts.size(), [&](std::size_t, Encoding encoding) -> Status {
      RONDO_TRY(check_numbers(encoding, own.model));
      width = encoding.width;
      values.insert(values.end(), encoding.values.begin(), encoding.values.end());
      return {};
    });
    if (!taken.ok()) return taken;
  }
  print_vectors(own.output, texts.size(), width, values);
  closed = bench->close();
  return {};
}

}  // namespace

int run_embed(const GlobalFlags& flags, const EmbedFlags& own) {
  if (!own.text.given()) return report("embed needs one of -p TEXT and -f FILE", kUsage);
  if (own.output != "json" && isatty(STDOUT_FILENO)) return report(fmt::format("-o {} is nothing for a terminal; write it to a file with >", own.output), kUsage);
  int closed = kDone;
  const Status done = embed(flags, own, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace rondo::tools
