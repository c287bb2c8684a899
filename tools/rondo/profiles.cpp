#include "tools/rondo/profiles.h"

#include <cctype>
#include <string_view>

#include "runtime/fmt.h"

namespace rondo::tools {

namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

struct NamedProfile {
  std::string_view name, json;
};

constexpr NamedProfile kProfiles[] = {
#include "device_profiles.inc"
};

}  // namespace

std::string check_profile(const std::string& name) {
  std::string known;
  for (const NamedProfile& profile : kProfiles) {
    if (profile.name == lower_case(name)) return "";
    known += fmt::format("{}{}", known.empty() ? "" : ", ", profile.name);
  }
  return fmt::format("'{}' is not a device profile; there are {}", name, known);
}

Result<std::optional<DeviceProfile>> find_profile(const std::string& name) {
  if (name.empty()) return std::optional<DeviceProfile>();
  for (const NamedProfile& profile : kProfiles) {
    if (profile.name != lower_case(name)) continue;
    RONDO_ASSIGN(DeviceProfile parsed, DeviceProfile::parse(profile.json, fmt::format("profile {}", name)));
    return std::optional<DeviceProfile>(std::move(parsed));
  }
  return Status(StatusCode::kNotFound, check_profile(name));
}

}  // namespace rondo::tools
