// What a Model is made of; shared by the Model and the Sessions on it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include <rondo/model.h>

#include "graph/lowering.h"
#include "models/checkpoint.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::models {

/// Indices of the buffers that a session's Programs name. Weights follow, then caches.
enum StepBuffer : std::uint32_t { kStateBuffer, kTokensBuffer, kMirrorBuffer, kConstantsBuffer, kActivationsBuffer, kLogitsBuffer, kFirstWeightBuffer };

/// Token capacities of the prefill recordings, smallest first.
constexpr std::int64_t kPrefillRows[] = {8, 64, 512};

struct LoadedModel {
  explicit LoadedModel(runtime::Device& on) : device(on), uploader(on) {}

  runtime::Device& device;
  ModelOptions options;
  std::unique_ptr<Checkpoint> checkpoint;
  Tokenizer tokenizer = Tokenizer(nullptr);
  ModelInfo info;
  std::vector<runtime::Buffer> weight_buffers;

  bool random_weights = false;  ///< made on the device, not read: see random_weights.h

  /// Loading: what is done of blocks, parts and rows, and the kernels still to be built.
  LoadProgress progress;
  runtime::Uploader uploader;
  std::size_t block = 0, part = 0;
  std::int64_t row = 0;
  std::vector<std::byte> file_rows;
  std::vector<float> vector_values;
  std::deque<runtime::Kernel> kernels_to_build;
  bool pipelines_created = false;  ///< by the executor, before they are dispatched one by one

  graph::Type kv_type() const { return options.kv_type == KvType::kF32 ? graph::Type::kF32 : graph::Type::kF16; }
  graph::LoweringOptions lowering_options() const;
};

/// The steps that every session records: all prefill capacities with and without sampling, and decode.
struct StepKind {
  std::int64_t rows;
  StepHead head;
};
std::vector<StepKind> step_kinds(std::int64_t n_ctx);

}  // namespace rondo::models
