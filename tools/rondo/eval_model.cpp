#include "tools/rondo/eval_model.h"

#include <algorithm>

#include <rondo/encoder.h>

#include "models/formats/safetensors.h"
#include "models/loaded_model.h"
#include "models/memory_plan.h"
#include "models/model_loader.h"
#include "models/reference.h"
#include "runtime/fmt.h"

namespace rondo::tools {

namespace {

using models::Network;
using models::Role;

/// Rows of integers (batch, columns), of which `lengths` count.
struct Rows {
  std::uint64_t batch = 0, columns = 0;
  std::vector<std::int32_t> values;
  std::vector<std::uint64_t> lengths;
  bool is_there() const { return batch > 0; }
  std::span<const std::int32_t> row(std::uint64_t b) const { return std::span(values).subspan(b * columns, lengths[b]); }
};

/// The tensors of a file of inputs.
class Inputs {
 public:
  static Result<Inputs> read(const std::string& path) {
    RONDO_ASSIGN(ByteSource source, open_file(path));
    RONDO_ASSIGN(models::SafetensorsFile file, models::SafetensorsFile::parse(source));
    Inputs inputs(path, std::move(source), std::move(file));
    RONDO_ASSIGN(inputs.ids, inputs.read_rows("input_ids"));
    RONDO_ASSIGN(inputs.types, inputs.read_rows("token_type_ids"));
    RONDO_ASSIGN(inputs.decoder_ids, inputs.read_rows("decoder_input_ids"));
    RONDO_TRY(inputs.read_mask());
    return inputs;
  }

  Rows ids, types, decoder_ids;
  bool has(const char* name) const { return file_.find(name); }
  Status error(const char* tensor, const std::string& what) const { return Status(StatusCode::kInvalidArgument, fmt::format("{}: tensor '{}' {}", path_, tensor, what)); }
  const std::string& path() const { return path_; }

  /// Refuses what the model does not take, and misses what it needs.
  Status check(const Network& network) const {
    const bool decodes = network.find(Role::kDecode), encodes = network.find(Role::kEncode), images = network.find(Role::kEncodeImage), towers = encodes && images;
    const auto takes = [&](const char* name, bool taken) { return taken || !has(name) ? Status() : error(name, fmt::format("is not an input of a {}", network.facts.architecture)); };
    RONDO_TRY(takes("input_ids", decodes || encodes));
    RONDO_TRY(takes("attention_mask", encodes));
    RONDO_TRY(takes("token_type_ids", encodes && network.facts.n_token_types > 0));
    RONDO_TRY(takes("decoder_input_ids", decodes && encodes));
    RONDO_TRY(takes("pixel_values", images));
    const auto needs = [&](const char* name) { return has(name) ? Status() : Status(StatusCode::kNotFound, fmt::format("{}: tensor '{}' is missing", path_, name)); };
    if (towers && !has("input_ids")) return needs("pixel_values");
    if (images && !towers) return needs("pixel_values");
    RONDO_TRY(needs("input_ids"));
    const std::uint32_t n_vocab = network.facts.n_vocab;
    RONDO_TRY(check_vocabulary(fmt::format("{}: tensor 'input_ids'", path_), ids.values, n_vocab));
    RONDO_TRY(check_vocabulary(fmt::format("{}: tensor 'decoder_input_ids'", path_), decoder_ids.values, n_vocab));
    if (types.is_there() && (types.batch != ids.batch || types.columns != ids.columns)) return error("token_type_ids", "must have the shape of input_ids");
    for (const std::int32_t type : types.values) {
      if (static_cast<std::uint32_t>(type) >= network.facts.n_token_types) return error("token_type_ids", fmt::format("holds {} but types go from 0 to {}", type, network.facts.n_token_types - 1));
    }
    if (decoder_ids.is_there() && decoder_ids.batch != ids.batch) return error("decoder_input_ids", "must have as many rows as input_ids");
    const std::uint32_t most = decodes ? network.facts.source_context : network.facts.context;
    if (encodes && ids.columns > most) return error("input_ids", fmt::format("has {} columns but the model was made for {} tokens", ids.columns, most));
    return {};
  }

  Result<std::vector<float>> pixels(const ImageShape& image, std::uint64_t& batch) const {
    const models::SafetensorsEntry& entry = *file_.find("pixel_values");
    const std::vector<std::uint64_t> expected = {image.channels, image.height, image.width};
    if (entry.shape.size() != 4 || entry.shape[0] == 0 || !std::equal(expected.begin(), expected.end(), entry.shape.begin() + 1)) {
      return error("pixel_values", fmt::format("is ({}) but must be (batch, {}, {}, {}) and not empty", fmt::join(entry.shape, ", "), image.channels, image.height, image.width));
    }
    batch = entry.shape[0];
    return file_.read_f32(source_, "pixel_values");
  }

 private:
  Inputs(std::string path, ByteSource source, models::SafetensorsFile file) : path_(std::move(path)), source_(std::move(source)), file_(std::move(file)) {}

  Result<Rows> read_rows(const char* name) const {
    const models::SafetensorsEntry* entry = file_.find(name);
    if (!entry) return Rows();
    if (entry->shape.size() != 2 || entry->shape[0] == 0 || entry->shape[1] == 0) return error(name, "must be (batch, tokens) and not empty");
    RONDO_ASSIGN(const std::vector<std::int64_t> values, file_.read_i64(source_, name));
    Rows rows{entry->shape[0], entry->shape[1], {}, std::vector<std::uint64_t>(entry->shape[0], entry->shape[1])};
    for (const std::int64_t value : values) {
      if (value < 0 || value > (1 << 24)) return error(name, fmt::format("holds {}, which is no id", value));
      rows.values.push_back(static_cast<std::int32_t>(value));
    }
    return rows;
  }

  /// Lengths of texts from a mask of ones before zeros.
  Status read_mask() {
    RONDO_ASSIGN(const Rows mask, read_rows("attention_mask"));
    if (!mask.is_there()) return {};
    if (mask.batch != ids.batch || mask.columns != ids.columns) return error("attention_mask", "must have the shape of input_ids");
    for (std::uint64_t b = 0; b < mask.batch; ++b) {
      const std::span<const std::int32_t> row = mask.row(b);
      const auto end = std::find(row.begin(), row.end(), 0);
      if (end == row.begin()) return error("attention_mask", fmt::format("has nothing but padding in row {}", b));
      if (std::any_of(row.begin(), end, [](std::int32_t value) { return value != 1; }) || std::any_of(end, row.end(), [](std::int32_t value) { return value != 0; })) {
        return error("attention_mask", fmt::format("must be ones before zeros in row {}: texts are padded at their end", b));
      }
      ids.lengths[b] = static_cast<std::uint64_t>(end - row.begin());
    }
    return {};
  }

  std::string path_;
  ByteSource source_;
  models::SafetensorsFile file_;
};

/// A tensor of results.
struct Output {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

/// What computes: a device, or the reference.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual const Network& network() const = 0;
  /// (rows, width) of each text or image.
  virtual Result<std::vector<Encoding>> encode(Role role, const std::vector<models::ReferenceInput>& inputs, Pooling pooling, bool normalize) = 0;
  /// (tokens, n_vocab) of each row.
  virtual Result<std::vector<std::vector<float>>> logits(const Rows& tokens, const Rows& sources) = 0;
};

class ReferenceMachine : public Machine {
 public:
  ReferenceMachine(std::unique_ptr<const models::Checkpoint> checkpoint, graph::Type kv_type) : checkpoint_(std::move(checkpoint)), kv_type_(kv_type) {}

  const Network& network() const override { return checkpoint_->network; }
  Result<std::vector<Encoding>> encode(Role role, const std::vector<models::ReferenceInput>& inputs, Pooling pooling, bool normalize) override {
    std::vector<Encoding> encodings;
    const auto width = static_cast<std::uint32_t>(network().find(role)->width(pooling));
    for (const models::ReferenceInput& input : inputs) {
      Encoding& encoding = encodings.emplace_back();
      RONDO_ASSIGN(encoding.values, models::reference_encoding(*checkpoint_, role, input, pooling, normalize));
      encoding.width = width;
      encoding.n_rows = static_cast<std::uint32_t>(encoding.values.size() / width);
    }
    return encodings;
  }
  Result<std::vector<std::vector<float>>> logits(const Rows& tokens, const Rows& sources) override {
    std::vector<std::vector<float>> all;
    for (std::uint64_t b = 0; b < tokens.batch; ++b) {
      RONDO_ASSIGN(std::vector<float> one, models::reference_logits(*checkpoint_, tokens.row(b), kv_type_, sources.is_there() ? sources.row(b) : std::span<const std::int32_t>()));
      all.push_back(std::move(one));
    }
    return all;
  }

 private:
  std::unique_ptr<const models::Checkpoint> checkpoint_;
  graph::Type kv_type_;
};

class DeviceMachine : public Machine {
 public:
  DeviceMachine(const GlobalFlags& flags, Workbench& bench, Profile& profile) : flags_(flags), bench_(bench), profile_(profile) {}

  const Network& network() const override { return bench_.model().internal()->model().network(); }

  Result<std::vector<Encoding>> encode(Role role, const std::vector<models::ReferenceInput>& inputs, Pooling pooling, bool normalize) override {
    EncoderOptions options;
    options.output = role == Role::kPool || role == Role::kPoolImage ? EncoderOutput::kVector : role == Role::kHead || role == Role::kHeadImage ? EncoderOutput::kHead : EncoderOutput::kHidden;
    options.pooling = pooling;
    options.normalize = normalize;
    options.profile = profile_.wanted();
    for (const models::ReferenceInput& input : inputs) options.max_tokens = std::max(options.max_tokens, static_cast<std::uint32_t>(input.tokens.size()));
    if (models::takes_images(role)) {
      RONDO_ASSIGN(ImageEncoder encoder, ImageEncoder::create(bench_.model(), options));
      for (const models::ReferenceInput& input : inputs) RONDO_TRY(encoder.append(input.pixels));
      return take_all(encoder);
    }
    RONDO_ASSIGN(Encoder encoder, Encoder::create(bench_.model(), options));
    for (const models::ReferenceInput& input : inputs) RONDO_TRY(encoder.append(input.tokens, input.types));
    return take_all(encoder);
  }

  Result<std::vector<std::vector<float>>> logits(const Rows& tokens, const Rows& sources) override {
    SessionOptions options = flags_.session_options();
    options.n_ctx = static_cast<std::uint32_t>(tokens.columns);
    options.n_source = sources.is_there() ? static_cast<std::uint32_t>(sources.columns) : 0;
    profile_.configure(options);
    RONDO_ASSIGN(Session session, Session::create(bench_.model(), options));
    std::vector<std::vector<float>> all;
    for (std::uint64_t b = 0; b < tokens.batch; ++b) {
      if (sources.is_there()) RONDO_TRY(session.set_source(sources.row(b)));
      else RONDO_TRY(session.rewind(0));
      RONDO_ASSIGN(std::vector<float> one, session.wait_logits(tokens.row(b)));
      all.push_back(std::move(one));
    }
    profile_.collect(session);
    return all;
  }

 private:
  template <typename AnyEncoder>
  Result<std::vector<Encoding>> take_all(AnyEncoder& encoder) {
    std::vector<Encoding> encodings;
    while (!encoder.idle()) {
      RONDO_TRY(encoder.advance());
      const Status waited = encoder.wait(std::chrono::seconds(1));
      if (!waited.ok() && waited.code() != StatusCode::kTimeout) return waited;
      Encoding encoding;
      for (;;) {
        RONDO_ASSIGN(const bool taken, encoder.take(encoding));
        if (!taken) break;
        encodings.push_back(std::move(encoding));
      }
    }
    for (ProfiledStep& step : encoder.take_profile()) profile_.add(std::move(step));
    return encodings;
  }

  const GlobalFlags& flags_;
  Workbench& bench_;
  Profile& profile_;
};

/// Everything that a model makes of its inputs.
class Evaluation {
 public:
  Evaluation(Machine& machine, const Inputs& inputs) : machine_(machine), network_(machine.network()), inputs_(inputs) {}

  Result<std::vector<Output>> run() {
    RONDO_TRY(inputs_.check(network_));
    const bool texts = network_.find(Role::kEncode), images = network_.find(Role::kEncodeImage), decodes = network_.find(Role::kDecode);
    if (texts) list_texts();
    if (inputs_.has("pixel_values")) RONDO_TRY(list_images());
    if (texts && images) RONDO_TRY(compare_towers());
    else if (decodes) RONDO_TRY(decode(texts));
    else RONDO_TRY(encode(images));
    return std::move(outputs_);
  }

 private:
  void list_texts() {
    for (std::uint64_t b = 0; b < inputs_.ids.batch; ++b) {
      models::ReferenceInput& text = texts_.emplace_back();
      text.tokens = inputs_.ids.row(b);
      if (inputs_.types.is_there()) text.types = inputs_.types.row(b).first(text.tokens.size());
    }
  }
  Status list_images() {
    std::uint64_t batch = 0;
    RONDO_ASSIGN(pixels_, inputs_.pixels(network_.facts.image, batch));
    for (std::uint64_t b = 0; b < batch; ++b) images_.push_back({{}, {}, std::span(pixels_).subspan(b * network_.facts.image.n_values(), network_.facts.image.n_values())});
    return {};
  }

  /// Adds (batch, rows, width), zeros behind a text's end, or (batch, width).
  Status add(const char* name, Role role, const std::vector<models::ReferenceInput>& inputs, std::uint64_t rows, Pooling pooling = Pooling::kModel, bool normalize = false) {
    RONDO_ASSIGN(const std::vector<Encoding> encodings, machine_.encode(role, inputs, pooling, normalize));
    const models::RoleSpec& spec = *network_.find(role);
    const auto width = static_cast<std::uint64_t>(spec.width(pooling));
    Output output{name, {encodings.size(), rows, width}, {}};
    if (spec.of_text) rows = 1, output.shape = {encodings.size(), width};
    for (const Encoding& encoding : encodings) {
      output.values.insert(output.values.end(), encoding.values.begin(), encoding.values.end());
      output.values.resize(output.values.size() + (rows - encoding.n_rows) * width);
    }
    outputs_.push_back(std::move(output));
    return {};
  }

  Status encode(bool images) {
    const std::vector<models::ReferenceInput>& inputs = images ? images_ : texts_;
    const std::uint64_t rows = images ? network_.facts.image_rows : inputs_.ids.columns;
    RONDO_TRY(add("last_hidden_state", images ? Role::kEncodeImage : Role::kEncode, inputs, rows));
    if (network_.has_pooler) RONDO_TRY(add("pooler_output", images ? Role::kPoolImage : Role::kPool, inputs, rows, Pooling::kPooler));
    const Role head = images ? Role::kHeadImage : Role::kHead;
    return network_.find(head) ? add("logits", head, inputs, rows) : Status();
  }

  Status decode(bool has_source) {
    const Rows& tokens = has_source ? inputs_.decoder_ids : inputs_.ids;
    if (tokens.is_there()) {
      RONDO_ASSIGN(const std::vector<std::vector<float>> all, machine_.logits(tokens, has_source ? inputs_.ids : Rows()));
      Output output{"logits", {tokens.batch, tokens.columns, network_.facts.n_vocab}, {}};
      for (const std::vector<float>& one : all) output.values.insert(output.values.end(), one.begin(), one.end());
      outputs_.push_back(std::move(output));
    }
    return has_source ? add("encoder_last_hidden_state", Role::kEncode, texts_, inputs_.ids.columns) : Status();
  }

  Status compare_towers() {
    if (!texts_.empty()) RONDO_TRY(add("text_embeds", Role::kPool, texts_, 1, Pooling::kModel, true));
    if (!images_.empty()) RONDO_TRY(add("image_embeds", Role::kPoolImage, images_, 1, Pooling::kModel, true));
    if (texts_.empty() || images_.empty()) return {};
    const Output &texts = outputs_[0], &images = outputs_[1];
    const std::size_t width = texts.shape[1];
    Output similarity{"logits_per_image", {images.shape[0], texts.shape[0]}, {}};
    for (std::size_t i = 0; i < images.shape[0]; ++i) {
      for (std::size_t t = 0; t < texts.shape[0]; ++t) {
        double sum = 0;
        for (std::size_t k = 0; k < width; ++k) sum += static_cast<double>(images.values[i * width + k]) * static_cast<double>(texts.values[t * width + k]);
        similarity.values.push_back(static_cast<float>(sum * network_.similarity_scale));
      }
    }
    outputs_.push_back(std::move(similarity));
    return {};
  }

  Machine& machine_;
  const Network& network_;
  const Inputs& inputs_;
  std::vector<float> pixels_;
  std::vector<models::ReferenceInput> texts_, images_;
  std::vector<Output> outputs_;
};

}  // namespace

Status evaluate_model(const GlobalFlags& flags, const EvalFlags& own, int& closed) {
  RONDO_ASSIGN(const Inputs inputs, Inputs::read(own.inputs.front()));
  std::vector<Output> outputs;
  if (own.reference) {
    RONDO_ASSIGN(ByteSource source, open_model(own.model, own.open));
    RONDO_ASSIGN(auto checkpoint, models::open_checkpoint(std::move(source)));
    ReferenceMachine machine(std::move(checkpoint), models::kv_type_of(flags.model_options()));
    RONDO_ASSIGN(outputs, Evaluation(machine, inputs).run());
  } else {
    RONDO_ASSIGN(Profile profile, Profile::open(own.profile));
    RONDO_ASSIGN(std::unique_ptr<Workbench> bench, Workbench::open(flags, own.model, own.open, {}));
    DeviceMachine machine(flags, *bench, profile);
    RONDO_ASSIGN(outputs, Evaluation(machine, inputs).run());
    RONDO_TRY(profile.finish());
    closed = bench->close();
  }
  std::vector<models::SafetensorsTensor> tensors;
  for (const Output& output : outputs) tensors.push_back({output.name, models::SafetensorsDtype::kF32, output.shape, std::as_bytes(std::span(output.values))});
  keep_results();
  return models::write_safetensors(own.outputs, tensors);
}

}  // namespace rondo::tools
