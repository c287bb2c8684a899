// The subcommands: their flags, which main.cpp declares, and what each does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/session.h>

#include "tools/check/check.h"
#include "tools/rondo/command.h"
#include "tools/rondo/profile.h"

namespace rondo::tools {

struct DevicesFlags {
  bool json = false;
};

struct GenerateFlags {
  OpenOptions open;
  std::string model, tokenizer, tokens, burst = "auto";
  TextFlags text;
  bool has_tokens = false;  ///< they were given, if only an empty list
  std::uint32_t n = 128, ctx = 0;
  std::vector<std::string> stop_texts;
  SamplingOptions sampling{0.8f, 40, 0.95f, 0.05f, 1, 64};
  std::uint64_t seed = 0;
  bool ignore_eos = false, parse_special = false, json = false, self_test = false;
  ProfileFlags profile;
};

struct TokenizeFlags {
  OpenOptions open;
  std::string model, tokenizer, decode;
  TextFlags text;
  bool has_decode = false;  ///< ids were given, if only an empty list
  bool no_bos = false, parse_special = false, json = false;
};

struct EvalFlags {
  OpenOptions open;
  std::string model, graph, outputs;  ///< files
  std::vector<std::string> inputs;    ///< one for a model
  bool reference = false;                     ///< on the CPU, without Vulkan
  ProfileFlags profile;
};

struct EmbedFlags {
  OpenOptions open;
  std::string model, pooling = "model", output = "json";
  TextFlags text;
  bool normalize = false, truncate = false;
};

struct ClassifyFlags {
  OpenOptions open;
  std::string model;
  std::vector<std::string> images;
  TextFlags text;
  std::uint32_t n = 5;
  bool truncate = false, json = false;
};

struct AnswerFlags {
  OpenOptions open;
  std::string model, question, file;
  std::uint32_t n = 1;
  bool json = false;
};

struct FillFlags {
  OpenOptions open;
  std::string model;
  TextFlags text;
  std::uint32_t n = 5;
  bool json = false;
};

struct TranslateFlags {
  OpenOptions open;
  std::string model;
  TextFlags text;
  std::uint32_t beams = 1, n = 0;  ///< n: 0 is the model's most
  double length_penalty = 1;
  bool truncate = false, json = false;
};

struct AttentionFlags {
  OpenOptions open;
  std::string model, image, output;
  TextFlags text;
  std::uint32_t layer = 0;
  std::optional<std::uint32_t> head;  ///< nothing: all
};

struct BenchFlags {
  OpenOptions open;
  std::string model, random, type = "q8_0", burst = "auto", output = "md";
  std::vector<std::uint32_t> prompts = {512}, generated = {128}, depths = {0};
  std::uint32_t repetitions = 5;
  bool has_repetitions = false;
  bool has_kernels = false;
  std::string kernels;     ///< a part of OP/KERNEL, or "" for all
  std::string model_flag;  ///< one that was given and means nothing without a model, or ""
  ProfileFlags profile;
};

struct TuneFlags {
  OpenOptions open;
  std::string model;
  bool json = false;
};

struct InfoFlags {
  OpenOptions open;
  std::string model, graph;
  std::vector<std::string> inputs;  ///< of the graph
  std::uint32_t ctx = 0;
  bool json = false;
};

struct GraphFlags {
  OpenOptions open;
  std::string model, graph, step = "decode", format = "text";
  std::vector<std::string> inputs;  ///< of the graph
  std::string model_flag;           ///< one that was given and means nothing without a model, or ""
  std::uint32_t ctx = 0, rows = 0;  ///< 0: not given
  bool predict = false;
  std::string measured;  ///< a trace of such steps, beside what is predicted, or ""
};

struct IsaFlags {
  std::string filter;  ///< a part of kernels' labels, or "" for all
  std::string budget;  ///< a file, or ""
  std::string against; ///< a folder of other people's modules, or ""
  double limit_s = 60; ///< for one kernel
  bool json = false, device_list = false;
};

struct CheckFlags {
  check::CheckOptions options;
  bool list = false, json = false, simulate = false;
  std::uint32_t subgroup = 32;  ///< of --simulate
};

/// Each runs its subcommand, says on stderr what went wrong, and returns the exit status.
int run_devices(const GlobalFlags& flags, const DevicesFlags& own);
int run_generate(const GlobalFlags& flags, const GenerateFlags& own);
int run_tokenize(const TokenizeFlags& own);
int run_eval(const GlobalFlags& flags, const EvalFlags& own);
int run_embed(const GlobalFlags& flags, const EmbedFlags& own);
int run_classify(const GlobalFlags& flags, const ClassifyFlags& own);
int run_answer(const GlobalFlags& flags, const AnswerFlags& own);
int run_fill(const GlobalFlags& flags, const FillFlags& own);
int run_translate(const GlobalFlags& flags, const TranslateFlags& own);
int run_attention(const GlobalFlags& flags, const AttentionFlags& own);
int run_isa(const GlobalFlags& flags, const IsaFlags& own);
/// Becomes the program rondo-simulate that lies beside the command; returns only where there is none.
int run_simulate(const std::vector<std::string>& arguments);
int run_bench(const GlobalFlags& flags, const BenchFlags& own);
int run_tune(const GlobalFlags& flags, const TuneFlags& own);
int run_info(const GlobalFlags& flags, const InfoFlags& own);
int run_graph(const GlobalFlags& flags, const GraphFlags& own);
int run_check(const GlobalFlags& flags, const CheckFlags& own);

}  // namespace rondo::tools
