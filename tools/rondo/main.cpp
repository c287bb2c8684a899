// The rondo command. Contract: results on stdout, the rest on stderr; exit status 0, 1 (failed), 2 (usage), 130 (interrupted).
// All flags are declared here, in the only file that compiles CLI11.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <rondo/version.h>

#include "graph/quantize.h"
#include "runtime/fmt.h"
#include "tools/rondo/profiles.h"
#include "tools/rondo/random_model.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {
namespace {

/// A refusal in our own words.
class WrongUsage : public CLI::ParseError {
 public:
  explicit WrongUsage(std::string message) : ParseError("WrongUsage", std::move(message), kUsage) {}
};

/// Commands of the contract that are not built yet: known, not listed, and refused whatever follows.
void add_commands_to_come(CLI::App& app) {
  for (const char* name : {"quantize", "chat"}) {
    CLI::App* command = app.add_subcommand(name)->group("")->allow_extras();
    command->set_help_flag();
    command->preparse_callback([name](std::size_t) { throw WrongUsage(fmt::format("{} is not there yet", name)); });
  }
}

// What several subcommands have.

using Check = std::function<std::string(const std::string&)>;

/// The text is not empty.
Check some_text(const char* otherwise) {
  return [otherwise](const std::string& text) { return text.empty() ? otherwise : ""; };
}

/// One of these words.
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
  return option->check(CLI::IsMember(words))->type_name(fmt::join(words, "|"));
}

/// Adds -p and -f, which exclude each other, and returns them.
std::array<CLI::Option*, 2> add_text(CLI::App& command, TextFlags& text, const char* purpose) {
  CLI::Option* prompt = command.add_option("-p,--prompt", text.prompt, purpose);
  prompt->each([&text](const std::string&) { text.has_prompt = true; });
  CLI::Option* file = command.add_option("-f,--file", text.file, "file with the text, taken byte for byte")->excludes(prompt);
  file->each([&text](const std::string&) { text.has_file = true; });
  return {prompt, file};
}

/// -m, and --quantize, which goes with it.
CLI::Option* add_model(CLI::App& command, std::string& path, OpenOptions& open, const char* purpose = "GGUF file, also any of its parts, or a Hugging Face folder") {
  CLI::Option* model = command.add_option("-m,--model", path, purpose)->check(some_text("-m takes a file or a folder"));
  const auto is_type = [](const std::string& text) { return graph::find_quantized_type(text) ? "" : fmt::format("'{}' is not one of {}", text, graph::quantized_type_names()); };
  command.add_option("--quantize", open.quantize, fmt::format("round matrices to this type as they are read: {}", graph::quantized_type_names()))->check(is_type)->needs(model)->type_name("TYPE");
  return model;
}

void add_ctx(CLI::App& command, std::uint32_t& ctx) {
  command.add_option("--ctx", ctx, "context in tokens (default: the model's, at most 4096)")->check(CLI::Range(1u, 1u << 24));
}

void add_burst(CLI::App& command, std::string& burst) {
  command.add_option("--burst", burst, "most decode steps per submission")->check(check_burst)->type_name("auto|K");
}

void add_profile_flags(CLI::App& command, ProfileFlags& flags) {
  command.add_flag("--timings", flags.timings, "GPU time by kernel, on stderr; slows everything down");
  command.add_option("--trace", flags.trace, "write a trace for Perfetto or chrome://tracing; slows everything down")
      ->check(some_text("--trace takes a file"))
      ->type_name("FILE");
}

constexpr const char* kGlobal = "Global";

/// What chooses and opens a device.
void add_device_flags(CLI::App& command, GlobalFlags& flags) {
  command.add_option("--device", flags.device, "device: index or part of its name (also RONDO_DEVICE)")->each([&flags](const std::string&) { flags.names_device = true; })->group(kGlobal);
  command.add_flag("--validate", flags.validate, "load the validation layers; a message is an error")->group(kGlobal);
  command.add_option("--as", flags.as, "pretend to be the device of this profile")->check(check_profile)->type_name("NAME")->group(kGlobal);
  one_of(command.add_option("--log-level", flags.log_level, "what to print on stderr")->group(kGlobal), {"error", "warn", "info", "debug"});
  command.add_option("--pipeline-cache", flags.pipeline_cache, "file for compiled pipelines (default: one in the user's cache directory)")
      ->check(some_text("--pipeline-cache takes a file or none"))
      ->type_name("PATH|none")
      ->group(kGlobal);
}

void add_global_flags(CLI::App& command, GlobalFlags& flags) {
  add_device_flags(command, flags);
  one_of(command.add_option("--kv-type", flags.kv_type, "type of the KV cache")->group(kGlobal), {"auto", "f32", "f16", "q8_0"});
  one_of(command.add_option("--activations", flags.activations, "round activations: f16 for matrix units and dot products of f16, q8 for integer ones too; auto where that saves work")->group(kGlobal), {"auto", "f32", "f16", "q8"});
  command.add_option("--kernel", flags.kernels, "force a kernel: OP=NAME, may be repeated")
      ->check([](const std::string& text) { return text.find('=') == std::string::npos ? "--kernel takes OP=NAME" : ""; })
      ->type_name("OP=NAME")
      ->group(kGlobal);
  command.add_option("--quarantine", flags.quarantine, "file of kernels that are wrong on a device (default: quarantine.json beside the pipeline cache)")
      ->check(some_text("--quarantine takes a file or none"))
      ->type_name("FILE|none")
      ->group(kGlobal);
  command.add_option("--tuning", flags.tuning, "file of what rondo tune measured (default: one of the device beside the pipeline cache)")
      ->check(some_text("--tuning takes a file or none"))
      ->type_name("FILE|none")
      ->group(kGlobal);
  command.add_flag("--no-fusion", flags.no_fusion, "one dispatch per operator")->group(kGlobal);
  command.add_option("--segment-us", flags.segment_us, "cut steps at this much predicted time, in microseconds")
      ->check(number_check(0, 1e12, true))
      ->group(kGlobal);
}

/// Hands the global flags that stand before the subcommand to it, as if they came first after it: what it does with them, and
/// whether it knows them, is then the same for both places.
void hand_over_global_flags(const CLI::App& app, CLI::App& command) {
  for (const CLI::Option* before : app.get_options([](const CLI::Option* option) { return option->get_group() == kGlobal && option->count() > 0; })) {
    CLI::Option* after = command.get_option_no_throw(before->get_name());
    if (!after || after->get_group() != kGlobal) throw WrongUsage(fmt::format("{} is not a global flag of {}", before->get_name(), command.get_name()));
    for (const std::string& value : before->results()) after->add_result(value);
  }
}

// Each adds its subcommand, which leaves its exit status in `status`.

void add_devices(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("devices", "List Vulkan devices, and why each can or can't be used");
  auto own = std::make_shared<DevicesFlags>();
  command->add_flag("--json", own->json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_devices(flags, *own); });
}

void add_tokenizer(CLI::App& command, std::string& path) {
  command.add_option("--tokenizer", path, "GGUF file, or a Hugging Face folder, whose tokenizer is used instead of the model's")->type_name("FILE");
}

void add_generate(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("generate", "Continue a text");
  auto own = std::make_shared<GenerateFlags>();
  add_model(*command, own->model, own->open)->required();
  add_tokenizer(*command, own->tokenizer);
  const auto [prompt, file] = add_text(*command, own->text, "text to continue");
  CLI::Option* tokens = command->add_option("--tokens", own->tokens, "ids to continue, nothing added: 1,2,3")->excludes(prompt)->excludes(file)->check(check_ids);
  command->add_option("-n", own->n, "most tokens to make")->check(CLI::Range(0u, ~0u))->capture_default_str();
  add_ctx(*command, own->ctx);
  SamplingOptions& sampling = own->sampling;
  command->add_option("--temp", sampling.temperature, "temperature; 0: greedy")->check(number_check(0, 1e6))->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "keep the K most probable tokens; 0: all")->check(CLI::Range(0u, ~0u))->capture_default_str();
  command->add_option("--top-p", sampling.top_p, "keep the fewest tokens that reach this probability")->check(number_check(0, 1, true))->capture_default_str();
  command->add_option("--min-p", sampling.min_p, "keep tokens at least this times as probable as the first")->check(number_check(0, 1))->capture_default_str();
  command->add_option("--repeat-penalty", sampling.repeat_penalty, "divides the logits of recent tokens")->check(number_check(0, 1e6, true))->capture_default_str();
  command->add_option("--repeat-last-n", sampling.repeat_last_n, "how many tokens are recent")->check(CLI::Range(0u, ~0u))->capture_default_str();
  command->add_option("--stop", own->stop_texts, "end before this text; may be repeated")
      ->check(some_text("--stop takes a text that is not empty"))
      ->type_name("TEXT")
      ->allow_extra_args(false);
  CLI::Option* seed = command->add_option("--seed", own->seed, "seed for sampling (default: random)")->check(check_u64);
  command->add_flag("--ignore-eos", own->ignore_eos, "go on after an end-of-text token");
  add_burst(*command, own->burst);
  command->add_flag("--parse-special", own->parse_special, "special tokens in the text become their ids");
  command->add_flag("--self-test", own->self_test, "run each kernel once beside the reference first; what is wrong goes into quarantine");
  command->add_flag("--json", own->json, "print one JSON document");
  add_profile_flags(*command, own->profile);
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own, tokens, seed] {
    own->has_tokens = tokens->count() > 0;
    if (seed->count() == 0) own->seed = std::random_device{}();
    status = run_generate(flags, *own);
  });
}

void add_tokenize(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("tokenize", "Text to token ids, or ids to text");
  auto own = std::make_shared<TokenizeFlags>();
  add_model(*command, own->model, own->open, "GGUF file, also any of its parts or one of a vocabulary alone, or a Hugging Face folder")->required();
  add_tokenizer(*command, own->tokenizer);
  const auto [prompt, file] = add_text(*command, own->text, "text");
  CLI::Option* decode = command->add_option("--decode", own->decode, "ids to turn into text: 1,2,3")->excludes(prompt)->excludes(file)->check(check_ids);
  command->add_flag("--no-bos", own->no_bos, "nothing in front of the text or behind it, such as BOS, [CLS] and [SEP]");
  command->add_flag("--parse-special", own->parse_special, "special tokens in the text become their ids");
  command->add_flag("--json", own->json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&status, own, decode] {
    own->has_decode = decode->count() > 0;
    status = run_tokenize(*own);
  });
}

void add_eval(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("eval", "One forward pass of a model: logits of all positions; or an operator graph");
  auto own = std::make_shared<EvalFlags>();
  CLI::Option* model = add_model(*command, own->model, own->open);
  command->add_option("--graph", own->graph, "JSON file of operators")->type_name("FILE")->excludes(model);
  command->add_option("--inputs", own->inputs, "safetensors file with input_ids (batch, tokens), or the graph's inputs by name; several for a graph")->allow_extra_args(false)->required();
  command->add_option("--outputs", own->outputs, "safetensors file to write: logits (batch, tokens, vocabulary), or the graph's outputs by name")->required();
  command->add_flag("--reference", own->reference, "compute on the CPU, with the operators' references; needs no Vulkan");
  add_profile_flags(*command, own->profile);
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_eval(flags, *own); });
}

/// -p, and -f for a text a line.
void add_lines(CLI::App& command, TextFlags& text, const char* purpose) {
  add_text(command, text, purpose)[1]->description("file with such texts, one a line");
}
void add_truncate(CLI::App& command, bool& truncate) { command.add_flag("--truncate", truncate, "of a text that is too long for the model, take what fits"); }

void add_embed(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("embed", "A vector of each text");
  auto own = std::make_shared<EmbedFlags>();
  add_model(*command, own->model, own->open)->required();
  add_lines(*command, own->text, "text");
  one_of(command->add_option("--pooling", own->pooling, "how the tokens' states become one vector; model: as it was made for"), {"mean", "cls", "last", "model"})->capture_default_str();
  command->add_flag("--normalize", own->normalize, "vectors of length 1, so that their products are cosines");
  add_truncate(*command, own->truncate);
  one_of(command->add_option("-o,--output", own->output, "format, on stdout: {\"width\", \"vectors\"}, or f32 (texts, width)"), {"json", "npy", "safetensors"})->capture_default_str();
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_embed(flags, *own); });
}

void add_classify(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("classify", "What kind of text or picture it is: labels with their probabilities");
  auto own = std::make_shared<ClassifyFlags>();
  add_model(*command, own->model, own->open)->required();
  add_lines(*command, own->text, "text");
  command->add_option("--image", own->images, "PNG or JPEG file; may be repeated")->check(some_text("--image takes a file"))->type_name("FILE")->allow_extra_args(false);
  command->add_option("-n", own->n, "most labels to print of each")->check(CLI::Range(1u, 1u << 20))->capture_default_str();
  add_truncate(*command, own->truncate);
  command->add_flag("--json", own->json, "print a JSON document a line");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_classify(flags, *own); });
}

void add_answer(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("answer", "Where a text answers a question");
  auto own = std::make_shared<AnswerFlags>();
  add_model(*command, own->model, own->open)->required();
  command->add_option("-p,--prompt", own->question, "question")->check(some_text("-p: the question is empty"))->required();
  command->add_option("-f,--file", own->file, "file with the text that answers it")->required();
  command->add_option("-n", own->n, "most answers to print")->check(CLI::Range(1u, 1000u))->capture_default_str();
  command->add_flag("--json", own->json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_answer(flags, *own); });
}

void add_fill(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("fill", "The most probable words where a text has its mask, such as [MASK]");
  auto own = std::make_shared<FillFlags>();
  add_model(*command, own->model, own->open)->required();
  add_lines(*command, own->text, "text with a mask");
  command->add_option("-n", own->n, "most words to print of each")->check(CLI::Range(1u, 1u << 20))->capture_default_str();
  command->add_flag("--json", own->json, "print a JSON document a line");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_fill(flags, *own); });
}

void add_attention(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("attention", "A picture of what each token of a text, or patch of an image, attends to");
  auto own = std::make_shared<AttentionFlags>();
  add_model(*command, own->model, own->open)->required();
  add_text(*command, own->text, "text");
  command->add_option("--image", own->image, "PNG or JPEG file")->check(some_text("--image takes a file"))->type_name("FILE");
  command->add_option("--layer", own->layer, "of which layer, from 0; of an encoder-decoder, in its encoder")->check(CLI::Range(0u, 1u << 16))->capture_default_str();
  command->add_option("--head", own->head, "of which head, from 0 (default: all of them)")->check(CLI::Range(0u, 1u << 16));
  command->add_option("-o,--output", own->output, "file to write: .svg, .png, or .json with the numbers")->check(some_text("-o takes a file"))->type_name("FILE")->required();
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_attention(flags, *own); });
}

void add_translate(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("translate", "What an encoder-decoder makes of a text, such as its translation");
  auto own = std::make_shared<TranslateFlags>();
  add_model(*command, own->model, own->open)->required();
  add_lines(*command, own->text, "text to translate");
  command->add_option("--beams", own->beams, "hypotheses kept at each step; 1: greedy")->check(CLI::Range(1u, 16u))->capture_default_str();
  command->add_option("--length-penalty", own->length_penalty, "of beams: sums of log-probabilities are divided by the length to this power")->check(number_check(-10, 10))->capture_default_str();
  command->add_option("-n", own->n, "most tokens of a translation (default: what the model holds, at most 512)")->check(CLI::Range(1u, 1u << 20));
  add_truncate(*command, own->truncate);
  command->add_flag("--json", own->json, "print a JSON document a line");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_translate(flags, *own); });
}

/// The first flag given that means nothing to `bench --kernels`, or "".
std::string find_model_flag(const CLI::App& command) {
  const std::vector<std::string> allowed = {"--kernels", "-r", "-o", "--device", "--validate", "--as", "--log-level", "--pipeline-cache"};
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0) continue;
    if (std::none_of(allowed.begin(), allowed.end(), [&](const std::string& name) { return option->check_name(name); })) return option->get_name();
  }
  return "";
}

void add_bench(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("bench", "Measure prefill and decode, or single kernels");
  auto own = std::make_shared<BenchFlags>();
  CLI::Option* model = add_model(*command, own->model, own->open);
  CLI::Option* random = command->add_option("--random", own->random, "no file: a Llama of this shape, its weights made on the device")->check(check_random_shape)->excludes(model)->type_name("SHAPE");
  command->add_option("--type", own->type, fmt::format("type of all matrices of --random; q4_k and q6_k for {} only", random_shapes_of_k_types()))->check(check_random_type)->needs(random)->type_name("TYPE");
  CLI::Option* kernels = command->add_option("--kernels", own->kernels, "no model: each kernel whose OP/KERNEL contains FILTER")->expected(0, 1)->type_name("[FILTER]");
  const auto range = CLI::Range(0u, 1u << 20);
  command->add_option("-p", own->prompts, "prompt lengths, 0 skips")->delimiter(',')->check(range)->capture_default_str();
  command->add_option("-n", own->generated, "numbers of decoded tokens, 0 skips")->delimiter(',')->check(range)->capture_default_str();
  command->add_option("-d", own->depths, "tokens in the cache before")->delimiter(',')->check(range)->capture_default_str();
  CLI::Option* repetitions = command->add_option("-r", own->repetitions, "repetitions; of --kernels 3 unless given")->check(CLI::Range(1u, 1000u))->capture_default_str();
  add_burst(*command, own->burst);
  one_of(command->add_option("-o,--output", own->output, "format"), {"md", "csv", "json"});
  add_profile_flags(*command, own->profile);
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own, command, kernels, repetitions] {
    own->has_kernels = kernels->count() > 0;
    own->has_repetitions = repetitions->count() > 0;
    own->model_flag = find_model_flag(*command);
    status = run_bench(flags, *own);
  });
}

void add_tune(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("tune", "Measure which kernels are fastest for a model on this device; used from then on");
  auto own = std::make_shared<TuneFlags>();
  add_model(*command, own->model, own->open)->required();
  command->add_flag("--json", own->json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_tune(flags, *own); });
}

/// --graph, and --inputs for the types and shapes that it leaves to its files.
CLI::Option* add_graph_file(CLI::App& command, std::string& graph, std::vector<std::string>& inputs) {
  CLI::Option* option = command.add_option("--graph", graph, "JSON file of operators, instead of a model")->type_name("FILE");
  command.add_option("--inputs", inputs, "safetensors file of the graph's inputs, where it does not say their types and shapes; may be repeated")->allow_extra_args(false)->needs(option);
  return option;
}

void add_info(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("info", "What a model or graph file holds, and the memory that running it takes; needs no Vulkan");
  auto own = std::make_shared<InfoFlags>();
  CLI::Option* model = add_model(*command, own->model, own->open, "GGUF file, also any of its parts or one of a vocabulary alone, or a Hugging Face folder");
  add_graph_file(*command, own->graph, own->inputs)->excludes(model);
  add_ctx(*command, own->ctx);
  command->add_flag("--json", own->json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_info(flags, *own); });
}

void add_graph(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("graph", "The Program that a step, or a graph file, is lowered to; with --as NAME it needs no device");
  auto own = std::make_shared<GraphFlags>();
  CLI::Option* model = add_model(*command, own->model, own->open);
  add_graph_file(*command, own->graph, own->inputs)->excludes(model);
  one_of(command->add_option("--step", own->step, "which step"), {"prefill", "decode", "encode"})->capture_default_str();
  command->add_option("--rows", own->rows, "tokens that a prefill takes (default: the most that a session records)")->check(CLI::Range(1u, 1u << 16));
  add_ctx(*command, own->ctx);
  one_of(command->add_option("--format", own->format, "form of the output"), {"text", "dot", "json"})->capture_default_str();
  CLI::Option* const predict = command->add_flag("--predict", own->predict, "how long it takes on the card of --as NAME, from counts of its kernels");
  command->add_option("--measured", own->measured, "of such a card: a trace that rondo bench --trace wrote, beside the prediction")->check(some_text("--measured takes a file"))->type_name("FILE")->needs(predict);
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own, command] {
    for (const char* name : {"--step", "--rows", "--ctx"}) {
      if (command->count(name) > 0) own->model_flag = name;
    }
    status = run_graph(flags, *own);
  });
}

void add_check(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("check", "Compare every kernel of every operator with the reference");
  auto own = std::make_shared<CheckFlags>();
  command->add_option("--op", own->options.ops, "only this operator, may be repeated")->type_name("NAME");
  command->add_option("--kernel", own->options.kernels, "only kernels of this name (tiled, or attention/tiled), may be repeated")->type_name("NAME");
  command->add_option("--case", own->options.text, "this case instead of those of the table, in the words of --list")
      ->check(some_text("--case takes an operator with its inputs"))
      ->type_name("TEXT");
  command->add_option("--seed", own->options.seed, "of all random numbers")->capture_default_str();
  command->add_flag("--thorough", own->options.thorough, "many more shapes; takes long on a CPU driver");
  command->add_flag("--brief", own->options.brief, "whole and random numbers only, and each run once");
  CLI::Option* repeats = command->add_option("--repeats", own->options.repeats, "run each case this often, with the same bytes each time (default: 25, with --brief 1)")->check(CLI::Range(1, 1000))->type_name("N");
  CLI::Option* list = command->add_flag("--list", own->list, "only print what would run, with the bounds; needs no Vulkan");
  command->add_flag("--json", own->json, "one JSON document")->excludes(list);
  CLI::Option* simulate = command->add_flag("--simulate", own->simulate, "in rondo-simulate, which finds races too; needs no Vulkan")->excludes(list)->excludes(repeats);
  command->add_option("--subgroup", own->subgroup, "lanes of a simulated subgroup")->needs(simulate)->check(CLI::IsMember({4, 8, 16, 32, 64, 128}))->capture_default_str()->type_name("N");
  add_device_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_check(flags, *own); });
}

void add_isa(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("isa", "What the driver's compiler makes of every kernel: registers, spills, instructions of loops; runs nothing");
  auto own = std::make_shared<IsaFlags>();
  command->add_option("filter", own->filter, "only kernels whose name contains this, as in \"linear subgroup q4\"");
  command->add_option("--budget", own->budget, "file of most registers, spills and so on; what exceeds it is a failure")->check(some_text("--budget takes a file"))->type_name("FILE");
  command->add_option("--against", own->against, "folder of other SPIR-V modules with modules.json, put beside ours")->check(some_text("--against takes a folder"))->type_name("DIR");
  command->add_option("--limit", own->limit_s, "seconds that a kernel may take to compile")->check(number_check(0.001, 1e6))->capture_default_str();
  command->add_flag("--device-list", own->device_list, "which devices tell what they compile");
  command->add_flag("--json", own->json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, own] { status = run_isa(flags, *own); });
}

int run(int argc, char** argv) {
  constexpr const char* kSimulate = "simulate";
  if (argc > 1 && argv[1] == std::string_view(kSimulate)) return run_simulate({argv + 2, argv + argc});  // its flags are its own
  GlobalFlags flags, before_command;
  flags.started_s = now_s();
  // Not through CLI11: each subcommand would set it again, and the environment would win over the flag.
  if (const char* device = std::getenv("RONDO_DEVICE")) flags.device = device;
  install_interrupt_handler();
  std::signal(SIGXFSZ, SIG_IGN);  // a write that fails says so, and what was begun is removed
  CLI::App app("Runs transformer models on any Vulkan GPU.", "rondo");
  app.set_version_flag("--version", std::string("rondo ") + library_version());
  app.require_subcommand(1);
  app.footer("Global flags stand before or after the subcommand; check takes those that concern the device.");
  add_global_flags(app, before_command);
  int status = kDone;
  add_devices(app, flags, status);
  add_generate(app, flags, status);
  add_tokenize(app, flags, status);
  add_embed(app, flags, status);
  add_classify(app, flags, status);
  add_answer(app, flags, status);
  add_fill(app, flags, status);
  add_translate(app, flags, status);
  add_attention(app, flags, status);
  add_eval(app, flags, status);
  add_bench(app, flags, status);
  add_tune(app, flags, status);
  add_info(app, flags, status);
  add_graph(app, flags, status);
  add_check(app, flags, status);
  add_isa(app, flags, status);
  app.add_subcommand(kSimulate, "Execute a kernel lane by lane: races, undefined values, cache lines, bank conflicts; needs no Vulkan");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->preparse_callback([&app, command](std::size_t) { hand_over_global_flags(app, *command); });
  }
  add_commands_to_come(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      return report(fmt::format("'{}' is not a command; see rondo --help", argv[1]), kUsage);
    }
    return report(fmt::format("{}; see rondo --help", error.what()), kUsage);
  }
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && status != kInterrupted) return report("stdout: the results can't be written");
  return status;
}

}  // namespace
}  // namespace rondo::tools

int main(int argc, char** argv) {
  try {
    return rondo::tools::run(argc, argv);
  } catch (const std::exception& error) {
    return rondo::tools::report(error.what());
  }
}
