// What a Model is made of; shared by the Model and the Sessions on it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <rondo/model.h>

#include "models/checkpoint.h"
#include "models/memory_plan.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::models {

struct LoadedModel {
  explicit LoadedModel(runtime::Device& on) : device(on), uploader(on) {}

  runtime::Device& device;
  ModelOptions options;
  std::unique_ptr<Checkpoint> checkpoint;
  Tokenizer tokenizer = Tokenizer(nullptr);
  ModelInfo info;
  WeightPlan weights;
  std::vector<runtime::Buffer> weight_buffers;

  bool random_weights = false;  ///< made on the device, not read: see random_weights.h

  /// Loading: the kernels still to be built, and what is done of blocks, parts and rows.
  LoadProgress progress;
  runtime::Uploader uploader;
  std::size_t block = 0, part = 0;
  std::int64_t row = 0;
  std::vector<std::byte> file_rows;
  std::vector<float> vector_values;
  std::deque<runtime::Kernel> kernels_to_build;
  bool pipelines_created = false;  ///< by the executor, before they are dispatched one by one
  std::uint64_t kernels_built = 0;  ///< timeline value of the last of those dispatches

  graph::LoweringOptions lowering_options() const { return lowering_options_of(options); }
};

}  // namespace rondo::models
