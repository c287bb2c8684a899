// rondo generate
#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include <rondo/text_stream.h>

#include "models/loaded_model.h"
#include "models/model_loader.h"
#include "runtime/fmt.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

const char* stop_name(StopReason reason) {
  switch (reason) {
    case StopReason::kStopText: return "stop";
    case StopReason::kContext: return "context";
    case StopReason::kStopId: return "eos";
    case StopReason::kCancelled: return "interrupted";
    default: return "length";
  }
}

Result<std::vector<std::int32_t>> prompt_tokens(const GenerateFlags& own, const Tokenizer& tokenizer, std::uint32_t n_vocab) {
  if (own.has_tokens) {
    RONDO_ASSIGN(std::vector<std::int32_t> ids, parse_ids(own.tokens));
    if (ids.empty()) return Status(StatusCode::kInvalidArgument, "--tokens: the list is empty; give at least one id");
    RONDO_TRY(check_vocabulary("--tokens", ids, n_vocab));
    return ids;
  }
  RONDO_ASSIGN(const std::string text, own.text.read());
  EncodeOptions options;
  options.parse_special = own.parse_special;
  if (tokenizer.n_vocab() == 0) {
    RONDO_ASSIGN(const ByteSource source, open_model(own.model));
    return Tokenizer::create(source).status();  // says why
  }
  std::vector<std::int32_t> tokens = tokenizer.encode(text, options);
  if (tokens.empty()) return Status(StatusCode::kInvalidArgument, "generate: the prompt is empty and this model has no BOS token");
  return tokens;
}

/// A source's place in a session: the usual one, or more where the prompt is longer and the model takes it.
std::uint32_t source_tokens(const ModelInfo& info, std::size_t n_prompt) {
  constexpr std::size_t kUsual = 512;
  return n_prompt <= kUsual ? 0 : static_cast<std::uint32_t>(std::min<std::size_t>(n_prompt, info.source_context));
}

void print_statistics(const Workbench& bench, const std::string& device, const RunTimes& times, std::size_t n_prompt, StopReason stop, const GenerateFlags& own) {
  const double decode_s = times.last_token - times.first_token;
  const double rate = times.n_tokens > 1 && decode_s > 0 ? static_cast<double>(times.n_tokens - 1) / decode_s : 0;
  const double prefill_s = times.first_token - times.appended;
  fmt::print(stderr, "\n[{}: loaded in {:.2f} s; {} tokens of input at {:.0f}/s, {} of output at {:.0f}/s; ended by {}{}{}]\n", device, bench.load_s(), n_prompt,
             prefill_s > 0 ? static_cast<double>(n_prompt) / prefill_s : 0, times.n_tokens, rate, stop_name(stop),
             own.sampling.temperature > 0 ? fmt::format("; seed {}", own.seed) : "", own.profile.wanted() ? "; speeds under the profiler" : "");
}

Status generate(const GlobalFlags& flags, const GenerateFlags& own, StopReason& stop, int& closed) {
  RONDO_ASSIGN(Profile profile, Profile::open(own.profile));
  std::vector<std::int32_t> prompt;
  const auto accepts = [&](const Model& opened) -> Status {
    const ModelInfo& info = opened.info();
    if (opened.internal()->model().network().find(models::Role::kDecode) == nullptr) return Status(StatusCode::kUnsupported, fmt::format("{}: a {} makes no tokens; see rondo eval --help", own.model, info.architecture));
    if (own.ctx > info.context) return Status(StatusCode::kInvalidArgument, fmt::format("--ctx is {} but {} was made for {}", own.ctx, own.model, info.context));
    RONDO_ASSIGN(prompt, prompt_tokens(own, opened.tokenizer(), info.n_vocab));
    if (!own.stop_texts.empty() && opened.tokenizer().n_vocab() == 0) return Status(StatusCode::kInvalidArgument, fmt::format("--stop is a text, but {} has no tokenizer", own.model));
    return {};
  };
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, Workbench::open(flags, own.model, own.open, {.self_test = own.self_test, .tokenizer = own.tokenizer, .accepts = accepts}));
  Model& model = bench->model();
  SessionOptions options = flags.session_options();
  options.n_ctx = own.ctx;
  options.n_source = source_tokens(model.info(), prompt.size());
  options.seed = own.seed;
  options.sampling = own.sampling;
  profile.configure(options);
  options.use_model_stop_ids = !own.ignore_eos;
  options.burst = parse_burst(own.burst);

  std::vector<std::int32_t> tokens;
  std::string text;
  RunTimes times;
  {
    RONDO_ASSIGN(Session session, Session::create(model, options));
    const bool has_source = session.n_source() > 0;
    if (has_source) RONDO_TRY(session.set_source(prompt));
    if (!has_source && prompt.size() > session.n_ctx()) {
      return Status(StatusCode::kInvalidArgument, fmt::format("the prompt has {} tokens but the context {}; shorten it{}", prompt.size(), session.n_ctx(),
                                                              session.n_ctx() < model.info().context ? " or raise --ctx" : ""));
    }
    tokens.reserve(std::min(own.n, session.n_ctx()));
    const Interruptible interruptible(session);
    RONDO_ASSIGN(TextStream stream, TextStream::create(model.tokenizer(), own.stop_texts));
    const bool has_text = model.tokenizer().n_vocab() > 0;
    const auto emit = [&](const std::string& piece) {
      text += piece;
      if (own.json || piece.empty()) return;
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
    RONDO_ASSIGN(times, run_session(session, has_source ? model.info().start_tokens : prompt, own.n, [&](std::int32_t token) {
                   tokens.push_back(token);
                   // Without a tokenizer, the text is the tokens.
                   emit(has_text ? stream.add(token) : own.json ? "" : fmt::format("{}{}", tokens.size() > 1 ? "," : "", token));
                   return !stream.stopped();
                 }));
    stop = session.stop_reason();
    profile.collect(session);
    emit(stream.finish());
    if (stream.stopped()) {
      tokens.resize(stream.n_tokens_before_stop());
      stop = StopReason::kStopText;
    }
  }
  const auto rate = [](double n, double seconds) { return seconds > 0 ? n / seconds : 0; };
  const double n_more = tokens.size() > 1 ? static_cast<double>(tokens.size() - 1) : 0;
  if (own.json) {
    const nlohmann::json result = {{"prompt_tokens", prompt},
                                   {"tokens", tokens},
                                   {"text", text},
                                   {"stop", stop_name(stop)},
                                   {"seed", own.seed},
                                   {"load_s", bench->load_s()},
                                   {"first_token_s", tokens.empty() ? 0 : times.first_token - flags.started_s},
                                   {"prefill_tps", tokens.empty() ? 0 : rate(static_cast<double>(prompt.size()), times.first_token - times.appended)},
                                   {"decode_tps", rate(n_more, times.last_token - times.first_token)},
                                   {"host_us_per_token", n_more > 0 ? 1e6 * times.decode_cpu / n_more : 0}};
    fmt::print("{}\n", result.dump());
  } else {
    fmt::print("\n");
    print_statistics(*bench, bench->device().info().name, times, prompt.size(), stop, own);
  }
  RONDO_TRY(profile.finish());
  closed = bench->close();
  return {};
}

}  // namespace

int run_generate(const GlobalFlags& flags, const GenerateFlags& own) {
  if (!own.text.given() && !own.has_tokens) return report("generate needs one of -p TEXT, -f FILE and --tokens IDS", kUsage);
  StopReason stop = StopReason::kNone;
  int closed = kDone;
  const Status done = generate(flags, own, stop, closed);
  return !done.ok() ? report(done) : interrupted() ? static_cast<int>(kInterrupted) : closed;
}

}  // namespace rondo::tools
