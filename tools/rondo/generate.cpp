// rondo generate
#include <algorithm>
#include <cstdio>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/stop_filter.h"
#include "models/utf8.h"
#include "tools/rondo/command.h"
#include "tools/rondo/profile.h"

namespace rondo::tools {

namespace {

struct GenerateFlags {
  std::string model, prompt, file, tokens, burst = "auto";
  std::uint32_t n = 128, ctx = 0;
  std::vector<std::string> stop_texts;
  ProfileFlags profile;
  SamplingOptions sampling{0.8f, 40, 0.95f, 0.05f, 1, 64};
  std::uint64_t seed = 0;
  bool has_prompt = false, has_tokens = false, has_seed = false, has_ctx = false, ignore_eos = false, parse_special = false, json = false;
};

const char* stop_name(StopReason reason) {
  switch (reason) {
    case StopReason::kStopText: return "stop";
    case StopReason::kContext: return "context";
    case StopReason::kStopId: return "eos";
    case StopReason::kCancelled: return "interrupted";
    default: return "length";
  }
}

Result<std::vector<std::int32_t>> prompt_tokens(const GenerateFlags& own, const Tokenizer& tokenizer) {
  if (own.has_tokens) {
    RONDO_ASSIGN(std::vector<std::int32_t> ids, parse_ids(own.tokens));
    if (ids.empty()) return Status(StatusCode::kInvalidArgument, "--tokens: the list is empty; give at least one id");
    RONDO_TRY(check_vocabulary("--tokens", ids, static_cast<std::uint32_t>(tokenizer.n_vocab())));
    return ids;
  }
  std::string text = own.prompt;
  if (!own.has_prompt) {
    RONDO_ASSIGN(text, read_text_file(own.file));
  }
  EncodeOptions options;
  options.parse_special = own.parse_special;
  std::vector<std::int32_t> tokens = tokenizer.encode(text, options);
  if (tokens.empty()) return Status(StatusCode::kInvalidArgument, "generate: the prompt is empty and this model has no BOS token");
  return tokens;
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
  RONDO_ASSIGN(std::unique_ptr<Workbench> bench, Workbench::open(flags, own.model));
  Model& model = bench->model();
  if (own.ctx > model.info().context) {
    return Status(StatusCode::kInvalidArgument, fmt::format("--ctx is {} but {} was made for {}", own.ctx, own.model, model.info().context));
  }
  RONDO_ASSIGN(const std::vector<std::int32_t> prompt, prompt_tokens(own, model.tokenizer()));
  SessionOptions options = flags.session_options();
  options.n_ctx = own.ctx;
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
    if (prompt.size() > session.n_ctx()) {
      return Status(StatusCode::kInvalidArgument, fmt::format("the prompt has {} tokens but the context {}; shorten it{}", prompt.size(), session.n_ctx(),
                                                              session.n_ctx() < model.info().context ? " or raise --ctx" : ""));
    }
    tokens.reserve(std::min(own.n, session.n_ctx()));
    const Interruptible interruptible(session);
    models::Utf8Stream utf8;
    models::StopFilter filter(own.stop_texts);
    const auto emit = [&](const std::string& piece) {
      text += piece;
      if (own.json || piece.empty()) return;
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    };
    RONDO_ASSIGN(times, run_session(session, prompt, own.n, [&](std::int32_t token) {
                   tokens.push_back(token);
                   emit(filter.add_token(utf8.add(model.tokenizer().piece(token))));
                   return !filter.stopped();
                 }));
    stop = session.stop_reason();
    profile.collect(session);
    if (!filter.stopped()) emit(filter.add_token(utf8.finish()));
    if (filter.stopped()) {
      tokens.resize(filter.n_tokens_before());
      stop = StopReason::kStopText;
    }
    emit(filter.finish());
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

void add_generate(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text");
  auto own = std::make_shared<GenerateFlags>();
  command->add_option("-m,--model", own->model, "GGUF file")->required();
  CLI::Option* prompt = command->add_option("-p,--prompt", own->prompt, "text to continue");
  CLI::Option* file = command->add_option("-f,--file", own->file, "file with the text, taken byte for byte")->excludes(prompt);
  CLI::Option* tokens = command->add_option("--tokens", own->tokens, "ids to continue, nothing added: 1,2,3")->excludes(prompt)->excludes(file)->check(check_ids);
  command->add_option("-n", own->n, "most tokens to make")->check(CLI::Range(0u, ~0u))->capture_default_str();
  CLI::Option* ctx = command->add_option("--ctx", own->ctx, "context in tokens (default: the model's, at most 4096)")->check(CLI::Range(1u, 1u << 24));
  SamplingOptions& sampling = own->sampling;
  command->add_option("--temp", sampling.temperature, "temperature; 0: greedy")->check(number_check(0, 1e6))->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "keep the K most probable tokens; 0: all")->check(CLI::Range(0u, ~0u))->capture_default_str();
  command->add_option("--top-p", sampling.top_p, "keep the fewest tokens that reach this probability")->check(number_check(0, 1, true))->capture_default_str();
  command->add_option("--min-p", sampling.min_p, "keep tokens at least this times as probable as the first")->check(number_check(0, 1))->capture_default_str();
  command->add_option("--repeat-penalty", sampling.repeat_penalty, "divides the logits of recent tokens")->check(number_check(0, 1e6, true))->capture_default_str();
  command->add_option("--repeat-last-n", sampling.repeat_last_n, "how many tokens are recent")->check(CLI::Range(0u, ~0u))->capture_default_str();
  command->add_option("--stop", own->stop_texts, "end before this text; may be repeated")
      ->check([](const std::string& text) { return text.empty() ? "--stop takes a text that is not empty" : ""; })
      ->type_name("TEXT")
      ->allow_extra_args(false);
  CLI::Option* seed = command->add_option("--seed", own->seed, "seed for sampling (default: random)")->check(check_u64);
  command->add_flag("--ignore-eos", own->ignore_eos, "go on after an end-of-text token");
  command->add_option("--burst", own->burst, "most decode steps per submission")->check(check_burst)->type_name("auto|K");
  command->add_flag("--parse-special", own->parse_special, "special tokens in the text become their ids");
  command->add_flag("--json", own->json, "print one JSON document");
  add_profile_flags(*command, own->profile);
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own, prompt, file, tokens, ctx, seed] {
    own->has_prompt = prompt->count() > 0;
    own->has_tokens = tokens->count() > 0;
    own->has_seed = seed->count() > 0;
    own->has_ctx = ctx->count() > 0;
    if (!own->has_prompt && !own->has_tokens && file->count() == 0) {
      status = report("generate needs one of -p TEXT, -f FILE and --tokens IDS", kUsage);
      return;
    }
    if (!own->has_seed) own->seed = std::random_device{}();
    StopReason stop = StopReason::kNone;
    int closed = kDone;
    const Status done = generate(flags, *own, stop, closed);
    status = !done.ok() ? report(done) : interrupted() ? static_cast<int>(kInterrupted) : closed;
  });
}

}  // namespace rondo::tools
