// What a self-test runs: the operators of a model's steps, one by one, cut to sizes that the reference can follow.
//
// A case has the types, columns, strides and attributes of the step's operator, so that the lowering chooses the same kernels
// for it, with the same specialization constants; fewer rows of tokens and of weights, and a context of its own. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "graph/graph.h"
#include "models/graph_run.h"
#include "models/memory_plan.h"
#include "models/network.h"

namespace rondo::models {

struct SelfTestCase {
  graph::Graph graph;                    ///< of one operator and the step state, or with linears before or behind it
  bool fused = false;                    ///< the latter: a fused graph, in which neighbours compute norms, or bytes of activations, for each other
  std::uint32_t cores = 0;               ///< for which the case has the step's kernels though it has fewer outputs; 0: the device's
  bool joins_splits = true;              ///< of attention, as in LoweringOptions
  std::uint32_t experts = 0;             ///< of the step, of which the case has a few
  std::string label;                     ///< of its dispatches: what goes into quarantine if it fails
  std::vector<runtime::Kernel> kernels;  ///< that it runs
  std::string key;                       ///< equal for cases that run the same kernels with the same parameters on the same kind of input
  StorageContents contents;              ///< of all storages but weights of the network, constants and outputs; of other weights the rows
  std::int64_t rows = 0;                 ///< tokens of the step
  std::int32_t count = 0;                ///< of which so many are valid; the others are left alone
  /// Rows of a block of the network, for a weight.
  struct WeightRows {
    graph::StorageId storage = graph::kNone;
    std::size_t block = 0;
    std::vector<WeightSlice> runs;  ///< that the storage has, one after the other; of a vector all elements
  };
  std::vector<WeightRows> weights;
  /// How far elements of a storage that the operator writes may be off, as a normalised mean squared error; absent: not at all.
  std::map<graph::StorageId, double> bounds;
};

/// How a case of a model with these options is lowered.
GraphRunOptions case_options(const PlanOptions& options, const SelfTestCase& test);

/// The cases of these steps as they are lowered for a device, each key once. Every kernel of `plan`, which was made with the
/// same options, is in one of them. Errors: kInternal (one is not), those of the lowering.
Result<std::vector<SelfTestCase>> self_test_cases(const Network& network, const runtime::DeviceCaps& caps, const SessionPlan& plan, std::span<const StepKind> kinds,
                                                  const PlanOptions& options);

}  // namespace rondo::models
