// The device profiles that --as names; they are part of the command.
#pragma once

#include <optional>
#include <string>

#include <rondo/device.h>

namespace rondo::tools {

/// CLI11's check of --as: "" if there is a profile of this name, in capitals or not, else what profiles there are.
std::string check_profile(const std::string& name);

/// The profile of this name; nothing if `name` is empty.
Result<std::optional<DeviceProfile>> find_profile(const std::string& name);

}  // namespace rondo::tools
