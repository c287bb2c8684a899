#include "models/arch/seq2seq.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "models/arch/keys.h"
#include "models/arch/stack.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using graph::Graph;
using graph::kNone;
using graph::Op;
using graph::TensorId;
using Keys = ArchitectureKeys;

enum class Positions : std::uint8_t {
  kLearned,
  kSinusoids,
  kBuckets,  ///< of distances: T5
};

/// What no key of a family's files says.
struct Family {
  std::string_view name;
  Positions positions = Positions::kLearned;
  NormKind norm = NormKind::kLayer;
  bool norms_behind = true;
  bool embedding_norm = false;
  Presence final_norm = Presence::kNever;
  bool biased = true;  ///< linears must have biases
  graph::SinusoidAttributes sinusoids = {};  ///< but their width
  bool may_have_table = false;  ///< of positions, in the place of sinusoids
};

constexpr Family kFamilies[] = {
    // The paper's own, as torch.nn.Transformer has it, which norms the ends of both stacks.
    {.name = "transformer", .positions = Positions::kSinusoids, .final_norm = Presence::kIfThere},
    {.name = "marian", .positions = Positions::kSinusoids, .sinusoids = {.layout = graph::SinusoidLayout::kSplit}, .may_have_table = true},
    {.name = "bart", .embedding_norm = true},
    {.name = "mbart", .norms_behind = false, .embedding_norm = true, .final_norm = Presence::kAlways},
    {.name = "m2m_100", .positions = Positions::kSinusoids, .norms_behind = false, .final_norm = Presence::kAlways,
     .sinusoids = {.layout = graph::SinusoidLayout::kSplit, .end_at_theta = true, .first = 2}},
    {.name = "t5", .positions = Positions::kBuckets, .norm = NormKind::kRms, .norms_behind = false, .final_norm = Presence::kAlways, .biased = false},
};

/// One of both sides: what stands before its layers, and these.
struct Side {
  StackConfig stack;
  StackWeights weights;
  WeightSlice embedding, positions;
  NormWeights embedding_norm;
};

struct Seq2Seq {
  Family family;
  NormConfig norm;
  Side encoder, decoder;
  double embedding_scale = 1, logit_scale = 1;
  LinearWeights output;
  std::vector<WeightBlock> blocks;
  std::vector<CacheSpec> caches;
};

/// Builds the graph of one step.
class Builder : StackBuilder {
 public:
  Builder(const Seq2Seq& model, Role role, std::int64_t rows, const StepPlaces& places)
      : StackBuilder(model.blocks, model.caches, places, role, rows, model.norm), model_(model), role_(role), places_(places) {}

  Graph build() {
    const StepBuilder::Tokens tokens = step_.begin();
    if (!encodes(role_)) return decode(tokens);
    const Side& encoder = model_.encoder;
    const TensorId hidden = encoded(encoder.stack, encoder.weights, tokens, embed(encoder, tokens));
    if (role_ == Role::kPool) return step_.finish(step_.normalized(step_.pooled(tokens, hidden, places_.pooling == Pooling::kModel ? Pooling::kMean : places_.pooling)));
    if (role_ == Role::kAttention || places_.caches.empty()) return step_.finish(hidden);
    write_source(model_.decoder.stack, model_.decoder.weights, tokens, hidden);
    return step_.finish(kNone);
  }

 private:
  TensorId embed(const Side& side, const StepBuilder::Tokens& tokens) {
    graph::EmbeddingAttributes scaling;
    scaling.scale = model_.embedding_scale;
    TensorId hidden = g_.add(Op::embedding, {tokens.ids, step_.matrix(side.embedding)}, scaling);
    if (side.positions.is_there()) {
      hidden = add(hidden, g_.add(Op::embedding, {tokens.positions, step_.matrix(side.positions)}));
    } else if (model_.family.positions == Positions::kSinusoids && g_.status().ok()) {
      const graph::Shape shape = g_.tensor(hidden).shape;
      graph::SinusoidAttributes sinusoids = model_.family.sinusoids;
      sinusoids.width = shape[2];
      const TensorId waves = g_.add(Op::sinusoidal_positions, {g_.reshape(tokens.positions, {shape[0] * shape[1]})}, sinusoids);
      if (g_.status().ok()) hidden = add(hidden, g_.reshape(waves, shape));
    }
    return norm(hidden, side.embedding_norm);
  }

  Graph decode(const StepBuilder::Tokens& tokens) {
    const Side& decoder = model_.decoder;
    const TensorId hidden = stack(decoder.stack, decoder.weights, tokens, embed(decoder, tokens));
    if (role_ == Role::kPrefill) return step_.finish(kNone);
    const TensorId rows = norm(step_.rows_for_head(tokens, hidden), decoder.weights.final_norm);
    return step_.finish(linear(scaled(rows, model_.logit_scale), model_.output));
  }

  const Seq2Seq& model_;
  Role role_;
  const StepPlaces& places_;
};

/// Sizes of both stacks; a decoder has the encoder's where no key of its own says otherwise.
Status read_sizes(const Keys& keys, Seq2Seq& model) {
  StackConfig &encoder = model.encoder.stack, &decoder = model.decoder.stack;
  RONDO_TRY(read_stack(keys, encoder));
  decoder = encoder;
  decoder.decodes = true;
  RONDO_TRY(keys.read_count_or("decoder_block_count", 4096, encoder.n_layers, decoder.n_layers));
  RONDO_TRY(keys.read_count_or("decoder_feed_forward_length", 1 << 22, encoder.ffn, decoder.ffn));
  RONDO_TRY(keys.read_count_or("decoder_head_count", 1 << 14, encoder.n_heads, decoder.n_heads));
  if (keys.has("attention.key_length") || decoder.n_heads == encoder.n_heads) return {};
  if (decoder.width % decoder.n_heads != 0) return keys.corrupt("decoder_head_count", fmt::format("is {}, which does not divide a width of {}", decoder.n_heads, decoder.width));
  decoder.head_dim = decoder.width / decoder.n_heads;
  return {};
}

/// What both stacks have in common.
Status read_kind(const GgufFile& file, const Keys& keys, Seq2Seq& model) {
  const Family& family = model.family;
  RONDO_ASSIGN(const bool norms_behind, file.boolean_or("rondo.norms_behind", family.norms_behind));
  for (const auto& [side, layers] : {std::pair{&model.encoder, "enc.blk.0."}, std::pair{&model.decoder, "dec.blk.0."}}) {
    StackConfig& stack = side->stack;
    stack.norm = family.norm;
    stack.norms_behind = norms_behind;
    stack.final_norm = family.final_norm;
    stack.biased = family.biased;
    stack.gated = file.find_tensor(std::string(layers) + "ffn_gate.weight");
    stack.activation = family.positions != Positions::kBuckets ? graph::Activation::kGelu : stack.gated ? graph::Activation::kGeluTanh : graph::Activation::kRelu;
    RONDO_TRY(read_activation(file, "rondo.activation", stack.activation));
    if (family.positions == Positions::kBuckets) RONDO_TRY(read_buckets(keys, stack));
  }
  return {};
}

Status read_start(const GgufFile& file, const Keys& keys, std::uint32_t n_vocab, Network& network) {
  const auto take = [&](const std::string& key) -> Status {
    RONDO_ASSIGN(const std::uint32_t id, file.u32(key));
    if (id >= n_vocab) return file.key_error(key, fmt::format("is {} but the vocabulary has {} tokens", id, n_vocab));
    network.start_tokens.push_back(static_cast<std::int32_t>(id));
    return {};
  };
  RONDO_TRY(keys.need("decoder_start_token_id"));
  RONDO_TRY(take(keys.name("decoder_start_token_id")));
  return file.has("rondo.first_token_id") ? take("rondo.first_token_id") : Status();
}

Status find_side(WeightFinder& find, const Family& family, const std::string& prefix, std::uint32_t context, Side& side) {
  LayerFinder around(find, prefix, family.norm, true);
  const std::int64_t width = side.stack.width;
  const bool table = family.positions == Positions::kLearned || (family.may_have_table && around.has("position_embd.weight"));
  if (table) RONDO_TRY(find.matrix({prefix + "position_embd.weight", context, &side.positions}, width));
  RONDO_TRY(around.norm("token_embd_norm", width, side.embedding_norm, family.embedding_norm ? Presence::kAlways : Presence::kNever));
  const bool t5 = family.positions == Positions::kBuckets;
  return find_stack(find, side.stack, {prefix + "blk.", prefix + "output_norm", "attn_norm", t5 ? "attn_o" : "attn_output", "ffn_norm"}, side.weights);
}

Status find_weights(WeightFinder& find, const GgufFile& file, std::uint32_t context, std::uint32_t n_vocab, Seq2Seq& model) {
  const std::int64_t width = model.encoder.stack.width;
  RONDO_TRY(find.matrix({"token_embd.weight", n_vocab, &model.encoder.embedding}, width));
  model.decoder.embedding = model.encoder.embedding;
  if (find.has("dec.token_embd.weight")) RONDO_TRY(find.matrix({"dec.token_embd.weight", n_vocab, &model.decoder.embedding}, width));
  RONDO_TRY(find_side(find, model.family, "enc.", context, model.encoder));
  RONDO_TRY(find_side(find, model.family, "dec.", context, model.decoder));
  model.output.weight = model.decoder.embedding;  // tied unless the file has a head of its own
  if (find.has("output.weight")) RONDO_TRY(find.matrix({"output.weight", n_vocab, &model.output.weight}, width));
  if (find.has("output.bias")) RONDO_TRY(find.vector({"output.bias", n_vocab, &model.output.bias}));
  return check_all_found(file, find, model.family.name);
}

std::vector<NetworkPart> list_parts(const Seq2Seq& model, std::uint32_t n_vocab) {
  const std::int64_t width = model.encoder.stack.width;
  PartCounter embeddings("embeddings"), head("head");
  const bool shared = model.decoder.embedding.block == model.encoder.embedding.block;
  embeddings.add({shared ? 1 : 2, n_vocab, width});
  for (const Side* side : {&model.encoder, &model.decoder}) embeddings.add({side->positions.count, width}).add(side->embedding_norm, width);
  if (model.output.weight.block != model.decoder.embedding.block) head.add({n_vocab, width});
  if (model.output.bias.is_there()) head.add({n_vocab});
  std::vector<NetworkPart> parts = {embeddings.part(), stack_part("encoder", model.encoder.stack, model.encoder.weights), stack_part("decoder", model.decoder.stack, model.decoder.weights)};
  if (head.part().n > 0) parts.push_back(head.part());
  return parts;
}

Network make_seq2seq(Seq2Seq model, Network network) {
  const StackConfig &encoder = model.encoder.stack, &decoder = model.decoder.stack;
  NetworkFacts& facts = network.facts;
  facts.n_layers = encoder.n_layers + decoder.n_layers, facts.width = encoder.width, facts.ffn = encoder.ffn;
  facts.n_heads = facts.n_kv_heads = encoder.n_heads, facts.head_dim = encoder.head_dim;
  network.parts = list_parts(model, facts.n_vocab);
  if (model.decoder.positions.is_there()) network.positions_end = facts.context;
  model.caches = stack_caches(decoder);
  network.caches = model.caches;
  network.blocks = model.blocks;
  network.roles = {{Role::kPrefill}, {Role::kPrefillAndSample}, {Role::kDecode}, {Role::kLogits, facts.n_vocab}, {Role::kEncode, encoder.width}, {Role::kPool, encoder.width, true}, attention_role(Role::kAttention, encoder.n_heads, encoder.n_layers)};
  network.widest_row = std::max(widest_row(encoder, 1), widest_row(decoder, 1));
  auto shared = std::make_shared<const Seq2Seq>(std::move(model));
  network.build = [shared](Role role, std::int64_t rows, const StepPlaces& places) { return Builder(*shared, role, rows, places).build(); };
  return network;
}

}  // namespace

std::span<const std::string_view> seq2seq_architectures() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Family& family : kFamilies) names.push_back(family.name);
    return names;
  }();
  return kNames;
}

Result<Network> open_seq2seq(const GgufFile& file, std::string_view architecture) {
  Seq2Seq model;
  model.family = *std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& family) { return family.name == architecture; });
  Network network;
  NetworkFacts& facts = network.facts;
  facts.architecture = architecture;
  RONDO_TRY(read_name(file, facts));
  const Keys keys(file, facts.architecture);
  RONDO_TRY(read_sizes(keys, model));
  RONDO_TRY(keys.read_count("context_length", 1 << 24, facts.context));
  facts.source_context = facts.context;
  model.norm.kind = model.family.norm;
  RONDO_TRY(read_epsilon(keys, model.norm));
  RONDO_TRY(read_kind(file, keys, model));
  RONDO_TRY(keys.read_positive("embedding_scale", model.embedding_scale));
  // T5's embedding is no head without this; GGUF's files, which have no key for it, are of both kinds.
  const bool tied_t5 = model.family.positions == Positions::kBuckets && !file.find_tensor("output.weight");
  if (tied_t5) model.logit_scale = 1 / std::sqrt(static_cast<double>(model.encoder.stack.width));
  RONDO_TRY(keys.read_positive("logit_scale", model.logit_scale));
  RONDO_TRY(read_vocabulary(file, "token_embd.weight", facts.n_vocab));
  RONDO_TRY(read_start(file, keys, facts.n_vocab, network));
  WeightFinder find(file);
  RONDO_TRY(find_weights(find, file, facts.context, facts.n_vocab, model));
  model.blocks = find.take_blocks();
  return make_seq2seq(std::move(model), std::move(network));
}

}  // namespace rondo::models
