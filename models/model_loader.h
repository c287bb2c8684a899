// Loads a model piece by piece: creates its pipelines, reads its weights and repacks them into device memory.
//
// Owns the cursor and the staging memory. One thread at a time. Nothing blocks for longer than a piece of work takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include <rondo/model.h>
#include <rondo/status.h>

#include "models/loaded_model.h"
#include "runtime/transfer.h"

namespace rondo::models {

class ModelLoader {
 public:
  explicit ModelLoader(std::shared_ptr<LoadedModel> model);

  /// For measurements: weights are made on the device instead of read (models/random_weights.h). Before anything is loaded.
  void use_random_weights() { random_weights_ = true; }

  std::size_t n_kernels() const { return kernels_.size(); }
  /// What comes next, or is waited for, is the driver's compiler: it works when pipelines are created, or at their first dispatch.
  bool is_compiling() const;

  /// See Model::load_some; the budget is added to the clock's now.
  Result<LoadProgress> load_some(std::chrono::nanoseconds budget);

  const LoadedModel& model() const { return *model_; }
  /// The model, to be changed while nobody uses it (models/tuner.h). Errors: kFailedPrecondition (not loaded).
  Result<std::shared_ptr<LoadedModel>> tunable() const;
  /// The model once it is loaded. Errors: kFailedPrecondition.
  Result<std::shared_ptr<const LoadedModel>> loaded() const;

 private:
  Status load_piece();
  Status upload_rows();
  Status upload_vector();
  Status finish_block();
  Status create_kernels();
  Status build_kernel(const runtime::Kernel& kernel);
  /// A pipeline could not be made: plans again without what it is called, for those that are left. Errors: `why`, if nothing can take
  /// its place or the failure is not the kernel's.
  Status replace_kernel(const runtime::Kernel& kernel, const Status& why);

  std::shared_ptr<LoadedModel> model_;  ///< nobody else has it before it is loaded
  LoadProgress progress_;
  bool random_weights_ = false;

  std::vector<runtime::Kernel> kernels_;
  std::size_t next_kernel_ = 0;
  bool pipelines_created_ = false;   ///< by the executor, before they are dispatched one by one
  std::uint64_t kernels_built_ = 0;  ///< timeline value of the last of those dispatches

  runtime::Uploader uploader_;
  std::size_t block_ = 0, part_ = 0;
  std::int64_t row_ = 0;
  std::vector<std::byte> file_rows_;
};

}  // namespace rondo::models
