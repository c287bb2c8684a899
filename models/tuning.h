// What measurements say of kernels, as a text that outlives the process.
//
// A JSON document: {"rondo_tuning": 1, "device": KEY, "rondo": HASH, "choices": {CHOICE: KERNEL, ...}}, where KEY is
// Device::pipeline_cache_key(), HASH that of the kernels that were measured, and CHOICE a KernelChoice::key. Only choices that differ from
// what is chosen without measurements are in it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "runtime/device.h"

namespace rondo::models {

/// KernelChoice::key -> kernel.
using TunedKernels = std::map<std::string, std::string, std::less<>>;

/// What `text` says for this device; nothing of an empty one, or of another device, driver or version of Rondo, or of one that is no such
/// text, or names a kernel or operator that there is not, for which there is a line in the device's log.
TunedKernels tuned_kernels(runtime::Device& device, std::string_view text);

struct SessionPlan;

/// A line in the device's log where steps have other kernels than they were tuned for: what can't run here, or is wrong.
void log_unfit_choices(const runtime::Device& device, const TunedKernels& tuned, const SessionPlan& plan);

/// Whether `text` is a tuning, of whatever device.
bool is_tuning(std::string_view text);

std::string write_tuning(runtime::Device& device, const TunedKernels& kernels);

}  // namespace rondo::models
