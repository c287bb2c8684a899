// hello MODEL PROMPT: continues a text, from device to streamed output.
#include <cstdio>

#include <rondo/session.h>

namespace {

int fail(const rondo::Status& status) {
  std::fprintf(stderr, "hello: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: hello MODEL PROMPT\n"), 2;
  rondo::Result<rondo::ByteSource> file = rondo::open_file(argv[1]);
  if (!file.ok()) return fail(file.status());
  rondo::Result<rondo::Instance> instance = rondo::Instance::create();
  if (!instance.ok()) return fail(instance.status());
  rondo::Result<rondo::Device> device = rondo::Device::create(*instance);
  if (!device.ok()) return fail(device.status());
  rondo::Result<rondo::Model> model = rondo::Model::create(*device, *file);
  if (!model.ok()) return fail(model.status());
  if (rondo::Status loaded = model->wait_loaded(); !loaded.ok()) return fail(loaded);
  rondo::Result<rondo::Session> session = rondo::Session::create(*model);
  if (!session.ok()) return fail(session.status());

  const auto print = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0;
  };
  print(argv[2]);
  rondo::Result<rondo::Generation> generation = session->generate(std::string_view(argv[2]), 64, print);
  if (!generation.ok()) return fail(generation.status());
  print("\n");
}
