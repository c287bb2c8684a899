// scaling_experiment: why attention divides by the square root of the heads' width. Scores q k of random queries and keys of unit
// variance have a variance of d, their width, and with 1/sqrt(d) one of 1 (Vaswani et al. 2017, section 3.2.1, footnote 4). What
// softmax makes of them says the rest: without it nearly all weight falls on one key, where its gradient vanishes.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <rondo/graph.h>

namespace {

constexpr int kQueries = 256, kKeys = 64, kWidths[] = {16, 64, 256, 1024};

std::vector<float> normal(std::mt19937& generator, int n) {
  // Two draws each (Box and Muller 1958): std::normal_distribution gives other numbers in each standard library.
  const auto draw = [&] { return (static_cast<double>(generator()) + 0.5) / 4294967296.0; };
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) {
    const double radius = std::sqrt(-2 * std::log(draw()));
    value = static_cast<float>(radius * std::cos(2 * 3.14159265358979323846 * draw()));
  }
  return values;
}

/// Scores of all queries with all keys, times `scale`, and what comes of them.
void add_scores(rondo::Graph& g, rondo::Tensor queries, rondo::Tensor keys, float scale, const char* name) {
  auto scope = g.scope(name);
  const rondo::Tensor scores = g.matmul(queries, keys, false, true, scale);
  const rondo::Tensor all = g.reshape(scores, {kQueries * kKeys});
  const rondo::Tensor deviations = g.sub(all, g.mean(all, -1, true));
  const rondo::Tensor weights = g.softmax(scores);
  // The entropy of a row is -sum p log p, in nats.
  const rondo::Tensor entropy = g.sum(g.mul(weights, g.add("log_softmax", {{"input", scores}})));
  const rondo::Tensor results[] = {g.mean(g.mul(deviations, deviations), -1, true), g.mean(g.max(weights), -1, true), g.mul(g.mean(entropy, -1, true), -1.0f)};
  g.output(name, g.concat(results, 0));
}

rondo::Status run() {
  RONDO_ASSIGN(rondo::Instance instance, rondo::Instance::create());
  RONDO_ASSIGN(rondo::Device device, rondo::Device::create(instance));
  std::printf("%d queries, %d keys; of even weights the largest is %.3f, the entropy %.3f\n\n", kQueries, kKeys, 1.0 / kKeys, std::log(kKeys));
  std::printf("| width | scores | variance | largest weight | entropy (nats) |\n|---:|---|---:|---:|---:|\n");
  for (const int width : kWidths) {
    std::mt19937 generator(static_cast<std::uint32_t>(width));
    rondo::Graph g("scores of width " + std::to_string(width));
    const rondo::Tensor queries = g.input("queries", rondo::Type::kF32, {kQueries, width}), keys = g.input("keys", rondo::Type::kF32, {kKeys, width});
    add_scores(g, queries, keys, 1, "q k");
    add_scores(g, queries, keys, 1 / std::sqrt(static_cast<float>(width)), "q k / sqrt(d)");
    RONDO_ASSIGN(rondo::Program program, rondo::Program::compile(device, std::move(g)));
    RONDO_TRY(program.set_input("queries", normal(generator, kQueries * width)));
    RONDO_TRY(program.set_input("keys", normal(generator, kKeys * width)));
    RONDO_TRY(program.run_and_wait());
    for (const char* name : {"q k", "q k / sqrt(d)"}) {
      std::vector<float> results(3);
      RONDO_TRY(program.read(name, results));
      std::printf("| %d | %s | %.3f | %.3f | %.3f |\n", width, name, static_cast<double>(results[0]), static_cast<double>(results[1]), static_cast<double>(results[2]));
    }
  }
  return {};
}

}  // namespace

int main() {
  const rondo::Status status = run();
  if (!status.ok()) std::fprintf(stderr, "scaling_experiment: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
