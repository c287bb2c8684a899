// rondo eval: one forward pass of a model, all positions, or an operator graph; from and to safetensors files.
#include "tools/rondo/eval_graph.h"
#include "tools/rondo/eval_model.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

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
  const Status done = own.graph.empty() ? evaluate_model(flags, own, closed) : evaluate_graph(flags, own, closed);
  return !done.ok() ? report(done) : interrupted() ? static_cast<int>(kInterrupted) : closed;
}

}  // namespace rondo::tools
