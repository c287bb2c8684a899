// rondo tokenize: needs no Vulkan.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "models/utf8.h"
#include "runtime/fmt.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

std::string valid_utf8(std::string_view bytes) {
  models::Utf8Stream stream;
  std::string text = stream.add(bytes);
  return text + stream.finish();
}

Status tokenize(const TokenizeFlags& flags) {
  RONDO_ASSIGN(const ByteSource source, flags.tokenizer.empty() ? open_model(flags.model, flags.open) : open_model(flags.tokenizer));
  RONDO_ASSIGN(const Tokenizer tokenizer, Tokenizer::create(source));
  if (flags.has_decode) {
    RONDO_ASSIGN(const std::vector<std::int32_t> ids, parse_ids(flags.decode));
    RONDO_TRY(check_vocabulary("--decode", ids, static_cast<std::uint32_t>(tokenizer.n_vocab())));
    const std::string text = tokenizer.decode(ids);
    if (flags.json) fmt::print("{}\n", nlohmann::json{{"text", valid_utf8(text)}}.dump());
    else std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
  RONDO_ASSIGN(const std::string text, flags.text.read());
  EncodeOptions options;
  options.add_bos = options.add_eos = !flags.no_bos;
  options.parse_special = flags.parse_special;
  const std::vector<std::int32_t> ids = tokenizer.encode(text, options);
  if (!flags.json) {
    for (std::size_t i = 0; i < ids.size(); ++i) fmt::print("{}{}", i ? "," : "", ids[i]);
    fmt::print("\n");
    return {};
  }
  std::vector<std::string> pieces;
  for (std::int32_t id : ids) pieces.push_back(valid_utf8(tokenizer.spelling(id)));
  fmt::print("{}\n", nlohmann::json{{"tokens", ids}, {"pieces", pieces}}.dump());
  return {};
}

}  // namespace

int run_tokenize(const TokenizeFlags& own) {
  if (!own.text.given() && !own.has_decode) return report("tokenize needs one of -p TEXT, -f FILE and --decode IDS", kUsage);
  const Status done = tokenize(own);
  return done.ok() ? kDone : report(done);
}

}  // namespace rondo::tools
