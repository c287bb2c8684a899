// Encoders: texts and images to vectors, to hidden states, or to what a model's head makes of them.
//
// One thread at a time. Nothing blocks unless its name says wait, but encode(), which waits. An object that was moved from
// refuses every call with kFailedPrecondition, and is idle. A loop looks like this:
//   for (const auto& text : texts) encoder.append(text);
//   while (!encoder.idle()) { encoder.advance(); encoder.wait(16ms); while (encoder.take(encoding)) { ... } }
// Several inputs are computed at once, in recordings for a few lengths, of one and of max_batch, that are replayed. What else is in
// a batch changes no bit of a result; an input that is computed alone may differ in the last bits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <rondo/export.h>
#include <rondo/model.h>
#include <rondo/session.h>
#include <rondo/status.h>

namespace rondo {

namespace models {
class EncoderState;
}

/// Pixels of an image as a model takes them.
struct ImageShape {
  std::uint32_t channels = 0, height = 0, width = 0;
  std::size_t n_values() const { return std::size_t{channels} * height * width; }
  bool operator==(const ImageShape&) const = default;
};

/// What an encoder leaves of each input.
enum class EncoderOutput : std::uint8_t {
  kVector,  ///< one vector
  kHidden,  ///< the hidden state of each token (of an image: of each patch and of what goes before them)
  kHead,    ///< what the model's head makes: logits over the vocabulary or over labels of each token, or labels of the whole
  kAttention,  ///< the softmax weights of each head of one layer: what each token attends to
};

/// How rows of hidden states become one vector.
enum class Pooling : std::uint8_t {
  kModel,  ///< as the model was made for: what its file says, its pooler where it has one, else the mean (of images: the first row)
  kPooler, ///< a linear and its activation of the first row, as BERT's and ViT's; of CLIP's towers what their projections take
  kMean,   ///< of all tokens
  kFirst,  ///< the first token, as [CLS]
  kLast,   ///< the last token
};

/// What is decided when an encoder is created.
struct EncoderOptions {
  EncoderOutput output = EncoderOutput::kVector;
  Pooling pooling = Pooling::kModel;  ///< of kVector
  bool normalize = false;             ///< vectors have length 1; of kVector
  std::uint32_t attention_layer = 0;  ///< that kAttention is of, from 0 (of an encoder-decoder, in its encoder); later ones are not computed
  std::uint32_t max_batch = 8;        ///< inputs that are computed at once, from 1 to 64; fewer where the device's buffers hold fewer
  std::uint32_t max_tokens = 0;       ///< of one text; 0: the smaller of the model's and 512
  bool profile = false;               ///< record timestamps around every dispatch: see take_profile
  double max_segment_us = 100'000;    ///< predicted time above which a step is cut into several command buffers
};

/// What came of one input. Of kAttention it is (heads, tokens, tokens): how much of each token, the column, each one, the row, takes.
struct Encoding {
  std::uint32_t n_rows = 0;   ///< its tokens (rows of an image), or 1; of kAttention heads times tokens
  std::uint32_t width = 0;
  std::vector<float> values;  ///< (n_rows, width)
};

/// Counters since an encoder was made.
struct EncoderStatistics {
  std::uint64_t n_steps = 0;       ///< batches submitted
  std::uint64_t n_inputs = 0;      ///< in those
  std::uint64_t n_dispatches = 0;  ///< of those
  std::uint64_t activation_bytes = 0;
};

/// Texts on a model that has an encoder of texts. On a decoder for kAttention alone: each text by itself, whose tokens see those before them.
class RONDO_API Encoder {
 public:
  /// Plans, allocates and records. The model must be loaded. Errors: kUnsupported (the model does not encode texts, or has no
  /// such head, by name; beyond a limit of the device), kInvalidArgument (options out of their range, by name), kOutOfMemory,
  /// kFailedPrecondition.
  static Result<Encoder> create(const Model& model, const EncoderOptions& options = {});
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

  /// Asks for one text's encoding; nothing is submitted yet. `types`: one for each token, or none, which is type 0 for all.
  /// Errors: kInvalidArgument (no token, more than max_tokens, ids outside the vocabulary, types that the model does not have, or
  /// of another number).
  Status append(std::span<const std::int32_t> tokens, std::span<const std::int32_t> types = {});
  /// The same of a text, with the special tokens that the model puts around it.
  Status append(std::string_view text);

  /// Submits batches while at most two segments are in flight. Errors: kDeviceLost, kOutOfMemory.
  Status advance();
  /// Sleeps until there may be something to take or to submit, at most `timeout`; then kTimeout. Errors: those of advance.
  Status wait(std::chrono::nanoseconds timeout);
  /// The next encoding, in the order of append; false if it is not there yet. Errors: those of advance.
  Result<bool> take(Encoding& encoding);
  /// Nothing is asked for that was not taken.
  bool idle() const;

  /// Appends all, and waits for all of them. Errors: those of append, where nothing is left appended, and of advance;
  /// kFailedPrecondition (not idle).
  Result<std::vector<Encoding>> encode(std::span<const std::vector<std::int32_t>> texts);
  Result<std::vector<Encoding>> encode(std::span<const std::string_view> texts);

  const EncoderStatistics& statistics() const;
  /// The steps profiled since the last call, in order; empty unless EncoderOptions::profile.
  std::vector<ProfiledStep> take_profile();

  /// For Rondo's own use.
  models::EncoderState& internal() { return *impl_; }

 private:
  explicit Encoder(std::unique_ptr<models::EncoderState> impl);
  std::unique_ptr<models::EncoderState> impl_;
};

/// Images on a model that has an encoder of images.
class RONDO_API ImageEncoder {
 public:
  /// As Encoder::create; max_tokens means nothing here.
  static Result<ImageEncoder> create(const Model& model, const EncoderOptions& options = {});
  ImageEncoder(ImageEncoder&&) noexcept;
  ImageEncoder& operator=(ImageEncoder&&) noexcept;
  ~ImageEncoder();

  /// What the model takes.
  ImageShape shape() const;
  /// One image as (channels, height, width) in the model's own numbers, which are copied. Errors: kInvalidArgument (another number).
  Status append(std::span<const float> pixels);
  /// One image of the model's height and width, three bytes each pixel, row after row: as the model's file says they become numbers.
  /// Models of one channel take its luma (ITU-R 601). Errors: kInvalidArgument (another number of bytes), kUnsupported (a model of
  /// other channels than one or three).
  Status append_rgb(std::span<const std::byte> rgb);
  /// One image of any size up to 2^28 pixels, three bytes each: resized, cropped, rescaled and normalised as preprocessor_config.json of
  /// the model's folder says and transformers' processors of ViT, DeiT and CLIP understand it, to the bytes that Pillow makes.
  /// Without that file: resized to the model's size, bilinear. It is done within the call, on its thread. Errors: kInvalidArgument
  /// (sizes of 0 or too large, another number of bytes, or what comes of it is not of the model's size), kUnsupported (as append_rgb; a
  /// processor or a step that is not there yet).
  Status append_image(std::span<const std::byte> rgb, std::uint32_t width, std::uint32_t height);

  /// As those of Encoder.
  Status advance();
  Status wait(std::chrono::nanoseconds timeout);
  Result<bool> take(Encoding& encoding);
  bool idle() const;
  const EncoderStatistics& statistics() const;
  std::vector<ProfiledStep> take_profile();

  /// For Rondo's own use.
  models::EncoderState& internal() { return *impl_; }

 private:
  explicit ImageEncoder(std::unique_ptr<models::EncoderState> impl);
  std::unique_ptr<models::EncoderState> impl_;
};

}  // namespace rondo
