// GLSL compiled by the test, and run in the simulator.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/simulator/simulate.h"

namespace rondo::simulator_test {

/// SPIR-V with lines; empty, with a failure, where glslang, `compiler`, refuses it.
inline std::vector<std::uint32_t> compile(const std::string& source, const std::string& compiler = RONDO_GLSLANG " --target-env vulkan1.2") {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("rondo-simulator-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string from = folder / "kernel.comp", to = folder / "kernel.spv";
  std::ofstream(from) << source;
  const std::string command = compiler + " --quiet -V -g -o " + to + " " + from;
  if (std::system(command.c_str()) != 0) {
    ADD_FAILURE() << "glslang refuses\n" << source;
    return {};
  }
  std::ifstream in(to, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::uint32_t> words(bytes.size() / 4);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(words.data()));
  std::filesystem::remove_all(folder);
  return words;
}

inline simulator::Buffer buffer_of_words(std::size_t n, bool written, std::uint32_t step = 1) {
  simulator::Buffer buffer;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t word = i * step;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&word);
    buffer.bytes.insert(buffer.bytes.end(), bytes, bytes + 4);
  }
  if (!written) buffer.written.assign(buffer.bytes.size(), 0);
  return buffer;
}

/// Each buffer is a binding, in order.
inline simulator::Launch launch_of(std::span<const simulator::Buffer> buffers, std::uint32_t subgroup_size, std::array<std::uint32_t, 3> grid, std::span<const std::byte> push = {}) {
  simulator::Launch launch;
  launch.subgroup_size = subgroup_size;
  launch.grid = grid;
  launch.push = push;
  for (std::uint32_t i = 0; i < buffers.size(); ++i) launch.bindings.push_back({i, 0, buffers[i].bytes.size()});
  return launch;
}

inline std::string all_findings(const simulator::Report& report) {
  std::string all;
  for (const simulator::Finding& finding : report.findings) all += std::string(name_of(finding.kind)) + ": " + finding.text + "\n";
  return all;
}

}  // namespace rondo::simulator_test
