// compare_texts MODEL TEXT TEXT...: how alike the first text and each of the others are, by the cosine of their vectors.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include <rondo/encoder.h>

namespace {

/// The vectors of all texts, without blocking for longer than a frame at a time.
rondo::Result<std::vector<std::vector<float>>> encode(const rondo::Model& model, std::span<char* const> texts) {
  rondo::EncoderOptions options;
  options.normalize = true;  // vectors of length 1, so that products are cosines
  RONDO_ASSIGN(rondo::Encoder encoder, rondo::Encoder::create(model, options));
  for (const std::string_view text : texts) RONDO_TRY(encoder.append(text));
  std::vector<std::vector<float>> vectors;
  rondo::Encoding encoding;
  while (!encoder.idle()) {
    RONDO_TRY(encoder.advance());
    const rondo::Status waited = encoder.wait(std::chrono::milliseconds(16));  // or draw a frame
    if (!waited.ok() && waited.code() != rondo::StatusCode::kTimeout) return waited;
    for (;;) {
      RONDO_ASSIGN(const bool taken, encoder.take(encoding));
      if (!taken) break;
      vectors.push_back(encoding.values);
    }
  }
  return vectors;
}

int fail(const rondo::Status& status) {
  std::fprintf(stderr, "compare_texts: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: compare_texts MODEL TEXT TEXT...\n"), 2;
  rondo::Result<rondo::ByteSource> file = rondo::open_model(argv[1]);
  if (!file.ok()) return fail(file.status());
  rondo::Result<rondo::Instance> instance = rondo::Instance::create();
  if (!instance.ok()) return fail(instance.status());
  rondo::Result<rondo::Device> device = rondo::Device::create(*instance);
  if (!device.ok()) return fail(device.status());
  rondo::Result<rondo::Model> model = rondo::Model::create(*device, *file);
  if (!model.ok()) return fail(model.status());
  if (rondo::Status loaded = model->wait_loaded(); !loaded.ok()) return fail(loaded);
  const std::span<char* const> texts = std::span(argv, static_cast<std::size_t>(argc)).subspan(2);
  const rondo::Result<std::vector<std::vector<float>>> vectors = encode(*model, texts);
  if (!vectors.ok()) return fail(vectors.status());
  for (std::size_t i = 1; i < texts.size(); ++i) {
    double cosine = 0;
    for (std::size_t k = 0; k < vectors->front().size(); ++k) cosine += static_cast<double>(vectors->front()[k]) * static_cast<double>((*vectors)[i][k]);
    std::printf("%.4f  %s\n", cosine, texts[i]);
  }
}
