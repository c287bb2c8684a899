// The public Graph and Weights (include/rondo/graph.h): each operator's call in terms of the table's names.
#include <utility>

#include <rondo/graph.h>

#include "graph/activation.h"
#include "models/graph_builder.h"
#include "runtime/fmt.h"

namespace rondo {

namespace {

static_assert(static_cast<int>(Activation::kGelu) == static_cast<int>(graph::Activation::kGelu) && static_cast<int>(Activation::kNeg) == static_cast<int>(graph::Activation::kNeg));

/// Of a number outside the enum one that operators refuse.
std::string name_of(Activation activation) {
  const auto names = graph::activation_names();
  const auto index = static_cast<std::size_t>(activation);
  return index < names.size() ? names[index] : fmt::format("Activation {}", index);
}

Attribute number(const char* name, double value) { return {name, value}; }
Attribute integer_of(const char* name, std::int64_t value) { return {name, value}; }

}  // namespace

Result<Weights> open_weights(ByteSource source) {
  RONDO_ASSIGN(models::SafetensorsFile header, models::SafetensorsFile::parse(source));
  return Weights(std::make_shared<const models::WeightsFile>(models::WeightsFile{std::move(source), std::move(header)}));
}

Weights Weights::at(std::string_view prefix) const {
  Weights inner = *this;
  inner.prefix_ += prefix;
  return inner;
}

bool Weights::has(std::string_view name) const { return file_ && file_->header.find(prefix_ + std::string(name)); }

std::vector<std::string> Weights::names() const {
  std::vector<std::string> all;
  if (!file_) return all;
  for (const models::SafetensorsEntry& entry : file_->header.entries()) {
    if (entry.name.starts_with(prefix_)) all.push_back(entry.name.substr(prefix_.size()));
  }
  return all;
}

Graph::Graph(std::string name) : impl_(std::make_shared<models::GraphBuilder>(std::move(name))) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Result<Graph> Graph::load(const ByteSource& description, std::span<const ByteSource> inputs) {
  RONDO_ASSIGN(models::GraphFile file, models::open_graph_file(description, inputs));
  Graph graph(description.name);
  graph.impl_ = std::make_shared<models::GraphBuilder>(std::move(file));
  return graph;
}

Status Graph::status() const { return impl_ ? impl_->status() : Status(StatusCode::kFailedPrecondition, "graph: was moved from"); }

Graph::Scope::~Scope() {
  if (graph_) graph_->close_scope();
}

Graph::Scope Graph::scope(std::string name) {
  if (impl_) impl_->open_scope(std::move(name));
  return Scope(impl_);
}

Tensor Graph::input(std::string name, Type type, const Shape& shape) {
  return impl_ ? impl_->declare(std::move(name), type, shape, false) : Tensor();
}
Tensor Graph::cache(std::string name, Type type, const Shape& shape) { return impl_ ? impl_->declare(std::move(name), type, shape, true) : Tensor(); }

Tensor Graph::constant(std::string name, const Shape& shape, std::span<const float> values) {
  return impl_ ? impl_->add_constant(std::move(name), shape, Type::kF32, std::as_bytes(values)) : Tensor();
}
Tensor Graph::constant(std::string name, const Shape& shape, std::span<const std::int32_t> values) {
  return impl_ ? impl_->add_constant(std::move(name), shape, Type::kI32, std::as_bytes(values)) : Tensor();
}
Tensor Graph::scalar(float value) { return impl_ ? impl_->add_number(double{value}) : Tensor(); }
Tensor Graph::integer(std::int32_t value) { return impl_ ? impl_->add_number(std::int64_t{value}) : Tensor(); }
Tensor Graph::weight(const Weights& weights, std::string_view name, const WeightOptions& options) {
  return impl_ ? impl_->add_weight(weights, name, options) : Tensor();
}
void Graph::output(std::string name, Tensor tensor) {
  if (impl_) impl_->add_output(std::move(name), tensor);
}

Tensor Graph::add(std::string_view op, const std::vector<NamedTensor>& inputs, const std::vector<Attribute>& attributes) {
  return impl_ ? impl_->add_node(op, inputs, attributes).front() : Tensor();
}

Tensor Graph::linear(Tensor x, Tensor weight, const LinearOptions& options) {
  return add("linear", {{"input", x}, {"weight", weight}, {"bias", options.bias}, {"residual", options.residual}}, {{"activation", name_of(options.activation)}});
}
Tensor Graph::linear(Tensor x, Tensor weight, Activation activation) { return linear(x, weight, LinearOptions{{}, activation, {}}); }
Tensor Graph::embedding(Tensor ids, Tensor weight) { return add("embedding", {{"ids", ids}, {"weight", weight}}); }
Tensor Graph::matmul(Tensor a, Tensor b, bool transpose_a, bool transpose_b, float scale) {
  return add("matmul", {{"a", a}, {"b", b}}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, number("scale", scale)});
}
Tensor Graph::layer_norm(Tensor x, Tensor weight, Tensor bias, float epsilon) {
  return add("layer_norm", {{"input", x}, {"weight", weight}, {"bias", bias}}, {number("epsilon", epsilon)});
}
Tensor Graph::rms_norm(Tensor x, Tensor weight, float epsilon) { return add("rms_norm", {{"input", x}, {"weight", weight}}, {number("epsilon", epsilon)}); }
Tensor Graph::activate(Tensor x, Activation activation) { return activation == Activation::kIdentity ? x : add(name_of(activation), {{"input", x}}); }
Tensor Graph::glu(Tensor gate, Tensor up, Activation activation) { return add("glu", {{"gate", gate}, {"up", up}}, {{"activation", name_of(activation)}}); }
Tensor Graph::softmax(Tensor x, int axis) { return add("softmax", {{"input", x}}, {integer_of("axis", axis)}); }

Tensor Graph::add(Tensor a, Tensor b) { return add("add", {{"a", a}, {"b", b}}); }
Tensor Graph::add(Tensor a, float b) { return add(a, scalar(b)); }
Tensor Graph::sub(Tensor a, Tensor b) { return add("sub", {{"a", a}, {"b", b}}); }
Tensor Graph::sub(Tensor a, float b) { return sub(a, scalar(b)); }
Tensor Graph::mul(Tensor a, Tensor b) { return add("mul", {{"a", a}, {"b", b}}); }
Tensor Graph::mul(Tensor a, float b) { return mul(a, scalar(b)); }
Tensor Graph::div(Tensor a, Tensor b) { return add("div", {{"a", a}, {"b", b}}); }
Tensor Graph::div(Tensor a, float b) { return div(a, scalar(b)); }

Tensor Graph::mean(Tensor x, int axis, bool keep) { return add("mean", {{"input", x}}, {integer_of("axis", axis), {"keep", keep}}); }
Tensor Graph::sum(Tensor x, int axis, bool keep) { return add("sum", {{"input", x}}, {integer_of("axis", axis), {"keep", keep}}); }
Tensor Graph::max(Tensor x, int axis, bool keep) { return add("max", {{"input", x}}, {integer_of("axis", axis), {"keep", keep}}); }
Tensor Graph::argmax(Tensor x) { return add("argmax", {{"input", x}}); }
std::pair<Tensor, Tensor> Graph::top_k(Tensor x, int k) {
  if (!impl_) return {};
  const std::vector<Tensor> both = impl_->add_node("top_k", {{"input", x}}, {integer_of("k", k)});
  return {both.front(), both.size() > 1 ? both[1] : Tensor()};
}

Tensor Graph::reshape(Tensor x, const Shape& shape) {
  if (shape.rank > Shape::kMaxRank) {
    if (!impl_) return Tensor();
    return impl_->fail(Status(StatusCode::kInvalidArgument, fmt::format("[reshape] shape has {} dimensions, at most {} are there", shape.rank, Shape::kMaxRank)));
  }
  std::vector<std::int64_t> extents(shape.extents.begin(), shape.extents.begin() + shape.rank);
  return add("reshape", {{"input", x}}, {{"shape", std::move(extents)}});
}
Tensor Graph::transpose(Tensor x, std::initializer_list<int> permutation) {
  return add("transpose", {{"input", x}}, {{"permutation", std::vector<std::int64_t>(permutation.begin(), permutation.end())}});
}
Tensor Graph::slice(Tensor x, int axis, std::int64_t start, std::int64_t end) {
  return add("slice", {{"input", x}}, {integer_of("axis", axis), integer_of("start", start), integer_of("end", end)});
}
Tensor Graph::concat(std::span<const Tensor> tensors, int axis) {
  std::vector<NamedTensor> inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i) inputs.push_back({std::string(1, static_cast<char>('a' + i)), tensors[i]});
  return add("concat", inputs, {integer_of("axis", axis)});
}

Tensor Graph::attention(Tensor query, Tensor key, Tensor value, const AttentionOptions& options) {
  return add("attention", {{"query", query}, {"key", key}, {"value", value}, {"query_offset", options.query_offset}, {"lengths", options.lengths}, {"mask", options.mask}},
             {number("scale", options.scale), {"causal", options.causal}});
}
Tensor Graph::kv_write(Tensor cache, Tensor update, Tensor start) { return add("kv_write", {{"cache", cache}, {"update", update}, {"start", start}}); }

Tensor Graph::split_heads(Tensor x, int n_heads) {
  const Shape& shape = x.shape();
  if (!x || shape.rank != 3 || n_heads < 1 || shape[2] % n_heads != 0) {
    if (!impl_) return {};
    if (!x) return impl_->fail(Status(StatusCode::kInvalidArgument, "[split_heads] input is missing"));
    std::string found = fmt::format("({}", shape.rank > 0 ? fmt::format("{}", shape[0]) : "");
    for (int axis = 1; axis < shape.rank; ++axis) found += fmt::format(", {}", shape[axis]);
    return impl_->fail(Status(StatusCode::kInvalidArgument, fmt::format("[split_heads] {}) must be (B, T, {} D) for {} heads", found, n_heads, n_heads)));
  }
  return transpose(reshape(x, {shape[0], shape[1], n_heads, shape[2] / n_heads}), {0, 2, 1, 3});
}
Tensor Graph::merge_heads(Tensor x) {
  const Shape& shape = x.shape();
  if (!x) return impl_ ? impl_->fail(Status(StatusCode::kInvalidArgument, "[merge_heads] input is missing")) : Tensor();
  if (shape.rank != 4) return impl_ ? impl_->fail(Status(StatusCode::kInvalidArgument, fmt::format("[merge_heads] input has {} dimensions but must be (B, H, T, D)", shape.rank))) : Tensor();
  return reshape(transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

Tensor Graph::self_attention(Tensor x, const SelfAttentionWeights& weights, int n_heads, const AttentionOptions& options) {
  if (n_heads < 1) return impl_ ? impl_->fail(Status(StatusCode::kInvalidArgument, fmt::format("[self_attention] {} heads: at least one is needed", n_heads))) : Tensor();
  const Tensor query = split_heads(linear(x, weights.query, {weights.query_bias, {}, {}}), n_heads);
  if (!query) return {};
  const auto head_dim = query.shape()[3];
  const auto heads_of = [&](Tensor projected) { return split_heads(projected, projected ? static_cast<int>(projected.shape()[2] / head_dim) : 1); };
  const Tensor key = heads_of(linear(x, weights.key, {weights.key_bias, {}, {}})), value = heads_of(linear(x, weights.value, {weights.value_bias, {}, {}}));
  return linear(merge_heads(attention(query, key, value, options)), weights.output, {weights.output_bias, {}, {}});
}

}  // namespace rondo
