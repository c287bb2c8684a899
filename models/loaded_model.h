// What a Model is made of, decided before anything is loaded and unchanged once it is; shared by the Model and its Sessions.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <rondo/model.h>

#include "models/checkpoint.h"
#include "models/memory_plan.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace rondo::models {

struct LoadedModel {
  explicit LoadedModel(std::shared_ptr<runtime::Device> on) : device_owner(std::move(on)), device(*device_owner) {}

  std::shared_ptr<runtime::Device> device_owner;  ///< first, so that all else goes before it
  runtime::Device& device;
  PlanOptions options;
  std::unique_ptr<const Checkpoint> checkpoint;
  Tokenizer tokenizer = Tokenizer(nullptr);
  ModelInfo info;
  WeightPlan weights;
  std::vector<runtime::Buffer> weight_buffers;
  /// Of a session with the default context, or the largest that the device holds: its kernels are those of every session, and
  /// sessions of this context are made from it.
  std::shared_ptr<const SessionPlan> plan;

  const Network& network() const { return checkpoint->network; }
};

/// The plan of a session with the default context or, where the device can't hold its cache, with the largest half, quarter,
/// ... that it can: sessions ask for what fits.
Result<std::shared_ptr<const SessionPlan>> plan_default_session(const LoadedModel& model);

/// Reads the checkpoint's header, checks it, plans and allocates. Errors: those of Model::create.
Result<std::shared_ptr<LoadedModel>> plan_model(std::shared_ptr<runtime::Device> device, ByteSource source, const ModelOptions& options);

}  // namespace rondo::models
