#include "models/plan_buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/transfer.h"

namespace rondo::models {

Result<PlanBuffers> PlanBuffers::create(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan) {
  PlanBuffers buffers(std::move(model), std::move(plan));
  const std::vector<Slot>& slots = buffers.plan_->memory.slots;
  const auto first = static_cast<std::uint32_t>(buffers.model_->weight_buffers.size());
  buffers.buffers_.resize(slots.size() - first);
  for (std::uint32_t i = first; i < slots.size(); ++i) {
    if (slots[i].size_bytes) RONDO_TRY(buffers.create_slot(i, slots[i].size_bytes));
  }
  RONDO_TRY(buffers.upload_constants());
  return buffers;
}

Status PlanBuffers::create_slot(std::uint32_t index, std::uint64_t size_bytes) {
  const Slot& planned = plan_->memory.slots[index];
  Result<runtime::Buffer> made = runtime::Buffer::create(model_->device, size_bytes, planned.intent, planned.name.c_str());
  if (!made.ok()) return made.status().with_prefix(plan_->memory.summary());
  buffers_[index - model_->weight_buffers.size()] = std::move(made).value();
  return {};
}

Status PlanBuffers::upload_constants() {
  if (plan_->constants.empty()) return {};
  const runtime::Buffer& buffer = slot(plan_->constant_slot);
  runtime::Uploader uploader(model_->device);
  for (const SessionPlan::Constant& constant : plan_->constants) {
    for (std::uint64_t at = 0; at < constant.content.size(); at += uploader.max_write_bytes()) {
      const std::uint64_t n = std::min<std::uint64_t>(uploader.max_write_bytes(), constant.content.size() - at);
      RONDO_TRY(uploader.reserve(buffer, n));
      std::memcpy(uploader.target(buffer, constant.place.offset_bytes + at, n), constant.content.data() + at, n);
    }
  }
  RONDO_TRY(buffer.flush(0, buffer.size_bytes()));
  return uploader.submit();
}

std::vector<const runtime::Buffer*> PlanBuffers::table() const {
  std::vector<const runtime::Buffer*> table;
  for (const runtime::Buffer& buffer : model_->weight_buffers) table.push_back(&buffer);
  for (const runtime::Buffer& buffer : buffers_) table.push_back(&buffer);
  return table;
}

}  // namespace rondo::models
