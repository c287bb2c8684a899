// rondo tokenize: needs no Vulkan.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/utf8.h"
#include "tools/rondo/command.h"

namespace rondo::tools {

namespace {

struct TokenizeFlags {
  std::string model, prompt, file, decode;
  bool has_prompt = false, has_decode = false, no_bos = false, parse_special = false, json = false;
};

std::string valid_utf8(std::string_view bytes) {
  models::Utf8Stream stream;
  std::string text = stream.add(bytes);
  return text + stream.finish();
}

Status tokenize(const TokenizeFlags& flags) {
  RONDO_ASSIGN(const ByteSource source, open_file(flags.model));
  RONDO_ASSIGN(const Tokenizer tokenizer, Tokenizer::create(source));
  if (flags.has_decode) {
    RONDO_ASSIGN(const std::vector<std::int32_t> ids, parse_ids(flags.decode));
    RONDO_TRY(check_vocabulary("--decode", ids, static_cast<std::uint32_t>(tokenizer.n_vocab())));
    const std::string text = tokenizer.decode(ids);
    if (flags.json) fmt::print("{}\n", nlohmann::json{{"text", valid_utf8(text)}}.dump());
    else std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  }
  std::string text = flags.prompt;
  if (!flags.has_prompt) {
    RONDO_ASSIGN(text, read_text_file(flags.file));
  }
  EncodeOptions options;
  options.add_bos = !flags.no_bos;
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

void add_tokenize(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("tokenize", "Text to token ids, or ids to text");
  auto own = std::make_shared<TokenizeFlags>();
  command->add_option("-m,--model", own->model, "model or vocabulary file")->required();
  CLI::Option* prompt = command->add_option("-p,--prompt", own->prompt, "text");
  CLI::Option* file = command->add_option("-f,--file", own->file, "file with the text, taken byte for byte")->excludes(prompt);
  CLI::Option* decode = command->add_option("--decode", own->decode, "ids to turn into text: 1,2,3")->excludes(prompt)->excludes(file)->check(check_ids);
  command->add_flag("--no-bos", own->no_bos, "no BOS in front");
  command->add_flag("--parse-special", own->parse_special, "special tokens in the text become their ids");
  command->add_flag("--json", own->json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&status, own, prompt, file, decode] {
    own->has_prompt = prompt->count() > 0;
    own->has_decode = decode->count() > 0;
    if (!own->has_prompt && !own->has_decode && file->count() == 0) {
      status = report("tokenize needs one of -p TEXT, -f FILE and --decode IDS", kUsage);
      return;
    }
    const Status done = tokenize(*own);
    status = done.ok() ? kDone : report(done);
  });
}

}  // namespace rondo::tools
