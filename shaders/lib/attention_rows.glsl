// Attention of many rows by workgroups of kM rows (a row is one query of one head of a KV head's group), of which kShares
// invocations share a row and weigh its scores. kParts workgroups side by side have the same rows and share the columns of their values: each scores all keys, and has
// kValueChunks times 64 columns or fewer. Include behind lib/attention.glsl and the buffers query, values and partials; needs kM, kShares, kValueWidth,
// kBlock, kParts, kGroup and kSplit, and the mask as vectors, mask4.
#include "lib/vote.glsl"

const uint kValueChunks = ((kValueWidth + 63u) / 64u + kParts - 1u) / kParts;  // of 64 columns, that a workgroup has
uint first_value() { return kParts == 1u ? 0u : gl_WorkGroupID.x % kParts * (kValueChunks * 64u); }

uint self;  // this invocation's place
uint sequence, kv_head, first_row, end_row;
Span span;
uint own_row, share;  // that this invocation weighs, of the tile, and its share of the row
uint own_head, own_query;
int own_position;
uint key_base, value_base;
float row_max, row_weight;  // the weight of this invocation's share

uint head_of_row(uint row) { return kv_head * kGroup + row % kGroup; }
uint query_at(uint row) { return p.query_offset + sequence * p.query_sequence + head_of_row(row) * p.query_head + (row / kGroup) * p.query_row; }

// False where there is nothing to do.
bool find_rows() {
  sequence = divided(gl_WorkGroupID.y, p.kv_heads);
  kv_head = gl_WorkGroupID.y - sequence * p.kv_heads;
  first_row = (gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x) / kParts * kM;  // those that see most keys begin first
  const bool is_active = sequence_active(sequence);
  end_row = min(first_row + kM, min(p.queries, sequence_count(sequence)) * kGroup);
  span = span_of(sequence, first_row / kGroup, (max(end_row, 1u) - 1u) / kGroup);
  if (!is_active || first_row >= end_row) return false;
  own_row = self / kShares;
  share = self % kShares;
  key_base = p.key_offset + sequence * p.key_sequence + kv_head * p.key_head;
  value_base = p.value_offset + sequence * p.value_sequence + kv_head * p.value_head;
  return true;
}

void begin_row(uint row) {
  own_head = p.first_head + head_of_row(row);
  own_query = row / kGroup;
  own_position = span.position0 + int(own_query);
  // A sink is a key whose value is zero: in the first split, or the only one.
  const bool sink = has(RONDO_ATTENTION_SINKS) && gl_WorkGroupID.z == 0u;
  row_max = sink ? sink_of(own_head) : kLowest;
  row_weight = sink && share == 0u ? 1.0 : 0.0;
}

// The score of key j for this invocation's row, of which `product` is that of query and key.
float own_score(float product, uint j) { return mix(kLowest, finished_score(product, sequence, own_head, own_query, own_position, int(min(j, span.reach - 1u))), j < span.reach); }

// Of bits of magnitudes: that of a NaN is beyond that of infinity, and this beyond all numbers'.
uint larger(uint largest, vec4 x) {
  const uvec4 bits = floatBitsToUint(x) & 0x7fffffffu;
  return max(max(largest, max(bits.x, bits.y)), max(bits.z, bits.w));
}

// What splits share out; the first of a split is that of the workgroup's number.
uint block_step() { return kSplit == 1u ? p.n_splits : 1u; }
uint first_block() { return span.start / kBlock / block_step() * block_step() + (kSplit == 1u ? gl_WorkGroupID.z : 0u); }

// Whether the mask lets this invocation's row see keys of its share of the 64 from `first_key` on.
bool mask_shows(uint first_key) {
  const uint row_at = mask_row_at(sequence, own_head, own_query);
  if (!has(RONDO_ATTENTION_MASK_KEYS)) return mask[row_at] != kMaskForbids;
  const uint last = row_at + span.reach - 1u, first = row_at + first_key;
  bool shows = false;
  if (p.keys % 4u == 0u) {
    [[unroll]] for (uint i = 0u; i < 16u / kShares; ++i) shows = any(notEqual(mask4[min(first / 4u + i * kShares + share, last / 4u)], uvec4(kMaskForbids))) || shows;
  } else {
    [[dont_unroll]] for (uint i = share; i < kBlock; i += kShares) shows = mask[min(first + i, last)] != kMaskForbids || shows;
  }
  return shows;
}

// The first block from `block` on, of this split's, that no mask hides from all rows. By all invocations.
uint seen_block(uint block) {
  if (!has(RONDO_ATTENTION_MASK)) return block;
  [[dont_unroll]] while (block * kBlock < span.reach && !vote_some(mask_shows(block * kBlock), self == 0u)) block += block_step();
  return block;
}
// The first of all, which begins the votes; not where rows are found, which takes 4 registers more on Intel.
uint first_seen_block() {
  if (has(RONDO_ATTENTION_MASK)) {
    begin_votes(self == 0u);
    barrier();
  }
  return seen_block(first_block());
}

// Row of the output, and where a split's partials of it begin.
uint output_row(uint row) { return (sequence * p.queries + row / kGroup) * p.heads + p.first_head + head_of_row(row); }
uint partials_at(uint row) { return (output_row(row) * p.n_splits + gl_WorkGroupID.z) * RONDO_PARTIAL_STRIDE(kValueWidth); }
// Zeros where no key is allowed; 0 / 0 where all scores are minus infinity.
bool sees_nothing(float highest, float total) { return total == 0.0 && highest == kLowest; }
