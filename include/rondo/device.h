// Vulkan devices: which there are, whether they can be used and why not, and the one that models run on.
//
// Lifetime: these are handles. A Device keeps its Instance, a Model and all that is made on it keep their Device, so they may
// be dropped in any order; whoever drops the last one that uses a device waits for what was submitted to it. A handle that
// was moved from is empty: calls on it return kFailedPrecondition, or an empty value where they return no Status. Instance and
// Device may be used from several threads at once; moving and dropping a handle is for one. The Vulkan loader is opened at
// the first Instance, privately: a host's own libvulkan or volk is not touched. Devices that belong to the caller are
// imported through <rondo/vulkan.h>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/export.h>
#include <rondo/log.h>
#include <rondo/status.h>

namespace rondo {

namespace runtime {
class Instance;
class Device;
struct DeviceCaps;
}  // namespace runtime

/// What a Vulkan device is and whether Rondo can use it.
struct DeviceInfo {
  std::uint32_t index = 0;
  std::string name;
  std::string driver;          ///< name and version as the driver tells them
  std::string type;            ///< "discrete", "integrated", "virtual", "cpu" or "other"
  std::string api_version;     ///< of Vulkan, "1.3.230"
  std::uint64_t memory_bytes = 0;  ///< size of the largest device-local heap
  std::uint32_t min_subgroup_size = 0;
  std::uint32_t max_subgroup_size = 0;
  std::vector<std::string> features;  ///< optional features that the device has and Rondo may use
  std::vector<std::string> matrices;  ///< "16x16x16", ...: rows, columns and depth of the products of f16 matrices with sums in f32 that it makes by an instruction
  std::vector<std::string> matrix_products;  ///< of all types that its driver lists, whose sums keep their type: "16x16x16 bf16 x bf16 + f32, subgroup", ..., at the end whose invocations make one together. Rondo uses those of `matrices`
  bool usable = false;
  std::string reason;          ///< why it can't be used, naming the limit; "" if it can
};

/// How to connect to the Vulkan loader.
struct InstanceOptions {
  bool validate = false;  ///< load VK_LAYER_KHRONOS_validation with synchronization validation; kNotFound if it isn't installed
  LogCallback log;        ///< may be empty
};

/// A connection to the Vulkan loader.
class RONDO_API Instance {
 public:
  /// Opens the loader and lists the devices. Errors: kNotFound (no Vulkan loader, no validation layer), kUnsupported.
  static Result<Instance> create(const InstanceOptions& options = {});
  Instance(Instance&&) noexcept;
  Instance& operator=(Instance&&) noexcept;
  /// Returns at once. What Vulkan knows of it ends with the last Device made on it.
  ~Instance();

  /// Every Vulkan device, usable or not, in the loader's order.
  std::span<const DeviceInfo> devices() const;
  /// The index of the device that `selector` names: "" the best usable one (discrete before integrated before virtual
  /// before CPU), a number its index, anything else a part of the name, upper and lower case alike.
  /// Errors: kNotFound (nothing matches, or no usable device), kInvalidArgument (two match), kUnsupported (it can't be used),
  /// kFailedPrecondition (an empty handle).
  Result<std::uint32_t> find_device(std::string_view selector) const;
  /// Messages of the validation layers so far, 0 without validation.
  std::uint64_t n_validation_messages() const;

  /// For Rondo's own use.
  runtime::Instance& internal() const { return *impl_; }
  /// The same with its ownership; null where the handle is empty.
  const std::shared_ptr<runtime::Instance>& shared() const { return impl_; }

 private:
  explicit Instance(std::shared_ptr<runtime::Instance> impl);
  std::shared_ptr<runtime::Instance> impl_;
};

/// What decisions may depend on, of a device that need not be there: its type, limits and features.
class RONDO_API DeviceProfile {
 public:
  /// Reads a profile from a JSON document: "name", "type" (as in DeviceInfo), the limits and "features", as in
  /// tools/rondo/profiles/baseline.json; "matrices" are shapes of cooperative matrices ("16x16x16"), if there
  /// are any, "sources" is for people. `what` names the document in messages.
  /// Errors: kCorruptData (no JSON, an unknown or mistyped field), kNotFound (a missing one), kUnsupported (a limit below
  /// what Rondo needs), naming the field.
  static Result<DeviceProfile> parse(std::string_view json, std::string_view what);
  DeviceProfile(DeviceProfile&&) noexcept;
  DeviceProfile& operator=(DeviceProfile&&) noexcept;
  ~DeviceProfile();

  const std::string& name() const;

  /// For Rondo's own use.
  const runtime::DeviceCaps& internal() const { return *caps_; }

 private:
  friend class Device;
  explicit DeviceProfile(std::unique_ptr<const runtime::DeviceCaps> caps);
  std::unique_ptr<const runtime::DeviceCaps> caps_;
};

/// How to create a device.
struct DeviceOptions {
  /// Pretend to be this device: limits and features are those that both have, the type is the profile's, so that choices
  /// made for it run here. Null: the device as it is. Read during create() only.
  const DeviceProfile* profile = nullptr;
};

/// A device with one queue, ready for models.
class RONDO_API Device {
 public:
  /// Creates a logical device. `selector` as in Instance::find_device. Measures the device for a millisecond or so.
  /// Errors: those of find_device, kFailedPrecondition (an empty handle), kUnsupported (a driver without an entry point that
  /// Vulkan 1.2 has), kOutOfMemory, kDeviceLost, kInternal (it does no work for two minutes).
  static Result<Device> create(const Instance& instance, std::string_view selector = {}, const DeviceOptions& options = {});
  Device(Device&&) noexcept;
  Device& operator=(Device&&) noexcept;
  /// Returns at once while a Model or Session uses the device; the last of them to go, or this, waits for what was submitted.
  ~Device();

  /// With a profile, "<device> as <profile>" is the name, and the rest is the device's.
  const DeviceInfo& info() const;

  /// Frees what dropped objects have left and the device is done with. True: nothing is left to free. Never blocks. Rondo has
  /// no thread to do so by itself: device memory of a dropped Session or Model is freed by the next call that reaches the
  /// driver (advance, wait, load_some, creating or dropping anything on this device), or by this one. Not needed where there
  /// will be such calls.
  bool collect();

  /// Pipelines compiled in an earlier run, before a model is loaded: `blob` is what pipeline_cache() gave then. Whether they
  /// are used; a blob from another device, driver or version of Rondo, or a damaged one, is not, with one line in the log.
  bool add_pipeline_cache(std::span<const std::byte> blob);
  /// The pipelines compiled so far, for the application to keep; empty where the driver keeps its own, or none.
  /// Errors: kOutOfMemory, kDeviceLost.
  Result<std::vector<std::byte>> pipeline_cache() const;
  /// 16 hexadecimal digits that differ between devices and driver versions, to name a stored cache by.
  std::string pipeline_cache_key() const;

  /// For Rondo's own use.
  runtime::Device& internal() const { return *impl_; }
  /// The same with its ownership; null where the handle is empty.
  const std::shared_ptr<runtime::Device>& shared() const { return impl_; }
  explicit Device(std::shared_ptr<runtime::Device> impl);

 private:
  std::shared_ptr<runtime::Device> impl_;
};

}  // namespace rondo
