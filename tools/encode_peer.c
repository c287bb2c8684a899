/* Encodes texts with the published llama.cpp libraries (their Vulkan backend), to be timed beside `rondo bench`.
 * usage: encode_peer LIBDIR MODEL.gguf TEXTS TOKENS BATCH RUNS [layers on the device = 999] [threads = 2]
 * TEXTS texts of TOKENS tokens each, BATCH of them in one call of llama_encode. Prints texts per second of each run but the
 * first, and the first number of the first text's vector. Only what of the library's interface is used is declared here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Larger than the parameters of models and of contexts; what is set lies at known places. */
typedef struct {
  unsigned char bytes[512];
} Parameters;
typedef struct {
  int32_t n_tokens;
  int32_t* tokens;
  float* embeddings;
  int32_t* positions;
  int32_t* n_sequences;
  int32_t** sequences;
  int8_t* outputs;
} Batch;

static void* library;

static void* find(const char* name) {
  void* found = dlsym(library, name);
  if (!found) fprintf(stderr, "the library has no %s\n", name), exit(3);
  return found;
}

static void* open_library(const char* folder, const char* const* names) {
  char path[4096];
  for (; *names; ++names) {
    snprintf(path, sizeof path, "%s/%s", folder, *names);
    void* opened = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (opened) return opened;
  }
  return NULL;
}

static void quiet(int level, const char* text, void* user) {
  (void)user;
  if (level >= 4) fputs(text, stderr);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc < 7) return fprintf(stderr, "usage: encode_peer LIBDIR MODEL TEXTS TOKENS BATCH RUNS [layers] [threads]\n"), 2;
  const int n_texts = atoi(argv[3]), n_tokens = atoi(argv[4]), batch_size = atoi(argv[5]), n_runs = atoi(argv[6]);
  const int32_t n_layers = argc > 7 ? atoi(argv[7]) : 999, n_threads = argc > 8 ? atoi(argv[8]) : 2;
  open_library(argv[1], (const char* const[]){"libggml-base.so", NULL});
  void* ggml = open_library(argv[1], (const char* const[]){"libggml.vulkan.v0.5.0.so", "libggml.v0.5.0.so", "libggml.so", NULL});
  library = open_library(argv[1], (const char* const[]){"libllama.vulkan.v0.5.0.so", "libllama.v0.5.0.so", "libllama.so", NULL});
  if (!ggml || !library) return fprintf(stderr, "no libraries in %s\n", argv[1]), 3;
  ((void (*)(void (*)(int, const char*, void*), void*))find("llama_log_set"))(quiet, NULL);
  ((void (*)(const char*))dlsym(ggml, "ggml_backend_load_all_from_path"))(argv[1]);
  ((void (*)(void))find("llama_backend_init"))();
  Parameters of_model = ((Parameters(*)(void))find("llama_model_default_params"))();
  memcpy(of_model.bytes + 16, &n_layers, sizeof n_layers);
  void* model = ((void* (*)(const char*, Parameters))find("llama_model_load_from_file"))(argv[2], of_model);
  if (!model) return fprintf(stderr, "cannot load %s\n", argv[2]), 4;
  void* vocabulary = ((void* (*)(void*))find("llama_model_get_vocab"))(model);
  const int n_vocabulary = ((int (*)(void*))find("llama_vocab_n_tokens"))(vocabulary);

  Parameters of_context = ((Parameters(*)(void))find("llama_context_default_params"))();
  uint32_t* words = (uint32_t*)of_context.bytes;
  const uint32_t n_all = (uint32_t)(batch_size * n_tokens);
  words[0] = words[1] = words[2] = n_all < 256 ? 256 : n_all; /* context, batch, and what is computed at once */
  words[3] = (uint32_t)batch_size;                            /* sequences */
  words[7] = words[8] = (uint32_t)n_threads;
  void* context = ((void* (*)(void*, Parameters))find("llama_init_from_model"))(model, of_context);
  if (!context) return fprintf(stderr, "cannot make a context\n"), 5;
  ((void (*)(void*, _Bool))find("llama_set_embeddings"))(context, 1);
  int32_t (*encode)(void*, Batch) = (int32_t(*)(void*, Batch))find("llama_encode");
  float* (*vector_of)(void*, int32_t) = (float* (*)(void*, int32_t))find("llama_get_embeddings_seq");

  Batch batch = {0};
  batch.tokens = malloc(4 * n_all), batch.positions = malloc(4 * n_all), batch.n_sequences = malloc(4 * n_all);
  batch.sequences = malloc(sizeof(int32_t*) * n_all), batch.outputs = malloc(n_all);
  int32_t* ids = malloc(4 * (size_t)batch_size);
  for (int run = 0; run <= n_runs; ++run) {
    float first = 0;
    const double begin = seconds();
    for (int text = 0; text < n_texts; text += batch_size) {
      batch.n_tokens = 0;
      for (int i = 0; i < batch_size && text + i < n_texts; ++i) {
        ids[i] = i;
        for (int t = 0; t < n_tokens; ++t) {
          const int at = batch.n_tokens++;
          batch.tokens[at] = 5 + (int)((7ll * t + 31ll * (text + i)) % (n_vocabulary - 10));
          batch.positions[at] = t;
          batch.n_sequences[at] = 1;
          batch.sequences[at] = &ids[i];
          batch.outputs[at] = 1;
        }
      }
      if (encode(context, batch)) return fprintf(stderr, "llama_encode failed\n"), 6;
      const float* vector = vector_of(context, 0);
      if (!vector) return fprintf(stderr, "there are no vectors\n"), 6;
      if (text == 0) first = vector[0];
    }
    if (run > 0) printf("{\"texts_per_s\":%.3f,\"first\":%.6f}\n", n_texts / (seconds() - begin), (double)first);
    fflush(stdout);
  }
  _exit(0); /* its drivers' threads need not end in order */
}
