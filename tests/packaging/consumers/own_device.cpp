// A program that has a VkDevice and a queue, and lets Rondo use them too.
#include <mutex>

#include <vulkan/vulkan.h>

#include <rondo/vulkan.h>

#include "generate_some.h"
#include "host_vulkan.h"

namespace {

rondo::Status generate_on(HostVulkan& host, const char* model_path) {
  std::mutex queue_mutex;  // the host holds it around its own submissions
  rondo::ImportedDevice imported;
  imported.instance = host.instance;
  imported.physical_device = host.physical_device;
  imported.device = host.device;
  imported.queue_family = host.queue_family;
  imported.queue = host.queue;
  imported.api_version = VK_API_VERSION_1_2;     // as in the host's VkApplicationInfo
  imported.enabled_features = &host.features;    // the pNext of the host's VkDeviceCreateInfo
  imported.lock_queue = [&] { queue_mutex.lock(); };
  imported.unlock_queue = [&] { queue_mutex.unlock(); };
  RONDO_ASSIGN(rondo::Device device, rondo::import_device(imported));
  return generate_some(device, model_path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  HostVulkan host;
  if (!host.create_device()) return std::puts("the host's Vulkan does not work"), 1;
  if (const int failed = exit_status(generate_on(host, argv[1]))) return failed;
  return host.works() ? 0 : 1;
}
