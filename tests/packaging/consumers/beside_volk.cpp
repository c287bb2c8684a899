// A program that compiles volk itself: its globals stay its own.
#include <volk.h>

#include "generate_some.h"
#include "host_vulkan.h"

int main(int argc, char** argv) {
  if (argc != 2 || volkInitialize() != VK_SUCCESS) return 2;
  HostVulkan host;
  volkLoadInstance(host.instance);
  if (!host.create_device()) return std::puts("the host's Vulkan does not work"), 1;
  volkLoadDevice(host.device);
  const auto submit = vkQueueSubmit;
  const auto create_instance = vkCreateInstance;
  if (!host.works()) return std::puts("the host's queue does not work"), 1;
  if (const int failed = exit_status(generate_on_own_device(argv[1]))) return failed;
  const bool untouched = vkQueueSubmit == submit && vkCreateInstance == create_instance &&
                         volkGetLoadedInstance() == host.instance && volkGetLoadedDevice() == host.device;
  return untouched && host.works() ? 0 : 1;
}
