// rondo translate: texts to texts, on encoder-decoders.
#include <cstdio>

#include <nlohmann/json.hpp>

#include <rondo/translator.h>

#include "runtime/fmt.h"
#include "tools/rondo/encode_texts.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

void print(const TranslateFlags& own, const std::string& source, const Translation& translation) {
  if (!own.json) {
    fmt::print("{}\n", translation.text);
  } else {
    nlohmann::json result = {{"source", source}, {"text", translation.text}, {"tokens", translation.tokens}, {"ended", translation.ended}};
    if (own.beams > 1) result["score"] = translation.score;
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  std::fflush(stdout);
}

Status translate(const GlobalFlags& flags, const TranslateFlags& own, int& closed) {
  RONDO_ASSIGN(const std::vector<std::string> lines, read_lines(own.text));
  Workbench::Options how;
  how.accepts = [&](const Model& model) -> Status {
    if (model.info().source_context > 0) return {};
    return Status(StatusCode::kUnsupported, fmt::format("{}: is a {}; this needs an encoder-decoder, such as Marian, BART or T5", own.model, model.info().architecture));
  };
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, Workbench::open(flags, own.model, own.open, how));
  const Model& model = bench->model();
  const ModelInfo& info = model.info();
  RONDO_TRY(need_tokenizer(model, own.model));
  std::vector<std::vector<std::int32_t>> texts;
  TranslatorOptions options;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    RONDO_ASSIGN(std::vector<std::int32_t> tokens, text_tokens(model.tokenizer(), lines[i], {}, info.source_context, cut_if(own.truncate), name_of_line(own.text, i)));
    options.max_source = std::max(options.max_source, static_cast<std::uint32_t>(tokens.size()));
    texts.push_back(std::move(tokens));
  }
  options.beams = own.beams;
  options.length_penalty = own.length_penalty;
  options.max_tokens = own.n;
  {
    Result<Translator> created = Translator::create(model, options);
    if (created.status().code() == StatusCode::kInvalidArgument) return created.status().with_prefix(fmt::format("{}: -n", own.model));
    RONDO_ASSIGN(Translator translator, std::move(created));
    for (const std::vector<std::int32_t>& text : texts) RONDO_TRY(translator.append(text));
    RONDO_TRY(take_all<Translation>(translator, texts.size(), [&](std::size_t i, const Translation& translation) -> Status {
      print(own, lines[i], translation);
      return {};
    }));
  }
  closed = bench->close();
  return {};
}

}  // namespace

int run_translate(const GlobalFlags& flags, const TranslateFlags& own) {
  if (!own.text.given()) return report("translate needs one of -p TEXT and -f FILE", kUsage);
  int closed = kDone;
  const Status done = translate(flags, own, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace rondo::tools
