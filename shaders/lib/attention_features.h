// What an attention kernel is specialised for (bits of its constant kFeatures), and how partials lie; shared by GLSL and C++.
#ifndef RONDO_ATTENTION_FEATURES_H
#define RONDO_ATTENTION_FEATURES_H
#define RONDO_ATTENTION_RANGES 1u           // window, prefix or chunks
#define RONDO_ATTENTION_SOFTCAP 2u
#define RONDO_ATTENTION_MASK 4u
#define RONDO_ATTENTION_MASK_IS_BOOL 8u     // words that are 0 or not; else f32, added
#define RONDO_ATTENTION_MASK_SEQUENCES 16u  // the mask has this dimension; else it is broadcast
#define RONDO_ATTENTION_MASK_HEADS 32u
#define RONDO_ATTENTION_MASK_QUERIES 64u
#define RONDO_ATTENTION_MASK_KEYS 128u
#define RONDO_ATTENTION_TABLES 256u         // offsets, lengths and all of the following come from the tables; else sinks or slopes do from a buffer
#define RONDO_ATTENTION_SINKS 512u
#define RONDO_ATTENTION_SLOPES 1024u
#define RONDO_ATTENTION_BIAS 2048u
#define RONDO_ATTENTION_BIAS_BOTH_WAYS 4096u
#define RONDO_ATTENTION_RELATIVE_KEY 8192u
#define RONDO_ATTENTION_RELATIVE_VALUE 16384u
#define RONDO_ATTENTION_RING 32768u         // key j is stored at j mod keys
#define RONDO_ATTENTION_ROWS_DIFFER 65536u  // attention_subgroup.comp: rows of one workgroup may see different keys
// Splits of attention_subgroup.comp: more leave more to join than they spare.
#define RONDO_MAX_SPLITS 64u
// Floats of one row's partials in one split: sums, the maximum and the weight, padded to vectors of 4.
#define RONDO_PARTIAL_STRIDE(value_dim) (((value_dim) + 5u) & ~3u)
#endif
