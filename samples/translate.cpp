// translate MODEL TEXT...: each text as an encoder-decoder translates it, with 4 beams.
#include <chrono>
#include <cstdio>

#include <rondo/translator.h>

namespace {

rondo::Status translate(const rondo::Model& model, int n, char** texts) {
  rondo::TranslatorOptions options;
  options.beams = 4;
  RONDO_ASSIGN(rondo::Translator translator, rondo::Translator::create(model, options));
  for (int i = 0; i < n; ++i) RONDO_TRY(translator.append(texts[i]));
  rondo::Translation translation;
  while (!translator.idle()) {
    RONDO_TRY(translator.advance());
    const rondo::Status waited = translator.wait(std::chrono::milliseconds(16));  // or draw a frame
    if (!waited.ok() && waited.code() != rondo::StatusCode::kTimeout) return waited;
    for (;;) {
      RONDO_ASSIGN(const bool taken, translator.take(translation));
      if (!taken) break;
      std::printf("%s\n", translation.text.c_str());
    }
  }
  return {};
}

int fail(const rondo::Status& status) {
  std::fprintf(stderr, "translate: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: translate MODEL TEXT...\n"), 2;
  rondo::Result<rondo::ByteSource> source = rondo::open_model(argv[1]);
  if (!source.ok()) return fail(source.status());
  rondo::Result<rondo::Instance> instance = rondo::Instance::create();
  if (!instance.ok()) return fail(instance.status());
  rondo::Result<rondo::Device> device = rondo::Device::create(*instance);
  if (!device.ok()) return fail(device.status());
  rondo::Result<rondo::Model> model = rondo::Model::create(*device, *source);
  if (!model.ok()) return fail(model.status());
  if (rondo::Status loaded = model->wait_loaded(); !loaded.ok()) return fail(loaded);
  const rondo::Status done = translate(*model, argc - 2, argv + 2);
  return done.ok() ? 0 : fail(done);
}
