// A model: a checkpoint's weights in device memory, its tokenizer and its pipelines.
//
// Nothing here blocks unless its name says so. A Model may be shared by Sessions on several threads once it is loaded;
// until then one thread at a time. It keeps its device, and the Sessions on it keep its weights: handles may be dropped in any
// order.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rondo/activations.h>
#include <rondo/byte_source.h>
#include <rondo/device.h>
#include <rondo/executor.h>
#include <rondo/export.h>
#include <rondo/status.h>
#include <rondo/tokenizer.h>

namespace rondo {

namespace models {
class ModelLoader;
}

/// Type of the keys and values kept for attention. kQ8_0: signed bytes in groups of 32, each with a scale in f16; heads whose
/// width is a multiple of 64 take 17 bytes for 16 elements, others are padded to whole groups and words. It costs accuracy.
enum class KvType : std::uint8_t { kF16, kF32, kQ8_0 };

/// What is decided when a model is created and holds for all its sessions.
struct ModelOptions {
  KvType kv_type = KvType::kF16;
  Activations activations = Activations::kAuto;
  bool fusion = true;  ///< false: one dispatch per operator, for tests and hunting bugs
  /// Operator name -> kernel name, to force a kernel where several could run ("linear" -> "tiled").
  std::map<std::string, std::string, std::less<>> kernels;
  /// Kernels that are wrong on this device and driver, as on_quarantine named them: others do their work. Keep them for as
  /// long as Device::pipeline_cache_key and the version of Rondo stay the same.
  std::vector<std::string> quarantine;
  /// What Model::wait_tuned gave on this device and driver: kernels are chosen by it. What another device, driver or version of Rondo
  /// gave, or what is no such text, is ignored, in one line of the log.
  std::string tuning;
  /// Model::create runs each kernel that the model will use on a small input with the model's own weights, compares it with the
  /// reference on the CPU, and puts what is wrong into quarantine. It blocks meanwhile: for as long as making the pipelines takes
  /// and a second or two.
  bool self_test = false;
  /// Told each kernel that the self-test puts into quarantine ("linear tiled q4_0"), at once: keep it even where create fails
  /// afterwards, since a wrong kernel may cost the device. It must not throw.
  std::function<void(const std::string& kernel)> on_quarantine;
  /// The tokenizer of this GGUF file is used in place of the model's own; it may have fewer tokens than the network.
  std::optional<ByteSource> tokenizer;
  /// Creates pipelines on the caller's threads while load_some, or the self-test, runs; empty: one at a time on the calling
  /// thread.
  Executor executor;
};

/// How far loading is.
struct LoadProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  bool finished = false;
};

/// What a checkpoint says of itself.
struct ModelInfo {
  std::string architecture;
  std::string name;
  std::uint32_t n_layers = 0, width = 0, n_heads = 0, n_kv_heads = 0, n_vocab = 0;
  std::uint32_t context = 0;          ///< tokens it was trained for
  std::uint32_t source_context = 0;   ///< of an encoder-decoder: tokens that a source may have; else 0
  std::vector<std::int32_t> start_tokens;  ///< what its decoder begins with
  std::uint64_t n_parameters = 0;
  std::uint64_t weight_bytes = 0;     ///< in device memory
  std::uint32_t n_token_types = 0;    ///< of an encoder: of a text's tokens, such as those of its first and second part
  ModelHead head = ModelHead::kNone;  ///< of an encoder: see EncoderOutput::kHead
  std::vector<std::string> labels;    ///< of kTokenLabels and kLabels: what the head tells apart, "LABEL_0" where the model names none
};

/// A checkpoint on a device.
class RONDO_API Model {
 public:
  /// Reads the header of a GGUF file, checks it, plans and allocates its memory, and returns; weights come with load_some.
  /// Errors, each naming file and field: kCorruptData, kUnsupported (architecture, tokenizer or weight type that isn't there
  /// yet, a tensor beyond the device's limits, an operator of which all kernels are in quarantine), kOutOfMemory (with what is
  /// needed), kIo; kInvalidArgument (an option out of its range, a tokenizer with more tokens than the network),
  /// kFailedPrecondition (an empty Device); with a self-test also kDeviceLost and kInternal (a kernel that costs the device).
  static Result<Model> create(Device& device, ByteSource source, const ModelOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// Creates pipelines and uploads weights for about `budget`; at least one piece of work is done while there is any. Call
  /// until `finished`: at the end it waits, for `budget` at most, for drivers that compile on threads of their own.
  /// With an executor all pipelines are created in one piece, and then dispatched once each, a piece at a time.
  /// Errors: the source's, kOutOfMemory, kDeviceLost, kFailedPrecondition (an empty handle), kInternal (the device does no work).
  Result<LoadProgress> load_some(std::chrono::microseconds budget);
  /// Loads all that is left. Errors: those of load_some.
  Status wait_loaded();

  /// Measures, on the device, the kernels that could do the model's linears, other products and attention, in steps of all sizes that a Session,
  /// an Encoder or an ImageEncoder with default options has, and returns what is fastest, together with what ModelOptions::tuning
  /// held: keep it for as long as Device::pipeline_cache_key and the version of Rondo stay the same. The model uses it from now
  /// on; results may differ from those before as they do from kernel to kernel, and are the same from run to run for what was
  /// chosen. No other thread may use the model meanwhile; `on_progress`, which may be empty, is told at the begin of each measurement
  /// how many are done. It must not throw. Blocks for a minute or two. Errors: kFailedPrecondition (not loaded), kUnsupported (a
  /// device without timestamps), those of Session and Encoder.
  Result<std::string> wait_tuned(const std::function<void(std::size_t done, std::size_t total)>& on_progress = {});

  const ModelInfo& info() const;
  /// Of a model without one (a folder) it has no tokens: n_vocab() is 0, texts are empty, and no id ends a text by itself.
  const Tokenizer& tokenizer() const;

  /// For Rondo's own use.
  models::ModelLoader* internal() const { return impl_.get(); }

 private:
  explicit Model(std::unique_ptr<models::ModelLoader> impl);
  std::unique_ptr<models::ModelLoader> impl_;
};

}  // namespace rondo
