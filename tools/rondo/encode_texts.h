// What the commands of encoders share: texts line by line, and driving an encoder with progress and Ctrl-C.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rondo/encoder.h>

#include "tools/rondo/command.h"

namespace rondo::tools {

/// The text of -p, or each line of -f, without its end. Errors: those of TextFlags::read; kInvalidArgument (a file without a line).
Result<std::vector<std::string>> read_lines(const TextFlags& text);

/// Opens a model for a command that needs `head`; kNone: any that encodes. Errors: those of Workbench::open; kUnsupported (the model
/// does not, with what would).
Result<std::unique_ptr<Workbench>> open_encoder(const GlobalFlags& flags, const std::string& path, OpenOptions open, ModelHead head, bool images = false);

/// What is done with a text that is too long.
enum class TooLong : std::uint8_t { kRefused, kRefusedUnlessAsked, kCut };
inline TooLong cut_if(bool truncate) { return truncate ? TooLong::kCut : TooLong::kRefusedUnlessAsked; }
/// Tokens of `text` as the model wants it; cut, the first that fit and the last. Errors: kInvalidArgument, named by `what` (more than
/// `max_tokens`).
Result<std::vector<std::int32_t>> text_tokens(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options, std::uint32_t max_tokens, TooLong too_long, const std::string& what);
/// Why a model has no tokenizer, if it has none.
Status need_tokenizer(const Model& model, const std::string& path);
/// kInternal where what a model made of `path`'s weights are no numbers.
Status check_numbers(const Encoding& encoding, const std::string& path);
/// The most tokens that a text may have.
std::uint32_t most_tokens(const ModelInfo& info);
/// "line 12 of FILE", or "the text".
std::string name_of_line(const TextFlags& text, std::size_t line);

/// Drives an encoder or a translator until all `n` that were appended are taken, in order; `take` is told each with its number. A bar
/// on a terminal after a second, unless results go there too. Errors: the runner's, those of `take`, kCancelled (Ctrl-C).
template <typename Item, typename Runner>
Status take_all(Runner& runner, std::size_t n, const std::function<Status(std::size_t, Item)>& take);

}  // namespace rondo::tools
