#include "models/network.h"

#include <algorithm>
#include <limits>

#include "graph/cache_layout.h"
#include "runtime/fmt.h"

namespace rondo::models {

const char* role_name(Role role) {
  switch (role) {
    case Role::kPrefill: return "prefill";
    case Role::kPrefillAndSample: return "prefill and sample";
    case Role::kDecode: return "decode";
    case Role::kLogits: return "logits";
    case Role::kEncode: return "encode";
    case Role::kPool: return "pool";
    case Role::kHead: return "head";
    case Role::kAttention: return "attention";
    case Role::kEncodeImage: return "encode image";
    case Role::kPoolImage: return "pool image";
    case Role::kHeadImage: return "head of image";
    case Role::kAttentionImage: return "attention of image";
  }
  return "";
}

std::int64_t cache_positions(const CacheSpec& spec, std::int64_t n_ctx, std::int64_t n_source) {
  switch (spec.extent) {
    case CacheExtent::kContext: return n_ctx;
    case CacheExtent::kWindow: return std::min(spec.window - 1 + kMostStepRows, n_ctx);
    case CacheExtent::kSource: return n_source;
  }
  return n_ctx;
}

std::uint32_t tokens_to_rewind(std::span<const CacheSpec> caches, std::int64_t n_ctx) {
  const bool rings = std::any_of(caches.begin(), caches.end(), [&](const CacheSpec& spec) { return spec.extent == CacheExtent::kWindow && cache_positions(spec, n_ctx, n_ctx) < n_ctx; });
  return rings ? static_cast<std::uint32_t>(kMostStepRows) : std::numeric_limits<std::uint32_t>::max();
}

std::uint64_t kv_bytes_per_token(std::span<const CacheSpec> caches, graph::Type kv_type) {
  std::uint64_t bytes = 0;
  for (const CacheSpec& spec : caches) {
    if (spec.extent != CacheExtent::kContext) continue;
    for (const std::int64_t width : {spec.key_width, spec.value_width}) bytes += graph::cache_layout(kv_type, 1, width).size_bytes * static_cast<std::uint64_t>(spec.n_heads);
  }
  return bytes;
}

Result<std::span<const std::int32_t>> Network::until_end(std::span<const std::int32_t> tokens) const {
  if (!ends_at_largest_id && !text_end) return tokens;
  const auto end = ends_at_largest_id ? std::max_element(tokens.begin(), tokens.end()) : std::find(tokens.begin(), tokens.end(), *text_end);
  if (end == tokens.end()) return Status(StatusCode::kInvalidArgument, fmt::format("a text of a {} has no token {}, at which it ends", facts.architecture, text_end.value_or(-1)));
  return tokens.first(static_cast<std::size_t>(end - tokens.begin()) + 1);
}

const RoleSpec* Network::find(Role role) const {
  const auto found = std::find_if(roles.begin(), roles.end(), [&](const RoleSpec& spec) { return spec.role == role; });
  return found == roles.end() ? nullptr : &*found;
}

}  // namespace rondo::models
