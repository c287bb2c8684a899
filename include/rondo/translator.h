// Translators: texts to texts, by greedy or beam search, on encoder-decoders.
//
// One thread at a time. Nothing blocks unless its name says wait, but translate(), which waits. An object that was moved from refuses
// every call with kFailedPrecondition, and is idle. A loop looks like this:
//   for (const auto& text : texts) translator.append(text);
//   while (!translator.idle()) { translator.advance(); translator.wait(16ms); while (translator.take(translation)) { ... } }
// A text is encoded once; its beams share what is known of it, and each of several has a cache of its own (in f16
// where the model's are in q8_0). After an error of advance, wait or take, make another.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/export.h>
#include <rondo/model.h>
#include <rondo/status.h>

namespace rondo {

namespace models {
class TranslatorState;
}

/// What is decided when a translator is created.
struct TranslatorOptions {
  std::uint32_t beams = 1;        ///< hypotheses that are kept at each step, from 1 to 16; 1: greedy
  double length_penalty = 1;      ///< of beams: a sum of log-probabilities is divided by its number of tokens to this power; from -10 to 10
  std::uint32_t max_tokens = 0;   ///< of a translation; 0: the smaller of what the model holds and 512
  std::uint32_t max_source = 0;   ///< tokens of the longest text; 0: the smaller of the model's and 512
  double max_segment_us = 100'000;  ///< predicted time above which a step is cut into several command buffers
};

/// What came of one text.
struct Translation {
  std::vector<std::int32_t> tokens;  ///< without the end
  std::string text;                  ///< "" where the model has no tokenizer
  double score = 0;                  ///< of beams, as length_penalty says; else 0
  bool ended = false;                ///< by an end of the text; else by max_tokens
};

/// Texts on a model that has an encoder and a decoder.
class RONDO_API Translator {
 public:
  /// Plans, allocates and records. The model must be loaded. Errors: kUnsupported (no encoder-decoder; beyond a limit of the device),
  /// kInvalidArgument (options out of their range, by name), kOutOfMemory, kFailedPrecondition.
  static Result<Translator> create(const Model& model, const TranslatorOptions& options = {});
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;
  ~Translator();

  /// Asks for one text's translation; nothing is submitted yet. Errors: kInvalidArgument (no token, more than max_source, ids outside the
  /// vocabulary), kFailedPrecondition (a text, but the model has no tokenizer).
  Status append(std::span<const std::int32_t> tokens);
  Status append(std::string_view text);

  /// Submits what can be. Errors: kDeviceLost, kOutOfMemory, kInternal (the model's logits are no numbers; the device does nothing,
  /// which with several beams only wait tells).
  Status advance();
  /// Sleeps until there may be something to take or to submit, at most `timeout`; then kTimeout. Errors: those of advance.
  Status wait(std::chrono::nanoseconds timeout);
  /// The next translation, in the order of append; false if it is not there yet. Errors: those of advance.
  Result<bool> take(Translation& translation);
  /// Nothing is asked for that was not taken.
  bool idle() const;

  /// Appends all, and waits for all of them. Errors: those of append and advance; kFailedPrecondition (not idle).
  Result<std::vector<Translation>> translate(std::span<const std::string_view> texts);

 private:
  explicit Translator(std::unique_ptr<models::TranslatorState> impl);
  std::unique_ptr<models::TranslatorState> impl_;
};

}  // namespace rondo
