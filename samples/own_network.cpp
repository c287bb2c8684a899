// own_network: a small network built in C++, compiled once for a device and run twice.
#include <cmath>
#include <cstdio>
#include <vector>

#include <rondo/graph.h>

namespace {

constexpr int kTokens = 7, kWidth = 32, kHeads = 4, kHidden = 64;

/// Weights made in the program; Graph::weight takes them out of a safetensors file.
std::vector<float> made_up(int n, float step) {
  std::vector<float> values;
  for (int i = 0; i < n; ++i) values.push_back(0.2f * std::sin(step * static_cast<float>(i)));
  return values;
}

/// A layer of a transformer: x (1, T, D) to the same shape.
rondo::Graph build() {
  rondo::Graph g("own network");
  const rondo::Tensor x = g.input("x", rondo::Type::kF32, {1, kTokens, kWidth});
  const auto matrix = [&](const char* name, int rows, int columns) { return g.constant(name, {rows, columns}, made_up(rows * columns, 0.37f + 0.01f * static_cast<float>(rows))); };
  const auto norm = [&](rondo::Tensor input) { return g.layer_norm(input, g.constant("scale", {kWidth}, std::vector<float>(kWidth, 1.0f)), {}); };

  auto layer = g.scope("layer 0");  // messages say so
  rondo::SelfAttentionWeights weights;
  weights.query = matrix("query", kWidth, kWidth);
  weights.key = matrix("key", kWidth / 2, kWidth);  // half as many heads
  weights.value = matrix("value", kWidth / 2, kWidth);
  weights.output = matrix("output", kWidth, kWidth);
  rondo::AttentionOptions options;
  options.causal = true;
  const rondo::Tensor h = g.add(x, g.self_attention(norm(x), weights, kHeads, options));
  const rondo::Tensor up = g.linear(norm(h), matrix("up", kHidden, kWidth), rondo::Activation::kGelu);
  g.output("y", g.add(h, g.mul(g.linear(up, matrix("down", kWidth, kHidden)), 0.5f)));
  return g;
}

rondo::Status run() {
  RONDO_ASSIGN(rondo::Instance instance, rondo::Instance::create());
  RONDO_ASSIGN(rondo::Device device, rondo::Device::create(instance));
  RONDO_ASSIGN(rondo::Program program, rondo::Program::compile(device, build()));
  std::vector<float> x = made_up(kTokens * kWidth, 1.7f), y(x.size());
  for (int turn = 0; turn < 2; ++turn) {
    RONDO_TRY(program.set_input("x", x));
    RONDO_TRY(program.run_and_wait());  // or submit(), and advance() once a frame while it is running()
    RONDO_TRY(program.read("y", y));
    std::printf("y[0] = %.4f, %u dispatches, %zu bytes on the device\n", static_cast<double>(y[0]), program.n_dispatches(), static_cast<std::size_t>(program.device_bytes()));
    x = y;
  }
  return {};
}

}  // namespace

int main() {
  const rondo::Status status = run();
  if (!status.ok()) std::fprintf(stderr, "own_network: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
