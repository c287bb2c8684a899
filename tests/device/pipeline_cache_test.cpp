// The blob of compiled pipelines: used where it was made, ignored with a reason anywhere else. Lavapipe's cache is empty, so
// what needs content runs on RADV's null device, which compiles for real and has no hardware. And the command's file of it.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "models/loaded_model.h"
#include "runtime/instance.h"
#include "runtime/kernel.h"
#include "runtime/pipeline_cache.h"
#include "tests/device/session_harness.h"
#include "tools/rondo/pipeline_cache_file.h"

namespace rondo::tests::pipeline_cache_test {
namespace {

/// An environment variable for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, had_ = true;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (had_) setenv(name_, before_.c_str(), 1);
    else unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

/// The kernels of every step of the demo model, as RADV's device would run them.
std::vector<runtime::Kernel> kernels_of_demo(const runtime::DeviceCaps& caps) {
  std::vector<runtime::Kernel> kernels;
  const auto checkpoint = models::open_checkpoint(open_file(demo_path()).value());
  EXPECT_TRUE(checkpoint.ok());
  const models::Checkpoint& opened = **checkpoint;
  const models::Network& network = opened.network;
  models::StepPlaces places;
  places.n_ctx = 256;
  for (const models::CacheSpec& spec : network.caches) places.caches.push_back({models::cache_positions(spec, places.n_ctx, 0), {}, {}});
  for (const models::StepKind& kind : models::step_kinds(network, caps, places.n_ctx)) {
    graph::Graph step = network.build(kind.role, kind.rows, places);
    const auto lowered = graph::lower(step, caps, {});
    EXPECT_TRUE(lowered.ok()) << lowered.status().message();
    for (const runtime::Kernel& kernel : lowered->program.kernels) {
      if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
    }
  }
  return kernels;
}

class RadvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::radv_manifest().empty()) GTEST_SKIP() << "RADV's ICD manifest (radeon_icd*.json) is not installed";
    InstanceOptions options;
    options.log = [this](LogLevel level, std::string_view message) {
      if (level <= LogLevel::kWarn) log_ += std::string(message) + "\n";
    };
    auto instance = Instance::create(options);
    ASSERT_TRUE(instance.ok()) << instance.status().message();
    instance_.emplace(std::move(instance).value());
    if (instance_->devices().empty()) GTEST_SKIP() << "this RADV has no null device";
  }
  Device make_device() {
    auto device = runtime::Device::create(instance_->shared(), 0);
    EXPECT_TRUE(device.ok()) << device.status().message();
    return Device(std::move(device).value());
  }

  Environment family_{"RADV_FORCE_FAMILY", "NAVI21"}, manifest_{"VK_ICD_FILENAMES", testing::radv_manifest()}, drivers_{"VK_DRIVER_FILES", testing::radv_manifest()},
      no_disk_cache_{"MESA_SHADER_CACHE_DISABLE", "true"};
  std::string log_;
  std::optional<Instance> instance_;
};

double create_all(Device& device, const std::vector<runtime::Kernel>& kernels, const Executor& executor = {}) {
  const auto start = std::chrono::steady_clock::now();
  const Status created = device.internal().kernels().create_all(kernels, executor);
  EXPECT_TRUE(created.ok()) << created.message();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(RadvTest, ABlobSavesTheCompilation) {
  std::vector<std::byte> blob;
  std::vector<runtime::Kernel> kernels;
  double cold_s = 0;
  std::string key;
  {
    Device device = make_device();
    kernels = kernels_of_demo(device.internal().caps());
    ASSERT_GE(kernels.size(), 8u);
    EXPECT_TRUE(device.pipeline_cache().value().empty()) << "nothing is compiled yet";
    cold_s = create_all(device, kernels);
    blob = device.pipeline_cache().value();
    key = device.pipeline_cache_key();
  }
  Device device = make_device();
  EXPECT_EQ(device.pipeline_cache_key(), key);
  EXPECT_TRUE(device.add_pipeline_cache(blob)) << log_;
  const double warm_s = create_all(device, kernels);
  std::printf("%zu pipelines: %.1f ms compiled, %.1f ms from a blob of %zu bytes\n", kernels.size(), 1e3 * cold_s, 1e3 * warm_s, blob.size());
  EXPECT_GT(blob.size(), 1000 * kernels.size()) << "machine code of every kernel";
  EXPECT_LE(device.pipeline_cache().value().size(), blob.size() + blob.size() / 4) << "what was in the blob was not compiled again";
  EXPECT_EQ(log_, "");
}

TEST_F(RadvTest, AnExecutorCompilesOnTheCallersThreads) {
  Device device = make_device();
  const std::vector<runtime::Kernel> kernels = kernels_of_demo(device.internal().caps());
  std::size_t n_jobs = 0;
  (void)create_all(device, kernels, [&](std::size_t n, const std::function<void(std::size_t)>& job) {
    n_jobs = n;
    std::jthread odd([n, &job] {
      for (std::size_t i = 1; i < n; i += 2) job(i);
    });
    for (std::size_t i = 0; i < n; i += 2) job(i);
  });
  EXPECT_EQ(n_jobs, kernels.size());
  EXPECT_EQ(device.internal().kernels().n_pipelines(), kernels.size());
}

TEST_F(RadvTest, WhatIsNotItsOwnIsIgnoredWithOneLine) {
  Device device = make_device();
  const std::vector<runtime::Kernel> kernels = kernels_of_demo(device.internal().caps());
  (void)create_all(device, {kernels[0]});
  const std::vector<std::byte> blob = device.pipeline_cache().value();
  ASSERT_GT(blob.size(), 64u);
  const auto refused = [&](const std::vector<std::byte>& bytes, const char* reason) {
    log_.clear();
    EXPECT_FALSE(device.add_pipeline_cache(bytes));
    EXPECT_EQ(std::count(log_.begin(), log_.end(), '\n'), 1) << log_;
    EXPECT_NE(log_.find(reason), std::string::npos) << log_;
  };
  refused({}, "too short");
  for (const std::size_t size : {std::size_t{1}, std::size_t{39}, std::size_t{40}, blob.size() / 2, blob.size() - 1}) {
    refused(std::vector<std::byte>(blob.begin(), blob.begin() + static_cast<std::ptrdiff_t>(size)), size < 40 ? "too short" : "bytes of pipelines but says");
  }
  for (std::size_t at = 0; at < blob.size(); at += at < 80 ? 1 : 997) {
    std::vector<std::byte> damaged = blob;
    damaged[at] ^= std::byte{0x40};
    refused(damaged, at < 8 ? "no pipeline cache" : at < 16 ? "another device" : at < 24 ? "other kernels" : at < 32 ? "says" : "damaged");
  }
  std::vector<std::byte> longer = blob;
  longer.push_back(std::byte{0});
  refused(longer, "says");
  log_.clear();
  EXPECT_TRUE(device.add_pipeline_cache(blob));
  EXPECT_EQ(log_, "");
}

/// No file may grow beyond `n` bytes while it lives: the write that would fails in its middle, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t n) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{n, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

/// The command's file in a folder of its own, and a device that has two pipelines to write there.
class PipelineCacheFileTest : public RadvTest {
 protected:
  void SetUp() override {
    RadvTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::string name = (std::filesystem::temp_directory_path() / "rondo-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    device_.emplace(make_device());
    kernels_ = kernels_of_demo(device_->internal().caps());
    (void)create_all(*device_, {kernels_[0]});
    old_ = save_to(path("old.bin"));
    std::filesystem::remove(path("old.bin"));
    (void)create_all(*device_, {kernels_[1]});
    ASSERT_GT(device_->pipeline_cache().value().size(), old_.size());
    ASSERT_GT(old_.size(), kLimit);
  }
  void TearDown() override {
    std::error_code error;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
  }
  std::string path(const char* name) const { return folder_ / name; }
  std::string save_to(const std::string& file) {
    tools::PipelineCacheFile(*device_, file).save();
    return std::filesystem::exists(file) ? testing::read_whole_file(file) : "";
  }
  void write(const std::string& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }
  std::size_t n_files() const { return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }

  /// Loads and saves as a run of the command does. Returns its lines: of stderr, and of the log, which goes there too.
  std::string lines_of_run(const std::string& file, rlim_t limit = RLIM_INFINITY) {
    log_.clear();
    ::testing::internal::CaptureStderr();
    {
      const FileSizeLimit limited(limit);
      tools::PipelineCacheFile cache(*device_, file);
      cache.load();
      cache.save();
    }
    return ::testing::internal::GetCapturedStderr() + log_;
  }
  static void expect_one_line(const std::string& lines, const std::string& reason) {
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
    EXPECT_NE(lines.find(reason), std::string::npos) << lines;
  }

  static constexpr std::size_t kLimit = 2048;
  std::filesystem::path folder_;
  std::optional<Device> device_;
  std::vector<runtime::Kernel> kernels_;
  std::string old_;  ///< a good file with fewer pipelines
};

TEST_F(PipelineCacheFileTest, GrowsByWhatWasCompiledSince) {
  write(path("a.bin"), old_);
  EXPECT_EQ(lines_of_run(path("a.bin")), "");
  const std::vector<std::byte> now = device_->pipeline_cache().value();
  EXPECT_GT(testing::read_whole_file(path("a.bin")).size(), old_.size());
  EXPECT_EQ(testing::read_whole_file(path("a.bin")).size(), now.size());
  EXPECT_EQ(lines_of_run(path("new/folder/b.bin")), "");
  EXPECT_EQ(testing::read_whole_file(path("new/folder/b.bin")).size(), now.size());
  EXPECT_EQ(n_files(), 2u);
}

TEST_F(PipelineCacheFileTest, AFullDiskLeavesTheOldFileAndNothingElse) {
  write(path("a.bin"), old_);
  expect_one_line(lines_of_run(path("a.bin"), kLimit), "a.bin can't be written: File too large");
  EXPECT_EQ(testing::read_whole_file(path("a.bin")), old_);
  expect_one_line(lines_of_run(path("b.bin"), kLimit), "b.bin can't be written: File too large");
  EXPECT_FALSE(std::filesystem::exists(path("b.bin")));
  EXPECT_EQ(n_files(), 1u);
  EXPECT_EQ(lines_of_run(path("a.bin")), "") << "the old file is still good";
}

TEST_F(PipelineCacheFileTest, PlacesWithoutRoomForAFile) {
  write(path("file"), "x");
  expect_one_line(lines_of_run(path("file") + "/below.bin"), "can't be written: Not a directory");
  EXPECT_EQ(testing::read_whole_file(path("file")), "x");
  expect_one_line(lines_of_run("/proc/self/pipelines.bin"), "/proc/self/pipelines.bin can't be written: ");  // for root too
  std::filesystem::create_directory(path("read-only"));
  std::filesystem::permissions(path("read-only"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  if (access(path("read-only").c_str(), W_OK) != 0) expect_one_line(lines_of_run(path("read-only") + "/a.bin"), "can't be written: Permission denied");
  EXPECT_EQ(n_files(), 2u);
}

TEST_F(PipelineCacheFileTest, AFolderIsNoFile) {
  std::filesystem::create_directories(path("folder/within"));
  expect_one_line(lines_of_run(path("folder")), "folder: is a directory");
  ::testing::internal::CaptureStderr();
  tools::PipelineCacheFile(*device_, path("folder")).save();  // the new file is whole, but can't take the name
  expect_one_line(::testing::internal::GetCapturedStderr(), "folder can't be written: Is a directory");
  EXPECT_TRUE(std::filesystem::is_directory(path("folder/within")));
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(PipelineCacheFileTest, TheUsersOtherFilesAreLeftAlone) {
  const std::string text(5000, 'x');
  write(path("model.gguf"), text);
  expect_one_line(lines_of_run(path("model.gguf")), "no pipeline cache");
  EXPECT_EQ(testing::read_whole_file(path("model.gguf")), text);
  std::filesystem::create_symlink("/dev/null", path("device"));
  expect_one_line(lines_of_run(path("device")), "is a device");
  EXPECT_TRUE(std::filesystem::is_symlink(path("device")));
  EXPECT_EQ(n_files(), 2u);
}

/// What is broken or from other kernels is written anew, and so is an empty file.
TEST_F(PipelineCacheFileTest, WhatIsOutdatedIsReplaced) {
  std::string outdated = old_;
  outdated[20] ^= 1;
  write(path("a.bin"), outdated);
  expect_one_line(lines_of_run(path("a.bin")), "other kernels");
  EXPECT_EQ(lines_of_run(path("a.bin")), "");
  write(path("b.bin"), "");
  expect_one_line(lines_of_run(path("b.bin")), "too short");
  EXPECT_EQ(lines_of_run(path("b.bin")), "");
  const Environment home("XDG_CACHE_HOME", folder_.string());
  const std::string named_by_device = path("rondo") + "/pipelines-" + device_->pipeline_cache_key() + ".bin";
  std::filesystem::create_directory(path("rondo"));
  write(named_by_device, std::string(100, '\0'));
  expect_one_line(lines_of_run(""), "no pipeline cache");
  EXPECT_EQ(lines_of_run(""), "");
  EXPECT_EQ(testing::read_whole_file(named_by_device).size(), device_->pipeline_cache().value().size());
}

/// A driver that keeps nothing in its cache gives an application nothing to store.
TEST(PipelineCacheTest, LavapipeHasNothingToKeep) {
  if (test_device().info().name.find("llvmpipe") == std::string::npos) GTEST_SKIP() << "not lavapipe";
  const Model model = load_model(tiny_path());
  const auto blob = test_device().pipeline_cache();
  ASSERT_TRUE(blob.ok()) << blob.status().message();
  EXPECT_TRUE(blob->empty());
  EXPECT_EQ(test_device().pipeline_cache_key().size(), 16u);
}

}  // namespace
}  // namespace rondo::tests::pipeline_cache_test
