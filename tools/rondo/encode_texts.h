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

/// Tokens of `text` as the model wants it; with `truncate` the first that fit, and the last. Errors: kInvalidArgument, named by `what`
/// (more than `max_tokens`), kFailedPrecondition (no tokenizer).
Result<std::vector<std::int32_t>> text_tokens(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options, std::uint32_t max_tokens, bool truncate, const std::string& what);
/// The most tokens that a text may have.
std::uint32_t most_tokens(const ModelInfo& info);
/// "line 12 of FILE", or "the text".
std::string name_of_line(const TextFlags& text, std::size_t line);

/// Drives `encoder` until all that was appended is taken, in order; `take` is told each with its number. A bar on a terminal after a
/// second. Errors: the encoder's, those of `take`, kCancelled (Ctrl-C).
template <typename AnyEncoder>
Status take_encodings(AnyEncoder& encoder, std::size_t n, const std::function<Status(std::size_t, Encoding)>& take);

}  // namespace rondo::tools
