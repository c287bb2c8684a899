// The buffers of a plan's slots: a model's weights, and what a session or an encoder has of its own.
//
// Not thread-safe; dropping it while the device works is safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <rondo/status.h>

#include "models/loaded_model.h"
#include "runtime/memory.h"

namespace rondo::models {

class PlanBuffers {
 public:
  /// Makes every slot that has a size, and fills the plan's tables. Errors: kOutOfMemory (with the plan), kDeviceLost.
  static Result<PlanBuffers> create(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan);

  /// Makes a slot that had no size. Errors: as create.
  Status create_slot(std::uint32_t index, std::uint64_t size_bytes);

  /// A slot of the plan's own.
  const runtime::Buffer& slot(std::uint32_t index) const { return buffers_[index - model_->weight_buffers.size()]; }
  /// The slots from this one on.
  std::span<const runtime::Buffer> slots_from(std::uint32_t index) const { return std::span(buffers_).subspan(index - model_->weight_buffers.size()); }
  /// All slots, the weights' first; buffers that are not made are empty.
  std::vector<const runtime::Buffer*> table() const;

 private:
  PlanBuffers(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan) : model_(std::move(model)), plan_(std::move(plan)) {}
  Status upload_constants();

  std::shared_ptr<const LoadedModel> model_;
  std::shared_ptr<const SessionPlan> plan_;
  std::vector<runtime::Buffer> buffers_;  ///< the plan's slots behind the weights'
};

}  // namespace rondo::models
