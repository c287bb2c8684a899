// What every consumer does with Rondo: lists the devices, loads a model, and continues a text by a few tokens.
#pragma once

#include <chrono>
#include <cstdio>

#include <rondo/session.h>
#include <rondo/version.h>

/// Continues a text on `device` and prints it, or says what failed.
inline rondo::Status generate_some(rondo::Device& device, const char* model_path) {
  RONDO_ASSIGN(rondo::ByteSource file, rondo::open_file(model_path));
  RONDO_ASSIGN(rondo::Model model, rondo::Model::create(device, file));
  rondo::LoadProgress progress;
  while (!progress.finished) {
    RONDO_ASSIGN(progress, model.load_some(std::chrono::milliseconds(5)));
  }
  RONDO_ASSIGN(rondo::Session session, rondo::Session::create(model));
  RONDO_ASSIGN(const rondo::Generation generation, session.generate(std::string_view("And Jesus answered"), 8));
  if (generation.tokens.size() != 8) return rondo::Status(rondo::StatusCode::kInternal, "generate: tokens are missing");
  std::printf("on %s: %s\n", device.info().name.c_str(), generation.text.c_str());
  return {};
}

/// The same with an Instance and a Device of Rondo's own.
inline rondo::Status generate_on_own_device(const char* model_path) {
  RONDO_ASSIGN(rondo::Instance instance, rondo::Instance::create());
  for (const rondo::DeviceInfo& info : instance.devices()) {
    std::printf("device %u: %s, %s\n", info.index, info.name.c_str(), info.usable ? "usable" : info.reason.c_str());
  }
  RONDO_ASSIGN(rondo::Device device, rondo::Device::create(instance));
  return generate_some(device, model_path);
}

/// Prints a failure; the exit status of main.
inline int exit_status(const rondo::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "failed: %s (%s:%d)\n", status.message().c_str(), status.file(), status.line());
  return status.ok() ? 0 : 1;
}
