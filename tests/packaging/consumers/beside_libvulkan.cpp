// A program that links libvulkan and uses it before, during and after Rondo's own Vulkan.
#include <vulkan/vulkan.h>

#include "generate_some.h"
#include "host_vulkan.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  HostVulkan host;
  if (!host.create_device() || !host.works()) return std::puts("the host's Vulkan does not work"), 1;
  if (const int failed = exit_status(generate_on_own_device(argv[1]))) return failed;
  if (!host.works()) return std::puts("the host's Vulkan no longer works"), 1;
  HostVulkan another;
  return another.create_device() && another.works() ? 0 : 1;
}
