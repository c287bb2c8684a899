// Queries, keys and values that a linear of few rows turns and puts into the caches itself (kRotates), so that rope_kv_write is no dispatch: rows of the weight make H heads of D
// outputs for queries, behind them G each for keys and values, or some of the three. A row of the input stands at the position that the step's state has for it, which is also its row of the caches.
// A workgroup makes whole pairs of elements that turn together: with kInterleaved neighbours, else of the first half of a head and of its second, kWorkgroupOutputs / 2 each. Caches are
// f32 or f16. Needs lib/linear_few_rows.glsl's constants.
#include "lib/float16.glsl"
layout(std430, set = 0, binding = 3) readonly buffer Table { vec2 rope_table[]; };
layout(std430, set = 0, binding = 6) writeonly buffer KeyCache { uint key_cache[]; };
layout(std430, set = 0, binding = 7) writeonly buffer ValueCache { uint value_cache[]; };
#include "lib/rope_angle.glsl"

const bool kRotates = (kRotation & RONDO_ROTATION) != 0u;
const bool kInterleaved = (kRotation & RONDO_ROTATION_INTERLEAVED) != 0u;
const uint kWorkgroupOutputs = kRows * kSubgroups / kSplit;
const uint kHalfOutputs = kWorkgroupOutputs / 2u;
shared float to_rotate[kRotates ? kTokens * kWorkgroupOutputs : 1u];

// The head that a workgroup's outputs are of, counted from the first of queries, and which element of it the i-th is; the next one is the next, but where a half ends.
uint workgroup_head() { return gl_WorkGroupID.x * kWorkgroupOutputs / p.RONDO_ROTATION_HEAD_DIM; }
uint element_at(uint i) {
  const uint head_dim = p.RONDO_ROTATION_HEAD_DIM, begin = gl_WorkGroupID.x * kWorkgroupOutputs - workgroup_head() * head_dim;
  if (kInterleaved) return begin + i;
  return begin / 2u + i % max(kHalfOutputs, 1u) + (i >= kHalfOutputs ? head_dim / 2u : 0u);
}
uint output_at(uint i) { return workgroup_head() * p.RONDO_ROTATION_HEAD_DIM + element_at(i); }

// An invocation stores two neighbouring outputs of a row: which row of the workgroup, and which output is the first of the two.
uint turned_token() { return gl_LocalInvocationID.x / max(kHalfOutputs, 1u); }
uint turned_output() { return 2u * (gl_LocalInvocationID.x % max(kHalfOutputs, 1u)); }

const uint kNoPosition = ~0u;

// The position of that row, or kNoPosition if it doesn't count: to be asked for first of all.
uint turned_position(uint first_token) {
  const uint token = min(first_token + turned_token(), p.rows - 1u);
  const uvec3 state = row_state(token, p.rows_per_sequence);
  const uint begin = step_state[token / p.rows_per_sequence * RONDO_STATE_WORDS + RONDO_STATE_POSITION];
  return turned_token() < kTokens && first_token + turned_token() < p.rows && row_valid(state) ? begin + state.x : kNoPosition;
}

bool is_turned(uint element) { return workgroup_head() < p.RONDO_ROTATION_HEADS + p.RONDO_ROTATION_KEY_HEADS && (!kInterleaved || element < 2u * p.RONDO_ROTATION_FREQUENCIES); }

// Cos and sin for the two, to be asked for before sums are made.
struct Turn { vec2 angles[2]; };
Turn find_turn(uint position) {
  Turn turn;
  const uint element = element_at(turned_output()), frequencies = p.RONDO_ROTATION_FREQUENCIES;
  [[unroll]] for (uint j = 0u; j < 2u; ++j) turn.angles[j] = vec2(1.0, 0.0);
  if (position == kNoPosition || !is_turned(element)) return turn;
  [[unroll]] for (uint j = 0u; j < 2u; ++j) {
    const uint e = element + j, frequency = kInterleaved ? e / 2u : e < frequencies ? e : e - frequencies;
    turn.angles[j] = rope_angle(position, frequency, frequencies, p.RONDO_ROTATION_HIGH_LINES) * p.RONDO_ROTATION_FACTOR;
  }
  return turn;
}

// The workgroup's i-th output of its t-th row.
void keep_for_rotation(uint t, uint i, float value) { to_rotate[t * kWorkgroupOutputs + i] = value; }

// All invocations call, once theirs are kept.
void rotate_outputs(uint first_token, uint position, Turn turn) {
  barrier();
  if (position == kNoPosition) return;
  const uint first = turned_output(), at = turned_token() * kWorkgroupOutputs + first, element = element_at(first);
  const vec2 x = vec2(to_rotate[at], to_rotate[at + 1u]);
  vec2 made = x;
  if (is_turned(element)) {
    const bool second = !kInterleaved && first >= kHalfOutputs;
    const uint partner = second ? at - kHalfOutputs : at + kHalfOutputs;
    const vec2 y = kInterleaved ? x.yx : vec2(to_rotate[partner], to_rotate[partner + 1u]);
    // Of an interleaved pair the second element is one of the second half.
    [[unroll]] for (uint j = 0u; j < 2u; ++j) {
      const bool adds = kInterleaved ? j == 1u : second;
      const vec2 angle = turn.angles[j];
      made[j] = adds ? y[j] * angle.y + x[j] * angle.x : x[j] * angle.x - y[j] * angle.y;
    }
  }
  const uint heads = p.RONDO_ROTATION_HEADS, key_heads = p.RONDO_ROTATION_KEY_HEADS, head = workgroup_head();
  const uint token = first_token + turned_token(), sequence = token / p.rows_per_sequence;
  if (head < heads) {
    const uint to = ((sequence * heads + head) * p.rows_per_sequence + token - sequence * p.rows_per_sequence) * p.RONDO_ROTATION_HEAD_DIM + element;
    values[to] = to_element(made.x);
    values[to + 1u] = to_element(made.y);
    return;
  }
  const uint cache_rows = p.RONDO_ROTATION_CACHE_ROWS;
  const uint row = (kRotation & RONDO_ROTATION_RING) != 0u ? position % cache_rows : position;
  if (row >= cache_rows) return;
  const bool is_key = head < heads + key_heads;
  const uint of_cache = sequence * p.RONDO_ROTATION_KV_HEADS + head - heads - (is_key ? 0u : key_heads);
  const uint to = (of_cache * cache_rows + row) * p.RONDO_ROTATION_CACHE_ROW + element;
  if ((kRotation & RONDO_ROTATION_HALVES) != 0u) {
    const uint word = pack_halves(made.x, made.y);
    if (is_key) key_cache[to >> 1] = word;
    else value_cache[to >> 1] = word;
  } else {
    [[unroll]] for (uint j = 0u; j < 2u; ++j) {
      if (is_key) key_cache[to + j] = floatBitsToUint(made[j]);
      else value_cache[to + j] = floatBitsToUint(made[j]);
    }
  }
}
