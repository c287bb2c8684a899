// rondo devices
#include <cstdio>

#include <nlohmann/json.hpp>

#include "runtime/fmt.h"
#include "tools/rondo/subcommands.h"

namespace rondo::tools {

namespace {

std::string as_json(std::span<const DeviceInfo> devices) {
  nlohmann::json list = nlohmann::json::array();
  for (const DeviceInfo& d : devices) {
    list.push_back({{"index", d.index},
                    {"name", d.name},
                    {"driver", d.driver},
                    {"type", d.type},
                    {"api_version", d.api_version},
                    {"memory_bytes", d.memory_bytes},
                    {"subgroup_sizes", {d.min_subgroup_size, d.max_subgroup_size}},
                    {"features", d.features},
                    {"matrices", d.matrices},
                    {"matrix_products", d.matrix_products},
                    {"usable", d.usable},
                    {"reason", d.reason}});
  }
  return nlohmann::json{{"devices", list}}.dump();
}

void print(const DeviceInfo& d) {
  std::string features;
  for (const std::string& feature : d.features) features += (features.empty() ? "" : ", ") + feature;
  fmt::print("{}: {}\n", d.index, d.name);
  fmt::print("   {}, {}, Vulkan {}, {} MB\n", d.type, d.driver, d.api_version, d.memory_bytes >> 20);
  fmt::print("   subgroups of {} to {}; {}\n", d.min_subgroup_size, d.max_subgroup_size, features.empty() ? "no optional features" : features);
  if (!d.matrices.empty()) fmt::print("   products of f16 matrices of {}\n", fmt::join(d.matrices, ", "));
  fmt::print("   {}\n", d.usable ? "can be used" : "can't be used: " + d.reason);
}

}  // namespace

int run_devices(const GlobalFlags& flags, const DevicesFlags& own) {
  const Result<Instance> instance = open_instance(flags);
  if (!instance.ok()) return report(instance.status());
  if (own.json) {
    fmt::print("{}\n", as_json(instance->devices()));
  } else {
    for (const DeviceInfo& device : instance->devices()) print(device);
  }
  if (instance->devices().empty()) return report("Vulkan: there is no device; install a driver (Debian: mesa-vulkan-drivers) or check VK_ICD_FILENAMES");
  return kDone;
}

}  // namespace rondo::tools
