#include "tools/check/cases.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace rondo::check {

namespace {

#define RONDO_WEIGHT_TYPE(enumerator, name, value, text, ggml) text,
const std::initializer_list<std::string_view> kWeightNames = {
#include "lib/weight_types.inc"
};
#undef RONDO_WEIGHT_TYPE

/// In a case, each of these stands for all of its list: the case is run for every one.
struct Many {
  std::string_view mark;
  std::initializer_list<std::string_view> words;
};

const Many kMany[] = {
    {"{size}", {"1", "2", "3", "7", "37", "41", "89", "113", "257"}},
    {"{weight}", kWeightNames},
    {"{some}", {"f16", "q8_0", "q6_K"}},  // one of each block size, where the type is decoded by what {weight} covers
    {"{dense}", {"f32", "f16", "bf16"}},
    {"{cache}", {"f32", "f16", "q8_0"}},
    {"{unary}", {"relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "exp", "neg"}},
    {"{binary}", {"add", "sub", "mul", "div"}},
    {"{softmax}", {"softmax", "log_softmax"}},
    {"{reduce}", {"mean", "sum", "max"}},
    {"{act}", {"none", "relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid", "exp", "neg"}},
    {"{width}", {"16", "32", "40", "64", "72", "80", "96", "128", "256"}},
    {"{style}", {"half", "interleaved"}},
};

constexpr std::string_view kCases[] = {
    // Element by element: sizes around the workgroup, all layouts, rows that do not count.
    "{unary} input (3, {size})",
    "{unary} input (7, 37) transposed",
    "{unary} input (2, 3, 5, 7) permuted",
    "{unary} input (3, 41) stepped * 0.01",
    "{unary} input (14, 37), valid [5, 0]",
    "{binary} a (3, {size}), b (3, {size})",
    "{binary} a (2, 7, 1, 37), b (3, 1)",
    "{binary} a (41), b (2, 7, 41)",
    "{binary} a (7, 37) transposed, b (7, 37) sliced",
    "{binary} a (2, 3, 5, 7) permuted, b (5, 1) stepped",
    "{binary} a (10, 5), b (1), valid [2, 5]",
    "{binary} a (3, 41), b ()",
    "{binary} a (), b ()",
    "tanh input ()",
    "glu gate (3, {size}), up (3, {size}), activation silu",
    "glu gate (7, 37), up (7, 37) transposed, activation {act}",
    "glu gate (7, 37) sliced * 0.01, up (7, 37), activation gelu",

    // Along an axis.
    "{softmax} input (3, {size})",
    "{softmax} input (3, {size}, 5), axis 1, scale 0.3",
    "{softmax} input (2, 3, 7, 41) permuted, axis -2",
    "{softmax} input (2, 3, 7, 41), mask (7, 41)",
    "{softmax} input (2, 7, 41) sliced, mask (2, 1, 41) * 5, scale 3",
    "{reduce} input (3, {size})",
    "{reduce} input (3, {size}, 5), axis 1, keep",
    "{reduce} input (2, 3, 7, 41) permuted, axis 0",
    "{reduce} input (7, 37) stepped",
    "{reduce} input (2, 3, 7, 41), axes [-1, 1]",
    "{reduce} input (2, 3, 7, 41) permuted, axes [0, 2], keep",
    "{reduce} input (3, 41) sliced, axes [0, 1]",
    "{reduce} input (3, 5, 7), axes [0]",
    "{reduce} input (257), axis 0",
    "layer_norm input (3, {size}), weight ({size}), bias ({size})",
    "layer_norm input (7, 257), epsilon 1e-5",
    "layer_norm input (7, 89) * 0.003, weight (89), bias (89), epsilon 1e-5",
    "layer_norm input (7, 89) * 0.003, weight (89), epsilon 1e-6",
    "layer_norm input (2, 5, 113) sliced, weight (113)",
    "layer_norm input (10, 113), valid [3, 5]",
    "layer_norm input (2, 5, 3, 24) sliced, weight (24), bias (24)",
    "layer_norm input (3, 516), weight (516), bias (516)",
    "layer_norm input (7, 92) * 0.003, bias (92), epsilon 1e-5",
    "layer_norm input (2, 5, 116) sliced, weight (116)",
    "layer_norm input (10, 128), weight (128), valid [3, 5]",
    "layer_norm input (2, 8200), weight (8200), bias (8200)",
    "rms_norm input (3, {size}), weight ({size})",
    "rms_norm input (7, 257), epsilon 1e-5",
    "rms_norm input (7, 89) * 0.003, weight (89), epsilon 1e-5",
    "rms_norm input (7, 89), weight (89), weight_offset 1, epsilon 1e-6",
    "rms_norm input (2, 5, 3, 24), weight (24)",
    "rms_norm input (1, 7, 6, 24) sliced, weight (24)",
    "rms_norm input (7, 89), weight (89), residual (7, 89)",
    "rms_norm input (2, 5, 113), residual (2, 5, 113) sliced",
    "rms_norm input (2, 5, 113) sliced, weight (113)",
    "rms_norm input (10, 113), weight (113), valid [3, 5]",
    "rms_norm input (3, 516), weight (516)",
    "rms_norm input (7, 92) * 0.003, weight (92), weight_offset 1, epsilon 1e-5",
    "rms_norm input (2, 5, 116) sliced, residual (2, 5, 116)",
    "rms_norm input (10, 128), weight (128), valid [3, 5]",
    "rms_norm input (2, 8200), weight (8200)",
    "argmax input (3, {size})",
    "argmax input (2, 70000)",
    "argmax input (7, 41) sliced, valid [2]",
    "top_k input (3, {size}), k 1",
    "top_k input (3, 257), k 257",
    "top_k input (2, 5, 113) sliced, k 40",

    // Moving.
    "copy input (3, {size}) stepped",
    "copy input (2, 3, 5, 7) permuted",
    "concat a (3, 7), b (3, 41), c (3, 1), axis 1",
    "concat a (2, 7, 5) permuted, b (3, 7, 5) sliced, axis 0",
    "concat a (1, 1, 37), b (3, 7, 37) transposed, c (3, 1, 1), axis 1",
    "concat a (5), b (2, 3, 7), axis -1",
    "pad input (7, 37) transposed, before [1, 0], after [2, 3], value -1.5",
    "pad input (2, 3, 5, 7) permuted, before [0, 1, 2, 0], after [1, 0, 0, 4]",
    "slice input (7, 41) permuted, starts [-3, 1], ends [7, -1], steps [1, 3]",
    "slice input (2, 7, 41) permuted, axis -2, start -5, step 2",
    "slice input (7, 41), axis 1, start 3, end -3",
    "transpose input (2, 3, 5, 7) sliced, permutation [2, 0, 3, 1]",
    "transpose input (2, 3, 5, 7), permutation [0, -1, -3, 2]",
    "reshape input (6, 35) transposed, shape [7, 30]",
    "reshape input (6, 35), shape [7, -1, 2]",
    "reshape input (1, 1), shape []",
    "embedding ids (7, 3), weight {weight} (113, 256)",
    "embedding ids ({size}), weight {dense} (41, 37) sliced",
    "embedding ids (7, 3), weight {some} (113, 256), scale 22.627417",
    "embedding ids (7), weight f32 (41, 37), scale 0.3",
    "sinusoidal_positions positions (7), width 64",
    "sinusoidal_positions positions (7), width 64, end_at_theta",
    "sinusoidal_positions positions (7), width 2, end_at_theta, layout split",
    "sinusoidal_positions positions (41) [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181, 6765, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25, 26, 27, "
    "28, 29, 30, 31], width 6, theta 500, layout split",

    // Matrices. Every weight type, one row and the tiles of many, outputs beside the tile.
    "linear input (1, 256), weight {some} (41, 256)",
    "linear input (9, 256), weight {weight} (13, 256)",
    "linear input (113, 256), weight {some} (141, 256)",
    "linear input (70, 64) * 0.0001, weight f16 (41, 64)",
    "linear input (9, 768), weight {some} (41, 768), bias (41), activation gelu, residual (9, 41)",
    "linear input (10, 545), weight f32 (13, 545), valid [2, 5]",
    "linear input (3, {size}), weight f32 (7, {size})",
    "linear input (1, 41), weight f32 ({size}, 41)",
    "linear input (3, 89), weight f32 ({size}, 89)",
    "linear input (41, 37), weight f32 (89, 37)",
    "linear input (2, 1120), weight q8_0 (13, 1120) sliced, bias (13)",
    "linear input (7, 1120), weight q8_0 (13, 1120)",
    "linear input (1, 4160), weight q4_0 (7, 4160)",
    "linear input (1, 64), weight q4_0 (8448, 64)",
    "linear input (2, 320), weight q4_0 (267, 320), bias (267)",
    "linear input (3, 64) sliced, weight q8_0 (113, 64), residual (3, 113) sliced",
    "linear input (1, 64), weight q8_0 (41, 64), bias (41), activation {act}, residual (1, 41)",
    "linear input (17, 64), weight q4_0 (41, 64), bias (41), activation gelu, residual (17, 41)",
    "linear input (10, 64), weight q8_0 (41, 64), valid [2, 5]",
    "linear input (2, 3, 2, 37), weight f16 (89, 37)",
    "linear input (3, 1031), weight f16 (13, 1031), residual (3, 13)",
    "linear input (2, 3, 64), weight q8_0 (41, 64), residual (41)",
    "linear input (2, 3, 64), weight q8_0 (41, 64), residual (3, 41), activation gelu",
    "linear input (2, 9, 37), weight f32 (41, 37), residual (2, 1, 1)",
    "linear_glu input (1, 256), weight {some} (26, 256)",
    "linear_glu input (17, 64), weight q8_0 (82, 64), activation gelu_tanh",
    "linear_glu input (10, 96), weight q4_0 (226, 96), valid [2, 5]",
    "linear_glu input (9, 544), weight q8_0 (82, 544), activation gelu_tanh",
    // Mixtures of experts: an input for all choices of a token or for each, numbers beyond those that there are.
    "route logits (3, {size}), k 1",
    "route logits (2, 5, 128), k 8",
    "route logits (7, 41) sliced, k 5, normalize false",
    "route logits (3, 1000), k 64",
    "route logits (10, 8), k 2, valid [3, 5]",
    "expert_linear input (1, 256), weight {weight} (39, 256), experts (1, 2) [2, 0], count 3",
    "expert_linear input (3, {size}), weight f32 (28, {size}), experts (3, 2) [3, 0, 1, 2, 2, 1], count 4",
    "expert_linear input (3, 128) sliced, weight q8_0 (82, 64), experts (3, 2) [1, 0, 0, 7, -4, 1], count 2, bias (82)",
    "expert_linear input (10, 64), weight q4_0 (226, 64), experts (10, 1) [0, 1, 1, 0, 0, 1, 0, 1, 0, 1], count 2, valid [2, 5]",
    "expert_linear_glu input (3, 256), weight {some} (108, 256), experts (3, 2) [1, 0, 0, 1, 1, 0], count 2",
    "expert_linear_glu input (3, 64), weight mxfp4 (82, 64), experts (3, 1) [0, 0, 0], count 1, bias (82), activation quick_gelu, limit 7, up_bias 1",
    "expert_linear input (37, 256), weight {some} (123, 256), experts (37, 2), count 3",
    "expert_linear input (257, 128), weight f16 (369, 64), experts (257, 2), count 9, bias (369)",
    "expert_linear input (60, 41), weight f32 (267, 41), experts (60, 3), count 3, valid [13, 1, 20]",
    "expert_linear_glu input (113, 64), weight q4_0 (452, 64), experts (113, 1), count 2, bias (452), activation quick_gelu, limit 7, up_bias 1",
    "weighted_sum input (5, {size}), weights (5, 1)",
    "weighted_sum input (2, 5, 123) sliced, weights (2, 5, 3) sliced, residual (2, 5, 41) sliced",
    "weighted_sum input (10, 296), weights (10, 8), valid [3, 5]",
    "glu gate (7, 37) * 9, up (7, 37) * 9, activation quick_gelu, limit 7, up_bias 1",
    "matmul a (7, {size}), b ({size}, 3)",
    "matmul a ({size}, 5), b (5, 41)",
    "matmul a (41, 37), b (37, {size})",
    "matmul a (2, 3, 37, 41), b (3, 89, 41), transpose_b, scale 0.125",
    "matmul a (3, 41, 7), b (2, 1, 41, 5), transpose_a",
    "matmul a (3, 37, 64), b (3, 89, 64), transpose_b",
    "matmul a (64, 37), b (64, 41), transpose_a",
    "matmul a (2, 7, 5), b (2, 5, 41), valid [7, 7], inactive [1]",
    "matmul a (7, 37) transposed, b (37, 41) stepped",
    "matmul a (2, 3, 5, 7) permuted, b (7, 37) sliced",
    "patch_embed pixels (2, 3, 8, 12), weight f32 (37, 3, 4, 4), bias (37), patch 4",
    "patch_embed pixels (1, 3, 14, 7) permuted, weight f16 (41, 3, 7, 7), patch 7",
    "patch_embed pixels (3, 2, 8, 12), weight q8_0 (37, 2, 4, 4), patch 4",

    // Positions and caches.
    "rope input (1, 3, 7, 16), positions (7), style {style}",
    "rope input (2, 3, 5, 80), positions (2, 5), style {style}, dimensions 20, theta 500000",
    "rope input (2, 2, 3, 37) sliced, positions (2, 3), dimensions 36, frequency_factors (18), attention_factor 1.2",
    "rope input (2, 3, 5, 64) transposed, positions (5), max_position 128, valid [3, 0]",
    "kv_write cache {cache} (2, 3, 41, 37), update (2, 3, 7, 37), start [5, 34]",
    "kv_write cache {cache} (2, 1, 7, 64), update (2, 1, 5, 64) sliced, start [1, 0], count [3, 0]",
    "kv_write cache {cache} (1, 2, 113, 16), update (1, 2, 113, 16) joined, start [0]",
    "kv_write cache {cache} (2, 3, 41, 37), update (2, 3, 7, 37), start [100, 38], ring",
    "rope_kv_write query (2, 3, 5, 64) joined, key (2, 1, 5, 64) joined, value (2, 1, 5, 64) joined, positions (2, 5), start [40, 120], key_cache {cache} (2, 1, 41, 64), value_cache {cache} (2, 1, 41, 64), ring",
    "norm_rope_kv_write query (1, 4, 3, 40) joined, key (1, 2, 3, 40) joined, value (1, 2, 3, 40) joined, positions (1, 3) [81, 82, 83], start [81], key_cache {cache} (1, 2, 41, 40), value_cache {cache} (1, 2, 41, 40), "
    "norm_weights (2, 40), ring",
    "rope_kv_write query (1, 4, 7, 40) joined, key (1, 2, 7, 40) joined, value (1, 2, 7, 40) joined, positions (1, 7), start [5], key_cache {cache} (1, 2, 41, 40), value_cache {cache} (1, 2, 41, 40)",
    "rope_kv_write query (2, 3, 1, 64) joined, key (2, 1, 1, 64) joined, value (2, 1, 1, 64) joined, positions (2, 1), start [40, 0], key_cache {cache} (2, 1, 41, 64), value_cache {cache} (2, 1, 41, "
    "64), style interleaved, dimensions 32",
    "norm_rope_kv_write query (1, 4, 7, 40) joined, key (1, 2, 7, 40) joined, value (1, 2, 7, 40) joined, positions (1, 7) [5, 6, 7, 8, 9, 10, 11], start [5], key_cache {cache} (1, 2, 41, 40), value_cache {cache} "
    "(1, 2, 41, 40), norm_weights (2, 40), epsilon 1e-5",
    "rope_kv_write query (2, 3, 5, 64) joined, key (2, 1, 5, 64) joined, value (2, 1, 5, 64), positions (2, 5) [38, 39, 40, 41, 42, 38, 39, 40, 41, 42], start [38, 38], key_cache {cache} (2, 1, 41, 64), value_cache {cache} "
    "(2, 1, 41, 64), ring, of_step, state.position 38",
    "rope_kv_write query (1, 4, 3, 40) joined, key (1, 2, 3, 40) joined, value (1, 2, 3, 40) joined, positions (1, 3) [5, 6, 7], start [5], key_cache {cache} (1, 2, 41, 40), value_cache {cache} (1, 2, 41, 40), of_step, "
    "state.position 5",
    "norm_rope_kv_write query (1, 4, 7, 40) joined, key (1, 2, 7, 40) joined, value (1, 2, 7, 40) sliced, positions (1, 7) [5, 6, 7, 8, 9, 10, 11], start [5], key_cache {cache} (1, 2, 41, 40), value_cache {cache} "
    "(1, 2, 41, 40), norm_weights (2, 40), of_step, state.position 5",
    "norm_rope_kv_write query (2, 3, 1, 256) joined, key (2, 1, 1, 256) joined, value (2, 1, 1, 256) joined, positions (2, 1) [40, 0], start [40, 0], key_cache {cache} (2, 1, 41, 256), value_cache {cache} (2, 1, 41, "
    "256), norm_weights (2, 256), epsilon 1e-6, weight_offset 1, style interleaved, dimensions 32",

    // Attention: heads shared in every way, widths of models and odd ones, one query and many, a block of keys and more.
    "attention query (1, 4, 1, 64), key {cache} (1, 2, 257, 64), value {cache} (1, 2, 257, 64), causal",
    "attention query (1, 4, 9, 64), key {cache} (1, 2, 89, 64), value {cache} (1, 2, 89, 64), causal",
    "attention query (1, 1, {size}, 8), key f32 (1, 1, {size}, 8), value f32 (1, 1, {size}, 8), causal",
    "attention query (1, 3, 2, 32), key f32 (1, 1, {size}, 32), value f32 (1, 1, {size}, 32)",
    "attention query (2, 6, 7, 40), key f16 (2, 3, 41, 40), value f16 (2, 3, 41, 24), query_offset [34, 3], lengths [41, 10], causal",
    "attention query (2, 2, 3, 72), key f32 (2, 2, 41, 72), value f32 (2, 2, 41, 72), lengths [41, 0]",
    "attention query (3, 4, 7, 16), key f16 (1, 2, 41, 16), value f16 (1, 2, 41, 24), lengths [37], query_offset [34], causal",
    "attention query (2, 2, 1, 64), key f32 (1, 2, 89, 64), value f32 (2, 2, 89, 64), lengths [37]",
    "attention query (2, 4, 7, 16), key f32 (1, 2, 41, 16), value f32 (1, 2, 41, 16), lengths [37, 5], query_offset [30], sinks (4) sliced",
    "attention query (1, 2, 3, 80) transposed, key f32 (1, 2, 41, 80) sliced, value f32 (1, 2, 41, 80) sliced",
    "attention query (1, 1, 3, 128), key f16 (1, 1, 89, 128), value f16 (1, 1, 89, 128), scale 1",
    "attention query (1, 1, 2, 256), key f16 (1, 1, 41, 256), value f16 (1, 1, 41, 256)",
    "attention query (1, 1, 5, 64), key f32 (1, 1, 8, 64), value f32 (1, 1, 8, 64), causal",
    "attention query (1, 2, 1, 64), key f32 (1, 1, 8, 64), value f32 (1, 1, 8, 64), causal, window_back 2",
    "attention query (1, 2, 2, 512), key f16 (1, 1, 41, 512), value f16 (1, 1, 41, 320)",
    "attention query (1, 2, 2, 512), key f16 (1, 1, 41, 512), value f16 (1, 1, 41, 512)",
    "attention query (1, 2, 37, 256), key f16 (1, 1, 89, 256), value f16 (1, 1, 89, 256), causal",
    "attention query (1, 4, 9, 512), key f16 (1, 1, 41, 512), value f16 (1, 1, 41, 512), causal",
    "attention query (1, 2, 37, 64), key q8_0 (1, 1, 89, 64), value q8_0 (1, 1, 89, 200), causal",
    "attention query (1, 2, 9, 64), key f16 (1, 1, 89, 64), value f16 (1, 1, 89, 320)",
    "attention query (1, 8, 1, 96), key {cache} (1, 2, 521, 96), value {cache} (1, 2, 521, 128), causal, sinks (8)",
    "attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), mask bool (7, 41)",
    "attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), mask bool (2, 1, 1, 41), causal",
    "attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), mask (2, 4, 1, 41)",
    "attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), mask bool (2, 1, 7, 1)",
    "attention query (2, 4, 37, 16), key f16 (2, 2, 300, 16), value f16 (2, 2, 300, 24), mask bool (37, 300), causal",
    "attention query (1, 4, 37, 64), key {cache} (1, 2, 257, 64), value {cache} (1, 2, 257, 64), mask (1, 4, 1, 257)",
    "attention query (2, 4, 1, 64), key {cache} (2, 2, 300, 64), value {cache} (2, 2, 300, 64), mask bool (2, 1, 1, 300), lengths [300, 100], query_offset [299, 99]",
    "attention query (1, 4, 37, 16), key f16 (1, 2, 150, 16), value f16 (1, 2, 150, 16), causal, window_back 36",
    "attention query (1, 4, 1, 64), key {cache} (1, 2, 257, 64), value {cache} (1, 2, 257, 64), causal, window_back 99, softcap 2",
    "attention query (2, 4, 9, 40), key f16 (2, 2, 150, 40), value f16 (2, 2, 150, 40), query_offset [141, 0], lengths [150, 9], causal, window_back 3",
    "attention query (2, 4, 1, 64), key f16 (2, 2, 257, 64), value f16 (2, 2, 257, 64), query_offset [256, 40], lengths [257, 41], causal, window_back 0, softcap 20",
    "attention query (1, 4, 1, 64), key {cache} (1, 2, 257, 64), value {cache} (1, 2, 257, 64), query_offset [1000], lengths [1001], causal, window_back 99, ring",
    "attention query (2, 4, 7, 16), key {cache} (2, 2, 41, 16), value {cache} (2, 2, 41, 24), query_offset [94, 3], lengths [101, 10], causal, window_back 30, ring",
    "attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), query_offset [94, 36], lengths [101, 43], causal, ring, sinks (4), softcap 3",
    "attention query (1, 2, 7, 256), key f16 (1, 1, 89, 256), value f16 (1, 1, 89, 256), window_back 20, softcap 3",
    "attention query (1, 4, 37, 16), key f16 (1, 2, 150, 16), value f16 (1, 2, 150, 16), window_back 4, window_ahead 7, prefix 3",
    "attention query (1, 4, 37, 16), key f16 (1, 2, 150, 16), value f16 (1, 2, 150, 16), chunk 32, chunks_back 1, causal, softcap 2, sinks (4)",
    "attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 16), alibi_slopes (4) sliced * 0.3, query_offset [34, 3], lengths [41, 10]",
    "attention query (1, 4, 7, 16), key f16 (1, 2, 150, 16), value f16 (1, 2, 150, 16), relative_bias (32, 4)",
    "attention query (1, 4, 7, 16), key f16 (1, 2, 150, 16), value f16 (1, 2, 150, 16), relative_bias (32, 4), bidirectional_buckets false, causal, max_distance 64",
    "attention query (1, 4, 7, 16), key f16 (1, 2, 41, 16), value f16 (1, 2, 41, 24), relative_key (9, 16), relative_value (33, 24)",
    "attention query (2, 4, 37, 16), key f16 (2, 2, 300, 16), value f16 (2, 2, 300, 24), query_offset [263, 30], lengths [300, 67], causal, relative_key (9, 16), relative_value (33, 24)",
    "attention query (1, 4, 37, 64), key f32 (1, 2, 150, 64), value f32 (1, 2, 150, 64), relative_key (129, 64)",
    "attention query (1, 4, 37, 16), key f16 (1, 2, 300, 16), value f16 (1, 2, 300, 24), query_offset [0], relative_key (1, 16), relative_value (9, 24)",
    "attention query (1, 1, 9, 320), key f32 (1, 1, 41, 320), value f32 (1, 1, 41, 8), relative_key (9, 320)",
    "attention query (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), mask bool (2, 4, 7, 41), lengths [41, 5], query_offset [0, 34], causal, window_back 20, softcap 3, sinks (4), "
    "alibi_slopes (4), relative_bias (16, 4), relative_key (3, 16), relative_value (5, 24)",
    "attention query (2, 4, 6, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 16), valid [5, 0]",
    "attention_weights query (1, 4, 9, 64), key {cache} (1, 2, 89, 64), causal",
    "attention_weights query (1, 3, 2, 8), key f32 (1, 1, {size}, 8)",
    "attention_weights query (2, 6, 7, 40), key f16 (2, 3, 41, 40), query_offset [34, 3], lengths [41, 10], causal",
    "attention_weights query (3, 4, 7, 16), key f16 (1, 2, 41, 16), lengths [37], query_offset [34], causal",
    "attention_weights query (2, 4, 7, 16), key f32 (1, 2, 41, 16), lengths [37, 0], query_offset [30], sinks (4) sliced",
    "attention_weights query (1, 2, 3, 80) transposed, key f32 (1, 2, 41, 80) sliced",
    "attention_weights query (1, 1, 2, 512), key f16 (1, 1, 41, 512), scale 1",
    "attention_weights query (2, 4, 7, 16), key f16 (2, 2, 41, 16), mask bool (2, 1, 1, 41), causal",
    "attention_weights query (2, 4, 7, 16), key f16 (2, 2, 41, 16), mask (2, 4, 1, 41)",
    "attention_weights query (2, 4, 7, 16), key {cache} (2, 2, 41, 16), query_offset [94, 3], lengths [101, 10], causal, window_back 30, ring",
    "attention_weights query (1, 4, 37, 16), key f16 (1, 2, 150, 16), window_back 4, window_ahead 7, prefix 3",
    "attention_weights query (1, 4, 37, 16), key f16 (1, 2, 150, 16), chunk 32, chunks_back 1, causal, softcap 2, sinks (4)",
    "attention_weights query (2, 4, 7, 16), key f16 (2, 2, 41, 16), alibi_slopes (4) sliced * 0.3, query_offset [34, 3], lengths [41, 10]",
    "attention_weights query (1, 4, 7, 16), key f16 (1, 2, 150, 16), relative_bias (32, 4)",
    "attention_weights query (1, 4, 7, 16), key f16 (1, 2, 150, 16), relative_bias (32, 4), bidirectional_buckets false, causal, max_distance 64",
    "attention_weights query (2, 4, 7, 16), key f16 (2, 2, 41, 16), mask bool (2, 4, 7, 41), lengths [41, 5], query_offset [0, 34], causal, window_back 20, softcap 3, sinks (4), alibi_slopes (4), "
    "relative_bias (16, 4), relative_key (3, 16)",
    "attention_weights query (2, 4, 6, 16), key f16 (2, 2, 41, 16), valid [5, 0]",

    // Activations in f16: rows that begin within a word, parameters and operands that are widened, keys that are copied.
    "{unary} input f16 (7, 37) transposed",
    "{unary} input f16 (14, 37), valid [5, 0]",
    "{binary} a f16 (2, 7, 1, 37), b f16 (3, 1)",
    "{binary} a f16 (7, 37) sliced, b (7, 37)",
    "glu gate f16 (7, 37) sliced, up f16 (7, 37) transposed, activation gelu",
    "{softmax} input f16 (2, 3, 7, 41) permuted, mask (7, 41), axis -2",
    "{softmax} input f16 (3, 257), mask f16 (257), scale 0.3",
    "{reduce} input f16 (3, 257, 5), axis 1, keep",
    "layer_norm input f16 (2, 5, 113) sliced, weight (113), bias f16 (113)",
    "layer_norm input f16 (10, 113), valid [3, 5]",
    "layer_norm input f16 (10, 116), bias f16 (116), valid [3, 5]",
    "layer_norm input f16 (2, 1032), weight (1032)",
    "rms_norm input f16 (2, 5, 116), weight (116), residual f16 (2, 5, 116)",
    "rms_norm input f16 (2, 5, 113) sliced, weight f16 (113)",
    "rms_norm input f16 (10, 113), weight (113), valid [3, 5]",
    "argmax input f16 (7, 41) sliced",
    "argmax input f16 (2, 70000)",
    "top_k input f16 (2, 5, 113) sliced, k 40",
    "top_k input f16 (2, 5000), k 7",
    "copy input f16 (2, 3, 5, 7) permuted",
    "widen input f16 (2, 3, 5, 7) permuted",
    "widen input f16 (3, {size}) sliced",
    "widen input f16 (3, 41) * 0.00003",  // most of them subnormal
    "argmax input f16 (7, 41) * 0.00003",
    "add a f16 (7, 41) * 0.00003, b f16 (7, 41) * 0.00003",
    "concat a f16 (3, 7), b f16 (3, 41), c f16 (3, 1), axis 1",
    "concat a f16 (3, 7), b (3, 41), axis 1",
    "concat a f16 (1, 1, 37), b f16 (3, 7, 37), axis 1",
    "{binary} a f16 (7, 37), b f16 ()",
    "{binary} a f16 (), b (7, 37)",
    "{reduce} input f16 (2, 3, 7, 41), axes [1, 3]",
    "linear input f16 (2, 3, 64), weight q8_0 (41, 64), residual f16 (3, 41)",
    "attention query f16 (2, 4, 7, 16), key f16 (1, 2, 41, 16), value f16 (1, 2, 41, 24), lengths [37]",
    "pad input f16 (7, 37) transposed, before [1, 0], after [2, 3], value -1.5",
    "slice input f16 (7, 41) permuted, starts [-3, 1], ends [7, -1], steps [1, 3]",
    "reshape input f16 (6, 35) transposed, shape [7, 30]",
    "embedding ids (7, 3), weight {some} (113, 256), type f16",
    "embedding ids (7), weight f32 (41, 37) sliced, type f16",
    "embedding ids (7, 3), weight {some} (113, 256), type f16, scale 22.627417",
    "sinusoidal_positions positions (41), width 6, layout split, type f16",
    "linear input f16 (1, 256), weight {some} (41, 256)",
    "linear input f16 (2, 1031), weight f32 (37, 1031)",
    "linear input f16 (1, 1031), weight f16 (7, 1031)",
    "linear input f16 (9, 256), weight {some} (13, 256)",
    "linear input f16 (2, 64), weight mxfp4 (41, 64)",
    "linear input f16 (3, 89) sliced, weight f32 (41, 89), residual f16 (3, 41) sliced",
    "linear input f16 (17, 64), weight q8_0 (41, 64), bias f16 (41), activation gelu, residual f16 (17, 41)",
    "linear input f16 (9, 544), weight q8_0 (41, 544), bias f16 (41), activation gelu, residual f16 (9, 41)",
    "linear input f16 (10, 64), weight q8_0 (41, 64), residual (10, 41), valid [2, 5]",
    "linear_glu input f16 (1, 256), weight q6_K (26, 256)",
    "linear_glu input f16 (17, 64), weight q8_0 (82, 64), activation gelu_tanh",
    "matmul a f16 (2, 3, 37, 41), b f16 (3, 89, 41), transpose_b, scale 0.125",
    "matmul a f16 (3, 37, 64), b f16 (64, 89)",
    "matmul a f16 (7, 37) transposed, b f16 (37, 41) stepped",
    "patch_embed pixels f16 (1, 3, 14, 7) permuted, weight f16 (41, 3, 7, 7), bias f16 (41), patch 7",
    "rope input f16 (2, 2, 3, 37) sliced, positions (2, 3), style {style}, dimensions 36, frequency_factors (18)",
    "kv_write cache {cache} (2, 3, 41, 37), update f16 (2, 3, 7, 37) sliced, start [5, 34]",
    "rope_kv_write query f16 (1, 4, 7, 40) joined, key f16 (1, 2, 7, 40) joined, value f16 (1, 2, 7, 40) joined, positions (1, 7), start [5], key_cache {cache} (1, 2, 41, 40), value_cache {cache} (1, "
    "2, 41, 40)",
    "norm_rope_kv_write query f16 (1, 4, 7, 40) joined, key f16 (1, 2, 7, 40) joined, value f16 (1, 2, 7, 40) joined, positions (1, 7) [5, 6, 7, 8, 9, 10, 11], start [5], key_cache {cache} (1, 2, 41, 40), "
    "value_cache {cache} (1, 2, 41, 40), norm_weights (2, 40), epsilon 1e-5",
    "attention query f16 (1, 4, 1, 64), key {cache} (1, 2, 257, 64), value {cache} (1, 2, 257, 64), causal",
    "attention query f16 (1, 2, 3, 37) transposed, key f16 (1, 2, 41, 37) transposed, value f16 (1, 2, 41, 24) sliced",
    "attention query (1, 2, 3, 40), key f16 (1, 2, 41, 40) transposed, value (1, 2, 41, 24)",
    "attention query f16 (2, 4, 7, 16), key f16 (2, 2, 41, 16), value f16 (2, 2, 41, 24), mask f16 (7, 41), lengths [41, 5], query_offset [0, 34], causal, softcap 3, sinks f16 (4), alibi_slopes f16 (4), "
    "relative_bias f16 (16, 4), relative_value f16 (5, 24)",
    "attention query f16 (1, 4, 7, 16), key f16 (1, 2, 41, 16), value f16 (1, 2, 41, 24), relative_key f16 (9, 16), relative_value (33, 24)",
    "attention_weights query f16 (2, 4, 7, 16), key f16 (1, 2, 41, 16), lengths [37]",
    "attention_weights query f16 (1, 2, 3, 37) transposed, key f16 (1, 2, 41, 37) transposed, mask f16 (3, 41), relative_key f16 (9, 37)",
    "sample logits f16 (2, 2049), tokens (2, 41), state.position 30, valid [1, 1], state.temperature 0.8, state.top_p 0.95, state.repeat_penalty 1.3, state.repeat_last_n 20, state.seed 7",

    // Steps.
    "step_begin tokens (2, 41), rows 7, state.position 5, valid [3, 7]",
    "step_begin tokens (2, 41), rows 1, state.position 40, valid [1, 1], inactive [1]",
    "step_end token [7, 9], tokens (2, 41), mirror (2, 41), state.position 5, valid [3, 1], state.stop [3, 9]",
    "step_end token [7, 9], tokens (2, 41), mirror (2, 41), state.position 40, valid [1, 1], inactive [0]",
    "step_end tokens (2, 41), mirror (2, 41), state.position 5, valid [3, 1]",
    "sample logits (2, {size}), tokens (2, 41), state.position 5, valid [1, 1]",
    "sample logits (2, 50257), tokens (2, 41), state.position 5, valid [1, 1], state.temperature 0.8, state.top_k 40, state.top_p 0.95, state.min_p 0.05, state.seed 7",
    "sample logits (1, 2049) * 8, tokens (1, 41), state.position 30, valid [1], state.temperature 1.5, state.repeat_penalty 1.3, state.repeat_last_n 20, state.seed 11",
    "sample logits (1, 700), tokens (1, 41), state.position 5, valid [1], state.temperature 1, state.top_p 0.5, state.seed 3",
};

/// Rather the product of what there is than new ideas.
constexpr std::string_view kThoroughCases[] = {
    "{unary} input ({size}, 113)",
    "{binary} a ({size}, 113) transposed, b ({size}, 113)",
    "{softmax} input ({size}, 113) stepped",
    "{reduce} input ({size}, 4096)",
    "layer_norm input ({size}, 4096), weight (4096), bias (4096)",
    "rms_norm input ({size}, 4096), weight (4096)",
    "argmax input (1, 262144)",
    "top_k input (1, 50257), k 50",
    "embedding ids ({size}), weight {weight} (41, 768)",
    "linear input ({size}, 512), weight {weight} (89, 512)",
    "linear input (1, 256), weight {weight} ({size}, 256)",
    "linear input (9, 28672), weight {weight} (33, 28672)",
    "linear input (37, 256), weight {weight} (41, 256), bias (41), activation {act}, residual (37, 41)",
    "linear input (9, {size}), weight f16 (41, {size})",
    "linear input ({size}, {size}), weight bf16 (37, {size})",
    "linear_glu input ({size}, 256), weight {weight} (74, 256), activation silu",
    "linear_glu input (9, 256), weight q8_0 (178, 256), activation silu",
    "linear_glu input (3, {size}), weight f16 (82, {size}), activation silu",
    "expert_linear input ({size}, 64), weight q8_0 (111, 64), experts ({size}, 1), count 3",
    "expert_linear input (7, 64), weight q4_0 (267, 64), experts (7, 2), count 3",
    "linear_glu input (37, 256), weight {weight} (82, 256), activation {act}",
    "matmul a ({size}, 113), b (113, {size})",
    "rope input (1, 3, {size}, 64), positions ({size}), style {style}",
    "kv_write cache {cache} (1, 3, 257, 128), update (1, 3, {size}, 128), start [0]",
    "attention query (1, 4, {size}, 64), key {cache} (1, 2, 1000, 64), value {cache} (1, 2, 1000, 64), causal",
    "attention query (1, 4, 2, {width}), key {cache} (1, 1, 89, {width}), value {cache} (1, 1, 89, {width})",
    "attention query (1, 8, {size}, 16), key {cache} (1, 2, 113, 16), value {cache} (1, 2, 113, 24), mask bool ({size}, 113), sinks (8), alibi_slopes (8), relative_key (9, 16)",
    "attention_weights query (1, 4, 2, {width}), key {cache} (1, 1, 89, {width})",
    "attention_weights query (1, 8, {size}, 16), key {cache} (1, 2, 113, 16), mask bool ({size}, 113), sinks (8), alibi_slopes (8), relative_key (9, 16)",
    "sample logits (2, {size}), tokens (2, 41), state.position 5, valid [1, 1], state.temperature 1, state.top_p 0.9",
    "sample logits (1, 262144), tokens (1, 41), state.position 5, valid [1], state.temperature 1",
};

/// Every occurrence of one mark becomes the same word. A case that is there already is not added again.
void write_out(std::string text, std::vector<std::string>& cases) {
  for (const Many& many : kMany) {
    if (text.find(many.mark) == std::string::npos) continue;
    for (const std::string_view word : many.words) {
      std::string one = text;
      for (std::size_t at = one.find(many.mark); at != std::string::npos; at = one.find(many.mark)) one.replace(at, many.mark.size(), word);
      write_out(std::move(one), cases);
    }
    return;
  }
  if (std::find(cases.begin(), cases.end(), text) == cases.end()) cases.push_back(std::move(text));
}

}  // namespace

std::vector<std::string> all_cases(bool thorough) {
  std::vector<std::string> cases;
  for (const std::string_view text : kCases) write_out(std::string(text), cases);
  if (!thorough) return cases;
  for (const std::string_view text : kThoroughCases) write_out(std::string(text), cases);
  return cases;
}

}  // namespace rondo::check
