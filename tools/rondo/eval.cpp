// rondo eval: one forward pass of a model, all positions, or an operator graph; from and to safetensors files.
#include "models/formats/safetensors.h"
#include "models/memory_plan.h"
#include "models/reference.h"
#include "runtime/fmt.h"
#include "tools/rondo/eval_graph.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

/// Rows of token ids.
struct InputIds {
  std::uint64_t batch = 0, tokens = 0;
  std::vector<std::int32_t> ids;
};

Result<InputIds> read_input_ids(const std::string& path) {
  RONDO_ASSIGN(const ByteSource source, open_file(path));
  RONDO_ASSIGN(const models::SafetensorsFile file, models::SafetensorsFile::parse(source));
  for (const char* other : {"attention_mask", "token_type_ids", "decoder_input_ids", "pixel_values"}) {
    if (file.find(other)) return Status(StatusCode::kInvalidArgument, fmt::format("{}: tensor '{}' is not an input of a decoder", path, other));
  }
  const models::SafetensorsEntry* entry = file.find("input_ids");
  if (!entry) return Status(StatusCode::kNotFound, fmt::format("{}: tensor 'input_ids' is missing", path));
  if (entry->shape.size() != 2 || entry->shape[0] == 0 || entry->shape[1] == 0) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: tensor 'input_ids' must be (batch, tokens) and not empty", path));
  }
  RONDO_ASSIGN(const std::vector<std::int64_t> ids, file.read_i64(source, "input_ids"));
  InputIds input{entry->shape[0], entry->shape[1], {}};
  for (std::int64_t id : ids) {
    if (id < 0 || id > (1 << 24)) return Status(StatusCode::kInvalidArgument, fmt::format("{}: tensor 'input_ids' holds {}, which is no token id", path, id));
    input.ids.push_back(static_cast<std::int32_t>(id));
  }
  return input;
}

Status evaluate(const GlobalFlags& flags, const EvalFlags& own, int& closed) {
  RONDO_ASSIGN(const InputIds input, read_input_ids(own.inputs.front()));
  std::vector<float> logits;
  const auto check_input = [&](std::uint32_t n_vocab) { return check_vocabulary(fmt::format("{}: tensor 'input_ids'", own.inputs.front()), input.ids, n_vocab); };
  const auto row = [&](std::uint64_t b) { return std::span(input.ids).subspan(b * input.tokens, input.tokens); };
  if (own.reference) {
    RONDO_ASSIGN(ByteSource source, open_model(own.model, own.open));
    RONDO_ASSIGN(const auto checkpoint, models::open_checkpoint(std::move(source)));
    RONDO_TRY(check_input(checkpoint->network.facts.n_vocab));
    const graph::Type kv_type = models::kv_type_of(flags.model_options());
    for (std::uint64_t b = 0; b < input.batch; ++b) {
      RONDO_ASSIGN(const std::vector<float> one, models::reference_logits(*checkpoint, row(b), kv_type));
      logits.insert(logits.end(), one.begin(), one.end());
    }
  } else {
    RONDO_ASSIGN(Profile profile, Profile::open(own.profile));
    RONDO_ASSIGN(std::unique_ptr<Workbench> bench, Workbench::open(flags, own.model, own.open, {}));
    RONDO_TRY(check_input(bench->model().info().n_vocab));
    {
      SessionOptions options = flags.session_options();
      options.n_ctx = static_cast<std::uint32_t>(input.tokens);
      profile.configure(options);
      RONDO_ASSIGN(Session session, Session::create(bench->model(), options));
      for (std::uint64_t b = 0; b < input.batch; ++b) {
        RONDO_TRY(session.rewind(0));
        RONDO_ASSIGN(const std::vector<float> one, session.wait_logits(row(b)));
        logits.insert(logits.end(), one.begin(), one.end());
      }
      profile.collect(session);
    }
    RONDO_TRY(profile.finish());
    closed = bench->close();
  }
  const models::SafetensorsTensor output{"logits", models::SafetensorsDtype::kF32, {input.batch, input.tokens, logits.size() / (input.batch * input.tokens)},
                                         std::as_bytes(std::span(logits))};
  keep_results();
  return models::write_safetensors(own.outputs, {&output, 1});
}

}  // namespace

int run_eval(const GlobalFlags& flags, const EvalFlags& own) {
  if (own.reference && own.profile.wanted()) return report("--timings and --trace are about a device, and --reference uses none", kUsage);
  if (own.model.empty() == own.graph.empty()) {
    return report("eval takes a model or a graph: one of --model and --graph is required; see rondo eval --help", kUsage);
  }
  if (own.graph.empty() && own.inputs.size() > 1) return report("--inputs is given twice, which is for --graph: a model has one file of inputs", kUsage);
  if (!own.graph.empty() && flags.kv_type != "auto") {
    return report("--kv-type is about models: a file of --graph says what types its caches have", kUsage);
  }
  int closed = kDone;
  const Status done = own.graph.empty() ? evaluate(flags, own, closed) : evaluate_graph(flags, own, closed);
  return !done.ok() ? report(done) : interrupted() ? static_cast<int>(kInterrupted) : closed;
}

}  // namespace rondo::tools
