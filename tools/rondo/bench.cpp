// rondo bench -m: prefill and decode speed at depths, with what they cost the host. --kernels: see kernel_bench.h.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include <rondo/encoder.h>

#include "models/loaded_model.h"
#include "models/model_loader.h"
#include "models/session_state.h"
#include "runtime/fmt.h"
#include "tools/rondo/kernel_bench.h"
#include "tools/rondo/random_model.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

struct Test {
  std::uint32_t n_prompt = 0, n_gen = 0, depth = 0;
  std::uint32_t n_batch = 0;  ///< of an encoder: texts of n_prompt tokens that are computed at once
  std::string name() const {
    if (n_batch > 0) return fmt::format("en{} x {}", n_prompt, n_batch);
    std::string text = n_prompt ? fmt::format("pp{}", n_prompt) : fmt::format("tg{}", n_gen);
    return depth ? text + fmt::format(" @ d{}", depth) : text;
  }
};

struct Measured {
  Test test;
  std::vector<double> tps;
  double host_us = 0, dispatches = 0, submissions = 0, worst_ms = 0;
  double mean() const {
    double sum = 0;
    for (double value : tps) sum += value;
    return sum / static_cast<double>(tps.size());
  }
  double deviation() const {
    if (tps.size() < 2) return 0;
    double sum = 0;
    for (double value : tps) sum += (value - mean()) * (value - mean());
    return std::sqrt(sum / static_cast<double>(tps.size() - 1));
  }
};

std::vector<std::int32_t> some_tokens(std::uint32_t n, std::uint32_t n_vocab) {
  std::vector<std::int32_t> tokens;
  for (std::uint32_t i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(n_vocab > 10 ? 5 + 7 * std::uint64_t{i} % (n_vocab - 10) : i % n_vocab));
  return tokens;
}

/// Of encoder-decoders: what tokens are made of.
constexpr std::uint32_t kSourceTokens = 64;

/// One repetition: brings the session to the test's depth, then times the test itself.
Result<RunTimes> run_once(Session& session, const Test& test, std::span<const std::int32_t> tokens) {
  if (test.n_prompt) {
    RONDO_TRY(session.rewind(test.depth));
    return run_session(session, tokens.subspan(test.depth, test.n_prompt), 1, {});
  }
  // Decoding continues from a token that is made but not in the cache: the last token of the depth makes it.
  const std::uint32_t base = std::max(test.depth, 1u) - 1;
  RONDO_TRY(session.rewind(base));
  RONDO_ASSIGN(const RunTimes ignored, run_session(session, tokens.subspan(base, 1), 1, {}));
  (void)ignored;
  return run_session(session, {}, test.n_gen, {});
}

Result<Measured> measure(Model& model, const GlobalFlags& flags, const BenchFlags& own, const Test& test, Profile& profile) {
  SessionOptions options = flags.session_options();
  options.use_model_stop_ids = false;
  options.n_ctx = test.depth + test.n_prompt + test.n_gen + 2;
  options.burst = parse_burst(own.burst);
  profile.configure(options);
  RONDO_ASSIGN(Session session, Session::create(model, options));
  const Interruptible interruptible(session);
  if (session.n_source() > 0) RONDO_TRY(session.set_source(some_tokens(std::min(session.n_source(), kSourceTokens), model.info().n_vocab)));
  const std::vector<std::int32_t> tokens = some_tokens(test.depth + test.n_prompt + 1, model.info().n_vocab);
  if (test.depth > 0) {
    if (own.random.empty()) {
      RONDO_ASSIGN(const RunTimes filled, run_session(session, std::span(tokens).first(test.depth), 0, {}));
      (void)filled;
    } else {
      RONDO_TRY(session.internal().pretend_depth(test.depth));
    }
  }
  Measured measured;
  measured.test = test;
  const double n = test.n_prompt ? test.n_prompt : test.n_gen;
  for (std::uint32_t repetition = 0; repetition <= own.repetitions; ++repetition) {
    const SessionStatistics before = session.statistics();
    const double cpu_before = thread_cpu_s();
    RONDO_ASSIGN(const RunTimes times, run_once(session, test, tokens));
    const double cpu = test.n_prompt ? thread_cpu_s() - cpu_before : times.decode_cpu;
    if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
    if (repetition == 0) {
      (void)session.take_profile();
      continue;
    }
    profile.collect(session);
    measured.tps.push_back(n / ((test.n_prompt ? times.first_token : times.last_token) - times.appended));
    const double share = 1.0 / own.repetitions;
    const double n_warmup_steps = test.n_prompt ? 0 : 1;
    measured.host_us += share * 1e6 * cpu / n;
    const SessionStatistics& after = session.statistics();
    measured.submissions += share * (static_cast<double>(after.n_submissions - before.n_submissions) - n_warmup_steps) / n;
    measured.dispatches = test.n_prompt ? static_cast<double>(after.n_dispatches - before.n_dispatches) / n : after.dispatches_per_decode_step;
    measured.worst_ms = std::max(measured.worst_ms, 1e3 * (test.n_prompt ? times.first_token - times.appended : std::max(times.worst_gap, times.first_token - times.appended)));
  }
  return measured;
}

/// Texts that an encoder is given for each repetition.
constexpr std::uint32_t kTexts = 64;

Result<Measured> measure_encoder(Model& model, const BenchFlags& own, const Test& test, Profile& profile) {
  EncoderOptions options;
  options.max_batch = test.n_batch;
  options.max_tokens = test.n_prompt;
  options.profile = profile.wanted();
  RONDO_ASSIGN(Encoder encoder, Encoder::create(model, options));
  std::vector<std::vector<std::int32_t>> texts;
  for (std::uint32_t i = 0; i < kTexts; ++i) {
    std::vector<std::int32_t>& text = texts.emplace_back(some_tokens(test.n_prompt, model.info().n_vocab));
    text.front() = static_cast<std::int32_t>(i % model.info().n_vocab);
  }
  Measured measured;
  measured.test = test;
  const double n = static_cast<double>(test.n_prompt) * kTexts;
  for (std::uint32_t repetition = 0; repetition <= own.repetitions; ++repetition) {
    const EncoderStatistics before = encoder.statistics();
    const double cpu_before = thread_cpu_s(), begun = now_s();
    RONDO_TRY(encoder.encode(texts).status());
    const double took = now_s() - begun, cpu = thread_cpu_s() - cpu_before;
    if (interrupted()) return Status(StatusCode::kCancelled, "interrupted");
    std::vector<ProfiledStep> steps = encoder.take_profile();
    if (repetition == 0) continue;
    for (ProfiledStep& step : steps) profile.add(std::move(step));
    measured.tps.push_back(n / took);
    const double share = 1.0 / own.repetitions;
    measured.host_us += share * 1e6 * cpu / n;
    measured.submissions += share * static_cast<double>(encoder.statistics().n_steps - before.n_steps) / n;
    measured.dispatches = static_cast<double>(encoder.statistics().n_dispatches - before.n_dispatches) / n;
    measured.worst_ms = std::max(measured.worst_ms, 1e3 * took);
  }
  return measured;
}

std::string as_json(const Workbench& bench, const DeviceInfo& device, const ModelInfo& model, const std::vector<Measured>& results) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Measured& row : results) {
    rows.push_back({{"test", row.test.name()},
                    {"n_prompt", row.test.n_prompt},
                    {"n_batch", row.test.n_batch},
                    {"n_gen", row.test.n_gen},
                    {"depth", row.test.depth},
                    {"tps_mean", row.mean()},
                    {"tps_stdev", row.deviation()},
                    {"host_us_per_token", row.host_us},
                    {"dispatches", row.dispatches},
                    {"submissions_per_token", row.submissions},
                    {"worst_ms", row.worst_ms}});
  }
  return nlohmann::json{{"device", {{"name", device.name}, {"driver", device.driver}, {"type", device.type}}},
                        {"model", {{"name", model.name}, {"architecture", model.architecture}, {"n_parameters", model.n_parameters}, {"weight_bytes", model.weight_bytes}}},
                        {"load_s", bench.load_s()},
                        {"results", rows}}
      .dump(1);
}

void print_md(const DeviceInfo& device, const ModelInfo& model, const std::vector<Measured>& results) {
  fmt::print("{}: {:.2f} M parameters, {:.1f} MB; {} ({})\n\n", model.name.empty() ? model.architecture : model.name, static_cast<double>(model.n_parameters) / 1e6,
             static_cast<double>(model.weight_bytes) / 1e6, device.name, device.driver);
  fmt::print("| {:<16} | {:>18} | {:>13} | {:>16} | {:>17} | {:>9} |\n", "test", "tokens/s", "host us/token", "dispatches/token", "submissions/token", "worst ms");
  fmt::print("|{:-<18}|{:->20}|{:->15}|{:->18}|{:->19}|{:->11}|\n", ":", ":", ":", ":", ":", ":");
  for (const Measured& row : results) {
    fmt::print("| {:<16} | {:>9.2f} ± {:>6.2f} | {:>13.2f} | {:>16.2f} | {:>17.3f} | {:>9.2f} |\n", row.test.name(), row.mean(), row.deviation(), row.host_us, row.dispatches,
               row.submissions, row.worst_ms);
  }
}

void print_csv(const std::vector<Measured>& results) {
  fmt::print("test,n_prompt,n_gen,depth,tps_mean,tps_stdev,host_us_per_token,dispatches,submissions_per_token,worst_ms\n");
  for (const Measured& row : results) {
    fmt::print("{},{},{},{},{},{},{},{},{},{}\n", row.test.name(), row.test.n_prompt, row.test.n_gen, row.test.depth, row.mean(), row.deviation(), row.host_us, row.dispatches,
               row.submissions, row.worst_ms);
  }
}

Status bench(const GlobalFlags& flags, const BenchFlags& own, int& closed) {
  RONDO_ASSIGN(Profile profile, Profile::open(own.profile));
  RONDO_ASSIGN(std::unique_ptr<Workbench> workbench, own.random.empty() ? Workbench::open(flags, own.model, own.open, {})
                                                                              : Workbench::open(flags, random_model(own.random, own.type), {.random_weights = true}));
  std::vector<Measured> results;
  const models::Network& network = workbench->model().internal()->model().network();
  const bool encodes = !network.find(models::Role::kDecode);
  if (encodes && !network.find(models::Role::kPool)) return Status(StatusCode::kUnsupported, fmt::format("bench: a {} takes images, which is not there yet", network.facts.architecture));
  if (encodes && own.depths != std::vector<std::uint32_t>{0}) return Status(StatusCode::kInvalidArgument, fmt::format("bench: -d is of decoders, and a {} is none", network.facts.architecture));
  for (std::uint32_t n : encodes ? own.prompts : std::vector<std::uint32_t>()) {
    if (own.prompts == BenchFlags().prompts) n = std::min(n, models::default_text(network));  // as many as there are, where nobody asks
    if (n == 0) continue;
    for (const std::uint32_t batch : {1u, EncoderOptions().max_batch}) {
      RONDO_ASSIGN(Measured measured, measure_encoder(workbench->model(), own, {n, 0, 0, batch}, profile));
      results.push_back(std::move(measured));
    }
  }
  for (std::uint32_t depth : encodes ? std::vector<std::uint32_t>() : own.depths) {
    std::vector<Test> tests;
    for (std::uint32_t n : own.prompts) tests.push_back({n, 0, depth});
    for (std::uint32_t n : own.generated) tests.push_back({0, n, depth});
    for (const Test& test : tests) {
      if (test.n_prompt == 0 && test.n_gen == 0) continue;
      RONDO_ASSIGN(Measured measured, measure(workbench->model(), flags, own, test, profile));
      results.push_back(std::move(measured));
    }
  }
  const DeviceInfo& device = workbench->device().info();
  const ModelInfo& model = workbench->model().info();
  if (own.output == "json") fmt::print("{}\n", as_json(*workbench, device, model, results));
  else if (own.output == "csv") print_csv(results);
  else print_md(device, model, results);
  if (profile.wanted()) fmt::print(stderr, "speeds under the profiler: one step in flight, one dispatch at a time\n");
  RONDO_TRY(profile.finish());
  closed = workbench->close();
  return {};
}

int run_kernels(const GlobalFlags& flags, const BenchFlags& own) {
  if (!own.model_flag.empty()) {
    return report(fmt::format("--kernels measures without a model, one kernel at a time: {} can't be given with it", own.model_flag), kUsage);
  }
  if (own.output == "csv") return report("-o csv: --kernels prints md or json", kUsage);
  if (const std::string wrong = check_kernel_filter(own.kernels); !wrong.empty()) return report(wrong, kUsage);
  KernelBenchFlags kernels;
  kernels.filter = own.kernels;
  kernels.json = own.output == "json";
  if (own.has_repetitions) kernels.repetitions = own.repetitions;
  int closed = kDone;
  const Status done = bench_kernels(flags, kernels, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace

int run_bench(const GlobalFlags& flags, const BenchFlags& own) {
  if (own.has_kernels) return run_kernels(flags, own);
  if (own.model.empty() && own.random.empty()) return report("bench needs -m FILE, --random SHAPE or --kernels", kUsage);
  if (!own.random.empty()) {
    if (const std::string misfit = check_random_model(own.random, own.type); !misfit.empty()) return report(misfit, kUsage);
  }
  int closed = kDone;
  const Status done = bench(flags, own, closed);
  return done.ok() ? closed : report(done);
}

}  // namespace rondo::tools
