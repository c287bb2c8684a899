// rondo devices
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/rondo/command.h"

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
  fmt::print("   {}\n", d.usable ? "can be used" : "can't be used: " + d.reason);
}

int devices(const GlobalFlags& flags, bool json) {
  const Result<Instance> instance = open_instance(flags);
  if (!instance.ok()) return report(instance.status());
  if (json) {
    fmt::print("{}\n", as_json(instance->devices()));
  } else {
    for (const DeviceInfo& device : instance->devices()) print(device);
  }
  if (instance->devices().empty()) return report("Vulkan: there is no device; install a driver (Debian: mesa-vulkan-drivers) or check VK_ICD_FILENAMES");
  return kDone;
}

}  // namespace

void add_devices(CLI::App& app, GlobalFlags& flags, int& status) {
  CLI::App* command = app.add_subcommand("devices", "List Vulkan devices, and why each can or can't be used");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print one JSON document");
  add_global_flags(*command, flags);
  command->callback([&flags, &status, json] { status = devices(flags, *json); });
}

}  // namespace rondo::tools
