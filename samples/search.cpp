// search MODEL FILE QUERY [N]: the lines of a file that are nearest to a query, by the cosine of their vectors.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <rondo/encoder.h>

namespace {

using Vector = std::vector<float>;

/// Vectors of length 1, without blocking for longer than a frame at a time; 64 texts are computed at once. Texts but the first that
/// are too long have none.
rondo::Result<std::vector<Vector>> embed(const rondo::Model& model, std::span<const std::string> texts) {
  rondo::EncoderOptions options;
  options.normalize = true;
  options.max_batch = static_cast<std::uint32_t>(std::clamp<std::size_t>(texts.size(), 1, 64));
  RONDO_ASSIGN(rondo::Encoder encoder, rondo::Encoder::create(model, options));
  std::vector<std::size_t> appended;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const rondo::Status status = encoder.append(texts[i]);
    if (status.ok()) appended.push_back(i);
    else if (status.code() != rondo::StatusCode::kInvalidArgument || i == 0) return status;
  }
  std::vector<Vector> vectors(texts.size());
  std::size_t done = 0;
  rondo::Encoding encoding;
  while (!encoder.idle()) {
    RONDO_TRY(encoder.advance());
    const rondo::Status waited = encoder.wait(std::chrono::milliseconds(16));  // or draw a frame
    if (!waited.ok() && waited.code() != rondo::StatusCode::kTimeout) return waited;
    for (;;) {
      RONDO_ASSIGN(const bool taken, encoder.take(encoding));
      if (!taken) break;
      vectors[appended[done++]] = encoding.values;
    }
  }
  return vectors;
}

int fail(const rondo::Status& status) {
  std::fprintf(stderr, "search: %s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: search MODEL FILE QUERY [N]\n"), 2;
  const std::size_t n = argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 5;
  std::vector<std::string> texts = {argv[3]};  // the query is the first
  std::ifstream file(argv[2]);
  if (!file) return std::fprintf(stderr, "search: %s can't be read\n", argv[2]), 1;
  for (std::string line; std::getline(file, line);) texts.push_back(line);

  rondo::Result<rondo::ByteSource> source = rondo::open_model(argv[1]);
  if (!source.ok()) return fail(source.status());
  rondo::Result<rondo::Instance> instance = rondo::Instance::create();
  if (!instance.ok()) return fail(instance.status());
  rondo::Result<rondo::Device> device = rondo::Device::create(*instance);
  if (!device.ok()) return fail(device.status());
  rondo::Result<rondo::Model> model = rondo::Model::create(*device, *source);
  if (!model.ok()) return fail(model.status());
  if (rondo::Status loaded = model->wait_loaded(); !loaded.ok()) return fail(loaded);
  const rondo::Result<std::vector<Vector>> vectors = embed(*model, texts);
  if (!vectors.ok()) return fail(vectors.status());

  const Vector& query = vectors->front();
  const auto cosine = [&](std::size_t i) {
    const Vector& other = (*vectors)[i];
    return std::inner_product(other.begin(), other.end(), query.begin(), 0.0);
  };
  std::vector<std::pair<double, std::size_t>> nearest;
  for (std::size_t i = 1; i < texts.size(); ++i) {
    if (!(*vectors)[i].empty()) nearest.emplace_back(-cosine(i), i);
  }
  std::sort(nearest.begin(), nearest.end());
  for (std::size_t i = 0; i < std::min(n, nearest.size()); ++i) std::printf("%.4f  %s\n", -nearest[i].first, texts[nearest[i].second].c_str());
}
