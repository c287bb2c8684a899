#include "models/arch/encoder.h"

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

/// From token ids to hidden states.
struct TextTower {
  StackConfig stack;
  NormConfig norm;
  StackWeights weights;
  WeightSlice embedding, positions, types;  ///< the last two where there are any
  NormWeights embedding_norm;
  std::int64_t n_vocab = 0;
};

/// From pixels to hidden states.
struct ImageTower {
  StackConfig stack;
  NormConfig norm;
  StackWeights weights;
  ImageShape shape;
  std::int64_t patch = 0, n_rows = 0;
  std::vector<WeightSlice> tokens;  ///< rows before the patches: a class's and, of DeiT, a teacher's
  LinearWeights patches;
  WeightSlice positions;
  NormWeights embedding_norm;
  NormWeights pooled_norm;          ///< of CLIP, which norms the first row alone
};

/// What stands on the hidden states.
struct Head {
  ModelHead kind = ModelHead::kNone;
  LinearWeights dense;  ///< where there is one: of each token, or of the first
  graph::Activation activation = graph::Activation::kTanh;
  NormWeights norm;
  LinearWeights output;
};

struct Encoder {
  std::optional<TextTower> text;
  std::optional<ImageTower> image;
  LinearWeights pooler;
  LinearWeights text_projection, image_projection;  ///< of CLIP
  Pooling pooling = Pooling::kMean;                 ///< what kModel means for texts
  Head head;
  std::vector<WeightBlock> blocks;
};

/// Builds the graph of one step.
class Builder : StackBuilder {
 public:
  Builder(const Encoder& encoder, Role role, std::int64_t rows, const StepPlaces& places)
      : StackBuilder(encoder.blocks, {}, places, role, rows, takes_images(role) ? encoder.image->norm : encoder.text->norm), encoder_(encoder), role_(role), places_(places) {}

  Graph build() {
    const TensorId hidden = takes_images(role_) ? encode_images() : encode_texts();
    switch (role_) {
      case Role::kEncode: case Role::kEncodeImage: case Role::kAttention: case Role::kAttentionImage: return step_.finish(hidden);
      case Role::kPool: case Role::kPoolImage: return step_.finish(step_.normalized(pool(hidden)));
      default: return step_.finish(head(hidden));
    }
  }

 private:
  TensorId encode_texts() {
    const TextTower& text = *encoder_.text;
    tokens_ = step_.begin();
    TensorId hidden = g_.add(Op::embedding, {tokens_.ids, step_.matrix(text.embedding)});
    if (text.types.is_there()) hidden = add(hidden, g_.add(Op::embedding, {step_.types(), step_.matrix(text.types)}));
    if (text.positions.is_there()) hidden = add(hidden, g_.add(Op::embedding, {tokens_.positions, step_.matrix(text.positions)}));
    return encoded(text.stack, text.weights, tokens_, norm(hidden, text.embedding_norm));
  }

  TensorId encode_images() {
    const ImageTower& image = *encoder_.image;
    const std::int64_t width = image.stack.width;
    std::vector<TensorId> rows;
    const TensorId pixels = step_.begin_images(image.shape);
    for (const WeightSlice& token : image.tokens) {
      const TensorId row = step_.vector(token);
      if (g_.status().ok()) rows.push_back(g_.reshape(row, {1, 1, width}));
    }
    rows.push_back(g_.add(Op::patch_embed, {pixels, step_.matrix(image.patches.weight), step_.vector(image.patches.bias)}, graph::PatchEmbedAttributes{image.patch}));
    const TensorId positions = step_.vector(image.positions);
    if (!g_.status().ok()) return kNone;
    const TensorId joined = g_.add(Op::concat, rows, graph::ConcatAttributes{1});
    const TensorId hidden = add(joined, g_.reshape(positions, {1, image.n_rows, width}));
    return encoded(image.stack, image.weights, {}, norm(hidden, image.embedding_norm));
  }

  TensorId pool(TensorId hidden) {
    const bool image = takes_images(role_);
    const LinearWeights& projection = image ? encoder_.image_projection : encoder_.text_projection;
    Pooling pooling = places_.pooling;
    if (pooling == Pooling::kModel) pooling = image && !projection.is_there() ? (encoder_.pooler.is_there() ? Pooling::kPooler : Pooling::kFirst) : image ? Pooling::kPooler : encoder_.pooling;
    if (pooling != Pooling::kPooler) return step_.pooled(tokens_, hidden, pooling);
    if (!projection.is_there()) return linear(step_.pooled(tokens_, hidden, Pooling::kFirst), encoder_.pooler, graph::Activation::kTanh);
    const TensorId row = step_.pooled(tokens_, hidden, image ? Pooling::kFirst : Pooling::kLast);
    const TensorId pooled = image ? norm(row, encoder_.image->pooled_norm) : row;
    return places_.pooling == Pooling::kModel ? linear(pooled, projection) : pooled;
  }

  TensorId head(TensorId hidden) {
    const Head& head = encoder_.head;
    TensorId rows = head.kind == ModelHead::kLabels ? step_.pooled(tokens_, hidden, Pooling::kFirst) : hidden;
    if (head.dense.is_there()) rows = norm(linear(rows, head.dense, head.activation), head.norm);
    return linear(rows, head.output);
  }

  const Encoder& encoder_;
  Role role_;
  const StepPlaces& places_;
  StepBuilder::Tokens tokens_;
};

/// Pairs of llama.cpp's pooling_type and what it means here.
Status read_pooling(const Keys& keys, bool has_pooler, Pooling& pooling) {
  pooling = has_pooler ? Pooling::kPooler : Pooling::kMean;
  if (!keys.has("pooling_type")) return {};
  constexpr Pooling kTypes[] = {Pooling::kMean, Pooling::kMean, Pooling::kFirst, Pooling::kLast, Pooling::kMean};  // none, mean, cls, last, rank
  RONDO_ASSIGN(const std::uint32_t type, keys.u32_or("pooling_type", 0));
  if (type >= std::size(kTypes)) return keys.corrupt("pooling_type", fmt::format("is {} but must be in [0, 4]", type));
  if (type != 0 && type != 4) pooling = kTypes[type];
  return {};
}

Status find_head(LayerFinder& find, const GgufFile& file, std::int64_t width, std::int64_t n_vocab, const WeightSlice& embedding, Head& head) {
  RONDO_ASSIGN(const std::string_view kind, file.string_or("rondo.head", find.has("cls.output.weight") ? "text" : ""));
  if (kind.empty()) return {};
  constexpr std::pair<std::string_view, ModelHead> kHeads[] = {{"words", ModelHead::kMaskedWords}, {"tokens", ModelHead::kTokenLabels}, {"answers", ModelHead::kAnswers}, {"text", ModelHead::kLabels}};
  const auto known = std::find_if(std::begin(kHeads), std::end(kHeads), [&](const auto& entry) { return entry.first == kind; });
  if (known == std::end(kHeads)) return file.key_error("rondo.head", fmt::format("is '{}' but must be words, tokens, answers or text", printable(kind)));
  head.kind = known->second;
  if (head.kind == ModelHead::kMaskedWords && n_vocab == 0) return file.key_error("rondo.head", "is 'words' in a file without a vocabulary");
  RONDO_TRY(read_activation(file, "rondo.head_activation", head.activation));
  if (find.has("cls.weight")) RONDO_TRY(find.linear("cls", width, width, head.dense));
  RONDO_TRY(find.norm("cls.norm", width, head.norm));
  if (head.kind == ModelHead::kMaskedWords) {
    if (find.has("cls.output.weight")) return find.linear("cls.output", n_vocab, width, head.output);
    RONDO_ASSIGN(const bool tied, file.boolean_or("rondo.head_tied", true));
    if (!tied) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'cls.output.weight' is missing", file.name()));
    head.output.weight = embedding;
    return find.has("cls.output.bias") ? find.vector("cls.output.bias", n_vocab, head.output.bias) : Status();
  }
  const GgufTensor* output = file.find_tensor("cls.output.weight");
  if (!output) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'cls.output.weight' is missing", file.name()));
  if (output->n_dims > 2 || output->dims[1] > 1 << 20) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'cls.output.weight' is no matrix of at most 2^20 labels", file.name()));
  if (head.kind == ModelHead::kAnswers && output->dims[1] != 2) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'cls.output.weight' has {} rows but where answers begin and end is two", file.name(), output->dims[1]));
  return find.linear("cls.output", static_cast<std::int64_t>(output->dims[1]), width, head.output);
}

/// Names of what the head tells apart, where the file has them.
Status read_labels(const GgufFile& file, const Head& head, std::vector<std::string>& labels) {
  constexpr std::string_view kKey = "rondo.labels";
  if (!file.has(kKey) || (head.kind != ModelHead::kTokenLabels && head.kind != ModelHead::kLabels)) return {};
  RONDO_ASSIGN(const GgufStrings* const names, file.strings(kKey));
  const auto n = static_cast<std::size_t>(head.output.weight.count);
  if (names->size() != n) return file.key_error(kKey, fmt::format("has {} names but the head {} labels", names->size(), n));
  for (std::size_t i = 0; i < n; ++i) labels.emplace_back((*names)[i]);
  return {};
}

std::uint32_t n_labels(const Encoder& encoder) {
  if (encoder.head.kind == ModelHead::kMaskedWords) return static_cast<std::uint32_t>(encoder.text->n_vocab);
  return static_cast<std::uint32_t>(encoder.head.output.weight.count);
}

/// The text tower of BERT and its kin, or T5's encoder alone.
struct TextFamily {
  const char* name;
  NormKind norm = NormKind::kLayer;
  bool norms_behind = true;
  bool learned_positions = false, rope = false, buckets = false;
  bool embedding_norm = true;
  std::optional<bool> gated = false;  ///< nothing: where the file has gates
  graph::Activation activation = graph::Activation::kGelu;
  StackNames names = {"blk.", "", "attn_output_norm", "attn_output", "layer_output_norm"};
};

TextFamily bert() { return {.name = "bert", .learned_positions = true}; }
TextFamily nomic_bert() { return {.name = "nomic-bert", .rope = true, .gated = true, .activation = graph::Activation::kSilu}; }
TextFamily t5_encoder() {
  return {.name = "t5encoder", .norm = NormKind::kRms, .norms_behind = false, .buckets = true, .embedding_norm = false, .gated = std::nullopt, .activation = graph::Activation::kRelu,
          .names = {"enc.blk.", "enc.output_norm", "attn_norm", "attn_o", "ffn_norm"}};
}

Status read_positions(const GgufFile& file, const Keys& keys, const TextFamily& family, const NetworkFacts& facts, TextTower& text) {
  StackConfig& stack = text.stack;
  RONDO_ASSIGN(const std::string_view relative, file.string_or("rondo.relative_positions", ""));
  if (!relative.empty() && !family.learned_positions) return file.key_error("rondo.relative_positions", fmt::format("is there, but a {} has positions of its own", family.name));
  if (relative == "keys" || relative == "keys and queries") {
    stack.relative = relative == "keys" ? Relative::kKeys : Relative::kKeysQueries;
    stack.farthest = std::int64_t{facts.context} - 1;
  } else if (!relative.empty()) {
    return file.key_error("rondo.relative_positions", fmt::format("is '{}' but must be 'keys' or 'keys and queries'", printable(relative)));
  }
  if (family.buckets) return read_buckets(keys, stack);
  if (!family.rope) return {};
  graph::RopeAttributes rope;
  rope.max_position = facts.context;
  RONDO_TRY(keys.read_positive("rope.freq_base", rope.theta));
  if (keys.has("rope.scaling.type") || keys.has("rope.scaling.factor")) {
    RONDO_ASSIGN(const std::string_view type, keys.string_or("rope.scaling.type", "linear"));
    if (type != "none") return keys.unsupported("rope.scaling.type", fmt::format(" is '{}', which is not there yet", printable(type)));
  }
  std::uint32_t dimensions = stack.head_dim;
  if (keys.has("rope.dimension_count")) RONDO_TRY(keys.read_count("rope.dimension_count", stack.head_dim, dimensions));
  if (dimensions % 2 != 0) return keys.corrupt("rope.dimension_count", fmt::format("is {} but must be even", dimensions));
  rope.dimensions = dimensions;
  stack.rope = rope;
  return {};
}

Status read_text(const GgufFile& file, const TextFamily& family, NetworkFacts& facts, TextTower& text) {
  const Keys keys(file, family.name);
  StackConfig& stack = text.stack;
  RONDO_TRY(read_stack(keys, stack));
  RONDO_TRY(keys.read_count("context_length", 1 << 24, facts.context));
  text.norm.kind = stack.norm = family.norm;
  RONDO_TRY(read_epsilon(keys, text.norm));
  RONDO_ASSIGN(const bool causal, keys.boolean_or("attention.causal", false));
  if (causal) return keys.unsupported("attention.causal", " is true, which is not there yet for encoders");
  stack.norms_behind = family.norms_behind;
  stack.gated = family.gated.value_or(file.find_tensor(family.names.layers + "0.ffn_gate.weight"));
  stack.activation = stack.gated && !family.gated ? graph::Activation::kGeluTanh : family.activation;
  RONDO_TRY(read_activation(file, "rondo.activation", stack.activation));
  stack.final_norm = family.names.final_norm.empty() ? Presence::kNever : Presence::kAlways;
  RONDO_TRY(read_vocabulary(file, "token_embd.weight", facts.n_vocab));
  text.n_vocab = facts.n_vocab;
  return read_positions(file, keys, family, facts, text);
}

Status find_text(WeightFinder& find, const GgufFile& file, const TextFamily& family, NetworkFacts& facts, TextTower& text) {
  LayerFinder around(find, "", text.norm.kind, true);
  const std::int64_t width = text.stack.width;
  RONDO_TRY(find.matrix({"token_embd.weight", facts.n_vocab, &text.embedding}, width));
  if (family.learned_positions && text.stack.relative == Relative::kNone) RONDO_TRY(find.matrix({"position_embd.weight", facts.context, &text.positions}, width));
  if (const GgufTensor* types = file.find_tensor("token_types.weight")) {
    facts.n_token_types = types->n_dims < 2 ? 1 : static_cast<std::uint32_t>(std::min<std::uint64_t>(types->dims[1], 1 << 16));
    RONDO_TRY(find.matrix({"token_types.weight", facts.n_token_types, &text.types}, width));
  }
  RONDO_TRY(around.norm("token_embd_norm", width, text.embedding_norm, family.embedding_norm ? Presence::kAlways : Presence::kNever));
  return find_stack(find, text.stack, family.names, text.weights);
}

Status read_image(const GgufFile& file, const Keys& keys, NetworkFacts& facts, ImageTower& image) {
  StackConfig& stack = image.stack;
  RONDO_TRY(read_stack(keys, stack));
  RONDO_TRY(read_epsilon(keys, image.norm));
  std::uint32_t height = 0, width = 0, patch = 0;
  RONDO_TRY(keys.read_count("image_height", 1 << 14, height));
  RONDO_TRY(keys.read_count("image_width", 1 << 14, width));
  RONDO_TRY(keys.read_count("image_channels", 64, image.shape.channels));
  RONDO_TRY(keys.read_count("patch_size", 1 << 14, patch));
  if (height % patch != 0 || width % patch != 0) return keys.corrupt("patch_size", fmt::format("is {}, which does not divide images of {} x {}", patch, height, width));
  if (std::uint64_t{image.shape.channels} * height * width > 1 << 28) return keys.corrupt("image_height", fmt::format("and the others make images of {} x {} x {} numbers", image.shape.channels, height, width));
  image.shape.height = height, image.shape.width = width;
  image.patch = patch;
  RONDO_TRY(read_activation(file, "rondo.activation", stack.activation));
  facts.image = image.shape;
  return {};
}

/// The keys that write_image_preprocessing writes.
Status read_image_preprocessing(const GgufFile& file, ImagePreprocessing& how) {
  RONDO_ASSIGN(const std::string_view refusal, file.string_or("rondo.image_refusal", ""));
  if (refusal.size() > 1000 || std::any_of(refusal.begin(), refusal.end(), [](char c) { return c >= 0 && c < ' '; })) return file.key_error("rondo.image_refusal", "is no line of text");
  how.refusal = refusal;
  RONDO_ASSIGN(how.resizes, file.boolean_or("rondo.image_resizes", how.resizes));
  RONDO_ASSIGN(const std::uint32_t resampling, file.u32_or("rondo.image_resampling", static_cast<std::uint32_t>(how.resampling)));
  if (resampling >= kResamplings) return file.key_error("rondo.image_resampling", fmt::format("is {}, which is none", resampling));
  how.resampling = static_cast<Resampling>(resampling);
  for (const auto& [key, side] : {std::pair{"rondo.image_shortest_edge", &how.shortest_edge}, std::pair{"rondo.image_resize_height", &how.resize_height}, std::pair{"rondo.image_resize_width", &how.resize_width},
                                  std::pair{"rondo.image_crop_height", &how.crop_height}, std::pair{"rondo.image_crop_width", &how.crop_width}}) {
    RONDO_ASSIGN(*side, file.u32_or(key, 0));
    if (*side > 1 << 14) return file.key_error(key, fmt::format("is {} but may be {}", *side, 1 << 14));
  }
  RONDO_ASSIGN(how.scale, file.f64_or("rondo.image_scale", how.scale));
  if (!std::isfinite(how.scale)) return file.key_error("rondo.image_scale", fmt::format("is {}", how.scale));
  for (std::size_t i = 0; i < how.mean.size(); ++i) {
    RONDO_ASSIGN(how.mean[i], file.f32_or(fmt::format("rondo.image_mean.{}", i), how.mean[i]));
    const std::string deviation = fmt::format("rondo.image_deviation.{}", i);
    RONDO_ASSIGN(how.deviation[i], file.f32_or(deviation, how.deviation[i]));
    if (!std::isfinite(how.deviation[i]) || how.deviation[i] == 0) return file.key_error(deviation, fmt::format("is {}", how.deviation[i]));
    if (!std::isfinite(how.mean[i])) return file.key_error(fmt::format("rondo.image_mean.{}", i), fmt::format("is {}", how.mean[i]));
  }
  return {};
}

Status find_image(WeightFinder& find, const std::string& prefix, const StackNames& names, NetworkFacts& facts, ImageTower& image) {
  LayerFinder around(find, prefix, NormKind::kLayer, true);
  const std::int64_t width = image.stack.width, patches = (image.shape.height / image.patch) * (image.shape.width / image.patch);
  for (const char* name : {"class_embd", "distillation_embd"}) {
    if (around.has(name)) RONDO_TRY(around.vector(name, width, image.tokens.emplace_back()));
  }
  image.n_rows = patches + static_cast<std::int64_t>(image.tokens.size());
  RONDO_TRY(around.linear("patch_embd", width, image.shape.channels * image.patch * image.patch, image.patches));
  RONDO_TRY(around.table("position_embd.weight", image.n_rows, width, image.positions));
  RONDO_TRY(around.norm("pre_norm", width, image.embedding_norm));
  facts.image_rows = static_cast<std::uint32_t>(image.n_rows);
  return find_stack(find, image.stack, names, image.weights);
}

/// The parts of an encoder, by its sizes.
std::vector<NetworkPart> list_parts(const Encoder& encoder, const NetworkFacts& facts) {
  std::vector<NetworkPart> parts;
  const bool both = encoder.text && encoder.image;
  if (encoder.text) {
    const TextTower& text = *encoder.text;
    const std::int64_t width = text.stack.width;
    PartCounter embeddings(both ? "text embeddings" : "embeddings");
    embeddings.add({text.n_vocab, width}).add({text.positions.count, width}).add({text.types.count, width}).add(text.embedding_norm, width);
    parts.push_back(embeddings.part());
    parts.push_back(stack_part(both ? "text encoder" : "encoder", text.stack, text.weights));
  }
  if (encoder.image) {
    const ImageTower& image = *encoder.image;
    const std::int64_t width = image.stack.width;
    PartCounter embeddings(both ? "image embeddings" : "embeddings");
    embeddings.add(image.patches, width, image.shape.channels * image.patch * image.patch).add({static_cast<std::int64_t>(image.tokens.size()), width}).add({image.n_rows, width}).add(image.embedding_norm, width);
    parts.push_back(embeddings.part());
    parts.push_back(stack_part(both ? "image encoder" : "encoder", image.stack, image.weights));
  }
  const std::int64_t width = facts.width, image_width = encoder.image ? encoder.image->stack.width : 0;
  PartCounter head("pooler and head");
  head.add(encoder.pooler, width, width).add(encoder.text_projection, encoder.text_projection.weight.count, width);
  if (encoder.image) head.add(encoder.image->pooled_norm, image_width).add(encoder.image_projection, encoder.image_projection.weight.count, image_width);
  head.add(encoder.head.dense, width, width).add(encoder.head.norm, width);
  const bool tied = encoder.head.kind == ModelHead::kMaskedWords && encoder.text && encoder.head.output.weight.block == encoder.text->embedding.block;
  if (tied) head.add({encoder.head.output.bias.count});
  else head.add(encoder.head.output, encoder.head.output.weight.count, width);
  if (head.part().n > 0) parts.push_back(head.part());
  return parts;
}

/// The roles of an encoder whose weights are known.
Network make_encoder(Encoder encoder, NetworkFacts facts) {
  Network network;
  const auto add_roles = [&](const StackConfig& stack, Role first, std::int64_t vector_width, std::int64_t rows) {
    network.roles.push_back({first, stack.width});
    network.roles.push_back({first == Role::kEncode ? Role::kPool : Role::kPoolImage, vector_width, true, stack.width});
    if (encoder.head.kind != ModelHead::kNone) network.roles.push_back({first == Role::kEncode ? Role::kHead : Role::kHeadImage, n_labels(encoder), encoder.head.kind == ModelHead::kLabels});
    network.roles.push_back(attention_role(first == Role::kEncode ? Role::kAttention : Role::kAttentionImage, stack.n_heads, stack.n_layers));
    network.widest_row = std::max(network.widest_row, widest_row(stack, rows));
  };
  if (encoder.image) {
    const StackConfig& stack = encoder.image->stack;
    facts.n_layers = stack.n_layers, facts.width = stack.width, facts.n_heads = facts.n_kv_heads = stack.n_heads, facts.head_dim = stack.head_dim, facts.ffn = stack.ffn;
    add_roles(stack, Role::kEncodeImage, encoder.image_projection.is_there() ? encoder.image_projection.weight.count : stack.width, encoder.image->n_rows);
    const std::int64_t pixels = encoder.image->shape.channels * encoder.image->patch * encoder.image->patch;
    network.widest_row = std::max(network.widest_row, pixels);
  }
  if (encoder.text) {
    const StackConfig& stack = encoder.text->stack;
    facts.n_layers = stack.n_layers, facts.width = stack.width, facts.n_heads = facts.n_kv_heads = stack.n_heads, facts.head_dim = stack.head_dim, facts.ffn = stack.ffn;
    add_roles(stack, Role::kEncode, encoder.text_projection.is_there() ? encoder.text_projection.weight.count : stack.width, std::min(facts.context, 512u));
  }
  facts.head = encoder.head.kind;
  facts.n_labels = encoder.head.kind == ModelHead::kNone || encoder.head.kind == ModelHead::kMaskedWords ? 0 : n_labels(encoder);
  network.parts = list_parts(encoder, facts);
  network.facts = std::move(facts);
  network.has_pooler = encoder.pooler.is_there() || encoder.text_projection.is_there() || encoder.image_projection.is_there();
  network.blocks = encoder.blocks;
  auto shared = std::make_shared<const Encoder>(std::move(encoder));
  network.build = [shared](Role role, std::int64_t rows, const StepPlaces& places) { return Builder(*shared, role, rows, places).build(); };
  return network;
}

Result<Network> open_text(const GgufFile& file, const TextFamily& family, NetworkFacts facts) {
  Encoder encoder;
  TextTower& text = encoder.text.emplace();
  RONDO_TRY(read_text(file, family, facts, text));
  WeightFinder find(file);
  RONDO_TRY(find_text(find, file, family, facts, text));
  LayerFinder around(find, "", text.norm.kind, true);
  const std::int64_t width = text.stack.width;
  RONDO_TRY(find_head(around, file, width, text.n_vocab, text.embedding, encoder.head));
  RONDO_TRY(read_labels(file, encoder.head, facts.labels));
  if (around.has("pooler.weight")) RONDO_TRY(around.linear("pooler", width, width, encoder.pooler));
  RONDO_TRY(read_pooling(Keys(file, family.name), encoder.pooler.is_there(), encoder.pooling));
  RONDO_TRY(check_all_found(file, find, family.name));
  encoder.blocks = find.take_blocks();
  return make_encoder(std::move(encoder), std::move(facts));
}

Result<Network> open_vit(const GgufFile& file, NetworkFacts facts) {
  Encoder encoder;
  ImageTower& image = encoder.image.emplace();
  image.stack.final_norm = Presence::kAlways;
  RONDO_TRY(read_image(file, Keys(file, "vit"), facts, image));
  WeightFinder find(file);
  RONDO_TRY(find_image(find, "", {"blk.", "output_norm"}, facts, image));
  LayerFinder around(find, "", NormKind::kLayer, true);
  RONDO_TRY(find_head(around, file, image.stack.width, 0, {}, encoder.head));
  RONDO_TRY(read_labels(file, encoder.head, facts.labels));
  if (around.has("pooler.weight")) RONDO_TRY(around.linear("pooler", image.stack.width, image.stack.width, encoder.pooler));
  RONDO_TRY(check_all_found(file, find, "vit"));
  encoder.blocks = find.take_blocks();
  Network network = make_encoder(std::move(encoder), std::move(facts));
  RONDO_TRY(read_image_preprocessing(file, network.image_preprocessing));
  return network;
}

Result<Network> open_clip(const GgufFile& file, NetworkFacts facts) {
  Encoder encoder;
  ImageTower& image = encoder.image.emplace();
  RONDO_TRY(read_image(file, Keys(file, "clip.vision"), facts, image));
  TextTower& text = encoder.text.emplace();
  const Keys keys(file, "clip.text");
  RONDO_TRY(read_stack(keys, text.stack));
  RONDO_TRY(read_epsilon(keys, text.norm));
  RONDO_TRY(keys.read_count("context_length", 1 << 24, facts.context));
  RONDO_TRY(read_activation(file, "rondo.activation", text.stack.activation));
  RONDO_TRY(read_vocabulary(file, "t.token_embd.weight", facts.n_vocab));
  text.n_vocab = facts.n_vocab;
  text.stack.causal = true;
  text.stack.final_norm = Presence::kAlways;
  WeightFinder find(file);
  RONDO_TRY(find_image(find, "v.", {"v.blk.", ""}, facts, image));
  RONDO_TRY(find.matrix({"t.token_embd.weight", facts.n_vocab, &text.embedding}, text.stack.width));
  RONDO_TRY(find.matrix({"t.position_embd.weight", facts.context, &text.positions}, text.stack.width));
  RONDO_TRY(find_stack(find, text.stack, {"t.blk.", "t.output_norm"}, text.weights));
  LayerFinder around(find, "", NormKind::kLayer, true);
  RONDO_TRY(around.norm("v.post_norm", image.stack.width, image.pooled_norm, Presence::kAlways));
  std::uint32_t projection = 0;
  RONDO_TRY(Keys(file, "clip").read_count("projection_dim", 1 << 20, projection));
  RONDO_TRY(around.linear("t.projection", projection, text.stack.width, encoder.text_projection));
  RONDO_TRY(around.linear("v.projection", projection, image.stack.width, encoder.image_projection));
  encoder.pooling = Pooling::kPooler;
  RONDO_TRY(check_all_found(file, find, "clip"));
  encoder.blocks = find.take_blocks();
  RONDO_ASSIGN(const float scale, file.f32_or("clip.logit_scale", 0));
  if (!(std::abs(scale) <= 80)) return file.key_error("clip.logit_scale", fmt::format("is {} but must be from -80 to 80", scale));
  Network network = make_encoder(std::move(encoder), std::move(facts));
  network.similarity_scale = std::exp(static_cast<double>(scale));
  RONDO_TRY(read_image_preprocessing(file, network.image_preprocessing));
  network.ends_at_largest_id = !file.has("rondo.text_end");
  if (network.ends_at_largest_id) return network;
  RONDO_ASSIGN(const std::uint32_t end, file.u32("rondo.text_end"));
  if (end >= network.facts.n_vocab) return file.key_error("rondo.text_end", fmt::format("is {} but the vocabulary has {} tokens", end, network.facts.n_vocab));
  network.text_end = static_cast<std::int32_t>(end);
  return network;
}

constexpr const char* kArchitectures[] = {"bert", "nomic-bert", "t5encoder", "vit", "clip"};

}  // namespace

std::span<const char* const> encoder_architectures() { return kArchitectures; }

Result<Network> open_encoder(const GgufFile& file, std::string_view architecture) {
  NetworkFacts facts;
  facts.architecture = architecture;
  RONDO_TRY(read_name(file, facts));
  if (architecture == "vit") return open_vit(file, std::move(facts));
  if (architecture == "clip") return open_clip(file, std::move(facts));
  return open_text(file, architecture == "bert" ? bert() : architecture == "nomic-bert" ? nomic_bert() : t5_encoder(), std::move(facts));
}

}  // namespace rondo::models
