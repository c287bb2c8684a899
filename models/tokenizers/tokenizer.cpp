#include <rondo/tokenizer.h>

#include <utility>

#include "models/formats/gguf.h"
#include "models/tokenizers/tokenizer_model.h"

namespace rondo {

Result<Tokenizer> Tokenizer::create(const ByteSource& source) {
  RONDO_ASSIGN(const models::GgufFile file, models::GgufFile::parse(source));
  RONDO_ASSIGN(std::shared_ptr<const models::TokenizerModel> model, models::TokenizerModel::create(file, &source));
  return Tokenizer(std::move(model));
}

Tokenizer::Tokenizer(std::shared_ptr<const models::TokenizerModel> impl) : impl_(std::move(impl)) {}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return impl_ ? impl_->encode(text, options) : std::vector<std::int32_t>();
}

EncodedPair Tokenizer::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  return impl_ ? impl_->encode_pair(first, second, options) : EncodedPair();
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens) const { return impl_ ? impl_->decode(tokens) : ""; }

std::string Tokenizer::piece(std::int32_t token) const { return impl_ ? impl_->piece(token) : ""; }

std::string_view Tokenizer::spelling(std::int32_t token) const { return impl_ ? impl_->vocabulary().spelling(token) : ""; }

std::int32_t Tokenizer::n_vocab() const { return impl_ ? impl_->vocabulary().size() : 0; }

std::int32_t Tokenizer::mask() const { return impl_ ? impl_->vocabulary().mask() : -1; }
std::int32_t Tokenizer::bos() const { return impl_ ? impl_->vocabulary().bos() : -1; }

std::int32_t Tokenizer::eos() const { return impl_ ? impl_->vocabulary().eos() : -1; }

std::span<const std::int32_t> Tokenizer::stop_ids() const { return impl_ ? impl_->vocabulary().stop_ids() : std::span<const std::int32_t>(); }

bool Tokenizer::add_space_prefix() const { return impl_ && impl_->add_space_prefix(); }

}  // namespace rondo
